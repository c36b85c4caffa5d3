//! The backend's own kernels: an empty one, and fills for patterns that the driver's memset calls do not support.

#![allow(unsafe_code, reason = "loads and launches through the driver")]

use std::ffi::{CString, c_void};
use std::sync::Arc;

use runtime_core::{Error, ErrorKind, Result};

use crate::context::PrimaryContext;
use crate::driver::abi::{CUdevice_attribute, DevicePtr, Function, Module, Stream};

/// The kernels, without `.version` and `.target`, which are chosen for the device.
const PTX: &str = include_str!("builtin.ptx");
/// A PTX version that has both targets and that every supported driver accepts.
const PTX_VERSION: &str = "6.3";
/// Two targets: new drivers may drop the old one, and old devices do not support the new one.
const PTX_TARGETS: [u32; 2] = [52, 75];
/// Work-items per group of a fill.
const FILL_GROUP_SIZE: u32 = 256;
/// Most groups of a fill; beyond that each item stores several times.
const MAX_FILL_GROUPS: u64 = 2048;

/// The loaded kernels.
#[derive(Debug)]
pub(crate) struct Builtins {
    primary: Arc<PrimaryContext>,
    module: Module,
    pub(crate) empty: Function,
    fill_words: Function,
    fill_bytes: Function,
}

/// Launch parameters of a fill kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillLaunch {
    pub(crate) function: Function,
    groups: u32,
    arguments: [u64; 4],
}

impl FillLaunch {
    /// Groups, and work-items of each.
    pub(crate) const fn shape(&self) -> [[u32; 3]; 2] {
        [[self.groups, 1, 1], [FILL_GROUP_SIZE, 1, 1]]
    }

    /// Calls `launch` with pointers to the arguments, which the driver only reads.
    pub(crate) fn with_params<R>(&self, launch: impl FnOnce(*mut *mut c_void) -> R) -> R {
        let mut pointers: [*mut c_void; 4] =
            std::array::from_fn(|index| (&raw const self.arguments[index]).cast_mut().cast());
        launch(pointers.as_mut_ptr())
    }
}

impl Builtins {
    pub(crate) fn load(primary: &Arc<PrimaryContext>) -> Result<Self> {
        let _current = primary.make_current()?;
        let driver = primary.driver;
        let attribute = |key| driver.attribute(primary.ordinal, key);
        let text = ptx(attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10
            + attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))?;
        let module = primary.query("cuModuleLoadDataEx", Module::NULL, |driver, module| {
            let (text, none) = (text.as_ptr().cast(), std::ptr::null_mut());
            // SAFETY: the text is terminated, there are no options, and the context is current.
            unsafe { (driver.cuModuleLoadDataEx)(&raw mut module.0, text, 0, none, std::ptr::null_mut()) }
        })?;
        let (primary, null) = (Arc::clone(primary), Function::NULL);
        // On an error the drop unloads the module.
        let mut builtins = Self { primary, module, empty: null, fill_words: null, fill_bytes: null };
        let kernels = [
            (&mut builtins.empty, c"empty"),
            (&mut builtins.fill_words, c"fill_words"),
            (&mut builtins.fill_bytes, c"fill_bytes"),
        ];
        for (function, name) in kernels {
            // SAFETY: the module is loaded, the name terminated, and the out-parameter writable.
            let code = unsafe { (driver.cuModuleGetFunction)(&raw mut function.0, module.0, name.as_ptr()) };
            builtins.primary.check("cuModuleGetFunction", code)?;
        }
        Ok(builtins)
    }

    /// The launch that fills `bytes` bytes with a pattern of 16 bytes.
    pub(crate) fn fill(&self, at: DevicePtr, bytes: u64, pattern: [u8; 16]) -> FillLaunch {
        let word = |half: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&pattern[half..half + 8]);
            u64::from_le_bytes(word)
        };
        let aligned = at.is_multiple_of(8) && bytes.is_multiple_of(8);
        let (function, count) = if aligned { (self.fill_words, bytes / 8) } else { (self.fill_bytes, bytes) };
        let groups = count.div_ceil(u64::from(FILL_GROUP_SIZE)).clamp(1, MAX_FILL_GROUPS);
        FillLaunch {
            function,
            groups: u32::try_from(groups).unwrap_or(1),
            arguments: [at, count, word(0), word(8)],
        }
    }

    /// Submits the empty kernel.
    pub(crate) fn launch_noop(&self, stream: Stream) -> Result<()> {
        let none = std::ptr::null_mut();
        // SAFETY: function and stream are alive and of one context, and the kernel takes nothing.
        let code = unsafe { self.primary.driver.launch(self.empty, [[1; 3]; 2], 0, stream, none, none) };
        self.primary.check("cuLaunchKernel", code)
    }

    /// Submits a fill.
    pub(crate) fn launch_fill(&self, stream: Stream, fill: &FillLaunch) -> Result<()> {
        let none = std::ptr::null_mut();
        let code = fill.with_params(|arguments| {
            // SAFETY: function and stream are alive and of one context; both kernels take these four arguments, and the
            // range lies within a buffer.
            unsafe { self.primary.driver.launch(fill.function, fill.shape(), 0, stream, arguments, none) }
        });
        self.primary.check("cuLaunchKernel", code)
    }
}

impl Drop for Builtins {
    fn drop(&mut self) {
        if let Ok(_current) = self.primary.make_current() {
            // SAFETY: loaded once, and no longer in use.
            let _ = unsafe { (self.primary.driver.cuModuleUnload)(self.module.0) };
        }
    }
}

/// The PTX for a device of compute capability `major * 10 + minor`.
fn ptx(compute: u32) -> Result<CString> {
    let target = if compute >= PTX_TARGETS[1] { PTX_TARGETS[1] } else { PTX_TARGETS[0] };
    CString::new(format!(".version {PTX_VERSION}\n.target sm_{target}\n{PTX}"))
        .map_err(|_| Error::new(ErrorKind::Internal, "the backend's own PTX contains a zero byte"))
}
