use runtime_core::Options;
use runtime_core::backend::Module as _;

use super::*;
use crate::HostModule;
use crate::architecture::LEVELS;

fn source<'a>(format: &'a str, code: &'a [u8], options: &'a Options) -> Source<'a> {
    Source { format, path: "", code: Some(code), options }
}

fn compiled(code: &str, architecture: Architecture, options: &Options) -> Result<CompiledCode> {
    compile(&source("c", code.as_bytes(), options), architecture, Log::silent())
}

fn fit(compiled: &CompiledCode) -> Fit {
    fits(&source("shared-object", &compiled.code, &compiled.options)).unwrap()
}

fn load(compiled: &CompiledCode) -> Result<HostModule> {
    HostModule::load(&source("shared-object", &compiled.code, &compiled.options), Log::silent())
}

#[test]
fn compiled_code_loads_with_the_convention_of_its_source() {
    let options = Options::new().with("convention", "packed").with("flags", "-O1");
    let compiled = compiled(
        "int f(void *a, int *c, int n, void *r, int *t) { return 0; }",
        Architecture::Native,
        &options,
    );
    let compiled = compiled.unwrap();
    assert_eq!((compiled.format.as_str(), fit(&compiled)), ("shared-object", Fit::Optimal));
    assert_eq!(compiled.options, Options::new().with("convention", "packed"));
    let module = load(&compiled).unwrap();
    assert_eq!(module.symbols(), ["f"]);
    assert_eq!(module.kernel("f").unwrap().0.convention(), crate::convention::Convention::Packed);
    let plain = Options::new();
    let again =
        compile(&source("shared-object", &compiled.code, &plain), Architecture::Native, Log::silent());
    assert_eq!(again.unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn the_compilers_messages_are_returned() {
    let options = Options::new().with("flags", "-Wall");
    let compiled = compiled("void f(void) { int unused; }", Architecture::Native, &options).unwrap();
    assert!(compiled.log.contains("unused variable"), "{}", compiled.log);
    let error = self::compiled("void f(void) { x; }", Architecture::Native, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn an_architecture_decides_on_the_instructions() {
    let code = "#if defined(__AVX512F__)\nint v4;\n#elif defined(__AVX2__)\nint v3;\n#elif defined(__SSE4_2__)\nint v2;\n\
                #else\nint v1;\n#endif\nvoid f(void) {}";
    let own = Architecture::Native.name();
    let own = LEVELS.iter().position(|level| *level == own).unwrap();
    for (level, name) in ["v1", "v2", "v3", "v4"].into_iter().enumerate() {
        let compiled = compiled(code, Architecture::Level(level), &Options::new()).unwrap();
        assert!(shared_object::Symbols::of(&compiled.code).is_data(name), "{level}");
        let expected = match level.cmp(&own) {
            std::cmp::Ordering::Less => Fit::Recompile,
            std::cmp::Ordering::Equal => Fit::Optimal,
            std::cmp::Ordering::Greater => Fit::Unsupported,
        };
        assert_eq!(fit(&compiled), expected, "{level}");
        assert_eq!(load(&compiled).is_ok(), level <= own);
    }
    for flag in ["-march=native", "-mavx2"] {
        let options = Options::new().with("flags", flag);
        let error = compiled(code, Architecture::Level(0), &options).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains(flag), "{error}");
        compiled(code, Architecture::Native, &options).unwrap();
    }
}

#[test]
fn code_for_another_processor_is_refused_before_it_is_loaded() {
    let mut compiled = compiled("void f(void) {}", Architecture::Native, &Options::new()).unwrap();
    // The last byte is the end of the mark.
    let at = compiled.code.len() - 2;
    compiled.code[at] ^= 1;
    assert_eq!(fit(&compiled), Fit::Unsupported);
    let error = load(&compiled).unwrap_err();
    assert!(
        error.message().contains("another processor") && error.message().contains("compile it"),
        "{error}"
    );
    compiled.code.truncate(at - 2000);
    assert_eq!(fit(&compiled), Fit::Unsupported, "truncated");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_level_that_a_linker_states_is_read() {
    for (flag, level) in [("-Wl,-z,x86-64-v2", Some(1)), ("-Wl,-z,x86-64-v4", Some(3)), ("-O1", None)] {
        let options = Options::new().with("flags", flag);
        let compiled = compiled("void f(void) {}", Architecture::Native, &options).unwrap();
        assert_eq!(shared_object::needed_level(&compiled.code), level, "{flag}");
    }
}

#[test]
fn linked_objects_carry_no_mark() {
    let object = Options::new().with("flags", "-c");
    let built =
        build(&source("c", b"void f(void) {}", &object), Architecture::Native, Log::silent()).unwrap();
    let object = std::fs::read(built.library).unwrap();
    let options = Options::new();
    let compiled =
        compile(&source("object", &object, &options), Architecture::Native, Log::silent()).unwrap();
    assert_eq!(fit(&compiled), Fit::Recompile);
    assert_eq!(load(&compiled).unwrap().symbols(), ["f"]);
    assert_eq!(fits(&source("object", &object, &options)).unwrap(), Fit::Recompile);
    assert_eq!(fits(&source("ptx", &object, &options)).unwrap(), Fit::Unsupported);
}

#[test]
fn a_cross_compiler_is_named_by_an_option() {
    let (name, machine) =
        if cfg!(target_arch = "aarch64") { ("x86-64", "x86_64") } else { ("aarch64", "aarch64") };
    let other = Architecture::named(name).unwrap();
    let error = compiled("void f(void) {}", other, &Options::new()).unwrap_err();
    // Where it is installed, the code is for the other machine.
    if error.kind() == ErrorKind::Unavailable {
        let compiler = format!("{machine}-linux-gnu-gcc");
        assert!(
            error.message().contains(&compiler) && error.message().contains("option \"compiler\""),
            "{error}"
        );
    }
    // A stub for a cross compiler that makes code for this machine after all.
    let folder = tempfile::tempdir().unwrap();
    let stub = folder.path().join("stub");
    std::fs::write(&stub, "#!/bin/sh\nshift 2\nexec cc \"$@\"\n").unwrap();
    std::fs::set_permissions(&stub, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let options = Options::new().with("compiler", stub.to_str().unwrap());
    let error = compiled("void f(void) {}", other, &options).unwrap_err();
    assert!(error.message().contains(&format!("not for {machine}")), "{error}");
    assert!(error.to_string().contains("`compiler`"), "{error}");
}
