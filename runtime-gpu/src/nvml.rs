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
// SAFETY: as above.
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

/// Reads a 32-bit value that an index selects.
type ReadIndexed = unsafe extern "C" fn(NvmlDevice, c_int, *mut c_uint) -> NvmlReturn;

/// NVML's functions. Loaded once per process and never unloaded.
#[derive(Debug)]
pub(crate) struct Nvml {
    nvmlInit_v2: unsafe extern "C" fn() -> NvmlReturn,
    nvmlDeviceGetHandleByUUID: unsafe extern "C" fn(*const c_char, *mut NvmlDevice) -> NvmlReturn,
    nvmlErrorString: Option<unsafe extern "C" fn(NvmlReturn) -> *const c_char>,
    nvmlDeviceGetClockInfo: Option<ReadIndexed>,
    nvmlDeviceGetTemperature: Option<ReadIndexed>,
    nvmlDeviceGetPowerUsage: Option<unsafe extern "C" fn(NvmlDevice, *mut c_uint) -> NvmlReturn>,
    nvmlDeviceGetTotalEnergyConsumption: Option<unsafe extern "C" fn(NvmlDevice, *mut u64) -> NvmlReturn>,
    /// `nvmlDeviceGetCurrentClocksEventReasons`, or its name before driver 535.
    event_reasons: Option<unsafe extern "C" fn(NvmlDevice, *mut u64) -> NvmlReturn>,
    nvmlDeviceGetComputeRunningProcesses_v3: Option<ListProcesses>,
    nvmlDeviceGetGraphicsRunningProcesses_v3: Option<ListProcesses>,
    initialised: Mutex<bool>,
    _library: Library,
}

/// The function of this name, with the type that its destination has; `None` if the library lacks it.
macro_rules! symbol {
    ($library:expr, $name:ident) => {{
        // SAFETY: the field of this name has the signature of NVML's function.
        let symbol = unsafe { $library.get(stringify!($name).as_bytes()) };
        symbol.ok().map(|symbol| *symbol)
    }};
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
        Self::bind(library)
    }

    fn bind(library: Library) -> Result<Self> {
        Ok(Self {
            nvmlInit_v2: symbol!(library, nvmlInit_v2).ok_or_else(|| lacks("nvmlInit_v2"))?,
            nvmlDeviceGetHandleByUUID: symbol!(library, nvmlDeviceGetHandleByUUID)
                .ok_or_else(|| lacks("nvmlDeviceGetHandleByUUID"))?,
            nvmlErrorString: symbol!(library, nvmlErrorString),
            nvmlDeviceGetClockInfo: symbol!(library, nvmlDeviceGetClockInfo),
            nvmlDeviceGetTemperature: symbol!(library, nvmlDeviceGetTemperature),
            nvmlDeviceGetPowerUsage: symbol!(library, nvmlDeviceGetPowerUsage),
            nvmlDeviceGetTotalEnergyConsumption: symbol!(library, nvmlDeviceGetTotalEnergyConsumption),
            event_reasons: symbol!(library, nvmlDeviceGetCurrentClocksEventReasons)
                .or_else(|| symbol!(library, nvmlDeviceGetCurrentClocksThrottleReasons)),
            nvmlDeviceGetComputeRunningProcesses_v3: symbol!(
                library,
                nvmlDeviceGetComputeRunningProcesses_v3
            ),
            nvmlDeviceGetGraphicsRunningProcesses_v3: symbol!(
                library,
                nvmlDeviceGetGraphicsRunningProcesses_v3
            ),
            initialised: Mutex::new(false),
            _library: library,
        })
    }

    /// Initialises the library on first use; a failure is tried again next time.
    fn initialise(&self) -> Result<()> {
        let mut initialised = self.initialised.lock();
        if !*initialised {
            // SAFETY: takes nothing; NVML counts initialisations, so other users in the process are not disturbed.
            self.check("nvmlInit_v2", unsafe { (self.nvmlInit_v2)() })?;
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
        // SAFETY: the name is terminated, the out-parameter is writable, and an unknown name returns an error.
        let code = unsafe { (self.nvmlDeviceGetHandleByUUID)(name.as_ptr(), &raw mut device) };
        self.check("nvmlDeviceGetHandleByUUID", code).map(|()| device)
    }

    /// Current values of a device; `None` for those that the library does not report.
    ///
    /// # Errors
    /// The library's first error if it reports none.
    pub(crate) fn telemetry(&self, device: NvmlDevice) -> Result<Telemetry> {
        let clock = self.clock_hz(device, CLOCK_SM);
        let memory_clock = self.clock_hz(device, CLOCK_MEMORY);
        let temperature = self.temperature_millicelsius(device);
        let power = self.power_milliwatts(device);
        let energy = self.energy_microjoules(device);
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

    /// Reads a value by a function; `call` is given where to write it.
    fn read<F, T: Default>(
        &self,
        name: &str,
        function: Option<F>,
        call: impl FnOnce(F, &mut T) -> NvmlReturn,
    ) -> Result<T> {
        let function = function.ok_or_else(|| lacks(name))?;
        let mut value = T::default();
        let code = call(function, &mut value);
        self.check(name, code).map(|()| value)
    }

    fn read_indexed(
        &self,
        name: &str,
        function: Option<ReadIndexed>,
        device: NvmlDevice,
        index: c_int,
    ) -> Result<c_uint> {
        self.read(name, function, |function, value| {
            // SAFETY: the device is a handle of the initialised library, and the out-parameter is writable.
            unsafe { function(device, index, value) }
        })
    }

    /// In hertz, of a domain.
    fn clock_hz(&self, device: NvmlDevice, domain: c_int) -> Result<u64> {
        let mhz = self.read_indexed("nvmlDeviceGetClockInfo", self.nvmlDeviceGetClockInfo, device, domain)?;
        Ok(u64::from(mhz) * 1_000_000)
    }

    fn temperature_millicelsius(&self, device: NvmlDevice) -> Result<i64> {
        let (name, function) = ("nvmlDeviceGetTemperature", self.nvmlDeviceGetTemperature);
        // In degrees Celsius.
        Ok(i64::from(self.read_indexed(name, function, device, TEMPERATURE_GPU)?) * 1000)
    }

    fn power_milliwatts(&self, device: NvmlDevice) -> Result<u64> {
        let milliwatts =
            self.read("nvmlDeviceGetPowerUsage", self.nvmlDeviceGetPowerUsage, |function, value| {
                // SAFETY: the device is a handle of the initialised library, and the out-parameter is writable.
                unsafe { function(device, value) }
            });
        milliwatts.map(|milliwatts: c_uint| u64::from(milliwatts))
    }

    /// Since the driver was loaded.
    fn energy_microjoules(&self, device: NvmlDevice) -> Result<u64> {
        let name = "nvmlDeviceGetTotalEnergyConsumption";
        let millijoules = self.read(name, self.nvmlDeviceGetTotalEnergyConsumption, |function, value| {
            // SAFETY: the device is a handle of the initialised library, and the out-parameter is writable.
            unsafe { function(device, value) }
        });
        millijoules.map(|millijoules: u64| millijoules.saturating_mul(1000))
    }

    /// Why the device runs slower than it could, at this moment.
    ///
    /// # Errors
    /// The library's error.
    pub(crate) fn throttle_reasons(&self, device: NvmlDevice) -> Result<ThrottleReasons> {
        let name = "nvmlDeviceGetCurrentClocksEventReasons";
        let reasons: u64 = self.read(name, self.event_reasons, |function, value| {
            // SAFETY: the device is a handle of the initialised library, and the out-parameter is writable.
            unsafe { function(device, value) }
        })?;
        let active = EVENT_REASONS.iter().filter(|(bit, _)| reasons & bit != 0);
        Ok(ThrottleReasons(active.fold(0, |all, (_, reason)| all | reason)))
    }

    /// The IDs of processes that use the device for computing or graphics, each once.
    ///
    /// # Errors
    /// The library's error if it cannot list those that compute; those that draw may be missing.
    pub(crate) fn processes(&self, device: NvmlDevice) -> Result<Vec<u32>> {
        let computing = self.list_processes(
            "nvmlDeviceGetComputeRunningProcesses_v3",
            self.nvmlDeviceGetComputeRunningProcesses_v3,
            device,
        );
        let drawing = self.list_processes(
            "nvmlDeviceGetGraphicsRunningProcesses_v3",
            self.nvmlDeviceGetGraphicsRunningProcesses_v3,
            device,
        );
        let mut ids = [computing?, drawing.unwrap_or_default()].concat();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    fn list_processes(
        &self,
        name: &str,
        function: Option<ListProcesses>,
        device: NvmlDevice,
    ) -> Result<Vec<u32>> {
        let function = function.ok_or_else(|| lacks(name))?;
        let mut list = vec![ProcessInfo::default(); usize::from(MAX_PROCESSES)];
        let mut count = c_uint::from(MAX_PROCESSES);
        // SAFETY: the device is a handle of the initialised library, and the list has room for `count` entries.
        let code = unsafe { function(device, &raw mut count, list.as_mut_ptr()) };
        // With more processes, the call fails.
        self.check(name, code)?;
        list.truncate(count as usize);
        Ok(list.into_iter().map(|process| process.pid).collect())
    }

    fn check(&self, function: &str, code: NvmlReturn) -> Result<()> {
        if code == NvmlReturn(0) { Ok(()) } else { Err(self.error(function, code)) }
    }

    fn error(&self, function: &str, code: NvmlReturn) -> Error {
        // SAFETY: takes a number, which may be any.
        let text = self.nvmlErrorString.map_or(std::ptr::null(), |string| unsafe { string(code) });
        // SAFETY: NVML's strings are terminated and live as long as the library.
        let text = match unsafe { c_text_at(text) } {
            text if text.is_empty() => "NVML has no description of this code".to_owned(),
            text => text,
        };
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
