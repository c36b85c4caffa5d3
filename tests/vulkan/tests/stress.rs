//! Much work on lavapipe: what is done is right, and memory stays flat.

#![allow(clippy::print_stdout, reason = "reports how much memory there was")]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use runtime_core::{
    Arg, CommonRuntime, DType, Error, ErrorKind, Geometry, Kernel, ModuleSource, Placement, QueueOptions,
    Result, Runtime, Tensor,
};
use vulkan_tests::{Driver, again, beside, finish, is_again, lavapipe, missing, on};

const DEADLINE: Duration = Duration::from_secs(240);
const PATIENCE: Duration = Duration::from_secs(120);
/// Names the part that a process is to do.
const PART: &str = "VULKAN_TESTS_PART";
/// Bytes that a part may grow by once it has done a tenth of its work: what the allocator keeps back, and no more.
const GROWTH_BYTES: u64 = 32 << 20;
const ADD: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<u32>;
    @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { x[id.x] += 1u; }
    }";

type Part = fn(&Lab) -> Result<()>;

const PARTS: [(&str, Part); 4] = [
    ("a_hundred_thousand_launches", launches),
    ("ten_thousand_buffers", buffers),
    ("sixty_four_threads", threads),
    ("a_hundred_modules_and_queues", modules),
];

struct Lab {
    device: Arc<dyn CommonRuntime>,
    add: Kernel,
}

fn main() -> ExitCode {
    if is_again() {
        return work();
    }
    let trials = match lavapipe() {
        Err(reason) => vec![missing("vulkan::stress", "vulkan", reason)],
        Ok(driver) => PARTS
            .iter()
            .map(|(name, _)| {
                let driver = driver.clone();
                Trial::test(*name, move || run(&driver, name))
            })
            .collect(),
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn run(driver: &Driver, part: &str) -> std::result::Result<(), Failed> {
    let mut command = again()?;
    on(&mut command, &driver.manifest).env(PART, part);
    let ended = finish(&mut command, DEADLINE)?;
    print!("{}", ended.text());
    if ended.status.success() { Ok(()) } else { Err(format!("{}: {}", ended.status, ended.text()).into()) }
}

fn work() -> ExitCode {
    let part = std::env::var(PART).unwrap_or_default();
    let done = Lab::open().and_then(|lab| {
        let part = PARTS.iter().find(|(name, _)| *name == part);
        part.map_or_else(|| Err(Error::invalid("there is no such part")), |(_, part)| part(&lab))
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

/// Bytes of this process, as the system knows them.
fn memory(what: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(what)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

/// Does a part in ten steps, and looks at how memory grows from the end of the first to the end of the last.
fn flat(name: &str, mut step: impl FnMut() -> Result<()>) -> Result<()> {
    step()?;
    let before = memory("VmRSS:");
    (0..9).try_for_each(|_| step())?;
    let after = memory("VmRSS:");
    println!("{name}: {} MiB after a tenth, {} MiB at the end", before >> 20, after >> 20);
    if after > before + GROWTH_BYTES {
        let words = format!("memory grew by {} KiB", (after - before) >> 10);
        return Err(Error::new(ErrorKind::Failed, words));
    }
    Ok(())
}

fn wrong(what: String) -> Result<()> {
    Err(Error::new(ErrorKind::Failed, what))
}

impl Lab {
    fn open() -> Result<Self> {
        let library =
            beside("libruntime_vulkan.so").map_err(|reason| Error::new(ErrorKind::Unavailable, reason))?;
        let builder = Runtime::builder().discover(false).lower_with(runtime_kernel::wgsl());
        // SAFETY: the backend of this workspace.
        #[allow(unsafe_code, reason = "loads the backend")]
        let runtime = unsafe { builder.library(library) };
        let device = runtime.build().open("vulkan:0")?;
        let add = device.load(&ModuleSource::wgsl(ADD))?.kernel("add")?;
        Ok(Self { device, add })
    }

    fn zeros(&self, count: usize) -> Result<Tensor> {
        Tensor::from_slice(&*self.device, &[count], &vec![0u32; count])
    }

    /// All elements are `value`.
    fn check(&self, x: &Tensor, value: u32) -> Result<()> {
        let data = x.to_vec::<u32>()?;
        match data.iter().find(|element| **element != value) {
            None => Ok(()),
            Some(other) => wrong(format!("{other}, not {value}")),
        }
    }
}

fn launches(lab: &Lab) -> Result<()> {
    const STEP: u32 = 10_000;
    let (queue, x) = (lab.device.open_queue(&QueueOptions::default())?, lab.zeros(64)?);
    let mut count = 0;
    flat("a_hundred_thousand_launches", || {
        for _ in 0..STEP {
            drop(queue.launch(&lab.add, &Geometry::cover(64, 64), &[Arg::read_write(&x)])?);
        }
        count += STEP;
        queue.wait_idle_timeout(PATIENCE)?;
        lab.check(&x, count)
    })
}

/// Ten thousand at once, then half of them anew, in another size.
fn buffers(lab: &Lab) -> Result<()> {
    const COUNT: usize = 10_000;
    let queue = lab.device.open_queue(&QueueOptions::default())?;
    let make = |index: usize, round: usize| -> Result<Tensor> {
        let count = 1 + (index * 37 + round * 11) % 700;
        let x = lab.device.allocate(DType::U32, &[count], &Placement::default())?;
        drop(queue.fill(&x, &u32::try_from(index).unwrap_or(0).to_le_bytes())?);
        Ok(x)
    };
    let mut all: Vec<_> = (0..COUNT).map(|index| make(index, 0)).collect::<Result<_>>()?;
    let mut round = 0;
    flat("ten_thousand_buffers", || {
        round += 1;
        for index in (round % 2..COUNT).step_by(2) {
            all[index] = make(index, round)?;
        }
        queue.wait_idle_timeout(PATIENCE)?;
        (0..COUNT)
            .step_by(997)
            .try_for_each(|index| lab.check(&all[index], u32::try_from(index).unwrap_or(0)))
    })
}

/// Each with a queue and a tensor of its own, and one that all of them share.
fn threads(lab: &Lab) -> Result<()> {
    const THREADS: u32 = 64;
    const ROUNDS: u32 = 20;
    let shared = lab.zeros(64)?;
    let mut steps = 0;
    let work = || -> Result<()> {
        let (queue, own) = (lab.device.open_queue(&QueueOptions::default())?, lab.zeros(64)?);
        for _ in 0..ROUNDS {
            drop(queue.launch(&lab.add, &Geometry::cover(64, 64), &[Arg::read_write(&own)])?);
            drop(queue.launch(&lab.add, &Geometry::cover(64, 64), &[Arg::read_write(&shared)])?);
        }
        queue.wait_idle_timeout(PATIENCE)?;
        lab.check(&own, ROUNDS)
    };
    flat("sixty_four_threads", || {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| wrong("a thread panicked".to_owned()))
            })
        })?;
        steps += 1;
        lab.check(&shared, steps * THREADS * ROUNDS)
    })
}

fn modules(lab: &Lab) -> Result<()> {
    let x = lab.zeros(64)?;
    let mut count = 0;
    flat("a_hundred_modules_and_queues", || {
        for _ in 0..10 {
            let add = lab.device.load(&ModuleSource::wgsl(ADD))?.kernel("add")?;
            let queue = lab.device.open_queue(&QueueOptions::default())?;
            drop(queue.launch(&add, &Geometry::cover(64, 64), &[Arg::read_write(&x)])?);
            count += 1;
        }
        lab.check(&x, count)
    })
}
