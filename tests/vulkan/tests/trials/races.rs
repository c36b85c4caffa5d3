//! The backend orders dependent work that the program does not order, as the validation layer confirms. With that order taken
//! away, the layer reports hazards, and its messages reach the log.
//!
//! `glslangValidator` compiles the kernels: with code of naga, Debian's layer does not see which buffers are written.

#![allow(unsafe_code, reason = "changes the table of a backend, and loads native code")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use runtime_core::abi::{BackendTable, Handle, Launch, QueueTable, Status, SubmitInfo};
use runtime_core::backend::LinkedBackend;
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, Error, ErrorKind, Geometry, Kernel, ModuleSource, Options, Queue, Result,
    Runtime, Tensor,
};
use vulkan_tests::{
    Driver, Messages, VALIDATION_VARIABLE, compile_glsl, finish, install_stub, lavapipe, missing,
    require_glslang, respawn, use_driver, validation_layer,
};

const DEADLINE: Duration = Duration::from_secs(60);
/// Folder of the compiled kernels.
const FOLDER: &str = "VULKAN_TESTS_FOLDER";
/// Set to hide the dependencies of launches.
const UNORDERED: &str = "VULKAN_TESTS_UNORDERED";
/// Set to use push descriptors.
const PUSH: &str = "VULKAN_TESTS_PUSH";
/// Set to alternate between two queues, on a stub that logs waits.
const CROSS_QUEUE: &str = "VULKAN_TESTS_CROSS_QUEUE";
/// Set to make each submission depend on the previous one, on a stub that logs commands.
const CHAIN: &str = "VULKAN_TESTS_CHAIN";
/// Rounds across queues, or along the chain.
const ROUNDS: usize = 64;
const ELEMENTS: usize = 64;
const TENSORS: usize = 5;
const STEPS: usize = 300;

type LaunchCall = unsafe extern "C" fn(Handle, SubmitInfo, Handle, *const Launch) -> Status;

pub(crate) fn child() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    match (lavapipe(), validation_layer(), require_glslang()) {
        (Err(reason), ..) => vec![missing("vulkan::races", "vulkan", reason)],
        (_, Err(reason), _) => vec![missing("vulkan::races", "vulkan-validation", reason)],
        (.., Err(reason)) => vec![missing("vulkan::races", "glslang", reason)],
        (Ok(driver), Ok(()), Ok(())) => of_driver(&driver),
    }
}

fn of_driver(driver: &Driver) -> Vec<Trial> {
    let trial = |name: &str, variables: &'static [&'static str], expected: fn(&str) -> bool| {
        let driver = driver.clone();
        Trial::test(format!("races::{name}"), move || {
            let text = output(&driver, variables)?;
            if expected(&text) { Ok(()) } else { Err(text.into()) }
        })
    };
    // Submissions wait for all work submitted to the other queue, so that the order of queues is complete.
    let waits_for_all = |text: &str| {
        let waits: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("waits for ")).collect();
        let is_last = |wait: &&str| wait.split_once(" of ").is_some_and(|(value, last)| value == last);
        // Completed work is not waited for.
        !waits.is_empty() && waits.iter().all(is_last)
    };
    let separated = |text: &str| {
        let recorded = text.lines().filter_map(|line| line.strip_prefix("records a "));
        // Skip the commands before the chain.
        let recorded: Vec<_> = recorded.skip_while(|what| *what != "barrier").collect();
        let work = recorded.iter().filter(|what| **what != "barrier").count();
        work + 1 >= 5 * ROUNDS && recorded.windows(2).all(|pair| pair.contains(&"barrier"))
    };
    let silent = |text: &str| text.contains("messages: 0\n");
    vec![
        trial("dependent_work_is_in_order", &[], silent),
        trial("dependent_work_is_in_order_with_push_descriptors", &[PUSH], silent),
        trial("a_queue_waits_for_all_its_dependencies", &[CROSS_QUEUE], waits_for_all),
        trial("a_barrier_separates_dependent_commands", &[CHAIN], separated),
        trial("a_race_is_reported", &[UNORDERED], |text| text.contains("SYNC-HAZARD")),
        trial("a_race_is_reported_with_push_descriptors", &[UNORDERED, PUSH], |text| {
            text.contains("SYNC-HAZARD")
        }),
    ]
}

fn output(driver: &Driver, variables: &[&str]) -> std::result::Result<String, Failed> {
    let folder = tempfile::tempdir()?;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders/order");
    for shader in ["bump", "blend"] {
        compile_glsl(&sources.join(shader).with_extension("comp"), &[], folder.path())?;
    }
    let mut command = respawn("races")?;
    let stubbed = variables.iter().find(|variable| [CROSS_QUEUE, CHAIN].contains(variable));
    let manifest =
        if stubbed.is_some() { install_stub(folder.path())?.manifest } else { driver.manifest.clone() };
    use_driver(&mut command, &manifest).env(VALIDATION_VARIABLE, "1").env(FOLDER, folder.path());
    let settings =
        if stubbed == Some(&CROSS_QUEUE) { "queue_families=yes,log_waits=yes" } else { "log_commands=yes" };
    command.env("STUB_VULKAN", format!("real={},{settings}", driver.library));
    command.envs(variables.iter().map(|variable| (variable, "1")));
    let ended = finish(&mut command, DEADLINE)?;
    if ended.status.success() {
        Ok(ended.text())
    } else {
        Err(format!("{}: {}", ended.status, ended.text()).into())
    }
}

/// The child process: prints what is logged.
#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn work() -> std::result::Result<(), String> {
    let messages = Messages::collect()?;
    let unordered = std::env::var_os(UNORDERED).is_some();
    let table = if unordered { unordered_backend() } else { runtime_vulkan::backend() };
    let runtime = Runtime::builder().discover(false).register(table).build();
    let is_set = |variable| std::env::var_os(variable).is_some();
    let done = Fixture::open(&runtime).and_then(|mut fixture| match () {
        () if is_set(CROSS_QUEUE) => fixture.alternate_queues(),
        () if is_set(CHAIN) => fixture.chain(),
        () => fixture.run(),
    });
    drop(runtime);
    let list = messages.list();
    println!("messages: {}\n{}", list.len(), list.join("\n"));
    match done {
        // Without order, results are wrong.
        Err(error) if !unordered => {
            println!("{error}");
            Err(error.to_string())
        }
        _ => Ok(()),
    }
}

/// Two queues and tensors, with the contents expected of work in order.
struct Fixture {
    device: std::sync::Arc<dyn CommonRuntime>,
    queues: [Queue; 2],
    bump: Kernel,
    blend: Kernel,
    tensors: Vec<Tensor>,
    expected: [u32; TENSORS],
    random: u64,
}

impl Fixture {
    fn open(runtime: &Runtime) -> Result<Self> {
        let options = Options::new().with("push_descriptors", std::env::var_os(PUSH).is_some());
        let device = runtime.open_with("vulkan:0", &options)?;
        let folder = std::env::var_os(FOLDER).unwrap_or_default();
        let load = |name: &str| {
            let path = Path::new(&folder).join(name).with_extension("spv");
            // SAFETY: the kernels stay in bounds, since every work-item has an element.
            device.kernel(&unsafe { ModuleSource::native_file(CodeFormat::SPIRV_SHADER, path) }, "main")
        };
        let (bump, blend) = (load("bump")?, load("blend")?);
        let queue = || device.queue();
        let queues = [queue()?, queue()?];
        let zeros = [0u32; ELEMENTS];
        let tensors = (0..TENSORS).map(|_| device.tensor([ELEMENTS], &zeros)).collect::<Result<_>>()?;
        Ok(Self { device, queues, bump, blend, tensors, expected: [0; TENSORS], random: 1 })
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.random >> 33).unwrap_or(0) % limit
    }

    fn run(&mut self) -> Result<()> {
        (0..STEPS).try_for_each(|step| self.step(step))?;
        self.replay()?;
        for (tensor, expected) in self.tensors.iter().zip(&self.expected) {
            let data = tensor.to_vec::<u32>()?;
            if data.iter().any(|element| element != expected) {
                let message = format!("{data:?} instead of {expected}");
                return Err(Error::new(ErrorKind::Failed, message));
            }
        }
        self.device.queue()?.wait_idle()
    }

    /// Launches on one queue and the other in turn, several each time.
    fn alternate_queues(&mut self) -> Result<()> {
        let geometry = Geometry::cover(u32::try_from(ELEMENTS).unwrap_or(0), 32);
        for round in 0..=ROUNDS {
            for _ in 0..3 {
                let args = [Arg::read_write(&self.tensors[0])];
                self.queues[round % 2].launch(&self.bump, geometry, &args)?;
            }
        }
        self.queues.iter().try_for_each(Queue::wait_idle)
    }

    /// Kernels, copies and fills on one queue, each using the previous one's result.
    fn chain(&mut self) -> Result<()> {
        let geometry = Geometry::cover(u32::try_from(ELEMENTS).unwrap_or(0), 32);
        let (queue, [a, b]) = (&self.queues[0], [&self.tensors[0], &self.tensors[1]]);
        let bump = |tensor| queue.launch(&self.bump, geometry, &[Arg::read_write(tensor)]);
        for _ in 0..ROUNDS {
            bump(a)?;
            queue.copy(b, a)?;
            bump(b)?;
            queue.fill(b, &7u32.to_le_bytes())?;
            queue.copy(a, b)?;
        }
        queue.wait_idle()
    }

    /// A random submission, mostly on the first queue: the layer checks the commands of one command buffer against each other.
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
                queue.launch(&self.bump, geometry, &[Arg::read_write(&tensors[a])])?;
                self.expected[a] = self.expected[a].wrapping_add(1);
            }
            _ => {
                let args = [Arg::read(&tensors[a]), Arg::read(&tensors[b]), Arg::write(&tensors[c])];
                queue.launch(&self.blend, geometry, &args)?;
                let [a, b] = [self.expected[a], self.expected[b]];
                self.expected[c] = a.wrapping_mul(3).wrapping_add(b);
            }
        }
        Ok(())
    }

    /// Replays a graph of dependent launches three times.
    fn replay(&mut self) -> Result<()> {
        let (queue, tensors) = (&self.queues[0], &self.tensors);
        let geometry = Geometry::cover(u32::try_from(ELEMENTS).unwrap_or(0), 32);
        let graph = queue.record(|recorder| {
            (0..4).try_for_each(|_| {
                recorder.launch(&self.bump, geometry, &[Arg::read_write(&tensors[0])])?;
                let args = [Arg::read(&tensors[0]), Arg::read(&tensors[1]), Arg::write(&tensors[2])];
                recorder.launch(&self.blend, geometry, &args).map(drop)
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

/// The backend, with launches that have no dependencies.
fn unordered_backend() -> LinkedBackend {
    let table = runtime_vulkan::backend().table();
    // SAFETY: a backend's tables are static, and this crate's version is the same.
    let mut queues: QueueTable = unsafe { std::ptr::read(table.queue) };
    if let Some(launch) = queues.launch {
        let _ = REAL_LAUNCH.set(launch);
        queues.launch = Some(launch_without_dependencies);
    }
    // SAFETY: as above.
    let mut table: BackendTable = unsafe { std::ptr::read(table) };
    table.queue = Box::leak(Box::new(queues));
    // SAFETY: the backend's own functions, and one that only removes dependencies.
    unsafe { LinkedBackend::from_table(Box::leak(Box::new(table))) }
}

static REAL_LAUNCH: OnceLock<LaunchCall> = OnceLock::new();

unsafe extern "C" fn launch_without_dependencies(
    queue: Handle,
    submit: SubmitInfo,
    kernel: Handle,
    launch: *const Launch,
) -> Status {
    let real = REAL_LAUNCH.get().expect("set before the table was returned");
    // SAFETY: the caller's arguments, without the dependency.
    unsafe { real(queue, SubmitInfo { after: 0, ..submit }, kernel, launch) }
}
