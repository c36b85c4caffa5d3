//! A fake of the offload library that never returns from a call: the call is an error, the chip is lost, and nothing waits for it. **No
//! test here runs on an MPPA.**

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "loads native code")]

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use mppa::{FakeLibrary, FakeSdk, becomes, check};
use opencl::{DEADLINE, IcdFolder, current_program};
use runtime_core::{
    Arg, CodeFormat, Device, Error, ErrorKind, Geometry, Kernel, ModuleSource, Options, Runtime, Tensor,
};

/// Set in the child, to the path of the fake chip's program.
const CHILD: &str = "RUNTIME_TEST_MPPA_HANGS";
/// How long a call may take. A call that returns has this much time on a busy machine.
const PATIENCE_MS: i64 = 10_000;

/// What hangs on a chip, and what is checked there.
type Case = (&'static str, fn(&Chip) -> Result<(), Failed>);

/// By chip: each has a library of its own to wait for, so that all waits are one.
const CASES: [Case; 8] = [
    ("create", hanging_create),
    ("alloc", hanging_alloc),
    ("free", hanging_free),
    ("load", hanging_load),
    ("symbol", hanging_symbol),
    ("unload", hanging_unload),
    ("destroy", hanging_destroy),
    ("exec 0", hanging_kernel),
];

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    let program = std::env::var(CHILD).ok()?;
    let trial = Trial::test("child", move || run_all(&std::fs::read(program)?));
    Some(libtest_mimic::run(&Arguments::default(), vec![trial]).exit_code())
}

pub(crate) fn trials() -> Vec<Trial> {
    let name = "hanging_library::a_call_that_never_returns_loses_its_chip_and_holds_up_nothing";
    vec![Trial::test(name, start)]
}

fn start() -> Result<(), Failed> {
    let sdk = FakeSdk::new(u32::try_from(CASES.len())?);
    let program = sdk.path().join("program.elf");
    std::fs::write(&program, sdk.program())?;
    let hangs: String =
        (0..).zip(CASES).map(|(board, (call, _)): (u32, _)| format!(" {call}:{board};")).collect();
    let mut command = mppa::command(&IcdFolder::empty(), current_program()?)?;
    command.env(CHILD, program).envs(sdk.variables()).env("FAKE_HANG", hangs);
    opencl::finish(&mut command, DEADLINE)?.success()?;
    Ok(())
}

fn run_all(program: &[u8]) -> Result<(), Failed> {
    let runtime = Runtime::builder().build();
    let listed = runtime.devices();
    let chips = listed.iter().filter(|info| info.name == "Offload" && info.id.sub.is_none());
    let names: Vec<_> = chips.map(|info| info.id.to_string()).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = names
            .into_iter()
            .zip(CASES)
            .map(|(name, (call, run))| {
                let chip = Chip { runtime: &runtime, name, program };
                scope.spawn(move || run(&chip).map_err(|failed| format!("{call}: {failed:?}")))
            })
            .collect();
        check(threads.len() == CASES.len(), || format!("{} chips", threads.len()))?;
        threads.into_iter().try_for_each(|thread| thread.join().unwrap().map_err(Failed::from))
    })
}

/// A chip of the fake machine.
struct Chip<'a> {
    runtime: &'a Runtime,
    name: String,
    program: &'a [u8],
}

impl Chip<'_> {
    fn open(&self) -> runtime_core::Result<Device> {
        self.runtime.open_with(&self.name, &Options::new().with("call_timeout_ms", PATIENCE_MS))
    }

    fn kernel(&self, device: &Device, name: &str) -> runtime_core::Result<Kernel> {
        self.kernel_of_copy(device, name, &[])
    }

    /// A kernel of a module of its own: modules of equal bytes would be one.
    fn kernel_of_copy(&self, device: &Device, name: &str, more: &[u8]) -> runtime_core::Result<Kernel> {
        let program = [self.program, more].concat();
        // SAFETY: its kernels take what the tests pass.
        device.kernel(unsafe { ModuleSource::native(CodeFormat::ELF, program) }, name)
    }

    /// Checks that the chip was lost by a call that has not returned, and cannot be opened in this process.
    fn check_lost(&self, error: &Error, function: &str) -> Result<(), Failed> {
        let is_named = error.message().contains(&format!("{function} has not returned within 10s"));
        check(error.kind() == ErrorKind::DeviceLost && is_named, || error.to_string())?;
        self.check_stuck()
    }

    fn check_stuck(&self) -> Result<(), Failed> {
        let error = self.open().unwrap_err();
        let is_explained = error.message().contains("restart this process");
        check(error.kind() == ErrorKind::DeviceLost && is_explained, || error.to_string())
    }
}

fn tensor(device: &Device) -> runtime_core::Result<Tensor> {
    device.tensor([3], &[1u8, 20, 100])
}

/// The error of a call after one that has returned too late.
fn next_error(device: &Device) -> Error {
    tensor(device).unwrap_err()
}

fn hanging_create(chip: &Chip) -> Result<(), Failed> {
    let error = chip.open().unwrap_err();
    let is_named = error.message().contains("mppa_offload_create has not returned");
    check(error.kind() == ErrorKind::Timeout && is_named, || error.to_string())?;
    chip.check_stuck()
}

fn hanging_alloc(chip: &Chip) -> Result<(), Failed> {
    let device = chip.open()?;
    chip.check_lost(&next_error(&device), "mppa_offload_alloc")?;
    drop(device);
    chip.check_stuck()
}

fn hanging_free(chip: &Chip) -> Result<(), Failed> {
    let device = chip.open()?;
    drop(tensor(&device)?);
    chip.check_lost(&next_error(&device), "mppa_offload_free")?;
    drop(device);
    chip.check_stuck()
}

fn hanging_load(chip: &Chip) -> Result<(), Failed> {
    let device = chip.open()?;
    let error = chip.kernel(&device, "twice").unwrap_err();
    chip.check_lost(&error, "mppa_offload_acc_load")
}

fn hanging_symbol(chip: &Chip) -> Result<(), Failed> {
    let device = chip.open()?;
    let error = chip.kernel(&device, "twice").unwrap_err();
    chip.check_lost(&error, "mppa_offload_query_symbol \"twice\"")
}

fn hanging_unload(chip: &Chip) -> Result<(), Failed> {
    let device = chip.open()?;
    drop(chip.kernel(&device, "twice")?);
    chip.check_lost(&next_error(&device), "mppa_offload_acc_unload")
}

fn hanging_destroy(chip: &Chip) -> Result<(), Failed> {
    let device = chip.open()?;
    drop((tensor(&device)?, chip.kernel(&device, "twice")?));
    drop(device);
    check(becomes(|| chip.check_stuck().is_ok()), || "the chip can be opened".to_owned())
}

/// A kernel may take any time, so it does not lose the chip. What it does not use is dropped meanwhile.
fn hanging_kernel(chip: &Chip) -> Result<(), Failed> {
    let device = chip.open()?;
    let (x, y, other) = (tensor(&device)?, tensor(&device)?, chip.kernel_of_copy(&device, "noop", &[1])?);
    let (kernel, queue) = (chip.kernel(&device, "twice")?, device.queue()?);
    let event = queue.launch(&kernel, Geometry::default(), &[Arg::read_write(&x), Arg::scalar(3u64)])?;
    let error = event.wait_timeout(Duration::from_millis(1)).unwrap_err();
    check(error.kind() == ErrorKind::Timeout, || error.to_string())?;
    let library = FakeLibrary::of(std::env::var_os("KALRAY_TOOLCHAIN_DIR").unwrap().as_ref());
    check(becomes(|| library.log().contains("exec 0")), || library.log())?;
    drop((y, other));
    drop((x, kernel, event, queue, device));
    Ok(())
}
