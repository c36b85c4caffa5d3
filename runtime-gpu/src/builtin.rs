//! The backend's own kernels: an empty one, and fills for patterns that the driver's memset calls do not support.

#![allow(unsafe_code, reason = "loads and launches through the driver")]

use std::ffi::{CStr, CString, c_void};
use std::sync::Arc;

use runtime_core::{Error, ErrorKind, Result};

use crate::compile::compute_capability;
use crate::context::PrimaryContext;
use crate::driver::abi::{DevicePtr, Function, Stream};
use crate::module::LoadedModule;

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
    module: LoadedModule,
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
        let module = LoadedModule::from_ptx(primary, &ptx(compute_capability(primary))?)?;
        let kernel = |name: &CStr| {
            let missing = || Error::new(ErrorKind::Internal, "the backend's own PTX lacks a kernel");
            module.function(name)?.ok_or_else(missing)
        };
        let (empty, fill_words) = (kernel(c"empty")?, kernel(c"fill_words")?);
        Ok(Self { empty, fill_words, fill_bytes: kernel(c"fill_bytes")?, module })
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
        let code =
            unsafe { self.module.primary.driver.launch(self.empty, [[1; 3]; 2], 0, stream, none, none) };
        self.module.primary.check("cuLaunchKernel", code)
    }

    /// Submits a fill.
    pub(crate) fn launch_fill(&self, stream: Stream, fill: &FillLaunch) -> Result<()> {
        let none = std::ptr::null_mut();
        let code = fill.with_params(|arguments| {
            // SAFETY: function and stream are alive and of one context; both kernels take these four arguments, and the
            // range lies within a buffer.
            unsafe {
                self.module.primary.driver.launch(fill.function, fill.shape(), 0, stream, arguments, none)
            }
        });
        self.module.primary.check("cuLaunchKernel", code)
    }
}

/// The PTX for a device of compute capability `major * 10 + minor`.
fn ptx(compute: u32) -> Result<CString> {
    let target = if compute >= PTX_TARGETS[1] { PTX_TARGETS[1] } else { PTX_TARGETS[0] };
    CString::new(format!(".version {PTX_VERSION}\n.target sm_{target}\n{PTX}"))
        .map_err(|_| Error::new(ErrorKind::Internal, "the backend's own PTX contains a zero byte"))
}
