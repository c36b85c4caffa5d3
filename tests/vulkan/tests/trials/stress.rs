//! Load tests on lavapipe: results are right, and memory use stays flat.

#![allow(clippy::print_stdout, reason = "reports memory use")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use runtime_core::{
    Arg, CommonRuntime, Error, ErrorKind, Geometry, Kernel, ModuleSource, Result, Runtime, Tensor,
};
use vulkan_tests::{Driver, built_file, finish, lavapipe, missing, respawn, use_driver};

const DEADLINE: Duration = Duration::from_secs(240);
const WAIT_TIMEOUT: Duration = Duration::from_secs(120);
/// Names the part for a child to run.
const PART: &str = "VULKAN_TESTS_PART";
/// How much a part may grow after a tenth of its work: what the allocator retains.
const MAX_GROWTH_BYTES: u64 = 32 << 20;
const ADD: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { x[id.x] += 1u; }
    }";

type Part = fn(&Fixture) -> Result<()>;

const PARTS: [(&str, Part); 4] = [
    ("a_hundred_thousand_launches", launches),
    ("ten_thousand_buffers", buffers),
    ("sixty_four_threads", threads),
    ("a_hundred_modules_and_queues", modules),
];

struct Fixture {
    device: Arc<dyn CommonRuntime>,
    add: Kernel,
}

pub(crate) fn trials() -> Vec<Trial> {
    match lavapipe() {
        Err(reason) => vec![missing("vulkan::stress", "vulkan", reason)],
        Ok(driver) => PARTS
            .iter()
            .map(|(name, _)| {
                let driver = driver.clone();
                Trial::test(format!("stress::{name}"), move || run(&driver, name))
            })
            .collect(),
    }
}

fn run(driver: &Driver, part: &str) -> std::result::Result<(), Failed> {
    let mut command = respawn("stress")?;
    use_driver(&mut command, &driver.manifest).env(PART, part);
    let ended = finish(&mut command, DEADLINE)?;
    print!("{}", ended.text());
    if ended.status.success() { Ok(()) } else { Err(format!("{}: {}", ended.status, ended.text()).into()) }
}

pub(crate) fn child() -> ExitCode {
    let part = std::env::var(PART).unwrap_or_default();
    let done = Fixture::open().and_then(|fixture| {
        let part = PARTS.iter().find(|(name, _)| *name == part);
        part.map_or_else(|| Err(Error::invalid("unknown part")), |(_, part)| part(&fixture))
    });
    match done {
        Ok(()) => {
            println!("{part}: peak {} MiB", memory("VmHWM:") >> 20);
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{part}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A size in bytes from `/proc/self/status`.
fn memory(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// Runs a part in ten steps, and checks that memory does not grow after the first.
fn check_flat_memory(name: &str, mut step: impl FnMut() -> Result<()>) -> Result<()> {
    step()?;
    let before = memory("VmRSS:");
    (0..9).try_for_each(|_| step())?;
    let after = memory("VmRSS:");
    println!("{name}: {} MiB after a tenth, {} MiB at the end", before >> 20, after >> 20);
    if after > before + MAX_GROWTH_BYTES {
        let message = format!("memory grew by {} KiB", (after - before) >> 10);
        return Err(Error::new(ErrorKind::Failed, message));
    }
    Ok(())
}

fn fail(message: String) -> Result<()> {
    Err(Error::new(ErrorKind::Failed, message))
}

impl Fixture {
    fn open() -> Result<Self> {
        let library = built_file("libruntime_vulkan.so")
            .map_err(|reason| Error::new(ErrorKind::Unavailable, reason))?;
        let builder = Runtime::builder().discover(false).with_lowering(runtime_kernel::wgsl());
        // SAFETY: the backend of this workspace.
        #[allow(unsafe_code, reason = "loads the backend")]
        let runtime = unsafe { builder.library(library) };
        let device = runtime.build().open("vulkan:0")?;
        let add = device.kernel(ModuleSource::wgsl(ADD), "add")?;
        Ok(Self { device, add })
    }

    fn zeros(&self, count: usize) -> Result<Tensor> {
        self.device.tensor([count], &vec![0u32; count])
    }

    /// Checks that all elements are `value`.
    fn check(&self, x: &Tensor, value: u32) -> Result<()> {
        let data = x.to_vec::<u32>()?;
        match data.iter().find(|element| **element != value) {
            None => Ok(()),
            Some(other) => fail(format!("{other} instead of {value}")),
        }
    }
}

fn launches(fixture: &Fixture) -> Result<()> {
    const STEP: u32 = 10_000;
    let (queue, x) = (fixture.device.queue()?, fixture.zeros(64)?);
    let mut count = 0;
    check_flat_memory("a_hundred_thousand_launches", || {
        for _ in 0..STEP {
            drop(queue.launch(&fixture.add, Geometry::cover(64, 64), &[Arg::read_write(&x)])?);
        }
        count += STEP;
        queue.wait_idle_timeout(WAIT_TIMEOUT)?;
        fixture.check(&x, count)
    })
}

/// Ten thousand at once; then half of them are reallocated, in another size.
fn buffers(fixture: &Fixture) -> Result<()> {
    const COUNT: usize = 10_000;
    let queue = fixture.device.queue()?;
    let make = |index: usize, round: usize| -> Result<Tensor> {
        let count = 1 + (index * 37 + round * 11) % 700;
        let x = fixture.device.empty::<u32>([count])?;
        drop(queue.fill(&x, &u32::try_from(index).unwrap_or(0).to_le_bytes())?);
        Ok(x)
    };
    let mut all: Vec<_> = (0..COUNT).map(|index| make(index, 0)).collect::<Result<_>>()?;
    let mut round = 0;
    check_flat_memory("ten_thousand_buffers", || {
        round += 1;
        for index in (round % 2..COUNT).step_by(2) {
            all[index] = make(index, round)?;
        }
        queue.wait_idle_timeout(WAIT_TIMEOUT)?;
        (0..COUNT)
            .step_by(997)
            .try_for_each(|index| fixture.check(&all[index], u32::try_from(index).unwrap_or(0)))
    })
}

/// Each has its own queue and tensor, and all share one tensor.
fn threads(fixture: &Fixture) -> Result<()> {
    const THREADS: u32 = 64;
    const ROUNDS: u32 = 20;
    let shared = fixture.zeros(64)?;
    let mut steps = 0;
    let work = || -> Result<()> {
        let (queue, own) = (fixture.device.queue()?, fixture.zeros(64)?);
        for _ in 0..ROUNDS {
            drop(queue.launch(&fixture.add, Geometry::cover(64, 64), &[Arg::read_write(&own)])?);
            drop(queue.launch(&fixture.add, Geometry::cover(64, 64), &[Arg::read_write(&shared)])?);
        }
        queue.wait_idle_timeout(WAIT_TIMEOUT)?;
        fixture.check(&own, ROUNDS)
    };
    check_flat_memory("sixty_four_threads", || {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().unwrap_or_else(|_| fail("a thread panicked".to_owned())))
        })?;
        steps += 1;
        fixture.check(&shared, steps * THREADS * ROUNDS)
    })
}

fn modules(fixture: &Fixture) -> Result<()> {
    let x = fixture.zeros(64)?;
    let mut count = 0;
    check_flat_memory("a_hundred_modules_and_queues", || {
        for _ in 0..10 {
            let add = fixture.device.kernel(ModuleSource::wgsl(ADD), "add")?;
            let queue = fixture.device.queue()?;
            drop(queue.launch(&add, Geometry::cover(64, 64), &[Arg::read_write(&x)])?);
            count += 1;
        }
        fixture.check(&x, count)
    })
}
