#![allow(unsafe_code, reason = "reads what the test kernels write")]

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use runtime_core::backend::ArgRef;
use runtime_core::{DType, Options};

use super::*;
use crate::HostBuffer;
use crate::architecture::Architecture;
use crate::arg_packing::{PackedArgs, Scratch};
use crate::compile;
use crate::pool::Pool;
use crate::toolchain::{Build, has_impossible_move};
use crate::work_groups::Extent;

pub(super) fn load_c(code: &str, options: &Options) -> Result<HostModule> {
    HostModule::load(&Source { format: "c", path: "", code: Some(code.as_bytes()), options }, Log::silent())
}

pub(super) fn load_file(format: &str, path: &Path, options: &Options) -> Result<HostModule> {
    HostModule::load(&Source { format, path: path.to_str().unwrap(), code: None, options }, Log::silent())
}

fn call(module: &HostModule, name: &str, args: &[ArgRef<'_, HostBuffer>]) {
    invoke(&module.kernel(name).unwrap(), args).unwrap();
}

pub(super) fn invoke(kernel: &HostKernel, args: &[ArgRef<'_, HostBuffer>]) -> Result<()> {
    let (mut packed, pool) = (PackedArgs::default(), Pool::new("test".to_owned(), &[]));
    packed.fill(kernel.0.convention(), args.iter().copied())?;
    packed.invoke(&kernel.0, &Extent::Single, &mut Scratch::default(), &pool)
}

pub(super) fn scalar<'a>(dtype: DType, bits: u64) -> ArgRef<'a, HostBuffer> {
    ArgRef::Scalar { dtype, bits }
}

/// Calls `name` with a pointer to a word, and returns the word.
pub(super) fn answer(module: &HostModule, name: &str) -> u64 {
    let buffer = HostBuffer::allocate(8, 256, false).unwrap();
    call(module, name, &[scalar(DType::U64, buffer.start().expose_provenance() as u64)]);
    // SAFETY: the function wrote the word.
    unsafe { buffer.start().cast::<u64>().read() }
}

pub(super) fn constant(value: u64) -> String {
    format!("void answer(unsigned long long *out) {{ *out = {value}ull; }}")
}

/// C code of a function with `count` parameters of mixed types, and arguments that it accepts.
#[expect(clippy::cast_possible_truncation, reason = "narrow values are cut out of one number")]
fn mixed(count: usize, out: u64) -> (String, Vec<ArgRef<'static, HostBuffer>>) {
    let types =
        ["float", "signed char", "double", "long long", "unsigned short", "int", "double *", "unsigned char"];
    let (mut params, mut sum) = (String::new(), String::new());
    let mut args = vec![scalar(DType::U64, out)];
    for index in 0..count {
        let ty = types[index % types.len()];
        let value = -3 - index as i64;
        params += &format!(", {ty} p{index}");
        let (expected, arg) = match ty {
            "float" => (format!("{value}.5f"), scalar(DType::F32, u64::from((value as f32 - 0.5).to_bits()))),
            "double" => (format!("{value}.25"), scalar(DType::F64, (value as f64 - 0.25).to_bits())),
            "signed char" => (value.to_string(), scalar(DType::I8, u64::from(value as i8 as u8))),
            "int" => (value.to_string(), scalar(DType::I32, u64::from(value as i32 as u32))),
            "long long" => (value.to_string(), scalar(DType::I64, value as u64)),
            "unsigned short" => ((value as u16).to_string(), scalar(DType::U16, u64::from(value as u16))),
            "unsigned char" => ((value as u8).to_string(), scalar(DType::U8, u64::from(value as u8))),
            _ => ("(double *)4096".to_owned(), scalar(DType::U64, 4096)),
        };
        sum += &format!(" + (p{index} == {expected})");
        args.push(arg);
    }
    (format!("void answer(unsigned long long *out{params}) {{ *out = 1000{sum}; }}"), args)
}

#[test]
fn functions_take_any_number_and_mix_of_arguments() {
    for count in (0..=20).chain([40]) {
        let buffer = HostBuffer::allocate(8, 256, false).unwrap();
        let (code, args) = mixed(count, buffer.start().expose_provenance() as u64);
        let module = load_c(&code, &Options::new().with("flags", "-O1")).unwrap();
        call(&module, "answer", &args);
        // SAFETY: the function wrote the word.
        let right = unsafe { buffer.start().cast::<u64>().read() };
        assert_eq!(right, 1000 + count as u64, "of {count} arguments");
    }
}

#[test]
fn a_half_arrives_as_a_half() {
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let code = "void answer(unsigned short *out, _Float16 x, float y) { _Float16 z = x + (_Float16)y; __builtin_memcpy(out, &z, 2); }";
    let buffer = HostBuffer::allocate(8, 256, false).unwrap();
    let args = [
        scalar(DType::U64, buffer.start().expose_provenance() as u64),
        scalar(DType::F16, 0x3e00),
        scalar(DType::F32, u64::from(2.0_f32.to_bits())),
    ];
    call(&load_c(code, &Options::new()).unwrap(), "answer", &args);
    // SAFETY: the function wrote two bytes.
    assert_eq!(unsafe { buffer.start().cast::<u16>().read() }, 0x4300, "1.5 + 2 in half precision");
}

#[test]
fn code_that_gcc_cannot_assemble_is_compiled_without_avx512fp16() {
    let code = "void f(float *out, const _Float16 *a, int n, int m) { for (int i = 0; i < m; i++) { float sum = 0; \
                for (int k = 0; k < n; k++) sum += k < n / 2 ? (float)a[k] : 0; out[i] = sum; } }";
    if cfg!(target_arch = "x86_64") {
        let module = load_c(code, &Options::new().with("flags", "-march=sapphirerapids")).unwrap();
        assert_eq!(module.symbols(), ["f"]);
    }
    // The compiler of this machine may be another one.
    let says = |text: &str, status| runtime_core::backend::Output {
        status: ExitStatus::from_raw(status),
        stdout: Vec::new(),
        stderr: format!("/tmp/k.s: Assembler messages:\n/tmp/k.s:22: Error: {text}\n").into_bytes(),
        is_whole: true,
    };
    let text = "unsupported masking for `vmovsh'";
    assert!(has_impossible_move(&says(text, 256)));
    assert!(!has_impossible_move(&says(text, 0)) && !has_impossible_move(&says("no such instruction", 256)));
}

#[test]
fn a_compiler_that_hangs_is_ended_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let (compiler, child) = (folder.path().join("cc"), folder.path().join("child"));
    let script = "#!/bin/sh\n(sleep 1000 & echo $! > \"$(dirname \"$0\")/child\")\necho words\nsleep 1000\n";
    std::fs::write(&compiler, script).unwrap();
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
    let options = Options::new().with("compiler", compiler.to_str().unwrap());
    let source = Source { format: "c", path: "", code: Some(b""), options: &options };
    let mut build = Build::new(&source, Architecture::Native, Log::silent()).unwrap();
    build.deadline = Duration::from_secs(5);
    let error = build.run(&[]).unwrap_err();
    assert!(error.kind() == ErrorKind::Timeout && error.message().contains("words"), "{error}");
    let child = Path::new("/proc").join(std::fs::read_to_string(child).unwrap().trim());
    let begin = Instant::now();
    // A zombie has no program any more.
    while std::fs::read_link(child.join("exe")).is_ok() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it is left");
        std::thread::yield_now();
    }
}

#[test]
fn symbols_are_the_defined_functions() {
    let code = "#include <math.h>\n#include <string.h>\nint data; static void hidden(void) {}\n\
                void beta(double *x) { *x = sin(*x); hidden(); }\nvoid alpha(void) {}";
    let module = load_c(code, &Options::new()).unwrap();
    assert_eq!(module.symbols(), ["alpha", "beta"]);
    for name in ["gamma", "hidden", "data", "sin", "memcpy", "", "alp\0ha"] {
        assert_eq!(module.kernel(name).unwrap_err().kind(), ErrorKind::NotFound, "{name}");
    }
}

#[test]
fn a_compile_error_carries_the_compilers_message_and_the_command() {
    let error = load_c("void f(void) {\n  int x = nonsense;\n}\n", &Options::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    for part in ["kernel.c:2", "nonsense", "-O3 -march=native"] {
        assert!(error.message().contains(part), "{part} in {error}");
    }
    let error = load_c("void g(void); void f(void) { g(); }", &Options::new()).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::CompileFailed,
        "a missing function is found when it is loaded: {error}"
    );
}

#[test]
fn options_reach_the_compiler() {
    let folder = private_folder().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("headers")).unwrap();
    write("headers/two.h", "#define TWO 2\n");
    write("beside.h", "unsigned long long three(void);\n");
    write("three.c", "unsigned long long three(void) { return 3; }\n");
    write(
        "main.c",
        "#include <two.h>\n#include \"beside.h\"\nvoid answer(unsigned long long *out) { *out = ONE * 100 + TWO * 10 + three(); }\n",
    );
    let options = Options::new().with("define", "ONE=1").with("include", "headers").with("source", "three.c");
    let main = folder.path().join("main.c");
    assert_eq!(answer(&load_file("c", &main, &options).unwrap(), "answer"), 123);
    let code = std::fs::read(&main).unwrap();
    let source = Source { format: "c", path: main.to_str().unwrap(), code: Some(&code), options: &options };
    assert_eq!(answer(&HostModule::load(&source, Log::silent()).unwrap(), "answer"), 123);
    let error = load_file("c", &main, &Options::new().with("include", "headers")).unwrap_err();
    assert!(error.message().contains("main.c:3"), "the user's own file is named: {error}");
}

#[test]
fn modules_do_not_see_each_other() {
    let modules: Vec<_> = (0..12).map(|value| load_c(&constant(value), &Options::new()).unwrap()).collect();
    for (value, module) in modules.iter().enumerate() {
        assert_eq!(answer(module, "answer"), value as u64);
    }
}

#[test]
fn a_changed_file_is_loaded_again() {
    let folder = private_folder().unwrap();
    let path = folder.path().join("candidate.so");
    let build = |value| {
        let code = constant(value);
        let options = Options::new();
        let source = Source { format: "c", path: "", code: Some(code.as_bytes()), options: &options };
        std::fs::copy(
            compile::compile(&source, Architecture::Native, Log::silent()).unwrap().library,
            folder.path().join("new.so"),
        )
        .unwrap();
        std::fs::rename(folder.path().join("new.so"), &path).unwrap();
    };
    build(1);
    let first = load_file("shared-object", &path, &Options::new()).unwrap();
    build(2);
    let second = load_file("shared-object", &path, &Options::new()).unwrap();
    assert_eq!((answer(&first, "answer"), answer(&second, "answer")), (1, 2));
    let bytes = std::fs::read(&path).unwrap();
    let third = HostModule::load(
        &Source { format: "shared-object", path: "", code: Some(&bytes), options: &Options::new() },
        Log::silent(),
    );
    assert_eq!(answer(&third.unwrap(), "answer"), 2);
}

#[test]
fn a_kernel_keeps_its_library() {
    let kernel = load_c(&constant(5), &Options::new()).unwrap().kernel("answer").unwrap();
    let buffer = HostBuffer::allocate(8, 256, false).unwrap();
    invoke(&kernel, &[scalar(DType::U64, buffer.start().expose_provenance() as u64)]).unwrap();
    // SAFETY: the function wrote the word.
    assert_eq!(unsafe { buffer.start().cast::<u64>().read() }, 5);
}

#[test]
fn errors_of_code_that_cannot_be_loaded_give_the_reason() {
    let none = Options::new();
    let error = load_file("shared-object", Path::new("no/such/file.so"), &none).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.message().contains("no/such/file.so"), "{error}");
    let error = load_file("c", Path::new("no/such/file.c"), &none).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let source = Source { format: "shared-object", path: "", code: Some(b"not a library"), options: &none };
    assert_eq!(HostModule::load(&source, Log::silent()).unwrap_err().kind(), ErrorKind::CompileFailed);
    let error = load_file("ptx", Path::new("x.ptx"), &none).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("shared-object, c, object, archive"), "{error}");
}
