//! Processes for devices whose driver reads variables once per process, as those of simulators do: this program starts itself again
//! with them, or starts its workers with them. Variables cannot be set later, because other threads may read them.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use runtime_core::backend::is_privileged;
use runtime_core::{Error, ErrorKind, Options, Result};

use crate::registry;

/// Starts this program again if these devices, which it opens itself, need variables that it does not have. Call it before any thread is started.
///
/// # Errors
/// `InvalidArgument` for devices that cannot share a process; `Io` if this program cannot be started again.
#[allow(clippy::disallowed_methods, reason = "takes the place of this process, which has no privileges")]
pub(crate) fn restart(devices: &[String], options: &Options) -> Result<()> {
    // A backend reads no variables in a process with privileges.
    if is_privileged() {
        return Ok(());
    }
    let needed = device_variables(devices, options);
    let Some((device, variables)) = needed.iter().next() else { return Ok(()) };
    // A backend that asks for more each time would start this program forever.
    if variables.iter().all(|(name, _)| std::env::var_os(name).is_some()) {
        return Ok(());
    }
    if let Some(other) = devices.iter().find(|other| *other != device && target(other) == target(device)) {
        return Err(Error::invalid(format!(
            "{device} needs a process with variables that its driver reads once, and {other} is of the same backend; use --isolate, \
             which starts a process for each device"
        )));
    }
    let failed = |error| Error::new(ErrorKind::Io, format!("cannot start this program again: {error}"));
    let mut program = Command::new(std::env::current_exe().map_err(failed)?);
    let mut words = std::env::args_os();
    if let Some(name) = words.next() {
        program.arg0(name);
    }
    Err(failed(program.args(words).envs(variables.iter().cloned()).exec()))
}

/// The variables with which processes for these devices are started, by device.
pub(crate) fn device_variables(
    devices: &[String],
    options: &Options,
) -> BTreeMap<String, Vec<(String, String)>> {
    if devices.is_empty() {
        return BTreeMap::new();
    }
    // Loading a library starts no driver.
    let runtime = registry::runtime();
    let of_device = |device: &String| {
        // What is wrong with a device is reported when it is opened.
        let variables = runtime.process_variables(device, options).ok().filter(|list| !list.is_empty())?;
        Some((
            device.clone(),
            variables.iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect(),
        ))
    };
    devices.iter().filter_map(of_device).collect()
}

/// The backend of a device.
fn target(device: &str) -> &str {
    device.split(':').next().unwrap_or(device)
}
