//! Hostile uses of the offload library's devices, on a fake SDK: a full disk, odd paths, options of the wrong type, a library that exits,
//! many threads on a chip that hangs. **No test here runs on an MPPA.**

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "loads native code")]

use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use mppa::{FakeLibrary, FakeSdk, becomes, check, check_seen};
use opencl::{DEADLINE, Finished, IcdFolder, current_program};
use runtime_core::{
    Arg, CodeFormat, Device, ErrorKind, Geometry, ModuleSource, OptionValue, Options, Placement, Runtime,
};

/// Set in the child, to its case.
const CHILD: &str = "RUNTIME_TEST_MPPA_HOSTILE";
/// The program of the fake chip.
const PROGRAM: &str = "RUNTIME_TEST_MPPA_PROGRAM";
/// What the fake library does with a call to a chip.
const HANG: &str = "FAKE_HANG";
const EXIT: &str = "FAKE_EXIT";
/// The first of two chips, behind their OpenCL devices.
const DEVICE: &str = "mppa:2";
/// The code with which the fake library exits.
const EXIT_CODE: i32 = 41;
/// How long a call may take that hangs: longer than the test.
const PATIENCE_MS: i64 = 3_600_000;
const THREADS: usize = 8;

/// A case: its name, how its child is started on a machine, and what that does.
type Case =
    (&'static str, fn(&FakeSdk, &mut Command) -> Result<(), Failed>, fn(&Runtime) -> Result<(), Failed>);

const CASES: [Case; 5] = [
    ("a_full_disk_is_an_error_with_the_remedy", on_a_full_disk, no_room),
    ("an_sdk_in_a_folder_of_any_name_is_used", in_an_odd_folder, works),
    ("an_option_of_the_wrong_type_or_range_is_refused", succeeds, wrong_options),
    ("a_library_that_exits_ends_the_process_with_its_code", with_an_exit, exits),
    ("threads_on_a_chip_that_hangs_hold_up_no_other", with_a_hang, many_threads),
];

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    let wanted = std::env::var(CHILD).ok()?;
    let (name, _, run) = CASES.into_iter().find(|(name, ..)| *name == wanted).unwrap();
    let run = move || run(&Runtime::builder().build());
    Some(libtest_mimic::run(&Arguments::default(), vec![Trial::test(name, run)]).exit_code())
}

pub(crate) fn trials() -> Vec<Trial> {
    CASES
        .map(|(name, start, _)| Trial::test(format!("hostile::{name}"), move || in_child(name, start)))
        .into()
}

fn in_child(name: &str, start: fn(&FakeSdk, &mut Command) -> Result<(), Failed>) -> Result<(), Failed> {
    let sdk = FakeSdk::new(2);
    let program = sdk.path().join("program.elf");
    std::fs::write(&program, sdk.program())?;
    let mut command = mppa::command(&IcdFolder::empty(), current_program()?)?;
    command.env(CHILD, name).envs(sdk.variables()).env(PROGRAM, program);
    start(&sdk, &mut command)
}

fn finish(command: &mut Command) -> Result<Finished, Failed> {
    Ok(opencl::finish(command, DEADLINE)?)
}

fn succeeds(_: &FakeSdk, command: &mut Command) -> Result<(), Failed> {
    finish(command)?.success()?;
    Ok(())
}

/// A limit on the size of files fails as a full disk does.
fn on_a_full_disk(_: &FakeSdk, command: &mut Command) -> Result<(), Failed> {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f \"$ROOM\"; exec \"$0\" --nocapture"])
        .arg(command.get_program());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    // Blocks for nothing, and for the shim's source without its library.
    for room in ["0", "16"] {
        finish(shell.env("ROOM", room))?.success()?;
    }
    Ok(())
}

fn no_room(runtime: &Runtime) -> Result<(), Failed> {
    let error = runtime.open(DEVICE).unwrap_err();
    let has_remedy = ["make room", "TMPDIR"].iter().all(|words| error.message().contains(words));
    check_seen(error.kind() == ErrorKind::Io && has_remedy, &error)
}

fn in_an_odd_folder(sdk: &FakeSdk, command: &mut Command) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let odd = folder.path().join("Kalray's SDK,v5 (-Wl,$HOME)");
    // A path that the shim finds its libraries by, so it is no link.
    copy_folder(sdk.path(), &odd)?;
    succeeds(sdk, command.env("KALRAY_TOOLCHAIN_DIR", odd))
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Failed> {
    let status = Command::new("cp").arg("-r").arg(from).arg(to).status()?;
    check_seen(status.success(), &status)
}

fn works(runtime: &Runtime) -> Result<(), Failed> {
    let device = runtime.open(DEVICE)?;
    check_seen(double(&device)? == [2, 40, 200], &"wrong values")
}

/// Doubles bytes on the chip.
fn double(device: &Device) -> runtime_core::Result<Vec<u8>> {
    let x = device.allocate(runtime_core::DType::U8, &[3], &Placement::space("device"))?;
    x.write(&[1u8, 20, 100])?;
    let code = std::fs::read(std::env::var_os(PROGRAM).unwrap()).unwrap();
    // SAFETY: its kernels take what is passed.
    let kernel = device.kernel(unsafe { ModuleSource::native(CodeFormat::ELF, code) }, "twice")?;
    let queue = device.queue()?;
    queue.launch(&kernel, Geometry::default(), &[Arg::read_write(&x), Arg::scalar(3u64)])?.wait()?;
    x.to_vec::<u8>()
}

fn wrong_options(runtime: &Runtime) -> Result<(), Failed> {
    let text = |text: &str| OptionValue::from(text);
    let wrong = [
        ("platform", OptionValue::from(true)),
        ("platform", text("HW\0")),
        ("arch", 32i64.into()),
        ("firmware", false.into()),
        ("firmware", text("../x.elf")),
        ("work_dir", text("relative")),
        ("clean_work_dir", text("yes")),
        ("stand_in", 2.5f64.into()),
        ("call_timeout_ms", text("soon")),
        ("call_timeout_ms", 0i64.into()),
        ("call_timeout_ms", i64::MIN.into()),
        ("ready_timeout_ms", i64::MAX.into()),
        ("command", 1i64.into()),
    ];
    // The last option is of whole programs, and refused by its type alone.
    wrong.into_iter().try_for_each(|(key, value)| {
        // SAFETY: no value is valid.
        let outcome = unsafe { runtime.open_with_code(DEVICE, &Options::new().with(key, value.clone())) };
        let is_refused = outcome
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::InvalidArgument && error.message().contains(key));
        check(is_refused, || format!("{key} = {value:?}: {:?}", outcome.err()))
    })
}

/// Nothing can keep a library from that, but the exit neither hangs nor crashes.
fn with_an_exit(_: &FakeSdk, command: &mut Command) -> Result<(), Failed> {
    for call in ["create", "alloc", "load", "exec 0", "free", "destroy"] {
        let finished = finish(command.env(EXIT, format!(" {call}:0;")))?;
        check(finished.status.code() == Some(EXIT_CODE), || format!("{call}: {finished:?}"))?;
    }
    Ok(())
}

fn exits(runtime: &Runtime) -> Result<(), Failed> {
    let device = runtime.open(DEVICE)?;
    double(&device)?;
    drop(device);
    // The chip is closed by another thread.
    let _ = becomes(|| false);
    Err("the library has not exited".into())
}

fn with_a_hang(_: &FakeSdk, command: &mut Command) -> Result<(), Failed> {
    command.env(HANG, " alloc:1;");
    finish(command)?.success()?;
    Ok(())
}

/// Threads wait for a chip that never answers. Meanwhile it is opened and dropped, another one works, and the process ends.
fn many_threads(_: &Runtime) -> Result<(), Failed> {
    let runtime: &Runtime = Box::leak(Box::new(Runtime::builder().build()));
    let listed = runtime.devices();
    let chips = listed.iter().filter(|info| info.name == "Offload" && info.id.sub.is_none());
    let names: Vec<_> = chips.map(|info| info.id.to_string()).collect();
    let [first, second] = <[String; 2]>::try_from(names).map_err(|names| format!("{names:?}"))?;
    let open = |name: &str| runtime.open_with(name, &Options::new().with("call_timeout_ms", PATIENCE_MS));
    for _ in 0..THREADS {
        let second = second.clone();
        std::thread::spawn(move || open(&second).and_then(|device| double(&device)));
    }
    let library = FakeLibrary::of(std::env::var_os("KALRAY_TOOLCHAIN_DIR").unwrap().as_ref());
    check(becomes(|| library.log().contains("alloc")), || library.log())?;
    for _ in 0..THREADS {
        drop(open(&second)?);
        check_seen(double(&open(&first)?)? == [2, 40, 200], &"wrong values")?;
    }
    Ok(())
}
