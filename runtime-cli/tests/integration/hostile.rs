//! Invalid input and adverse environments give an error that names the argument and a fix; never a panic, never silence.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::fixture::{self, Folder, KINDS, SCALE};

const CRASHES: &str = r"
#include <stdlib.h>
int data = 7;
void crash(float *x) { *(volatile int *)0 = x[0]; }
void quit(float *x) { exit(0); }
void aborts(float *x) { abort(); }
";

const ONE: &str = "version = 1\n[kernel]\npath = \"crash.c\"\nentry = \"ENTRY\"\n[[arg]]\ndtype = \"f32\"\nshape = [4]\nuse = \"readwrite\"\n";

const PORTABLE: &str = r#"version = 1
[kernel]
path = "k.wgsl"
entry = "k"
[[arg]]
name = "y"
dtype = "u32"
shape = [8]
use = "readwrite"
init = "zeros"
[launch]
groups = 2
[specialise]
constants = { B = true }
"#;

const WGSL: &str = "override B: bool = false; override N: u32 = 4;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(4) fn k(@builtin(global_invocation_id) id: vec3<u32>) { y[id.x] = select(N, N * 2u, B); }
";

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn output(folder: &Folder, arguments: &[&str]) -> Output {
    fixture::command(arguments).current_dir(folder.path()).output().unwrap()
}

/// Runs a shell command in which `$RUNTIME` is the command.
fn shell(folder: &Folder, line: &str) -> Output {
    let runtime = fixture::command(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder.path()).env("RUNTIME", runtime.get_program());
    command.envs(runtime.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command.output().unwrap()
}

#[test]
fn a_crash_report_names_the_running_operation() {
    let folder = Folder::new();
    folder.write("crash.c", CRASHES);
    for (entry, signal, words) in [
        ("crash", Some(libc::SIGSEGV), "error: SIGSEGV while \"one\" ran on host:0"),
        ("aborts", Some(libc::SIGABRT), "error: SIGABRT while \"one\" ran on host:0"),
        ("quit", None, "error: `exit` was called while \"one\" ran on host:0"),
    ] {
        folder.write("one.toml", &ONE.replace("ENTRY", entry));
        for command in ["run", "eval"] {
            let run = output(&folder, &[command, "one.toml"]);
            assert_eq!(run.status.signal(), signal, "{entry}: {}", text(&run));
            assert!(!run.status.success(), "`exit(0)` in a kernel is a failure");
            assert!(text(&run).contains(words), "{entry}: {}", text(&run));
        }
    }
    folder.write(
        "one.toml",
        &(ONE.replace("ENTRY", "crash") + "[reference]\npath = \"crash.c\"\nentry = \"crash\"\n"),
    );
    let run = output(&folder, &["eval", "one.toml"]);
    assert!(text(&run).contains("while the reference of \"one\" ran"), "{}", text(&run));
}

/// Builds the backend in C with `edit` applied to device.c.
fn backend(folder: &Folder, edit: (&str, &str)) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let library = folder.path().join("libruntime_cdemo.so");
    let mut command = Command::new("cc");
    command.args(["-std=c11", "-shared", "-fPIC", "-pthread", "-fvisibility=hidden", "-w", "-I"]);
    command.arg(root.join("runtime-core/include")).arg("-o").arg(&library);
    for entry in std::fs::read_dir(root.join("tests/c-backend")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".c") || name.ends_with(".h") {
            let code = std::fs::read_to_string(&path).unwrap();
            assert!(name != "device.c" || code.contains(edit.0), "the backend changed");
            folder.write(name, &code.replace(edit.0, edit.1));
        }
        if name.ends_with(".c") {
            command.arg(folder.path().join(name));
        }
    }
    assert!(command.status().unwrap().success());
    library
}

#[test]
fn a_crashing_backend_is_named_and_does_not_stop_doctor() {
    let folder = Folder::new();
    for (code, words) in
        [("abort();", "SIGABRT"), ("*(volatile int *)0 = 1;", "SIGSEGV"), ("exit(0);", "`exit`")]
    {
        let library = backend(&folder, ("*out = list;", &format!("{code} *out = list;")));
        let with = |arguments: &[&str]| {
            let mut command = fixture::command(arguments);
            let host =
                command.get_envs().find(|(key, _)| *key == "RUNTIME_BACKENDS").unwrap().1.unwrap().to_owned();
            let both = std::env::join_paths([library.clone(), PathBuf::from(host)]).unwrap();
            command.current_dir(folder.path()).env("RUNTIME_BACKENDS", both).output().unwrap()
        };
        for arguments in [&["devices"][..], &["eval", "scale.toml"]] {
            let run = with(arguments);
            assert!(!run.status.success(), "{}", text(&run));
            for part in [words, "while the backend \"cdemo\" listed its devices", "RUNTIME_BACKENDS"] {
                assert!(text(&run).contains(part), "{code} {arguments:?}: {part} in {}", text(&run));
            }
        }
        let run = with(&["eval", "--isolate", "scale.toml"]);
        assert_eq!(run.status.code(), Some(0), "the other backend's devices are used: {}", text(&run));
        for part in ["warning: cdemo: its process ended while listing its devices", words, "host:0"] {
            assert!(text(&run).contains(part), "{code}: {part} in {}", text(&run));
        }
        let run = with(&["doctor"]);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run));
        for part in
            ["program", "load report", "while listing its devices", words, "host ", "1 device", "missing"]
        {
            assert!(text(&run).contains(part), "{code}: {part} in {}", text(&run));
        }
    }
}

#[test]
fn a_closed_or_full_standard_output_is_an_error() {
    let folder = Folder::new();
    folder.write("k.wgsl", WGSL);
    let fast = "--repeat 1 --number 1";
    for line in [
        &format!("$RUNTIME eval scale.toml {fast} >&-"),
        &format!("$RUNTIME eval scale.toml {fast} --json - >&-"),
        &format!("$RUNTIME eval scale.toml {fast} > /dev/full"),
        "$RUNTIME run scale.toml >&-",
        &format!("$RUNTIME fuse scale.toml --device host {fast} >&-"),
        &format!("$RUNTIME fuse scale.toml --device host {fast} > /dev/full"),
        &format!("$RUNTIME fuse scale.toml --device host {fast} --json - > /dev/full"),
        "$RUNTIME devices >&-",
        "$RUNTIME devices > /dev/full",
        "$RUNTIME doctor >&-",
        "$RUNTIME lower k.wgsl --to c >&-",
        "$RUNTIME lower k.wgsl --to c > /dev/full",
    ] {
        let run = shell(&folder, line);
        assert_eq!(run.status.code(), Some(2), "{line}: {}", text(&run));
        assert_eq!(
            text(&run).matches("cannot write to standard output").count(),
            1,
            "{line}: {}",
            text(&run)
        );
    }
    let run = shell(&folder, &format!("$RUNTIME eval scale.toml {fast} --json rows.json >&-"));
    assert_eq!(run.status.code(), Some(2), "the table could not be written: {}", text(&run));
    assert!(folder.read("rows.json").contains("\"complete\": true"));
    for line in ["$RUNTIME devices 2>&-", "$RUNTIME devices <&-", "$RUNTIME devices >/dev/null 2>&-"] {
        assert_eq!(shell(&folder, line).status.code(), Some(0), "{line}");
    }
}

#[test]
fn outputs_overwrite_neither_inputs_nor_each_other() {
    let folder = Folder::new();
    folder.write("k.wgsl", WGSL);
    std::os::unix::fs::symlink("scale.c", folder.path().join("link")).unwrap();
    std::fs::hard_link(folder.path().join("scale.toml"), folder.path().join("hard")).unwrap();
    for (arguments, words) in [
        (&["eval", "scale.toml", "--csv", "scale.toml"][..], "--csv scale.toml: would overwrite scale.toml"),
        (&["eval", "scale.toml", "--json", "./scale.c"], "would overwrite scale.c"),
        (&["eval", "scale.toml", "--json", "link"], "would overwrite scale.c"),
        (&["eval", "scale.toml", "--json", "hard"], "would overwrite scale.toml"),
        (&["run", "scale.toml", "--save", "y=scale.c"], "would overwrite scale.c"),
        (&["lower", "k.wgsl", "--to", "c", "--output", "k.wgsl"], "would overwrite k.wgsl"),
        (&["eval", "scale.toml", "--json", "a", "--csv", "./a"], "only one output can go to one file"),
        (&["eval", "scale.toml", "--json", "a", "--json", "b"], "cannot be used multiple times"),
        (&["run", "scale.toml", "--save", "y=a", "--save", "y=a"], "only one output can go to one file"),
        (&["eval", "scale.toml", "--json", "."], "cannot write .: is a directory"),
        (&["eval", "scale.toml", "--set", "arg3=1", "--set", "arg3=2"], "--set arg3=1 and --set arg3=2"),
        (&["lower", "/dev/zero", "--to", "c"], "cannot read /dev/zero: it is not a regular file"),
        (&["lower", ".", "--to", "c"], "it is a directory, not a regular file"),
        (&["eval", "."], "it is a directory, not a regular file"),
    ] {
        let run = output(&folder, arguments);
        assert_eq!(run.status.code(), Some(2), "{arguments:?}: {}", text(&run));
        assert!(text(&run).contains(words), "{arguments:?}: {}", text(&run));
    }
    assert_eq!(folder.read("scale.toml"), SCALE);
    assert_eq!(folder.read("k.wgsl"), WGSL);
}

#[test]
fn pipes_and_devices_are_refused_wherever_a_file_is_read() {
    let folder = Folder::new();
    let pipes = ["pipe", "pipe.wgsl"].map(|name| folder.path().join(name));
    assert!(Command::new("mkfifo").args(pipes).status().unwrap().success());
    std::fs::create_dir(folder.path().join("boards")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.path().join("boards/b.toml")).status().unwrap().success());
    folder.write("package.toml", &SCALE.replacen("path = \"scale.c\"", "path = \"p.rtpkg\"", 1));
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("p.rtpkg")).unwrap();
    folder.write("init.toml", &SCALE.replacen("init = \"arange\"", "init = \"file:pipe\"", 1));
    for arguments in [
        &["run", "pipe"][..],
        &["eval", "pipe"],
        &["eval", "--isolate", "scale.toml", "pipe"],
        &["eval", "package.toml"],
        &["run", "init.toml"],
        &["eval", "scale.toml", "--baseline", "pipe"],
        &["eval", "scale.toml", "--resume", "pipe"],
        &["tune", "pipe"],
        &["fuse", "scale.toml", "pipe"],
        &["compare", "pipe", "/dev/zero"],
        &["report", "pipe", "--html", "x.html"],
        &["lower", "pipe", "--to", "c"],
        &["compile", "pipe.wgsl", "--target", "host", "-o", "x.rtpkg"],
        &["compile", "p.rtpkg", "--target", "host", "-o", "x.rtpkg"],
        &["package", "verify", "p.rtpkg"],
        &["package", "list", "pipe"],
    ] {
        // A watchdog, so that a read that waits for a writer fails here.
        let mut command = Command::new("timeout");
        let runtime = fixture::command(arguments);
        command.arg("100").arg(runtime.get_program()).args(runtime.get_args()).current_dir(folder.path());
        command.envs(runtime.get_envs().filter_map(|(key, value)| Some((key, value?))));
        let run = command.output().unwrap();
        assert!(matches!(run.status.code(), Some(1 | 2)), "{arguments:?}: {:?} {}", run.status, text(&run));
        assert!(text(&run).contains("not a regular file"), "{arguments:?}: {}", text(&run));
    }
}

#[test]
fn messages_name_the_argument_and_suggest_a_fix() {
    let folder = Folder::new();
    let spec = |from: &str, to: &str| {
        assert!(SCALE.contains(from), "{from}");
        folder.write("odd.toml", &SCALE.replacen(from, to, 1));
        let run = output(&folder, &["eval", "odd.toml", "--repeat", "1", "--number", "1"]);
        assert!(matches!(run.status.code(), Some(1 | 2)), "{to}: {}", text(&run));
        text(&run)
    };
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.path().join("fifo")).status().unwrap().success());
    std::fs::write(folder.path().join("bad.npy"), "x").unwrap();
    folder.write("missing.c", "double elsewhere(void); void scale(float *x) { x[0] = elsewhere(); }");
    folder.write("wrong.c", "static int unused;\nvoid scale(void) { return 1 +; }\n");
    folder.write("data.c", "int scale = 7; void f(void) {}");
    for (from, to, words) in [
        ("path = \"scale.c\"", "path = \"folder\"\nformat = \"c\"", "\"folder\" is not a regular file"),
        ("path = \"scale.c\"", "path = \"fifo\"\nformat = \"c\"", "\"fifo\" is not a regular file"),
        (
            "path = \"scale.c\"",
            "path = \"missing.c\"",
            "\"elsewhere\", which nothing defines: name its library in the option `libraries`",
        ),
        ("path = \"scale.c\"", "path = \"data.c\"", "\"scale\" is a variable, not a function"),
        (
            "path = \"scale.c\"",
            "path = \"wrong.c\"\noptions = { flags = \"-Wall\" }",
            "failed: wrong.c:2:30: error: expected expression",
        ),
        (
            "path = \"scale.c\"",
            "path = \"scale.c\"\noptions = { compiler = \"false\" }",
            "failed: host:0: load: the compiler printed nothing",
        ),
        ("init = \"arange\"", "init = \"file:bad.npy\"", "odd.toml:8: argument \"x\": bad.npy: truncated"),
        ("init = \"arange\"", "range = [0, 1e39]", "1e39 does not fit f32"),
        ("shape = [100]", "shape = [100000000000]", "failed: out of memory: "),
    ] {
        let said = spec(from, to);
        let said = said.replace(folder.path().to_str().unwrap(), "").replace("/wrong.c", "wrong.c");
        assert!(said.contains(words), "{to}:\n{words}\n{said}");
    }
    // The code is compiled, which takes more files than a load from the cache.
    let limited = |limit: &str| {
        let run = "RUNTIME_CACHE=off $RUNTIME run scale.toml --device host:0";
        shell(&folder, &format!("ulimit -n {limit}; {run}"))
    };
    let run = limited("10");
    assert!(text(&run).contains("Too many open files") && text(&run).contains("ulimit -n"), "{}", text(&run));
    assert!(!text(&run).contains("install"), "{}", text(&run));
}

#[test]
fn truncated_libraries_are_rejected_before_they_are_mapped() {
    let folder = Folder::new();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "scale.so", "scale.c"])
        .current_dir(folder.path())
        .status();
    assert!(compiled.unwrap().success());
    let whole = std::fs::read(folder.path().join("scale.so")).unwrap();
    folder.write("so.toml", &SCALE.replacen("path = \"scale.c\"", "path = \"cut.so\"", 1));
    for length in [0, 10, 64, 1000, 4096, 4097, 9000, whole.len() - 1] {
        std::fs::write(folder.path().join("cut.so"), &whole[..length]).unwrap();
        let run = output(&folder, &["run", "so.toml", "--no-validate"]);
        assert_eq!(run.status.code(), Some(1), "{length}: {}", text(&run));
        assert!(text(&run).contains("\"cut.so\" is "), "{length}: {}", text(&run));
    }
    std::fs::write(folder.path().join("cut.so"), &whole).unwrap();
    assert_eq!(output(&folder, &["run", "so.toml", "--no-validate"]).status.code(), Some(0));
}

#[test]
fn portable_kernels_accept_every_form_of_a_spec() {
    let folder = Folder::new();
    folder.write("k.wgsl", WGSL);
    let values = |spec: &str| -> Result<Vec<u32>, String> {
        folder.write("p.toml", spec);
        let run = output(&folder, &["run", "p.toml", "--save", "y=y.npy"]);
        if run.status.code() != Some(0) {
            return Err(text(&run));
        }
        let bytes = std::fs::read(folder.path().join("y.npy")).unwrap();
        Ok(bytes[bytes.len() - 32..].as_chunks().0.iter().map(|&chunk| u32::from_le_bytes(chunk)).collect())
    };
    assert_eq!(values(PORTABLE), Ok(vec![8; 8]), "a bool constant, and the group size from the code");
    assert_eq!(values(&PORTABLE.replace("B = true", "B = false")), Ok(vec![4; 8]));
    assert_eq!(values(&PORTABLE.replace("groups = 2", "groups = 2\ngroup_size = 4")), Ok(vec![8; 8]));
    assert_eq!(values(&PORTABLE.replace("groups = 2", "groups = 0")), Ok(vec![0; 8]), "nothing runs");
    let contradiction = values(&PORTABLE.replace("groups = 2", "groups = 2\ngroup_size = 8")).unwrap_err();
    assert!(
        contradiction.contains("the kernel's code fixes it to [4, 1, 1]; leave it out"),
        "{contradiction}"
    );
    for variants in ["1", "2", "\"1\"", "\"auto\""] {
        let spec = PORTABLE
            .replace("entry = \"k\"", &format!("entry = \"k\"\noptions = {{ variants = {variants} }}"));
        assert_eq!(values(&spec), Ok(vec![8; 8]), "{variants}");
    }
    let wrong =
        values(&PORTABLE.replace("entry = \"k\"", "entry = \"k\"\noptions = { variants = 3 }")).unwrap_err();
    assert!(wrong.contains("option \"variants\" cannot be \"3\""), "{wrong}");
    let packed = values(&PORTABLE.replace("dtype = \"u32\"", "dtype = \"i8\"")).unwrap_err();
    assert!(packed.contains("is i8, but the kernel takes u32") && packed.contains("structures"), "{packed}");
    folder.write("k.wgsl", &format!("\u{feff}{WGSL}"));
    assert_eq!(values(&format!("\u{feff}{PORTABLE}")), Ok(vec![8; 8]), "byte-order marks");
}

#[test]
fn host_code_takes_structures_but_no_opaque_bytes() {
    let folder = Folder::new();
    folder.write("kinds.toml", &KINDS.replace("struct = [[\"u8\", 7], [\"u8\", 255]]", "bytes = [7, 255]"));
    let mut command = fixture::command_with(&["host", "null"], &["run", "kinds.toml", "--device", "host:0"]);
    let run = command.current_dir(folder.path()).output().unwrap();
    let said = text(&run);
    assert!(!run.status.success() && said.contains("kinds.toml:"), "{said}");
    assert!(said.contains("argument \"arg1\"") && said.contains("write struct ="), "{said}");
    folder.write("kinds.toml", KINDS);
    assert!(command.output().unwrap().status.success());
}

#[test]
fn hitting_a_system_limit_is_an_error_and_not_a_crash() {
    let folder = Folder::new();
    for limit in [4, 5, 6, 7, 8, 9, 12, 20] {
        let run = shell(
            &folder,
            &format!("ulimit -n {limit}; $RUNTIME eval scale.toml --repeat 1 --number 1 --json a.json"),
        );
        let said = text(&run);
        assert!(run.status.code().is_some() && !said.contains("panicked"), "{limit}: {said}");
        assert!(
            run.status.success() || said.contains("Too many open files") || said.contains("Error 24"),
            "{limit}: {said}"
        );
    }
    let mut command = fixture::command(&["run", "scale.toml"]);
    let run = command.current_dir(folder.path()).env("TMPDIR", "/missing").process_group(0).output().unwrap();
    assert!(text(&run).contains("/missing") && text(&run).contains("set TMPDIR"), "{}", text(&run));
}
