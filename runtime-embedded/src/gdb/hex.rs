//! Hexadecimal digits, two per byte.

use super::error::{GdbError, Result};

pub(super) fn encode(bytes: &[u8], text: &mut Vec<u8>) {
    text.extend(bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
}

/// Decodes exactly `bytes.len()` bytes.
pub(super) fn decode(text: &[u8], bytes: &mut [u8]) -> Result<()> {
    if text.len() != bytes.len() * 2 {
        return Err(GdbError::protocol(format!("{} digits came for {} bytes", text.len(), bytes.len())));
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let wrong =
            || GdbError::protocol(format!("\"{}\" is not hexadecimal", String::from_utf8_lossy(pair)));
        *byte = value(pair[0]).zip(value(pair[1])).map(|(high, low)| (high << 4) | low).ok_or_else(wrong)?;
    }
    Ok(())
}

pub(super) fn value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}
