//! The on-disk cache of compiled code.
//!
//! The name of an entry is a digest of everything that the compiler's output depends on: the code, the load options, the
//! compiler's executable, the processor, and the environment variables that compilers read. The file is the shared object
//! followed by a digest of its bytes, which detects damage. An error here never fails a load.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use runtime_core::AtomicFile;
use runtime_core::backend::{Level, Log, Source, cache_folder};
use sha2::{Digest, Sha256};

use crate::{platform, toolchain};

/// Size of the digest at the end of the file.
const DIGEST_BYTES: usize = 32;
/// Maximum number of entries; beyond it the oldest are removed.
const ENTRIES: usize = 1024;
/// Environment variables that compilers read.
const ENVIRONMENT: [&str; 7] = [
    "CC",
    "COMPILER_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "GCC_EXEC_PREFIX",
    "LIBRARY_PATH",
    "SOURCE_DATE_EPOCH",
];

/// The cache entry of one module, whether it exists or not.
#[derive(Debug)]
pub(crate) struct Entry {
    path: PathBuf,
    log: Log,
}

impl Entry {
    /// The entry of `source` in the user's cache folder; `None` if there is no code, compiler or folder.
    pub(crate) fn of(source: &Source<'_>, log: Log) -> Option<Self> {
        Some(Self { path: cache_folder("host")?.join(name(source)?), log })
    }

    /// The shared object, if it exists and is intact.
    pub(crate) fn find(&self) -> Option<PathBuf> {
        let file = fs::read(&self.path).ok()?;
        let whole = file
            .split_last_chunk::<DIGEST_BYTES>()
            .is_some_and(|(code, stored)| Sha256::digest(code)[..] == *stored);
        if !whole {
            self.warn("is damaged; compiling again");
        }
        whole.then(|| self.path.clone())
    }

    /// Stores a copy of `library`.
    pub(crate) fn store(&self, library: &Path) {
        if let Err(error) = self.try_store(library) {
            self.warn(&format!("cannot be written: {error}; the code will be compiled again next time"));
        }
    }

    fn try_store(&self, library: &Path) -> std::io::Result<()> {
        let code = fs::read(library)?;
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        make_room(folder)?;
        AtomicFile::new(&self.path)?.replace(&[&code, &Sha256::digest(&code)])
    }

    fn warn(&self, what: &str) {
        self.log.write(Level::Warning, "host::cache", &format!("\"{}\" {what}", self.path.display()));
    }
}

/// The name of the entry of `source`; `None` if there is no code or compiler.
fn name(source: &Source<'_>) -> Option<String> {
    let (code, compiler) = (source.code?, toolchain::identity(source.options)?);
    Some(digest(source, code, &compiler, &platform::processor(), std::env::var_os))
}

/// The name of the entry for `code` compiled by `compiler` on a processor, with these environment variables.
fn digest(
    source: &Source<'_>,
    code: &[u8],
    compiler: &str,
    processor: &str,
    variable: impl Fn(&'static str) -> Option<OsString>,
) -> String {
    let mut digest = Sha256::new();
    let mut add = |part: &[u8]| {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    };
    add(concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).as_bytes());
    add(code);
    add(source.path.as_bytes());
    source.options.iter().for_each(|(key, value)| add(format!("{key}={value}").as_bytes()));
    add(compiler.as_bytes());
    add(processor.as_bytes());
    for name in ENVIRONMENT {
        add(variable(name).unwrap_or_default().as_encoded_bytes());
    }
    let text: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    text + ".so"
}

/// Removes the oldest entries when there are too many.
fn make_room(folder: &Path) -> std::io::Result<()> {
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        Some((entry.metadata().and_then(|metadata| metadata.modified()).ok()?, entry.path()))
    };
    let mut entries: Vec<_> = fs::read_dir(folder)?.filter_map(entry).collect();
    if entries.len() < ENTRIES {
        return Ok(());
    }
    entries.sort();
    // Another process may have removed one.
    entries[..entries.len() - ENTRIES / 2].iter().for_each(|(_, path)| drop(fs::remove_file(path)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use runtime_core::Options;

    use super::*;

    fn entry(code: &str, options: &Options) -> String {
        name(&Source { format: "c", path: "", code: Some(code.as_bytes()), options }).unwrap()
    }

    #[test]
    fn every_input_of_the_compiler_changes_the_entry() {
        let plain = Options::new();
        let first = entry("int a;", &plain);
        assert_eq!(first, entry("int a;", &plain));
        assert_ne!(first, entry("int b;", &plain));
        assert_ne!(first, entry("int a;", &Options::new().with("flags", "-O1")));
        assert_ne!(first, entry("int a;", &Options::new().with("compiler", "cc -g")));
        assert_ne!(entry("x", &Options::new().with("a", "b")), entry("xa=b", &Options::new()));
        let nobody = Options::new().with("compiler", "no-such-compiler");
        assert_eq!(name(&Source { format: "c", path: "", code: Some(b"x"), options: &nobody }), None);
    }

    #[test]
    fn compiler_processor_and_environment_change_the_entry() {
        let options = Options::new();
        let source = Source { format: "c", path: "", code: Some(b"int a;"), options: &options };
        let of = |compiler: &str, processor: &str, set: Option<&'static str>| {
            let variable = |name: &'static str| (set == Some(name)).then(|| OsString::from("value"));
            digest(&source, b"int a;", compiler, processor, variable)
        };
        let mut names = vec![of("cc", "x", None), of("gcc", "x", None), of("cc", "y", None)];
        names.extend(ENVIRONMENT.iter().map(|set| of("cc", "x", Some(set))));
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{names:?}");
        // The values of this process are used.
        let compiler = toolchain::identity(&options).unwrap();
        let own = digest(&source, b"int a;", &compiler, &platform::processor(), std::env::var_os);
        assert_eq!(name(&source), Some(own));
        assert!(!platform::processor().is_empty() && !compiler.is_empty());
    }

    #[test]
    fn a_damaged_entry_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("library.so");
        fs::write(&library, "code").unwrap();
        let entry = Entry { path: folder.path().join("entry.so"), log: Log::silent() };
        assert_eq!(entry.find(), None, "not there");
        entry.store(&library);
        assert_eq!(entry.find(), Some(entry.path.clone()));
        let mut file = fs::read(&entry.path).unwrap();
        file.pop();
        fs::write(&entry.path, &file).unwrap();
        assert_eq!(entry.find(), None, "cut off");
        fs::write(&entry.path, "").unwrap();
        assert_eq!(entry.find(), None, "empty");
    }

    #[test]
    fn the_oldest_entries_are_removed_when_there_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        for index in 0..ENTRIES {
            fs::write(folder.path().join(format!("{index}.so")), "").unwrap();
        }
        make_room(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), ENTRIES / 2);
    }
}
