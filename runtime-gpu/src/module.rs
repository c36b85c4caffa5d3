//! Loaded code and its entry points.

#![allow(unsafe_code, reason = "loads code through the driver")]

use std::ffi::{CString, c_int, c_void};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use runtime_core::backend::{Kernel, KernelInfo, Module, Source};
use runtime_core::{Error, ErrorKind, Geometry, Occupancy, OptionSpec, Result, suggest};

use crate::context::Primary;
use crate::driver::abi::{self, Code, Function, device_attribute, function_attribute, jit};
use crate::driver::{Driver, function_name, written};
use crate::image;
use crate::names::NameId;
use crate::nvrtc::{Compiled, Nvrtc, Unit};
use crate::packed::{Parameter, packed_bytes};

/// Accepted formats, preferred first.
pub(crate) const FORMATS: [&str; 4] = ["cubin", "fatbin", "ptx", "cuda-c"];
/// Room for what the driver's compiler says.
const LOG_BYTES: usize = 64 << 10;
/// Dynamic work-group memory that every kernel may use without asking.
const PLAIN_SHARED_BYTES: u32 = 48 << 10;
/// `CUDA_ERROR_INVALID_VALUE`: there is no parameter of that index.
const NO_SUCH_PARAMETER: Code = Code(1);

/// The options of CUDA C.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::module(
            "arch",
            "",
            "Architecture that CUDA C is compiled for, e.g. sm_90a; the device's own if empty.",
        ),
        OptionSpec::module(
            "include",
            "",
            "Folder of header files of CUDA C, relative to the source file's; a list.",
        ),
        OptionSpec::module("options", "", "Option of NVRTC, e.g. --use_fast_math or -DN=4; a list."),
    ]
}

/// A module of the driver.
#[derive(Debug)]
struct Loaded {
    primary: Arc<Primary>,
    handle: abi::Module,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _current = self.primary.enter();
        // SAFETY: loaded once, and no work uses it any more.
        let _ = unsafe { (self.primary.driver.cuModuleUnload)(self.handle) };
    }
}

/// Loaded code.
#[derive(Debug)]
pub struct CudaModule {
    loaded: Arc<Loaded>,
    symbols: Vec<String>,
}

impl CudaModule {
    pub(crate) fn load(primary: &Arc<Primary>, source: &Source<'_>) -> Result<Self> {
        primary.check_alive()?;
        check_options(source)?;
        let code = match source.code {
            Some(code) => code.to_vec(),
            None => read(Path::new(source.path))?,
        };
        let handle = match source.format {
            "cubin" => {
                image::check_cubin(&code)?;
                load_image(primary, &code)?
            }
            "fatbin" => {
                image::check_fatbin(&code)?;
                load_image(primary, &code)?
            }
            "ptx" => load_text(primary, code)?,
            _ => match compile(primary, source, &code)? {
                Compiled::Cubin(code) => load_image(primary, &code)?,
                Compiled::Ptx(code) => load_text(primary, code)?,
            },
        };
        let loaded = Arc::new(Loaded { primary: Arc::clone(primary), handle });
        Ok(Self { symbols: symbols(&loaded)?, loaded })
    }
}

impl Module for CudaModule {
    type Kernel = CudaKernel;

    fn symbols(&self) -> &[String] {
        &self.symbols
    }

    fn kernel(&self, name: &str) -> Result<CudaKernel> {
        let missing = || {
            Error::new(
                ErrorKind::NotFound,
                format!("no kernel \"{name}\" (C++ names are mangled: declare it extern \"C\")"),
            )
        };
        let known = self.symbols.is_empty() || self.symbols.iter().any(|symbol| symbol == name);
        let terminated = CString::new(name).ok().filter(|_| known && !name.is_empty()).ok_or_else(missing)?;
        let primary = &self.loaded.primary;
        let _current = primary.enter()?;
        let mut function = Function::NULL;
        // SAFETY: the module is loaded, the name terminated, and the out-parameter writable.
        let code = unsafe {
            (primary.driver.cuModuleGetFunction)(&raw mut function, self.loaded.handle, terminated.as_ptr())
        };
        if code == Code(500) {
            return Err(missing());
        }
        primary.check("cuModuleGetFunction", code)?;
        Ok(CudaKernel::new(&self.loaded, function, name))
    }
}

/// An entry point.
#[derive(Debug)]
pub struct CudaKernel {
    loaded: Arc<Loaded>,
    pub(crate) function: Function,
    pub(crate) name: NameId,
    /// The parameters, where the driver tells.
    pub(crate) parameters: Option<Box<[Parameter]>>,
    /// Bytes of all of them, if they are passed packed.
    pub(crate) packed_bytes: Option<NonZeroUsize>,
    /// Here too, since a launch needs little else.
    pub(crate) driver: &'static Driver,
    pub(crate) large_clusters: AtomicBool,
    shared_bytes: u32,
    /// Dynamic work-group memory that is allowed by now.
    allowed_shared_bytes: AtomicU32,
}

impl CudaKernel {
    fn new(loaded: &Arc<Loaded>, function: Function, name: &str) -> Self {
        let primary = &loaded.primary;
        let mut kernel = Self {
            loaded: Arc::clone(loaded),
            function,
            name: primary.names.id(name),
            parameters: None,
            packed_bytes: None,
            driver: primary.driver,
            large_clusters: AtomicBool::new(false),
            shared_bytes: 0,
            allowed_shared_bytes: AtomicU32::new(0),
        };
        kernel.shared_bytes = kernel.attribute(function_attribute::SHARED_BYTES).unwrap_or(0);
        *kernel.allowed_shared_bytes.get_mut() = PLAIN_SHARED_BYTES.saturating_sub(kernel.shared_bytes);
        kernel.parameters = kernel.ask_parameters();
        let packed = kernel.parameters.as_deref().and_then(packed_bytes);
        kernel.packed_bytes = packed.and_then(NonZeroUsize::new);
        kernel
    }

    /// The same entry point once more.
    pub(crate) fn share(&self) -> Self {
        Self {
            loaded: Arc::clone(&self.loaded),
            function: self.function,
            name: self.name,
            parameters: self.parameters.clone(),
            packed_bytes: self.packed_bytes,
            driver: self.driver,
            large_clusters: AtomicBool::new(self.large_clusters.load(Ordering::Relaxed)),
            shared_bytes: self.shared_bytes,
            allowed_shared_bytes: AtomicU32::new(self.allowed_shared_bytes.load(Ordering::Relaxed)),
        }
    }

    #[inline]
    pub(crate) fn primary(&self) -> &Arc<Primary> {
        &self.loaded.primary
    }

    fn attribute(&self, attribute: c_int) -> Option<u32> {
        let mut value = 0;
        // SAFETY: the function is of a loaded module, and the out-parameter is writable.
        let code =
            unsafe { (self.primary().driver.cuFuncGetAttribute)(&raw mut value, attribute, self.function) };
        if code.is_success() { u32::try_from(value).ok() } else { None }
    }

    /// An attribute of the device.
    fn device(&self, attribute: c_int) -> u32 {
        self.primary().driver.attribute(self.primary().ordinal, attribute)
    }

    /// Sets an attribute.
    pub(crate) fn set(&self, attribute: c_int, value: u32) -> Result<()> {
        let primary = self.primary();
        let _current = primary.enter()?;
        let value = c_int::try_from(value).unwrap_or(c_int::MAX);
        // SAFETY: the function is of a loaded module of the current context.
        let code = unsafe { (primary.driver.cuFuncSetAttribute)(self.function, attribute, value) };
        primary.check("cuFuncSetAttribute", code)
    }

    /// The parameters, in order.
    fn ask_parameters(&self) -> Option<Box<[Parameter]>> {
        let calls = self.primary().driver.parameters?;
        let mut parameters = Vec::new();
        loop {
            let (mut offset, mut bytes) = (0, 0);
            // SAFETY: the function is of a loaded module, and the out-parameters are writable.
            let code = unsafe {
                (calls.cuFuncGetParamInfo)(self.function, parameters.len(), &raw mut offset, &raw mut bytes)
            };
            match code {
                Code::SUCCESS => parameters.push(Parameter { offset, bytes }),
                NO_SUCH_PARAMETER => return Some(parameters.into_boxed_slice()),
                _ => return None,
            }
        }
    }

    /// Lets the kernel have so much dynamic work-group memory.
    #[inline]
    pub(crate) fn allow_shared(&self, bytes: u64) -> Result<u32> {
        match u32::try_from(bytes) {
            Ok(bytes) if bytes <= self.allowed_shared_bytes.load(Ordering::Relaxed) => Ok(bytes),
            _ => self.allow_more_shared(bytes),
        }
    }

    #[cold]
    fn allow_more_shared(&self, bytes: u64) -> Result<u32> {
        let primary = self.primary();
        let limit = primary.driver.attribute(primary.ordinal, device_attribute::MAX_SHARED_BYTES_OPT_IN);
        let most = limit.max(PLAIN_SHARED_BYTES).saturating_sub(self.shared_bytes);
        let Some(wanted) = u32::try_from(bytes).ok().filter(|&bytes| bytes <= most) else {
            return Err(Error::invalid(format!(
                "{bytes} bytes of dynamic work-group memory; kernel `{}` can have {most}",
                primary.names.text(self.name)
            )));
        };
        self.set(function_attribute::MAX_DYNAMIC_SHARED_BYTES, wanted)?;
        self.allowed_shared_bytes.fetch_max(wanted, Ordering::Relaxed);
        Ok(wanted)
    }

    #[cold]
    pub(crate) fn refused(&self, function: &str, code: Code) -> Error {
        let primary = self.primary();
        let error = primary.fail(function, code);
        if Primary::is_gone(&error) {
            return error;
        }
        error.with_note(format_args!("kernel `{}`", primary.names.text(self.name)))
    }

    #[cold]
    pub(crate) fn mismatch(&self, index: usize, parameter: usize, bytes: usize) -> Error {
        let parameters = self.parameters.as_deref().unwrap_or_default();
        match parameters.get(parameter) {
            Some(wanted) => Error::invalid(format!(
                "argument {index} is of {bytes} bytes; parameter {parameter} of kernel `{}` is of {}",
                self.primary().names.text(self.name),
                wanted.bytes
            )),
            None => self.miscount(parameter + 1),
        }
    }

    #[cold]
    pub(crate) fn miscount(&self, given: usize) -> Error {
        let wanted = self.parameters.as_deref().map_or(0, <[_]>::len);
        Error::invalid(format!(
            "kernel `{}` takes {wanted} parameters, got {given}{}",
            self.primary().names.text(self.name),
            if given > wanted { " or more" } else { "" }
        ))
    }
}

impl Kernel for CudaKernel {
    fn info(&self) -> KernelInfo {
        let Ok(_current) = self.primary().enter() else { return KernelInfo::default() };
        KernelInfo {
            registers: self.attribute(function_attribute::REGISTERS),
            spilled_bytes: self.attribute(function_attribute::LOCAL_BYTES),
            shared_bytes: Some(self.shared_bytes),
            max_group_items: self.attribute(function_attribute::MAX_GROUP_ITEMS),
            binary_version: self.attribute(function_attribute::BINARY_VERSION),
            virtual_version: self.attribute(function_attribute::PTX_VERSION),
            preferred_multiple: Some(self.device(device_attribute::WARP_SIZE)),
            private_bytes: self.attribute(function_attribute::LOCAL_BYTES),
            ..KernelInfo::default()
        }
    }

    fn occupancy(&self, geometry: &Geometry) -> Result<Occupancy> {
        let shared_bytes = self.allow_shared(u64::from(geometry.shared_bytes))?;
        let items = geometry.group_size.iter().product::<u32>();
        let primary = self.primary();
        let _current = primary.enter()?;
        let mut groups = 0;
        // SAFETY: the function is of a loaded module of the current context, and the out-parameter is writable.
        let code = unsafe {
            (primary.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor)(
                &raw mut groups,
                self.function,
                c_int::try_from(items).unwrap_or(c_int::MAX),
                shared_bytes as usize,
            )
        };
        primary.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        let groups = u32::try_from(groups).unwrap_or(0);
        let warp_items = self.device(device_attribute::WARP_SIZE).max(1);
        Ok(Occupancy {
            groups,
            sub_groups: groups.saturating_mul(items.div_ceil(warp_items)),
            max_sub_groups: self.device(device_attribute::MULTIPROCESSOR_ITEMS) / warp_items,
        })
    }
}

/// The format is one of ours, and has the options given.
fn check_options(source: &Source<'_>) -> Result<()> {
    if !FORMATS.contains(&source.format) {
        let message = format!("format \"{}\" on CUDA; {}", source.format, suggest(source.format, &FORMATS));
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    match source.options.iter().next() {
        Some((key, _)) if source.format != "cuda-c" => Err(Error::invalid(format!(
            "option \"{key}\" goes with format \"cuda-c\", not with \"{}\"",
            source.format
        ))),
        _ => Ok(()),
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        let message = format!("\"{}\": {error}; check the path", path.display());
        Error::new(ErrorKind::Io, message).with_source(error)
    })
}

fn compile(primary: &Primary, source: &Source<'_>, text: &[u8]) -> Result<Compiled> {
    let attribute = |attribute| primary.driver.attribute(primary.ordinal, attribute);
    let folder = Path::new(source.path).parent().map(Path::to_path_buf).filter(|_| !source.path.is_empty());
    let given = source.options.texts("include").filter(|include| !include.is_empty());
    let include = given.map(|include| folder.clone().unwrap_or_default().join(include));
    let own =
        folder.clone().map(|folder| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder });
    Nvrtc::load()?.compile(&Unit {
        text,
        name: if source.path.is_empty() { "kernel.cu" } else { source.path },
        arch: source.options.text("arch").filter(|arch| !arch.is_empty()),
        compute: attribute(device_attribute::MAJOR) * 10 + attribute(device_attribute::MINOR),
        include: include.chain(own).map(|folder| folder.to_string_lossy().into_owned()).collect(),
        options: source.options.texts("options").filter(|option| !option.is_empty()).collect(),
    })
}

/// Loads a binary, which was checked to be complete or comes from a compiler.
fn load_image(primary: &Primary, code: &[u8]) -> Result<abi::Module> {
    // Aligned, and with a few zeros behind it.
    let mut words = vec![0_u64; code.len() / 8 + 2];
    for (word, bytes) in words.iter_mut().zip(code.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(whole);
    }
    load(primary, words.as_ptr().cast(), &mut [])
}

/// Loads text, which the driver compiles; what it says is in the error.
fn load_text(primary: &Primary, mut code: Vec<u8>) -> Result<abi::Module> {
    while code.last() == Some(&0) {
        code.pop();
    }
    let text = CString::new(code).map_err(|_| {
        Error::new(
            ErrorKind::CompileFailed,
            "PTX is text, and this has a zero byte in it; name its right format",
        )
    })?;
    load(primary, text.as_ptr().cast(), &mut vec![0; LOG_BYTES])
}

/// Loads code. The driver may wait for running kernels meanwhile, and holds up every other call of the context as long
/// (seen in stacks on an H200, driver 580.159: `cuLaunchKernel` waits for a lock that this call holds).
fn load(primary: &Primary, code: *const c_void, log: &mut [u8]) -> Result<abi::Module> {
    let _current = primary.enter()?;
    let mut module = abi::Module::NULL;
    let mut keys = [jit::ERROR_LOG, jit::ERROR_LOG_BYTES];
    // The driver takes numbers in place of pointers.
    let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
    let count = if log.is_empty() { 0 } else { 2 };
    // SAFETY: the code is complete or terminated, the options are as many as told, and the context is current.
    let status = unsafe {
        (primary.driver.cuModuleLoadDataEx)(
            &raw mut module,
            code,
            count,
            keys.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    if status.is_success() {
        return Ok(module);
    }
    let error = primary.fail("cuModuleLoadDataEx", status);
    match written(log).as_str() {
        "" => Err(error),
        log => Err(error.with_note(log)),
    }
}

/// Names of the entry points, where the driver tells.
fn symbols(loaded: &Loaded) -> Result<Vec<String>> {
    let primary = &loaded.primary;
    let Some(listing) = primary.driver.listing else { return Ok(Vec::new()) };
    let _current = primary.enter()?;
    let mut count = 0;
    // SAFETY: the module is loaded, and the out-parameter is writable.
    let code = unsafe { (listing.cuModuleGetFunctionCount)(&raw mut count, loaded.handle) };
    primary.check("cuModuleGetFunctionCount", code)?;
    let mut functions = vec![Function::NULL; count as usize];
    // SAFETY: the module is loaded, and there is room for as many.
    let code = unsafe { (listing.cuModuleEnumerateFunctions)(functions.as_mut_ptr(), count, loaded.handle) };
    primary.check("cuModuleEnumerateFunctions", code)?;
    let mut names: Vec<_> =
        functions.into_iter().filter_map(|function| function_name(&listing, function)).collect();
    names.sort_unstable();
    Ok(names)
}
