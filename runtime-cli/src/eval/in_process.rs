//! Evaluation in this process.

use std::process::ExitCode;

use runtime_core::{ErrorKind, Options, Result, Runtime};
use runtime_harness::release::{self, release};
use runtime_harness::{DeviceUnderTest, Evaluated, Job, Spec};

use super::{Files, Run, available_devices};
use crate::arguments::EvalArguments;
use crate::output;
use crate::registry;

pub(super) fn evaluate(arguments: &EvalArguments, specs: Vec<Spec>, files: Files) -> Result<ExitCode> {
    let runtime = registry::runtime();
    let options = arguments.open.options();
    let devices = choose(&runtime, &arguments.devices, &options)?;
    let names: Vec<String> = devices.iter().map(|device| device.name.clone()).collect();
    let run = Run::begin(files, &specs, &names, &options);
    measure(arguments, specs, devices, &runtime, &run)?;
    run.end()
}

fn measure(
    arguments: &EvalArguments,
    specs: Vec<Spec>,
    mut devices: Vec<DeviceUnderTest>,
    runtime: &Runtime,
    run: &Run,
) -> Result<()> {
    // One spec at a time, so that only one spec's data is in memory. One device at a time: several may be the same chip
    // (a GPU through CUDA, OpenCL and Vulkan), and all share the host.
    for spec in specs {
        let settings = arguments.settings.settings().or(spec.settings);
        let mut job = Job::new(spec);
        if settings.validates() && devices.iter().any(|device| device.accepts(&job.spec)) {
            run.announce(format!("reference of {}", job.spec.name));
            job.find_expected(runtime);
        }
        for device in &mut devices {
            run.announce(format!("{} on {}", job.spec.name, device.name));
            let Evaluated { row, released } = runtime_harness::evaluate(&job, device, &settings);
            if let Err(error) = released {
                output::print_stderr(&format!("error: {error}"));
            }
            if !run.add(&row)? {
                return Ok(());
            }
        }
    }
    run.finish_progress();
    for device in devices {
        if let Ok(opened) = device.opened
            && let Err(error) = release(opened, "the device", &device.name, release::DEADLINE)
        {
            output::print_stderr(&format!("error: {error}"));
        }
    }
    Ok(())
}

/// The devices named, or all available ones without their sub-devices.
fn choose(runtime: &Runtime, names: &[String], options: &Options) -> Result<Vec<DeviceUnderTest>> {
    // Do not list other backends if devices are named: that must not start the other drivers of the machine.
    let names = if names.is_empty() { available_devices(runtime)? } else { names.to_vec() };
    names.iter().map(|name| open(runtime, name, options)).collect()
}

fn open(runtime: &Runtime, name: &str, options: &Options) -> Result<DeviceUnderTest> {
    let device = DeviceUnderTest::open(runtime, name, options);
    match &device.opened {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => {
            Err(error.clone().in_operation(&format!("--device {name}")))
        }
        _ => Ok(device),
    }
}
