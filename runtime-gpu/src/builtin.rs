//! The kernels of the backend itself: one that does nothing, and fills that the driver has no call for.

#![allow(unsafe_code, reason = "loads and launches through the driver")]

use std::ffi::{CString, c_void};

use runtime_core::{Error, ErrorKind, Result};

use crate::context::Primary;
use crate::driver::Driver;
use crate::driver::abi::{Address, Function, Module, Stream, device_attribute};

/// Without version and target, which depend on the device.
const CODE: &str = include_str!("builtin.ptx");
/// The version that has all targets below, and that every driver takes.
const VERSION: &str = "6.3";
/// Targets: the newest drivers may not know the old one any more, nor old devices the new one.
const TARGETS: [u32; 2] = [52, 75];
/// Work-items of a group of a fill.
const GROUP: u32 = 256;
/// Most groups of a fill: each item stores several times.
const MOST_GROUPS: u64 = 2048;

/// The loaded kernels.
#[derive(Debug)]
pub(crate) struct Builtins {
    module: Module,
    pub(crate) empty: Function,
    words: Function,
    bytes: Function,
}

/// A fill by a kernel: what to launch, with how many groups, on what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillLaunch {
    pub(crate) function: Function,
    pub(crate) groups: u32,
    pub(crate) arguments: [u64; 4],
}

impl FillLaunch {
    /// Work-items of a group.
    pub(crate) const GROUP_SIZE: u32 = GROUP;

    /// Runs `launch` with the arguments in the driver's form.
    pub(crate) fn with<R>(&self, launch: impl FnOnce(*const *const c_void) -> R) -> R {
        let pointers: [*const c_void; 4] =
            std::array::from_fn(|index| (&raw const self.arguments[index]).cast());
        launch(pointers.as_ptr())
    }
}

impl Builtins {
    pub(crate) fn load(primary: &Primary) -> Result<Self> {
        let _current = primary.enter()?;
        let driver = primary.driver;
        let figure = |key| driver.attribute(primary.ordinal, key);
        let text = code(figure(device_attribute::MAJOR) * 10 + figure(device_attribute::MINOR))?;
        let mut module = Module::NULL;
        let none = std::ptr::null_mut();
        // SAFETY: the text is terminated, there are no options, and the context is current.
        let code = unsafe {
            (driver.cuModuleLoadDataEx)(&raw mut module, text.as_ptr().cast(), 0, none, std::ptr::null_mut())
        };
        primary.check("cuModuleLoadDataEx", code)?;
        let mut builtins =
            Self { module, empty: Function::NULL, words: Function::NULL, bytes: Function::NULL };
        let wanted = [
            (&mut builtins.empty, c"empty"),
            (&mut builtins.words, c"fill_words"),
            (&mut builtins.bytes, c"fill_bytes"),
        ];
        for (function, name) in wanted {
            // SAFETY: the module is loaded, the name terminated, and the out-parameter writable.
            let code = unsafe { (driver.cuModuleGetFunction)(function, module, name.as_ptr()) };
            primary.check("cuModuleGetFunction", code)?;
        }
        Ok(builtins)
    }

    /// A fill of `bytes` bytes with a pattern of 16.
    pub(crate) fn fill(&self, at: Address, bytes: u64, pattern: [u8; 16]) -> FillLaunch {
        let word = |half: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&pattern[half..half + 8]);
            u64::from_le_bytes(word)
        };
        let aligned = at.is_multiple_of(8) && bytes.is_multiple_of(8);
        let (function, count) = if aligned { (self.words, bytes / 8) } else { (self.bytes, bytes) };
        let groups = count.div_ceil(u64::from(GROUP)).clamp(1, MOST_GROUPS);
        FillLaunch {
            function,
            groups: u32::try_from(groups).unwrap_or(1),
            arguments: [at, count, word(0), word(8)],
        }
    }

    /// Submits the kernel that does nothing.
    pub(crate) fn launch_empty(&self, primary: &Primary, stream: Stream) -> Result<()> {
        let none = std::ptr::null();
        // SAFETY: function and stream are alive and of one context, and the kernel takes nothing.
        let code =
            unsafe { (primary.driver.cuLaunchKernel)(self.empty, 1, 1, 1, 1, 1, 1, 0, stream, none, none) };
        primary.check("cuLaunchKernel", code)
    }

    /// Submits a fill.
    pub(crate) fn launch_fill(&self, primary: &Primary, stream: Stream, fill: &FillLaunch) -> Result<()> {
        let (groups, size, none) = (fill.groups, GROUP, std::ptr::null());
        let code = fill.with(|arguments| {
            // SAFETY: function and stream are alive and of one context; both kernels take these four arguments, and the
            // range lies within a buffer.
            unsafe {
                (primary.driver.cuLaunchKernel)(
                    fill.function,
                    groups,
                    1,
                    1,
                    size,
                    1,
                    1,
                    0,
                    stream,
                    arguments,
                    none,
                )
            }
        });
        primary.check("cuLaunchKernel", code)
    }

    /// Unloads the kernels. The context is current.
    pub(crate) fn unload(&self, driver: &Driver) {
        // SAFETY: loaded once, and used by nobody any more.
        let _ = unsafe { (driver.cuModuleUnload)(self.module) };
    }
}

/// The code for a device of this version, as `major * 10 + minor`.
fn code(compute: u32) -> Result<CString> {
    let target = if compute >= TARGETS[1] { TARGETS[1] } else { TARGETS[0] };
    CString::new(format!(".version {VERSION}\n.target sm_{target}\n{CODE}"))
        .map_err(|_| Error::new(ErrorKind::Internal, "the backend's own PTX has a zero byte in it"))
}
