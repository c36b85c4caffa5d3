//! Texts that C libraries return.

#![allow(unsafe_code, reason = "reads C strings")]

use std::ffi::{CStr, c_char};

/// The text in a buffer that a library filled: up to its first NUL, without surrounding blanks.
#[must_use]
pub fn c_text(buffer: &[u8]) -> String {
    let text = CStr::from_bytes_until_nul(buffer).map_or(buffer, CStr::to_bytes);
    String::from_utf8_lossy(text).trim().to_owned()
}

/// The text at an address; empty for null.
///
/// # Safety
/// `text` is null, or a NUL-terminated text that nothing changes during the call.
#[must_use]
pub unsafe fn c_text_at(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_at_its_first_nul() {
        assert_eq!(c_text(b"PoCL \0x"), "PoCL");
        assert_eq!((c_text(b"no end"), c_text(b"")), ("no end".to_owned(), String::new()));
        // SAFETY: null, and a literal.
        assert_eq!(unsafe { c_text_at(std::ptr::null()) }, "");
        // SAFETY: a literal.
        assert_eq!(unsafe { c_text_at(c" a ".as_ptr()) }, " a ");
    }
}
