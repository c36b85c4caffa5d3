//! End to end: a program launches C code through core and the backend's table.

#![allow(unsafe_code, reason = "loads native code")]

use std::sync::Arc;

use runtime_core::{Arg, CodeFormat, CommonRuntime, ErrorKind, Geometry, ModuleSource, Runtime};

const CODE: &str = "
void axpy(const float *x, float *y, float a, long long n) { for (long long i = 0; i < n; i++) y[i] += a * x[i]; }
void nine(double *out, int a, int b, int c, int d, int e, int f, int g, signed char h) {
    *out = a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f + 1000000 * g + h;
}
";

fn host() -> Arc<dyn CommonRuntime> {
    let runtime = Runtime::builder().discover(false).register(runtime_host::backend()).build();
    runtime.open("host").expect("the host is always available")
}

fn source(code: &str) -> ModuleSource {
    // SAFETY: the launches below match the functions' parameters.
    unsafe { ModuleSource::native(CodeFormat::C, code) }
}

#[test]
fn kernels_run_inline_and_asynchronously() {
    let host = host();
    let kernel = host.kernel(source(CODE), "axpy").unwrap();
    let queue = host.queue().unwrap();
    let x = host.tensor([1000], &[2.0_f32; 1000]).unwrap();
    let y = host.tensor([1000], &[1.0_f32; 1000]).unwrap();
    let args = [Arg::read(&x), Arg::read_write(&y), Arg::scalar(0.5_f32), Arg::scalar(1000_i64)];
    for _ in 0..10 {
        queue.call(&kernel, Geometry::single(), &args).unwrap();
        let event = queue.launch(&kernel, Geometry::single(), &args).unwrap();
        event.wait().unwrap();
    }
    assert_eq!(y.to_vec::<f32>().unwrap(), [21.0; 1000]);
}

#[test]
fn nine_arguments_are_passed() {
    let host = host();
    let kernel = host.kernel(source(CODE), "nine").unwrap();
    let queue = host.queue().unwrap();
    let out = host.tensor([1], &[0.0_f64]).unwrap();
    let digits: Vec<Arg<'_>> = (1..=7_i32).map(Arg::scalar).collect();
    let args = [&[Arg::write(&out)], digits.as_slice(), &[Arg::scalar(-1_i8)]].concat();
    queue.call(&kernel, Geometry::single(), &args).unwrap();
    assert_eq!(out.to_vec::<f64>().unwrap(), [7_654_320.0]);
}

#[test]
fn errors_name_the_remedy() {
    let host = host();
    let module = host.load(&source(CODE)).unwrap();
    let error = module.kernel("axpi").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("axpy") && error.message().contains("nine"), "{error}");
    let error = host.load(&source("void f(void) { nonsense; }")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    let error = host.load(&source(CODE).option("flag", "-O1")).unwrap_err();
    assert!(error.message().contains("did you mean \"flags\""), "{error}");
    assert_eq!(
        host.allocate(runtime_core::DType::F32, &[1 << 48], &Default::default()).unwrap_err().kind(),
        ErrorKind::OutOfMemory
    );
}

#[test]
fn compiled_code_behaves_as_its_source_does() {
    let runtime = Runtime::builder().discover(false).register(runtime_host::backend()).build();
    let host = runtime.open("host").unwrap();
    let portable =
        cfg!(target_arch = "x86_64").then(|| runtime.compile("host:x86-64", &source(CODE)).unwrap());
    let own = host.compile(&source(CODE)).unwrap();
    for compiled in portable.into_iter().chain([own]) {
        // SAFETY: as for the source.
        let native = unsafe { ModuleSource::compiled(compiled) };
        let kernel = host.kernel(native, "axpy").unwrap();
        let (x, y) = (host.tensor([3], &[2.0_f32; 3]).unwrap(), host.tensor([3], &[1.0_f32; 3]).unwrap());
        let args = [Arg::read(&x), Arg::read_write(&y), Arg::scalar(0.5_f32), Arg::scalar(3_i64)];
        host.queue().unwrap().call(&kernel, Geometry::single(), &args).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [2.0; 3]);
    }
    let error = runtime.compile("host:x86-64-v9", &source(CODE)).unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.to_string().contains("x86-64-v4"), "{error}");
    let loaded = host.load(&source("void f(void) { nonsense; }")).unwrap_err();
    let compiled = host.compile(&source("void f(void) { nonsense; }")).unwrap_err();
    assert_eq!(loaded.kind(), compiled.kind());
    assert!(compiled.to_string().contains("nonsense"), "{compiled}");
}
