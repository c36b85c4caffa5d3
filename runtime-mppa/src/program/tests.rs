//! Whole programs on fake tools: scripts that run another script as the "program".

use runtime_core::{Access, DType};

use super::*;
use crate::fixture::FakeRoot;

const DEADLINE: Duration = Duration::from_secs(60);
/// The header of a program for kv3-2, and nothing else.
const ELF: [u8; 64] = {
    let mut bytes = [0; 64];
    (bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[49]) = (0x7f, b'E', b'L', b'F', 2, 0x23);
    bytes
};

/// A device whose simulator is a script.
fn device(root: &FakeRoot, script: &str, options: &Options) -> Result<ProgramDevice> {
    root.tool("bin/kvx-mppa", script);
    let options = options
        .iter()
        .fold(Options::new().with("platform", "iss"), |all, (key, value)| all.with(key, value.clone()));
    let config = MppaConfig::resolve(&root.environment(&[]), &options)?;
    let tools = Tools::new(None, &root.environment(&[]));
    ProgramDevice::open(config, &tools, &options, Log::silent())
}

fn flash(device: &ProgramDevice, program: &Program<'_>) -> Result<()> {
    let options = Options::new();
    device.flash(&Source { format: "elf", path: "", code: Some(&ELF), options: &options }, program)
}

fn run(script: &str, options: &Options, deadline: Duration) -> Result<RunReport> {
    let root = FakeRoot::new();
    let device = device(&root, script, options)?;
    flash(&device, &Program { tensors: Vec::new(), args: Vec::new() })?;
    device.run(deadline)
}

#[test]
fn a_program_reads_and_writes_its_tensors() {
    let root = FakeRoot::new();
    // Called as: --march=kv3-2 -- PROGRAM INPUT OUTPUT FACTOR
    let script = r#"[ "$1$2" = "--march=kv3-2--" ] && [ -x "$3" ] && [ "$6" = 2.5 ] && [ "$PLATFORM" = iss ] && cat "$4" > "$5""#;
    let device = device(&root, script, &Options::new()).unwrap();
    let tensor =
        |data| TensorDescription { dtype: DType::U8, shape: &[3], access: Access::ReadWrite, data, seed: 0 };
    let factor = ProgramArg::Scalar(DType::F32, u64::from(2.5f32.to_bits()));
    let program = Program {
        tensors: vec![tensor(Some(&[1, 2, 3])), tensor(None)],
        args: vec![ProgramArg::Tensor(0), ProgramArg::Tensor(1), factor],
    };
    assert!(device.run(DEADLINE).unwrap_err().message().contains("flash first"));
    flash(&device, &program).unwrap();
    let mut bytes = [9; 2];
    device.read(1, 1, &mut bytes).unwrap();
    assert_eq!(bytes, [0, 0]);
    assert_eq!(device.run(DEADLINE).unwrap().exit_code, 0);
    device.read(1, 1, &mut bytes).unwrap();
    assert_eq!(bytes, [2, 3]);
    assert!(device.read(1, 2, &mut bytes).is_err() && device.read(2, 0, &mut bytes).is_err());
}

#[test]
fn a_failing_program_reports_its_code_and_output() {
    let error = run("echo boom; exit 5", &Options::new(), DEADLINE).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(error.message().contains("boom") && error.message().contains("exit status: 5"), "{error}");
    let error = run("kill -SEGV $$", &Options::new(), DEADLINE).unwrap_err();
    assert!(error.message().contains("signal: 11"), "{error}");
}

#[test]
fn time_counts_from_readiness() {
    let ready = Options::new().with("ready", "begin");
    let started = Instant::now();
    let report = run("sleep 0.3; echo begin", &ready, DEADLINE).unwrap();
    let before = started.elapsed() - Duration::from_nanos(report.elapsed_ns);
    assert!(before >= Duration::from_millis(300), "{report:?} after {before:?}");
    let silent = ready.with("ready_timeout_ms", 30);
    let error = run("sleep 1000", &silent, DEADLINE).unwrap_err();
    assert!(error.kind() == ErrorKind::Timeout && error.message().contains("begin"), "{error}");
    let error = run("sleep 1000", &Options::new(), Duration::from_millis(30)).unwrap_err();
    assert!(error.kind() == ErrorKind::Timeout && error.message().contains("still running"), "{error}");
}

#[test]
fn traces_of_a_run_that_is_never_ready_are_collected() {
    let (root, work) = (FakeRoot::new(), tempfile::tempdir().unwrap());
    let options = Options::new().with("work_dir", work.path().to_str().unwrap()).with("ready", "begin");
    let options = options.with("trace", true).with("platform", "hw");
    root.tool("bin/kvx-jtag-runner", "echo > mppa.trace; exit 3");
    let config = MppaConfig::resolve(&root.environment(&[]), &options).unwrap();
    let tools = Tools::new(None, &root.environment(&[]));
    let device = ProgramDevice::open(config, &tools, &options, Log::silent()).unwrap();
    flash(&device, &Program { tensors: Vec::new(), args: Vec::new() }).unwrap();
    let error = device.run(DEADLINE).unwrap_err();
    assert!(error.kind() == ErrorKind::Failed && error.message().contains("before it printed"), "{error}");
    let runs = std::fs::read_dir(work.path().join("traces")).unwrap();
    let files: Vec<_> = runs.map(|run| run.unwrap().path().join("mppa.trace").exists()).collect();
    assert_eq!(files, [true]);
}

#[test]
fn what_a_program_cannot_take_is_refused() {
    let root = FakeRoot::new();
    let device = device(&root, "", &Options::new()).unwrap();
    let seeded =
        TensorDescription { dtype: DType::F32, shape: &[1], access: Access::Read, data: None, seed: 3 };
    let error = flash(&device, &Program { tensors: vec![seeded], args: Vec::new() }).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.message().contains("seed"), "{error}");
    let error =
        flash(&device, &Program { tensors: Vec::new(), args: vec![ProgramArg::Bytes(&[0])] }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let options = Options::new();
    let script = Source { format: "elf", path: "", code: Some(b"#!/bin/sh"), options: &options };
    let nothing = Program { tensors: Vec::new(), args: Vec::new() };
    assert!(device.flash(&script, &nothing).unwrap_err().message().contains("not an ELF"));
}

#[test]
fn scalars_are_written_as_numbers() {
    for (dtype, bits, text) in [
        (DType::I8, 0xff, "-1"),
        (DType::I16, 0xffff, "-1"),
        (DType::I32, 0xffff_ffff, "-1"),
        (DType::I64, u64::MAX, "-1"),
        (DType::U64, u64::MAX, "18446744073709551615"),
        (DType::F64, 0.5f64.to_bits(), "0.5"),
        (DType::F32, u64::from(1.5f32.to_bits()), "1.5"),
    ] {
        assert_eq!(argument(ProgramArg::Scalar(dtype, bits), &[]).unwrap(), text);
    }
    assert!(argument(ProgramArg::Scalar(DType::F16, 0), &[]).is_err());
}

#[test]
fn without_its_tool_a_platform_is_unavailable() {
    let root = FakeRoot::new();
    let options = Options::new().with("platform", "qemu");
    let config = MppaConfig::resolve(&root.environment(&[]), &options).unwrap();
    let error = ProgramDevice::open(config, &Tools::default(), &options, Log::silent()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("qemu-system-kvx") && error.message().contains("command"), "{error}");
}

/// File systems differ in what fits; a process that asks for so much memory is aborted.
#[test]
fn a_tensor_of_any_size_is_a_file_or_an_error() {
    let root = FakeRoot::new();
    let device = device(&root, "", &Options::new()).unwrap();
    let flash_zeros = |extent| {
        let shape = [extent];
        let zeros =
            TensorDescription { dtype: DType::F32, shape: &shape, access: Access::Read, data: None, seed: 0 };
        flash(&device, &Program { tensors: vec![zeros], args: Vec::new() })
    };
    if let Err(error) = flash_zeros(1 << 50) {
        assert!(error.kind() == ErrorKind::Io && error.message().contains("tensor0.bin"), "{error}");
    }
    assert_eq!(flash_zeros(i64::MAX).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// A program may do anything to the files of its folder; opening a pipe without a writer would wait forever.
#[test]
fn pipes_and_links_in_place_of_its_files_hold_up_nothing() {
    let root = FakeRoot::new();
    let victim = root.path().join("victim");
    std::fs::write(&victim, "kept").unwrap();
    let script = format!(
        "f=${{3%/*}}; echo before; rm $f/*; mkfifo $f/tensor0.bin; ln -s {} $f/program.elf; echo after; exit 3",
        victim.display()
    );
    let device = device(&root, &script, &Options::new()).unwrap();
    let tensor =
        TensorDescription { dtype: DType::U8, shape: &[1], access: Access::Read, data: None, seed: 0 };
    for _ in 0..2 {
        flash(&device, &Program { tensors: vec![tensor], args: Vec::new() }).unwrap();
        let error = device.run(DEADLINE).unwrap_err();
        assert!(error.message().contains("before\nafter"), "{error}");
        let error = device.read(0, 0, &mut [0]).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.message().contains("tensor0.bin"), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "kept");
}
