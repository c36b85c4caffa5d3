//! Compute shaders of other projects, which `corpus/files.txt` lists, run with small inputs on the host, through OpenCL and
//! through Vulkan: the results agree. Without `RUNTIME_TEST_SHADERS`, the folder that `corpus/gather.py` makes, the tests are
//! ignored. `corpus/undetermined.txt` lists entry points whose results differ, each with the reason.
//!
//! Each entry point runs in a process of its own: some wait for other work-groups, which need not run at the same time. With
//! `RUNTIME_TEST_RESULTS`, a folder, a run that was stopped continues: what the processes said is in a file of it per entry point.

#![allow(clippy::print_stdout, reason = "processes report on their standard output")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};
use portable::corpus::{Shader, shaders};
use portable::corpus_data::{self, Data, Inputs, Sizes};
use runtime_core::{Access, Arg, Device, Error, ErrorKind, Kernel, ModuleSource, Placement, Runtime};
use runtime_kernel::{Interface, Program};
use test_process::finish;

const DEVICES: [&str; 3] = ["host", "opencl", "vulkan"];
const SIZES: [Case; 2] = [("small", Sizes::Small), ("large", Sizes::Large)];
/// For entry points that write nothing with the other inputs.
const POSITIVE: Case = ("positive", Sizes::Positive);
/// An entry point that needs more seconds of processor time, including compilation, has no result. They pass slowly on a busy
/// machine.
const PROCESSOR_SECONDS: u32 = 200;
/// Begins what is said of a process that needed more.
const OVERTIME: &str = "signal: 24";
/// An entry point that takes longer hangs without using a processor.
const TIMEOUT: Duration = Duration::from_secs(1800);
/// The shader and the entry point that a process runs.
const ENTRY: &str = "RUNTIME_TEST_ENTRY";
/// The folder of what the processes said.
const RESULTS: &str = "RUNTIME_TEST_RESULTS";
/// Begins the line in which the process says that a device lacks something.
const LACKS: &str = "lacks: ";
/// Follows the word for sizes in the line in which the process says that the results agree.
const AGREES: &str = "agrees";
/// The same, where nothing was written.
const UNCHANGED: &str = "agrees, as nothing changes";
/// The same, where there is nothing to compare with.
const ALONE: &str = "ran on one device only";
/// Notes a shader that cannot change anything, such as many tests of compilers.
const NO_OUTPUT: &str = "unwritten: it writes no tensor";
/// Begins a reason for which results differ on some runs only.
const AT_TIMES: &str = "at times, ";

/// Inputs with the word for their sizes.
type Case = (&'static str, Sizes);

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    let (folder, entry) = (folder()?, std::env::var(ENTRY).ok()?);
    Some(match run_entry(&folder, &entry) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    })
}

/// The folder of the shaders.
fn folder() -> Option<PathBuf> {
    std::env::var_os("RUNTIME_TEST_SHADERS").map(PathBuf::from)
}

pub(crate) fn trials() -> Vec<Trial> {
    match folder() {
        None => vec![Trial::ignorable_test("corpus_runs", || {
            Ok(Completion::ignored_with("RUNTIME_TEST_SHADERS is not set; corpus/gather.py makes its folder"))
        })],
        Some(folder) => shaders(&folder).into_iter().map(trial).collect(),
    }
}

fn trial(shader: Shader) -> Trial {
    Trial::ignorable_test(format!("corpus_runs::{}", shader.name), move || check(&shader))
}

/// Runs all entry points of a shader.
fn check(shader: &Shader) -> Result<Completion, Failed> {
    let text = shader.text()?;
    let Ok(program) = Program::parse(&text, "", &shader.specialisation(&text)) else {
        return Ok(Completion::ignored_with("refused, see `corpus`"));
    };
    let (mut notes, mut failures, mut is_written) = (Vec::new(), Vec::new(), false);
    for interface in program.interfaces() {
        let said = kept_or_run(&format!("{} {}", shader.name, interface.name));
        if said.starts_with(OVERTIME) {
            is_written = true;
            notes.push(format!("unfinished: {} needs more than {PROCESSOR_SECONDS} seconds", interface.name));
            continue;
        }
        notes.extend(said.lines().filter(|line| line.starts_with(LACKS)).map(str::to_owned));
        let needs_positive = said.lines().any(|line| line.starts_with(POSITIVE.0));
        let with_positive = SIZES.into_iter().chain(needs_positive.then_some(POSITIVE));
        for (sizes, _) in with_positive {
            let case = format!("{} {sizes}", interface.name);
            let said_of = |word| said.lines().any(|line| line == format!("{sizes}: {word}"));
            is_written |= !said_of(UNCHANGED);
            let agrees = said_of(AGREES) || said_of(UNCHANGED);
            match (agrees, undetermined(&format!("{} {case}", shader.name))) {
                (true, None) => {}
                (false, None) if said_of(ALONE) => notes.push(format!("{case} {ALONE}")),
                (false, None) => failures.push(format!("{case}: {said}")),
                (true, Some(reason)) if !reason.starts_with(AT_TIMES) => {
                    failures.push(format!("{case} agrees; remove it from the list"));
                }
                (_, Some(reason)) => notes.push(format!("undetermined: {case}: {reason}")),
            }
        }
    }
    if !is_written {
        let has_outputs = program.interfaces().iter().any(has_output);
        notes.push(if has_outputs { "unwritten: nothing changes" } else { NO_OUTPUT }.to_owned());
    }
    match (failures.is_empty(), notes.is_empty()) {
        (true, true) => Ok(Completion::Completed),
        (true, false) => Ok(Completion::ignored_with(notes.join("; "))),
        (false, _) => Err(failures.join("\n").into()),
    }
}

/// Why the results of an entry point differ, by the list.
fn undetermined(entry: &str) -> Option<&'static str> {
    let mut lines = include_str!("../../corpus/undetermined.txt").lines();
    lines.find_map(|line| line.strip_prefix(entry)?.strip_prefix(": "))
}

/// Whether an entry point writes a tensor.
fn has_output(interface: &Interface) -> bool {
    interface.tensors.iter().any(|tensor| tensor.access != Access::Read)
}

/// The result of an entry point that an earlier run stored, or else that of running it now, which is stored.
fn kept_or_run(entry: &str) -> String {
    let Some(folder) = std::env::var_os(RESULTS).map(PathBuf::from) else { return run_apart(entry) };
    let file = folder.join(entry.replace('/', "+"));
    std::fs::read_to_string(&file).unwrap_or_else(|_| {
        let said = run_apart(entry);
        // The rename makes the result appear whole. If it cannot be stored, a later run repeats it.
        let part = file.with_extension("part");
        let _ = std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&part, &said))
            .and_then(|()| std::fs::rename(&part, &file));
        said
    })
}

/// Runs an entry point in a process of its own; the result is what that says, or why it ended.
fn run_apart(entry: &str) -> String {
    let limited = || {
        let mut command = Command::new("sh");
        // The soft limit alone has a signal of its own.
        let script = format!("ulimit -c 0; ulimit -St {PROCESSOR_SECONDS}; exec \"$0\"");
        command.args(["-c", &script]).arg(std::env::current_exe()?).env(ENTRY, entry);
        std::io::Result::Ok(command)
    };
    let command = limited().map_err(|error| error.to_string());
    let said = command.and_then(|mut command| finish(&mut command, TIMEOUT)?.success());
    said.unwrap_or_else(|error| error)
}

/// In the process of its own: runs the entry point everywhere, and says for each of the sizes whether the results agree.
fn run_entry(folder: &Path, entry: &str) -> Result<(), String> {
    let named = |shader: &Shader| entry.strip_prefix(&shader.name)?.strip_prefix(' ');
    let found = shaders(folder).into_iter().find_map(|shader| Some((named(&shader)?, shader)));
    let (name, shader) = found.ok_or("it is not listed")?;
    let text = shader.text()?;
    let program =
        Program::parse(&text, "", &shader.specialisation(&text)).map_err(|error| error.to_string())?;
    let mut interfaces = program.interfaces().iter();
    let interface = interfaces.find(|one| one.name == name).ok_or("the entry point is missing")?;
    let compare = |cases: &[Case]| compare(&shader, &program, interface, cases);
    if !compare(&SIZES)? && has_output(interface) {
        println!("{}", POSITIVE.0);
        compare(&[POSITIVE])?;
    }
    Ok(())
}

/// Runs an entry point on all devices with inputs of some sizes, and says for each whether the results agree. The result is
/// whether anything changed.
fn compare(
    shader: &Shader,
    program: &Program,
    interface: &Interface,
    cases: &[Case],
) -> Result<bool, String> {
    let inputs: Vec<_> = cases.iter().map(|(_, sizes)| Inputs::new(program, interface, *sizes)).collect();
    let runtime = Runtime::builder().with_lowering(runtime_kernel::wgsl()).build();
    let mut all = Vec::new();
    for device in DEVICES {
        println!("on {device}");
        match run(&runtime, device, shader.source()?, interface, &inputs) {
            Ok(outputs) => all.push((device, outputs)),
            Err(error) if is_limit(&error) => println!("{LACKS}{} on {device}: {error}", interface.name),
            Err(error) => return Err(error.to_string()),
        }
    }
    let mut is_any_changed = false;
    for (at, ((sizes, _), inputs)) in cases.iter().zip(&inputs).enumerate() {
        let agree = |pair: &[(&str, Vec<Vec<Vec<u8>>>)]| {
            let compared = inputs.agree(&pair[0].1[at], &pair[1].1[at]);
            compared.map_err(|what| format!("{} and {}: {what}", pair[0].0, pair[1].0))
        };
        let is_changed = all.iter().any(|(_, outputs)| inputs.is_changed(&outputs[at]));
        is_any_changed |= is_changed;
        match all.windows(2).try_for_each(agree) {
            Ok(()) if all.len() < 2 => println!("{sizes}: {ALONE}"),
            Ok(()) => println!("{sizes}: {}", if is_changed { AGREES } else { UNCHANGED }),
            Err(what) => println!("{sizes}: {what}"),
        }
    }
    Ok(is_any_changed)
}

fn is_limit(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::OutOfResources)
}

/// Runs an entry point on a device; the result is what is in the tensors afterwards, for each of the inputs.
fn run(
    runtime: &Runtime,
    device: &str,
    source: ModuleSource,
    interface: &Interface,
    inputs: &[Inputs],
) -> runtime_core::Result<Vec<Vec<Vec<u8>>>> {
    let device = runtime.open(device)?;
    let kernel = device.kernel(source, &interface.name)?;
    inputs.iter().map(|inputs| launch(&device, &kernel, interface, inputs)).collect()
}

fn launch(
    device: &Device,
    kernel: &Kernel,
    interface: &Interface,
    inputs: &Inputs,
) -> runtime_core::Result<Vec<Vec<u8>>> {
    let tensor = |data: &Data| {
        let shape = [data.bytes.len() / data.dtype.bytes()];
        let new = device.allocate(data.dtype, &shape, &Placement::default())?;
        new.write_bytes(&data.bytes)?;
        Ok(new)
    };
    let tensors = inputs.tensors.iter().map(tensor).collect::<runtime_core::Result<Vec<_>>>()?;
    let arg = |(tensor, data): (_, &Data)| {
        if data.is_written { Arg::read_write(tensor) } else { Arg::read(tensor) }
    };
    let mut args: Vec<_> = tensors.iter().zip(&inputs.tensors).map(arg).collect();
    args.extend_from_slice(&inputs.scalars);
    device.queue()?.call(kernel, corpus_data::geometry(interface), &args)?;
    tensors.iter().map(|tensor| Ok(tensor.to_array()?.bytes().to_vec())).collect()
}
