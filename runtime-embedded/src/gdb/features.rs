//! What the server supports, from its reply to `qSupported`.

/// Smallest packet that every server accepts, by GDB's manual.
const SMALLEST_PACKET: usize = 400;
/// We send no larger packets, whatever the server accepts.
const LARGEST_PACKET: usize = 64 << 10;

/// What the server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Largest packet that the server accepts, in bytes.
    pub packet_bytes: usize,
    /// Whether acknowledgements can be turned off.
    pub no_ack_mode: bool,
    /// Whether the server describes its registers.
    pub describes_target: bool,
    /// Whether the server describes its memory.
    pub describes_memory: bool,
}

impl Features {
    /// Reads a reply such as `PacketSize=1000;QStartNoAckMode+`. Unknown features are ignored.
    pub(super) fn parse(reply: &[u8]) -> Self {
        let mut features = Self {
            packet_bytes: SMALLEST_PACKET,
            no_ack_mode: false,
            describes_target: false,
            describes_memory: false,
        };
        for feature in String::from_utf8_lossy(reply).split(';') {
            match feature.split_once('=') {
                Some(("PacketSize", size)) => {
                    if let Ok(size) = usize::from_str_radix(size, 16) {
                        features.packet_bytes = size.clamp(SMALLEST_PACKET, LARGEST_PACKET);
                    }
                }
                _ if feature == "QStartNoAckMode+" => features.no_ack_mode = true,
                _ if feature == "qXfer:memory-map:read+" => features.describes_memory = true,
                _ if feature == "qXfer:features:read+" => features.describes_target = true,
                _ => {}
            }
        }
        features
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_hexadecimal_and_bounded() {
        let size = |reply: &[u8]| Features::parse(reply).packet_bytes;
        assert_eq!(size(b"qXfer:features:read+;PacketSize=1000;"), 0x1000);
        assert_eq!(size(b"PacketSize=0"), SMALLEST_PACKET);
        assert_eq!(size(b"PacketSize=ffffffff"), LARGEST_PACKET);
        assert_eq!(size(b"PacketSize=what"), SMALLEST_PACKET);
    }

    #[test]
    fn no_ack_mode_is_used_only_where_offered() {
        assert!(Features::parse(b"QStartNoAckMode+").no_ack_mode);
        assert!(!Features::parse(b"QStartNoAckMode-").no_ack_mode && !Features::parse(b"").no_ack_mode);
    }
}
