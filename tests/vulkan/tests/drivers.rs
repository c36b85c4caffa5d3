//! Drivers that are not as they should be: every one of them ends in a list with reasons or in an error that says what to do,
//! and never in a panic, a crash or a hang. Each case runs in a process of its own, with a deadline.

#![allow(clippy::print_stdout, reason = "the parent reads it")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use runtime_core::{
    Arg, CommonRuntime, DType, Error, ErrorKind, Event, Geometry, ModuleSource, Options, Placement,
    QueueOptions, Result, Runtime, Tensor,
};
use vulkan_tests::{
    Driver, Messages, VALIDATION, again, beside, finish, is_again, lavapipe, layer, missing, on, stub,
};

/// Longer than anything here takes, shorter than a hang.
const DEADLINE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(10);
const FILL: &str = "
    struct Scalars { value: f32 } var<immediate> scalars: Scalars;
    @group(0) @binding(0) var<storage, read_write> out: array<f32>;
    @compute @workgroup_size(32) fn fill(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out) { out[id.x] = scalars.value; }
    }";

type Checked = std::result::Result<(), String>;

/// A driver, and what must come of it.
struct Case {
    name: String,
    place: Place,
    check: fn(&Outcome) -> Checked,
}

/// What the program sees.
enum Place {
    /// The stub over lavapipe, told this.
    Stub(String),
    /// The same under the validation layer, which has nothing to say.
    Watched(String),
    /// A manifest with this text, in a folder with a library that is none.
    Manifest(&'static str),
    /// No manifest at all.
    NoDriver,
    /// A loader with these bytes.
    Loader(Vec<u8>),
}

/// What came of a little of everything.
#[derive(Debug, Default)]
struct Outcome {
    kinds: Vec<ErrorKind>,
    words: String,
    /// Devices that were listed, with the reason why they cannot be used.
    listed: Vec<String>,
    /// What was told of a device and of a kernel.
    told: Vec<String>,
    /// What was logged under the validation layer.
    logged: Vec<String>,
    done: bool,
}

fn main() -> ExitCode {
    if is_again() {
        return worker();
    }
    let trials = match lavapipe() {
        Err(reason) => vec![missing("vulkan::drivers", "vulkan", reason)],
        Ok(driver) => cases().into_iter().map(|case| trial(case, driver.clone())).collect(),
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn trial(case: Case, real: Driver) -> Trial {
    if let (Place::Watched(_), Err(reason)) = (&case.place, layer()) {
        return missing(&case.name, "vulkan-validation", reason);
    }
    Trial::test(case.name.clone(), move || run(&case, &real))
}

/// A manifest beside which there is a library that is none.
const GARBAGE: &str =
    r#"{"file_format_version": "1.0.0", "ICD": {"library_path": "./garbage.so", "api_version": "1.3.0"}}"#;
const NOWHERE: &str =
    r#"{"file_format_version": "1.0.0", "ICD": {"library_path": "./no.so", "api_version": "1.3.0"}}"#;

const DISCRETE: &str = "discrete=yes,families=yes";
const NO_BARRIERS: &str = "lacks=vkCmdPipelineBarrier2,lacks=vkCmdPipelineBarrier2KHR";

fn cases() -> Vec<Case> {
    let case = |name: &str, place, check| Case { name: name.to_owned(), place, check };
    let told = |name: &str, words: &str, check| case(name, Place::Stub(words.to_owned()), check);
    let mut cases = vec![
        told("a_whole_driver_works", "", works),
        told("a_device_is_described", "", describes),
        told("a_device_with_memory_of_its_own_works", "discrete=yes", works),
        told("a_driver_without_the_newer_barriers_works", NO_BARRIERS, works),
        told("a_device_with_queues_of_several_families_works", "families=yes", works),
        told("a_device_with_a_queue_for_transfers_works", DISCRETE, works),
        case("queues_are_used_for_what_they_do", Place::Watched(DISCRETE.to_owned()), silent),
        told("what_few_drivers_tell_is_told", "extras=yes", tells),
        told("a_lost_device_says_why", "extras=yes,lost=SUBMIT:1", says_why),
        case("no_driver_is_no_error", Place::NoDriver, unavailable),
        case("a_manifest_that_is_no_json", Place::Manifest("{ \"ICD\": "), unavailable),
        case("a_manifest_that_says_nothing", Place::Manifest("{}"), unavailable),
        case("a_driver_that_is_no_library", Place::Manifest(GARBAGE), unavailable),
        case("a_driver_that_is_not_there", Place::Manifest(NOWHERE), unavailable),
        case("a_loader_that_is_no_library", Place::Loader(b"not an object file".to_vec()), unavailable),
        case("a_loader_of_no_bytes", Place::Loader(Vec::new()), unavailable),
        told("no_device_is_no_error", "devices=0", unavailable),
        told("a_device_of_vulkan_1_0_says_why", "api=1.0", too_old),
        told("a_device_of_vulkan_1_1_says_why", "api=1.1", too_old),
        told("an_instance_that_is_refused", "fail=vkCreateInstance:-9:0", unavailable),
        told("a_little_memory_is_soon_exhausted", "memory=100000", any_error),
        told("no_memory_at_all", "memory=0", any_error),
        told("a_device_that_is_lost_at_the_first_submission", "lost=SUBMIT:1", lost),
        told("a_device_that_is_lost_at_the_third_submission", "lost=SUBMIT:3", lost),
        told("a_device_that_is_lost_in_a_wait", "lost=vkWaitSemaphores:1", ends),
        told("a_device_that_is_lost_when_asked_how_far_it_is", "lost=vkGetSemaphoreCounterValue:1", ends),
        told("a_device_whose_semaphores_run_over", "stands=3", lost),
        told("a_submission_that_is_refused_late", "fail=SUBMIT:-2:2", any_error),
        told("a_submission_that_is_refused_much_later", "fail=SUBMIT:-1:9", ends),
    ];
    for function in FUNCTIONS {
        for code in [-2, -4, 123_456] {
            let name = format!("{function}_fails_with_{code}");
            cases.push(told(&name, &format!("fail={function}:{code}:1"), ends));
        }
    }
    cases
}

/// Functions that are made to fail, one after the other.
const FUNCTIONS: &[&str] = &[
    "vkEnumeratePhysicalDevices",
    "vkCreateDevice",
    "vkCreateBuffer",
    "vkAllocateMemory",
    "vkBindBufferMemory",
    "vkMapMemory",
    "vkCreateSemaphore",
    "vkGetSemaphoreCounterValue",
    "vkWaitSemaphores",
    "vkCreateCommandPool",
    "vkAllocateCommandBuffers",
    "vkBeginCommandBuffer",
    "vkEndCommandBuffer",
    "vkResetCommandBuffer",
    "vkResetCommandPool",
    "vkCreateShaderModule",
    "vkCreateDescriptorSetLayout",
    "vkCreateDescriptorPool",
    "vkCreatePipelineLayout",
    "vkCreatePipelineCache",
    "vkCreateComputePipelines",
    "vkCreateQueryPool",
    "vkGetQueryPoolResults",
    "SUBMIT",
    "vkQueueWaitIdle",
    "vkDeviceWaitIdle",
];

fn works(outcome: &Outcome) -> Checked {
    let well = outcome.done && outcome.kinds.is_empty();
    if well { Ok(()) } else { Err(format!("it does not work: {outcome:?}")) }
}

fn silent(outcome: &Outcome) -> Checked {
    // What Debian's layer says of its own mistakes: see `suite`.
    let said = outcome.logged.iter().find(|words| !words.contains("UNASSIGNED-VkSemaphore-state-timeout"));
    said.map_or_else(|| works(outcome), |words| Err(words.clone()))
}

/// Each of the words begins something that was told.
fn has_told(outcome: &Outcome, all: &[&str]) -> Checked {
    let missing = all.iter().find(|words| !outcome.told.iter().any(|told| told.starts_with(*words)));
    missing.map_or_else(|| works(outcome), |words| Err(format!("no word of {words}: {outcome:?}")))
}

/// As lavapipe is.
fn describes(outcome: &Outcome) -> Checked {
    let numbers = ["driver_id 13", "vendor_id 65541", "device_id ", "sub_group_size 8", "binding_bytes 1"];
    let lists = ["heap ", "queues 1 x compute+graphics+transfer", "sub_group_operation arithmetic"];
    let features = ["feature f64", "feature i64", "feature storage_8bit", "feature storage_16bit"];
    has_told(outcome, &["type cpu", "uuid 6d657361", "vulkan_version 1."])?;
    has_told(outcome, &numbers)?;
    has_told(outcome, &lists)?;
    has_told(outcome, &features)
}

fn tells(outcome: &Outcome) -> Checked {
    let expected = [
        "feature cooperative_matrix",
        "cooperative_matrix 16x8x32 float16 * float16 + float32",
        "kernel 40 16",
    ];
    let missing = expected.iter().find(|words| !outcome.told.iter().any(|told| told == *words));
    missing.map_or_else(|| works(outcome), |words| Err(format!("no word of {words}: {outcome:?}")))
}

fn says_why(outcome: &Outcome) -> Checked {
    let words = "fault: a fault of the stub's own, READ_INVALID at 0x12345000, in a kernel of nobody's";
    if outcome.words.contains(words) {
        lost(outcome)
    } else {
        Err(format!("no word of the fault: {outcome:?}"))
    }
}

fn ends(outcome: &Outcome) -> Checked {
    let odd = outcome.kinds.iter().find(|kind| matches!(kind, ErrorKind::Internal | ErrorKind::Timeout));
    match odd {
        None => Ok(()),
        Some(kind) => Err(format!("{kind} says too little: {outcome:?}")),
    }
}

fn any_error(outcome: &Outcome) -> Checked {
    if outcome.kinds.is_empty() { Err("nothing failed".to_owned()) } else { ends(outcome) }
}

fn unavailable(outcome: &Outcome) -> Checked {
    match outcome.kinds.as_slice() {
        [ErrorKind::Unavailable] if outcome.words.contains(';') => Ok(()),
        _ => Err(format!("not `Unavailable` with a remedy: {outcome:?}")),
    }
}

fn too_old(outcome: &Outcome) -> Checked {
    match (outcome.listed.as_slice(), outcome.kinds.as_slice()) {
        ([reason], [ErrorKind::Unavailable]) if reason.contains("1.2") => Ok(()),
        _ => Err(format!("not one device, with the version that it lacks: {outcome:?}")),
    }
}

fn lost(outcome: &Outcome) -> Checked {
    if outcome.kinds.last() == Some(&ErrorKind::DeviceLost) {
        return ends(outcome);
    }
    Err(format!("not `DeviceLost` at the end: {outcome:?}"))
}

fn run(case: &Case, real: &Driver) -> std::result::Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut command = again()?;
    match &case.place {
        Place::Stub(words) | Place::Watched(words) => {
            let manifest = stub(folder.path())?.manifest;
            // Whichever of the two functions is called.
            let both = ["vkQueueSubmit2", "vkQueueSubmit"].map(|function| words.replace("SUBMIT", function));
            let words = if both[0] == both[1] { both[0].clone() } else { both.join(",") };
            on(&mut command, &manifest).env("STUB_VULKAN", format!("real={},{words}", real.library));
        }
        Place::Manifest(text) => {
            let manifest = folder.path().join("broken_icd.json");
            std::fs::write(&manifest, text)?;
            std::fs::write(folder.path().join("garbage.so"), "not an object file")?;
            on(&mut command, &manifest);
        }
        Place::NoDriver => drop(on(&mut command, &folder.path().join("none.json"))),
        Place::Loader(bytes) => {
            std::fs::write(folder.path().join("libvulkan.so.1"), bytes)?;
            on(&mut command, &real.manifest).env("LD_LIBRARY_PATH", folder.path());
        }
    }
    if let Place::Watched(_) = &case.place {
        command.env(VALIDATION, "1");
    }
    let ended = finish(&mut command, DEADLINE)?;
    if !ended.status.success() {
        return Err(format!("{}: {}", ended.status, ended.text()).into());
    }
    Ok((case.check)(&outcome(&ended.text()))?)
}

fn outcome(text: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("error", rest)) => {
                let (code, words) = rest.split_once(' ').unwrap_or((rest, ""));
                outcome.kinds.push(ErrorKind::from_code(code.parse().unwrap_or(0)));
                outcome.words.push_str(words);
                outcome.words.push('\n');
            }
            Some(("unusable", reason)) => outcome.listed.push(reason.to_owned()),
            Some(("told", words)) => outcome.told.push(words.to_owned()),
            Some(("logged", words)) => outcome.logged.push(words.to_owned()),
            _ => outcome.done |= line == "done",
        }
    }
    outcome
}

fn report(error: &Error) {
    println!("error {} {}", error.kind().code(), error.to_string().replace('\n', " "));
}

/// The process that sees the driver: does a little of everything, and says what fails.
fn worker() -> ExitCode {
    let library: PathBuf = match beside("libruntime_vulkan.so") {
        Ok(path) => path,
        Err(reason) => {
            println!("{reason}");
            return ExitCode::FAILURE;
        }
    };
    let messages = std::env::var_os(VALIDATION).and_then(|_| Messages::collect().ok());
    let runtime = runtime(&library);
    for info in runtime.devices() {
        if let Some(reason) = &info.unusable {
            println!("unusable {reason}");
        }
        info.properties.iter().for_each(|(key, value)| println!("told {key} {value}"));
        println!("told uuid {}", info.uuid.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    // With arguments in commands, then in descriptor sets.
    for push in [true, false] {
        match runtime.open_with("vulkan:0", &Options::new().with("push_descriptors", push)) {
            Err(error) => {
                report(&error);
                break;
            }
            Ok(device) => use_everything(&*device),
        }
    }
    for words in messages.iter().flat_map(Messages::list) {
        println!("logged {}", words.replace('\n', " "));
    }
    println!("done");
    ExitCode::SUCCESS
}

#[allow(unsafe_code, reason = "loads the backend")]
fn runtime(library: &Path) -> Runtime {
    // SAFETY: the backend of this workspace.
    unsafe { Runtime::builder().discover(false).library(library) }.lower_with(runtime_kernel::wgsl()).build()
}

/// What fails is reported and passed over: what counts is that it ends.
fn use_everything(device: &dyn CommonRuntime) {
    let parts: [fn(&dyn CommonRuntime) -> Result<()>; 7] =
        [kernels, by_turns, burst, memory, transfers, graphs, clocks];
    for part in parts {
        match part(device) {
            Err(error) if error.kind() != ErrorKind::Unsupported => report(&error),
            _ => {}
        }
    }
}

fn done(event: &Event) -> Result<()> {
    event.wait_timeout(PATIENCE)
}

fn fill(device: &dyn CommonRuntime) -> Result<runtime_core::Kernel> {
    device.load(&ModuleSource::wgsl(FILL))?.kernel("fill")
}

fn all(tensor: &Tensor, value: f32) -> Result<()> {
    let data = tensor.to_vec::<f32>()?;
    let wrong = data.iter().position(|element| element.to_bits() != value.to_bits());
    // It must not be taken for one of the driver's errors.
    wrong.map_or(Ok(()), |at| panic!("element {at} is {}, not {value}", data[at]))
}

fn kernels(device: &dyn CommonRuntime) -> Result<()> {
    let fill = fill(device)?;
    if let (Some(registers), Some(spilled)) = (fill.info().registers, fill.info().spilled_bytes) {
        println!("told kernel {registers} {spilled}");
    }
    let [a, b] = [device.open_queue(&QueueOptions::default())?, device.open_queue(&QueueOptions::default())?];
    let x = device.allocate(DType::F32, &[100], &Placement::default())?;
    let first = a.launch(&fill, &Geometry::cover(100, 32), &[Arg::write(&x), Arg::scalar(1.0f32)])?;
    let second = b.launch(&fill, &Geometry::cover(100, 32), &[Arg::write(&x), Arg::scalar(2.0f32)])?;
    done(&second)?;
    done(&first)?;
    all(&x, 2.0)
}

/// Kernels with and without arguments, one after the other, and what is no kernel between them.
fn by_turns(device: &dyn CommonRuntime) -> Result<()> {
    let nothing = "@compute @workgroup_size(1) fn nothing() {}";
    let (fill, nothing) = (fill(device)?, device.load(&ModuleSource::wgsl(nothing))?.kernel("nothing")?);
    let queue = device.open_queue(&QueueOptions::default())?;
    let x = device.allocate(DType::F32, &[100], &Placement::default())?;
    let y = device.allocate(DType::F32, &[100], &Placement::default())?;
    for round in 0..20u16 {
        let args = [Arg::write(&x), Arg::scalar(f32::from(round))];
        drop(queue.launch(&fill, &Geometry::cover(100, 32), &args)?);
        drop(queue.launch(&nothing, &Geometry::cover(1, 1), &[])?);
        drop(queue.launch(&fill, &Geometry::cover(100, 32), &[Arg::write(&y), Arg::scalar(-1.0f32)])?);
        drop(queue.launch(&nothing, &Geometry::cover(1, 1), &[])?);
        drop(queue.copy(&y, &x)?);
        drop(queue.fill(&x, &[0; 8])?);
        drop(queue.launch(&nothing, &Geometry::cover(1, 1), &[])?);
    }
    queue.wait_idle_timeout(PATIENCE)?;
    all(&x, 0.0)?;
    all(&y, 19.0)
}

/// More launches than go into one submission.
fn burst(device: &dyn CommonRuntime) -> Result<()> {
    let (fill, queue) = (fill(device)?, device.open_queue(&QueueOptions::default())?);
    let x = device.allocate(DType::F32, &[100], &Placement::default())?;
    let mut last = None;
    for round in 0..300u16 {
        let args = [Arg::write(&x), Arg::scalar(f32::from(round))];
        last = Some(queue.launch(&fill, &Geometry::cover(100, 32), &args)?);
    }
    last.as_ref().map_or(Ok(()), done)?;
    all(&x, 299.0)
}

fn memory(device: &dyn CommonRuntime) -> Result<()> {
    for space in &device.info().spaces {
        drop(device.allocate(DType::F32, &[1000], &Placement::space(&space.name))?);
    }
    if let Ok(usage) = device.memory_usage("device") {
        println!("told free {}", usage.free_bytes);
    }
    let queue = device.open_queue(&QueueOptions::default())?;
    drop(queue.allocate(DType::F32, &[1 << 20], &Placement::default())?);
    queue.wait_idle_timeout(PATIENCE)
}

fn transfers(device: &dyn CommonRuntime) -> Result<()> {
    for count in [10u32, 1 << 20] {
        let data: Vec<u32> = (0..count).collect();
        let tensor = Tensor::from_slice(device, &[data.len()], &data)?;
        let other = device.allocate(DType::U32, &[data.len()], &Placement::default())?;
        let queue = device.open_queue(&QueueOptions::default())?;
        done(&queue.copy(&other, &tensor)?)?;
        assert_eq!(other.to_vec::<u32>()?, data);
        done(&queue.fill(&other, &7u32.to_le_bytes())?)?;
        assert!(other.to_vec::<u32>()?.iter().all(|value| *value == 7));
    }
    Ok(())
}

fn graphs(device: &dyn CommonRuntime) -> Result<()> {
    let (fill, queue) = (fill(device)?, device.open_queue(&QueueOptions::default())?);
    let x = device.allocate(DType::F32, &[100], &Placement::default())?;
    let args = [Arg::write(&x), Arg::scalar(3.0f32)];
    let graph = queue.record(|recorder| recorder.launch(&fill, &Geometry::cover(100, 32), &args))?;
    let executable = queue.instantiate(&graph)?;
    done(&queue.replay(&executable)?)?;
    all(&x, 3.0)
}

fn clocks(device: &dyn CommonRuntime) -> Result<()> {
    let queue = device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() })?;
    let (begin, end) = (queue.timestamp()?, queue.timestamp()?);
    done(&end)?;
    let (begin, end) = (queue.read_timestamp(&begin)?, queue.read_timestamp(&end)?);
    assert!(begin <= end);
    Ok(())
}
