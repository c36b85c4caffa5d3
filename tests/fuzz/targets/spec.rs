//! Arbitrary text as a kernel spec: rejected with the line, or parsed.
#![no_main]
#![allow(dead_code, reason = "the command uses all of it")]

mod file;
#[path = "../../../runtime-cli/src/settings.rs"]
mod settings;
#[path = "../../../runtime-cli/src/spec/mod.rs"]
mod spec;
#[path = "../../../runtime-cli/src/text_file.rs"]
mod text_file;

use std::path::Path;

use libfuzzer_sys::fuzz_target;

/// Files that the repository's specs refer to.
const FILES: [&str; 6] = ["fma_peak.c", "matmul.c", "reference.c", "saxpy.c", "vector_add.c", "k.npy"];

fuzz_target!(|bytes: &[u8]| {
    let prepare = |folder: &Path| {
        for name in FILES {
            std::fs::write(folder.join(name), "void k(void) {}").expect("room for the file");
        }
    };
    file::with(bytes, prepare, |path| match spec::Spec::load(path, &spec::Overrides::default()) {
        Ok(spec) => assert!(spec.outputs().count() <= spec.args.len()),
        Err(error) => assert!(!error.to_string().is_empty(), "a rejection has a reason"),
    });
});
