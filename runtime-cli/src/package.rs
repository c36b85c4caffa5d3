//! `runtime package`: what is in a package, whether it is intact, its files, and what a device takes from it.

#![allow(unsafe_code, reason = "loads the native code of a package, for which its user is responsible")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use runtime_core::code::KernelInfo;
use runtime_core::{ErrorKind, Result};
use runtime_package::{
    Choice, CodeFile, CompileTarget, Package, PackagedCode, PackagedKernel, PassedOver, Taken,
};
use serde_json::{Value, json};

use crate::output;
use crate::registry;
use crate::table::Table;

#[derive(Debug, Args)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct PackageArguments {
    #[command(subcommand)]
    action: PackageAction,
}

#[derive(Debug, Subcommand)]
enum PackageAction {
    /// Show the kernels, the targets that they are compiled for, and what the compilers report
    List(FileArguments),
    /// Read everything, and compare it with the checksums; fails if something is damaged
    Verify(FileArguments),
    /// Load every kernel on a device, and tell which code it took and why
    Load {
        #[command(flatten)]
        file: FileArguments,
        /// The device, e.g. cuda:0
        #[arg(long)]
        device: String,
    },
    /// Write the code and the manifest to a folder
    Extract {
        #[command(flatten)]
        file: FileArguments,
        /// The folder: new, or empty [default: the name of the package]
        #[arg(short = 'C', long = "directory", value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct FileArguments {
    /// The package
    #[arg(value_name = "FILE.rtpkg")]
    path: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists, verifies, loads or extracts a package.
///
/// # Errors
/// `Io`; `InvalidArgument` for what is no package. A damaged package is no error of `verify`: it is printed, and the exit
/// code is 1.
pub(crate) fn run(arguments: &PackageArguments) -> Result<ExitCode> {
    match &arguments.action {
        PackageAction::List(file) => list(file).map(|()| ExitCode::SUCCESS),
        PackageAction::Verify(file) => verify(file),
        PackageAction::Load { file, device } => load(file, device).map(|()| ExitCode::SUCCESS),
        PackageAction::Extract { file, folder } => extract(file, folder.clone()).map(|()| ExitCode::SUCCESS),
    }
}

fn list(file: &FileArguments) -> Result<()> {
    let package = Package::open(&file.path)?;
    if file.json {
        return output::print_exact(&format!("{:#}\n", json!(package.manifest())));
    }
    output::print(&content_table(package.kernels()))
}

fn verify(file: &FileArguments) -> Result<ExitCode> {
    let path = file.path.display().to_string();
    let verified = Package::open(&file.path).and_then(|package| package.verify());
    let (text, json, code) = match verified {
        Ok(files) => (
            format!("{path}: {files} files are intact\n"),
            json!({ "path": path, "intact": true, "files": files }),
            ExitCode::SUCCESS,
        ),
        Err(error) if error.kind() == ErrorKind::InvalidArgument => {
            let (message, error) = (format!("{}\n", error.message()), error.message());
            (message, json!({ "path": path, "intact": false, "error": error }), ExitCode::FAILURE)
        }
        Err(error) => return Err(error),
    };
    if file.json { output::print_exact(&format!("{json:#}\n")) } else { output::print(&text) }?;
    Ok(code)
}

fn load(file: &FileArguments, device: &str) -> Result<()> {
    let package = Package::open(&file.path)?;
    let device = registry::runtime().open(device)?;
    let mut choices = Vec::new();
    for kernel in package.kernels() {
        // SAFETY: whoever runs the command trusts the package, as its help says; nothing is launched.
        let (_, choice) = unsafe { package.load(&*device, &kernel.name) }?;
        choices.push((&kernel.name, choice));
    }
    if file.json {
        let choices: Vec<_> = choices.iter().map(|(kernel, choice)| choice_json(kernel, choice)).collect();
        return output::print_exact(&format!("{:#}\n", json!({ "kernels": choices })));
    }
    let text = |(kernel, choice): &(&String, Choice)| {
        let passed_over = |passed: &PassedOver| format!("  not {}: {}\n", passed.target, passed.reason);
        let passed: String = choice.passed_over.iter().map(passed_over).collect();
        format!("{kernel}: {}\n{passed}", choice.why)
    };
    output::print(&choices.iter().map(text).collect::<String>())
}

fn choice_json(kernel: &str, choice: &Choice) -> Value {
    let passed_over =
        |passed: &PassedOver| json!({ "target": passed.target, "reason": passed.reason.to_string() });
    let target = match &choice.taken {
        Taken::Code { target, .. } => Some(target),
        Taken::Fallback(_) => None,
    };
    json!({
        "kernel": kernel,
        "target": target,
        "why": choice.why,
        "passed_over": choice.passed_over.iter().map(passed_over).collect::<Vec<_>>(),
    })
}

fn extract(file: &FileArguments, folder: Option<PathBuf>) -> Result<()> {
    let package = Package::open(&file.path)?;
    let folder = folder.unwrap_or_else(|| file.path.file_stem().unwrap_or_default().into());
    let files: Vec<_> = package.extract(&folder)?.iter().map(|path| path.display().to_string()).collect();
    match file.json {
        true => output::print_exact(&format!("{:#}\n", json!({ "files": files }))),
        false => output::print(&files.iter().map(|file| format!("{file}\n")).collect::<String>()),
    }
}

/// A row for each entry point of each code, and for each fallback.
pub(crate) fn content_table(kernels: &[PackagedKernel]) -> String {
    let mut table =
        Table::new(&["kernel", "entry", "target", "format", "bytes", "registers", "spilled", "ms"]);
    for kernel in kernels {
        let codes = kernel.codes.iter().flat_map(|code| code_rows(&kernel.name, code));
        codes.for_each(|cells| table.row(cells));
        if let Some(fallback) = &kernel.fallback {
            table.row(row([&kernel.name, "", "fallback"], &fallback.file, Default::default()));
        }
    }
    table.to_string()
}

fn code_rows(kernel: &str, code: &PackagedCode) -> Vec<Vec<String>> {
    let ms = code.compile_ms.map(|ms| format!("{ms:.1}")).unwrap_or_default();
    let target = CompileTarget { name: code.target.clone(), options: code.compiled_with.clone() }.to_string();
    let mut entries = code.entries();
    if entries.is_empty() {
        entries.push(("", None));
    }
    let cells = |(entry, info): (&str, Option<&KernelInfo>)| {
        let figure = |of: fn(&KernelInfo) -> Option<u32>| {
            info.and_then(of).map(|figure| figure.to_string()).unwrap_or_default()
        };
        let (registers, spilled) = (figure(|info| info.registers), figure(|info| info.spilled_bytes));
        row([kernel, entry, &target], &code.file, [registers, spilled, ms.clone()])
    };
    entries.into_iter().map(cells).collect()
}

fn row(names: [&str; 3], file: &CodeFile, figures: [String; 3]) -> Vec<String> {
    let file = [file.format.to_string(), file.bytes.to_string()];
    names.map(str::to_owned).into_iter().chain(file).chain(figures).collect()
}
