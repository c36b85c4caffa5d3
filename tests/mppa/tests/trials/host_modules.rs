//! Host-driven modules on a fake SDK whose chip is this machine: **a stand-in, not an MPPA.** The fake module has the form of XTC's.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "loads native code")]

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use mppa::{FakeLibrary, FakeSdk, check};
use opencl::{DEADLINE, IcdFolder, current_program};
use runtime_core::{Arg, CodeFormat, Device, ErrorKind, Geometry, Kernel, ModuleSource, Runtime};

/// Set in the child that sees the fake machine, to its case.
const CHILD: &str = "RUNTIME_TEST_MPPA_HOST_MODULES";
/// The folder of the fake SDK.
const SDK: &str = "KALRAY_TOOLCHAIN_DIR";
const FORMAT: &str = "mppa-host-module";
const WHOLE: &str = "WHOLE";
const LACKS_LOAD: &str = "LACKS_LOAD";

type Case = (&'static str, fn(&Device) -> Result<(), Failed>);

const CASES: [Case; 4] = [
    ("a_function_of_a_host_driven_module_gets_addresses_and_scalars", calls),
    ("the_eleventh_module_replaces_the_least_recently_used_which_works_again", eleven),
    ("what_is_no_host_driven_module_is_refused", refused),
    ("a_module_that_cannot_be_loaded_leaves_nothing", failing_load),
];

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    let wanted = std::env::var(CHILD).ok()?;
    let run = move || {
        let device = Runtime::builder().build().open("mppa:offload")?;
        CASES.into_iter().find(|(name, _)| *name == wanted).unwrap().1(&device)?;
        drop(device);
        let (live, log) = (fake().number("fake_live"), fake().log());
        check(live == 0 && !log.contains("WRONG"), || format!("{live} live: {log}"))
    };
    let trial = Trial::test("child", run);
    Some(libtest_mimic::run(&Arguments::default(), vec![trial]).exit_code())
}

pub(crate) fn trials() -> Vec<Trial> {
    CASES.map(|(name, _)| Trial::test(format!("host_modules::{name}"), move || start(name))).into()
}

fn start(name: &str) -> Result<(), Failed> {
    let sdk = FakeSdk::new(1);
    for definition in [WHOLE, LACKS_LOAD] {
        let _ = sdk.host_module(definition);
    }
    std::fs::write(sdk.path().join("program.elf"), sdk.program())?;
    let mut command = mppa::command(&IcdFolder::empty(), current_program()?)?;
    command.env(CHILD, name).envs(sdk.variables());
    opencl::finish(&mut command, DEADLINE)?.success()?;
    Ok(())
}

fn sdk() -> std::path::PathBuf {
    std::env::var_os(SDK).unwrap().into()
}

/// The fake library, which this process has loaded.
fn fake() -> FakeLibrary {
    FakeLibrary::of(&sdk())
}

fn source(name: &str) -> ModuleSource {
    module(std::fs::read(sdk().join(Path::new(name).with_extension("so"))).unwrap())
}

fn module(bytes: Vec<u8>) -> ModuleSource {
    // SAFETY: the functions of the fake module take what the tests pass.
    unsafe { ModuleSource::native(CodeFormat::from(FORMAT), bytes) }
}

/// How often a copy of the module has loaded its code.
fn loads(device: &Device, kernel: &Kernel) -> Result<i32, Failed> {
    let out = device.tensor([1], &[0i32])?;
    device.queue()?.launch(kernel, Geometry::default(), &[Arg::write(&out)])?.wait()?;
    Ok(out.to_vec::<i32>()?[0])
}

fn calls(device: &Device) -> Result<(), Failed> {
    let formats: Vec<_> = device.info().formats.iter().map(ToString::to_string).collect();
    check(formats == ["elf", FORMAT], || format!("{formats:?}"))?;
    let (x, y) = (device.tensor([3], &[1.0f32, 2.0, 3.0])?, device.tensor([3], &[10.0f32; 3])?);
    let kernel = device.kernel(source(WHOLE), "axpy")?;
    let args = [Arg::read_write(&y), Arg::read(&x), Arg::scalar(0.5f32), Arg::scalar(3i64)];
    device.queue()?.launch(&kernel, Geometry::default(), &args)?.wait()?;
    let given = y.to_vec::<f32>()?;
    check(given == [10.5, 11.0, 11.5], || format!("{given:?}"))?;
    let missing = device.kernel(source(WHOLE), "no_such_function").unwrap_err();
    check(missing.kind() == ErrorKind::NotFound, || missing.to_string())
}

fn eleven(device: &Device) -> Result<(), Failed> {
    let code = std::fs::read(sdk().join("program.elf")).unwrap();
    // SAFETY: its kernels are not launched.
    let elf = device.load(&unsafe { ModuleSource::native(CodeFormat::ELF, code) })?;
    let whole = std::fs::read(sdk().join("WHOLE.so")).unwrap();
    // Modules of equal bytes would be one.
    let numbered = |number| module([&whole[..], &[number]].concat());
    let kernels: Vec<_> =
        (0..10).map(|number| device.kernel(numbered(number), "count_loads")).collect::<Result<_, _>>()?;
    // The file for the chip was the oldest of eleven modules. Its memory for code is freed when it is loaded.
    check(fake().number("fake_live") == 1 + 10, || {
        format!("{} live: {}", fake().number("fake_live"), fake().log())
    })?;
    elf.kernel("twice")?;
    check(fake().number("fake_live") == 1 + 9 + 1, || fake().log())?;
    for kernel in &kernels {
        // Each is a copy of its own, and loads its code once whenever it is loaded.
        let loads = loads(device, kernel)?;
        check(loads == 1, || format!("{loads} loads"))?;
    }
    Ok(())
}

fn refused(device: &Device) -> Result<(), Failed> {
    let whole = std::fs::read(sdk().join("WHOLE.so")).unwrap();
    let elf = std::fs::read(sdk().join("program.elf")).unwrap();
    for (code, words) in [
        (module(b"not an ELF file".to_vec()), "shared object for this machine"),
        (module(whole[..whole.len() / 2].to_vec()), "truncated"),
        (source(LACKS_LOAD), "exports \"load_kernel\""),
        (module(elf), "exports \"set_mppa_common_structures\""),
    ] {
        let error = device.load(&code).unwrap_err();
        check(error.kind() == ErrorKind::CompileFailed && error.message().contains(words), || {
            format!("{words}: {error}")
        })?;
    }
    let several = device.load(&source(WHOLE).option("clusters", 2)).unwrap_err();
    check(several.message().contains("chooses its clusters"), || several.to_string())?;
    let kernel = device.kernel(source(WHOLE), "count_loads")?;
    let many: Vec<_> = (0..17).map(|_| Arg::scalar(1i32)).collect();
    let error = device.queue()?.launch(&kernel, Geometry::default(), &many).and_then(|event| event.wait());
    check(error.is_err_and(|error| error.message().contains("at most 16")), || "17 integers".to_owned())
}

fn failing_load(device: &Device) -> Result<(), Failed> {
    let live = fake().number("fake_live");
    let error = device.load(&source(LACKS_LOAD)).unwrap_err();
    check(fake().number("fake_live") == live, || error.to_string())?;
    let kernel = device.kernel(source(WHOLE), "count_loads")?;
    let loads = loads(device, &kernel)?;
    check(loads == 1, || format!("{loads} loads"))
}
