//! Hexadecimal digits, two per byte.

use super::error::{GdbError, Result};

pub(super) fn encode(bytes: &[u8], text: &mut Vec<u8>) {
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
}

/// Decodes exactly `bytes.len()` bytes.
pub(super) fn decode(text: &[u8], bytes: &mut [u8]) -> Result<()> {
    if text.len() != bytes.len() * 2 {
        return Err(GdbError::protocol(format!("{} digits came for {} bytes", text.len(), bytes.len())));
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let (high, low) = (value(pair[0]), value(pair[1]));
        let (Some(high), Some(low)) = (high, low) else {
            return Err(GdbError::protocol(format!(
                "\"{}\" is not hexadecimal",
                String::from_utf8_lossy(pair)
            )));
        };
        *byte = (high << 4) | low;
    }
    Ok(())
}

pub(super) const fn digit(value: u8) -> u8 {
    match value {
        0..=9 => b'0' + value,
        _ => b'a' + value - 10,
    }
}

pub(super) const fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
