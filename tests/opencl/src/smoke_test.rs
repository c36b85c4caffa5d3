//! A process that opens every device that it sees, does a little of everything on each, and says what came of it.

#![allow(unsafe_code, reason = "loads code")]
#![allow(clippy::print_stdout, reason = "the parent reads it")]

use std::process::{Command, ExitCode};
use std::time::Duration;

use runtime_core::{
    Arg, CodeFormat, CommonRuntime, DType, Error, ErrorKind, Event, Geometry, ModuleSource, Placement,
    QueueOptions, Result, Runtime, Tensor,
};

/// Set in such a process.
const HERE: &str = "RUNTIME_TEST_OPENCL_WORKER";
/// No single thing takes this long.
const TIMEOUT: Duration = Duration::from_secs(20);
/// What never ends is waited for as long.
const STUCK_TIMEOUT: Duration = Duration::from_secs(1);
const CODE: &str = "kernel void fill_f32(global float *out, float value, ulong n) {
    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) out[i] = value;
}";

/// What such a process said.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Names of the devices, in order.
    pub devices: Vec<String>,
    /// Devices that did everything.
    pub passed: usize,
    /// What failed: the kind and the words.
    pub errors: Vec<(ErrorKind, String)>,
}

impl Outcome {
    /// All words.
    #[must_use]
    pub fn messages(&self) -> String {
        self.errors.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// Whether this process is one.
#[must_use]
pub fn is_child() -> bool {
    std::env::var_os(HERE).is_some()
}

/// Runs `command`, a command of this program, as such a process.
///
/// # Errors
/// It crashes, or hangs, or says that something panicked.
pub fn run_child(command: &mut Command, deadline: Duration) -> std::result::Result<Outcome, String> {
    let finished = crate::finish(command.env(HERE, "1"), deadline)?;
    let stderr = finished.stderr.clone();
    let text = finished.success()?;
    if text.contains("panicked") || stderr.contains("panicked") || !text.ends_with("end\n") {
        return Err(format!("a panic, or no end:\n{text}\n{stderr}"));
    }
    let mut outcome = Outcome::default();
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("device", name)) => outcome.devices.push(name.to_owned()),
            Some(("whole", _)) => outcome.passed += 1,
            Some(("error", rest)) => {
                let (code, words) = rest.split_once(' ').unwrap_or((rest, ""));
                let kind = ErrorKind::from_code(code.parse().unwrap_or(0));
                outcome.errors.push((kind, words.to_owned()));
            }
            _ => {}
        }
    }
    let broken = outcome.errors.iter().find(|(kind, _)| *kind == ErrorKind::Internal);
    broken.map_or_else(|| Ok(()), |(_, words)| Err(format!("an internal error: {words}")))?;
    Ok(outcome)
}

fn report(error: &Error) {
    println!("error {} {}", error.kind().code(), error.to_string().replace('\n', " "));
}

/// What such a process does. What fails is said and passed over: what counts is that it ends.
#[must_use]
pub fn run() -> ExitCode {
    let runtime = Runtime::new();
    for target in runtime.targets() {
        match target.devices {
            Err(error) => report(&error),
            Ok(devices) => {
                for info in devices.iter().filter(|info| info.id.sub.is_none()) {
                    println!("device {} {}", info.id, info.name);
                    one(&runtime, &info.id.to_string());
                }
            }
        }
    }
    println!("end");
    ExitCode::SUCCESS
}

type Part = fn(&dyn CommonRuntime) -> Result<()>;

fn one(runtime: &Runtime, name: &str) {
    let device = match runtime.open(name) {
        Ok(device) => device,
        Err(error) => return report(&error),
    };
    // A transfer waits as long as it takes: for ever, where nothing ends.
    let parts: &[Part] = if is_stuck() {
        &[kernels]
    } else {
        &[kernels, behind, memory, transfers, graphs, clocks, broken_code]
    };
    let failed = parts.iter().filter_map(|part| part(&*device).err());
    let failed: Vec<_> = failed.filter(|error| error.kind() != ErrorKind::Unsupported).collect();
    failed.iter().for_each(report);
    if failed.is_empty() {
        println!("whole {name}");
    }
}

/// Whether the driver of this process never ends anything.
fn is_stuck() -> bool {
    std::env::var("STUB_OPENCL").is_ok_and(|words| words.contains("never"))
}

fn done(event: &Event) -> Result<()> {
    event.wait_timeout(if is_stuck() { STUCK_TIMEOUT } else { TIMEOUT })
}

/// A wrong result of something that did not fail.
fn check(what: &str, is_right: bool) -> Result<()> {
    if is_right {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::Internal, format!("{what}: the result is wrong")))
    }
}

fn kernel(device: &dyn CommonRuntime) -> Result<runtime_core::Kernel> {
    // SAFETY: the kernel stays within its arguments.
    device.load(&unsafe { ModuleSource::native(CodeFormat::OPENCL_C, CODE) })?.kernel("fill_f32")
}

fn kernels(device: &dyn CommonRuntime) -> Result<()> {
    let fill = kernel(device)?;
    let [a, b] = [device.open_queue(&QueueOptions::default())?, device.open_queue(&QueueOptions::default())?];
    let x = device.allocate(DType::F32, &[100], &Placement::default())?;
    let args = [Arg::write(&x), Arg::scalar(2.0f32), Arg::scalar(100u64)];
    let first = a.launch(&fill, &Geometry::cover(100, 32), &args)?;
    let second = b.launch(&fill, &Geometry::cover(100, 32), &args)?;
    done(&second)?;
    done(&first)?;
    if !is_stuck() {
        // Without a deadline, by the driver's own functions.
        a.launch(&fill, &Geometry::cover(100, 32), &args)?.wait()?;
        b.launch(&fill, &Geometry::cover(100, 32), &args)?;
        b.wait_idle()?;
    }
    check("kernels", x.to_vec::<f32>()?.iter().all(|value| value.to_bits() == 2.0f32.to_bits()))
}

/// What is behind a copy that fails must not succeed, however it is waited for.
fn behind(device: &dyn CommonRuntime) -> Result<()> {
    let (fill, queue) = (kernel(device)?, device.open_queue(&QueueOptions::default())?);
    let [x, y] = [
        Tensor::from_slice(device, &[100], &[1.0f32; 100])?,
        device.allocate(DType::F32, &[100], &Placement::default())?,
    ];
    let copied = queue.copy(&y, &x)?;
    let args = [Arg::write(&y), Arg::scalar(2.0f32), Arg::scalar(100u64)];
    let launched = queue.launch(&fill, &Geometry::cover(100, 32), &args)?.wait();
    let fails = std::env::var("STUB_OPENCL").is_ok_and(|words| words.contains("event=clEnqueueCopyBuffer"));
    check("a launch behind a copy that fails", !fails || launched.is_err())?;
    copied.wait().and(launched)
}

fn memory(device: &dyn CommonRuntime) -> Result<()> {
    for space in &device.info().spaces {
        drop(device.allocate(DType::F32, &[1000], &Placement::space(&space.name))?);
    }
    let queue = device.open_queue(&QueueOptions::default())?;
    drop(queue.allocate(DType::F32, &[1 << 20], &Placement::default())?);
    queue.wait_idle_timeout(TIMEOUT)
}

fn transfers(device: &dyn CommonRuntime) -> Result<()> {
    for count in [10u16, 60_000] {
        let data: Vec<f32> = (0..count).map(f32::from).collect();
        let tensor = Tensor::from_slice(device, &[data.len()], &data)?;
        let other = device.allocate(DType::F32, &[data.len()], &Placement::default())?;
        let queue = device.open_queue(&QueueOptions::default())?;
        done(&queue.copy(&other, &tensor)?)?;
        check("copy", other.to_vec::<f32>()? == data)?;
        done(&queue.fill(&other, &1.0f32.to_le_bytes())?)?;
        check("fill", other.to_vec::<f32>()?.iter().all(|value| value.to_bits() == 1.0f32.to_bits()))?;
    }
    Ok(())
}

fn graphs(device: &dyn CommonRuntime) -> Result<()> {
    let (fill, queue) = (kernel(device)?, device.open_queue(&QueueOptions::default())?);
    let x = device.allocate(DType::F32, &[100], &Placement::default())?;
    queue.begin_recording()?;
    let args = [Arg::write(&x), Arg::scalar(3.0f32), Arg::scalar(100u64)];
    let launched = queue.launch(&fill, &Geometry::cover(100, 32), &args).map(drop);
    let graph = queue.end_recording()?;
    launched?;
    let executable = queue.instantiate(&graph)?;
    done(&queue.replay(&executable)?)?;
    check("graphs", x.to_vec::<f32>()?.iter().all(|value| value.to_bits() == 3.0f32.to_bits()))
}

fn clocks(device: &dyn CommonRuntime) -> Result<()> {
    let queue = device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() })?;
    let (begin, end) = (queue.timestamp()?, queue.timestamp()?);
    done(&end)?;
    check("clocks", queue.read_timestamp(&begin)? <= queue.read_timestamp(&end)?)
}

fn broken_code(device: &dyn CommonRuntime) -> Result<()> {
    // SAFETY: it is no code.
    let source = unsafe { ModuleSource::native(CodeFormat::OPENCL_C, "kernel void k( { no code }") };
    match device.load(&source) {
        Err(error) if error.kind() == ErrorKind::CompileFailed => Ok(()),
        Err(error) => Err(error),
        Ok(_) => check("broken code", false),
    }
}
