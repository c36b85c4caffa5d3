//! For build scripts: compiles kernels ahead of time, into a package that the program includes.
//!
//! In `build.rs`:
//!
//! ```no_run
//! runtime_build::package("kernels/add.wgsl").target("cuda:sm_90").target("host:x86-64-v3").build();
//! ```
//!
//! and in the program, with the crate `runtime-package`:
//!
//! ```ignore
//! static KERNELS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/add.rtpkg"));
//!
//! let package = Package::from_bytes(KERNELS)?;
//! // SAFETY: this program's build script made the package.
//! let (module, choice) = unsafe { package.load(&*device, "add") }?;
//! ```
//!
//! Targets whose compiler or backend is missing are left out with a warning, and devices compile the source instead, so that
//! the program builds everywhere. [`Build::required`] makes them errors. Code that does not compile always is one.
//! No device is needed.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![allow(clippy::print_stdout, reason = "build scripts talk to Cargo on standard output")]

use std::env;
use std::path::{Path, PathBuf};

use runtime_core::{DType, Error, ErrorKind, OptionValue, Options, Result, Runtime};
use runtime_package::{CompileTarget, KernelFile, PackageBuilder};

/// Variables that decide which backends are found.
const VARIABLES: [&str; 2] = ["RUNTIME_BACKENDS", "RUNTIME_BACKEND_PATH"];

/// Packages a kernel file, relative to the folder of `Cargo.toml`. The package is named after the file.
pub fn package(path: impl Into<PathBuf>) -> Build {
    let path = path.into();
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Build {
        name,
        files: vec![path],
        targets: Vec::new(),
        inputs: Vec::new(),
        options: Vec::new(),
        required: false,
        fallback: true,
        runtime: None,
    }
}

/// A package to build.
#[derive(Debug)]
#[must_use = "nothing is built without `build`"]
pub struct Build {
    name: String,
    files: Vec<PathBuf>,
    targets: Vec<Result<CompileTarget>>,
    inputs: Vec<PathBuf>,
    options: Vec<(String, OptionValue)>,
    required: bool,
    fallback: bool,
    runtime: Option<Runtime>,
}

impl Build {
    /// Adds another kernel file.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.files.push(path.into());
        self
    }

    /// Adds a target: a backend and an architecture, such as `cuda:sm_90`; with load options for it alone as
    /// `cuda:sm_90,registers=128`.
    pub fn target(mut self, target: &str) -> Self {
        self.targets.push(target.parse());
        self
    }

    /// Adds a target with load options for it alone, whose values may contain commas.
    pub fn target_with(mut self, target: &str, options: Options) -> Self {
        self.targets.push(Ok(CompileTarget { name: target.to_owned(), options }));
        self
    }

    /// Names a file that kernels include: when it changes, they are compiled again.
    pub fn includes(mut self, path: impl Into<PathBuf>) -> Self {
        self.inputs.push(path.into());
        self
    }

    /// Names the package: `NAME.rtpkg` in Cargo's `OUT_DIR`.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Adds a load option, for all files and targets.
    pub fn option(mut self, key: &str, value: impl Into<OptionValue>) -> Self {
        self.options.push((key.to_owned(), value.into()));
        self
    }

    /// Sets an `override` constant of portable kernels.
    pub fn constant(self, name: &str, value: impl std::fmt::Display) -> Self {
        self.option("constant", format!("{name}={value}"))
    }

    /// Sets the element type of portable kernels.
    pub fn element(self, dtype: DType) -> Self {
        self.option("element", dtype.to_string())
    }

    /// Whether a missing compiler or backend is an error instead of a warning.
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Whether the source is part of the package, for devices that no native code fits (default: yes).
    pub fn fallback(mut self, fallback: bool) -> Self {
        self.fallback = fallback;
        self
    }

    /// Sets the runtime whose backends compile, such as those that the build script links. By default those that
    /// [`Runtime::new`] finds, with the lowering of WGSL.
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Builds the package. A failure ends the build script, with the reason. Returns the package's path.
    ///
    /// # Panics
    /// As [`Build::try_build`] returns errors.
    #[allow(clippy::panic, reason = "how build scripts fail")]
    pub fn build(self) -> PathBuf {
        self.try_build().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Builds the package, and tells Cargo what it depends on. Returns the package's path.
    ///
    /// # Errors
    /// `CompileFailed` with the complete log; `NotFound` for an unknown architecture; `Unavailable` outside a build script, or for a
    /// missing compiler that is required; `Io`.
    pub fn try_build(self) -> Result<PathBuf> {
        let folder = |name: &str| {
            env::var_os(name).map(PathBuf::from).ok_or_else(|| {
                Error::new(
                    ErrorKind::Unavailable,
                    format!("{name} is not set: call this from a build script"),
                )
            })
        };
        let (root, out) = (folder("CARGO_MANIFEST_DIR")?, folder("OUT_DIR")?);
        let (path, messages) = self.build_in(&root, &out)?;
        messages.iter().for_each(|message| println!("{message}"));
        Ok(path)
    }

    /// Builds the package. Returns its path, and what to tell Cargo.
    fn build_in(&self, root: &Path, out: &Path) -> Result<(PathBuf, Vec<String>)> {
        let inputs = self.files.iter().chain(&self.inputs);
        let mut messages: Vec<String> =
            inputs.map(|path| format!("cargo:rerun-if-changed={}", root.join(path).display())).collect();
        messages.extend(VARIABLES.map(|name| format!("cargo:rerun-if-env-changed={name}")));

        let mut builder = PackageBuilder::new(concat!("runtime-build ", env!("CARGO_PKG_VERSION")));
        self.files.iter().try_for_each(|path| self.add(&mut builder, &root.join(path)))?;
        let runtime = self
            .runtime
            .clone()
            .unwrap_or_else(|| Runtime::builder().with_lowering(runtime_kernel::wgsl()).build());
        messages.extend(self.compile(&mut builder, &runtime)?);
        let path = out.join(format!("{}.rtpkg", self.name));
        builder.write(&path)?;
        Ok((path, messages))
    }

    fn add(&self, builder: &mut PackageBuilder, path: &Path) -> Result<()> {
        let mut kernel = KernelFile::new(path)?;
        for (key, value) in &self.options {
            kernel.options.push(key, value.clone());
        }
        if self.fallback { builder.add(kernel) } else { builder.add_without_fallback(kernel) }
    }

    /// Compiles each file for each target. Returns warnings.
    fn compile(&self, builder: &mut PackageBuilder, runtime: &Runtime) -> Result<Vec<String>> {
        let kernels: Vec<String> =
            builder.manifest().kernels.iter().map(|kernel| kernel.name.clone()).collect();
        let mut warnings = Vec::new();
        for kernel in &kernels {
            for target in &self.targets {
                let target = target.as_ref().map_err(Clone::clone)?;
                let Err(error) = builder.compile_for(runtime, kernel, target) else { continue };
                if self.required || !is_missing(&error, runtime, &target.name) {
                    return Err(error.with_note(format!("in \"{kernel}\" for {target}")));
                }
                let message = error.to_string().replace('\n', " ");
                warnings.push(format!("cargo:warning=\"{kernel}\" has no code for {target}: {message}"));
            }
        }
        Ok(warnings)
    }
}

/// Whether the backend of a target, or its compiler, is missing on this machine.
fn is_missing(error: &Error, runtime: &Runtime, target: &str) -> bool {
    let backend = target.split(':').next().unwrap_or_default();
    match error.kind() {
        ErrorKind::Unavailable => true,
        // An unknown architecture of a backend that is there is a mistake.
        ErrorKind::NotFound => !runtime.targets().iter().any(|known| known.name == backend),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use runtime_package::Package;

    use super::*;

    fn runtime() -> Runtime {
        Runtime::builder().discover(false).register(runtime_null::backend()).build()
    }

    /// Builds in a folder with the kernels `good.null` and `bad.null`.
    fn build(build: Build) -> (tempfile::TempDir, Result<(PathBuf, Vec<String>)>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("good.null"), "noop\nadd_f32").unwrap();
        std::fs::write(folder.path().join("bad.null"), "no such builtin").unwrap();
        let built = build.runtime(runtime()).build_in(folder.path(), folder.path());
        (folder, built)
    }

    #[test]
    fn cargo_is_told_what_the_package_depends_on() {
        let (folder, built) =
            build(package("good.null").target("null:null").includes("good.h").name("kernels"));
        let (path, messages) = built.unwrap();
        assert_eq!(path, folder.path().join("kernels.rtpkg"));
        let root = folder.path().display();
        let expected = [
            format!("cargo:rerun-if-changed={root}/good.null"),
            format!("cargo:rerun-if-changed={root}/good.h"),
            "cargo:rerun-if-env-changed=RUNTIME_BACKENDS".to_owned(),
            "cargo:rerun-if-env-changed=RUNTIME_BACKEND_PATH".to_owned(),
        ];
        assert_eq!(messages, expected);
        let package = Package::open(path).unwrap();
        assert_eq!(package.kernels()[0].entries, ["noop", "add_f32"]);
        assert_eq!(package.verify().unwrap(), 2);
    }

    #[test]
    fn a_missing_backend_is_a_warning_unless_it_is_required() {
        let wanted = || package("good.null").target("null:null").target("absent:any");
        let (_folder, built) = build(wanted());
        let (path, messages) = built.unwrap();
        assert!(
            messages[3].starts_with("cargo:warning=\"good\" has no code for absent:any: "),
            "{messages:?}"
        );
        assert!(!messages[3].contains('\n'));
        assert_eq!(Package::open(path).unwrap().kernels()[0].codes.len(), 1);
        let (_folder, built) = build(wanted().required(true));
        let error = built.unwrap_err();
        assert!(error.message().contains("in \"good\" for absent:any"), "{error}");
    }

    #[test]
    fn mistakes_are_errors() {
        for (wanted, kind) in [
            (package("bad.null").target("null:null"), ErrorKind::CompileFailed),
            (package("good.null").target("null:other"), ErrorKind::NotFound),
            (package("missing.null").target("null:null"), ErrorKind::Io),
            (package("good.null").file("good.null"), ErrorKind::InvalidArgument),
            (package("good.null").target("null:null").option("suffix", "x"), ErrorKind::InvalidArgument),
        ] {
            let (_folder, built) = build(wanted);
            assert_eq!(built.unwrap_err().kind(), kind);
        }
    }

    #[test]
    fn a_target_has_options_of_its_own() {
        for wanted in [
            package("good.null").target("null:null,prefix=own_"),
            package("good.null").target_with("null:null", Options::new().with("prefix", "own_")),
        ] {
            let (_folder, built) = build(wanted.option("prefix", "file_"));
            let package = Package::open(built.unwrap().0).unwrap();
            assert_eq!(package.kernels()[0].entries, ["own_noop", "own_add_f32"]);
        }
        let (_folder, built) = build(package("good.null").target("null:null,prefix"));
        assert_eq!(built.unwrap_err().kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn the_source_can_be_left_out() {
        let (_folder, built) = build(package("good.null").target("null:null").fallback(false));
        let (path, _) = built.unwrap();
        assert_eq!(Package::open(path).unwrap().kernels()[0].fallback, None);
    }

    #[test]
    fn outside_a_build_script_it_says_so() {
        let error = package("good.null").runtime(runtime()).try_build().unwrap_err();
        assert!(error.message().contains("OUT_DIR is not set: call this from a build script"), "{error}");
    }
}
