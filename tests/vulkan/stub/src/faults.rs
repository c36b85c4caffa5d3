//! Fault injection: which calls of the driver fail, and with what.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ash::vk;

use crate::{exit_handler, settings};

/// A function that fails.
#[derive(Debug)]
struct Fault {
    function: String,
    code: vk::Result,
    /// Which of its calls fails, counted from 1; 0 for all of them.
    call: u64,
    /// From this call on, the device is lost.
    loses_device: bool,
    calls: AtomicU64,
}

/// Whether the device is lost.
static LOST: AtomicBool = AtomicBool::new(false);

/// Functions called before there is a device.
const WITHOUT_DEVICE: [&str; 4] = [
    "vkCreateInstance",
    "vkEnumeratePhysicalDevices",
    "vkEnumerateDeviceExtensionProperties",
    "vkCreateDevice",
];

fn faults() -> &'static [Fault] {
    static ALL: OnceLock<Vec<Fault>> = OnceLock::new();
    ALL.get_or_init(|| settings::all().iter().filter_map(|(key, value)| fault(key, value)).collect())
}

fn fault(key: &str, value: &str) -> Option<Fault> {
    let mut parts = value.split(':');
    let function = parts.next()?.to_owned();
    let code = match key {
        "fail" => vk::Result::from_raw(parts.next()?.parse().ok()?),
        "lost" => vk::Result::ERROR_DEVICE_LOST,
        _ => return None,
    };
    let call = parts.next()?.parse().ok()?;
    Some(Fault { function, code, call, loses_device: key == "lost", calls: AtomicU64::new(0) })
}

/// Counts a call of a function, and returns the code that it fails with; `None` if it is to succeed.
pub(crate) fn injected(function: &str) -> Option<vk::Result> {
    exit_handler::note_call(function);
    if LOST.load(Ordering::Acquire) && !WITHOUT_DEVICE.contains(&function) {
        return Some(vk::Result::ERROR_DEVICE_LOST);
    }
    let mut injected = None;
    for fault in faults().iter().filter(|fault| fault.function == function) {
        let call = fault.calls.fetch_add(1, Ordering::AcqRel) + 1;
        if fault.call == 0 || fault.call == call {
            injected = Some(fault.code);
            if fault.loses_device {
                LOST.store(true, Ordering::Release);
            }
        }
    }
    injected
}

/// Bytes of the limited memory that are taken.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// Allocates from the limited memory; whether it was enough.
pub(crate) fn take_memory(bytes: u64) -> bool {
    let Some(limit) = settings::number("memory") else { return true };
    let is_enough = TAKEN.fetch_add(bytes, Ordering::AcqRel) + bytes <= limit;
    if !is_enough {
        give_memory(bytes);
    }
    is_enough
}

/// Frees limited memory.
pub(crate) fn give_memory(bytes: u64) {
    TAKEN.fetch_sub(bytes, Ordering::AcqRel);
}
