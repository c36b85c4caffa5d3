//! CRC-32, as the firmware computes it.

/// The remainders of the sixteen values of four bits.
const TABLE: [u32; 16] = table();

/// The checksum of the firmware: CRC-32 of Ethernet.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let nibble = |crc: u32| (crc >> 4) ^ TABLE[(crc & 15) as usize];
    !bytes.iter().fold(u32::MAX, |crc, byte| nibble(nibble(crc ^ u32::from(*byte))))
}

const fn table() -> [u32; 16] {
    let mut table = [0; 16];
    let mut value = 0;
    while value < 16 {
        let (mut crc, mut bit) = (value, 0);
        while bit < 4 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        table[value as usize] = crc;
        value += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
