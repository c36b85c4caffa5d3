//! NVML, NVIDIA's management library: optional. Listing devices loads it; the first telemetry call initialises it.
//!
//! The bindings are handwritten: no binding crate covers both CUDA and NVML, and return codes must be integers, not
//! Rust enums, in which a newer code is undefined behaviour.
//!
//! It is never shut down: the process may end at any time, and the driver cleans up. A forked child never calls it, because
//! `cuInit` and core refuse the device first.

#![allow(unsafe_code, reason = "binds and calls the functions of a foreign library")]
#![allow(non_snake_case, reason = "the library's own names, so that a search finds them")]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use libloading::Library;
use parking_lot::Mutex;
use runtime_core::backend::c_text_at;
use runtime_core::device::{Telemetry, ThrottleReasons};
use runtime_core::{Error, ErrorKind, Result, abi};

use crate::bind::open_driver_library;

/// `NVML_CLOCK_SM`.
const CLOCK_SM: c_int = 1;
/// `NVML_CLOCK_MEM`.
const CLOCK_MEMORY: c_int = 2;
/// More processes than share a GPU.
const MAX_PROCESSES: u16 = 1024;
/// `NVML_TEMPERATURE_GPU`.
const TEMPERATURE_GPU: c_int = 0;

/// Each reason of `nvmlDeviceGetCurrentClocksEventReasons` (`nvmlClocksEventReason…`), as the ABI calls it. Idleness is no
/// reason to throttle.
const EVENT_REASONS: [(u64, u64); 8] = [
    (0x2, abi::THROTTLE_CLOCK_LIMIT),       // ApplicationsClocksSetting
    (0x4, abi::THROTTLE_POWER_CAP),         // SwPowerCap
    (0x8, abi::THROTTLE_HARDWARE_SLOWDOWN), // HwSlowdown
    (0x10, abi::THROTTLE_CLOCK_LIMIT),      // SyncBoost
    (0x20, abi::THROTTLE_SOFTWARE_THERMAL), // SwThermalSlowdown
    (0x40, abi::THROTTLE_HARDWARE_THERMAL), // HwThermalSlowdown
    (0x80, abi::THROTTLE_POWER_BRAKE),      // HwPowerBrakeSlowdown
    (0x100, abi::THROTTLE_CLOCK_LIMIT),     // DisplayClockSetting
];

/// `nvmlReturn_t`. Not an enum: a driver may return codes newer than any list.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NvmlReturn(c_int);

/// `nvmlDevice_t`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct NvmlDevice(*mut c_void);

// SAFETY: NVML may be called from any thread, and handles stay valid because it is never shut down.
unsafe impl Send for NvmlDevice {}
// SAFETY: the same holds for several threads at once.
unsafe impl Sync for NvmlDevice {}

/// `nvmlProcessInfo_t` of the second and third version of the functions.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ProcessInfo {
    pid: c_uint,
    used_bytes: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// Lists processes: the count is the room before, and the number of processes after.
type ListProcesses = unsafe extern "C" fn(NvmlDevice, *mut c_uint, *mut ProcessInfo) -> NvmlReturn;

type Describe = unsafe extern "C" fn(NvmlReturn) -> *const c_char;
type FindDevice = unsafe extern "C" fn(*const c_char, *mut NvmlDevice) -> NvmlReturn;
type ReadValue<T> = unsafe extern "C" fn(NvmlDevice, *mut T) -> NvmlReturn;
/// Reads the value that an index selects, such as that of a clock.
type ReadIndexed = unsafe extern "C" fn(NvmlDevice, c_int, *mut c_uint) -> NvmlReturn;

/// The library, loaded once per process and never unloaded. Each call looks its function up: calls are rare, and a driver
/// may lack any of them.
#[derive(Debug)]
pub(crate) struct Nvml {
    library: Library,
    initialised: Mutex<bool>,
}

impl Nvml {
    /// Loads the library, once per process, without initialising it.
    ///
    /// # Errors
    /// `Unsupported`, with reason and remedy, if it is missing or lacks a required function.
    pub(crate) fn load() -> Result<&'static Self> {
        static LOADED: OnceLock<Result<Nvml>> = OnceLock::new();
        LOADED.get_or_init(Self::open).as_ref().map_err(Clone::clone)
    }

    fn open() -> Result<Self> {
        // SAFETY: NVIDIA's management library may be loaded at any time, on any thread.
        let library = unsafe { open_driver_library("libnvidia-ml.so.1") }.map_err(|reason| {
            Error::unsupported(format!(
                "telemetry needs NVML: {reason}; install it with the driver; in a container, set \
                 NVIDIA_DRIVER_CAPABILITIES=compute,utility"
            ))
        })?;
        let nvml = Self { library, initialised: Mutex::new(false) };
        let missing = ["nvmlInit_v2", "nvmlDeviceGetHandleByUUID"].into_iter().find(|name| !nvml.has(name));
        missing.map_or(Ok(nvml), |name| Err(lacks(name)))
    }

    fn has(&self, name: &str) -> bool {
        // SAFETY: the function is not called.
        unsafe { self.library.get::<*const c_void>(name.as_bytes()) }.is_ok()
    }

    /// Calls a function of the library.
    ///
    /// # Safety
    /// `F` is the type of the function `name`.
    ///
    /// # Errors
    /// `Unsupported` if the library lacks it; the library's error.
    unsafe fn call<F: Copy>(&self, name: &str, call: impl FnOnce(F) -> NvmlReturn) -> Result<()> {
        // SAFETY: the caller guarantees the type, and the library stays loaded.
        let function = unsafe { self.library.get::<F>(name.as_bytes()) }.map_err(|_| lacks(name))?;
        match call(*function) {
            NvmlReturn(0) => Ok(()),
            code => Err(self.error(name, code)),
        }
    }

    /// Initialises the library on first use; a failure is tried again next time.
    fn initialise(&self) -> Result<()> {
        let mut initialised = self.initialised.lock();
        if !*initialised {
            let call = |initialise: unsafe extern "C" fn() -> NvmlReturn| {
                // SAFETY: it takes nothing; NVML counts initialisations, so other users in the process are not disturbed.
                unsafe { initialise() }
            };
            // SAFETY: the function's type.
            unsafe { self.call("nvmlInit_v2", call) }?;
            *initialised = true;
        }
        Ok(())
    }

    /// The device with this UUID, a GPU or a MIG instance.
    ///
    /// # Errors
    /// The library's error.
    pub(crate) fn device(&self, uuid: [u8; 16], is_mig_instance: bool) -> Result<NvmlDevice> {
        self.initialise()?;
        let name = CString::new(uuid_name(uuid, is_mig_instance)).unwrap_or_default();
        let mut device = NvmlDevice(std::ptr::null_mut());
        let call = |find: FindDevice| {
            // SAFETY: the name is terminated, the out-parameter is writable, and an unknown name returns an error.
            unsafe { find(name.as_ptr(), &raw mut device) }
        };
        // SAFETY: the function's type.
        unsafe { self.call("nvmlDeviceGetHandleByUUID", call) }?;
        Ok(device)
    }

    /// Current values of a device; `None` for those that the library does not report.
    ///
    /// # Errors
    /// The library's first error if it reports none.
    pub(crate) fn telemetry(&self, device: NvmlDevice) -> Result<Telemetry> {
        let clock_hz = |domain| {
            // SAFETY: the function's type.
            let megahertz = unsafe { self.indexed_value("nvmlDeviceGetClockInfo", device, domain) };
            megahertz.map(|megahertz| u64::from(megahertz) * 1_000_000)
        };
        let (clock, memory_clock) = (clock_hz(CLOCK_SM), clock_hz(CLOCK_MEMORY));
        // SAFETY: the function's type.
        let celsius = unsafe { self.indexed_value("nvmlDeviceGetTemperature", device, TEMPERATURE_GPU) };
        let temperature = celsius.map(|celsius| i64::from(celsius) * 1000);
        // SAFETY: the function's type.
        let milliwatts = unsafe { self.value::<c_uint>("nvmlDeviceGetPowerUsage", device) };
        let power = milliwatts.map(u64::from);
        // Since the driver was loaded.
        // SAFETY: the function's type.
        let millijoules = unsafe { self.value::<u64>("nvmlDeviceGetTotalEnergyConsumption", device) };
        let energy = millijoules.map(|millijoules| millijoules.saturating_mul(1000));
        if let (Err(error), Err(_), Err(_), Err(_), Err(_)) =
            (&clock, &memory_clock, &temperature, &power, &energy)
        {
            return Err(error.clone());
        }
        Ok(Telemetry {
            clock_hz: clock.ok(),
            memory_clock_hz: memory_clock.ok(),
            temperature_millicelsius: temperature.ok(),
            power_milliwatts: power.ok(),
            energy_microjoules: energy.ok(),
        })
    }

    /// The value that a function reads.
    ///
    /// # Safety
    /// The function `name` has the type [`ReadValue<T>`].
    unsafe fn value<T: Default>(&self, name: &str, device: NvmlDevice) -> Result<T> {
        let mut value = T::default();
        // SAFETY: the device is a handle of the initialised library, and the out-parameter is writable.
        let call = |read: ReadValue<T>| unsafe { read(device, &raw mut value) };
        // SAFETY: guaranteed by the caller.
        unsafe { self.call(name, call) }?;
        Ok(value)
    }

    /// The value that a function reads at an index.
    ///
    /// # Safety
    /// The function `name` has the type [`ReadIndexed`].
    unsafe fn indexed_value(&self, name: &str, device: NvmlDevice, index: c_int) -> Result<c_uint> {
        let mut value = 0;
        // SAFETY: the device is a handle of the initialised library, and the out-parameter is writable.
        let call = |read: ReadIndexed| unsafe { read(device, index, &raw mut value) };
        // SAFETY: guaranteed by the caller.
        unsafe { self.call(name, call) }?;
        Ok(value)
    }

    /// Why the device runs slower than it could, at this moment.
    ///
    /// # Errors
    /// The library's error.
    pub(crate) fn throttle_reasons(&self, device: NvmlDevice) -> Result<ThrottleReasons> {
        let (name, before_535) =
            ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons");
        let is_old = !self.has(name) && self.has(before_535);
        let name = if is_old { before_535 } else { name };
        // SAFETY: both functions have this type.
        let reasons: u64 = unsafe { self.value(name, device) }?;
        let active = EVENT_REASONS.iter().filter(|(bit, _)| reasons & bit != 0);
        Ok(ThrottleReasons(active.fold(0, |all, (_, reason)| all | reason)))
    }

    /// The IDs of processes that use the device for computing or graphics, each once.
    ///
    /// # Errors
    /// The library's error if it cannot list those that compute; those that draw may be missing.
    pub(crate) fn processes(&self, device: NvmlDevice) -> Result<Vec<u32>> {
        // SAFETY: the function's type.
        let computing = unsafe { self.list_processes("nvmlDeviceGetComputeRunningProcesses_v3", device) };
        // SAFETY: the function's type.
        let drawing = unsafe { self.list_processes("nvmlDeviceGetGraphicsRunningProcesses_v3", device) };
        let mut ids = [computing?, drawing.unwrap_or_default()].concat();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// The IDs of the processes that a function lists.
    ///
    /// # Safety
    /// The function `name` has the type [`ListProcesses`].
    unsafe fn list_processes(&self, name: &str, device: NvmlDevice) -> Result<Vec<u32>> {
        let mut list = vec![ProcessInfo::default(); usize::from(MAX_PROCESSES)];
        let mut count = c_uint::from(MAX_PROCESSES);
        // With more processes, the call fails.
        let call = |list_into: ListProcesses| {
            // SAFETY: the device is a handle of the initialised library, and the list has room for `count` entries.
            unsafe { list_into(device, &raw mut count, list.as_mut_ptr()) }
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.call(name, call) }?;
        list.truncate(count as usize);
        Ok(list.into_iter().map(|process| process.pid).collect())
    }

    fn error(&self, function: &str, code: NvmlReturn) -> Error {
        let mut text = String::new();
        let call = |describe: Describe| {
            // SAFETY: it takes a number, which may be any.
            let found = unsafe { describe(code) };
            // SAFETY: NVML's strings are terminated and live as long as the library.
            text = unsafe { c_text_at(found) };
            NvmlReturn(0)
        };
        // Without this function, the text stays empty.
        // SAFETY: the function's type.
        let _ = unsafe { self.call("nvmlErrorString", call) };
        let text = if text.is_empty() { "NVML has no description of this code" } else { &text };
        Error::new(kind(code), format!("{text}; {}", remedy(code)))
            .with_driver("", i64::from(code.0))
            .in_operation(function)
    }
}

/// The error kind of a code; any other code is a `Driver` error. Never `DeviceLost`, which would end the work of the device:
/// only the CUDA driver decides that.
fn kind(code: NvmlReturn) -> ErrorKind {
    match code.0 {
        // NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND,
        // LIB_RM_VERSION_MISMATCH.
        3 | 4 | 6 | 9 | 12 | 13 | 18 => ErrorKind::Unsupported,
        _ => ErrorKind::Driver,
    }
}

fn remedy(code: NvmlReturn) -> &'static str {
    match code.0 {
        3 => "`nvidia-smi -q` shows what this device reports; a MIG instance has few values of its own",
        4 => "check the permissions of /dev/nvidia*",
        6 => "in a container, pass the whole GPU through",
        18 => "kernel module and library have different versions; restart the machine",
        15 | 16 => "restart the machine",
        _ => "check `nvidia-smi`",
    }
}

fn lacks(function: &str) -> Error {
    Error::unsupported(format!("the NVIDIA management library lacks {function}; update the driver"))
}

/// The processes of `all` without this one, whose ID is `own`.
///
/// A process in a container has another ID in NVML's list. If `own` is not on the list although this process uses the
/// device, the IDs are those of another PID namespace: one of them is this process, and all of them are unknown here.
pub(crate) fn without_own(all: Vec<u32>, own: u32) -> Vec<u32> {
    if all.contains(&own) {
        return all.into_iter().filter(|id| *id != own).collect();
    }
    vec![0; all.len().saturating_sub(1)]
}

/// A UUID as NVML writes it: `GPU-` or `MIG-`, and the bytes in order.
fn uuid_name(uuid: [u8; 16], is_mig_instance: bool) -> String {
    let kind = if is_mig_instance { "MIG" } else { "GPU" };
    let hex = format!("{:032x}", u128::from_be_bytes(uuid));
    format!("{kind}-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_as_nvml_does() {
        let uuid = std::array::from_fn(|index| 0x0f + u8::try_from(index).unwrap() * 0x10);
        assert_eq!(uuid_name(uuid, false), "GPU-0f1f2f3f-4f5f-6f7f-8f9f-afbfcfdfefff");
        assert_eq!(uuid_name([0; 16], true), "MIG-00000000-0000-0000-0000-000000000000");
    }

    #[test]
    fn the_own_process_is_not_another_one() {
        assert_eq!(without_own(vec![3, 7, 9], 7), [3, 9]);
        assert_eq!(without_own(vec![3, 8, 9], 7), [0, 0], "the IDs are those of another namespace");
        assert_eq!(without_own(vec![], 7), [0; 0]);
    }

    #[test]
    fn no_code_loses_the_device() {
        for code in [-1, 15, 16, 999, 12345, i32::MAX, i32::MIN] {
            assert_eq!(kind(NvmlReturn(code)), ErrorKind::Driver);
        }
        assert_eq!(kind(NvmlReturn(3)), ErrorKind::Unsupported);
    }
}
