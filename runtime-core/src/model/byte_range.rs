//! Ranges of bytes in a buffer.

use crate::{Error, Result};

/// Checks that `bytes` bytes at `offset` lie within a buffer of `buffer_bytes` bytes. `what` names the operation.
///
/// # Errors
/// `InvalidArgument`.
#[inline]
pub fn check_range(what: &str, offset: u64, bytes: u64, buffer_bytes: u64) -> Result<()> {
    if offset.checked_add(bytes).is_some_and(|end| end <= buffer_bytes) {
        return Ok(());
    }
    Err(out_of_range(what, offset, bytes, buffer_bytes))
}

#[cold]
fn out_of_range(what: &str, offset: u64, bytes: u64, buffer_bytes: u64) -> Error {
    Error::invalid(format!(
        "{what}: {bytes} bytes at offset {offset} exceed the buffer of {buffer_bytes} bytes"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_range_ends_within_its_buffer() {
        assert!(check_range("read", 0, 8, 8).is_ok() && check_range("read", 8, 0, 8).is_ok());
        for (offset, bytes) in [(1, 8), (9, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let error = check_range("read", offset, bytes, 8).unwrap_err();
            let message = format!("read: {bytes} bytes at offset {offset} exceed the buffer of 8 bytes");
            assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidArgument, &*message));
        }
    }
}
