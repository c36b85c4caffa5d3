//! OpenCL C to SPIR-V by clang and llvm-spirv, outside any driver, and executed.

use std::path::Path;
use std::process::Command;

use opencl::{DEADLINE, Driver, Vendors, again, stub};
use runtime_core::{Arg, CodeFormat, ErrorKind, Geometry, Result};

use crate::lab::{Lab, lacks, same, source};

/// A case with the compiler.
pub(crate) type Case = (&'static str, fn(&Lab, &Compiler) -> Result<()>);

pub(crate) const CASES: &[Case] = &[
    ("runs", runs),
    ("runs_on_an_older_driver", runs_on_an_older_driver),
    ("names_its_kernels", names_its_kernels),
    ("truncated_is_an_error", truncated_is_an_error),
    ("is_refused_where_it_is_not_taken", is_refused_where_it_is_not_taken),
];

/// Commands that make SPIR-V.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    clang: String,
    spirv: String,
}

/// The compiler, or which part is missing and how to have it.
pub(crate) fn compiler() -> std::result::Result<Compiler, (&'static str, String)> {
    let find = |name: &str, remedy: &str| {
        // Both of one version: a bitcode of one LLVM is read by its own.
        let mut versions = (14..24).rev().map(|version| format!("{name}-{version}"));
        versions.find(|command| runs_at_all(command)).ok_or_else(|| format!("on Debian: {remedy}"))
    };
    let spirv = find("llvm-spirv", "llvm-spirv-15").map_err(|remedy| ("llvm-spirv", remedy))?;
    let clang = spirv.replace("llvm-spirv", "clang");
    if runs_at_all(&clang) {
        Ok(Compiler { clang, spirv })
    } else {
        Err(("clang", format!("on Debian: {clang}")))
    }
}

fn runs_at_all(program: &str) -> bool {
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

/// Whether the device takes it, as it says itself.
fn takes(lab: &Lab) -> bool {
    lab.device.info().formats.iter().any(|format| format == CodeFormat::SPIRV_KERNEL.as_str())
}

fn spirv(lab: &Lab, compiler: &Compiler) -> Result<Vec<u8>> {
    assert!(
        takes(lab) || lab.driver != Driver::Intel,
        "Intel's takes SPIR-V: {:?}",
        lab.device.info().formats
    );
    if takes(lab) {
        Ok(compiler.compile(include_str!("../../kernels/idioms.cl")))
    } else {
        Err(lacks("SPIR-V"))
    }
}

fn runs(lab: &Lab, compiler: &Compiler) -> Result<()> {
    let module = lab.device.load(&source(CodeFormat::SPIRV_KERNEL, spirv(lab, compiler)?))?;
    let data: Vec<i32> = (0..1000).collect();
    let (from, to) = (lab.tensor(&data)?, lab.zeros::<i32>(1000)?);
    lab.run_of(
        &module,
        "add_ints",
        &Geometry::new(4, 32),
        &[Arg::read(&from), Arg::write(&to), Arg::scalar(1000u32)],
    )?;
    same(&to, &(1..=1000).collect::<Vec<i32>>())?;
    let sums = lab.zeros::<f32>(2)?;
    let ones = lab.tensor(&[1.0f32; 100])?;
    let args = [Arg::read(&ones), Arg::write(&sums), Arg::local(4 * 64), Arg::scalar(100u32)];
    lab.run_of(&module, "sum", &Geometry::new(2, 64), &args)?;
    same(&sums, &[64.0f32, 36.0])
}

/// A driver of OpenCL 1.2 has an extension instead of the function: this program once more, behind a loader that says so.
fn runs_on_an_older_driver(lab: &Lab, compiler: &Compiler) -> Result<()> {
    spirv(lab, compiler)?;
    let vendors = Vendors::of(&[lab.driver]).unwrap();
    let library = stub::build(vendors.path()).unwrap();
    let words = "old,fail=clCreateProgramWithIL:-59:0";
    let mut command = stub::command(&vendors, &again().unwrap(), &library, words).unwrap();
    command.args([format!("{}::spirv::runs", lab.driver.name()), "--exact".to_owned()]);
    let said = opencl::finish(&mut command, DEADLINE).unwrap().success().unwrap();
    assert!(said.contains("1 passed"), "{said}");
    Ok(())
}

fn names_its_kernels(lab: &Lab, compiler: &Compiler) -> Result<()> {
    let module = lab.device.load(&source(CodeFormat::SPIRV_KERNEL, spirv(lab, compiler)?))?;
    let symbols = module.symbols()?;
    assert!(
        ["sum", "heat", "look"].iter().all(|name| symbols.iter().any(|symbol| symbol == name)),
        "{symbols:?}"
    );
    assert_eq!(module.kernel("heat")?.info().group_size, Some([16, 16, 1]), "what the code fixes is known");
    Ok(())
}

fn truncated_is_an_error(lab: &Lab, compiler: &Compiler) -> Result<()> {
    let code = spirv(lab, compiler)?;
    for bytes in [0, 3, 20, code.len() / 2 + 1] {
        let error = lab.device.load(&source(CodeFormat::SPIRV_KERNEL, &code[..bytes])).map(drop).unwrap_err();
        let kind = error.kind();
        assert!(
            matches!(kind, ErrorKind::CompileFailed | ErrorKind::InvalidArgument),
            "{bytes} bytes: {error:?}"
        );
    }
    Ok(())
}

fn is_refused_where_it_is_not_taken(lab: &Lab, compiler: &Compiler) -> Result<()> {
    if takes(lab) {
        return Ok(());
    }
    let code = compiler.compile("kernel void nothing(void) {}");
    let error = lab.device.load(&source(CodeFormat::SPIRV_KERNEL, code)).map(drop).unwrap_err();
    let words = error.to_string();
    assert!(error.kind() == ErrorKind::Unsupported && words.contains("opencl-c"), "{words}");
    Ok(())
}
