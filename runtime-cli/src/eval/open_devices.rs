//! The devices of an evaluation in this process.

use std::thread;

use runtime_core::{DeviceInfo, DeviceKind, ErrorKind, Options, Result, Runtime};
use runtime_harness::DeviceUnderTest;

use super::listed_devices::at_least_one;
use crate::probe::{SIMULATOR, is_used_by_default};
use crate::progress::Progress;

/// Opens the devices named, or all available ones without their sub-devices, with a progress line.
pub(super) fn choose(runtime: &Runtime, names: &[String], options: &Options) -> Result<Vec<DeviceUnderTest>> {
    // Do not list other backends if devices are named: that must not start the other drivers of the machine.
    let names = if names.is_empty() { available_devices(runtime)? } else { names.to_vec() };
    let progress = Progress::new(names.len());
    let opened = open_all(runtime, &names, options, &progress);
    progress.finish();
    opened
}

/// Opens the devices of a backend side by side, because some take seconds, and backends one after the other, because their
/// drivers share libraries.
fn open_all(
    runtime: &Runtime,
    names: &[String],
    options: &Options,
    progress: &Progress,
) -> Result<Vec<DeviceUnderTest>> {
    let mut opened = Vec::new();
    for of_backend in names.chunk_by(|one, other| target(one) == target(other)) {
        progress.set_message(&format!("opening {}", of_backend.join(", ")));
        let devices = match of_backend {
            [name] => vec![open_device(runtime, name, options)],
            several => thread::scope(|scope| {
                let spawned =
                    several.iter().map(|name| scope.spawn(move || open_device(runtime, name, options)));
                let threads: Vec<_> = spawned.collect();
                let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                threads.into_iter().map(join).collect()
            }),
        };
        for device in devices {
            opened.push(device?);
            progress.advance();
        }
    }
    Ok(opened)
}

fn target(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

/// Opens a device. If it cannot be opened, that is the result of everything that is measured on it.
///
/// # Errors
/// `NotFound` or `InvalidArgument` for a wrong name.
#[allow(unsafe_code, reason = "options of the command line may name code")]
pub(crate) fn open_device(runtime: &Runtime, name: &str, options: &Options) -> Result<DeviceUnderTest> {
    // SAFETY: the options are those of the command line, whose user is responsible for what they name.
    let device = unsafe { DeviceUnderTest::open_with_code(runtime, name, options) };
    match &device.opened {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => {
            Err(error.clone().in_operation(&format!("--device {name}")))
        }
        _ => Ok(device),
    }
}

/// The devices that are used when none is named.
fn available_devices(runtime: &Runtime) -> Result<Vec<String>> {
    let known = runtime.devices();
    let is_used = |info: &&DeviceInfo| {
        let reason = info.unavailable_reason.as_deref();
        let (is_embedded, is_simulator) =
            (info.kind == DeviceKind::Embedded, info.properties.flag(SIMULATOR));
        is_used_by_default(info.id.sub.is_some(), is_embedded, is_simulator, reason)
    };
    let used = known.iter().filter(is_used);
    at_least_one(used.map(|info| info.id.to_string()).collect())
}
