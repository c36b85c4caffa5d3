//! Launches that report an error with a source line: the host gets the error, and the device stays usable. Runs on
//! every device of this machine. And messages of compilers for wrong code, which have a source line, too.

use std::sync::Arc;

use libtest_mimic::{Completion, Failed, Trial};
use portable::modified_lowering::modified_lowering;
use portable::required;
use runtime_core::lowering::Lowering;
use runtime_core::{Arg, CommonRuntime, ErrorKind, Geometry, Kernel, ModuleSource, Result, Runtime, Tensor};

/// Reports the numbers it finds, through a hidden tensor that launches do not pass.
const CODE: &str = "
    @group(0) @binding(0) var<storage, read_write> report: atomic<u32>;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    @compute @workgroup_size(64) fn tell(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { atomicMax(&report, y[id.x]); y[id.x] += 1; }
    }";
const ELEMENTS: usize = 100;

/// Stands for what a lowering writes wrong.
const WRONG: &str = "48879u";

/// WGSL whose first tensor is a report; or, with the option `assert_proofs`, OpenCL C with wrong proofs; or C that does not
/// compile.
fn reporting() -> Arc<dyn Lowering> {
    modified_lowering(None, |source, _, lowered| {
        if source.options.flag("assert_proofs") {
            let text = String::from_utf8_lossy(&lowered.code).replace("< 64u", "< 63u");
            lowered.code = text.into_bytes();
            return Ok(());
        }
        if source.code.contains(WRONG) {
            let text = String::from_utf8_lossy(&lowered.code).replace(WRONG, "@");
            lowered.code = text.into_bytes();
            return Ok(());
        }
        for kernel in &mut lowered.kernels {
            kernel.params.remove(0);
            kernel.reports_on = Some("a.wgsl".to_owned());
        }
        Ok(())
    })
}

/// Enough groups for all elements, plus a few work-items.
fn all() -> Geometry {
    Geometry::new(2, 64)
}

type Case = fn(&Arc<dyn CommonRuntime>) -> Result<()>;

const CASES: [(&str, Case); 4] = [
    ("a_line_fails_the_launch", fails),
    ("nothing_to_report_is_no_failure", passes),
    ("errors_count_the_arguments_of_the_launch", refuses),
    ("a_recording_cannot_report", records),
];
/// Only on these devices is the code text that can be modified.
const OF_OPENCL: (&str, Case) = ("a_proof_that_does_not_hold_fails_the_launch", disproves);
const OF_C: (&str, Case) = ("code_that_does_not_compile_has_lines_of_the_text", does_not_compile);

pub(crate) fn trials() -> Vec<Trial> {
    let runtime = Arc::new(Runtime::builder().with_lowering(reporting()).build());
    let mut trials = Vec::new();
    for name in ["host", "opencl", "vulkan", "cuda"] {
        let of_opencl = (name == "opencl").then_some(OF_OPENCL);
        let of_c = (name != "vulkan").then_some(OF_C);
        for (case, check) in CASES.into_iter().chain(of_opencl).chain(of_c) {
            let runtime = runtime.clone();
            trials.push(Trial::ignorable_test(format!("reports::{name}::{case}"), move || {
                run_case(&runtime, name, check)
            }));
        }
    }
    trials
}

fn run_case(runtime: &Runtime, name: &str, check: Case) -> std::result::Result<Completion, Failed> {
    match runtime.open(name) {
        Err(error)
            if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::NotFound) && !required(name) =>
        {
            Ok(Completion::ignored_with(error.to_string()))
        }
        opened => Ok(check(&opened?).map(|()| Completion::Completed)?),
    }
}

fn kernel(device: &Arc<dyn CommonRuntime>) -> Result<Kernel> {
    device.kernel(ModuleSource::wgsl(CODE), "tell")
}

fn tensor(device: &Arc<dyn CommonRuntime>, last: u32) -> Result<Tensor> {
    let mut numbers = [0; ELEMENTS];
    numbers[ELEMENTS - 1] = last;
    device.tensor([ELEMENTS], &numbers)
}

fn fails(device: &Arc<dyn CommonRuntime>) -> Result<()> {
    let kernel = kernel(device)?;
    for (line, place) in [(7, "a.wgsl:7: "), (u32::MAX, "a.wgsl: ")] {
        let (y, queue) = (tensor(device, line)?, device.queue()?);
        let args = [Arg::read_write(&y)];
        let event = queue.launch(&kernel, all(), &args)?;
        let error = event.wait().expect_err("a failure");
        assert!(error.kind() == ErrorKind::Failed && error.message().starts_with(place), "{error}");
        assert!(error.message().contains("\"tell\""), "{error}");
        let error = y.to_vec::<u32>().expect_err("a failure");
        assert!(error.message().contains(place), "reading its output: {error}");
        let error = queue.launch(&kernel, all(), &args).expect_err("a failure");
        assert!(error.message().contains(place), "a later launch: {error}");
        let (other, queue) = (tensor(device, line)?, device.queue()?);
        let error = queue.call(&kernel, all(), &[Arg::read_write(&other)]).expect_err("a failure");
        assert!(error.message().contains(place), "through `call`: {error}");
    }
    passes(device)
}

fn passes(device: &Arc<dyn CommonRuntime>) -> Result<()> {
    let (kernel, y) = (kernel(device)?, tensor(device, 0)?);
    assert_eq!(kernel.info().params.as_ref().map(Vec::len), Some(1), "the report is not a parameter");
    let queue = device.queue()?;
    queue.launch(&kernel, all(), &[Arg::write(&y)]).expect_err("the kernel also reads it");
    queue.launch(&kernel, all(), &[Arg::read_write(&y)])?.wait()?;
    assert_eq!(y.to_vec::<u32>()?, [1; ELEMENTS]);
    queue.launch(&kernel, Geometry::new(0, 64), &[Arg::read_write(&y)])?.wait()
}

fn refuses(device: &Arc<dyn CommonRuntime>) -> Result<()> {
    let (kernel, y) = (kernel(device)?, tensor(device, 0)?);
    let queue = device.queue()?;
    let gaps = y.view(&[ELEMENTS / 2], &[2], 0)?;
    let error = queue.launch(&kernel, all(), &[Arg::read_write(&gaps)]).expect_err("a failure");
    assert!(error.message().contains("argument 0 of \"tell\" is not contiguous"), "{error}");
    assert_eq!(queue.submitted(), 0, "nothing was submitted");
    Ok(())
}

fn records(device: &Arc<dyn CommonRuntime>) -> Result<()> {
    let (kernel, y) = (kernel(device)?, tensor(device, 0)?);
    let queue = device.queue()?;
    let recorded = queue.record(|recorder| recorder.launch(&kernel, all(), &[Arg::read_write(&y)]));
    let error = recorded.expect_err("a failure");
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("assert_proofs"), "{error}");
    Ok(())
}

fn disproves(device: &Arc<dyn CommonRuntime>) -> Result<()> {
    let code = "
        @group(0) @binding(0) var<storage, read_write> report: array<u32, 64>;
        @compute @workgroup_size(64) fn go(@builtin(local_invocation_index) i: u32) {
            report[i] =
                i;
        }
        @compute @workgroup_size(1) fn plain() {}";
    let module = device.load(&ModuleSource::wgsl(code).option("assert_proofs", true))?;
    let queue = device.queue()?;
    queue.call(&module.kernel("plain")?, Geometry::single(), &[])?;
    let y = device.tensor([64], &[7_u32; 64])?;
    let args = [Arg::read_write(&y)];
    let error = queue.call(&module.kernel("go")?, Geometry::new(1, 64), &args).expect_err("a failure");
    assert!(error.message().starts_with("wgsl:4: "), "{error}");
    Ok(())
}

fn does_not_compile(device: &Arc<dyn CommonRuntime>) -> Result<()> {
    let code = "
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        fn wrong(i: u32) -> u32 {
            var sum = i;
            for (var k = 0u; k < i; k++) { sum *= 3u; }
            return sum ^ 48879u;
        }
        @compute @workgroup_size(64) fn go(@builtin(global_invocation_id) id: vec3u) {
            if id.x < arrayLength(&y) { y[id.x] = wrong(id.x); }
        }";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wrong.wgsl");
    std::fs::write(&file, code).expect("a file");
    let sources = [
        (ModuleSource::wgsl_file(file), "wrong.wgsl:6:"),
        // A text without a name has that of its entry point.
        (ModuleSource::wgsl(code), "go.wgsl:6:"),
    ];
    for (source, place) in sources {
        for error in
            [device.load(&source).expect_err("a failure"), device.compile(&source).expect_err("a failure")]
        {
            assert!(error.kind() == ErrorKind::CompileFailed && error.to_string().contains(place), "{error}");
        }
    }
    Ok(())
}
