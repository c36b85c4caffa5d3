//! The offload transport as a device, on a fake SDK whose chip is this machine: **a stand-in, not an MPPA.** It also runs the cases of
//! the conformance suite that its kernels support.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "controls the fake library, and loads native code")]

use std::ffi::c_int;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use mppa::{FakeLibrary, FakeSdk, check};
use opencl::{DEADLINE, IcdFolder, current_program};
use runtime_conformance::{Exception, Expectation, Selection};
use runtime_core::{
    Arg, CodeFormat, Device, Error, ErrorKind, Geometry, ModuleSource, Options, Placement, Runtime,
};

/// Set in the child that sees the fake machine, to its case.
const CHILD: &str = "RUNTIME_TEST_MPPA_OFFLOAD";
/// The folder of the fake SDK.
const SDK: &str = "KALRAY_TOOLCHAIN_DIR";
/// The program of the fake chip.
const PROGRAM: &str = "RUNTIME_TEST_MPPA_PROGRAM";
const SUITE: &str = "suite";
const DEVICE: &str = "mppa:offload";

/// A case: its name, the chips of its machine, and what its child does.
type Case = (&'static str, u32, fn(&Machine) -> Result<(), Failed>);

const CASES: [Case; 7] = [
    ("a_kernel_of_an_elf_file_runs_on_tensors_of_every_memory", 1, every_memory),
    ("a_cluster_is_a_sub_device_and_shares_its_chip", 1, clusters),
    ("a_kernel_runs_on_several_clusters", 1, several_clusters),
    ("every_call_may_fail_at_every_position_below_a_device", 1, every_failure),
    ("chips_are_opened_side_by_side", 2, two_chips),
    ("counters_are_read_by_the_program_in_several_passes", 1, counters),
    ("a_failure_of_the_counters_is_an_error_and_kernels_still_run", 1, failing_counters),
];

/// What the transport cannot do.
const EXCEPTIONS: [Exception; 1] = [Exception {
    backend: "mppa",
    pattern: "queues::a_busy_queue_holds_up_no_other",
    expectation: Expectation::Unsupported,
    reason: "calls to a chip are made one after the other, and a call waits for its kernel",
}];

/// What a child sees.
struct Machine {
    runtime: Runtime,
    library: FakeLibrary,
}

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    let wanted = std::env::var(CHILD).ok()?;
    Some(if wanted == SUITE { suite(&Arguments::default()) } else { run_case(&wanted) })
}

pub(crate) fn trials() -> Vec<Trial> {
    let case =
        |&(name, chips, _): &Case| Trial::test(format!("offload_device::{name}"), move || start(name, chips));
    let mut trials: Vec<_> = CASES.iter().map(case).collect();
    trials.push(Trial::test("offload_device::the_conformance_suite_passes", || start(SUITE, 1)));
    trials
}

fn start(name: &str, chips: u32) -> Result<(), Failed> {
    let sdk = FakeSdk::new(chips);
    let drivers = IcdFolder::empty();
    let mut command = mppa::command(&drivers, current_program()?)?;
    let kernels = sdk.path().join("kernels");
    std::fs::create_dir(&kernels)?;
    let program = kernels.join("suite.elf");
    std::fs::write(&program, sdk.program())?;
    command.env(CHILD, name).envs(sdk.variables());
    command.env(PROGRAM, program);
    opencl::finish(&mut command, DEADLINE)?.success()?;
    Ok(())
}

fn run_case(wanted: &str) -> ExitCode {
    let (name, _, run) = CASES.into_iter().find(|(name, ..)| *name == wanted).unwrap();
    let run = move || {
        let library = FakeLibrary::of(std::env::var_os(SDK).unwrap().as_ref());
        run(&Machine { runtime: Runtime::builder().build(), library })
    };
    libtest_mimic::run(&Arguments::default(), vec![Trial::test(name, run)]).exit_code()
}

fn suite(arguments: &Arguments) -> ExitCode {
    let library = match mppa::backend() {
        Ok(library) => library.to_string_lossy().into_owned(),
        Err(reason) => return opencl::cannot_run(&reason),
    };
    let kernels = std::path::PathBuf::from(std::env::var_os(PROGRAM).unwrap()).parent().unwrap().to_owned();
    let selection = Selection {
        required: vec!["mppa".to_owned()],
        kernels: Some(kernels),
        exceptions: &EXCEPTIONS,
        ..Selection::new(vec![library])
    };
    runtime_conformance::run(&selection, arguments)
}

fn program() -> ModuleSource {
    let code = std::fs::read(std::env::var_os(PROGRAM).unwrap()).unwrap();
    // SAFETY: its kernels take what the tests pass.
    unsafe { ModuleSource::native(CodeFormat::ELF, code) }
}

/// Doubles bytes in a memory space, through a queue.
fn double(device: &Device, space: &str) -> runtime_core::Result<Vec<u8>> {
    let x = device.allocate(runtime_core::DType::U8, &[3], &Placement::space(space))?;
    x.write(&[1u8, 20, 100])?;
    let kernel = device.kernel(program(), "twice")?;
    device
        .queue()?
        .launch(&kernel, Geometry::default(), &[Arg::read_write(&x), Arg::scalar(3u64)])?
        .wait()?;
    x.to_vec::<u8>()
}

fn every_memory(machine: &Machine) -> Result<(), Failed> {
    let device = machine.runtime.open(DEVICE)?;
    let spaces: Vec<_> = device.info().spaces.iter().map(|space| space.name.clone()).collect();
    check(spaces == ["device", "cluster0", "cluster1", "cluster2", "cluster3", "cluster4"], || {
        format!("{spaces:?}")
    })?;
    for space in &spaces {
        let given = double(&device, space)?;
        check(given == [2, 40, 200], || format!("{space}: {given:?}"))?;
    }
    let stand_in = device.info().properties.text("board_type").unwrap_or_default().to_owned();
    check(stand_in.contains("not an MPPA"), || stand_in)?;
    let missing = device.kernel(program(), "no_such_kernel").unwrap_err();
    check(missing.kind() == ErrorKind::NotFound, || missing.to_string())?;
    drop(device);
    let log = machine.library.log();
    check(machine.library.number("fake_live") == 0 && !log.contains("WRONG"), || log)
}

fn clusters(machine: &Machine) -> Result<(), Failed> {
    let chip = machine.runtime.open(DEVICE)?;
    let index = chip.info().id.index;
    let cluster = machine.runtime.open(&format!("mppa:{index}.3"))?;
    let names: Vec<_> = cluster.info().spaces.iter().map(|space| space.name.clone()).collect();
    check(names == ["device", "cluster3"], || format!("{names:?}"))?;
    check(double(&cluster, "cluster3")? == [2, 40, 200], || "wrong values".to_owned())?;
    let log = machine.library.log();
    check(log.matches("create ").count() == 1, || format!("the chip is opened once: {log}"))?;
    check(log.contains("exec 3"), || format!("the kernel runs on the cluster: {log}"))?;
    let several = program().option("clusters", 2);
    let refused = cluster.load(&several).unwrap_err();
    check(refused.message().contains("single cluster"), || refused.to_string())?;
    let firmware = Options::new().with("firmware", "/other.elf");
    let unsafely = machine.runtime.open_with(DEVICE, &firmware).unwrap_err();
    check(unsafely.message().contains("open_with_code"), || unsafely.to_string())?;
    // SAFETY: it is not opened.
    let other = unsafe { machine.runtime.open_with_code(DEVICE, &firmware) }.unwrap_err();
    check(other.message().contains("is open with firmware"), || other.to_string())
}

fn several_clusters(machine: &Machine) -> Result<(), Failed> {
    let device = machine.runtime.open(DEVICE)?;
    let seen = device.tensor([5], &[0i32; 5])?;
    let source = program().option("clusters", 3);
    let kernel = device.kernel(source, "clusters")?;
    device.queue()?.launch(&kernel, Geometry::default(), &[Arg::read_write(&seen)])?.wait()?;
    let seen = seen.to_vec::<i32>()?;
    check(seen == [1, 1, 1, 0, 0], || format!("{seen:?}"))?;
    let refused = device.load(&program().option("clusters", 6)).unwrap_err();
    check(refused.kind() == ErrorKind::InvalidArgument, || refused.to_string())
}

/// Everything that a device does, and whether its results are right.
fn use_device(machine: &Machine) -> runtime_core::Result<()> {
    let device = machine.runtime.open(DEVICE)?;
    let wrong = |given: &[u8]| Error::new(ErrorKind::Internal, format!("wrong values: {given:?}"));
    let given = double(&device, "device")?;
    if given != [2, 40, 200] {
        return Err(wrong(&given));
    }
    let (x, y) = (device.tensor([3], &[1u8, 2, 3])?, device.tensor([3], &[0u8; 3])?);
    let queue = device.queue()?;
    queue.copy(&y, &x)?.wait()?;
    let given = y.to_vec::<u8>()?;
    if given == [1, 2, 3] { Ok(()) } else { Err(wrong(&given)) }
}

fn every_failure(machine: &Machine) -> Result<(), Failed> {
    machine.library.reset(0);
    use_device(machine)?;
    let calls: Vec<_> = machine.library.log().lines().map(str::to_owned).collect();
    check(calls.len() > 20, || format!("{calls:?}"))?;
    for (position, name) in (1..).zip(&calls) {
        machine.library.reset(position);
        let outcome = use_device(machine);
        let log = machine.library.log();
        let about = || {
            format!(
                "{name}, call {position}: {outcome:?}, {} live: {log}",
                machine.library.number("fake_live")
            )
        };
        check(!log.contains("WRONG") && machine.library.number("fake_live") == 0, about)?;
        let releases = ["free", "unload", "destroy"].contains(&name.as_str());
        check(outcome.is_ok() == releases, about)?;
        if let Err(error) = &outcome {
            check(error.kind() != ErrorKind::Internal, about)?;
        }
    }
    machine.library.reset(0);
    use_device(machine)?;
    Ok(())
}

fn two_chips(machine: &Machine) -> Result<(), Failed> {
    let listed = machine.runtime.devices();
    let chips = listed.iter().filter(|info| info.name == "Offload" && info.id.sub.is_none());
    let names: Vec<_> = chips.map(|info| info.id.to_string()).collect();
    check(names.len() == 2, || format!("{names:?}"))?;
    let opened = std::thread::scope(|scope| {
        let threads: Vec<_> = names.iter().map(|name| scope.spawn(|| machine.runtime.open(name))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<runtime_core::Result<Vec<_>>>()
    })?;
    for device in &opened {
        check(double(device, "device")? == [2, 40, 200], || "wrong values".to_owned())?;
    }
    let log = machine.library.log();
    check(log.contains("create 0 kalray/opencl/kv3-2/ocl_fw_l1.elf") && log.contains("create 1 "), || log)
}

fn counters(machine: &Machine) -> Result<(), Failed> {
    let device = machine.runtime.open(DEVICE)?;
    // Nine events: two passes. Numbers 0 to 8.
    let events = ["PCC", "ICC", "EBE", "ENIE", "ENSE", "ICHE", "ICME", "ICMABE", "MNGIC"];
    let mut names: Vec<_> = events.map(|event| format!("mppa.{event}.cluster.2.pe.3")).into();
    names.push("mppa.ICC.cluster.sum.pe.max".to_owned());
    let listed = device.counters()?;
    check(listed.iter().any(|info| info.name == names[9] && info.unit.as_deref() == Some("cycles")), || {
        format!("{} counters", listed.len())
    })?;
    let mut set = device.counter_set(&names)?;
    check(set.passes() == 2, || format!("{} passes", set.passes()))?;
    let (kernel, calls) = (device.kernel(program(), "counted")?, device.tensor([1], &[0i32])?);
    let queue = device.queue()?;
    let readings = set.measure(|| {
        (0..2).try_for_each(|_| {
            queue.launch(&kernel, Geometry::default(), &[Arg::read_write(&calls)]).map(drop)
        })?;
        queue.wait_idle()
    })?;
    let values: Vec<_> =
        readings.iter().map(|reading| reading.as_ref().map(|reading| reading.value)).collect();
    let expected = (0..9u32).map(|event| Some(2.0 * (1000.0 * f64::from(event) + 203.0)));
    let sum: f64 = (0..5u32).map(|cluster| 2.0 * (1015.0 + 100.0 * f64::from(cluster))).sum();
    let expected: Vec<_> = expected.chain([Some(sum)]).collect();
    check(values == expected, || format!("{values:?}, expected {expected:?}"))?;
    let unknown = device.counter_set(&["mppa.PCC.cluster.5.pe.0".to_owned()]).unwrap_err();
    check(unknown.kind() == ErrorKind::NotFound, || unknown.to_string())
}

/// The ancestor returned no times if there were no counters.
fn failing_counters(machine: &Machine) -> Result<(), Failed> {
    let device = machine.runtime.open(DEVICE)?;
    let mut set = device.counter_set(&["mppa.PCC.cluster.sum.pe.sum".to_owned()])?;
    let none = set.measure(|| Ok(())).unwrap_err();
    check(none.kind() == ErrorKind::Unavailable && none.message().contains("no program is loaded"), || {
        none.to_string()
    })?;
    let (kernel, calls) = (device.kernel(program(), "counted")?, device.tensor([1], &[0i32])?);
    let queue = device.queue()?;
    let mut run = || queue.launch(&kernel, Geometry::default(), &[Arg::read_write(&calls)])?.wait();
    run()?;
    machine.library.reset(0);
    set.measure(&mut run)?;
    let length = c_int::try_from(machine.library.log().lines().count())?;
    for position in 1..=length {
        machine.library.reset(position);
        let outcome = set.measure(|| Ok(()));
        let log = machine.library.log();
        check(!log.contains("WRONG"), || format!("call {position}: {outcome:?}: {log}"))?;
        machine.library.reset(0);
        run()?;
    }
    Ok(())
}
