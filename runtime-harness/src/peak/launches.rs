//! Times of launches of an empty kernel.

use runtime_core::evaluate::{Clock, Warmup};
use runtime_core::{Arg, CodeFormat, DType, LaunchConfig, Result};

use super::bench::Bench;
use super::native::{native, unchecked};
use super::{Figure, LaunchPeak, Missing, Peak};

/// Launches that are submitted before a wait.
const BATCH: u64 = 256;
/// A portable kernel has at least one tensor. With n = 0 nothing is written.
const EMPTY_WGSL: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
struct Scalars { n: u32 }
var<immediate> s: Scalars;
@compute @workgroup_size(1)
fn empty() {
    if s.n > 0u { x[0] = s.n; }
}";

/// Measures launches.
pub(super) fn measure(bench: &Bench<'_>, peak: &mut Peak) {
    let latency_ns = time(bench, 1);
    let throughput_ns = time(bench, BATCH);
    match latency_ns.and_then(|latency_ns| Ok(LaunchPeak { latency_ns, throughput_ns: throughput_ns? })) {
        Ok(launches) => peak.launches = Some(launches),
        Err(error) => peak.missing.push(Missing::new("launches", &error)),
    }
}

/// The time per launch by the host's clock around `number` launches and a wait.
fn time(bench: &Bench<'_>, number: u64) -> Result<Figure> {
    let is_host = bench.device.info().accepts(&CodeFormat::C);
    let source = match is_host {
        true => native(CodeFormat::C, "void empty(void) {}"),
        false => unchecked(EMPTY_WGSL),
    };
    let kernel = bench.device.kernel(&source, "empty")?;
    let x = bench.device.allocate(DType::U32, &[1], &Default::default())?;
    let args = if is_host { Vec::new() } else { vec![Arg::write(&x), Arg::scalar(0u32)] };
    let effort = bench.effort;
    let samples = 10 * effort.samples();
    let measurement = bench
        .device
        .bench(&kernel, LaunchConfig::Groups(Default::default()), &args[..])
        .samples(samples)
        .warmup(Warmup::Calls(BATCH))
        .clock(Clock::HostWall.into())
        .configure(|evaluation| {
            evaluation.timing.number = Some(number);
            evaluation.timing.budget = effort.budget();
        })
        .run()?;
    Ok(Figure::time(&measurement.statistics, measurement.clock.name()))
}
