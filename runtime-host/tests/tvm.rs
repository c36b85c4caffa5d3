//! Calls a shared object built by TVM through TVM's FFI.
//!
//! Needs a Python with `apache-tvm`, named by `RUNTIME_TEST_PYTHON` (`tests/interop/install.sh` installs one). Without it
//! the tests are ignored, with the reason, and fail if `RUNTIME_REQUIRE` lists `python` or `tvm`.

#![allow(unsafe_code, reason = "loads native code")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, ErrorKind, Geometry, Kernel, Module, ModuleSource, Runtime, Tensor,
};

type Case = fn(&Host) -> Result<(), Failed>;

fn main() -> ExitCode {
    let cases: [(&str, Case); 3] =
        [("add", adds), ("matmul", multiplies), ("errors carry TVM's message", reports_errors)];
    let trials = cases.map(|(name, case)| Trial::ignorable_test(name, move || outcome(case)));
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

fn outcome(case: Case) -> Result<Completion, Failed> {
    match Host::open()? {
        Ok(host) => case(&host).map(|()| Completion::Completed),
        Err(missing) if ["python", "tvm"].into_iter().any(test_process::required) => Err(missing.into()),
        Err(missing) => Ok(Completion::ignored_with(missing)),
    }
}

/// A value, or the reason why the test is ignored.
type Found<T> = Result<T, String>;

struct Host {
    host: Arc<dyn CommonRuntime>,
    module: Module,
    _folder: tempfile::TempDir,
}

impl Host {
    fn open() -> Result<Found<Self>, Failed> {
        let runtime = Runtime::builder().discover(false).register(runtime_host::backend()).build();
        let host = runtime.open("host")?;
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("module.so");
        let libraries = match build(&file)? {
            Ok(libraries) => libraries,
            Err(missing) => return Ok(Err(missing)),
        };
        // SAFETY: the tests call the functions with the tensors that they take.
        let mut source = unsafe { ModuleSource::native_file(CodeFormat::SHARED_OBJECT, file) };
        for library in libraries {
            source = source.option("libraries", library);
        }
        let module = host.load(&source)?;
        Ok(Ok(Self { host, module, _folder: folder }))
    }

    fn kernel(&self, name: &str) -> Result<Kernel, Failed> {
        Ok(self.module.kernel(name)?)
    }

    fn tensor(&self, shape: &[usize], value: impl Fn(usize) -> f32) -> Result<Tensor, Failed> {
        let data: Vec<f32> = (0..shape.iter().product()).map(value).collect();
        Ok(self.host.tensor(shape, &data)?)
    }
}

/// Builds the module; returns the libraries that it needs.
fn build(file: &Path) -> Result<Found<Vec<String>>, Failed> {
    let Some(python) = std::env::var_os("RUNTIME_TEST_PYTHON") else {
        return Ok(Err("set RUNTIME_TEST_PYTHON to a Python that has apache-tvm".to_owned()));
    };
    let script: PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "..", "tests", "interop", "tvm_module.py"].iter().collect();
    let output = Command::new(python).arg(script).arg(file).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        Some(0) => Ok(Ok(said.lines().map(str::to_owned).collect())),
        Some(3) => Ok(Err(said.trim().to_owned())),
        _ => Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn equal(found: &Tensor, expected: &[f32]) -> Result<(), Failed> {
    let found = found.to_vec::<f32>()?;
    match found
        .iter()
        .zip(expected)
        .position(|(found, expected)| (found - expected).abs() > 1e-4 * expected.abs())
    {
        None if found.len() == expected.len() => Ok(()),
        at => Err(format!("element {at:?} of {}: {found:?}, not {expected:?}", expected.len()).into()),
    }
}

fn adds(host: &Host) -> Result<(), Failed> {
    let queue = host.host.queue()?;
    let kernel = host.kernel("add")?;
    for count in [1, 17, 4099] {
        let x = host.tensor(&[count], |index| index as f32)?;
        let y = host.tensor(&[count], |index| 0.5 * index as f32)?;
        let z = host.tensor(&[count], |_| f32::NAN)?;
        let args = [Arg::read(&x), Arg::read(&y), Arg::write(&z)];
        queue.call(&kernel, Geometry::single(), &args)?;
        queue.launch(&kernel, Geometry::single(), &args)?.wait()?;
        equal(&z, &(0..count).map(|index| 1.5 * index as f32).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn multiplies(host: &Host) -> Result<(), Failed> {
    const N: usize = 33;
    const M: usize = 20;
    const K: usize = 47;
    let queue = host.host.queue()?;
    let (left, right) = (|at: usize| (at % 7) as f32 - 3.0, |at: usize| (at % 5) as f32 * 0.25);
    let a = host.tensor(&[N, K], left)?;
    let b = host.tensor(&[K, M], right)?;
    let c = host.tensor(&[N, M], |_| f32::NAN)?;
    let args = [Arg::read(&a), Arg::read(&b), Arg::write(&c)];
    queue.launch(&host.kernel("matmul")?, Geometry::single(), &args)?.wait()?;
    let sum = |at: usize| (0..K).map(|k| left(at / M * K + k) * right(k * M + at % M)).sum();
    equal(&c, &(0..N * M).map(sum).collect::<Vec<_>>())
}

fn reports_errors(host: &Host) -> Result<(), Failed> {
    let kernel = host.kernel("add")?;
    let (x, y) = (host.tensor(&[4], |_| 1.0)?, host.tensor(&[3], |_| 1.0)?);
    let z = host.tensor(&[4], |_| 1.0)?;
    for args in [&[Arg::read(&x), Arg::read(&y), Arg::write(&z)][..], &[Arg::read(&x)]] {
        let queue = host.host.queue()?;
        let error = match queue.call(&kernel, Geometry::single(), args) {
            Ok(()) => return Err("TVM accepted arguments of wrong shapes".into()),
            Err(error) => error,
        };
        let reported = error.kind() == ErrorKind::Failed && error.message().contains("Error: ");
        if !reported || error.driver() != Some(("__tvm_ffi_add", -1)) {
            return Err(format!("{error}").into());
        }
    }
    Ok(())
}
