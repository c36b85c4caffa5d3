//! Discovery of drivers: several in one process, one twice, none, no loader, and files that are not drivers. Each case is a child
//! process that runs the smoke test.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Failed, Trial};
use opencl::smoke_test::{self, Outcome};
use opencl::{DEADLINE, Driver, IcdFolder, current_program, stub};
use runtime_core::{CodeFormat, ErrorKind, ModuleSource, Runtime};

/// Set in a child that loads each driver's binaries on the other drivers' devices.
const EXCHANGE: &str = "RUNTIME_TEST_OPENCL_EXCHANGE";

/// Set in a child whose threads list the devices concurrently.
const CONCURRENT_LISTING: &str = "RUNTIME_TEST_OPENCL_CONCURRENT_LISTING";

type Case = (&'static str, fn() -> Result<(), Failed>);

const CASES: &[Case] = &[
    ("one_driver_works", one_driver_works),
    ("several_drivers_work_in_one_process", several_drivers_work_in_one_process),
    ("the_order_of_devices_is_stable", the_order_of_devices_is_stable),
    ("a_driver_with_two_devices", a_driver_with_two_devices),
    ("a_driver_registered_twice", a_driver_registered_twice),
    ("no_driver_at_all", no_driver_at_all),
    ("a_missing_icd_folder", a_missing_icd_folder),
    ("a_driver_that_is_not_a_library", a_driver_that_is_not_a_library),
    ("a_missing_driver", a_missing_driver),
    ("a_library_that_is_not_a_driver", a_library_that_is_not_a_driver),
    ("broken_drivers_beside_a_good_one", broken_drivers_beside_a_good_one),
    ("no_loader", no_loader),
    ("a_truncated_loader", a_truncated_loader),
    ("a_loader_without_functions", a_loader_without_functions),
    ("a_missing_loader_in_the_environment", a_missing_loader_in_the_environment),
    ("binaries_of_another_driver", binaries_of_another_driver),
    ("threads_list_devices_concurrently", threads_list_devices_concurrently),
];

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    if std::env::var_os(EXCHANGE).is_some() {
        return Some(exchange());
    }
    std::env::var_os(CONCURRENT_LISTING).map(|_| list_concurrently())
}

pub(crate) fn trials() -> Vec<Trial> {
    match Driver::Pocl.library() {
        Ok(_) => {
            CASES.iter().map(|(name, run)| Trial::test(format!("driver_discovery::{name}"), run)).collect()
        }
        Err(remedy) => vec![opencl::missing_trial(Driver::Pocl.requirement(), remedy)],
    }
}

/// The drivers installed on this machine, at least one.
fn installed() -> Vec<Driver> {
    Driver::ALL.into_iter().filter(|driver| driver.library().is_ok()).collect()
}

fn icd_folder(drivers: &[Driver]) -> Result<IcdFolder, Failed> {
    IcdFolder::with_drivers(drivers).map_err(|(_, remedy)| Failed::from(remedy))
}

fn run_smoke_test(icd_folder: &IcdFolder, change: impl FnOnce(&mut Command)) -> Result<Outcome, Failed> {
    let mut command = icd_folder.command(current_program()?)?;
    change(&mut command);
    Ok(smoke_test::run_child(&mut command, DEADLINE)?)
}

/// At least `devices` devices were found, and all passed.
fn passed(outcome: &Outcome, devices: usize) -> Result<(), Failed> {
    let all_passed = outcome.devices.len() >= devices && outcome.passed == outcome.devices.len();
    if all_passed { Ok(()) } else { Err(format!("not {devices} working devices: {outcome:?}").into()) }
}

/// One `Unavailable` error with these words, and no devices.
fn unavailable(outcome: &Outcome, words: &[&str]) -> Result<(), Failed> {
    let text = outcome.messages();
    let has_words = words.iter().all(|word| text.contains(word));
    match outcome.errors.as_slice() {
        [(ErrorKind::Unavailable, _)] if has_words && outcome.devices.is_empty() => Ok(()),
        _ => Err(format!("not `Unavailable` with {words:?}: {outcome:?}").into()),
    }
}

fn one_driver_works() -> Result<(), Failed> {
    passed(&run_smoke_test(&icd_folder(&[Driver::Pocl])?, |_| {})?, 1)
}

fn several_drivers_work_in_one_process() -> Result<(), Failed> {
    let outcome = run_smoke_test(&icd_folder(&installed())?, |_| {})?;
    passed(&outcome, installed().len())
}

fn the_order_of_devices_is_stable() -> Result<(), Failed> {
    let mut drivers = installed();
    let first = run_smoke_test(&icd_folder(&drivers)?, |_| {})?.devices;
    // Write the files in another order.
    drivers.reverse();
    let second = run_smoke_test(&icd_folder(&drivers)?, |_| {})?.devices;
    if first == second { Ok(()) } else { Err(format!("{first:?} and {second:?}").into()) }
}

fn a_driver_with_two_devices() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    passed(&run_smoke_test(&icd_folder, |command| _ = command.env("POCL_DEVICES", "pthread pthread"))?, 2)
}

fn a_driver_registered_twice() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    icd_folder.add("again", &Driver::Pocl.library()?);
    passed(&run_smoke_test(&icd_folder, |_| {})?, 1)
}

fn no_driver_at_all() -> Result<(), Failed> {
    unavailable(&run_smoke_test(&IcdFolder::empty(), |_| {})?, &["driver"])
}

fn a_missing_icd_folder() -> Result<(), Failed> {
    let icd_folder = IcdFolder::empty();
    let gone = icd_folder.path().join("gone");
    unavailable(&run_smoke_test(&icd_folder, |command| _ = command.env("OCL_ICD_VENDORS", gone))?, &[])
}

fn a_driver_that_is_not_a_library() -> Result<(), Failed> {
    let icd_folder = IcdFolder::empty();
    let library = icd_folder.path().join("garbage.so");
    std::fs::write(&library, [0x7f, b'E', b'L', b'F', 1, 2, 3])?;
    icd_folder.add("garbage", library.to_str().unwrap());
    unavailable(&run_smoke_test(&icd_folder, |_| {})?, &["garbage"])
}

fn a_missing_driver() -> Result<(), Failed> {
    let icd_folder = IcdFolder::empty();
    icd_folder.add("gone", "/no/such/folder/libgone.so");
    unavailable(&run_smoke_test(&icd_folder, |_| {})?, &["gone"])
}

fn a_library_that_is_not_a_driver() -> Result<(), Failed> {
    let icd_folder = IcdFolder::empty();
    icd_folder.add("empty", stub::build_empty(icd_folder.path(), "libempty.so")?.to_str().unwrap());
    unavailable(&run_smoke_test(&icd_folder, |_| {})?, &[])
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
    passed(&run_smoke_test(&icd_folder, |_| {})?, 1)
}

/// The dynamic linker searches this folder first and finds a file that is not a library.
fn no_loader() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    std::fs::write(
        icd_folder.path().join("libOpenCL.so.1"),
        "this is not a library, but longer than the header of one",
    )?;
    let folder = icd_folder.path().to_owned();
    unavailable(
        &run_smoke_test(&icd_folder, |command| _ = command.env("LD_LIBRARY_PATH", folder))?,
        &["libOpenCL"],
    )
}

/// The dynamic linker would map the file, and the process would crash on the first access.
fn a_truncated_loader() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    let library = stub::build_empty(icd_folder.path(), "libOpenCL.so.1")?;
    let bytes = std::fs::read(&library)?;
    for end in [64, 4096, bytes.len() / 2] {
        std::fs::write(&library, &bytes[..end])?;
        let folder = library.parent().map(Path::to_owned).unwrap_or_default();
        let by_name = run_smoke_test(&icd_folder, |command| _ = command.env("LD_LIBRARY_PATH", folder))?;
        unavailable(&by_name, &["libOpenCL.so.1: ", "truncated file"])?;
        let by_path = run_smoke_test(&icd_folder, |command| _ = command.env("OPENCL_DYLIB_PATH", &library))?;
        passed(&by_path, 1).or_else(|_| unavailable(&by_path, &["truncated file"]))?;
    }
    Ok(())
}

fn a_loader_without_functions() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    let library = stub::build_empty(icd_folder.path(), "libOpenCL.so.1")?;
    let folder = library.parent().map(Path::to_owned).unwrap_or_default();
    unavailable(&run_smoke_test(&icd_folder, |command| _ = command.env("LD_LIBRARY_PATH", folder))?, &[])
}

/// The system's loader is used instead, or the error names the path.
fn a_missing_loader_in_the_environment() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    let outcome =
        run_smoke_test(&icd_folder, |command| _ = command.env("OPENCL_DYLIB_PATH", "/no/such/libOpenCL.so"))?;
    passed(&outcome, 1).or_else(|_| unavailable(&outcome, &["/no/such/libOpenCL.so"]))
}

fn binaries_of_another_driver() -> Result<(), Failed> {
    let drivers: Vec<_> = installed().into_iter().filter(|driver| *driver != Driver::Oclgrind).collect();
    let icd_folder = icd_folder(&drivers)?;
    let mut command = icd_folder.command(current_program()?)?;
    let output = opencl::finish(command.env(EXCHANGE, "1"), DEADLINE)?.success()?;
    let exchanged = output.lines().filter(|line| line.starts_with("refused")).count();
    let all = drivers.len() * (drivers.len() - 1);
    if exchanged == all { Ok(()) } else { Err(format!("{exchanged} of {all}:\n{output}").into()) }
}

/// PoCL 3.1 initialises its devices in the first call and returns them to a second thread meanwhile: one such process in a few
/// crashed.
fn threads_list_devices_concurrently() -> Result<(), Failed> {
    let icd_folder = icd_folder(&[Driver::Pocl])?;
    for _ in 0..16 {
        let mut command = icd_folder.command(current_program()?)?;
        opencl::finish(command.env(CONCURRENT_LISTING, "1"), DEADLINE)?.success()?;
    }
    Ok(())
}

/// Lists the devices on several threads, each with a runtime of its own.
fn list_concurrently() -> ExitCode {
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

/// Loads on every device what the other drivers compiled, and prints the outcome.
#[allow(clippy::print_stdout, unsafe_code, reason = "the parent reads the output; loads foreign code")]
fn exchange() -> ExitCode {
    let binaries = opencl::driver_compiler::compile_on_all_devices("kernel void noop(void) {}");
    let runtime = Runtime::new();
    let load = |device: &str, code: &[u8]| {
        // SAFETY: it is not executed.
        let source = unsafe { ModuleSource::native(CodeFormat::OPENCL_BINARY, code) };
        runtime.open(device).and_then(|device| device.load(&source)).map(drop)
    };
    for info in runtime.devices().iter().filter(|info| info.id.sub.is_none()) {
        for (name, code) in binaries.iter().filter(|(name, _)| *name != info.name) {
            match load(&info.id.to_string(), code) {
                Err(error) if error.kind() != ErrorKind::Internal => {
                    println!("refused by {}: {name}: {error}", info.name);
                }
                outcome => println!("wrong: {} accepts the binary of {name}: {outcome:?}", info.name),
            }
        }
    }
    ExitCode::SUCCESS
}
