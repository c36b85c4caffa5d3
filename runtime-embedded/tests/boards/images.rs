//! What images are made from, and where they are kept.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use runtime_core::{Arg, HostArray, ModuleSource};

use crate::lifetime::command;
use crate::{Board, Case, DEADLINE, c};

pub(crate) const CASES: &[Case] = &[
    ("a_changed_header_makes_another_image", a_changed_header_makes_another_image),
    ("files_of_any_name_are_flashed", files_of_any_name_are_flashed),
    ("macros_are_defined", macros_are_defined),
    ("images_are_kept_for_later_processes", images_are_kept_for_later_processes),
];

/// The element that a kernel with one tensor writes.
fn result(board: &Board, source: &ModuleSource) -> i32 {
    let device = board.embedded();
    let y = device.tensor_from_array(HostArray::from_slice(&[1], &[0i32]).unwrap()).unwrap();
    device.flash(source, &[Arg::read_write(&y)]).unwrap();
    device.run(DEADLINE).unwrap();
    device.read(0).unwrap().as_slice::<i32>().unwrap()[0]
}

fn file(folder: &Path, name: &str, text: &str) -> ModuleSource {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    // SAFETY: the code runs on the target.
    unsafe { ModuleSource::native_file("c", path) }
}

fn a_changed_header_makes_another_image(board: &Board) {
    let folder = tempfile::tempdir().unwrap();
    let source = file(folder.path(), "kernel.c", "#include \"value.h\"\nvoid f(int *y) { *y = VALUE; }");
    for value in [3, 5] {
        fs::write(folder.path().join("value.h"), format!("#define VALUE {value}\n")).unwrap();
        assert_eq!(result(board, &source), value);
    }
    // A file whose name only the preprocessor knows.
    let text = "#define NAME <value.h>\n#include NAME\nvoid f(int *y) { *y = VALUE; }";
    let source = file(folder.path(), "computed.c", text);
    for value in [7, 9] {
        fs::write(folder.path().join("value.h"), format!("#define VALUE {value}\n")).unwrap();
        assert_eq!(result(board, &source), value);
    }
}

fn files_of_any_name_are_flashed(board: &Board) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["entry.c", "kernel.o", "image.elf", "main.c", "generated.c"] {
        let source = file(folder.path(), name, "void f(int *y) { *y = 4; }");
        assert_eq!(result(board, &source), 4, "{name}");
    }
}

fn macros_are_defined(board: &Board) {
    let source = c("void f(int *y) { *y = N + TWO; }").option("define", "N=40").option("define", "TWO=2");
    assert_eq!(result(board, &source), 42);
    let source = c("void f(int *y) { *y = 1; }").option("define", "=1");
    assert!(board.embedded().flash(&source, &[]).unwrap_err().to_string().contains("define"));
}

/// A second process compiles neither the firmware nor the kernel.
fn images_are_kept_for_later_processes(board: &Board) {
    let folder = tempfile::tempdir().unwrap();
    let files = |round: &str| {
        let temporary = folder.path().join(round);
        fs::create_dir(&temporary).unwrap();
        let mut child = command(board, "images");
        child.env("RUNTIME_CACHE", folder.path().join("cache")).env("TMPDIR", &temporary);
        let output = child.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(files("first"), "2 images, 2 compiled, firmware compiled");
    assert_eq!(files("second"), "2 images, 0 compiled, firmware not compiled");
}

/// Prints what has been made for two kernels, one of them flashed with two numbers of calls.
pub(crate) fn flash_twice(board: &Board) {
    let first = c("void f(int *y) { *y += 1; }");
    assert_eq!(result(board, &first), 1);
    assert_eq!(result(board, &first.option("calls", 10)), 10);
    assert_eq!(result(board, &c("void g(int *y) { *y = 2; }")), 2);
    let files = files_below(&std::env::temp_dir());
    let count = |name: &str| files.iter().filter(|file| file.ends_with(name)).count();
    let firmware = if count("main.c.o") == 0 { "not compiled" } else { "compiled" };
    let (images, compiled) = (count("image.elf"), count("generated/entry.c"));
    let report = format!("{images} images, {compiled} compiled, firmware {firmware}");
    std::io::stdout().write_all(report.as_bytes()).unwrap();
}

pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
