//! Which drivers there are: several in one process, one twice, none, no loader, and files that are no drivers. Each case is a process
//! of its own, which does a little of everything on every device.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use opencl::smoke_test::{self, Outcome};
use opencl::{DEADLINE, Driver, IcdFolder, current_program, stub};
use runtime_core::{CodeFormat, ErrorKind, ModuleSource, Runtime};

/// Set in a process that gives each device the others' binaries.
const EXCHANGE: &str = "RUNTIME_TEST_OPENCL_EXCHANGE";

/// Set in a process whose threads list the devices at the same time.
const LISTED_AT_ONCE: &str = "RUNTIME_TEST_OPENCL_LIST";

type Case = (&'static str, fn() -> Result<(), Failed>);

const CASES: &[Case] = &[
    ("one_driver_works", one_driver_works),
    ("several_drivers_work_in_one_process", several_drivers_work_in_one_process),
    ("the_order_is_the_same_each_time", the_order_is_the_same_each_time),
    ("a_driver_with_two_devices", a_driver_with_two_devices),
    ("a_driver_twice", a_driver_twice),
    ("no_driver_at_all", no_driver_at_all),
    ("no_folder_of_drivers", no_folder_of_drivers),
    ("a_driver_that_is_no_library", a_driver_that_is_no_library),
    ("a_driver_that_is_not_there", a_driver_that_is_not_there),
    ("a_library_that_is_no_driver", a_library_that_is_no_driver),
    ("broken_drivers_beside_a_good_one", broken_drivers_beside_a_good_one),
    ("no_loader", no_loader),
    ("a_truncated_loader", a_truncated_loader),
    ("a_loader_without_functions", a_loader_without_functions),
    ("a_loader_by_name_that_is_not_there", a_loader_by_name_that_is_not_there),
    ("binaries_of_another_driver", binaries_of_another_driver),
    ("threads_list_devices_at_once", threads_list_devices_at_once),
];

fn main() -> ExitCode {
    if std::env::var_os(EXCHANGE).is_some() {
        return exchange();
    }
    if std::env::var_os(LISTED_AT_ONCE).is_some() {
        return list_at_once();
    }
    if smoke_test::is_child() {
        return smoke_test::run();
    }
    let trials = match Driver::Pocl.library() {
        Ok(_) => CASES.iter().map(|(name, run)| Trial::test(*name, run)).collect(),
        Err(remedy) => vec![opencl::missing_trial(Driver::Pocl.requirement(), remedy)],
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The drivers of this machine, which has at least one.
fn here() -> Vec<Driver> {
    Driver::ALL.into_iter().filter(|driver| driver.library().is_ok()).collect()
}

fn icd_folder(drivers: &[Driver]) -> Result<IcdFolder, Failed> {
    IcdFolder::with_drivers(drivers).map_err(|(_, remedy)| Failed::from(remedy))
}

fn ask(icd_folder: &IcdFolder, change: impl FnOnce(&mut Command)) -> Result<Outcome, Failed> {
    let mut command = icd_folder.command(current_program()?)?;
    change(&mut command);
    Ok(smoke_test::run_child(&mut command, DEADLINE)?)
}

/// All devices did everything.
fn passed(outcome: &Outcome, devices: usize) -> Result<(), Failed> {
    let is_whole = outcome.devices.len() >= devices && outcome.passed == outcome.devices.len();
    if is_whole { Ok(()) } else { Err(format!("not {devices} devices that work: {outcome:?}").into()) }
}

/// A reason with these words, and not a crash.
fn unavailable(outcome: &Outcome, words: &[&str]) -> Result<(), Failed> {
    let text = outcome.messages();
    let is_said = words.iter().all(|word| text.contains(word));
    match outcome.errors.as_slice() {
        [(ErrorKind::Unavailable, _)] if is_said && outcome.devices.is_empty() => Ok(()),
        _ => Err(format!("not `Unavailable` with {words:?}: {outcome:?}").into()),
    }
}

fn one_driver_works() -> Result<(), Failed> {
    passed(&ask(&icd_folder(&[Driver::Pocl])?, |_| {})?, 1)
}

fn several_drivers_work_in_one_process() -> Result<(), Failed> {
    let outcome = ask(&icd_folder(&here())?, |_| {})?;
    passed(&outcome, here().len())
}

fn the_order_is_the_same_each_time() -> Result<(), Failed> {
    let mut drivers = here();
    let first = ask(&icd_folder(&drivers)?, |_| {})?.devices;
    // The files are written in another order.
    drivers.reverse();
    let second = ask(&icd_folder(&drivers)?, |_| {})?.devices;
    if first == second { Ok(()) } else { Err(format!("{first:?} and {second:?}").into()) }
}

fn a_driver_with_two_devices() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    passed(&ask(&icd_folder, |command| _ = command.env("POCL_DEVICES", "pthread pthread"))?, 2)
}

fn a_driver_twice() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    icd_folder.add("again", &Driver::Pocl.library()?);
    passed(&ask(&icd_folder, |_| {})?, 1)
}

fn no_driver_at_all() -> Result<(), Failed> {
    unavailable(&ask(&IcdFolder::empty(), |_| {})?, &["driver"])
}

fn no_folder_of_drivers() -> Result<(), Failed> {
    let icd_folder = IcdFolder::empty();
    let gone = icd_folder.path().join("gone");
    unavailable(&ask(&icd_folder, |command| _ = command.env("OCL_ICD_VENDORS", gone))?, &[])
}

fn a_driver_that_is_no_library() -> Result<(), Failed> {
    let icd_folder = IcdFolder::empty();
    let library = icd_folder.path().join("garbage.so");
    std::fs::write(&library, [0x7f, b'E', b'L', b'F', 1, 2, 3])?;
    icd_folder.add("garbage", library.to_str().unwrap());
    unavailable(&ask(&icd_folder, |_| {})?, &["garbage"])
}

fn a_driver_that_is_not_there() -> Result<(), Failed> {
    let icd_folder = IcdFolder::empty();
    icd_folder.add("gone", "/no/such/folder/libgone.so");
    unavailable(&ask(&icd_folder, |_| {})?, &["gone"])
}

fn a_library_that_is_no_driver() -> Result<(), Failed> {
    let icd_folder = IcdFolder::empty();
    icd_folder.add("empty", stub::build_empty(icd_folder.path(), "libempty.so")?.to_str().unwrap());
    unavailable(&ask(&icd_folder, |_| {})?, &[])
}

fn broken_drivers_beside_a_good_one() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    for (name, library) in [
        ("a-gone", "/no/such/libgone.so"),
        ("b-nothing", ""),
        ("c-folder", "/usr"),
        ("z-noise", "\u{1}\n\n\u{7f}"),
    ] {
        icd_folder.add(name, library);
    }
    std::fs::write(icd_folder.path().join("d-bytes.icd"), [0xff; 5000])?;
    std::fs::create_dir(icd_folder.path().join("e-folder.icd"))?;
    passed(&ask(&icd_folder, |_| {})?, 1)
}

/// The system looks into this folder first, and finds what is no library.
fn no_loader() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    std::fs::write(
        icd_folder.path().join("libOpenCL.so.1"),
        "this is no library, but longer than the header of one would be",
    )?;
    let folder = icd_folder.path().to_owned();
    unavailable(&ask(&icd_folder, |command| _ = command.env("LD_LIBRARY_PATH", folder))?, &["libOpenCL"])
}

/// The system would map the file, and the process would end when it is touched.
fn a_truncated_loader() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    let library = stub::build_empty(icd_folder.path(), "libOpenCL.so.1")?;
    let bytes = std::fs::read(&library)?;
    for end in [64, 4096, bytes.len() / 2] {
        std::fs::write(&library, &bytes[..end])?;
        let folder = library.parent().map(Path::to_owned).unwrap_or_default();
        let by_name = ask(&icd_folder, |command| _ = command.env("LD_LIBRARY_PATH", folder))?;
        unavailable(&by_name, &["libOpenCL.so.1: ", "truncated file"])?;
        let by_path = ask(&icd_folder, |command| _ = command.env("OPENCL_DYLIB_PATH", &library))?;
        passed(&by_path, 1).or_else(|_| unavailable(&by_path, &["truncated file"]))?;
    }
    Ok(())
}

fn a_loader_without_functions() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    let library = stub::build_empty(icd_folder.path(), "libOpenCL.so.1")?;
    let folder = library.parent().map(Path::to_owned).unwrap_or_default();
    unavailable(&ask(&icd_folder, |command| _ = command.env("LD_LIBRARY_PATH", folder))?, &[])
}

/// The system's is taken instead, or a reason is given.
fn a_loader_by_name_that_is_not_there() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    let outcome = ask(&icd_folder, |command| _ = command.env("OPENCL_DYLIB_PATH", "/no/such/libOpenCL.so"))?;
    passed(&outcome, 1).or_else(|_| unavailable(&outcome, &["/no/such/libOpenCL.so"]))
}

fn binaries_of_another_driver() -> Result<(), Failed> {
    let drivers: Vec<_> = here().into_iter().filter(|driver| *driver != Driver::Oclgrind).collect();
    let icd_folder = icd_folder(&drivers)?;
    let mut command = icd_folder.command(current_program()?)?;
    let said = opencl::finish(command.env(EXCHANGE, "1"), DEADLINE)?.success()?;
    let exchanged = said.lines().filter(|line| line.starts_with("refused")).count();
    let all = drivers.len() * (drivers.len() - 1);
    if exchanged == all { Ok(()) } else { Err(format!("{exchanged} of {all}:\n{said}").into()) }
}

/// PoCL 3.1 sets its devices up in the first call, and shows them to a second thread meanwhile: one such process in a few
/// crashed.
fn threads_list_devices_at_once() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    for _ in 0..16 {
        let mut command = icd_folder.command(current_program()?)?;
        opencl::finish(command.env(LISTED_AT_ONCE, "1"), DEADLINE)?.success()?;
    }
    Ok(())
}

/// Lists the devices on threads with a runtime each.
fn list_at_once() -> ExitCode {
    let threads = 8;
    let begin = std::sync::Barrier::new(threads);
    let list = || {
        let runtime = Runtime::new();
        begin.wait();
        runtime.devices().iter().filter(|info| info.id.target == "opencl").count()
    };
    let counts: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(list)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(counts.iter().all(|count| *count == counts[0] && *count > 0), "{counts:?}");
    ExitCode::SUCCESS
}

/// Gives every device what the others' drivers compiled, and says what it answers.
#[allow(
    clippy::print_stdout,
    unsafe_code,
    reason = "the parent reads it; it loads code that is not the device's"
)]
fn exchange() -> ExitCode {
    let binaries = opencl::driver_compiler::compile_on_all_devices("kernel void noop(void) {}");
    let runtime = Runtime::new();
    let load = |device: &str, code: &[u8]| {
        // SAFETY: it is not run.
        let source = unsafe { ModuleSource::native(CodeFormat::OPENCL_BINARY, code) };
        runtime.open(device).and_then(|device| device.load(&source)).map(drop)
    };
    for info in runtime.devices().iter().filter(|info| info.id.sub.is_none()) {
        for (name, code) in binaries.iter().filter(|(name, _)| *name != info.name) {
            match load(&info.id.to_string(), code) {
                Err(error) if error.kind() != ErrorKind::Internal => {
                    println!("refused by {}: {name}: {error}", info.name);
                }
                outcome => println!("wrong: {} takes that of {name}: {outcome:?}", info.name),
            }
        }
    }
    ExitCode::SUCCESS
}
