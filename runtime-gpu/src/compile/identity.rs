//! What compiled code depends on beside the source, the device and the driver: the compiler's library, its headers, included
//! files, and the environment. The library is not loaded for it.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use runtime_core::backend::{Source, included_files};
use runtime_core::{Error, Result};

use super::cuda_c::CudaSource;
use super::nvrtc;

/// Variables that change what the compilers make of the same source.
const VARIABLES: [&str; 3] = ["CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT", "LLVM_OVERRIDE_PRODUCER"];
/// Variables with options, which may name further files.
const OPTION_VARIABLES: [&str; 2] = ["NVRTC_PREPEND_FLAGS", "NVRTC_APPEND_FLAGS"];
/// Options of NVRTC that read or write other files than the included ones.
const FILE_OPTIONS: [&str; 9] = [
    "-include",
    "--pre-include",
    "-pch",
    "--pch",
    "-create-pch",
    "--create-pch",
    "-use-pch",
    "--use-pch",
    "@",
];

/// The identity of what compiles CUDA C.
///
/// # Errors
/// `Unavailable` without NVRTC; `Unsupported` if the files that the code depends on cannot be known.
pub(crate) fn of_cuda_c(source: &Source<'_>) -> Result<String> {
    of_cuda_c_with(source, nvrtc::files()?)
}

/// As [`of_cuda_c`], with the compiler's own files.
fn of_cuda_c_with(source: &Source<'_>, compiler: &[PathBuf]) -> Result<String> {
    if let Some(name) = OPTION_VARIABLES.into_iter().find(|name| std::env::var_os(name).is_some()) {
        return Err(Error::unsupported(format!("{name} is set: its options may name further files")));
    }
    let cuda = CudaSource::new(source);
    if let Some(option) = cuda.options.iter().find(|option| reads_files(option)) {
        return Err(Error::unsupported(format!("option \"{option}\" makes the compiler read further files")));
    }
    let code = source.code.unwrap_or_default();
    let folders: Vec<_> =
        cuda.include.iter().map(PathBuf::from).chain(option_folders(&cuda.options)).collect();
    let files = included_files(&String::from_utf8_lossy(code), Some(&cuda.own_folder), &folders);
    let files =
        files.ok_or_else(|| Error::unsupported("the files that the code includes cannot be known"))?;
    let mut identity = variables();
    for file in compiler {
        // Writing to a string cannot fail.
        let _ = writeln!(identity, "{}", describe_file(file));
    }
    Ok(identity + &files)
}

fn variables() -> String {
    let values = VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    values.map(|(name, value)| format!("{name}={value:?}\n")).collect()
}

/// Size, time and inode of a file.
fn describe_file(path: &Path) -> String {
    match std::fs::metadata(path) {
        Ok(metadata) => {
            let (seconds, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
            format!("{path:?} {} {seconds}.{nanoseconds:09} {}", metadata.len(), metadata.ino())
        }
        Err(error) => format!("{path:?} {}", error.kind()),
    }
}

fn reads_files(option: &str) -> bool {
    let option = option.trim();
    FILE_OPTIONS.iter().any(|known| option.starts_with(known))
}

/// The folders that NVRTC's own options name: `-I FOLDER`, `-IFOLDER`, `--include-path=FOLDER`.
fn option_folders<'a>(options: &'a [&'a str]) -> impl Iterator<Item = PathBuf> + 'a {
    let folder = |(index, option): (usize, &&'a str)| {
        let option = option.trim();
        let rest = option.strip_prefix("--include-path").or_else(|| option.strip_prefix("-I"))?;
        match rest.trim_start_matches(['=', ' ']) {
            "" => options.get(index + 1).map(PathBuf::from),
            folder => Some(PathBuf::from(folder)),
        }
    };
    options.iter().enumerate().filter_map(folder)
}

#[cfg(test)]
mod tests {
    use runtime_core::{ErrorKind, Options};

    use super::*;

    #[test]
    fn folders_of_options_are_found_in_every_spelling() {
        let options = ["-Ia", "-I", "b", "--include-path=c", "-I d", "--include-path", "e", "-DN=4", "-I"];
        let folders: Vec<_> = option_folders(&options).collect();
        assert_eq!(folders, ["a", "b", "c", "d", "e"].map(PathBuf::from));
    }

    #[test]
    fn options_that_read_other_files_are_known() {
        for option in ["--pre-include=a.h", "-include=a.h", "--use-pch=x", " -pch", "@response.txt"] {
            assert!(reads_files(option), "{option}");
        }
        for option in ["-Ia", "--include-path=a", "-DN", "--std=c++17", "-i"] {
            assert!(!reads_files(option), "{option}");
        }
    }

    #[test]
    fn everything_that_the_compiler_reads_is_a_part_of_the_identity() {
        let folder = tempfile::tempdir().unwrap();
        let (library, header) = (folder.path().join("libnvrtc.so"), folder.path().join("n.h"));
        std::fs::write(&library, "1").unwrap();
        let include = folder.path().to_str().unwrap().to_owned();
        let options = Options::new().with("options", format!("-I{include}"));
        let identity = |code: &'static str| {
            let source =
                Source { format: "cuda-c", code: Some(code.as_bytes()), path: "", options: &options };
            of_cuda_c_with(&source, std::slice::from_ref(&library))
        };
        let mut seen = vec![identity("#include \"n.h\"").unwrap()];
        let mut changed = |what: &str| {
            let now = identity("#include \"n.h\"").unwrap();
            assert!(!seen.contains(&now), "{what}");
            seen.push(now);
        };
        std::fs::write(&header, "#define N 4").unwrap();
        changed("a header that was missing");
        std::fs::write(&header, "#define N 5").unwrap();
        changed("a header's content");
        std::fs::write(&library, "12").unwrap();
        changed("the library's size");
        let again = folder.path().join("again");
        std::fs::copy(&library, &again).unwrap();
        std::fs::rename(&again, &library).unwrap();
        changed("the library's inode");
        assert_eq!(identity("#include NAME").unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn code_with_options_that_read_other_files_has_no_identity() {
        let options = Options::new().with("options", "--pre-include=a.h");
        let source = Source { format: "cuda-c", code: Some(b""), path: "", options: &options };
        let error = of_cuda_c_with(&source, &[]).unwrap_err();
        assert!(error.message().contains("--pre-include"), "{error}");
    }
}
