//! CUPTI, NVIDIA's profiling library: optional, and loaded when counters are first asked for. It changes nothing in the
//! process until a [`Session`] begins.
//!
//! Return codes are integers, because a newer library may return codes newer than any list.

#![allow(unsafe_code, reason = "binds and calls the functions of a foreign library")]
#![allow(non_snake_case, reason = "the library's own names, so that a search finds them")]

mod host;
mod layouts;
mod range;

use std::ffi::{CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libloading::Library;
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use runtime_core::backend::c_text_at;
use runtime_core::{Error, ErrorKind, Result};

use crate::bind::{FOLDERS, bind, open_first};
use crate::toolkit;

use layouts::Params;

pub(crate) use host::{MetricProperties, MetricType, MetricsHost};
pub(crate) use range::RangeProfiler;

/// The first version with the range profiler is 12.6.
const OLDEST_MAJOR: u32 = 12;

/// `CUptiResult` as a number.
type Code = c_int;

bind! { Code;
/// The functions used; all are in CUDA 12.6.
Functions {
    cuptiGetResultString: fn(Code, *mut *const c_char);
    cuptiProfilerInitialize: fn(*mut layouts::Initialize);
    cuptiProfilerDeInitialize: fn(*mut layouts::Initialize);
    cuptiDeviceGetChipName: fn(*mut layouts::GetChipName);
    cuptiProfilerGetCounterAvailability: fn(*mut layouts::GetCounterAvailability);
    cuptiProfilerHostInitialize: fn(*mut layouts::HostInitialize);
    cuptiProfilerHostDeinitialize: fn(*mut layouts::HostDeinitialize);
    cuptiProfilerHostGetBaseMetrics: fn(*mut layouts::GetBaseMetrics);
    cuptiProfilerHostGetMetricProperties: fn(*mut layouts::GetMetricProperties);
    cuptiProfilerHostConfigAddMetrics: fn(*mut layouts::ConfigAddMetrics);
    cuptiProfilerHostGetConfigImageSize: fn(*mut layouts::GetConfigImageSize);
    cuptiProfilerHostGetConfigImage: fn(*mut layouts::GetConfigImage);
    cuptiProfilerHostGetNumOfPasses: fn(*mut layouts::GetNumOfPasses);
    cuptiProfilerHostEvaluateToGpuValues: fn(*mut layouts::EvaluateToGpuValues);
    cuptiRangeProfilerEnable: fn(*mut layouts::Enable);
    cuptiRangeProfilerDisable: fn(*mut layouts::OfProfiler);
    cuptiRangeProfilerStart: fn(*mut layouts::OfProfiler);
    cuptiRangeProfilerStop: fn(*mut layouts::Stop);
    cuptiRangeProfilerPushRange: fn(*mut layouts::PushRange);
    cuptiRangeProfilerPopRange: fn(*mut layouts::OfProfiler);
    cuptiRangeProfilerDecodeData: fn(*mut layouts::DecodeData);
    cuptiRangeProfilerGetCounterDataSize: fn(*mut layouts::GetCounterDataSize);
    cuptiRangeProfilerCounterDataImageInitialize: fn(*mut layouts::InitializeCounterData);
    cuptiRangeProfilerGetCounterDataInfo: fn(*mut layouts::GetCounterDataInfo);
    cuptiRangeProfilerSetConfig: fn(*mut layouts::SetConfig);
}
}

/// Calls a function of CUPTI with its parameters. The pointers in them must be valid.
macro_rules! call {
    ($cupti:expr, $function:ident, $params:expr) => {{
        let cupti: &$crate::counters::cupti::Cupti = $cupti;
        // SAFETY: the structure has the layout and the size of the function's, and the caller passed valid pointers.
        let code = unsafe { (cupti.functions.$function)(&raw mut $params) };
        cupti.check(stringify!($function), code)
    }};
}
use call;

/// CUPTI's functions. Loaded once per process and never unloaded, because it stays in the driver's callbacks.
#[derive(Debug)]
pub(crate) struct Cupti {
    functions: Functions,
    /// How many sessions there are.
    sessions: Mutex<usize>,
    _library: Library,
}

impl Cupti {
    /// Loads the library, once per process; a failure is tried again. It must not be newer than the driver, which supports
    /// CUDA `driver_major`.
    ///
    /// # Errors
    /// `Unavailable` with the remedy.
    pub(crate) fn load(driver_major: u32) -> Result<&'static Self> {
        static LOADED: OnceCell<Cupti> = OnceCell::new();
        LOADED.get_or_try_init(|| Self::open(driver_major))
    }

    fn open(driver_major: u32) -> Result<Self> {
        let bind = |library: Library, _: &Path| {
            Ok(Self { functions: Functions::bind(&library)?, sessions: Mutex::new(0), _library: library })
        };
        // SAFETY: NVIDIA's profiling library may be loaded at any time, on any thread.
        unsafe { open_first(candidates(driver_major), bind) }.map_err(|reason| {
            unavailable(format!(
                "counters need CUPTI of CUDA 12.6 or newer, up to the driver's CUDA {driver_major}, which could not be loaded \
                 ({reason}); install the CUDA toolkit, or set CUDA_HOME or LD_LIBRARY_PATH"
            ))
        })
    }

    fn check(&self, function: &str, code: Code) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(self.error(function, code)) }
    }

    fn error(&self, function: &str, code: Code) -> Error {
        let mut name = std::ptr::null();
        // SAFETY: the out-parameter is writable; an unknown code returns an error.
        let named = unsafe { (self.functions.cuptiGetResultString)(code, &raw mut name) };
        let name = if named == 0 { text(name) } else { String::new() };
        unavailable(remedy(code).to_owned()).with_driver(name, i64::from(code)).in_operation(function)
    }
}

/// The profiler of CUPTI in use. Outside all sessions it is not in the way of timed work.
#[derive(Debug)]
pub(crate) struct Session {
    cupti: &'static Cupti,
}

impl Session {
    /// Begins a session.
    ///
    /// # Errors
    /// The library's error.
    pub(crate) fn begin(cupti: &'static Cupti) -> Result<Arc<Self>> {
        let mut sessions = cupti.sessions.lock();
        if *sessions == 0 {
            let mut params = layouts::Initialize::new();
            call!(cupti, cuptiProfilerInitialize, params)?;
        }
        *sessions += 1;
        Ok(Arc::new(Self { cupti }))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut sessions = self.cupti.sessions.lock();
        *sessions -= 1;
        if *sessions == 0 {
            let mut params = layouts::Initialize::new();
            let _ = call!(self.cupti, cuptiProfilerDeInitialize, params);
        }
    }
}

/// Never `DeviceLost`, which would end the work of the device: only the CUDA driver decides that.
fn unavailable(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, message)
}

fn remedy(code: Code) -> &'static str {
    match code {
        10 | 11 | 14 => "use the CUPTI of the CUDA version that the driver supports",
        15 => "libnvperf_host.so and libnvperf_target.so must be beside libcupti",
        // INSUFFICIENT_PRIVILEGES, and the same on a virtual GPU.
        35 | 40 => {
            "reading counters is restricted to root: run as root, or load the driver's module with \
             NVreg_RestrictProfilingToAdminUsers=0"
        }
        7 | 26 | 36 | 39 => "another profiler, or another set of counters, uses the device; end it first",
        33 => "enable profiling for this virtual GPU in the hypervisor",
        2 | 27 | 41..=45 => "the profiler does not support this device or its configuration",
        46 => "CUPTI does not know this GPU; install a newer one",
        _ => "check that `ncu` can profile on this machine",
    }
}

/// Where the library may be, in the order of preference.
fn candidates(driver_major: u32) -> Vec<PathBuf> {
    let names: Vec<_> = (OLDEST_MAJOR..=driver_major)
        .rev()
        .map(|major| format!("libcupti.so.{major}"))
        .chain(["libcupti.so".to_owned()])
        .collect();
    let inside = ["extras/CUPTI/lib64", "lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];
    let toolkits = toolkit::folders();
    let folders = toolkits.iter().flat_map(|toolkit| inside.map(|folder| toolkit.join(folder)));
    let folders: Vec<_> = FOLDERS.iter().map(|folder| Path::new(folder).to_owned()).chain(folders).collect();
    folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))).collect()
}

/// A text of the library; empty if it is null.
fn text(text: *const c_char) -> String {
    // SAFETY: terminated, and it lives as long as the library or the object that gave it.
    unsafe { c_text_at(text) }
}

fn pointers(names: &[CString]) -> Vec<*const c_char> {
    names.iter().map(|name| name.as_ptr()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_the_drivers_own_version_comes_first_and_never_a_newer_one() {
        let paths = candidates(13);
        assert_eq!(paths[..3], ["libcupti.so.13", "libcupti.so.12", "libcupti.so"].map(PathBuf::from));
        assert!(paths.iter().all(|path| !path.to_string_lossy().contains("so.14")));
        assert_eq!(candidates(12)[0], Path::new("libcupti.so.12"));
        assert!(paths.iter().any(|path| path.ends_with("extras/CUPTI/lib64/libcupti.so.13")), "{paths:?}");
    }

    #[test]
    fn every_code_has_a_remedy_and_privileges_name_the_drivers_option() {
        assert!(remedy(35).contains("NVreg_RestrictProfilingToAdminUsers=0") && remedy(35).contains("root"));
        assert_eq!(remedy(40), remedy(35));
        assert!([-1, 0, 999, i32::MAX, i32::MIN].iter().all(|code| remedy(*code).contains("ncu")));
    }
}
