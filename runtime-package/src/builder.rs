//! Writes packages: compiles kernel files for targets.

#![allow(unsafe_code, reason = "names native code that is compiled, not run")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use runtime_core::backend::{OptionSpec, did_you_mean, open_regular_file};
use runtime_core::cache::AtomicFile;
use runtime_core::code::Compiled;
use runtime_core::{CodeFormat, Error, ErrorKind, ModuleSource, Options, Result, Runtime};

use crate::archive;
use crate::choose::with_options;
use crate::manifest::{
    CodeFile, Fallback, MANIFEST, MAX_FILE_BYTES, Manifest, PackagedCode, PackagedKernel, in_archive,
};
use crate::package::{is_portable, sha256};
use crate::target::{CompileTarget, typed};

/// A kernel file to package.
#[derive(Clone, Debug)]
pub struct KernelFile {
    /// Its name in the package.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The format of its code.
    pub format: CodeFormat,
    /// Load options, such as `constant` and `element` of portable code.
    pub options: Options,
}

impl KernelFile {
    /// A file, with the format of its extension and the name of its stem.
    ///
    /// # Errors
    /// `InvalidArgument` for a path without an extension.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        match CodeFormat::from_path(&path) {
            Some(format) => Self::of_format(path, format),
            None => Err(Error::invalid(format!(
                "{}: the format is unknown, because the name has no extension; give the format",
                path.display()
            ))),
        }
    }

    /// A file of this format, with the name of its stem.
    ///
    /// # Errors
    /// `InvalidArgument` for a path that names no file.
    pub fn of_format(path: impl Into<PathBuf>, format: CodeFormat) -> Result<Self> {
        let path = path.into();
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = stem.ok_or_else(|| Error::invalid(format!("{} is no file", path.display())))?;
        Ok(Self { name, path, format, options: Options::new() })
    }

    /// The code with its options and those of a target, in the types that the target's backend declares.
    fn source(&self, target: &Options, specs: &[OptionSpec]) -> ModuleSource {
        let source = match is_portable(&self.format) {
            true => ModuleSource::wgsl_file(&self.path),
            // SAFETY: the code is compiled, and never loaded.
            false => unsafe { ModuleSource::native_file(self.format.clone(), &self.path) },
        };
        let source = with_options(source, &typed(&self.options, specs));
        with_options(source, &typed(target, specs))
    }

    fn read(&self) -> Result<Vec<u8>> {
        let mut code = Vec::new();
        let mut read = || open_regular_file(&self.path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut code);
        read().map_err(|error| {
            let message = format!("cannot read {}: {error}", self.path.display());
            Error::new(ErrorKind::Io, message).with_source(error)
        })?;
        Ok(code)
    }
}

/// Collects compiled code, and writes it as a package.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = runtime_core::Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("sums.null");
/// # std::fs::write(&path, "add_f32\nscale_f32")?;
/// use runtime_package::{KernelFile, Package, PackageBuilder};
///
/// let mut builder = PackageBuilder::new("my program 1.0");
/// builder.add(KernelFile::new(path)?)?;
/// builder.compile(&runtime, "sums", "null:null")?;
/// let package = Package::from_bytes(builder.to_bytes()?)?;
/// assert_eq!(package.kernels()[0].entries, ["add_f32", "scale_f32"]);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct PackageBuilder {
    manifest: Manifest,
    kernels: Vec<KernelFile>,
    /// The content of each file of the archive.
    contents: Vec<(String, Vec<u8>)>,
}

impl PackageBuilder {
    /// An empty package of a program, which is named with its version.
    #[must_use]
    pub fn new(program: &str) -> Self {
        Self { manifest: Manifest::new(program), kernels: Vec::new(), contents: Vec::new() }
    }

    /// Adds a kernel file, with its code as the fallback.
    ///
    /// # Errors
    /// `Io` if it cannot be read; `InvalidArgument` for a name that the package has already.
    pub fn add(&mut self, kernel: KernelFile) -> Result<()> {
        let code = kernel.read()?;
        self.add_without_fallback(kernel)?;
        let KernelFile { name, format, options, .. } = &self.kernels[self.kernels.len() - 1];
        let path = format!("{}/source", in_archive(name));
        let file = store(&mut self.contents, &path, format.clone(), code, options.clone())?;
        if let Some(packaged) = self.manifest.kernels.last_mut() {
            packaged.fallback = Some(Fallback { file });
        }
        Ok(())
    }

    /// Adds a kernel file without a fallback: only devices load it that its native code fits.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that the package has already.
    pub fn add_without_fallback(&mut self, kernel: KernelFile) -> Result<()> {
        if self.kernels.iter().any(|other| other.name == kernel.name) {
            return Err(Error::invalid(format!(
                "two kernel files are named \"{}\"; rename one of them, or make two packages",
                kernel.name
            )));
        }
        self.manifest.kernels.push(PackagedKernel {
            name: kernel.name.clone(),
            entries: Vec::new(),
            codes: Vec::new(),
            fallback: None,
        });
        self.kernels.push(kernel);
        Ok(())
    }

    /// Compiles a kernel file for a target, such as `cuda:sm_90`, or `cuda:sm_90,registers=128` with load options for this target
    /// alone, and adds the native code. No device is needed.
    ///
    /// # Errors
    /// `NotFound` for an unknown kernel, target or architecture; `Unavailable` without the compiler; `CompileFailed` with
    /// the complete log; `InvalidArgument` for options, or if the package has code for the target.
    pub fn compile(&mut self, runtime: &Runtime, kernel: &str, target: &str) -> Result<&PackagedCode> {
        self.compile_for(runtime, kernel, &target.parse()?)
    }

    /// Compiles a kernel file for a target with its options, as [`PackageBuilder::compile`] does.
    ///
    /// # Errors
    /// As [`PackageBuilder::compile`].
    pub fn compile_for(
        &mut self,
        runtime: &Runtime,
        kernel: &str,
        target: &CompileTarget,
    ) -> Result<&PackagedCode> {
        let CompileTarget { name: target, options } = target;
        let names: Vec<_> = self.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let at = names.iter().position(|name| *name == kernel).ok_or_else(|| {
            let message = format!("no kernel file \"{kernel}\" was added; {}", did_you_mean(kernel, &names));
            Error::new(ErrorKind::NotFound, message)
        })?;
        if self.manifest.kernels[at].codes.iter().any(|code| code.target == *target) {
            return Err(Error::invalid(format!("the package has code of \"{kernel}\" for {target} already")));
        }
        let arch = runtime.architecture(target)?.arch;
        let started = Instant::now();
        let compiled = runtime.compile(target, &self.kernels[at].source(options, &specs(runtime, target)))?;
        let compile_ms = Some((started.elapsed().as_secs_f64() * 1e6).round() / 1e3);
        let code = self.packaged(kernel, target, compiled)?;
        let packaged = &mut self.manifest.kernels[at];
        for (entry, _) in code.entries() {
            if !packaged.entries.iter().any(|known| known == entry) {
                packaged.entries.push(entry.to_owned());
            }
        }
        packaged.codes.push(PackagedCode { arch, compile_ms, compiled_with: options.clone(), ..code });
        Ok(&packaged.codes[packaged.codes.len() - 1])
    }

    fn packaged(&mut self, kernel: &str, target: &str, compiled: Compiled) -> Result<PackagedCode> {
        let Compiled { native, lowered } = compiled;
        let path = format!("{}/{}", in_archive(kernel), in_archive(target));
        let file = store(&mut self.contents, &path, native.format, native.code, native.options)?;
        Ok(PackagedCode {
            target: target.to_owned(),
            arch: None,
            file,
            compiled_with: Options::new(),
            lowered,
            resources: native.kernels,
            log: native.log,
            compile_ms: None,
        })
    }

    /// What the package holds so far.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The package.
    ///
    /// # Errors
    /// `InvalidArgument` for what a package cannot hold.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let manifest = self.manifest.to_json()?;
        let contents = self.contents.iter().map(|(name, content)| (name.as_str(), content.as_slice()));
        archive::write(std::iter::once((MANIFEST, manifest.as_bytes())).chain(contents))
    }

    /// Writes the package to a file, which is replaced as a whole.
    ///
    /// # Errors
    /// `Io`; as [`PackageBuilder::to_bytes`].
    pub fn write(&self, path: &Path) -> Result<()> {
        let package = self.to_bytes()?;
        let write = || AtomicFile::new(path)?.replace(&[&package]);
        write().map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot write {}: {error}", path.display())).with_source(error)
        })
    }
}

/// The options that the backend of a target declares.
fn specs(runtime: &Runtime, target: &str) -> Vec<OptionSpec> {
    let backend = target.split(':').next().unwrap_or_default();
    runtime.options(backend).unwrap_or_default()
}

/// Adds a file to the archive, by a name that it does not have yet.
fn store(
    contents: &mut Vec<(String, Vec<u8>)>,
    path: &str,
    format: CodeFormat,
    code: Vec<u8>,
    options: Options,
) -> Result<CodeFile> {
    let bytes = code.len() as u64;
    if bytes > MAX_FILE_BYTES {
        return Err(Error::invalid(format!("{path} has {bytes} bytes; the most are {MAX_FILE_BYTES}")));
    }
    let extension = in_archive(format.extension());
    let is_taken = |name: &String| contents.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let numbered = |number: u32| match number {
        1 => format!("{path}.{extension}"),
        _ => format!("{path}-{number}.{extension}"),
    };
    let name = (1..).map(numbered).find(|name| !is_taken(name)).unwrap_or_default();
    let file = CodeFile { format, name: name.clone(), bytes, sha256: sha256(&code), options };
    contents.push((name, code));
    Ok(file)
}
