//! Defects of the ancestor of this project, which ran kernels on an MPPA, that must not return. Each test is named for one; those
//! that need a device run on the stand-in, those about counters on the fake SDK, and those about simulators with a fake tool.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use mppa::{FakeSdk, KV3_2, check, elf_header, eval_row, write_tool};
use opencl::{DEADLINE, current_program};
use runtime_core::evaluate::Timing;
use runtime_core::{Arg, DType, ErrorKind, Geometry, ModuleSource, Options, Placement, Runtime};

/// Set in the child that sees the stand-in, to its case.
const CHILD: &str = "RUNTIME_TEST_MPPA_ANCESTOR";
type Case = (&'static str, fn(&Runtime) -> Result<(), Failed>);

const CASES: [Case; 5] = [
    ("a_failed_allocation_does_not_end_the_process", failed_allocation),
    ("eleven_kernels_are_loaded_at_once", eleven_kernels),
    ("a_measurement_without_counters_has_times", times_without_counters),
    ("several_calls_per_sample_and_a_minimum_time_are_accepted", calls_and_minimum_time),
    ("a_process_opens_several_devices_with_options_of_their_own", several_devices),
];

/// What this process does instead of the tests, if one of them started it.
pub(crate) fn child() -> Option<ExitCode> {
    let wanted = std::env::var(CHILD).ok()?;
    let (name, run) = CASES.into_iter().find(|(name, _)| *name == wanted).unwrap();
    let run = move || run(&Runtime::builder().with_lowering(runtime_kernel::wgsl()).build());
    Some(libtest_mimic::run(&Arguments::default(), vec![Trial::test(name, run)]).exit_code())
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = match mppa::pocl() {
        Err(missing) => vec![*missing],
        Ok(_) => {
            CASES.map(|(name, _)| Trial::test(format!("ancestor::{name}"), move || in_child(name))).into()
        }
    };
    trials.push(Trial::test("ancestor::every_repeat_is_returned_if_counters_are_on", every_repeat));
    trials.push(Trial::test("ancestor::a_simulator_is_awaited_and_stopped", awaited_simulator));
    trials.push(Trial::test("ancestor::a_simulator_is_started_without_a_shell", no_shell));
    trials
}

fn in_child(name: &str) -> Result<(), Failed> {
    let folder = mppa::pocl().map_err(|_| "PoCL is missing")?;
    let mut command = mppa::stand_in_command(&folder, current_program()?)?;
    command.env(CHILD, name);
    opencl::finish(&mut command, DEADLINE)?.success()?;
    Ok(())
}

/// A kernel that adds a number of its own to each element.
fn adds(number: u32) -> ModuleSource {
    ModuleSource::wgsl(&format!(
        "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
         @compute @workgroup_size(16) fn add(@builtin(global_invocation_id) id: vec3u) {{
             if id.x < arrayLength(&x) {{ x[id.x] += {number}u; }}
         }}"
    ))
}

fn failed_allocation(runtime: &Runtime) -> Result<(), Failed> {
    let device = runtime.open("mppa")?;
    for _ in 0..2 {
        let error = device.allocate(DType::U8, &[1 << 50], &Placement::default()).unwrap_err();
        check(error.message().contains("1125899906842624 bytes"), || error.to_string())?;
    }
    let x = device.tensor([3], &[1u32, 2, 3])?;
    check(x.to_vec::<u32>()? == [1, 2, 3], || "memory no longer works".to_owned())
}

fn eleven_kernels(runtime: &Runtime) -> Result<(), Failed> {
    let device = runtime.open("mppa")?;
    let kernels: Result<Vec<_>, _> = (0..12).map(|bit| device.kernel(adds(1 << bit), "add")).collect();
    let (kernels, queue, x) = (kernels?, device.queue()?, device.tensor([100], &[0u32; 100])?);
    for kernel in &kernels {
        queue.launch(kernel, Geometry::cover(100, 16), &[Arg::read_write(&x)])?;
    }
    let given = x.to_vec::<u32>()?;
    check(given.iter().all(|value| *value == 0xfff), || format!("{given:?}"))
}

fn times_without_counters(runtime: &Runtime) -> Result<(), Failed> {
    let device = runtime.open("mppa")?;
    let (kernel, x) = (device.kernel(adds(1), "add")?, device.tensor([100], &[0u32; 100])?);
    let measured = device.bench(&kernel, Geometry::cover(100, 16), (&x,)).samples(7).run()?;
    check(measured.samples_ns.len() == 7, || format!("{measured:?}"))
}

fn calls_and_minimum_time(runtime: &Runtime) -> Result<(), Failed> {
    let device = runtime.open("mppa")?;
    let (kernel, x) = (device.kernel(adds(1), "add")?, device.tensor([100], &[0u32; 100])?);
    let run = |number, min_repeat| {
        let benchmark = device.bench(&kernel, Geometry::cover(100, 16), (&x,)).samples(3);
        let set = |timing: &mut Timing| (timing.number, timing.min_repeat) = (number, min_repeat);
        benchmark.configure(|evaluation| set(&mut evaluation.timing)).run()
    };
    let fixed = run(Some(5), Duration::ZERO)?;
    check(fixed.number == 5 && fixed.samples_ns.len() == 3, || format!("{fixed:?}"))?;
    let calibrated = run(None, Duration::from_millis(2))?;
    check(calibrated.samples_ns.len() == 3, || format!("{calibrated:?}"))
}

fn several_devices(runtime: &Runtime) -> Result<(), Failed> {
    let options = [Options::new(), Options::new().with("verbose", true).with("arch", "kv3-1")];
    let devices = options.each_ref().map(|options| runtime.open_with("mppa", options).unwrap());
    for (number, device) in (1u32..).zip(&devices) {
        let (kernel, x) = (device.kernel(adds(number), "add")?, device.tensor([16], &[0u32; 16])?);
        device.queue()?.call(&kernel, Geometry::cover(16, 16), &[Arg::read_write(&x)])?;
        check(x.to_vec::<u32>()? == [number; 16], || format!("device {number}"))?;
    }
    let refused = runtime.open_with("mppa", &Options::new().with("platform", "iss")).unwrap_err();
    check(refused.message().contains("open a device of the other platform"), || refused.to_string())?;
    let refused = runtime.open_with("mppa", &Options::new().with("stand_in", false)).unwrap_err();
    check(refused.kind() == ErrorKind::Unavailable, || refused.to_string())
}

fn every_repeat() -> Result<(), Failed> {
    let sdk = FakeSdk::new(1);
    std::fs::write(sdk.path().join("program.elf"), sdk.program())?;
    let argument = "[[arg]]\ndtype = \"i32\"\nshape = [1]\nuse = \"readwrite\"\n";
    let kernel = "[kernel]\npath = \"program.elf\"\nentry = \"counted\"\n";
    sdk.write("spec.toml", &format!("version = 1\n{kernel}{argument}[eval]\nrepeat = 5\n"));
    let line = ["--device", "mppa:offload", "--counters", "mppa.PCC.cluster.avg.pe.avg"];
    let row = eval_row(sdk.path(), &sdk.variables(), &line)?;
    for samples in [&row["measurement"]["samples_ns"], &row["counters"][0]["samples"]] {
        check(samples.as_array().is_some_and(|samples| samples.len() == 5), || row.to_string())?;
    }
    Ok(())
}

/// The variables with which a process sees a machine.
type Variables = [(&'static str, PathBuf); 2];

/// A machine whose simulator is a script, and a program for it.
fn simulator(script: &str) -> Result<(tempfile::TempDir, Variables), Failed> {
    let root = tempfile::tempdir()?;
    write_tool(&root.path().join("bin/kvx-mppa"), script);
    std::fs::write(root.path().join("program.elf"), elf_header(KV3_2))?;
    let kernel = "[kernel]\npath = \"program.elf\"\nentry = \"main\"\n";
    std::fs::write(root.path().join("spec.toml"), format!("version = 1\n{kernel}[eval]\nrepeat = 1\n"))?;
    let path = format!("{}:{}", root.path().join("bin").display(), std::env::var("PATH")?);
    let variables = [("RUNTIME_MPPA_ROOT", root.path().to_owned()), ("PATH", path.into())];
    Ok((root, variables))
}

fn awaited_simulator() -> Result<(), Failed> {
    let (root, variables) = simulator("sleep 1000 & echo $! > \"$RUNTIME_TEST_PID\"; echo starting; wait")?;
    let pid = root.path().join("pid");
    let variables = [&variables[..], &[("RUNTIME_TEST_PID", pid.clone())]].concat();
    let line = [
        "--device",
        "mppa:iss",
        "--option",
        "ready=go",
        "--option",
        "ready_timeout_ms=10000",
        "--budget-s",
        "300",
    ];
    let row = eval_row(root.path(), &variables, &line)?;
    let is_late = row["reason"].as_str().is_some_and(|reason| reason.contains("starting"));
    check(is_late && row["outcome"]["kind"] == "timeout", || row.to_string())?;
    check(mppa::ends(std::fs::read_to_string(pid)?.trim()), || {
        "what the simulator has started still runs".to_owned()
    })
}

fn no_shell() -> Result<(), Failed> {
    let (root, variables) = simulator("[ -f \"$3\" ] || exit 9")?;
    let mark = root.path().join("mark");
    let variables = [&variables[..], &[("RUNTIME_TEST_MARK", mark.clone())]].concat();
    let folder = format!("work_dir={}/$(touch $RUNTIME_TEST_MARK)", root.path().display());
    let row = eval_row(root.path(), &variables, &["--device", "mppa:iss", "--option", &folder])?;
    check(!mark.exists(), || "a shell has run".to_owned())?;
    check(row["measurement"].is_object(), || row.to_string())
}
