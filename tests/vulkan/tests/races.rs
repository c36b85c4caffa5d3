//! Work in an order that the program never says: whatever depends on something comes behind it, as the validation layer sees
//! it too; and where that order is taken away, the layer says so, and its words reach the log.
//!
//! The kernels are compiled by `glslangValidator`: of code that naga writes, Debian's layer does not see what is written.

#![allow(unsafe_code, reason = "changes the table of a backend, and loads code that others compiled")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use runtime_core::abi::{BackendTable, Handle, Launch, Place, QueueTable, Status};
use runtime_core::backend::LinkedBackend;
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, Error, ErrorKind, Geometry, Kernel, ModuleSource, Options, Queue,
    QueueOptions, Result, Runtime, Tensor,
};
use vulkan_tests::{
    Driver, Messages, VALIDATION, again, compile_glsl, finish, glslang, is_again, lavapipe, layer, missing,
    on, stub,
};

const DEADLINE: Duration = Duration::from_secs(60);
/// Where the compiled kernels are.
const FOLDER: &str = "VULKAN_TESTS_FOLDER";
/// Set where the order is taken away.
const DISORDER: &str = "VULKAN_TESTS_DISORDER";
/// Set where arguments are pushed.
const PUSH: &str = "VULKAN_TESTS_PUSH";
/// Set where the work goes from one queue to the other, on a stub that tells the waits.
const ACROSS: &str = "VULKAN_TESTS_ACROSS";
/// Set where all work depends on what came before it, on a stub that tells the order.
const CHAIN: &str = "VULKAN_TESTS_CHAIN";
/// How often the work goes across, and around.
const ACROSS_ROUNDS: usize = 64;
const ELEMENTS: usize = 64;
const TENSORS: usize = 5;
const STEPS: usize = 300;

type LaunchCall = unsafe extern "C" fn(Handle, Place, Handle, *const Launch) -> Status;

fn main() -> ExitCode {
    if is_again() {
        return match work() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let trials = match (lavapipe(), layer(), glslang()) {
        (Err(reason), ..) => vec![missing("vulkan::races", "vulkan", reason)],
        (_, Err(reason), _) => vec![missing("vulkan::races", "vulkan-validation", reason)],
        (.., Err(reason)) => vec![missing("vulkan::races", "glslang", reason)],
        (Ok(driver), Ok(()), Ok(())) => trials(&driver),
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trials(driver: &Driver) -> Vec<Trial> {
    let trial = |name: &str, variables: &'static [&'static str], expected: fn(&str) -> bool| {
        let driver = driver.clone();
        Trial::test(name, move || {
            let text = said(&driver, variables)?;
            if expected(&text) { Ok(()) } else { Err(text.into()) }
        })
    };
    // The driver sees the order of queues in what their submissions wait for.
    let whole = |text: &str| {
        let waits: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("waits for ")).collect();
        let whole = |wait: &&str| wait.split_once(" of ").is_some_and(|(value, last)| value == last);
        // What has ended is not waited for.
        !waits.is_empty() && waits.iter().all(whole)
    };
    let separated = |text: &str| {
        let recorded = text.lines().filter_map(|line| line.strip_prefix("records a "));
        // What comes first is not of the chain.
        let recorded: Vec<_> = recorded.skip_while(|what| *what != "barrier").collect();
        let works = recorded.iter().filter(|what| **what != "barrier").count();
        works + 1 >= 5 * ACROSS_ROUNDS && recorded.windows(2).all(|pair| pair.contains(&"barrier"))
    };
    let silent = |text: &str| text.contains("messages: 0\n");
    vec![
        trial("dependent_work_is_in_order", &[], silent),
        trial("dependent_work_is_in_order_with_pushed_arguments", &[PUSH], silent),
        trial("a_queue_waits_for_all_that_it_depends_on", &[ACROSS], whole),
        trial("a_barrier_stands_between_what_depends_on_each_other", &[CHAIN], separated),
        trial("a_race_is_seen", &[DISORDER], |text| text.contains("SYNC-HAZARD")),
        trial("a_race_is_seen_with_pushed_arguments", &[DISORDER, PUSH], |text| text.contains("SYNC-HAZARD")),
    ]
}

fn said(driver: &Driver, variables: &[&str]) -> std::result::Result<String, Failed> {
    let folder = tempfile::tempdir()?;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders/order");
    for shader in ["bump", "blend"] {
        compile_glsl(&sources.join(shader).with_extension("comp"), &[], folder.path())?;
    }
    let mut command = again()?;
    let stubbed = variables.iter().find(|variable| [ACROSS, CHAIN].contains(variable));
    let manifest = if stubbed.is_some() { stub(folder.path())?.manifest } else { driver.manifest.clone() };
    on(&mut command, &manifest).env(VALIDATION, "1").env(FOLDER, folder.path());
    let words = if stubbed == Some(&ACROSS) { "families=yes,waits=yes" } else { "orders=yes" };
    command.env("STUB_VULKAN", format!("real={},{words}", driver.library));
    command.envs(variables.iter().map(|variable| (variable, "1")));
    let ended = finish(&mut command, DEADLINE)?;
    if ended.status.success() {
        Ok(ended.text())
    } else {
        Err(format!("{}: {}", ended.status, ended.text()).into())
    }
}

/// Prints what was logged.
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn work() -> std::result::Result<(), String> {
    let messages = Messages::collect()?;
    let disorder = std::env::var_os(DISORDER).is_some();
    let table = if disorder { disordered() } else { runtime_vulkan::backend() };
    let runtime = Runtime::builder().discover(false).register(table).build();
    let wanted = |way| std::env::var_os(way).is_some();
    let done = Lab::open(&runtime).and_then(|mut lab| match () {
        () if wanted(ACROSS) => lab.cross(),
        () if wanted(CHAIN) => lab.chain(),
        () => lab.perform(),
    });
    drop(runtime);
    let list = messages.list();
    println!("messages: {}\n{}", list.len(), list.join("\n"));
    match done {
        // Without order nothing is right.
        Err(error) if !disorder => {
            println!("{error}");
            Err(error.to_string())
        }
        _ => Ok(()),
    }
}

/// Tensors with two queues, and what is in the tensors when all is done in order.
struct Lab {
    device: std::sync::Arc<dyn CommonRuntime>,
    queues: [Queue; 2],
    bump: Kernel,
    blend: Kernel,
    tensors: Vec<Tensor>,
    expected: [u32; TENSORS],
    random: u64,
}

impl Lab {
    fn open(runtime: &Runtime) -> Result<Self> {
        let options = Options::new().with("push_descriptors", std::env::var_os(PUSH).is_some());
        let device = runtime.open_with("vulkan:0", &options)?;
        let folder = std::env::var_os(FOLDER).unwrap_or_default();
        let load = |name: &str| {
            let path = Path::new(&folder).join(name).with_extension("spv");
            // SAFETY: the kernels keep to their arguments where all work-items have an element.
            device.load(&unsafe { ModuleSource::native_file(CodeFormat::SPIRV_SHADER, path) })?.kernel("main")
        };
        let (bump, blend) = (load("bump")?, load("blend")?);
        let queue = || device.open_queue(&QueueOptions::default());
        let queues = [queue()?, queue()?];
        let zeros = [0u32; ELEMENTS];
        let tensors =
            (0..TENSORS).map(|_| Tensor::from_slice(&*device, &[ELEMENTS], &zeros)).collect::<Result<_>>()?;
        Ok(Self { device, queues, bump, blend, tensors, expected: [0; TENSORS], random: 1 })
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.random >> 33).unwrap_or(0) % limit
    }

    fn perform(&mut self) -> Result<()> {
        (0..STEPS).try_for_each(|step| self.step(step))?;
        self.replay()?;
        for (tensor, expected) in self.tensors.iter().zip(&self.expected) {
            let data = tensor.to_vec::<u32>()?;
            if data.iter().any(|element| element != expected) {
                let what = format!("{data:?}, not {expected}");
                return Err(Error::new(ErrorKind::Failed, what));
            }
        }
        self.device.open_queue(&QueueOptions::default())?.wait_idle()
    }

    /// From one queue to the other and back: each time behind several launches.
    fn cross(&mut self) -> Result<()> {
        let geometry = Geometry::cover(u32::try_from(ELEMENTS).unwrap_or(0), 32);
        for round in 0..=ACROSS_ROUNDS {
            for _ in 0..3 {
                let args = [Arg::read_write(&self.tensors[0])];
                self.queues[round % 2].launch(&self.bump, &geometry, &args)?;
            }
        }
        self.queues.iter().try_for_each(Queue::wait_idle)
    }

    /// On one queue, each on the result of what came before: kernels, copies and fills.
    fn chain(&mut self) -> Result<()> {
        let geometry = Geometry::cover(u32::try_from(ELEMENTS).unwrap_or(0), 32);
        let (queue, [a, b]) = (&self.queues[0], [&self.tensors[0], &self.tensors[1]]);
        let bump = |tensor| queue.launch(&self.bump, &geometry, &[Arg::read_write(tensor)]);
        for _ in 0..ACROSS_ROUNDS {
            bump(a)?;
            queue.copy(b, a)?;
            bump(b)?;
            queue.fill(b, &7u32.to_le_bytes())?;
            queue.copy(a, b)?;
        }
        queue.wait_idle()
    }

    /// Mostly on the first queue: what is on one queue is in one list of commands, which the layer looks at.
    fn step(&mut self, step: usize) -> Result<()> {
        let other = usize::from(self.below(8) == 0);
        let (a, b) = (self.below(TENSORS), self.below(TENSORS));
        let c = (0..TENSORS).find(|index| *index != a && *index != b).unwrap_or(0);
        let geometry = Geometry::cover(u32::try_from(ELEMENTS).unwrap_or(0), 32);
        let (queue, tensors) = (&self.queues[other], &self.tensors);
        match self.random >> 20 & 7 {
            0 => {
                let value = u32::try_from(step).unwrap_or(0);
                queue.fill(&tensors[a], &value.to_le_bytes())?;
                self.expected[a] = value;
            }
            1 if a != b => {
                queue.copy(&tensors[b], &tensors[a])?;
                self.expected[b] = self.expected[a];
            }
            2..5 => {
                queue.launch(&self.bump, &geometry, &[Arg::read_write(&tensors[a])])?;
                self.expected[a] = self.expected[a].wrapping_add(1);
            }
            _ => {
                let args = [Arg::read(&tensors[a]), Arg::read(&tensors[b]), Arg::write(&tensors[c])];
                queue.launch(&self.blend, &geometry, &args)?;
                let [a, b] = [self.expected[a], self.expected[b]];
                self.expected[c] = a.wrapping_mul(3).wrapping_add(b);
            }
        }
        Ok(())
    }

    /// Three times a graph of dependent launches.
    fn replay(&mut self) -> Result<()> {
        let (queue, tensors) = (&self.queues[0], &self.tensors);
        let geometry = Geometry::cover(u32::try_from(ELEMENTS).unwrap_or(0), 32);
        let graph = queue.record(|recorder| {
            (0..4).try_for_each(|_| {
                recorder.launch(&self.bump, &geometry, &[Arg::read_write(&tensors[0])])?;
                let args = [Arg::read(&tensors[0]), Arg::read(&tensors[1]), Arg::write(&tensors[2])];
                recorder.launch(&self.blend, &geometry, &args).map(drop)
            })
        })?;
        let executable = queue.instantiate(&graph)?;
        for _ in 0..3 {
            queue.replay(&executable)?;
        }
        self.expected[0] = self.expected[0].wrapping_add(12);
        self.expected[2] = self.expected[0].wrapping_mul(3).wrapping_add(self.expected[1]);
        queue.wait_idle()
    }
}

/// The backend's table, but for launches, which are told that they depend on nothing.
fn disordered() -> LinkedBackend {
    let table = runtime_vulkan::backend().table();
    // SAFETY: the tables of a backend are static, and of this version of the crate.
    let mut queues: QueueTable = unsafe { std::ptr::read(table.queue) };
    if let Some(launch) = queues.launch {
        let _ = REAL.set(launch);
        queues.launch = Some(without_order);
    }
    // SAFETY: as above.
    let mut table: BackendTable = unsafe { std::ptr::read(table) };
    table.queue = Box::leak(Box::new(queues));
    // SAFETY: the backend's own functions, and one that loses the order of launches.
    unsafe { LinkedBackend::from_table(Box::leak(Box::new(table))) }
}

static REAL: OnceLock<LaunchCall> = OnceLock::new();

unsafe extern "C" fn without_order(
    queue: Handle,
    place: Place,
    kernel: Handle,
    launch: *const Launch,
) -> Status {
    let real = REAL.get().expect("set before the table was given out");
    // SAFETY: the caller's arguments, but for the order.
    unsafe { real(queue, Place { after: 0, ..place }, kernel, launch) }
}
