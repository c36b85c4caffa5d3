//! `clGet*Info` queries, and how their answers are decoded.

#![allow(unsafe_code, reason = "queries the driver")]

use std::ffi::c_void;

use cl3::types::cl_int;
use runtime_core::backend::c_text;

use super::{DispatchTable, Driver, Raw, query};

impl Driver {
    /// Makes a `clGet*Info` query, for the size and then for the answer; `None` if it fails.
    pub(crate) fn query_info(
        &self,
        query: impl Fn(&DispatchTable, usize, *mut c_void, *mut usize) -> Option<cl_int>,
    ) -> Option<Vec<u8>> {
        let none = std::ptr::null_mut();
        let mut size = 0;
        let _guard = self.lock_calls();
        if query(self.dispatch, 0, none, &raw mut size) != Some(0) {
            return None;
        }
        let mut bytes = vec![0_u8; size];
        let answered = size == 0
            || query(self.dispatch, size, bytes.as_mut_ptr().cast(), std::ptr::null_mut()) == Some(0);
        answered.then_some(bytes)
    }

    pub(crate) fn platform_info(&self, platform: Raw, key: u32) -> Option<Vec<u8>> {
        // SAFETY: the platform is one of the driver's, and `value` has room for `size` bytes.
        unsafe { query!(self, clGetPlatformInfo(platform, key)) }
    }

    pub(crate) fn device_info(&self, device: Raw, key: u32) -> Option<Vec<u8>> {
        // SAFETY: the device is one of the driver's, and `value` has room for `size` bytes.
        unsafe { query!(self, clGetDeviceInfo(device, key)) }
    }

    /// A text property of a device; empty if the query fails.
    pub(crate) fn device_text(&self, device: Raw, key: u32) -> String {
        self.device_info(device, key).map_or_else(String::new, |text| c_text(&text))
    }

    /// A numeric property of a device; 0 if the query fails.
    pub(crate) fn device_number(&self, device: Raw, key: u32) -> u64 {
        self.device_info(device, key).and_then(|bytes| decode_u64(&bytes)).unwrap_or(0)
    }
}

/// An answer as a number, of any size up to 8 bytes.
pub(crate) fn decode_u64(bytes: &[u8]) -> Option<u64> {
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    (!bytes.is_empty()).then(|| u64::from_le_bytes(word))
}

/// An answer as an array of `size_t`.
pub(crate) fn decode_usizes(bytes: &[u8]) -> Vec<usize> {
    bytes
        .chunks_exact(size_of::<usize>())
        .filter_map(|chunk| decode_u64(chunk).and_then(|word| usize::try_from(word).ok()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_any_size_are_decoded() {
        assert_eq!(decode_u64(&7_u32.to_le_bytes()), Some(7));
        assert_eq!(decode_u64(&u64::MAX.to_le_bytes()), Some(u64::MAX));
        assert_eq!((decode_u64(&[]), decode_u64(&[0; 9])), (None, None));
        assert_eq!(decode_usizes(&[1_usize.to_le_bytes(), 2_usize.to_le_bytes()].concat()), [1, 2]);
        assert_eq!(c_text(b" PoCL \0x"), "PoCL");
        assert_eq!(c_text(b"no end"), "no end");
    }
}
