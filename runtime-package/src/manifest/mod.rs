//! The manifest of a package: what is in it. `docs/packages.md` documents every field.

mod file_name;
mod kernel_facts;
mod options;

use std::collections::HashSet;

use runtime_core::code::KernelInfo;
use runtime_core::lowering::LoweredKernel;
use runtime_core::{CodeFormat, Error, ErrorKind, Options, Result};
use serde::{Deserialize, Serialize};

pub(crate) use file_name::{in_archive, is_safe};

/// Name of the manifest's file.
pub(crate) const MANIFEST: &str = "manifest.json";
/// What the field `schema` holds.
const SCHEMA: &str = "rtpkg";
/// The version that this program writes, and the newest that it reads.
const VERSION: u32 = 1;
/// The most bytes of a code file.
pub(crate) const MAX_FILE_BYTES: u64 = 256 << 20;
/// The most bytes of a manifest.
pub(crate) const MAX_BYTES: u64 = 16 << 20;
/// The most characters of the name of an entry point: names of C++ are long.
const MAX_ENTRY_CHARS: usize = 4096;
/// The most bytes of all code files.
const MAX_TOTAL_BYTES: u64 = 4 << 30;
/// The most characters of a name or target.
const MAX_NAME_CHARS: usize = 200;

/// What a package holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// `rtpkg`.
    schema: String,
    /// Version of the schema.
    version: u32,
    /// The program that wrote it, with its version.
    pub program: String,
    /// The kernel files.
    pub kernels: Vec<PackagedKernel>,
}

/// A kernel file, compiled for several targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackagedKernel {
    /// Its name; unique in the package.
    pub name: String,
    /// The entry points, as far as they are known.
    #[serde(default)]
    pub entries: Vec<String>,
    /// The native code. Of code that fits a device equally well, the first is taken.
    #[serde(default)]
    pub codes: Vec<PackagedCode>,
    /// The code that a device compiles when no native code fits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
}

/// Native code for one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PackagedCode {
    /// Target and architecture, such as `cuda:sm_90`.
    pub target: String,
    /// The architecture in the terms of [`DeviceInfo::arch`](runtime_core::DeviceInfo::arch), if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arch: Option<String>,
    /// Format and content.
    #[serde(flatten)]
    pub file: CodeFile,
    /// The options that it was compiled with for this target alone. Those that loading needs are among the options of the file.
    #[serde(default, with = "options", skip_serializing_if = "Options::is_empty")]
    pub compiled_with: Options,
    /// The entry points of the portable code that it was compiled from.
    #[serde(default, with = "kernel_facts::lowered", skip_serializing_if = "Option::is_none")]
    pub lowered: Option<Vec<LoweredKernel>>,
    /// What the compiler reports of each entry point of the native code.
    #[serde(default, with = "kernel_facts::infos", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<(String, KernelInfo)>,
    /// The compiler's messages.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
    /// How long it took to compile, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_ms: Option<f64>,
}

/// Code that every device compiles that accepts its format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fallback {
    /// Format and content.
    #[serde(flatten)]
    pub file: CodeFile,
}

/// A file of the archive, and how it is loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeFile {
    /// The format of the code.
    #[serde(with = "options::format")]
    pub format: CodeFormat,
    /// Name in the archive.
    #[serde(rename = "file")]
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the content, in lowercase hexadecimal.
    pub sha256: String,
    /// Load options.
    #[serde(default, with = "options", skip_serializing_if = "Options::is_empty")]
    pub options: Options,
}

impl Manifest {
    pub(crate) fn new(program: &str) -> Self {
        Self { schema: SCHEMA.to_owned(), version: VERSION, program: program.to_owned(), kernels: Vec::new() }
    }

    /// Reads a manifest, and checks it.
    ///
    /// # Errors
    /// `Unsupported` for a newer version; `InvalidArgument` for anything that is wrong in it.
    pub(crate) fn parse(text: &[u8]) -> Result<Self> {
        /// What every version of a manifest has.
        #[derive(Deserialize)]
        struct Version {
            schema: String,
            version: u32,
        }
        let invalid = |error: serde_json::Error| {
            // It may quote the manifest, and terminals interpret control characters.
            let error = error.to_string().replace(char::is_control, "?");
            Error::invalid(format!("{MANIFEST}: {error}"))
        };
        let Version { schema, version } = serde_json::from_slice(text).map_err(invalid)?;
        if schema != SCHEMA {
            return Err(Error::invalid(format!("{MANIFEST}: the schema is {schema:?}, not \"{SCHEMA}\"")));
        }
        if version > VERSION {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "{MANIFEST} has version {version}, and this program reads versions up to {VERSION}: update it, or make the \
                     package with an older program"
                ),
            ));
        }
        let manifest: Self = serde_json::from_slice(text).map_err(invalid)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// The text of the manifest, which [`Manifest::parse`] accepts.
    ///
    /// # Errors
    /// `InvalidArgument` for what a manifest cannot hold.
    pub(crate) fn to_json(&self) -> Result<String> {
        self.check()?;
        let invalid = |error: serde_json::Error| Error::invalid(format!("{MANIFEST}: {error}"));
        let text = serde_json::to_string_pretty(self).map_err(invalid)? + "\n";
        match text.len() as u64 {
            0..=MAX_BYTES => Ok(text),
            bytes => Err(Error::invalid(format!("{MANIFEST} has {bytes} bytes; the most are {MAX_BYTES}"))),
        }
    }

    fn check(&self) -> Result<()> {
        let (mut names, mut files, mut bytes) = (HashSet::new(), HashSet::new(), 0u64);
        for kernel in &self.kernels {
            check_name("kernel", &kernel.name, MAX_NAME_CHARS)?;
            kernel.entries.iter().try_for_each(|entry| check_name("entry point", entry, MAX_ENTRY_CHARS))?;
            kernel.codes.iter().try_for_each(|code| check_name("target", &code.target, MAX_NAME_CHARS))?;
            if !names.insert(&kernel.name) {
                return Err(Error::invalid(format!("there are two kernels \"{}\"", kernel.name)));
            }
            for file in kernel.files() {
                file.check()?;
                // Some file systems do not tell letters of different case apart.
                if !files.insert(file.name.to_ascii_lowercase()) {
                    return Err(Error::invalid(format!(
                        "two kernels or targets have the file \"{}\"",
                        file.name
                    )));
                }
                bytes = bytes.saturating_add(file.bytes);
            }
        }
        match bytes {
            0..=MAX_TOTAL_BYTES => Ok(()),
            _ => Err(Error::invalid(format!("the files have {bytes} bytes; the most are {MAX_TOTAL_BYTES}"))),
        }
    }
}

impl PackagedKernel {
    /// All its files.
    pub fn files(&self) -> impl Iterator<Item = &CodeFile> {
        self.codes.iter().map(|code| &code.file).chain(self.fallback.iter().map(|fallback| &fallback.file))
    }
}

impl PackagedCode {
    /// The entry points, as far as they are known, by the names that they are launched by, with what the compiler reports.
    #[must_use]
    pub fn entries(&self) -> Vec<(&str, Option<&KernelInfo>)> {
        let Some(lowered) = &self.lowered else {
            return self.resources.iter().map(|(name, info)| (name.as_str(), Some(info))).collect();
        };
        let report =
            |symbol: &String| self.resources.iter().find(|(name, _)| name == symbol).map(|(_, info)| info);
        lowered.iter().map(|kernel| (kernel.name.as_str(), report(&kernel.symbol))).collect()
    }
}

impl CodeFile {
    fn check(&self) -> Result<()> {
        check_name("format", self.format.as_str(), MAX_NAME_CHARS)?;
        if !is_safe(&self.name) {
            return Err(Error::invalid(format!("the file name {:?} is not allowed", self.name)));
        }
        if self.bytes > MAX_FILE_BYTES {
            return Err(Error::invalid(format!(
                "file \"{}\" has {} bytes; the most are {MAX_FILE_BYTES}",
                self.name, self.bytes
            )));
        }
        let is_hash =
            |text: &str| text.len() == 64 && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
        if !is_hash(&self.sha256) {
            return Err(Error::invalid(format!("file \"{}\" has no valid SHA-256", self.name)));
        }
        Ok(())
    }
}

/// Checks a text that is shown to users, and that terminals may interpret.
fn check_name(what: &str, name: &str, most_chars: usize) -> Result<()> {
    if name.is_empty() || name.chars().count() > most_chars || name.chars().any(char::is_control) {
        return Err(Error::invalid(format!(
            "the {what} {name:?} is not allowed; use 1 to {most_chars} printable characters"
        )));
    }
    Ok(())
}
