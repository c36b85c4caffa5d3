//! Kernel fusion: `relu((a + b) · a − b) · 0.5` as four kernels, submitted as they are and fused, on every device that runs portable
//! kernels; what listing and completing cost; and what a launch of a small kernel costs in a region of 16 or 64 that is repeated:
//! submitted as it is, fused, and as a list that cannot be fused, which is an executable graph where the device has native graphs.
//!
//! ```text
//! cargo bench --package runtime-bench --bench fusion -- [ELEMENTS] [DEVICE]...
//! ```
#![allow(clippy::print_stderr, reason = "a report on the terminal")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime_core::fusion::{FusionOptions, FusionReport};
use runtime_core::{
    CodeFormat, CommonRuntime, Event, Geometry, Kernel, ModuleSource, Queue, Result, Runtime, Tensor,
};

const CODE: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<f32>;
    @group(0) @binding(1) var<storage, read> in1: array<f32>;
    @group(0) @binding(2) var<storage, read> in2: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f32>;
    @group(0) @binding(2) var<storage, read_write> out2: array<f32>;
    @group(0) @binding(3) var<storage, read_write> out3: array<f32>;
    @compute @workgroup_size(256)
    fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out2) { out2[id.x] = in0[id.x] + in1[id.x]; }
    }
    @compute @workgroup_size(256)
    fn multiply_subtract(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out3) { out3[id.x] = in0[id.x] * in1[id.x] - in2[id.x]; }
    }
    @compute @workgroup_size(256)
    fn relu(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = max(in0[id.x], 0.0); }
    }
    @compute @workgroup_size(256)
    fn halve(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[id.x] * 0.5; }
    }";
/// Kernels of two groups of one element: `next` fuses with itself, `jump`, which reads what either group wrote, does not.
const SMALL: &str = "
    @group(0) @binding(0) var<storage, read> a: array<f32>;
    @group(0) @binding(1) var<storage, read_write> b: array<f32>;
    @compute @workgroup_size(1)
    fn next(@builtin(global_invocation_id) id: vec3u) { b[id.x] = a[id.x] + 1.0; }
    @compute @workgroup_size(1)
    fn jump(@builtin(global_invocation_id) id: vec3u) { b[id.x] = a[u32(a[id.x]) & 1] + 1.0; }";
/// How often a region is repeated before the program waits.
const REPETITIONS: u32 = 50;
/// Kernels of one list.
const LAUNCHES: u32 = 4;
const SAMPLES: usize = 15;
const WARM_UP: Duration = Duration::from_millis(500);

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    let elements = arguments.next_if(|argument| argument.parse::<usize>().is_ok());
    let elements = elements.and_then(|elements| elements.parse().ok()).unwrap_or(1 << 24);
    let devices: Vec<_> = arguments.collect();
    let runtime = runtime_bench::builder().with_lowering(runtime_kernel::wgsl()).build();
    for info in runtime.devices() {
        let name = info.id.to_string();
        let is_asked = devices.is_empty() || devices.contains(&name);
        if is_asked
            && info.id.sub.is_none()
            && info.accepts(&CodeFormat::WGSL)
            && let Err(error) = compare(&runtime, &name, elements).and_then(|()| regions(&runtime, &name))
        {
            eprintln!("{name}: {error}");
        }
    }
}

/// The kernels and tensors of the expression.
struct Expression {
    device: Arc<dyn CommonRuntime>,
    queue: Queue,
    kernels: [Kernel; LAUNCHES as usize],
    a: Tensor,
    b: Tensor,
    out: Tensor,
    elements: usize,
}

impl Expression {
    fn new(runtime: &Runtime, device: &str, elements: usize) -> Result<Self> {
        let device = runtime.open(device)?;
        let module = device.load(&ModuleSource::wgsl(CODE))?;
        let kernel = |name| module.kernel(name);
        let kernels = [kernel("add")?, kernel("multiply_subtract")?, kernel("relu")?, kernel("halve")?];
        let (a, b) = (device.empty::<f32>([elements])?, device.empty::<f32>([elements])?);
        let out = device.empty::<f32>([elements])?;
        let queue = device.queue()?;
        queue.fill(&a, &1.5f32.to_le_bytes())?;
        queue.fill(&b, &0.25f32.to_le_bytes())?.wait()?;
        Ok(Self { queue, kernels, a, b, out, elements, device })
    }

    /// Launches the four kernels, with temporaries that are given or dropped at the end.
    fn launch(&self, queue: &Queue, between: &[Tensor; 3]) -> Result<Event> {
        let [add, multiply_subtract, relu, halve] = &self.kernels;
        let [sum, difference, positive] = between;
        let groups = u32::try_from(self.elements.div_ceil(256)).unwrap_or(u32::MAX);
        let geometry = Geometry::new(groups, 256);
        queue.launch(add, geometry, (&self.a, &self.b, sum))?;
        queue.launch(multiply_subtract, geometry, (sum, &self.a, &self.b, difference))?;
        queue.launch(relu, geometry, (difference, positive))?;
        queue.launch(halve, geometry, (positive, &self.out))
    }

    fn temporaries(&self) -> Result<[Tensor; 3]> {
        let temporary = || self.device.empty::<f32>([self.elements]);
        Ok([temporary()?, temporary()?, temporary()?])
    }

    /// The time of a list from its first launch to its end on the device, with how long its temporaries, listing and completing took.
    fn fused(&self) -> Result<(Duration, [Duration; 3], FusionReport)> {
        let begin = Instant::now();
        let between = self.temporaries()?;
        let allocated = begin.elapsed();
        let begin = Instant::now();
        let fuser = self.queue.fuser(&FusionOptions::default())?;
        drop(self.launch(fuser.queue(), &between)?);
        drop(between);
        let listed = begin.elapsed();
        let (event, report) = fuser.complete()?;
        let completed = begin.elapsed() - listed;
        event.wait()?;
        Ok((begin.elapsed(), [allocated, listed, completed], report))
    }

    fn unfused(&self, between: &[Tensor; 3]) -> Result<(Duration, Duration)> {
        // Frees the temporaries of the fused launches, which would otherwise be a part of this measurement.
        drop(self.device.empty::<f32>([1])?);
        let begin = Instant::now();
        let event = self.launch(&self.queue, between)?;
        let submitted = begin.elapsed();
        event.wait()?;
        Ok((begin.elapsed(), submitted))
    }

    fn check(&self) -> Result<()> {
        let right = ((1.5f32 + 0.25) * 1.5 - 0.25) * 0.5;
        let out = self.out.slice(0, self.elements.saturating_sub(1000)..self.elements)?.to_vec::<f32>()?;
        assert!(out.iter().all(|x| (x - right).abs() < 1e-6), "{:?} instead of {right}", out.first());
        Ok(())
    }
}

fn compare(runtime: &Runtime, device: &str, elements: usize) -> Result<()> {
    let expression = Expression::new(runtime, device, elements)?;
    let between = expression.temporaries()?;
    expression.unfused(&between)?;
    expression.check()?;
    let (_, [.., cold], report) = expression.fused()?;
    expression.check()?;
    // A GPU that was idle raises its clocks only after some time.
    let begin = Instant::now();
    while begin.elapsed() < WARM_UP {
        expression.unfused(&between)?;
    }
    let (mut fused, mut unfused, mut allocating, mut listing, mut submitting, mut completing) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let (time, submitted) = expression.unfused(&between)?;
        unfused.push(time);
        submitting.push(submitted);
        let (time, [allocated, listed, completed], _) = expression.fused()?;
        fused.push(time);
        allocating.push(allocated);
        listing.push(listed);
        completing.push(completed);
    }
    let [fused, unfused] = [median(&mut fused), median(&mut unfused)];
    let bytes = 3.0 * 4.0 * elements as f64;
    eprintln!("{device}, {elements} elements: {report}");
    eprintln!(
        "  unfused {:.3} ms, fused {:.3} ms: {:.2} times as fast, {:.0} GB/s",
        1e3 * unfused,
        1e3 * fused,
        unfused / fused,
        bytes / fused / 1e9
    );
    eprintln!(
        "  allocating the temporaries {:.2} µs; four launches: submitting {:.2} µs, listing {:.2} µs; completing {:.2} µs, at first \
         {:.0} µs with the compiler",
        1e6 * median(&mut allocating),
        1e6 * median(&mut submitting),
        1e6 * median(&mut listing),
        1e6 * median(&mut completing),
        1e6 * cold.as_secs_f64()
    );
    Ok(())
}

/// What a launch costs in a region of small kernels that is repeated.
fn regions(runtime: &Runtime, device: &str) -> Result<()> {
    let device = runtime.open(device)?;
    let queue = device.queue()?;
    let module = device.load(&ModuleSource::wgsl(SMALL))?;
    let (next, jump) = (module.kernel("next")?, module.kernel("jump")?);
    let tensors = [device.zeros::<f32>([2])?, device.zeros::<f32>([2])?];
    let region = |queue: &Queue, kernel: &Kernel, length: usize| -> Result<()> {
        (0..length).try_for_each(|at| {
            let [from, to] = [&tensors[at % 2], &tensors[(at + 1) % 2]];
            queue.launch(kernel, Geometry::new(2, 1), (from, to)).map(drop)
        })
    };
    let listed = |kernel: &Kernel, length| -> Result<FusionReport> {
        let fuser = queue.fuser(&FusionOptions::default())?;
        region(fuser.queue(), kernel, length)?;
        Ok(fuser.complete()?.1)
    };
    for length in [16, 64] {
        let plain = per_launch(&queue, length, || region(&queue, &jump, length))?;
        let fused = per_launch(&queue, length, || listed(&next, length).map(drop))?;
        let apart = per_launch(&queue, length, || listed(&jump, length).map(drop))?;
        let (kernels, report) = (listed(&next, length)?.kernels.len(), listed(&jump, length)?);
        let how = if report.is_graph { "as one graph" } else { "apart" };
        eprintln!(
            "  {length} small kernels, per launch: submitted {plain:.2} µs, fused to {kernels} {fused:.2} µs, {} {how} {apart:.2} µs",
            report.kernels.len(),
        );
    }
    Ok(())
}

/// The time of a launch in a region that is repeated, in µs, from the first submission to the end of the last one.
fn per_launch(queue: &Queue, length: usize, region: impl Fn() -> Result<()>) -> Result<f64> {
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let begin = Instant::now();
        (0..REPETITIONS).try_for_each(|_| region())?;
        queue.wait_idle()?;
        samples.push(begin.elapsed() / REPETITIONS);
    }
    Ok(1e6 * median(&mut samples) / length as f64)
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}
