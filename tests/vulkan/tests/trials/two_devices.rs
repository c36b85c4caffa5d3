//! Two devices that depend on each other's work: two openings of lavapipe, which share their driver objects, and two drivers,
//! which share nothing, so that the host waits between them. Each case runs in its own process, which is killed if it hangs.

#![allow(clippy::print_stdout, reason = "the parent reads it")]

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use runtime_core::{
    Arg, Device, Error, ErrorKind, Event, Geometry, Kernel, ModuleSource, Queue, Result, Runtime, Tensor,
};
use vulkan_tests::{Driver, finish, install_stub, lavapipe, missing, respawn, use_driver};

/// Longer than any case takes.
const DEADLINE: Duration = Duration::from_secs(90);
const WAIT_TIMEOUT: Duration = Duration::from_secs(40);
/// A wait that is to time out.
const SHORT: Duration = Duration::from_millis(20);
/// Names the case for a child to run, and its second device.
const CASE: &str = "VULKAN_TESTS_CASE";
const SECOND: &str = "VULKAN_TESTS_SECOND";
const ROUNDS: u32 = 4000;
/// Rounds between two checks of the contents, for which the threads wait.
const UNCHECKED_ROUNDS: u32 = 16;
const ELEMENTS: usize = 1 << 10;
/// Of a tensor that is uploaded by staging threads.
const LARGE_ELEMENTS: usize = 1 << 18;
const BUSY_ELEMENTS: usize = 1 << 13;
const KERNELS: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { x[id.x] += 1u; }
    }
    @compute @workgroup_size(64) fn spin(@builtin(global_invocation_id) id: vec3u) {
        if id.x >= arrayLength(&x) { return; }
        var value = x[id.x];
        for (var i = 0u; i < 60000u; i++) { value = value * 1664525u + (value >> 7u); }
        x[id.x] = value;
    }";

type Case = fn(&[Side; 2]) -> Result<()>;

const CASES: [(&str, Case); 2] = [
    ("two_threads_wait_for_each_others_devices", wait_for_each_other),
    ("a_wait_with_a_timeout_ends_beside_a_busy_device", wait_beside_busy_device),
];

const PAIRS: [(&str, &str); 2] = [("of_one_driver", "vulkan:0"), ("of_two_drivers", "vulkan:1")];

pub(crate) fn trials() -> Vec<Trial> {
    match lavapipe() {
        Err(reason) => vec![missing("vulkan::two_devices", "vulkan", reason)],
        Ok(driver) => PAIRS.iter().flat_map(|pair| of_pair(pair, &driver)).collect(),
    }
}

fn of_pair(&(pair, second): &(&str, &'static str), driver: &Driver) -> Vec<Trial> {
    let trial = |(case, _): &(&'static str, Case)| {
        let (case, driver) = (*case, driver.clone());
        Trial::test(format!("two_devices::{case}::{pair}"), move || run(&driver, case, second))
    };
    CASES.iter().map(trial).collect()
}

fn run(driver: &Driver, case: &str, second: &str) -> std::result::Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    // Over lavapipe, the stub is another driver with the same device.
    let manifests = [driver.manifest.clone(), install_stub(folder.path())?.manifest];
    let both = std::env::join_paths(manifests)?;
    let mut command = respawn("two_devices")?;
    use_driver(&mut command, both.as_ref()).env("STUB_VULKAN", format!("real={}", driver.library));
    let ended = finish(command.env(CASE, case).env(SECOND, second), DEADLINE)?;
    if ended.status.success() { Ok(()) } else { Err(format!("{}: {}", ended.status, ended.text()).into()) }
}

pub(crate) fn child() -> ExitCode {
    let case = std::env::var(CASE).unwrap_or_default();
    let second = std::env::var(SECOND).unwrap_or_default();
    let done = open_both(&second).and_then(|sides| {
        let case = CASES.iter().find(|(name, _)| *name == case);
        case.map_or_else(|| fail("unknown case"), |(_, case)| case(&sides))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn open_both(second: &str) -> Result<[Side; 2]> {
    let builder = Runtime::builder().discover(false).register(runtime_vulkan::backend());
    let runtime = builder.with_lowering(runtime_kernel::wgsl()).build();
    Ok([Side::open(runtime.open("vulkan:0")?)?, Side::open(runtime.open(second)?)?])
}

fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::Failed, message.into()))
}

/// One of the two devices.
struct Side {
    device: Device,
    queue: Queue,
    add: Kernel,
    spin: Kernel,
    /// Incremented in each round.
    counter: Tensor,
    /// Uploaded in each round.
    large: Tensor,
    /// The latest round, with its event.
    latest: Mutex<Option<(u32, Event)>>,
}

impl Side {
    fn open(device: Device) -> Result<Self> {
        let load = |name| device.kernel(ModuleSource::wgsl(KERNELS), name);
        let (add, spin, queue) = (load("add")?, load("spin")?, device.queue()?);
        let counter = device.tensor([ELEMENTS], &[0u32; ELEMENTS])?;
        let large = device.zeros::<u32>([LARGE_ELEMENTS])?;
        Ok(Self { device, queue, add, spin, counter, large, latest: Mutex::default() })
    }

    /// Submits a round, and publishes it.
    fn submit(&self, round: u32) -> Result<()> {
        let mut event = launch(&self.queue, &self.add, &self.counter)?;
        if round.is_multiple_of(UNCHECKED_ROUNDS) {
            event = self.queue.upload(&self.large, vec![round; LARGE_ELEMENTS])?;
        }
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some((round, event));
        Ok(())
    }

    /// The latest round that was published, with its event; round 0 has none.
    fn published(&self) -> (u32, Option<Event>) {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.as_ref().map_or((0, None), |(round, event)| (*round, Some(event.clone())))
    }

    /// Copies the other device's tensors, and checks that they are of `round` or later.
    fn check_copies(&self, other: &Self, copies: &[Tensor; 2], round: u32) -> Result<()> {
        self.queue.copy(&copies[0], &other.counter)?;
        self.queue.copy(&copies[1], &other.large)?;
        check(&copies[0], round)?;
        check(&copies[1], round / UNCHECKED_ROUNDS * UNCHECKED_ROUNDS)
    }

    fn run(&self, other: &Self) -> Result<()> {
        let zeros = |count: usize| self.device.zeros::<u32>([count]);
        let copies = [zeros(ELEMENTS)?, zeros(LARGE_ELEMENTS)?];
        for round in 1..=ROUNDS {
            self.submit(round)?;
            let (others_round, event) = other.published();
            event.map_or(Ok(()), |event| self.queue.wait_for(&event))?;
            if round.is_multiple_of(UNCHECKED_ROUNDS) {
                self.check_copies(other, &copies, others_round)?;
            }
        }
        self.queue.wait_idle_timeout(WAIT_TIMEOUT)?;
        check(&self.counter, ROUNDS)
    }
}

fn launch(queue: &Queue, kernel: &Kernel, x: &Tensor) -> Result<Event> {
    let items = u32::try_from(x.len()).unwrap_or(u32::MAX);
    queue.launch(kernel, Geometry::cover(items, 64), &[Arg::read_write(x)])
}

/// Checks that a tensor is of one round, at least `round`.
fn check(tensor: &Tensor, round: u32) -> Result<()> {
    let data = tensor.to_vec::<u32>()?;
    let first = data.first().copied().unwrap_or(0);
    if first < round || data.iter().any(|element| *element != first) {
        let last = data.last().copied().unwrap_or(0);
        return fail(format!("{first} to {last} in the tensor, after round {round}"));
    }
    Ok(())
}

/// Each thread submits to its own device, and waits for what the other one has submitted.
fn wait_for_each_other([a, b]: &[Side; 2]) -> Result<()> {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| b.run(a));
        let own = a.run(b);
        own.and(other.join().unwrap_or_else(|_| fail("a thread panicked")))
    })
}

/// Repeats with longer work until that is still running at the end.
fn wait_beside_busy_device(sides: &[Side; 2]) -> Result<()> {
    for launches in [2, 8, 32] {
        if outlasts_waits(sides, launches)? {
            return Ok(());
        }
    }
    fail("waits of milliseconds, or launches beside them, took as long as work of seconds")
}

/// Keeps the first device busy, waits for it elsewhere, and launches on both; returns whether the first is still busy then.
fn outlasts_waits([busy, other]: &[Side; 2], launches: usize) -> Result<bool> {
    let x = busy.device.zeros::<u32>([BUSY_ELEMENTS])?;
    // On lavapipe, whose queues run one after the other, a blocking transfer would wait for the busy one.
    let (idle, y) = (busy.device.queue()?, busy.device.zeros::<u32>([ELEMENTS])?);
    let held =
        (0..launches).map(|_| launch(&busy.queue, &busy.spin, &x)).last().unwrap_or_else(|| fail("none"))?;
    held.is_done()?;
    std::thread::scope(|scope| {
        let follower = scope.spawn(|| other.queue.wait_for(&held));
        let begin = Instant::now();
        let timed_out = held.wait_timeout(SHORT).err().map(|error| error.kind());
        let waited = begin.elapsed();
        let late = launch(&busy.queue, &busy.add, &busy.counter)?;
        let beside = launch(&idle, &busy.add, &y)?;
        let on_other = launch(&other.queue, &other.add, &other.counter)?;
        beside.is_done()?;
        let still_busy = !held.is_done()? && !late.is_done()?;
        println!("{launches} launches: waited {waited:?}, then launched until {:?}", begin.elapsed());
        if still_busy && timed_out != Some(ErrorKind::Timeout) {
            return fail("the wait ended before its work");
        }
        follower.join().unwrap_or_else(|_| fail("a thread panicked"))?;
        [late, beside, on_other].iter().try_for_each(|event| event.wait_timeout(WAIT_TIMEOUT))?;
        Ok(still_busy)
    })
}
