//! Binaries from the driver, saved binaries, and bytes that are not binaries.

use runtime_core::{Arg, CodeFormat, ErrorKind, Geometry, ModuleSource, Result};

use super::Case;
use super::fixture::{Fixture, assert_equal, opencl_c, source, unsupported};

pub(crate) const CASES: &[Case] = &[
    ("a_binary_from_the_driver_runs", a_binary_from_the_driver_runs),
    ("a_saved_binary_runs", a_saved_binary_runs),
    ("a_binary_lists_its_kernels", a_binary_lists_its_kernels),
    ("bytes_that_are_not_a_binary_are_an_error", bytes_that_are_not_a_binary_are_an_error),
];

const CODE: &str =
    "kernel void twice(global int *x) { x[get_global_id(0)] *= 2; } kernel void other(void) {}";

/// A binary that the driver compiled without the backend.
fn binary(fixture: &Fixture) -> Result<Vec<u8>> {
    if !fixture.device.info().accepts(&CodeFormat::OPENCL_BINARY) {
        return Err(unsupported("OpenCL binaries"));
    }
    Ok(opencl::driver_compiler::compile_on_all_devices(CODE).remove(0).1)
}

fn a_binary_from_the_driver_runs(fixture: &Fixture) -> Result<()> {
    let module = fixture.device.load(&source(CodeFormat::OPENCL_BINARY, binary(fixture)?))?;
    let x = fixture.tensor(&(0..100).collect::<Vec<i32>>())?;
    fixture.run_from(&module, "twice", &Geometry::new(10, 10), &[Arg::read_write(&x)])?;
    assert_equal(&x, &(0..100).map(|value| 2 * value).collect::<Vec<i32>>())
}

/// Loads code from source once, and then from the saved file.
fn a_saved_binary_runs(fixture: &Fixture) -> Result<()> {
    binary(fixture)?;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("twice.bin");
    fixture.device.load(&opencl_c(CODE).option("save_binary", file.to_str().unwrap()))?;
    // SAFETY: the kernels stay within their arguments, and nothing changes the file.
    let module =
        fixture.device.load(&unsafe { ModuleSource::native_file(CodeFormat::OPENCL_BINARY, &file) })?;
    let x = fixture.tensor(&[21i32; 10])?;
    fixture.run_from(&module, "twice", &Geometry::new(1, 10), &[Arg::read_write(&x)])?;
    assert_equal(&x, &[42i32; 10])
}

fn a_binary_lists_its_kernels(fixture: &Fixture) -> Result<()> {
    let module = fixture.device.load(&source(CodeFormat::OPENCL_BINARY, binary(fixture)?))?;
    let mut symbols = module.symbols()?;
    symbols.sort();
    assert_eq!(symbols, ["other", "twice"]);
    let error = module.kernel("twise").unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.to_string().contains("twice"), "{error}");
    Ok(())
}

fn bytes_that_are_not_a_binary_are_an_error(fixture: &Fixture) -> Result<()> {
    binary(fixture)?;
    // Drivers may trust bytes that begin like their own binaries: these do not.
    for code in [&b""[..], b"x", b"\x7fELF", &[0; 4096], b"kernel void noop(void) {}"] {
        let error = fixture.device.load(&source(CodeFormat::OPENCL_BINARY, code)).map(drop).unwrap_err();
        let kind = error.kind();
        let is_typed =
            matches!(kind, ErrorKind::CompileFailed | ErrorKind::InvalidArgument | ErrorKind::Unsupported);
        assert!(is_typed, "{} bytes: {error:?}", code.len());
    }
    Ok(())
}
