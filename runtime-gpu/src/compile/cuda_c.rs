//! CUDA C: where its includes are, and its compilation by NVRTC.

use std::path::{Path, PathBuf};

use runtime_core::backend::Source;
use runtime_core::code::CompiledCode;
use runtime_core::{Options, Result};

use super::nvrtc::{CompileRequest, DeviceCode, Nvrtc};
use super::{ptxas_log, registers};
use crate::formats::REGISTERS;

/// Name of code without a file.
const UNNAMED: &str = "kernel.cu";

/// What to compile for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// A device of this compute capability, `major * 10 + minor`.
    Device(u32),
    /// An architecture by name.
    Architecture(&'a str),
}

/// The options of a CUDA C source, with its folders.
#[derive(Debug)]
pub(crate) struct CudaSource<'a> {
    name: &'a str,
    /// The architecture that the options name.
    pub(crate) arch: Option<&'a str>,
    /// Folders of included files, the source's own last.
    pub(crate) include: Vec<String>,
    /// Where NVRTC looks for the files that the source itself includes in quotes.
    pub(crate) own_folder: PathBuf,
    /// Options of NVRTC.
    pub(crate) options: Vec<&'a str>,
}

impl<'a> CudaSource<'a> {
    pub(crate) fn new(source: &Source<'a>) -> Self {
        let options: &'a Options = source.options;
        let path: &'a str = source.path;
        let folder = Path::new(path).parent().map(Path::to_path_buf).filter(|_| !path.is_empty());
        let given = options.texts("include").filter(|include| !include.is_empty());
        let include = given.map(|include| folder.clone().unwrap_or_default().join(include));
        let own = folder
            .clone()
            .map(|folder| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder });
        Self {
            name: if path.is_empty() { UNNAMED } else { path },
            arch: options.text("arch").filter(|arch| !arch.is_empty()),
            include: include.chain(own.clone()).map(|folder| folder.to_string_lossy().into_owned()).collect(),
            own_folder: own.unwrap_or_else(|| PathBuf::from(".")),
            options: options.texts("options").filter(|option| !option.is_empty()).collect(),
        }
    }
}

/// The options of NVRTC for a debugger.
fn debug_flags(options: &Options) -> &'static [&'static str] {
    if options.flag("debug") { &["--device-debug", "--generate-line-info"] } else { &[] }
}

/// Compiles CUDA C: to a cubin, or to PTX for a virtual architecture or a device newer than NVRTC.
///
/// # Errors
/// `Unavailable` without NVRTC; `CompileFailed` or `OutOfResources` with the whole log; `InvalidArgument` for an option.
pub(crate) fn compile(source: &Source<'_>, text: &[u8], target: Target<'_>) -> Result<CompiledCode> {
    let cuda = CudaSource::new(source);
    let limit = registers::parse(source.options)?.map(|registers| format!("--maxrregcount={registers}"));
    let (arch, compute) = match target {
        Target::Device(compute) => (cuda.arch, compute),
        Target::Architecture(name) => (Some(name), 0),
    };
    let (code, log) = Nvrtc::load()?.compile(&CompileRequest {
        text,
        name: cuda.name,
        arch,
        compute,
        include: cuda.include,
        options: debug_flags(source.options)
            .iter()
            .copied()
            .chain(limit.as_deref())
            .chain(cuda.options)
            .collect(),
        with_figures: true,
    })?;
    let mut options = Options::new();
    let (format, code) = match code {
        DeviceCode::Cubin(code) => ("cubin", code),
        DeviceCode::Ptx(code) => {
            // The driver allocates the registers of PTX.
            if let Some(limit) = source.options.value(REGISTERS) {
                options.push(REGISTERS, limit.clone());
            }
            ("ptx", code)
        }
    };
    Ok(CompiledCode {
        format: format.into(),
        code,
        kernels: ptxas_log::kernels(&log),
        log: ptxas_log::messages(&log),
        options,
    })
}
