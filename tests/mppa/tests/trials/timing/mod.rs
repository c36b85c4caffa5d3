//! The timing loop with every option, and counters and traces beside the times, on the OpenCL transport with PoCL as the chip and on the
//! offload transport with a fake SDK: **stand-ins, not an MPPA.**

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod evaluation;
mod options;
mod programs;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use mppa::FakeSdk;
use opencl::{DEADLINE, IcdFolder, current_program};
use options::Run;
use runtime_core::evaluate::Timing;
use runtime_core::{CodeFormat, Geometry, ModuleSource, Runtime};

/// Set in a child, to its case and its device.
const CHILD: &str = "RUNTIME_TEST_MPPA_TIMING";
/// The program of the fake chip.
const PROGRAM: &str = "RUNTIME_TEST_MPPA_PROGRAM";
const STAND_IN: &str = "stand_in";
const OFFLOAD: &str = "offload";

/// A case: its name, and what is checked.
type Case = (&'static str, fn(Run<'_>) -> Result<(), Failed>);

const CASES: [Case; 7] = [
    ("number", options::number),
    ("min_repeat", options::min_repeat),
    ("flush_cache", options::flush_cache),
    ("cooldown", options::cooldown),
    ("until", options::until),
    ("budget", options::budget),
    ("cold", options::cold),
];

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    let wanted = std::env::var(CHILD).ok()?;
    let (name, device) = wanted.split_once(' ').unwrap();
    Some(libtest_mimic::run(&Arguments::default(), vec![case(name, device)]).exit_code())
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = evaluation::trials();
    trials.extend(programs::trials());
    trials.extend(CASES.map(|(name, _)| {
        Trial::test(format!("timing::{name}_on_the_offload_device"), move || start_offload(name))
    }));
    match mppa::pocl() {
        Err(missing) => trials.push(*missing),
        Ok(_) => {
            trials.extend(CASES.map(|(name, _)| {
                Trial::test(format!("timing::{name}_on_the_stand_in"), move || start_stand_in(name))
            }));
        }
    }
    trials
}

/// What a child does.
fn case(name: &str, device: &str) -> Trial {
    let (_, case) = CASES.into_iter().find(|(known, _)| *known == name).unwrap();
    let run = if device == STAND_IN { stand_in } else { offload };
    Trial::test(name, move || run(case))
}

fn start_stand_in(name: &str) -> Result<(), Failed> {
    let folder = mppa::pocl().map_err(|_| "PoCL is missing")?;
    finish(mppa::stand_in_command(&folder, current_program()?)?.env(CHILD, format!("{name} {STAND_IN}")))
}

fn start_offload(name: &str) -> Result<(), Failed> {
    let (sdk, drivers) = (FakeSdk::new(1), IcdFolder::empty());
    let program = program_file(&sdk)?;
    let mut command = mppa::command(&drivers, current_program()?)?;
    finish(command.envs(sdk.variables()).env(PROGRAM, program).env(CHILD, format!("{name} {OFFLOAD}")))
}

fn finish(command: &mut Command) -> Result<(), Failed> {
    opencl::finish(command, DEADLINE)?.success()?;
    Ok(())
}

/// Writes the program of the fake chip.
fn program_file(sdk: &FakeSdk) -> Result<PathBuf, Failed> {
    let path = sdk.path().join("program.elf");
    std::fs::write(&path, sdk.program())?;
    Ok(path)
}

fn stand_in(case: fn(Run<'_>) -> Result<(), Failed>) -> Result<(), Failed> {
    let device = Runtime::builder().with_lowering(runtime_kernel::wgsl()).build().open("mppa")?;
    let source = ModuleSource::wgsl(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         @compute @workgroup_size(16) fn add(@builtin(global_invocation_id) id: vec3u) {
             if id.x < arrayLength(&x) { x[id.x] += 1u; }
         }",
    );
    let (kernel, x) = (device.kernel(source, "add")?, device.tensor([100], &[0u32; 100])?);
    case(&|set: &dyn Fn(&mut Timing)| {
        let benchmark = device.bench(&kernel, Geometry::cover(100, 16), (&x,)).samples(3);
        benchmark.configure(|evaluation| set(&mut evaluation.timing)).run()
    })
}

#[allow(unsafe_code, reason = "loads native code")]
fn offload(case: fn(Run<'_>) -> Result<(), Failed>) -> Result<(), Failed> {
    let device = Runtime::builder().build().open("mppa:offload")?;
    let code = std::fs::read(std::env::var_os(PROGRAM).unwrap())?;
    // SAFETY: its kernel takes what is passed.
    let source = unsafe { ModuleSource::native(CodeFormat::ELF, code) };
    let (kernel, x) = (device.kernel(source, "twice")?, device.tensor([3], &[0u8; 3])?);
    case(&|set: &dyn Fn(&mut Timing)| {
        let arguments = (runtime_core::write(&x), 3u64);
        let benchmark = device.bench(&kernel, Geometry::default(), arguments).samples(3);
        benchmark.configure(|evaluation| set(&mut evaluation.timing)).run()
    })
}
