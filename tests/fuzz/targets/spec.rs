//! Arbitrary text as a kernel spec: rejected with the line, or parsed.
#![no_main]

mod file;

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use runtime_harness::{Overrides, Spec};

/// Files that the repository's specs refer to.
const FILES: [&str; 6] = ["fma_peak.c", "matmul.c", "reference.c", "saxpy.c", "vector_add.c", "k.npy"];

fuzz_target!(|bytes: &[u8]| {
    let prepare = |folder: &Path| {
        for name in FILES {
            std::fs::write(folder.join(name), "void k(void) {}").expect("room for the file");
        }
    };
    file::with(bytes, prepare, |path| match Spec::load(path, &Overrides::default()) {
        Ok(spec) => assert!(spec.outputs().count() <= spec.args.len()),
        Err(error) => assert!(!error.to_string().is_empty(), "a rejection has a reason"),
    });
});
