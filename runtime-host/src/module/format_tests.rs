//! Tests of objects, archives and libraries, and of the conventions other than plain.

use std::path::PathBuf;

use runtime_core::backend::ArgRef;
use runtime_core::{DType, Options};

use super::tests::{answer, constant, invoke, load_c, load_file, scalar};
use super::*;
use crate::compile;

/// Compiles C text into an object file.
fn object(folder: &Path, name: &str, code: &str) -> PathBuf {
    let (text, object) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.o")));
    std::fs::write(&text, code).unwrap();
    tool("cc", &["-fPIC", "-c", "-o", object.to_str().unwrap(), text.to_str().unwrap()]);
    object
}

fn tool(name: &str, arguments: &[&str]) {
    let status = std::process::Command::new(name).args(arguments).status();
    assert!(status.is_ok_and(|status| status.success()), "{name} {arguments:?}");
}

#[test]
fn objects_and_archives_are_linked_whole() {
    let folder = private_folder().unwrap();
    let first = object(folder.path(), "first", &constant(11));
    let second = object(folder.path(), "second", &constant(12).replace("answer", "other"));
    let archive = folder.path().join("both.a");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    tool("ar", &["rcs", &path(&archive), &path(&first), &path(&second)]);
    let none = Options::new();
    let module = load_file("object", &first, &none).unwrap();
    assert_eq!((module.symbols(), answer(&module, "answer")), (&["answer".to_owned()][..], 11));
    let bytes = std::fs::read(&archive).unwrap();
    let source = Source { format: "archive", path: "", code: Some(&bytes), options: &none };
    for module in [load_file("archive", &archive, &none), HostModule::load(&source, Log::silent())] {
        let module = module.unwrap();
        assert_eq!(module.symbols(), ["answer", "other"], "nothing refers to either");
        assert_eq!((answer(&module, "answer"), answer(&module, "other")), (11, 12));
    }
}

#[test]
fn a_link_error_carries_the_linkers_message_and_the_command() {
    let none = Options::new();
    let source = Source { format: "object", path: "", code: Some(b"no object at all"), options: &none };
    let error = HostModule::load(&source, Log::silent()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    for part in ["module.o", "-shared", "file format not recognized"] {
        assert!(error.message().contains(part), "{part} in {error}");
    }
    let error = load_file("archive", Path::new("no/such/file.a"), &none).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.message().contains("no/such/file.a"), "{error}");
}

#[test]
fn libraries_are_linked_or_opened_first() {
    let folder = private_folder().unwrap();
    let (none, path) = (Options::new(), |name: &str| folder.path().join(name).to_str().unwrap().to_owned());
    let build = |name: &str, code: &str| {
        let options = Options::new().with("flags", format!("-Wl,-soname,{name}"));
        let source = Source { format: "c", path: "", code: Some(code.as_bytes()), options: &options };
        std::fs::copy(
            compile::compile(&source, Architecture::Native, Log::silent()).unwrap().library,
            path(name),
        )
        .unwrap();
    };
    build("libseven.so", "unsigned long long runtime_host_test_seven(void) { return 7; }");
    let code = "unsigned long long runtime_host_test_seven(void);\n\
                void answer(unsigned long long *out) { *out = runtime_host_test_seven(); }";
    let file = object(folder.path(), "needy", code);
    for format in ["object", "c"] {
        let file = if format == "c" { file.with_extension("c") } else { file.clone() };
        assert_eq!(load_file(format, &file, &none).unwrap_err().kind(), ErrorKind::CompileFailed);
        let module = load_file(format, &file, &Options::new().with("libraries", "./libseven.so")).unwrap();
        assert_eq!(answer(&module, "answer"), 7);
    }
    build("needy.so", code);
    let shared = |options: &Options| load_file("shared-object", Path::new(&path("needy.so")), options);
    let error = shared(&none).unwrap_err();
    assert!(error.message().contains("undefined symbol: runtime_host_test_seven"), "{error}");
    let error = shared(&Options::new().with("libraries", "no-such-library")).unwrap_err();
    assert!(error.message().contains("libno-such-library.so"), "{error}");
    let module =
        shared(&Options::new().with("libraries", "libm.so.6").with("libraries", path("libseven.so")));
    assert_eq!(answer(&module.unwrap(), "answer"), 7);
}

#[test]
fn options_of_another_format_are_rejected() {
    let error = load_file("object", Path::new("x.o"), &Options::new().with("define", "N=1")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("\"define\" does not apply to format \"object\""), "{error}");
    let valid: Vec<_> = crate::options::all().iter().map(|option| option.key.clone()).collect();
    for (format, keys) in crate::options::FORMATS {
        assert!(keys.iter().all(|key| valid.iter().any(|valid| valid == key)), "{format}");
    }
}

#[test]
fn a_failure_of_a_function_is_reported() {
    let code = "int f(void *args, int *codes, int n, void *ret, int *ret_code) { return n == 1 ? 0 : -5; }";
    let module = load_c(code, &Options::new().with("convention", "packed")).unwrap();
    let kernel = module.kernel("f").unwrap();
    invoke(&kernel, &[scalar(DType::I32, 1)]).unwrap();
    let error = invoke(&kernel, &[]).unwrap_err();
    assert_eq!((error.kind(), error.driver()), (ErrorKind::Failed, Some(("f", -5))));
    let error = invoke(&kernel, &[scalar(DType::COMPLEX64, 0)]).unwrap_err();
    assert!(error.message().starts_with("argument 0: a complex64 scalar"), "{error}");
}

/// A stub of TVM's runtime: errors and object counts.
const TVM: &str = r#"
#include <stdint.h>
#include <string.h>
typedef struct { int32_t index; uint32_t padding; union { int64_t i; double f; void *p; } value; } Any;
typedef struct { const char *data; size_t size; } Bytes;
struct { uint64_t counts; int32_t index; uint32_t padding; void *deleter; Bytes kind, message; } raised =
    { 1, 67, 0, 0, { "ValueError", 10 }, { "only odd numbers", 16 } };
static int released;
static unsigned minor = 1;
void TVMFFIGetVersion(uint32_t *version) { version[0] = 0; version[1] = minor; version[2] = 9; }
void TVMFFIErrorMoveFromRaised(void **result) { *result = &raised; }
int TVMFFIObjectDecRef(void *object) { released += object == (void *)&raised; return 0; }
int __tvm_ffi_f(void *handle, const Any *args, int32_t count, Any *result) {
    if (handle || result->index || count != 3 || args[0].index != 1 || args[1].index != 3) return -9;
    if (args[1].value.f != 0.5) return -8;
    if (args[0].value.i == 2) { minor = 9; return -1; }
    if (args[0].value.i % 2 == 0) return -1;
    *(int64_t *)args[2].value.p = args[0].value.i;
    result->index = 70;
    result->value.p = &raised;
    return 0;
}
void released_times(unsigned long long *out) { *out = released; }
"#;

#[test]
fn a_tvm_function_is_found_and_its_error_is_read() {
    let module = load_c(TVM, &Options::new()).unwrap();
    assert!(module.symbols().contains(&"f".to_owned()), "{:?}", module.symbols());
    let kernel = module.kernel("f").unwrap();
    let call =
        |number| invoke(&kernel, &[scalar(DType::I32, number), scalar(DType::F16, 0x3800), ArgRef::Local(8)]);
    call(3).unwrap();
    let error = call(4).unwrap_err();
    assert_eq!((error.kind(), error.driver()), (ErrorKind::Failed, Some(("__tvm_ffi_f", -1))));
    assert_eq!(error.message(), "ValueError: only odd numbers");
    assert_eq!(answer(&module, "released_times"), 2, "the result and the error");
    let error = call(2).unwrap_err();
    assert!(error.message().contains("libtvm_ffi.so"), "another version's errors are not read: {error}");
}

#[test]
fn threads_of_a_library_outlive_the_module_that_brought_it_in() {
    let code = "#include <pthread.h>\n#include <stdatomic.h>\n#include <unistd.h>\n\
        static void *live(void *up) { atomic_store((atomic_int *)up, 1); for (;;) usleep(1000); }\n\
        void start(void) { static atomic_int up; pthread_t thread; pthread_create(&thread, 0, live, &up);\n\
        pthread_detach(thread); while (!atomic_load(&up)) usleep(100); }";
    let folder = private_folder().unwrap();
    let helper = folder.path().join("libhelper.so");
    let text = folder.path().join("helper.c");
    std::fs::write(&text, code).unwrap();
    tool("cc", &["-shared", "-fPIC", "-pthread", "-o", helper.to_str().unwrap(), text.to_str().unwrap()]);
    let options = Options::new().with("libraries", helper.to_str().unwrap());
    let module =
        load_c("void start(void); void answer(unsigned long long *out) { start(); *out = 7; }", &options)
            .unwrap();
    assert_eq!(answer(&module, "answer"), 7);
    drop(module);
    // Meanwhile the thread keeps running code of the library.
    std::thread::sleep(std::time::Duration::from_millis(20));
}
