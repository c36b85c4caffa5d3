//! A smoke test in a child process: it opens every device, uses every part of the API a little, and reports the outcome.

#![allow(unsafe_code, reason = "loads code")]
#![allow(clippy::print_stdout, reason = "the parent reads it")]

use std::process::{Command, ExitCode};
use std::time::Duration;

use runtime_core::{
    Arg, CodeFormat, CommonRuntime, DType, Error, ErrorKind, Event, Geometry, ModuleSource, Placement,
    QueueOptions, Result, Runtime,
};

/// Set in the child.
const CHILD: &str = "RUNTIME_TEST_OPENCL_SMOKE_TEST";
/// No single operation takes this long.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long to wait for work that never ends.
const STUCK_TIMEOUT: Duration = Duration::from_secs(1);
const CODE: &str = "kernel void fill_f32(global float *out, float value, ulong n) {
    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) out[i] = value;
}";

/// What the child reported.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Names of the devices, in order.
    pub devices: Vec<String>,
    /// Number of devices that passed everything.
    pub passed: usize,
    /// What failed: kind and message.
    pub errors: Vec<(ErrorKind, String)>,
}

impl Outcome {
    /// All error messages.
    #[must_use]
    pub fn messages(&self) -> String {
        self.errors.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// Whether this process is the child.
#[must_use]
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Runs `command`, a command of this program, as the child.
///
/// # Errors
/// It crashes, hangs or panics.
pub fn run_child(command: &mut Command, deadline: Duration) -> std::result::Result<Outcome, String> {
    let finished = crate::finish(command.env(CHILD, "1"), deadline)?;
    let stderr = finished.stderr.clone();
    let text = finished.success()?;
    if text.contains("panicked") || stderr.contains("panicked") || !text.ends_with("end\n") {
        return Err(format!("a panic, or an early exit:\n{text}\n{stderr}"));
    }
    let mut outcome = Outcome::default();
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("device", name)) => outcome.devices.push(name.to_owned()),
            Some(("passed", _)) => outcome.passed += 1,
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

/// The body of the child. It reports failures and continues: what matters is that it gets to the end.
#[must_use]
pub fn run() -> ExitCode {
    let runtime = Runtime::new();
    for target in runtime.targets() {
        match target.devices {
            Err(error) => report(&error),
            Ok(devices) => {
                for info in devices.iter().filter(|info| info.id.sub.is_none()) {
                    println!("device {} {}", info.id, info.name);
                    test_device(&runtime, &info.id.to_string());
                }
            }
        }
    }
    println!("end");
    ExitCode::SUCCESS
}

type Step = fn(&dyn CommonRuntime) -> Result<()>;

fn test_device(runtime: &Runtime, name: &str) {
    let device = match runtime.open(name) {
        Ok(device) => device,
        Err(error) => return report(&error),
    };
    // A transfer waits without a timeout, for ever if nothing ends.
    let steps: &[Step] = if is_stuck() {
        &[kernels]
    } else {
        &[kernels, launch_after_copy, memory, transfers, graphs, timestamps, invalid_code]
    };
    let failed = steps.iter().filter_map(|step| step(&*device).err());
    let failed: Vec<_> = failed.filter(|error| error.kind() != ErrorKind::Unsupported).collect();
    failed.iter().for_each(report);
    if failed.is_empty() {
        println!("passed {name}");
    }
}

/// Whether the driver of this process never completes a command.
fn is_stuck() -> bool {
    std::env::var("STUB_OPENCL").is_ok_and(|words| words.contains("never"))
}

fn wait(event: &Event) -> Result<()> {
    event.wait_timeout(if is_stuck() { STUCK_TIMEOUT } else { TIMEOUT })
}

/// An error for an operation that succeeded with a wrong result.
fn check(what: &str, is_right: bool) -> Result<()> {
    if is_right {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::Internal, format!("{what}: the result is wrong")))
    }
}

fn kernel(device: &dyn CommonRuntime) -> Result<runtime_core::Kernel> {
    // SAFETY: the kernel stays within its arguments.
    device.kernel(&unsafe { ModuleSource::native(CodeFormat::OPENCL_C, CODE) }, "fill_f32")
}

fn kernels(device: &dyn CommonRuntime) -> Result<()> {
    let fill = kernel(device)?;
    let [a, b] = [device.queue()?, device.queue()?];
    let x = device.empty::<f32>([100])?;
    let args = [Arg::write(&x), Arg::scalar(2.0f32), Arg::scalar(100u64)];
    let first = a.launch(&fill, Geometry::cover(100, 32), &args)?;
    let second = b.launch(&fill, Geometry::cover(100, 32), &args)?;
    wait(&second)?;
    wait(&first)?;
    if !is_stuck() {
        // Without a timeout, through the driver's blocking functions.
        a.launch(&fill, Geometry::cover(100, 32), &args)?.wait()?;
        b.launch(&fill, Geometry::cover(100, 32), &args)?;
        b.wait_idle()?;
    }
    check("kernels", x.to_vec::<f32>()?.iter().all(|value| value.to_bits() == 2.0f32.to_bits()))
}

/// A launch behind a failed copy must fail, whichever event is waited for first.
fn launch_after_copy(device: &dyn CommonRuntime) -> Result<()> {
    let (fill, queue) = (kernel(device)?, device.queue()?);
    let [x, y] = [device.tensor([100], &[1.0f32; 100])?, device.empty::<f32>([100])?];
    let copied = queue.copy(&y, &x)?;
    let args = [Arg::write(&y), Arg::scalar(2.0f32), Arg::scalar(100u64)];
    let launched = queue.launch(&fill, Geometry::cover(100, 32), &args)?.wait();
    let fails = std::env::var("STUB_OPENCL").is_ok_and(|words| words.contains("event=clEnqueueCopyBuffer"));
    check("a launch behind a failed copy", !fails || launched.is_err())?;
    copied.wait().and(launched)
}

fn memory(device: &dyn CommonRuntime) -> Result<()> {
    for space in &device.info().spaces {
        drop(device.allocate(DType::F32, &[1000], &Placement::space(&space.name))?);
    }
    let queue = device.queue()?;
    drop(queue.allocate(DType::F32, &[1 << 20], &Placement::default())?);
    queue.wait_idle_timeout(TIMEOUT)
}

fn transfers(device: &dyn CommonRuntime) -> Result<()> {
    for count in [10u16, 60_000] {
        let data: Vec<f32> = (0..count).map(f32::from).collect();
        let tensor = device.tensor([data.len()], &data)?;
        let other = device.empty::<f32>([data.len()])?;
        let queue = device.queue()?;
        wait(&queue.copy(&other, &tensor)?)?;
        check("copy", other.to_vec::<f32>()? == data)?;
        wait(&queue.fill(&other, &1.0f32.to_le_bytes())?)?;
        check("fill", other.to_vec::<f32>()?.iter().all(|value| value.to_bits() == 1.0f32.to_bits()))?;
    }
    Ok(())
}

fn graphs(device: &dyn CommonRuntime) -> Result<()> {
    let (fill, queue) = (kernel(device)?, device.queue()?);
    let x = device.empty::<f32>([100])?;
    let args = [Arg::write(&x), Arg::scalar(3.0f32), Arg::scalar(100u64)];
    let graph = queue.record(|recorder| recorder.launch(&fill, Geometry::cover(100, 32), &args))?;
    let executable = queue.instantiate(&graph)?;
    wait(&queue.replay(&executable)?)?;
    check("graphs", x.to_vec::<f32>()?.iter().all(|value| value.to_bits() == 3.0f32.to_bits()))
}

fn timestamps(device: &dyn CommonRuntime) -> Result<()> {
    let queue = device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() })?;
    let (begin, end) = (queue.timestamp()?, queue.timestamp()?);
    wait(&end)?;
    check("timestamps", queue.read_timestamp(&begin)? <= queue.read_timestamp(&end)?)
}

fn invalid_code(device: &dyn CommonRuntime) -> Result<()> {
    // SAFETY: it does not compile.
    let source = unsafe { ModuleSource::native(CodeFormat::OPENCL_C, "kernel void k( { no code }") };
    match device.load(&source) {
        Err(error) if error.kind() == ErrorKind::CompileFailed => Ok(()),
        Err(error) => Err(error),
        Ok(_) => check("invalid code", false),
    }
}
