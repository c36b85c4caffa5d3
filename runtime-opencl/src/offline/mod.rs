//! Code for devices that are not there: OpenCL C and SPIR-V as they are, or compiled by a vendor's offline compiler.

mod command;
pub(crate) mod spills;

use std::path::Path;
use std::time::Duration;

use runtime_core::backend::{OptionSpec, Source, TemporaryFolder, included_files};
use runtime_core::code::CompiledCode;
use runtime_core::device::{Capabilities, Limits};
use runtime_core::{CodeFormat, DeviceInfo, DeviceKind, Error, ErrorKind, Options, Result, abi};

use crate::{debug, program, registers};
use command::Template;

/// The architecture of portable OpenCL C.
const PORTABLE: &str = "c";
/// No kernel takes an offline compiler this long.
const DEADLINE: Duration = Duration::from_secs(600);
/// What every device of the full profile has, and most have more of (OpenCL 3.0, table 5, `CL_DEVICE_LOCAL_MEM_SIZE`).
const SHARED_BYTES: u64 = 32 << 10;
/// Work-items of a group on common devices.
const GROUP_ITEMS: u32 = 1024;

/// The load option.
pub(crate) fn option() -> OptionSpec {
    OptionSpec::module(
        "offline_compiler",
        "",
        "Only without a device: the command that compiles the code, split at spaces, run without a shell. {input} and {output} stand \
         for files, {device} for the architecture, {options} for the build options, which are one argument. For example: ocloc compile \
         -file {input} -spirv_input -device {device} -options {options} -output_no_suffix -output {output}",
    )
}

/// Refuses the option where a device compiles.
///
/// # Errors
/// `InvalidArgument`.
pub(crate) fn check_not_given(options: &Options) -> Result<()> {
    match options.text("offline_compiler") {
        Some(command) if !command.is_empty() => Err(Error::invalid(
            "option \"offline_compiler\" applies only to compiling for an architecture, such as \"opencl:pvc\"; the driver \
             compiles for its device",
        )),
        _ => Ok(()),
    }
}

/// Describes the device that code for an architecture runs on. The names are those of the offline compiler.
pub(crate) fn architecture(name: &str) -> DeviceInfo {
    let name = if name.is_empty() { PORTABLE } else { name };
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, &format!("OpenCL ({name})"));
    info.arch = Some(name.to_owned());
    info.formats = vec![CodeFormat::OPENCL_C, CodeFormat::SPIRV_KERNEL];
    // The device's own compiler, or the offline one, refuses types that the device does not have.
    info.capabilities = Capabilities(abi::CAP_GROUPS | abi::CAP_F16 | abi::CAP_F64);
    info.limits = Limits {
        groups: [u64::from(u32::MAX); 3],
        group_size: [GROUP_ITEMS; 3],
        group_items: GROUP_ITEMS,
        shared_bytes: SHARED_BYTES,
        allocation_bytes: None,
    };
    info
}

/// Compiles code for an architecture: with the option `offline_compiler`, or not at all.
///
/// # Errors
/// `NotFound` for an architecture that only an offline compiler has; `Unsupported` for text that includes files; otherwise as
/// [`Template::run`].
pub(crate) fn compile_for(architecture: &str, source: &Source<'_>) -> Result<CompiledCode> {
    let code = &source.bytes()?;
    if !["opencl-c", "spirv-kernel"].contains(&source.format) {
        let message =
            format!("format \"{}\" is not compiled; pass \"opencl-c\" or \"spirv-kernel\"", source.format);
        return Err(Error::unsupported(message));
    }
    match source.options.text("offline_compiler").filter(|command| !command.trim().is_empty()) {
        Some(command) => compile_offline(command, architecture, code, source),
        None if matches!(architecture, "" | PORTABLE) => as_it_is(code, source),
        None => Err(Error::new(
            ErrorKind::NotFound,
            format!(
                "unknown architecture \"{architecture}\"; the only one is \"{PORTABLE}\", or name a compiler for it in the option \
                 \"offline_compiler\""
            ),
        )),
    }
}

/// Code that every device compiles for itself.
fn as_it_is(code: &[u8], source: &Source<'_>) -> Result<CompiledCode> {
    let text = String::from_utf8_lossy(code);
    let includes = included_files(&text, Some(Path::new("/")), &[]).is_none_or(|files| !files.is_empty());
    if source.format == "opencl-c" && includes {
        let message = "portable OpenCL C cannot include files, which the device's machine may not have; put their text into \
                       the code";
        return Err(Error::unsupported(message));
    }
    let mut options = Options::new();
    let kept =
        source.options.iter().filter(|(key, _)| ["build_options", debug::OPTION, "registers"].contains(key));
    kept.for_each(|(key, value)| options.push(key, value.clone()));
    let (format, code) = (CodeFormat::from(source.format), code.to_vec());
    Ok(CompiledCode { format, code, log: String::new(), options, kernels: Vec::new() })
}

fn compile_offline(command: &str, device: &str, code: &[u8], source: &Source<'_>) -> Result<CompiledCode> {
    let template = Template::parse(command)?;
    let private = TemporaryFolder::new("runtime-opencl-").map_err(|error| {
        let message = format!("cannot make a temporary folder: {error}; set TMPDIR to a writable folder");
        Error::new(ErrorKind::Io, message).with_source(error)
    })?;
    let input = if source.format == "opencl-c" { "input.cl" } else { "input.spv" };
    let command = template.fill(input, device, &build_options(source)?);
    let made = command.run(private.path(), code, DEADLINE)?;
    // The options are compiled in.
    let (options, kernels) = (Options::new(), spills::kernels(&made.log));
    Ok(CompiledCode { format: CodeFormat::OPENCL_BINARY, code: made.code, log: made.log, options, kernels })
}

fn build_options(source: &Source<'_>) -> Result<String> {
    let mut words = Vec::new();
    if source.format == "opencl-c" {
        let absolute = |folder| std::path::absolute(&folder).unwrap_or(folder);
        let folders = program::include_folders(source).into_iter().map(absolute);
        words.extend(folders.map(|folder| program::include_option(&folder.to_string_lossy())));
    }
    words.extend(debug::flags(source).first().map(|&flags| flags.to_owned()));
    words.extend(source.options.texts("build_options").map(str::to_owned));
    words.extend(registers::named(source.options)?.map(str::to_owned));
    words.retain(|word| !word.is_empty());
    Ok(words.join(" "))
}

#[cfg(test)]
mod tests;
