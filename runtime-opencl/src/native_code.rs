//! Compiles code to the driver's binaries without loading it: what the result depends on, and how a binary fits a device.

use std::ffi::CString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runtime_core::backend::{Kernel as _, Source, included_files};
use runtime_core::code::{CompiledCode, Fit, KernelInfo};
use runtime_core::{CodeFormat, Error, ErrorKind, Options, Result};

use crate::built_program::BuiltProgram;
use crate::context::SharedContext;
use crate::device_state::DeviceState;
use crate::driver::Raw;
use crate::kernel::{self, OpenClKernel};
use crate::offline::{self, spills};
use crate::{formats, program, registers, signature};

/// Beginnings of the environment variables that drivers read, of Intel's driver for processors, its compiler
/// and its driver for GPUs, Oclgrind, PoCL and Mesa. All count: which ones change the compiled code is written nowhere.
const VARIABLES: [&str; 7] =
    ["CL_CONFIG_", "IGC_", "NEO", "OCLGRIND_", "OverrideDefault", "POCL_", "RUSTICL_"];
/// Set, it makes Intel's driver for GPUs read variables of any name.
const ANY_VARIABLE: &str = "NEOReadDebugKeys";
/// Compiler options that read no file, each with whatever follows in the word. A value in the next word is a macro's or a
/// folder's.
const HARMLESS: [&str; 9] = ["-D", "-I", "-O", "-W", "-cl-", "-g", "-w", "-x", "-ze-"];

/// Compiles `source` to a binary of the driver.
///
/// # Errors
/// `Unsupported` for a binary, and if the driver gives none out; otherwise as [`BuiltProgram::new`].
pub(crate) fn compile(shared: &Arc<DeviceState>, device: Raw, source: &Source<'_>) -> Result<CompiledCode> {
    offline::check_not_given(source.options)?;
    if source.format == "opencl-binary" {
        return Err(Error::unsupported("a binary is compiled already; load it as it is"));
    }
    let program = Arc::new(BuiltProgram::new(shared, device, source)?);
    let log = program.log();
    let kernels = kernels(&program, &spills::kernels(&log));
    Ok(CompiledCode {
        format: CodeFormat::OPENCL_BINARY,
        code: program.binary()?,
        log,
        options: options_of_binary(source.options, &signatures(&program))?,
        kernels,
    })
}

/// What the driver reports of the kernels, with the figures in the compiler's log.
fn kernels(program: &Arc<BuiltProgram>, logged: &[(String, KernelInfo)]) -> Vec<(String, KernelInfo)> {
    let info = |name: String| {
        // A kernel that no launch can run is refused when it is looked up.
        let kernel = OpenClKernel::find(program, CString::new(name.as_str()).ok()?).ok()?;
        let mut info = kernel.info();
        if let Some((_, logged)) = logged.iter().find(|(known, _)| *known == name) {
            info.registers = info.registers.or(logged.registers);
            info.spilled_bytes = info.spilled_bytes.or(logged.spilled_bytes);
        }
        Some((name, info))
    };
    program.symbols().into_iter().filter_map(info).collect()
}

/// The signatures of the kernels that the driver reports, as text.
fn signatures(program: &BuiltProgram) -> Vec<String> {
    let text = |name: String| {
        let params = kernel::reported_signature(program, &CString::new(name.as_str()).ok()?)?;
        Some(signature::to_text(&name, &params))
    };
    program.symbols().into_iter().filter_map(text).collect()
}

/// The options with which a binary is loaded: some drivers compile on from it, and some lose the parameters of its kernels.
fn options_of_binary(options: &Options, signatures: &[String]) -> Result<Options> {
    let mut kept = Options::new();
    options.texts("build_options").for_each(|words| kept.push("build_options", words));
    if let Some(flag) = registers::named(options)? {
        kept.push("build_options", flag);
    }
    signatures.iter().for_each(|text| kept.push("parameters", text.as_str()));
    if let Some(path) = options.text("save_binary") {
        kept.push("save_binary", path);
    }
    Ok(kept)
}

/// What identifies everything outside `source` that a binary depends on.
///
/// # Errors
/// `Unsupported` for a binary, and for code that may read unknown files; `Io`.
pub(crate) fn identity(context: &SharedContext, source: &Source<'_>) -> Result<String> {
    if source.format == "opencl-binary" {
        return Err(Error::unsupported("a binary is compiled already"));
    }
    if std::env::var_os(ANY_VARIABLE).is_some() {
        return Err(Error::unsupported(format!("code is not kept while {ANY_VARIABLE} is set")));
    }
    let (listed, quirks) = (&context.listed, &context.quirks);
    let mut identity =
        format!("{} {} {:?}\n", listed.identity.platform, listed.platform_version, quirks.build_options);
    let variables = std::env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), value));
    let mut variables: Vec<_> = variables.filter(|(name, _)| is_read_by_drivers(name)).collect();
    variables.sort();
    for (name, value) in variables {
        // Writing to a string cannot fail.
        let _ = writeln!(identity, "{name}={value:?}");
    }
    identity.push_str(&included(source)?);
    Ok(identity)
}

fn is_read_by_drivers(name: &str) -> bool {
    VARIABLES.iter().any(|start| name.starts_with(start))
}

/// The state of the files that `source` includes.
fn included(source: &Source<'_>) -> Result<String> {
    let mut folders = program::include_folders(source);
    folders.extend(option_folders(source.options)?);
    if source.format != "opencl-c" {
        return Ok(String::new());
    }
    // PoCL also looks in the current folder.
    folders.push(PathBuf::from("."));
    let code = source.bytes()?;
    let own = (!source.path.is_empty()).then(|| Path::new(source.path).parent()).flatten();
    let files = std::str::from_utf8(&code).ok().and_then(|text| included_files(text, own, &folders));
    files.ok_or_else(|| Error::unsupported("code of which the included files are not known is not kept"))
}

/// The folders of `-I` in the option `build_options`.
///
/// # Errors
/// `Unsupported` for an option that may read a file.
fn option_folders(options: &Options) -> Result<Vec<PathBuf>> {
    let mut words = options.texts("build_options").flat_map(str::split_whitespace);
    let mut folders = Vec::new();
    while let Some(word) = words.next() {
        if word.contains(['"', '\'']) || !HARMLESS.iter().any(|start| word.starts_with(start)) {
            let message = format!("build option \"{word}\" may read files, so the compiled code is not kept");
            return Err(Error::unsupported(message));
        }
        match (word, word.strip_prefix("-I")) {
            ("-I", _) => folders.extend(words.next().map(PathBuf::from)),
            (_, Some(folder)) => folders.push(PathBuf::from(folder)),
            ("-D" | "-x", _) => drop(words.next()),
            _ => {}
        }
    }
    Ok(folders)
}

/// How `code` fits a device of the context. Builds nothing: only the driver's check of a binary's header counts.
///
/// # Errors
/// `Io`; the driver's own error.
pub(crate) fn fits(context: &SharedContext, device: Raw, code: &Source<'_>) -> Result<Fit> {
    context.check_alive()?;
    if !formats::of_device(&context.caps).iter().any(|format| format.as_str() == code.format) {
        return Ok(Fit::Unsupported);
    }
    if code.format != "opencl-binary" {
        return Ok(Fit::Recompile);
    }
    let bytes = code.bytes()?;
    if bytes.is_empty() {
        return Ok(Fit::Unsupported);
    }
    match program::create_with_binary(context, device, &bytes) {
        // PoCL's binaries name PoCL's version, LLVM's and the processor.
        Ok(_) if context.listed.identity.platform == "Portable Computing Language" => Ok(Fit::Optimal),
        Ok(_) => Ok(Fit::Recompile),
        Err(error) if error.kind() == ErrorKind::CompileFailed => Ok(Fit::Unsupported),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_options_that_may_read_files_are_refused() {
        let folders = |words: &str| option_folders(&Options::new().with("build_options", words));
        for words in ["", "-cl-std=CL3.0 -D N=4 -DM -w -Werror -cl-intel-256-GRF-per-thread -x spir -spir"] {
            let refused = words.contains("-spir");
            assert_eq!(folders(words).is_err(), refused, "{words}");
        }
        assert_eq!(folders("-Ia -I b -D -I -Ic").unwrap(), ["a", "b", "c"].map(PathBuf::from));
        for words in ["-include a.h", "-s a.cl", "@a", "a.cl", "-I \"a b\"", "-igc_opts 'x'"] {
            assert_eq!(folders(words).unwrap_err().kind(), ErrorKind::Unsupported, "{words}");
        }
    }

    #[test]
    fn variables_of_drivers_count() {
        for name in [
            "POCL_WORK_GROUP_METHOD",
            "IGC_ForceOCLSIMDWidth",
            "CL_CONFIG_CPU_TARGET_ARCH",
            "NEOReadDebugKeys",
        ] {
            assert!(is_read_by_drivers(name), "{name}");
        }
        assert!(!is_read_by_drivers("HOME") && !is_read_by_drivers("CC"));
    }

    #[test]
    fn a_binary_is_loaded_with_the_options_of_its_code() {
        let options = Options::new()
            .with("build_options", "-DN=4")
            .with("include", "folder")
            .with("registers", "256")
            .with("save_binary", "k.bin");
        let kept = options_of_binary(&options, &["f\t0".to_owned()]).unwrap();
        let words: Vec<_> = kept.texts("build_options").collect();
        assert_eq!(words, ["-DN=4", "-cl-intel-256-GRF-per-thread"]);
        assert_eq!((kept.text("save_binary"), kept.iter().count()), (Some("k.bin"), 4));
        assert_eq!(kept.text("parameters"), Some("f\t0"));
    }
}
