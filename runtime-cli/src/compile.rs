//! `runtime compile`: compiles kernels for targets, without their devices, into a package.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use runtime_core::{CodeFormat, Error, OptionValue, Options, Result, Runtime};
use runtime_kernel::Specialisation;
use runtime_package::{CompileTarget, KernelFile, PackageBuilder};

use crate::arguments::parse_option;
use crate::output::{self, Destination};
use crate::output_paths;
use crate::package::content_table;
use crate::registry;

#[derive(Debug, Args)]
pub(crate) struct CompileArguments {
    /// Kernel files; the extension tells the format
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// What to compile for: a backend and an architecture, such as `cuda:sm_90`, or a backend for its default; with load options
    /// for it alone as `cuda:sm_90,registers=128`; may be repeated
    #[arg(long = "target", value_name = "TARGET:ARCHITECTURE", required = true)]
    targets: Vec<CompileTarget>,
    /// The package to write
    #[arg(short, long, value_name = "FILE.rtpkg")]
    output: PathBuf,
    /// The format of the files, such as `cuda-c`, in place of their extensions
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// A load option, for all files and targets; may be repeated
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = parse_option)]
    options: Vec<(String, OptionValue)>,
    /// Value of an `override` constant of portable kernels, by name or `@id`; may be repeated
    #[arg(long = "constant", value_name = "NAME=VALUE", value_parser = Specialisation::parse_constant)]
    constants: Vec<(String, String)>,
    /// Element type that replaces f32 in `alias T = f32;` of portable kernels, or in the alias of that name; may be repeated
    #[arg(long = "element", value_name = "[NAME=]DTYPE")]
    elements: Vec<String>,
    /// Leave the source out: devices that no native code fits cannot load the package
    #[arg(long)]
    no_fallback: bool,
    /// Leave out targets that fail, instead of writing nothing
    #[arg(long)]
    keep_going: bool,
}

/// Compiles every file for every target, and writes the package.
///
/// # Errors
/// `Io` for a file that cannot be read or written; `InvalidArgument` for files of one name. What fails to compile is printed, and
/// the exit code is 1.
pub(crate) fn compile(arguments: &CompileArguments) -> Result<ExitCode> {
    let path = arguments.output.as_path();
    if path == Path::new("-") {
        return Err(Error::invalid("a package is binary: give a file, as in `-o kernels.rtpkg`"));
    }
    output_paths::check_against(&[("--output", path)], &arguments.files)?;
    let destination = Destination::open(path)?;
    let mut builder = arguments.builder()?;
    let failures = arguments.compile_all(&mut builder, &registry::runtime());
    output::print(&content_table(&builder.manifest().kernels))?;
    for failure in &failures {
        output::print_stderr(failure);
    }
    let is_empty = builder.manifest().kernels.iter().any(|kernel| kernel.files().next().is_none());
    match (failures.is_empty(), arguments.keep_going && !is_empty) {
        (false, false) => {
            let why =
                if is_empty { "a kernel has neither native code nor a fallback" } else { "see --keep-going" };
            output::print_stderr(&format!("{} was not written: {why}", path.display()));
            Ok(ExitCode::FAILURE)
        }
        _ => destination.write(&builder.to_bytes()?).map(|()| ExitCode::SUCCESS),
    }
}

impl CompileArguments {
    fn builder(&self) -> Result<PackageBuilder> {
        let mut builder = PackageBuilder::new(concat!("runtime ", env!("CARGO_PKG_VERSION")));
        for path in &self.files {
            let mut kernel = match &self.format {
                Some(format) => KernelFile::of_format(path, CodeFormat::from(format.as_str()))?,
                None => KernelFile::new(path)?,
            };
            kernel.options = self.load_options();
            match self.no_fallback {
                true => builder.add_without_fallback(kernel)?,
                false => builder.add(kernel)?,
            }
        }
        Ok(builder)
    }

    fn load_options(&self) -> Options {
        let mut options = Options::new();
        for (name, value) in &self.constants {
            options.push("constant", format!("{name}={value}"));
        }
        for element in &self.elements {
            options.push("element", element.as_str());
        }
        for (key, value) in &self.options {
            options.push(key, value.clone());
        }
        options
    }

    /// Compiles every file for every target. Returns what failed, a line for each cause.
    fn compile_all(&self, builder: &mut PackageBuilder, runtime: &Runtime) -> Vec<String> {
        let names: Vec<String> =
            builder.manifest().kernels.iter().map(|kernel| kernel.name.clone()).collect();
        let mut failures = Vec::new();
        for target in &self.targets {
            // Without its compiler, a target fails for all kernels alike.
            if let Err(error) = runtime.architecture(&target.name) {
                failures.push(format!("error: {error}"));
                continue;
            }
            for name in &names {
                if let Err(error) = builder.compile_for(runtime, name, target) {
                    failures.push(format!("error: \"{name}\" for {target}: {error}"));
                }
            }
        }
        failures
    }
}
