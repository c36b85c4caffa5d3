//! Faulty drivers: each must produce an error with a remedy, and never a panic, a crash or a hang. Each case runs in a process of
//! its own, with a deadline.

#![allow(clippy::unwrap_used, unsafe_code, reason = "a test that loads code")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libtest_mimic::{Failed, Trial};
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, DType, Error, ErrorKind, Event, Geometry, ModuleSource, Placement,
    QueueOptions, Result, Runtime,
};

/// Longer than any case takes.
const DEADLINE: Duration = Duration::from_secs(120);
const CODE: &str =
    "extern \"C\" __global__ void spin(long us); void fill_f32(float *out, float value, long n);";
const PTX: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
                   .visible .entry spin(\n\t.param .u64 spin_param_0\n)\n{\n\tret;\n}\n";

/// A driver, and a check of the outcome.
struct Case {
    name: &'static str,
    /// Preprocessor definitions of the stub.
    defines: &'static [&'static str],
    /// Options of the stub.
    options: String,
    check: fn(&Outcome) -> std::result::Result<(), String>,
}

/// The errors of a run, in order.
#[derive(Debug, Default)]
struct Outcome {
    kinds: Vec<ErrorKind>,
    messages: String,
    done: bool,
}

pub(crate) fn trials() -> Vec<Trial> {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let trial = |case: Case| {
        let folder = Arc::clone(&folder);
        Trial::test(format!("drivers::{}", case.name), move || {
            run(&case, &folder.path().join(format!("stub-{}", case.defines.concat())))
        })
    };
    cases().into_iter().map(trial).collect()
}

fn cases() -> Vec<Case> {
    let case = |name, options: &str, check| Case { name, defines: &[], options: options.to_owned(), check };
    let mut cases = vec![
        case("a_whole_driver_works", "", works),
        case("a_driver_without_devices_is_unavailable", "devices=0", unavailable),
        case("a_failed_initialisation_has_a_reason", "init=100", unavailable),
        case("the_stub_library_of_the_toolkit_is_recognised", "init=34", unavailable),
        case("cuInit_returns_an_unknown_code", "init=123456", unavailable),
        case("cuInit_returns_a_negative_code", "init=-7", unavailable),
        case("cuDeviceGetCount_returns_an_unknown_code", "count=123456", any_error),
        case("exhausted_memory_is_reported", "memory=1000000", any_error),
        case("a_kernel_fault_names_the_kernel", "fail=cuEventQuery:700:1", lost),
        case(
            "a_queue_reuses_the_memory_it_freed",
            "only=queue_memory,fail=cuMemAllocFromPoolAsync:700:2",
            works,
        ),
        case("free_lists_are_drained_for_other_allocations", "only=free_lists,memory=3000000", works),
        // Recording any event would lose the device.
        case("queue_allocations_record_no_event", "only=queue_memory,fail=cuEventRecord:700:1", works),
        case("launch_and_wait_records_no_event", "only=waits,fail=cuEventRecord:700:1", works),
        case("a_mig_instance_reports_its_own_share", "only=share,mig=1,memory=500000000", works),
        case("a_whole_gpu_is_not_a_mig_instance", "only=share,memory=500000000", works),
        case("a_fault_reported_by_a_launch", "fail=cuLaunchKernel:719:2", lost),
        Case {
            name: "a_driver_without_optional_functions_works",
            defines: &["LACKS_OPTIONAL"],
            options: String::new(),
            check: works,
        },
        Case {
            name: "a_driver_that_counts_parameters_is_asked_for_no_more",
            defines: &["HAS_PARAM_COUNT"],
            options: "counted=1".to_owned(),
            check: works,
        },
        case("parameters_that_ptx_declares_are_not_counted_by_the_driver", "only=ptx,counted=1", works),
        Case {
            name: "a_driver_without_a_required_function_is_unavailable",
            defines: &["cuMemcpyAsync=cuMemcpyAsync_gone"],
            options: String::new(),
            check: unavailable,
        },
    ];
    for function in FUNCTIONS {
        for code in [1, 2, 999, 123_456, 700] {
            cases.push(Case {
                name: Box::leak(format!("{function}_fails_with_{code}").into_boxed_str()),
                defines: &[],
                options: format!("fail={function}:{code}:1"),
                check: |_| Ok(()),
            });
        }
    }
    cases
}

/// Functions that fail, one per case.
const FUNCTIONS: &[&str] = &[
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuCtxPushCurrent_v2",
    "cuCtxGetStreamPriorityRange",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemAllocManaged",
    "cuMemcpyAsync",
    "cuMemsetD32Async",
    "cuStreamCreateWithPriority",
    "cuStreamDestroy_v2",
    "cuStreamQuery",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventElapsedTime",
    "cuLinkAddData_v2",
    "cuLinkComplete",
    "cuLinkCreate_v2",
    "cuModuleLoadDataEx",
    "cuModuleGetFunction",
    "cuModuleUnload",
    "cuFuncGetAttribute",
    "cuLaunchKernel",
    "cuMemPoolCreate",
    "cuMemAllocFromPoolAsync",
    "cuMemFreeAsync",
    "cuGraphCreate",
    "cuGraphAddKernelNode_v2",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
];

fn works(outcome: &Outcome) -> std::result::Result<(), String> {
    if outcome.done && outcome.kinds.is_empty() {
        Ok(())
    } else {
        Err(format!("unexpected errors: {outcome:?}"))
    }
}

fn any_error(outcome: &Outcome) -> std::result::Result<(), String> {
    if outcome.kinds.is_empty() { Err("nothing failed".to_owned()) } else { Ok(()) }
}

fn unavailable(outcome: &Outcome) -> std::result::Result<(), String> {
    match outcome.kinds.as_slice() {
        [ErrorKind::Unavailable] if outcome.messages.contains(';') => Ok(()),
        _ => Err(format!("not `Unavailable` with a remedy: {outcome:?}")),
    }
}

fn lost(outcome: &Outcome) -> std::result::Result<(), String> {
    let says = |text: &str| outcome.messages.contains(text);
    if outcome.kinds.last() == Some(&ErrorKind::DeviceLost) && says("start another") && says("kernel `") {
        return Ok(());
    }
    Err(format!("not `DeviceLost` with the kernel's name: {outcome:?}"))
}

fn run(case: &Case, folder: &Path) -> std::result::Result<(), Failed> {
    static BUILDING: Mutex<()> = Mutex::new(());
    let building = BUILDING.lock();
    if !folder.join("libnvrtc.so.12").is_file() {
        std::fs::create_dir_all(folder)?;
        runtime_cuda_stub_tests::build(folder, case.defines)?;
    }
    drop(building);
    let mut command: Command = runtime_cuda_stub_tests::rerun_with_stub("drivers", folder, &case.options)?;
    let text = test_process::finish(&mut command, DEADLINE)?.success()?;
    Ok((case.check)(&parse(&text))?)
}

fn parse(text: &str) -> Outcome {
    let mut outcome = Outcome::default();
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("error", rest)) => {
                let (code, message) = rest.split_once(' ').unwrap_or((rest, ""));
                outcome.kinds.push(ErrorKind::from_code(code.parse().unwrap_or(0)));
                outcome.messages.push_str(message);
            }
            _ => outcome.done |= line == "done",
        }
    }
    outcome
}

/// The process that loads the stub: uses every feature briefly, and prints what fails.
#[allow(clippy::print_stdout, reason = "the parent reads it")]
pub(crate) fn child() -> ExitCode {
    let report =
        |error: &Error| println!("error {} {}", error.kind().code(), error.to_string().replace('\n', " "));
    let library: PathBuf = runtime_cuda_stub_tests::plugin_path().unwrap();
    // SAFETY: the backend of this workspace.
    #[allow(unsafe_code, reason = "loads the backend")]
    let runtime = unsafe { Runtime::builder().discover(false).library(library) }.build();
    let _ = (runtime.devices(), runtime.load_report());
    for _ in 0..2 {
        match runtime.open("cuda:0") {
            Err(error) => return report_unopened(&error),
            Ok(device) => match only(&std::env::var("STUB_CUDA").unwrap_or_default()) {
                None => use_everything(&*device, &report),
                Some(part) => {
                    if let Err(error) = part(&*device) {
                        report(&error);
                    }
                    break;
                }
            },
        }
    }
    println!("done");
    ExitCode::SUCCESS
}

/// The single part to run, if the options name one.
fn only(options: &str) -> Option<fn(&dyn CommonRuntime) -> Result<()>> {
    match options.split(',').find_map(|option| option.strip_prefix("only="))? {
        "share" => Some(share),
        "waits" => Some(waits),
        "free_lists" => Some(free_lists),
        "ptx" => Some(ptx),
        _ => Some(queue_memory),
    }
}

#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn report_unopened(error: &Error) -> ExitCode {
    println!("error {} {}", error.kind().code(), error.to_string().replace('\n', " "));
    ExitCode::SUCCESS
}

/// Reports failures and continues: what matters is that it ends.
fn use_everything(device: &dyn CommonRuntime, report: &dyn Fn(&Error)) {
    let parts: [fn(&dyn CommonRuntime) -> Result<()>; 6] =
        [kernels, compilation, memory, transfers, graphs, clocks];
    for part in parts {
        if let Err(error) = part(device)
            && !(error.kind() == ErrorKind::Unsupported)
        {
            report(&error);
        }
    }
}

fn done(event: &Event) -> Result<()> {
    event.wait_timeout(DEADLINE / 3)
}

fn memory(device: &dyn CommonRuntime) -> Result<()> {
    for space in ["device", "pinned", "shared"] {
        drop(device.allocate(DType::F32, &[1000], &Placement::space(space))?);
    }
    let queue = device.queue()?;
    drop(queue.allocate(DType::F32, &[1 << 20], &Placement::default())?);
    queue.wait_idle_timeout(DEADLINE / 3)?;
    device.memory_usage("device").map(drop)
}

/// Allocates and drops in order with a queue, without waiting.
fn queue_memory(device: &dyn CommonRuntime) -> Result<()> {
    let queue = device.queue()?;
    for _ in 0..100 {
        drop(queue.allocate(DType::F32, &[1 << 10], &Placement::default())?);
    }
    Ok(())
}

/// Memory in a free list counts as free, and serves other allocations.
fn free_lists(device: &dyn CommonRuntime) -> Result<()> {
    let queues = [device.queue()?, device.queue()?];
    for queue in &queues {
        drop(queue.allocate(DType::U8, &[1_000_000], &Placement::default())?);
    }
    assert_eq!(device.memory_usage("device")?.free_bytes, 3_000_000);
    let large = device.empty::<u8>([2_500_000])?;
    assert_eq!(device.memory_usage("device")?.free_bytes, 500_000);
    drop(large);
    queues[0].allocate(DType::U8, &[2_500_000], &Placement::default()).map(drop)
}

/// Waits for each launch before the next.
fn waits(device: &dyn CommonRuntime) -> Result<()> {
    // SAFETY: the kernel stays within its argument.
    let module = device.load(&unsafe { ModuleSource::native(CodeFormat::CUDA_C, CODE) })?;
    let (spin, queue) = (module.kernel("spin")?, device.queue()?);
    for _ in 0..20 {
        done(&queue.launch(&spin, Geometry::single(), &[Arg::scalar(100i64)])?)?;
    }
    Ok(())
}

/// Launches a kernel of PTX.
fn ptx(device: &dyn CommonRuntime) -> Result<()> {
    // SAFETY: the kernel stays within its argument.
    let module = device.load(&unsafe { ModuleSource::native(CodeFormat::PTX, PTX) })?;
    done(&device.queue()?.launch(&module.kernel("spin")?, Geometry::single(), &[Arg::scalar(100i64)])?)
}

/// The properties of a MIG instance are its own, not those of the GPU.
fn share(device: &dyn CommonRuntime) -> Result<()> {
    let mig = std::env::var("STUB_CUDA").is_ok_and(|options| options.contains("mig=1"));
    let info = device.info();
    assert_eq!(info.properties.flag("mig"), mig, "{info:?}");
    assert_eq!(info.uuid, Some([if mig { 0x60 } else { 0x40 }; 16]));
    assert_eq!(info.compute_units, Some(if mig { 1 } else { 4 }));
    assert_eq!(info.spaces[0].total_bytes, Some(500_000_000));
    assert_eq!(device.memory_usage("device")?.total_bytes, 500_000_000);
    Ok(())
}

fn transfers(device: &dyn CommonRuntime) -> Result<()> {
    for count in [10, 1 << 20] {
        let data: Vec<f32> = (0..count).map(|index| index as f32).collect();
        let tensor = device.tensor([data.len()], &data)?;
        let other = device.empty::<f32>([data.len()])?;
        let queue = device.queue()?;
        done(&queue.copy(&other, &tensor)?)?;
        assert_eq!(other.to_vec::<f32>()?, data);
        done(&queue.fill(&other, &1.0f64.to_le_bytes())?)?;
        done(&queue.fill(&other, &1.0f32.to_le_bytes())?)?;
        assert!(other.to_vec::<f32>()?.iter().all(|value| value.to_bits() == 1.0f32.to_bits()));
    }
    Ok(())
}

fn kernels(device: &dyn CommonRuntime) -> Result<()> {
    // SAFETY: the kernels stay within their arguments.
    let module = device.load(&unsafe { ModuleSource::native(CodeFormat::CUDA_C, CODE) })?;
    let (fill, spin) = (module.kernel("fill_f32")?, module.kernel("spin")?);
    let [a, b] = [device.queue()?, device.queue()?];
    let x = device.empty::<f32>([100])?;
    let args = [Arg::write(&x), Arg::scalar(2.0f32), Arg::scalar(100i64)];
    drop(a.launch(&spin, Geometry::single(), &[Arg::scalar(2000i64)])?);
    let first = a.launch(&fill, Geometry::cover(100, 32), &args)?;
    let second = b.launch(&fill, Geometry::cover(100, 32), &args)?;
    done(&second)?;
    done(&first)?;
    assert!(x.to_vec::<f32>()?.iter().all(|value| value.to_bits() == 2.0f32.to_bits()));
    Ok(())
}

/// Compiles PTX without loading it, and loads the result.
fn compilation(device: &dyn CommonRuntime) -> Result<()> {
    // SAFETY: nothing is launched.
    let compiled = device.compile(&unsafe { ModuleSource::native(CodeFormat::PTX, CODE) })?.native;
    // SAFETY: as above.
    device.load(&unsafe { ModuleSource::native(compiled.format, compiled.code) })?.kernel("spin").map(drop)
}

fn graphs(device: &dyn CommonRuntime) -> Result<()> {
    // SAFETY: the kernels stay within their arguments.
    let module = device.load(&unsafe { ModuleSource::native(CodeFormat::CUDA_C, CODE) })?;
    let (fill, queue) = (module.kernel("fill_f32")?, device.queue()?);
    let x = device.empty::<f32>([100])?;
    let args = [Arg::write(&x), Arg::scalar(3.0f32), Arg::scalar(100i64)];
    let graph = queue.record(|recorder| recorder.launch(&fill, Geometry::cover(100, 32), &args))?;
    let executable = queue.instantiate(&graph)?;
    done(&queue.replay(&executable)?)
}

fn clocks(device: &dyn CommonRuntime) -> Result<()> {
    let queue = device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() })?;
    let (begin, end) = (queue.timestamp()?, queue.timestamp()?);
    done(&end)?;
    let (begin, end) = (queue.read_timestamp(&begin)?, queue.read_timestamp(&end)?);
    assert!(begin <= end);
    Ok(())
}
