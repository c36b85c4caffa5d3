//! SPIR-V compiled from OpenCL C by clang and llvm-spirv, and executed.

use std::path::Path;
use std::process::Command;

use opencl::{DEADLINE, Driver, IcdFolder, current_program, stub};
use runtime_core::{Arg, CodeFormat, ErrorKind, Geometry, Result};

use super::fixture::{Fixture, assert_equal, source, unsupported};

/// A case that needs the compiler.
pub(crate) type Case = (&'static str, fn(&Fixture, &Compiler) -> Result<()>);

pub(crate) const CASES: &[Case] = &[
    ("runs", runs),
    ("runs_on_an_older_driver", runs_on_an_older_driver),
    ("lists_its_kernels", lists_its_kernels),
    ("truncated_is_an_error", truncated_is_an_error),
    ("is_refused_where_unsupported", is_refused_where_unsupported),
];

/// The commands that compile to SPIR-V.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    clang: String,
    spirv: String,
}

/// The compiler, or the missing tool and how to install it.
pub(crate) fn compiler() -> std::result::Result<Compiler, (&'static str, String)> {
    let find = |name: &str, remedy: &str| {
        // Both of one version: only the same LLVM is sure to read its bitcode.
        let mut versions = (14..24).rev().map(|version| format!("{name}-{version}"));
        versions.find(|command| is_installed(command)).ok_or_else(|| format!("on Debian: {remedy}"))
    };
    let spirv = find("llvm-spirv", "llvm-spirv-15").map_err(|remedy| ("llvm-spirv", remedy))?;
    let clang = spirv.replace("llvm-spirv", "clang");
    if is_installed(&clang) {
        Ok(Compiler { clang, spirv })
    } else {
        Err(("clang", format!("on Debian: {clang}")))
    }
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

impl Compiler {
    fn compile(&self, text: &str) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::write(place("k.cl"), text).unwrap();
        let flags =
            ["-x", "cl", "-cl-std=CL1.2", "-target", "spir64-unknown-unknown", "-O1", "-emit-llvm", "-c"];
        let header = ["-Xclang", "-finclude-default-header"];
        step(Command::new(&self.clang).args(flags).args(header), &place("k.cl"), &place("k.bc"));
        step(&mut Command::new(&self.spirv), &place("k.bc"), &place("k.spv"));
        std::fs::read(place("k.spv")).unwrap()
    }
}

fn step(command: &mut Command, from: &Path, to: &Path) {
    let output = command.arg("-o").arg(to).arg(from).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Whether the device lists SPIR-V as a format.
fn accepts_spirv(fixture: &Fixture) -> bool {
    fixture.device.info().accepts(&CodeFormat::SPIRV_KERNEL)
}

fn spirv(fixture: &Fixture, compiler: &Compiler) -> Result<Vec<u8>> {
    assert!(
        accepts_spirv(fixture) || fixture.driver != Driver::Intel,
        "Intel's driver accepts SPIR-V: {:?}",
        fixture.device.info().formats
    );
    if accepts_spirv(fixture) {
        Ok(compiler.compile(include_str!("../../../kernels/idioms.cl")))
    } else {
        Err(unsupported("SPIR-V"))
    }
}

fn runs(fixture: &Fixture, compiler: &Compiler) -> Result<()> {
    let module = fixture.device.load(&source(CodeFormat::SPIRV_KERNEL, spirv(fixture, compiler)?))?;
    let data: Vec<i32> = (0..1000).collect();
    let (from, to) = (fixture.tensor(&data)?, fixture.zeros::<i32>(1000)?);
    fixture.run_from(
        &module,
        "add_ints",
        &Geometry::new(4, 32),
        &[Arg::read(&from), Arg::write(&to), Arg::scalar(1000u32)],
    )?;
    assert_equal(&to, &(1..=1000).collect::<Vec<i32>>())?;
    let sums = fixture.zeros::<f32>(2)?;
    let ones = fixture.tensor(&[1.0f32; 100])?;
    let args = [Arg::read(&ones), Arg::write(&sums), Arg::local(4 * 64), Arg::scalar(100u32)];
    fixture.run_from(&module, "sum", &Geometry::new(2, 64), &args)?;
    assert_equal(&sums, &[64.0f32, 36.0])
}

/// An OpenCL 1.2 driver has an extension instead of the function: runs this program again, behind a stub that pretends so.
fn runs_on_an_older_driver(fixture: &Fixture, compiler: &Compiler) -> Result<()> {
    spirv(fixture, compiler)?;
    let icd_folder = IcdFolder::with_drivers(&[fixture.driver]).unwrap();
    let library = stub::build(icd_folder.path()).unwrap();
    let words = "old,fail=clCreateProgramWithIL:-59:0";
    let mut command = stub::command(&icd_folder, &current_program().unwrap(), &library, words).unwrap();
    command.args([format!("{}::spirv::runs", fixture.driver.name()), "--exact".to_owned()]);
    let output = opencl::finish(&mut command, DEADLINE).unwrap().success().unwrap();
    assert!(output.contains("1 passed"), "{output}");
    Ok(())
}

fn lists_its_kernels(fixture: &Fixture, compiler: &Compiler) -> Result<()> {
    let module = fixture.device.load(&source(CodeFormat::SPIRV_KERNEL, spirv(fixture, compiler)?))?;
    let symbols = module.symbols()?;
    assert!(
        ["sum", "heat", "look"].iter().all(|name| symbols.iter().any(|symbol| symbol == name)),
        "{symbols:?}"
    );
    assert_eq!(module.kernel("heat")?.info().group_size, Some([16, 16, 1]), "fixed by the kernel");
    Ok(())
}

fn truncated_is_an_error(fixture: &Fixture, compiler: &Compiler) -> Result<()> {
    let code = spirv(fixture, compiler)?;
    for bytes in [0, 3, 20, code.len() / 2 + 1] {
        let error =
            fixture.device.load(&source(CodeFormat::SPIRV_KERNEL, &code[..bytes])).map(drop).unwrap_err();
        let kind = error.kind();
        assert!(
            matches!(kind, ErrorKind::CompileFailed | ErrorKind::InvalidArgument),
            "{bytes} bytes: {error:?}"
        );
    }
    Ok(())
}

fn is_refused_where_unsupported(fixture: &Fixture, compiler: &Compiler) -> Result<()> {
    if accepts_spirv(fixture) {
        return Ok(());
    }
    let code = compiler.compile("kernel void nothing(void) {}");
    let error = fixture.device.load(&source(CodeFormat::SPIRV_KERNEL, code)).map(drop).unwrap_err();
    let words = error.to_string();
    assert!(error.kind() == ErrorKind::Unsupported && words.contains("opencl-c"), "{words}");
    Ok(())
}
