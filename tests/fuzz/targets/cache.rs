//! Arbitrary bytes as an entry of the code cache: rejected without a panic or a large allocation.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| runtime_core::fuzzing::cache_entry(bytes));
