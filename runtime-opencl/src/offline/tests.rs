use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A stub of an offline compiler: a script that gets the file of the code, the output, the device and the options.
struct Stub(tempfile::TempDir);

impl Stub {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stub-ocloc");
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn options(&self) -> Options {
        let program = self.0.path().join("stub-ocloc");
        let command = format!("{} {{input}} {{output}} -device={{device}} {{options}}", program.display());
        Options::new().with("offline_compiler", command)
    }
}

fn compile(format: &str, architecture: &str, code: &[u8], options: &Options) -> Result<CompiledCode> {
    compile_for(architecture, &Source { format, path: "", code: Some(code), options })
}

#[test]
fn the_stub_compiles_for_an_architecture_with_the_options_as_one_argument() {
    let stub = Stub::new(
        "cp \"$1\" \"$2\"; echo \"$1 $3 [$4] $#\" >> \"$2\"\n\
         echo 'warning: kernel k  compiled SIMD16 allocated 128 regs and spilled around 217' >&2",
    );
    let options = stub.options().with("build_options", "-DN=4 -DM").with("registers", "256");
    let compiled = compile("spirv-kernel", "pvc", b"words\n", &options).unwrap();
    let code = String::from_utf8(compiled.code).unwrap();
    assert_eq!(code, "words\ninput.spv -device=pvc [-DN=4 -DM -cl-intel-256-GRF-per-thread] 4\n");
    assert_eq!((compiled.format.as_str(), compiled.options), ("opencl-binary", Options::new()));
    let [(name, info)] = &compiled.kernels[..] else { panic!("{:?}", compiled.kernels) };
    assert_eq!((name.as_str(), info.registers, info.spilled_bytes), ("k", Some(128), Some(217)));
    assert!(compiled.log.contains("spilled around 217"));
    let none = compile("opencl-c", "pvc", b"text", &stub.options()).unwrap();
    assert_eq!(none.code, b"textinput.cl -device=pvc [] 4\n");
}

#[test]
fn an_error_of_the_stub_has_its_messages_status_and_command() {
    for (script, status) in
        [("echo said; exit 3", "exit status: 3"), ("echo said; kill -SEGV $$", "signal: 11")]
    {
        let stub = Stub::new(script);
        let options = stub.options().with("build_options", "-DN=it's");
        let error = compile("opencl-c", "pvc", b"text", &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CompileFailed);
        let message = error.message();
        assert!(message.starts_with("said\n") && message.contains(status), "{message}");
        let command = "stub-ocloc input.cl output.bin -device=pvc '-DN=it'\\''s'";
        assert!(message.ends_with(command), "{message}");
    }
    let error = compile("opencl-c", "pvc", b"text", &Stub::new(":").options()).unwrap_err();
    assert!(error.message().contains("wrote no output file"), "{error}");
    let missing = Options::new().with("offline_compiler", "no-such-compiler {input} {output}");
    let error = compile("opencl-c", "pvc", b"text", &missing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("no-such-compiler"), "{error}");
}

#[test]
fn a_stub_that_fails_makes_nothing_whatever_it_wrote() {
    for (script, words) in
        [("cp \"$1\" \"$2\"; exit 3", "exit status: 3"), (": > \"$2\"", "wrote no output file")]
    {
        let error = compile("opencl-c", "pvc", b"text", &Stub::new(script).options()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CompileFailed);
        assert!(error.message().contains(words), "{error}");
    }
}

/// The stub says what Intel's compiler says of a kernel whose private memory the device does not have.
#[test]
fn a_scratch_overflow_of_the_stub_is_a_lack_of_resources() {
    let said = "error: total scratch space exceeds HW supported limit for kernel k: 295232 bytes (max permitted PTSS 262144 bytes)";
    let stub = Stub::new(&format!("echo '{said}' >&2; exit 1"));
    let error = compile("spirv-kernel", "pvc", b"words", &stub.options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfResources);
    assert!(error.message().starts_with(said) && error.message().contains("exit status: 1"), "{error}");
}

#[test]
fn the_stub_runs_in_a_folder_of_its_own_with_absolute_folders_of_included_files() {
    let stub = Stub::new("echo \"$TMPDIR $PWD $4\" > \"$2\"");
    let compiled = compile("opencl-c", "pvc", b"text", &stub.options().with("include", "inc")).unwrap();
    let text = String::from_utf8(compiled.code).unwrap();
    let [temporary, own, include] = text.trim().splitn(3, ' ').collect::<Vec<_>>()[..] else {
        panic!("{text}")
    };
    assert_eq!(temporary, own, "temporary files are removed with the folder");
    assert!(!Path::new(own).exists(), "{own}");
    assert_eq!(include, format!("-I {}", std::env::current_dir().unwrap().join("inc").display()));
}

#[test]
fn the_beginning_and_the_end_of_a_long_log_are_kept() {
    let stub = Stub::new("echo first; yes word | head -c 2000000; echo last; cp \"$1\" \"$2\"");
    let log = compile("opencl-c", "pvc", b"text", &stub.options()).unwrap().log;
    assert!(log.starts_with("first\n") && log.contains("are left out") && log.ends_with("last"));
    assert!(log.len() < (1 << 20) + 100 && log.len() > 1 << 19, "{} bytes", log.len());
}

#[test]
fn a_stub_that_is_late_is_ended_before_it_succeeds() {
    let stub = Stub::new("sleep 4; cp \"$1\" \"$2\"");
    let command = stub.options();
    let template = Template::parse(command.text("offline_compiler").unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let filled = template.fill("input.cl", "pvc", "");
    let error = filled.run(folder.path(), b"text", Duration::from_millis(1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[test]
fn a_stub_that_hangs_is_ended() {
    let stub = Stub::new("echo begun; exec sleep 1000");
    let command = stub.options();
    let template = Template::parse(command.text("offline_compiler").unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let filled = template.fill("input.cl", "pvc", "");
    let error = filled.run(folder.path(), b"", Duration::from_millis(300)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(
        error.message().contains("still running after 300ms") && error.message().ends_with("begun"),
        "{error}"
    );
}

#[test]
fn a_template_is_checked() {
    for (template, words) in [
        ("ocloc {input}", "needs {output}"),
        ("ocloc {output}", "needs {input}"),
        ("ocloc {input} {output} {arch}", "\"{arch}\"; there are {input}, {output}, {device}, {options}"),
    ] {
        let options = Options::new().with("offline_compiler", template);
        let error = compile("opencl-c", "pvc", b"text", &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains(words), "{error}");
    }
    // Neither a device nor an option is a template.
    let stub = Stub::new("echo \"$3 $4\" > \"$2\"");
    let options = stub.options().with("build_options", "-D{output}");
    let compiled = compile("opencl-c", "{input}", b"text", &options).unwrap();
    assert_eq!(compiled.code, b"-device={input} -D{output}\n");
}

#[test]
fn portable_code_stays_as_it_is() {
    let options = Options::new().with("build_options", "-cl-std=CL3.0").with("registers", "auto");
    for (format, code) in
        [("opencl-c", &b"kernel void f(void) {}"[..]), ("spirv-kernel", b"\x03\x02\x23\x07")]
    {
        for architecture in ["", "c"] {
            let compiled = compile(format, architecture, code, &options).unwrap();
            assert_eq!((compiled.format.as_str(), &compiled.code[..]), (format, code));
            assert_eq!(compiled.options, options);
        }
    }
    let error = compile("opencl-c", "c", b"#include \"a.h\"\n", &Options::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let error = compile("opencl-c", "pvc", b"text", &Options::new()).unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.message().contains("offline_compiler"), "{error}");
    assert_eq!(compile("ptx", "c", b"text", &options).unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(check_not_given(&Options::new().with("offline_compiler", "x")).is_err());
}

#[test]
fn an_architecture_accepts_what_is_compiled_for_it() {
    let info = architecture("");
    assert_eq!((info.arch.as_deref(), &info.formats[0]), (Some("c"), &CodeFormat::OPENCL_C));
    assert_eq!(architecture("pvc").arch.as_deref(), Some("pvc"));
}
