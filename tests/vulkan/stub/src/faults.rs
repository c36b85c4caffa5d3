//! What the stub is told to spoil.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ash::vk;

use crate::exits;

/// What it is told by.
const WORDS: &str = "STUB_VULKAN";

/// A function that fails.
#[derive(Debug)]
struct Fault {
    function: String,
    code: vk::Result,
    /// Which of its calls, counted from 1; 0 for all of them.
    call: u64,
    /// From there on nothing works.
    lost: bool,
    calls: AtomicU64,
}

/// Whether the device is lost.
static LOST: AtomicBool = AtomicBool::new(false);

/// What is called before there is a device.
const BEFORE: [&str; 4] = [
    "vkCreateInstance",
    "vkEnumeratePhysicalDevices",
    "vkEnumerateDeviceExtensionProperties",
    "vkCreateDevice",
];

fn words() -> &'static [(String, String)] {
    static ALL: OnceLock<Vec<(String, String)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let text = std::env::var(WORDS).unwrap_or_default();
        let pairs = text.split(',').filter_map(|word| word.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    })
}

/// The value of a word.
pub(crate) fn word(key: &str) -> Option<&'static str> {
    words().iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// The number that a word has as its value.
pub(crate) fn number(key: &str) -> Option<u64> {
    word(key)?.parse().ok()
}

/// Whether a function is to be missing.
pub(crate) fn lacks(function: &str) -> bool {
    words().iter().any(|(key, value)| key == "lacks" && value == function)
}

fn faults() -> &'static [Fault] {
    static ALL: OnceLock<Vec<Fault>> = OnceLock::new();
    ALL.get_or_init(|| words().iter().filter_map(|(key, value)| fault(key, value)).collect())
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
    Some(Fault { function, code, call, lost: key == "lost", calls: AtomicU64::new(0) })
}

/// What a call of a function gives instead of what the driver would; `None` where it goes on.
pub(crate) fn of(function: &str) -> Option<vk::Result> {
    exits::note(function);
    if LOST.load(Ordering::Acquire) && !BEFORE.contains(&function) {
        return Some(vk::Result::ERROR_DEVICE_LOST);
    }
    let mut given = None;
    for fault in faults().iter().filter(|fault| fault.function == function) {
        let call = fault.calls.fetch_add(1, Ordering::AcqRel) + 1;
        if fault.call == 0 || fault.call == call {
            given = Some(fault.code);
            if fault.lost {
                LOST.store(true, Ordering::Release);
            }
        }
    }
    given
}

/// Takes memory out of what there is; whether there was so much.
pub(crate) fn take(bytes: u64) -> bool {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    let Some(most) = number("memory") else { return true };
    TAKEN.fetch_add(bytes, Ordering::AcqRel) + bytes <= most
}
