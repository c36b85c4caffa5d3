//! Sets `RUNTIME_KERNEL_VERSION` to a hash of everything that lowered code depends on: this crate's sources, and the versions
//! of its dependencies. Code that another version lowered is never taken from a cache.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};

fn main() {
    // The lock file is not there in a published crate, whose version then stands for its dependencies.
    let inputs = ["src", "Cargo.toml", "../Cargo.lock"];
    let mut files = Vec::new();
    for input in inputs.map(Path::new).into_iter().filter(|input| input.exists()) {
        println!("cargo:rerun-if-changed={}", input.display());
        collect(input, &mut files);
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        hasher.write(file.as_os_str().as_encoded_bytes());
        hasher.write(&fs::read(&file).expect("a source file can be read"));
    }
    println!("cargo:rustc-env=RUNTIME_KERNEL_VERSION={:016x}", hasher.finish());
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if !path.is_dir() {
        return files.push(path.to_owned());
    }
    for entry in fs::read_dir(path).expect("a source folder can be read") {
        collect(&entry.expect("a source folder can be read").path(), files);
    }
}
