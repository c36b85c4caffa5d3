//! Simulators behind the offload library, on a fake SDK with a fake simulator: **stand-ins, not Kalray's.** They show how a simulator is
//! started and ended, and that nothing of it is left, however the process ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "loads native code")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use mppa::{FakeLibrary, FakeSdk, becomes, check, ends, is_running};
use opencl::{DEADLINE, IcdFolder, current_program};
use runtime_core::{
    Arg, CodeFormat, DType, Device, ErrorKind, Geometry, ModuleSource, Options, Placement, Runtime, Tensor,
};

/// Set in the child that uses the simulator, to its case.
const CHILD: &str = "RUNTIME_TEST_MPPA_SIMULATOR";
/// The folder of the fake SDK.
const SDK: &str = "KALRAY_TOOLCHAIN_DIR";
/// What the fake simulator reads.
const MODES: &str = "FAKE_SIMULATOR";
const IDS: &str = "FAKE_SIMULATOR_IDS";
/// A file without which the library makes no progress with a transfer of `HELD_BYTES`.
const HOLD: &str = "FAKE_HOLD";
const HELD_BYTES: usize = 1 << 16;
/// How long something may take that never comes. A machine under load needs seconds for what does come.
const PATIENCE_MS: i64 = 10_000;
/// Where the library and the simulator meet.
const FOLDER: &str = "MPPA_RPROC_SIM_PATH";
const ISS: &str = "mppa:offload-iss";
/// The case whose library hangs.
const NEVER_CLOSED: &str = "a_library_that_never_closes_its_simulator_holds_up_nothing";
const QEMU: &str = "mppa:offload-qemu";

/// A case: its name, how the simulator behaves, and what its child does.
type Case = (&'static str, &'static str, fn() -> Result<(), Failed>);

const CASES: [Case; 17] = [
    ("a_simulator_runs_while_its_device_is_open", "", runs),
    ("a_simulator_that_never_gets_ready_is_an_error_with_its_output", "silent polite forks", never_ready),
    ("a_simulator_that_ends_at_once_is_an_error_with_its_output", "ends", ends_at_once),
    ("a_simulator_without_a_socket_is_ready_when_it_says_so", "silent", ready_by_text),
    ("a_simulator_that_makes_only_files_is_ready_when_it_makes_no_more", "files", ready_by_files),
    ("a_simulator_that_dies_in_the_middle_of_a_launch_loses_the_device", "forks", dies_in_a_launch),
    ("a_simulator_that_dies_before_the_library_has_opened_it_is_an_error", "stuck", dies_before_it_is_open),
    ("a_library_that_never_opens_its_simulator_is_an_error", "stuck forks", never_open),
    (NEVER_CLOSED, "forks", never_closed),
    ("a_read_that_outlives_its_device_leaves_host_memory_alone", "", read_outlives),
    ("a_write_that_outlives_its_device_leaves_host_memory_alone", "", write_outlives),
    ("a_simulator_that_died_can_be_opened_again", "", opened_again),
    ("a_simulator_that_ignores_sigterm_is_killed", "stubborn", closed),
    ("what_a_simulator_forks_ends_with_it", "forks stubborn", closed),
    ("a_panic_ends_the_simulator", "forks stubborn", panics),
    ("a_process_that_exits_with_an_open_device_leaves_no_simulator", "forks stubborn", exits),
    ("a_process_has_one_simulator_at_a_time", "", one_at_a_time),
];

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    let wanted = std::env::var(CHILD).ok()?;
    let case = CASES.into_iter().find(|(name, ..)| *name == wanted);
    let run = move || case.map_or_else(until_killed, |(_, _, run)| run());
    Some(libtest_mimic::run(&Arguments::default(), vec![Trial::test(wanted, run)]).exit_code())
}

pub(crate) fn trials() -> Vec<Trial> {
    let case = |case: &'static Case| {
        Trial::test(format!("simulators::{}", case.0), move || start(&Machine::new(), case))
    };
    let mut trials: Vec<_> = CASES.iter().map(case).collect();
    trials.push(Trial::test("simulators::a_process_that_is_killed_leaves_no_simulator", killed));
    trials.push(Trial::test(
        "simulators::two_processes_have_simulators_in_folders_of_their_own",
        two_processes,
    ));
    trials
}

/// A fake SDK with both simulators.
struct Machine(FakeSdk);

impl Machine {
    fn new() -> Self {
        let sdk = FakeSdk::new(0);
        sdk.simulator("kvx-cluster");
        sdk.simulator("kvx-qemu-offload-bridge");
        std::fs::write(sdk.path().join("program.elf"), sdk.program()).unwrap();
        sdk.write("ids", "").write("go", "");
        Self(sdk)
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("simulation/mymppa")
    }

    /// A child for a case, in a process that was started for simulators.
    fn command(&self, name: &str, modes: &str) -> Result<Command, Failed> {
        let mut command = mppa::command(&IcdFolder::empty(), current_program()?)?;
        command.env(CHILD, name).envs(self.0.variables()).env(MODES, modes);
        command.env(IDS, self.0.path().join("ids")).env(HOLD, self.0.path().join("go"));
        command.env("MPPA_RPROC_PLATFORM_MODE", "sim").env(FOLDER, self.folder());
        if name == NEVER_CLOSED {
            command.env("FAKE_HANG", " destroy:0;");
        }
        Ok(command)
    }

    fn check_all_ended(&self) -> Result<(), Failed> {
        let ids = ids(&self.0.path().join("ids"));
        check(!ids.is_empty() && ids.iter().all(|id| ends(id)), || format!("one of {ids:?} still runs"))
    }
}

fn start(machine: &Machine, (name, modes, _): &Case) -> Result<(), Failed> {
    opencl::finish(&mut machine.command(name, modes)?, DEADLINE)?.success()?;
    machine.check_all_ended()
}

/// The numbers of the simulator's processes.
fn ids(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
}

fn our_ids() -> Vec<String> {
    ids(Path::new(&std::env::var_os(IDS).unwrap()))
}

/// Checks, in the child, that every simulator has ended and its folder was removed.
fn nothing_is_left() -> Result<(), Failed> {
    let ids = our_ids();
    // A signal takes a moment; only the leader is waited for.
    check(!ids.is_empty() && !is_running(&ids[0]) && ids.iter().all(|id| ends(id)), || {
        format!("one of {ids:?} still runs")
    })?;
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    // A thread that was in the library removes it.
    check(becomes(|| !folder.exists()), || format!("{} is left", folder.display()))
}

fn runtime() -> Runtime {
    Runtime::builder().build()
}

fn program() -> ModuleSource {
    let path = Path::new(&std::env::var_os(SDK).unwrap()).join("program.elf");
    // SAFETY: its kernels take what the tests pass.
    unsafe { ModuleSource::native(CodeFormat::ELF, std::fs::read(path).unwrap()) }
}

fn double(device: &Device) -> Result<(), Failed> {
    let x = device.allocate(DType::U8, &[3], &Placement::default())?;
    x.write(&[1u8, 20, 100])?;
    let kernel = device.kernel(program(), "twice")?;
    let args = [Arg::read_write(&x), Arg::scalar(3u64)];
    device.queue()?.launch(&kernel, Geometry::default(), &args)?.wait()?;
    let given = x.to_vec::<u8>()?;
    check(given == [2, 40, 200], || format!("{given:?}"))
}

fn runs() -> Result<(), Failed> {
    let runtime = runtime();
    for (round, name) in [ISS, QEMU, ISS].into_iter().enumerate() {
        let device = runtime.open(name)?;
        let cluster = runtime.open(&format!("mppa:{}.3", device.info().id.index))?;
        double(&device)?;
        double(&cluster)?;
        only_three_events_are_counted(&device)?;
        let ids = our_ids();
        check(ids.len() == round + 1 && is_running(&ids[round]), || format!("{ids:?}"))?;
        drop(device);
        check(is_running(&ids[round]), || "the cluster lost its simulator".to_owned())?;
        drop(cluster);
        check(!is_running(&ids[round]), || format!("{ids:?}"))?;
        nothing_is_left()?;
    }
    Ok(())
}

fn only_three_events_are_counted(device: &Device) -> Result<(), Failed> {
    let set =
        device.counter_set(&["ENIE", "DCME"].map(|event| format!("mppa.{event}.cluster.sum.pe.sum")))?;
    let reasons = [set.unavailable_reason(0), set.unavailable_reason(1)];
    let is_explained = reasons[0].is_none() && reasons[1].is_some_and(|reason| reason.contains("ENIE"));
    check(is_explained, || format!("{reasons:?}"))
}

fn never_ready() -> Result<(), Failed> {
    let error = runtime().open_with(ISS, &Options::new().with("ready_timeout_ms", PATIENCE_MS)).unwrap_err();
    let has_all = ["no licence", "made no socket", "kvx-cluster", "\"ready\""]
        .iter()
        .all(|word| error.message().contains(word));
    check(error.kind() == ErrorKind::Timeout && has_all, || error.to_string())?;
    check(our_ids().len() == 2, || format!("{:?}", our_ids()))?;
    let was_asked = Path::new(&std::env::var_os(IDS).unwrap()).with_extension("terminated").exists();
    check(was_asked, || "it was killed without SIGTERM".to_owned())?;
    nothing_is_left()
}

/// Kills the simulator once the library has been called.
fn kill_after(call: &'static str) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        assert!(becomes(|| fake_log().contains(call)), "{}", fake_log());
        kill(&our_ids()[0]);
    })
}

fn dies_before_it_is_open() -> Result<(), Failed> {
    let killer = kill_after("create");
    let error = runtime().open(ISS).unwrap_err();
    killer.join().unwrap();
    check(error.kind() == ErrorKind::DeviceLost && error.message().contains("no licence"), || {
        error.to_string()
    })?;
    nothing_is_left()
}

fn never_open() -> Result<(), Failed> {
    let error = runtime().open_with(ISS, &Options::new().with("ready_timeout_ms", PATIENCE_MS)).unwrap_err();
    let has_all = ["no licence", "mppa_offload_create has not returned"]
        .iter()
        .all(|word| error.message().contains(word));
    check(error.kind() == ErrorKind::Timeout && has_all, || error.to_string())?;
    nothing_is_left()
}

fn never_closed() -> Result<(), Failed> {
    let runtime = runtime();
    let device = runtime.open_with(ISS, &Options::new().with("call_timeout_ms", 10_000))?;
    double(&device)?;
    drop(device);
    nothing_is_left()?;
    let error = runtime.open(ISS).unwrap_err();
    check(error.kind() == ErrorKind::DeviceLost && error.message().contains("restart this process"), || {
        error.to_string()
    })
}

/// Loses the device in the middle of a transfer, which the library ends later.
fn lose_during(transfer: impl FnOnce(&Tensor) -> runtime_core::Result<()>) -> Result<(), Failed> {
    let device = runtime().open(ISS)?;
    let x = device.tensor([HELD_BYTES], &vec![1u8; HELD_BYTES])?;
    std::fs::remove_file(std::env::var_os(HOLD).unwrap())?;
    let killer = kill_after("held");
    let error = transfer(&x).unwrap_err();
    killer.join().unwrap();
    check(error.kind() == ErrorKind::DeviceLost, || error.to_string())
}

/// Lets the library end the transfer.
fn end_transfer(words: &str) -> Result<(), Failed> {
    std::fs::write(std::env::var_os(HOLD).unwrap(), "")?;
    check(becomes(|| fake_log().contains("transferred")), fake_log)?;
    check(fake_log().contains(words), fake_log)?;
    // What the backend does after the call takes a moment.
    std::thread::sleep(Duration::from_millis(100));
    Ok(())
}

fn read_outlives() -> Result<(), Failed> {
    let mut bytes = vec![7u8; HELD_BYTES];
    lose_during(|x| x.read_bytes(&mut bytes))?;
    end_transfer("transferred")?;
    check(bytes == vec![7u8; HELD_BYTES], || "it was written to".to_owned())
}

fn write_outlives() -> Result<(), Failed> {
    let mut bytes = vec![7u8; HELD_BYTES];
    lose_during(|x| x.write_bytes(&bytes))?;
    bytes.fill(9);
    end_transfer("transferred 7")
}

fn ends_at_once() -> Result<(), Failed> {
    for _ in 0..2 {
        let error = runtime().open(QEMU).unwrap_err();
        let has_all = ["no licence", "exit status: 7"].iter().all(|word| error.message().contains(word));
        check(error.kind() == ErrorKind::Failed && has_all, || error.to_string())?;
        nothing_is_left()?;
    }
    Ok(())
}

fn ready_by_text() -> Result<(), Failed> {
    let runtime = runtime();
    let ready = |text: &str| Options::new().with("ready", text);
    let device = runtime.open_with(ISS, &ready("accepting connections"))?;
    double(&device)?;
    let patient = ready("accepting connections").with("ready_timeout_ms", PATIENCE_MS);
    double(&runtime.open_with(ISS, &patient)?)?;
    let other = runtime.open_with(ISS, &ready("another text")).unwrap_err();
    check(other.message().contains("open with other options"), || other.to_string())?;
    drop(device);
    nothing_is_left()
}

fn ready_by_files() -> Result<(), Failed> {
    closed()
}

fn closed() -> Result<(), Failed> {
    let device = runtime().open(ISS)?;
    double(&device)?;
    drop(device);
    nothing_is_left()
}

fn kill(id: &str) {
    assert!(Command::new("kill").args(["-9", id]).status().unwrap().success());
}

/// The calls that the fake library got.
fn fake_log() -> String {
    FakeLibrary::of(std::env::var_os(SDK).unwrap().as_ref()).log()
}

fn dies_in_a_launch() -> Result<(), Failed> {
    let runtime = runtime();
    let device = runtime.open(ISS)?;
    let flag = device.tensor([1], &[0i32])?;
    let (kernel, other) = (device.kernel(program(), "hold")?, device.load(&program())?);
    let queue = device.queue()?;
    let event = queue.launch(&kernel, Geometry::default(), &[Arg::read_write(&flag)])?;
    let killer = kill_after("exec 0");
    let error = event.wait().unwrap_err();
    killer.join().unwrap();
    check(error.kind() == ErrorKind::DeviceLost && error.to_string().contains("no licence"), || {
        error.to_string()
    })?;
    // The library's call has not returned, and nothing waits for it.
    drop((other, flag, kernel, queue, device));
    let error = runtime.open(ISS).unwrap_err();
    check(error.message().contains("restart this process"), || error.to_string())
}

fn opened_again() -> Result<(), Failed> {
    let runtime = runtime();
    let device = runtime.open(ISS)?;
    let x = device.tensor([1], &[1u8])?;
    kill(&our_ids()[0]);
    check(ends(&our_ids()[0]), || "it was killed".to_owned())?;
    let error = x.write(&[2u8]).unwrap_err();
    check(error.kind() == ErrorKind::DeviceLost, || error.to_string())?;
    drop((x, device));
    nothing_is_left()?;
    double(&runtime.open(ISS)?)
}

fn panics() -> Result<(), Failed> {
    let thread = std::thread::spawn(|| {
        let device = runtime().open(ISS).unwrap();
        double(&device).unwrap();
        panic!("in the middle of its use");
    });
    check(thread.join().is_err(), || "no panic".to_owned())?;
    nothing_is_left()
}

fn exits() -> Result<(), Failed> {
    std::mem::forget(runtime().open(ISS)?);
    std::process::exit(0)
}

fn one_at_a_time() -> Result<(), Failed> {
    let runtime = runtime();
    let device = runtime.open(ISS)?;
    let error = runtime.open(QEMU).unwrap_err();
    let is_explained = error.message().contains("used by another simulator");
    check(error.kind() == ErrorKind::Unavailable && is_explained, || error.to_string())?;
    double(&device)?;
    drop(device);
    double(&runtime.open(QEMU)?)
}

/// Opens a device, reports it, and waits.
fn until_killed() -> Result<(), Failed> {
    let device = runtime().open(ISS)?;
    double(&device)?;
    std::fs::write(Path::new(&std::env::var_os(SDK).unwrap()).join("opened"), "")?;
    std::thread::sleep(DEADLINE);
    Err("it was not killed".into())
}

fn killed() -> Result<(), Failed> {
    let machine = Machine::new();
    let mut child = machine.command("until_killed", "forks stubborn")?.spawn()?;
    let _ = becomes(|| machine.0.path().join("opened").exists());
    let ids = ids(&machine.0.path().join("ids"));
    let were_running = ids.iter().all(|id| is_running(id));
    child.kill()?;
    child.wait()?;
    check(ids.len() == 2 && were_running, || format!("{ids:?}"))?;
    machine.check_all_ended()?;
    check(machine.folder().exists(), || "the folder has been removed".to_owned())?;
    // What the killed process left is no obstacle.
    machine.0.write("ids", "");
    start(&machine, &("what_a_simulator_forks_ends_with_it", "forks stubborn", closed))
}

fn two_processes() -> Result<(), Failed> {
    std::thread::scope(|scope| {
        let run = || start(&Machine::new(), &CASES[0]).map_err(|failed| format!("{failed:?}"));
        let threads = [scope.spawn(run), scope.spawn(run)];
        threads.into_iter().try_for_each(|thread| thread.join().unwrap().map_err(Failed::from))
    })
}
