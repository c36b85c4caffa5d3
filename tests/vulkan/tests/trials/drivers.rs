//! Faulty drivers: each yields a device list with reasons, or an error with a remedy, and never a panic, a crash or a hang. Each
//! case runs in its own process, with a deadline.

#![allow(clippy::print_stdout, reason = "the parent reads it")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use runtime_core::{
    Arg, CommonRuntime, DType, Error, ErrorKind, Event, Geometry, ModuleSource, Options, Placement,
    QueueOptions, Result, Runtime, Tensor,
};
use vulkan_tests::{
    Driver, Messages, VALIDATION_VARIABLE, built_file, finish, install_stub, lavapipe, missing, respawn,
    use_driver, validation_layer,
};

/// Longer than any case takes.
const DEADLINE: Duration = Duration::from_secs(60);
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);
const FILL: &str = "
    struct Scalars { value: f32 } var<immediate> scalars: Scalars;
    @group(0) @binding(0) var<storage, read_write> out: array<f32>;
    @compute @workgroup_size(32) fn fill(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out) { out[id.x] = scalars.value; }
    }";

type CheckResult = std::result::Result<(), String>;

/// A driver, and the expected outcome.
struct Case {
    name: String,
    setup: Setup,
    check: fn(&Outcome) -> CheckResult,
}

/// What the child process sees.
enum Setup {
    /// The stub over lavapipe, with these settings.
    Stub(String),
    /// The same under the validation layer, which must report nothing.
    Validated(String),
    /// A manifest with this text, in a folder with a file that is not a library.
    Manifest(&'static str),
    /// No manifest.
    NoDriver,
    /// A loader library with these bytes.
    Loader(Vec<u8>),
}

/// The child's report.
#[derive(Debug, Default)]
struct Outcome {
    kinds: Vec<ErrorKind>,
    errors: String,
    /// The reasons of devices that are listed as unavailable.
    unavailable: Vec<String>,
    /// Properties of devices and kernels, as `key value`.
    properties: Vec<String>,
    /// Messages of the validation layer.
    messages: Vec<String>,
    done: bool,
}

pub(crate) fn trials() -> Vec<Trial> {
    match lavapipe() {
        Err(reason) => vec![missing("vulkan::drivers", "vulkan", reason)],
        Ok(driver) => cases().into_iter().map(|case| trial(case, driver.clone())).collect(),
    }
}

fn trial(case: Case, real: Driver) -> Trial {
    if let (Setup::Validated(_), Err(reason)) = (&case.setup, validation_layer()) {
        return missing(&case.name, "vulkan-validation", reason);
    }
    Trial::test(format!("drivers::{}", case.name), move || run(&case, &real))
}

/// A manifest whose library is not a library.
const BAD_LIBRARY: &str =
    r#"{"file_format_version": "1.0.0", "ICD": {"library_path": "./garbage.so", "api_version": "1.3.0"}}"#;
const MISSING_LIBRARY: &str =
    r#"{"file_format_version": "1.0.0", "ICD": {"library_path": "./no.so", "api_version": "1.3.0"}}"#;

const DISCRETE: &str = "discrete=yes,queue_families=yes";
/// The thirteenth allocation fails, and so does the next one, which tries it again.
const TWELVE_ALLOCATIONS: &str = "discrete=yes,fail=vkAllocateMemory:-2:13,fail=vkAllocateMemory:-2:14";
const NO_BARRIER2: &str = "missing=vkCmdPipelineBarrier2,missing=vkCmdPipelineBarrier2KHR";

fn cases() -> Vec<Case> {
    let case = |name: &str, setup, check| Case { name: name.to_owned(), setup, check };
    let stub = |name: &str, settings: &str, check| case(name, Setup::Stub(settings.to_owned()), check);
    let mut cases = vec![
        stub("an_intact_driver_works", "", works),
        stub("a_device_is_described", "", describes),
        stub("a_discrete_device_works", "discrete=yes", works),
        stub("a_driver_without_barrier2_works", NO_BARRIER2, works),
        stub("a_device_with_several_queue_families_works", "queue_families=yes", works),
        stub("a_device_with_a_transfer_queue_works", DISCRETE, works),
        case(
            "queues_only_run_what_their_family_supports",
            Setup::Validated(DISCRETE.to_owned()),
            works_without_messages,
        ),
        stub("optional_extensions_are_reported", "extensions=yes", reports_extensions),
        stub("a_lost_device_reports_its_fault", "extensions=yes,lost=SUBMIT:1", reports_the_fault),
        case("a_missing_driver_is_unavailable", Setup::NoDriver, unavailable),
        case("a_manifest_that_is_not_json", Setup::Manifest("{ \"ICD\": "), unavailable),
        case("an_empty_manifest", Setup::Manifest("{}"), unavailable),
        case("a_driver_that_is_not_a_library", Setup::Manifest(BAD_LIBRARY), unavailable),
        case("a_driver_whose_library_is_missing", Setup::Manifest(MISSING_LIBRARY), unavailable),
        case("a_loader_that_is_not_a_library", Setup::Loader(b"not an object file".to_vec()), unavailable),
        case("an_empty_loader", Setup::Loader(Vec::new()), unavailable),
        stub("no_devices_is_unavailable", "devices=0", unavailable),
        stub("vulkan_1_0_is_listed_with_a_reason", "api=1.0", too_old),
        stub("vulkan_1_1_is_listed_with_a_reason", "api=1.1", too_old),
        stub("an_instance_that_cannot_be_created", "fail=vkCreateInstance:-9:0", unavailable),
        stub("freed_memory_is_used_again", TWELVE_ALLOCATIONS, works),
        stub("freed_memory_is_given_back_when_there_is_no_more", "discrete=yes,memory=300000000", works),
        stub("little_memory", "memory=100000", any_error),
        stub("no_memory", "memory=0", any_error),
        stub("a_device_lost_at_the_first_submission", "lost=SUBMIT:1", lost),
        stub("a_device_lost_at_the_third_submission", "lost=SUBMIT:3", lost),
        stub("a_device_lost_in_a_wait", "lost=vkWaitSemaphores:1", ends),
        stub("a_device_lost_in_a_poll", "lost=vkGetSemaphoreCounterValue:1", ends),
        stub("a_device_whose_semaphores_overflow", "overflow=3", lost),
        stub("a_submission_that_fails_late", "fail=SUBMIT:-2:2", any_error),
        stub("a_submission_that_fails_much_later", "fail=SUBMIT:-1:9", ends),
    ];
    for function in FUNCTIONS {
        for code in [-2, -4, 123_456] {
            let name = format!("{function}_fails_with_{code}");
            cases.push(stub(&name, &format!("fail={function}:{code}:1"), ends));
        }
    }
    cases
}

/// Functions that fail, one per case.
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

fn works(outcome: &Outcome) -> CheckResult {
    let succeeded = outcome.done && outcome.kinds.is_empty();
    if succeeded { Ok(()) } else { Err(format!("failed: {outcome:?}")) }
}

fn works_without_messages(outcome: &Outcome) -> CheckResult {
    // An error of Debian's layer itself: see `suite`.
    let message =
        outcome.messages.iter().find(|message| !message.contains("UNASSIGNED-VkSemaphore-state-timeout"));
    message.map_or_else(|| works(outcome), |message| Err(message.clone()))
}

/// Each of the prefixes begins a property.
fn has_properties(outcome: &Outcome, prefixes: &[&str]) -> CheckResult {
    let has = |prefix: &str| outcome.properties.iter().any(|property| property.starts_with(prefix));
    let missing = prefixes.iter().find(|prefix| !has(prefix));
    missing.map_or_else(|| works(outcome), |prefix| Err(format!("no property {prefix}: {outcome:?}")))
}

/// Lavapipe's properties.
fn describes(outcome: &Outcome) -> CheckResult {
    let numbers = ["driver_id 13", "vendor_id 65541", "device_id ", "sub_group_size 8", "binding_bytes 1"];
    let lists = ["heap ", "queues 1 x compute+graphics+transfer", "sub_group_operation arithmetic"];
    let features = ["feature f64", "feature i64", "feature storage_8bit", "feature storage_16bit"];
    has_properties(outcome, &["type cpu", "uuid 6d657361", "vulkan_version 1."])?;
    has_properties(outcome, &numbers)?;
    has_properties(outcome, &lists)?;
    has_properties(outcome, &features)
}

fn reports_extensions(outcome: &Outcome) -> CheckResult {
    let expected = [
        "feature cooperative_matrix",
        "cooperative_matrix 16x8x32 float16 * float16 + float32",
        "kernel 40 16",
    ];
    let missing =
        expected.iter().find(|expected| !outcome.properties.iter().any(|property| property == *expected));
    missing.map_or_else(|| works(outcome), |expected| Err(format!("no property {expected}: {outcome:?}")))
}

fn reports_the_fault(outcome: &Outcome) -> CheckResult {
    let report = "fault: a fault injected by the stub, READ_INVALID at 0x12345000, in no kernel";
    if outcome.errors.contains(report) {
        lost(outcome)
    } else {
        Err(format!("no report of the fault: {outcome:?}"))
    }
}

fn ends(outcome: &Outcome) -> CheckResult {
    let unclear = outcome.kinds.iter().find(|kind| matches!(kind, ErrorKind::Internal | ErrorKind::Timeout));
    match unclear {
        None => Ok(()),
        Some(kind) => Err(format!("{kind} is not specific enough: {outcome:?}")),
    }
}

fn any_error(outcome: &Outcome) -> CheckResult {
    if outcome.kinds.is_empty() { Err("nothing failed".to_owned()) } else { ends(outcome) }
}

fn unavailable(outcome: &Outcome) -> CheckResult {
    match outcome.kinds.as_slice() {
        [ErrorKind::Unavailable] if outcome.errors.contains(';') => Ok(()),
        _ => Err(format!("not `Unavailable` with a remedy: {outcome:?}")),
    }
}

fn too_old(outcome: &Outcome) -> CheckResult {
    match (outcome.unavailable.as_slice(), outcome.kinds.as_slice()) {
        ([reason], [ErrorKind::Unavailable]) if reason.contains("1.2") => Ok(()),
        _ => Err(format!("not one device with the required version: {outcome:?}")),
    }
}

fn lost(outcome: &Outcome) -> CheckResult {
    if outcome.kinds.last() == Some(&ErrorKind::DeviceLost) {
        return ends(outcome);
    }
    Err(format!("not `DeviceLost` at the end: {outcome:?}"))
}

fn run(case: &Case, real: &Driver) -> std::result::Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut command = respawn("drivers")?;
    match &case.setup {
        Setup::Stub(settings) | Setup::Validated(settings) => {
            let manifest = install_stub(folder.path())?.manifest;
            // `SUBMIT` stands for both functions.
            let both =
                ["vkQueueSubmit2", "vkQueueSubmit"].map(|function| settings.replace("SUBMIT", function));
            let settings = if both[0] == both[1] { both[0].clone() } else { both.join(",") };
            use_driver(&mut command, &manifest)
                .env("STUB_VULKAN", format!("real={},{settings}", real.library));
        }
        Setup::Manifest(text) => {
            let manifest = folder.path().join("broken_icd.json");
            std::fs::write(&manifest, text)?;
            std::fs::write(folder.path().join("garbage.so"), "not an object file")?;
            use_driver(&mut command, &manifest);
        }
        Setup::NoDriver => drop(use_driver(&mut command, &folder.path().join("none.json"))),
        Setup::Loader(bytes) => {
            std::fs::write(folder.path().join("libvulkan.so.1"), bytes)?;
            use_driver(&mut command, &real.manifest).env("LD_LIBRARY_PATH", folder.path());
        }
    }
    if let Setup::Validated(_) = &case.setup {
        command.env(VALIDATION_VARIABLE, "1");
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
                let (code, message) = rest.split_once(' ').unwrap_or((rest, ""));
                outcome.kinds.push(ErrorKind::from_code(code.parse().unwrap_or(0)));
                outcome.errors.push_str(message);
                outcome.errors.push('\n');
            }
            Some(("unavailable", reason)) => outcome.unavailable.push(reason.to_owned()),
            Some(("property", property)) => outcome.properties.push(property.to_owned()),
            Some(("message", message)) => outcome.messages.push(message.to_owned()),
            _ => outcome.done |= line == "done",
        }
    }
    outcome
}

fn report(error: &Error) {
    println!("error {} {}", error.kind().code(), error.to_string().replace('\n', " "));
}

/// The child process: uses every part of the API a little, and reports what fails.
pub(crate) fn child() -> ExitCode {
    let library: PathBuf = match built_file("libruntime_vulkan.so") {
        Ok(path) => path,
        Err(reason) => {
            println!("{reason}");
            return ExitCode::FAILURE;
        }
    };
    let messages = std::env::var_os(VALIDATION_VARIABLE).and_then(|_| Messages::collect().ok());
    let runtime = runtime(&library);
    for info in runtime.devices() {
        if let Some(reason) = &info.unavailable_reason {
            println!("unavailable {reason}");
        }
        info.properties.iter().for_each(|(key, value)| println!("property {key} {value}"));
        println!(
            "property uuid {}",
            info.uuid.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        );
    }
    // With push descriptors, then with descriptor sets.
    for push in [true, false] {
        match runtime.open_with("vulkan:0", &Options::new().with("push_descriptors", push)) {
            Err(error) => {
                report(&error);
                break;
            }
            Ok(device) => use_everything(&*device),
        }
    }
    for message in messages.iter().flat_map(Messages::list) {
        println!("message {}", message.replace('\n', " "));
    }
    println!("done");
    ExitCode::SUCCESS
}

#[allow(unsafe_code, reason = "loads the backend")]
fn runtime(library: &Path) -> Runtime {
    // SAFETY: the backend of this workspace.
    unsafe { Runtime::builder().discover(false).library(library) }
        .with_lowering(runtime_kernel::wgsl())
        .build()
}

/// Reports failures and goes on: what counts is that it ends.
fn use_everything(device: &dyn CommonRuntime) {
    let parts: [fn(&dyn CommonRuntime) -> Result<()>; 7] =
        [kernels, alternating_kernels, burst, memory, transfers, graphs, clocks];
    for part in parts {
        match part(device) {
            Err(error) if error.kind() != ErrorKind::Unsupported => report(&error),
            _ => {}
        }
    }
}

fn done(event: &Event) -> Result<()> {
    event.wait_timeout(WAIT_TIMEOUT)
}

fn fill(device: &dyn CommonRuntime) -> Result<runtime_core::Kernel> {
    device.kernel(ModuleSource::wgsl(FILL), "fill")
}

fn all(tensor: &Tensor, value: f32) -> Result<()> {
    let data = tensor.to_vec::<f32>()?;
    let wrong = data.iter().position(|element| element.to_bits() != value.to_bits());
    // A panic, so that it is not mistaken for an error of the driver.
    wrong.map_or(Ok(()), |at| panic!("element {at} is {}, not {value}", data[at]))
}

fn kernels(device: &dyn CommonRuntime) -> Result<()> {
    let fill = fill(device)?;
    if let (Some(registers), Some(spilled)) = (fill.info().registers, fill.info().spilled_bytes) {
        println!("property kernel {registers} {spilled}");
    }
    let [a, b] = [device.queue()?, device.queue()?];
    let x = device.empty::<f32>([100])?;
    let first = a.launch(&fill, Geometry::cover(100, 32), &[Arg::write(&x), Arg::scalar(1.0f32)])?;
    let second = b.launch(&fill, Geometry::cover(100, 32), &[Arg::write(&x), Arg::scalar(2.0f32)])?;
    done(&second)?;
    done(&first)?;
    all(&x, 2.0)
}

/// Kernels with and without arguments in turn, with copies and fills between them.
fn alternating_kernels(device: &dyn CommonRuntime) -> Result<()> {
    let nothing = "@compute @workgroup_size(1) fn nothing() {}";
    let (fill, nothing) = (fill(device)?, device.kernel(ModuleSource::wgsl(nothing), "nothing")?);
    let queue = device.queue()?;
    let x = device.empty::<f32>([100])?;
    let y = device.empty::<f32>([100])?;
    for round in 0..20u16 {
        let args = [Arg::write(&x), Arg::scalar(f32::from(round))];
        drop(queue.launch(&fill, Geometry::cover(100, 32), &args)?);
        drop(queue.launch(&nothing, Geometry::cover(1, 1), &[])?);
        drop(queue.launch(&fill, Geometry::cover(100, 32), &[Arg::write(&y), Arg::scalar(-1.0f32)])?);
        drop(queue.launch(&nothing, Geometry::cover(1, 1), &[])?);
        drop(queue.copy(&y, &x)?);
        drop(queue.fill(&x, &[0; 8])?);
        drop(queue.launch(&nothing, Geometry::cover(1, 1), &[])?);
    }
    queue.wait_idle_timeout(WAIT_TIMEOUT)?;
    all(&x, 0.0)?;
    all(&y, 19.0)
}

/// More launches than fit into one submission.
fn burst(device: &dyn CommonRuntime) -> Result<()> {
    let (fill, queue) = (fill(device)?, device.queue()?);
    let x = device.empty::<f32>([100])?;
    let mut last = None;
    for round in 0..300u16 {
        let args = [Arg::write(&x), Arg::scalar(f32::from(round))];
        last = Some(queue.launch(&fill, Geometry::cover(100, 32), &args)?);
    }
    last.as_ref().map_or(Ok(()), done)?;
    all(&x, 299.0)
}

fn memory(device: &dyn CommonRuntime) -> Result<()> {
    for space in &device.info().spaces {
        drop(device.allocate(DType::F32, &[1000], &Placement::space(&space.name))?);
    }
    if let Ok(usage) = device.memory_usage("device") {
        println!("property free {}", usage.free_bytes);
    }
    let queue = device.queue()?;
    drop(queue.allocate(DType::F32, &[1 << 20], &Placement::default())?);
    for mebibytes in [64, 64, 60, 64, 62, 64, 60, 64, 62, 64, 96, 128, 160] {
        drop(device.empty::<u8>([mebibytes << 20])?);
    }
    queue.wait_idle_timeout(WAIT_TIMEOUT)
}

fn transfers(device: &dyn CommonRuntime) -> Result<()> {
    for count in [10u32, 1 << 20] {
        let data: Vec<u32> = (0..count).collect();
        let tensor = device.tensor([data.len()], &data)?;
        let other = device.empty::<u32>([data.len()])?;
        let queue = device.queue()?;
        done(&queue.copy(&other, &tensor)?)?;
        assert_eq!(other.to_vec::<u32>()?, data);
        done(&queue.fill(&other, &7u32.to_le_bytes())?)?;
        assert!(other.to_vec::<u32>()?.iter().all(|value| *value == 7));
    }
    Ok(())
}

fn graphs(device: &dyn CommonRuntime) -> Result<()> {
    let (fill, queue) = (fill(device)?, device.queue()?);
    let x = device.empty::<f32>([100])?;
    let args = [Arg::write(&x), Arg::scalar(3.0f32)];
    let graph = queue.record(|recorder| recorder.launch(&fill, Geometry::cover(100, 32), &args))?;
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
