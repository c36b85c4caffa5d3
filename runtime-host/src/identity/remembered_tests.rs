//! When the preprocessor runs again. The compiler counts its runs.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use runtime_core::Options;
use runtime_core::backend::Notes;

use super::*;

/// Environment variable with the folder of a test, in its second process.
const CHILD: &str = "RUNTIME_TEST_REMEMBERED";
/// Counts its runs, and is the system's compiler.
const COMPILER: &str = "#include <stdio.h>
#include <unistd.h>
int main(int count, char **arguments) {
    FILE *runs = fopen(RUNS, \"a\");
    fputs(\"run\\n\", runs);
    fclose(runs);
    arguments[0] = \"cc\";
    return execvp(arguments[0], arguments) + count;
}
";
const CODE: &str = "#include \"a.h\"\nint x = A + B;\n";

/// Folders of sources and headers, and of the compiler with its count and the notes.
struct Fixture {
    _owned: Option<tempfile::TempDir>,
    root: PathBuf,
    options: Options,
}

impl Fixture {
    /// `a.h` includes `<b.h>`; both are in the folder `later`, behind `earlier`, and old enough.
    fn new() -> Self {
        let owned = tempfile::tempdir().unwrap();
        let fixture = Self::of(owned.path().to_owned());
        fixture.write("tools/cc.c", COMPILER);
        let (program, code) = (fixture.root.join("tools/cc"), fixture.root.join("tools/cc.c"));
        let runs = format!("-DRUNS=\"{}\"", fixture.root.join("tools/runs").display());
        let made = std::process::Command::new("cc").arg(runs).arg(code).arg("-o").arg(program).status();
        assert!(made.unwrap().success());
        fixture.write("src/later/a.h", "#include <b.h>\n#define A 1\n");
        fixture.write("src/later/b.h", "#define B 2\n");
        fs::create_dir_all(fixture.root.join("src/earlier")).unwrap();
        settle();
        Self { _owned: Some(owned), ..fixture }
    }

    fn of(root: PathBuf) -> Self {
        let options = Options::new()
            .with("compiler", root.join("tools/cc").to_str().unwrap())
            .with("flags", "-Inone")
            .with("include", "earlier")
            .with("include", "later");
        Self { _owned: None, root, options }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn identity(&self, code: &str) -> Result<String> {
        let path = self.root.join("src/kernel.c");
        let path = path.to_str().unwrap();
        let source = Source { format: "c", path, code: Some(code.as_bytes()), options: &self.options };
        of_with(&source, &Notes::in_folder(&self.root.join("notes")))
    }

    /// The identity, and how often the preprocessor ran for it.
    fn counted(&self, code: &str) -> (Option<String>, usize) {
        let before = self.runs();
        let identity = self.identity(code).ok();
        (identity, self.runs() - before)
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.root.join("tools/runs")).unwrap_or_default().lines().count()
    }
}

/// Waits until files that were just written count as unchanged.
fn settle() {
    std::thread::sleep(Duration::from_millis(2200));
}

#[test]
fn unchanged_headers_need_no_preprocessor() {
    let fixture = Fixture::new();
    let (first, runs) = fixture.counted(CODE);
    assert_eq!(runs, 1);
    assert_eq!(fixture.counted(CODE), (first.clone(), 0));
    // Touched without a change.
    let header = fs::File::options().append(true).open(fixture.root.join("src/later/b.h")).unwrap();
    header.set_modified(SystemTime::now()).unwrap();
    assert_eq!(fixture.counted(CODE), (first.clone(), 0));
    // Without notes, it is the same.
    let path = fixture.root.join("src/kernel.c");
    let path = path.to_str().unwrap();
    let source = Source { format: "c", path, code: Some(CODE.as_bytes()), options: &fixture.options };
    assert_eq!(of_with(&source, &Notes::default()).ok(), first);
    // Other code and other options are others.
    assert_eq!(fixture.counted("#include \"a.h\"\nint y = A;\n").1, 1);
    let defined = Fixture {
        options: fixture.options.clone().with("define", "C=1"),
        ..Fixture::of(fixture.root.clone())
    };
    assert_eq!(defined.counted(CODE).1, 1);
}

#[test]
fn whatever_changes_the_text_is_noticed() {
    type Change = fn(&Fixture);
    let changes: [(&str, Change, bool); 8] = [
        ("a header of a header", |it| it.write("src/later/b.h", "#define B 3\n"), true),
        (
            "of the same length and time",
            |it| {
                let path = it.root.join("src/later/b.h");
                let time = path.metadata().unwrap().modified().unwrap();
                it.write("src/later/b.h", "#define B 4\n");
                fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
            },
            true,
        ),
        ("a header earlier on the path", |it| it.write("src/earlier/b.h", "#define B 5\n"), true),
        ("a header beside the source", |it| it.write("src/a.h", "#define A 6\n#define B 6\n"), true),
        ("a header in a folder that did not exist", |it| it.write("src/none/b.h", "#define B 7\n"), true),
        ("a missing header", |it| fs::remove_file(it.root.join("src/later/b.h")).unwrap(), true),
        (
            "a link to another header",
            |it| {
                it.write("src/other.h", "#define B 8\n");
                fs::remove_file(it.root.join("src/later/b.h")).unwrap();
                std::os::unix::fs::symlink(it.root.join("src/other.h"), it.root.join("src/later/b.h"))
                    .unwrap();
            },
            true,
        ),
        ("a header later on the path is no change", |it| it.write("src/later/c.h", "#define B 9\n"), false),
    ];
    // All at once, because each waits for its files to settle.
    std::thread::scope(|scope| {
        for (what, change, changes) in changes {
            scope.spawn(move || {
                let fixture = Fixture::new();
                let (first, _) = fixture.counted(CODE);
                assert_eq!(fixture.counted(CODE), (first.clone(), 0), "{what}");
                change(&fixture);
                let (second, runs) = fixture.counted(CODE);
                assert_eq!((runs, second != first), (usize::from(changes), changes), "{what}");
            });
        }
    });
}

#[test]
fn in_doubt_nothing_is_remembered() {
    let cases = [
        ("#if __has_include(\"c.h\")\n#endif\n", CODE),
        ("const char *when(void) { return __TIMESTAMP__; }\n", CODE),
        ("#include \"../later/c.h\"\n", CODE),
        ("#pragma once\n", "#include \"a.h\"\n#include \"same.h\"\n"),
        ("", "#if __has_include(\"c.h\")\n#endif\n#include \"b.h\"\n"),
    ];
    std::thread::scope(|scope| {
        for (text, code) in cases {
            scope.spawn(move || {
                let fixture = Fixture::new();
                fixture.write("src/later/b.h", &format!("{text}#define B 2\n"));
                fixture.write("src/later/same.h", &format!("{text}#define B 2\n"));
                fixture.write("src/later/c.h", "");
                settle();
                let (first, second) = (fixture.counted(code), fixture.counted(code));
                assert!(first.0.is_some(), "{text} {code}");
                assert_eq!((first.1, second.1), (1, 1), "{text} {code}");
            });
        }
        scope.spawn(|| {
            let fixture = Fixture::new();
            fixture.write("src/later/b.h", "#define B 3\n");
            let (first, second) = (fixture.counted(CODE), fixture.counted(CODE));
            assert_eq!((first.1, second.1), (1, 1), "a header that was just written may change again");
        });
    });
}

#[test]
fn another_process_remembers_too() {
    if let Some(root) = std::env::var_os(CHILD) {
        Fixture::of(root.into()).identity(CODE).unwrap();
        return;
    }
    let fixture = Fixture::new();
    let child = || {
        let name = "identity::remembered_tests::another_process_remembers_too";
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args([name, "--exact"]).env(CHILD, &fixture.root).output().unwrap()
    };
    let output = child();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fixture.runs(), 1);
    assert_eq!(fixture.counted(CODE).1, 0, "remembered by the other process");
    assert!(child().status.success());
    assert_eq!(fixture.runs(), 1);
}

#[test]
fn a_script_runs_every_time() {
    let fixture = Fixture::new();
    fixture.write("tools/script", "#!/bin/sh\nexec \"$(dirname \"$0\")/cc\" \"$@\"\n");
    let script = fixture.root.join("tools/script");
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let options = fixture.options.clone().with("compiler", script.to_str().unwrap());
    let scripted = Fixture { options, ..Fixture::of(fixture.root.clone()) };
    assert_eq!((scripted.counted(CODE).1, scripted.counted(CODE).1), (1, 1));
    assert_eq!((fixture.counted(CODE).1, fixture.counted(CODE).1), (1, 0));
}

/// The headers of the system can be remembered.
#[test]
fn headers_of_the_system_are_remembered() {
    let fixture = Fixture::new();
    let code =
        "#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n#include \"a.h\"\n";
    assert_eq!(fixture.counted(code).1, 1);
    assert_eq!(fixture.counted(code).1, 0);
}
