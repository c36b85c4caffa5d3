//! Arbitrary files as backend libraries: the manifest is read or rejected, and nothing is loaded.
#![no_main]

mod file;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = file::with(bytes, |_| (), runtime_core::fuzzing::manifest) {
        assert!(!error.to_string().is_empty(), "a rejection has a reason");
    }
});
