//! Framing: `$payload#checksum`, acknowledgements, run-length encoding and escapes.

use super::hex;

/// Largest payload that the parser accepts, after decoding.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;
/// Byte that announces an escaped one.
const ESCAPE: u8 = b'}';
/// An escaped byte is sent with this bit flipped.
const ESCAPE_BIT: u8 = 0x20;
/// A repeat count is sent as a printable character, this much larger.
const RUN_BIAS: u8 = 29;

/// What the parser found in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A packet with a valid checksum: its decoded payload.
    Packet(Vec<u8>),
    /// A notification (`%…`), which is not acknowledged: its decoded payload.
    Notification(Vec<u8>),
    /// `+`: the last packet arrived.
    Ack,
    /// `-`: the last packet must be sent again.
    Nack,
    /// A packet that cannot be used, with the reason: a wrong checksum, a bad encoding, or too long.
    Damaged(&'static str),
}

/// Takes a stream of bytes apart. Bytes between packets are skipped.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    state: State,
    payload: Vec<u8>,
    is_notification: bool,
    sum: u8,
    sent_sum: u8,
    damage: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Between,
    Payload,
    Escaped,
    Run,
    FirstDigit,
    SecondDigit,
}

impl Parser {
    /// Takes the next byte; returns what it completes.
    pub fn push(&mut self, byte: u8) -> Option<Item> {
        match self.state {
            State::Between => return self.between(byte),
            State::Payload | State::Escaped | State::Run if byte == b'#' => {
                if self.state != State::Payload {
                    self.damage = Some("it ends within an escape or a run");
                }
                self.state = State::FirstDigit;
            }
            // A `$` is always escaped within a packet, so this is the beginning of the next one.
            State::Payload | State::Escaped | State::Run if byte == b'$' => {
                self.begin(false);
                return Some(Item::Damaged("another packet begins within it"));
            }
            State::FirstDigit => {
                self.sent_sum = self.digit(byte) << 4;
                self.state = State::SecondDigit;
            }
            State::SecondDigit => {
                self.sent_sum |= self.digit(byte);
                return Some(self.finish());
            }
            _ => self.content(byte),
        }
        None
    }

    fn between(&mut self, byte: u8) -> Option<Item> {
        match byte {
            b'$' => self.begin(false),
            b'%' => self.begin(true),
            b'+' => return Some(Item::Ack),
            b'-' => return Some(Item::Nack),
            _ => {}
        }
        None
    }

    fn begin(&mut self, is_notification: bool) {
        *self = Self { state: State::Payload, is_notification, ..Self::default() };
    }

    fn content(&mut self, byte: u8) {
        self.sum = self.sum.wrapping_add(byte);
        match (self.state, byte) {
            (State::Escaped, _) => {
                self.state = State::Payload;
                self.append(byte ^ ESCAPE_BIT, 1);
            }
            (State::Run, _) => {
                self.state = State::Payload;
                self.repeat(byte);
            }
            (_, ESCAPE) => self.state = State::Escaped,
            (_, b'*') => self.state = State::Run,
            _ => self.append(byte, 1),
        }
    }

    fn repeat(&mut self, count: u8) {
        match (self.payload.last().copied(), count.checked_sub(RUN_BIAS)) {
            (Some(last), Some(count)) if (b' '..=b'~').contains(&(count + RUN_BIAS)) => {
                self.append(last, usize::from(count));
            }
            _ => self.damage = Some("a run has no byte to repeat, or an invalid length"),
        }
    }

    fn append(&mut self, byte: u8, count: usize) {
        if self.payload.len() + count > MAX_PAYLOAD_BYTES {
            self.damage = Some("it is too long");
        } else if self.damage.is_none() {
            self.payload.resize(self.payload.len() + count, byte);
        }
    }

    fn digit(&mut self, byte: u8) -> u8 {
        hex::value(byte).unwrap_or_else(|| {
            self.damage = Some("its checksum is not hexadecimal");
            0
        })
    }

    fn finish(&mut self) -> Item {
        let whole = std::mem::take(self);
        match whole.damage {
            Some(reason) => Item::Damaged(reason),
            None if whole.sum != whole.sent_sum => Item::Damaged("its checksum is wrong"),
            None if whole.is_notification => Item::Notification(whole.payload),
            None => Item::Packet(whole.payload),
        }
    }
}

/// Frames a payload whose special bytes are [escaped](escape) already.
#[must_use]
pub fn frame(payload: &[u8]) -> Vec<u8> {
    let sum = payload.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    let mut packet = Vec::with_capacity(payload.len() + 4);
    packet.push(b'$');
    packet.extend_from_slice(payload);
    packet.push(b'#');
    hex::encode(&[sum], &mut packet);
    packet
}

/// Appends binary data to a payload, with special bytes escaped.
pub fn escape(data: &[u8], payload: &mut Vec<u8>) {
    for &byte in data {
        match escaped_bytes(byte) {
            1 => payload.push(byte),
            _ => payload.extend([ESCAPE, byte ^ ESCAPE_BIT]),
        }
    }
}

/// Bytes that a byte takes in binary data.
pub(super) const fn escaped_bytes(byte: u8) -> usize {
    if matches!(byte, b'$' | b'#' | b'*' | ESCAPE) { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Vec<Item> {
        let mut parser = Parser::default();
        bytes.iter().filter_map(|&byte| parser.push(byte)).collect()
    }

    fn packet(payload: &[u8]) -> Item {
        Item::Packet(payload.to_vec())
    }

    #[test]
    fn packets_acknowledgements_and_noise_are_distinguished() {
        assert_eq!(parse(b"xx+$OK#9a-\n$#00"), [Item::Ack, packet(b"OK"), Item::Nack, packet(b"")]);
        assert_eq!(parse(b"%Stop:T05#99"), [Item::Notification(b"Stop:T05".to_vec())]);
    }

    #[test]
    fn runs_are_expanded() {
        // The example of GDB's manual: "0* " is "0000".
        assert_eq!(parse(&frame(b"0* ")), [packet(b"0000")]);
        assert_eq!(parse(&frame(b"ab*!c")), [packet(b"abbbbbc")]);
        assert_eq!(parse(&frame(b"}\x0a* ")), [packet(b"****")], "an escaped byte repeats as well");
        for wrong in [&b"* "[..], b"a*", b"a*\x1f", b"a*\x7f", b"}"] {
            assert!(matches!(parse(&frame(wrong))[..], [Item::Damaged(_)]), "{wrong:?}");
        }
    }

    #[test]
    fn damaged_packets_do_not_hide_the_next() {
        for damaged in [&b"$OK#9b"[..], b"$OK#zz", b"$OK"] {
            let items = parse(&[damaged, b"$OK#9a"].concat());
            assert!(matches!(items[0], Item::Damaged(_)), "{items:?}");
            assert_eq!(items[1..], [packet(b"OK")]);
        }
    }

    #[test]
    fn a_packet_is_bounded() {
        let run = b"0".iter().chain(b"*~".iter().cycle().take(2 * MAX_PAYLOAD_BYTES / 97 + 2)).copied();
        assert_eq!(parse(&frame(&run.collect::<Vec<_>>())), [Item::Damaged("it is too long")]);
    }

    #[test]
    fn any_data_survives_framing() {
        let mut state = 1u64;
        for length in 0..600 {
            let data: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    // Half of the bytes are special.
                    if state >> 63 == 0 {
                        b"$#}*"[(state >> 33) as usize % 4]
                    } else {
                        state.to_be_bytes()[2]
                    }
                })
                .collect();
            let mut payload = Vec::new();
            escape(&data, &mut payload);
            assert_eq!(parse(&frame(&payload)), [Item::Packet(data)]);
        }
    }
}
