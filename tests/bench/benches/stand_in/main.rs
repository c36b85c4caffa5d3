//! Compares the MPPA backend's stand-in (PoCL, not an MPPA) with the OpenCL backend on the same PoCL device, alternating in one
//! process; prints a table of ratios.
//!
//! `RUNTIME_MPPA_STAND_IN=1` offers the stand-in. `STAND_IN_BENCH_ROUNDS` (default 30) is the number of turns, and
//! `STAND_IN_BENCH_ONLY` a list of kernels. With `STAND_IN_BENCH_NOISE=1` the OpenCL backend is compared with itself instead, which
//! shows how far ratios are from 1 by chance.

#![allow(missing_docs, clippy::print_stdout, reason = "a benchmark that reports")]

mod kernels;
mod turns;

use runtime_core::{Device, Runtime};
use turns::{Rounds, line};

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let runtime = Runtime::builder().with_lowering(runtime_kernel::wgsl()).build();
    let (Some(opencl), Some(stand_in)) = (pocl(&runtime), device(&runtime, "stand-in (PoCL), not an MPPA"))
    else {
        return println!("nothing is compared: PoCL, or RUNTIME_MPPA_STAND_IN=1, is missing");
    };
    let is_noise = std::env::var("STAND_IN_BENCH_NOISE").is_ok_and(|value| value == "1");
    let other = if is_noise { pocl(&runtime) } else { Some(stand_in) };
    let devices = Devices { opencl, stand_in: other.expect("PoCL was opened before") };
    let rounds = Rounds::read();
    println!(
        "| what | OpenCL | stand-in | ratio | middle half | least / least |\n| --- | --- | --- | --- | --- | --- |"
    );
    transfers(&devices, &rounds);
    kernels::measure(&devices, &rounds);
}

/// The same device of PoCL, by both backends.
struct Devices {
    opencl: Device,
    stand_in: Device,
}

fn pocl(runtime: &Runtime) -> Option<Device> {
    let is_pocl = |info: &runtime_core::DeviceInfo| {
        info.id.target == "opencl" && info.properties.text("platform") == Some("Portable Computing Language")
    };
    let info = runtime.devices().into_iter().find(|info| is_pocl(info) && info.id.sub.is_none())?;
    runtime.open(&info.id.to_string()).ok()
}

fn device(runtime: &Runtime, name: &str) -> Option<Device> {
    let info = runtime.devices().into_iter().find(|info| info.name == name && info.id.sub.is_none())?;
    runtime.open(&info.id.to_string()).ok()
}

fn transfers(devices: &Devices, rounds: &Rounds) {
    for (name, elements) in [("4 KiB", 1 << 10), ("16 MiB", 4 << 20)] {
        let data = vec![1f32; elements];
        let tensor = |device: &Device| device.tensor([elements], &data).expect("memory");
        let (theirs, ours) = (tensor(&devices.opencl), tensor(&devices.stand_in));
        let write = |tensor: &runtime_core::Tensor| tensor.write(&data).expect("it is written");
        line(&format!("upload of {name}"), &rounds.take(|| write(&theirs), || write(&ours)));
        let read = |tensor: &runtime_core::Tensor| drop(tensor.to_vec::<f32>().expect("it is read"));
        line(&format!("download of {name}"), &rounds.take(|| read(&theirs), || read(&ours)));
    }
}
