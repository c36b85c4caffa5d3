//! Processes for simulators that are configured by variables, which a library reads once per process: this program starts itself again
//! with them, or starts its workers with them. Variables cannot be set later, because other threads may read them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use runtime_core::backend::is_privileged;
use runtime_core::{Error, ErrorKind, Options, Result};
use runtime_mppa::{Environment, simulator_variables};

use crate::arguments::Action;

/// Starts this program again if the devices of a command need variables that it does not have. Call it before any thread is started.
///
/// # Errors
/// `InvalidArgument` for devices that cannot share a process; `Io` if this program cannot be started again.
#[allow(clippy::disallowed_methods, reason = "takes the place of this process, which has no privileges")]
pub(crate) fn restart(action: &Action) -> Result<()> {
    let (devices, options) = match action {
        Action::Eval(eval) if !eval.isolate => (&eval.devices[..], eval.open.options()),
        Action::Run(run) => (run.device.as_slice(), run.open.options()),
        _ => return Ok(()),
    };
    // One with privileges reads no variables, and would start itself again and again.
    if is_privileged() {
        return Ok(());
    }
    // A process that was started again has the variables, so it needs none.
    let needed = device_variables(devices, &options);
    let Some((simulator, variables)) = needed.iter().next() else { return Ok(()) };
    if let Some(other) = devices.iter().find(|device| *device != simulator && device.starts_with("mppa")) {
        return Err(Error::invalid(format!(
            "{simulator} is a simulator, and a process that has one has no other MPPA, such as {other}; use --isolate, which starts a \
             process for each device"
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
    let environment = Environment::of_process();
    let of_device = |device: &String| {
        let variables = simulator_variables(device, &environment, options);
        let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value));
        (device.clone(), variables.collect::<Vec<_>>())
    };
    let devices: BTreeSet<_> = devices.iter().collect();
    devices.into_iter().map(of_device).filter(|(_, variables)| !variables.is_empty()).collect()
}
