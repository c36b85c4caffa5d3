//! `runtime peak`: measures what devices can do at most, and keeps it for `runtime eval`.

mod text;

use std::process::ExitCode;

use clap::Args;
use runtime_core::{Options, Result};
use runtime_harness::DeviceUnderTest;
use runtime_harness::peak::{self, Effort, Peak, PeakStore};
use runtime_harness::release::{self, release};
use serde_json::{Value, json};

use crate::arguments::ShareArguments;
use crate::eval::{named_or_available, open_device};
use crate::output;
use crate::progress::Progress;
use crate::registry;

#[derive(Debug, Args)]
pub(crate) struct PeakArguments {
    /// A device, e.g. `cuda:0`; may be repeated [default: every available device]
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<String>,
    /// Measure in a fifth of the time, with wider intervals
    #[arg(long)]
    quick: bool,
    /// Print the peaks as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    share: ShareArguments,
}

/// The peaks of a device, or why there are none.
struct Measured {
    device: String,
    peak: Result<Peak>,
}

/// Measures, keeps and prints; the exit code says whether every named device, or at least one of all, was measured.
///
/// # Errors
/// `NotFound` or `InvalidArgument` for a wrong device name, `Unavailable` if there is no device.
pub(crate) fn measure(arguments: &PeakArguments) -> Result<ExitCode> {
    let runtime = registry::runtime();
    let names = named_or_available(&arguments.devices)?;
    let open = |name: &String| open_device(&runtime, name, &Options::new());
    let devices: Vec<DeviceUnderTest> = names.iter().map(open).collect::<Result<_>>()?;
    let effort = if arguments.quick { Effort::Quick } else { Effort::Full };
    let (progress, store) = (Progress::new(devices.len()), PeakStore::of_user());
    let mut all = Vec::new();
    for mut device in devices {
        device.share = arguments.share.is_shared();
        let one = measure_device(device, effort, &progress);
        if let Ok(peak) = &one.peak
            && let Err(error) = store.save(peak)
        {
            progress.suspend(|| output::print_stderr(&format!("warning: {error}")));
        }
        progress.advance();
        if !arguments.json {
            progress.suspend(|| output::print(&text::peaks(&one.device, &one.peak, !all.is_empty())))?;
        }
        all.push(one);
    }
    progress.finish();
    if arguments.json {
        output::print_exact(&document(&all))?;
    }
    let mut measured = all.iter().map(|one| one.peak.is_ok());
    let is_success = if arguments.devices.is_empty() { measured.any(|ok| ok) } else { measured.all(|ok| ok) };
    Ok(if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure_device(device: DeviceUnderTest, effort: Effort, progress: &Progress) -> Measured {
    let wait = &mut |operation: &str| {
        progress.suspend(|| output::print_stderr(&format!("waiting {operation}")));
    };
    let _lock = device.lock(wait);
    let DeviceUnderTest { name, opened, .. } = device;
    let announce = |what: &str| progress.set_message(&format!("{what} of {name}"));
    let peak = opened.and_then(|opened| {
        let peak = peak::measure(&*opened, effort, &mut |what| announce(what));
        match release(opened, "the device", &name, release::DEADLINE) {
            Ok(()) => peak,
            Err(error) => Err(error),
        }
    });
    Measured { device: name, peak }
}

fn document(all: &[Measured]) -> String {
    let devices: Vec<Value> = all
        .iter()
        .map(|one| {
            let reason = one.peak.as_ref().err().map(ToString::to_string);
            json!({ "device": one.device, "peak": one.peak.as_ref().ok(), "reason": reason })
        })
        .collect();
    output::document(peak::SCHEMA, peak::VERSION, json!({ "devices": devices }))
}
