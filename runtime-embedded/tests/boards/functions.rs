//! Counts per function.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use runtime_core::{Arg, DType, ErrorKind, HostArray, Result};

use crate::refusals::{ENTRY, elf, prebuilt};
use crate::{Board, Case, DEADLINE, Link, c};

pub(crate) const CASES: &[Case] = &[
    ("every_instruction_is_counted_once", every_instruction_is_counted_once),
    ("a_traced_run_may_fail", a_traced_run_may_fail),
    ("what_the_emulator_executes_is_counted", what_the_emulator_executes_is_counted),
];
pub(crate) const IMAGES: &[Case] =
    &[("images_without_functions_are_refused", images_without_functions_are_refused)];
pub(crate) const UART: &[Case] = &[("a_uart_counts_no_functions", a_uart_counts_no_functions)];

const CODE: &str = "
    static int __attribute__((noinline)) twice(int a) { return a + a + 1; }
    int __attribute__((noinline)) once(int a);
    void __attribute__((noinline)) f(int *x, int n) { for (int i = 0; i < n; i++) x[0] = twice(x[0]); x[1] = once(x[0]); }
    int once(int a) { return a ^ 0x55; }";

fn flash(board: &Board, code: &str, n: i32, file: &Path) -> Result<()> {
    let x = board.embedded().tensor_from_array(HostArray::from_slice(&[2], &[1i32, 0])?)?;
    let source = c(code).option("entry", "f").option("functions", file.to_str().unwrap());
    board.embedded().flash(&source, &[Arg::read_write(&x), Arg::scalar(n)])
}

fn every_instruction_is_counted_once(board: &Board) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("functions");
    let trace = |n: i32, file: &Path| {
        flash(board, CODE, n, file).unwrap();
        board.embedded().run(DEADLINE).unwrap()
    };
    // Without a file, nothing is traced.
    let (plain, traced) = (trace(100, Path::new("")), trace(100, &file));
    assert_eq!((plain.cycles, plain.overhead), (traced.cycles, traced.overhead), "tracing changes no count");
    let counts = || -> BTreeMap<String, u64> {
        let text = fs::read_to_string(&file).unwrap();
        text.lines()
            .map(|line| line.rsplit_once(' ').unwrap())
            .map(|(a, b)| (a.to_owned(), b.parse().unwrap()))
            .collect()
    };
    let first = counts();
    assert_eq!(traced.cycles.unwrap(), first.values().sum::<u64>(), "{first:?}");
    trace(200, &file);
    let second = counts();
    assert_eq!(second["twice"], 2 * first["twice"], "{first:?} and {second:?}");
    assert!((200..=400).contains(&first["twice"]) && first["f"] > first["twice"], "{first:?}");
    assert!(first["once"] == second["once"] && (2..=4).contains(&first["once"]), "{first:?}");
    assert!(!first.contains_key("runtime_crc"), "only what is counted is traced: {first:?}");
}

fn a_traced_run_may_fail(board: &Board) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("functions");
    flash(board, "void f(int *x, int n) { __builtin_trap(); }", 1, &file).unwrap();
    let error = board.embedded().run(DEADLINE).unwrap_err();
    assert!(error.kind() == ErrorKind::Crashed && error.to_string().contains("crashed"), "{error}");
    flash(board, "void f(int *x, int n) { while (*(volatile int *)x == 1) {} }", 1, &file).unwrap();
    let error = board.embedded().run(Duration::from_secs(5)).unwrap_err();
    assert!(error.kind() == ErrorKind::Timeout && error.to_string().contains("`f`"), "{error}");
    every_instruction_is_counted_once(board);
}

fn what_the_emulator_executes_is_counted(board: &Board) {
    let counted = |calls: i64, executed: bool| {
        let x = board.embedded().tensor_from_array(HostArray::from_slice(&[2], &[1i32, 0]).unwrap()).unwrap();
        let source = c(CODE).option("entry", "f").option("calls", calls).option("executed", executed);
        board.embedded().flash(&source, &[Arg::read_write(&x), Arg::scalar(1000i32)]).unwrap();
        board.embedded().run(DEADLINE).unwrap().cycles.unwrap()
    };
    let (nothing, one, two) = (counted(0, true), counted(1, true), counted(2, true));
    let call = one - nothing;
    // Around the calls, the counter counts its readings, too; and less stack is left to look through.
    assert!((counted(1, false) - 80..=counted(1, false)).contains(&call), "{call} of {}", counted(1, false));
    assert!((call - 8..=call + 8).contains(&(two - one)), "{nothing}, {one}, {two}");
    let both = c(CODE).option("entry", "f").option("functions", "file").option("executed", true);
    let x = board.embedded().tensor_from_seed(DType::I32, &[2], 1).unwrap();
    let error = board.embedded().flash(&both, &[Arg::read_write(&x), Arg::scalar(1i32)]).unwrap_err();
    assert!(error.to_string().contains("\"functions\" and \"executed\""), "{error}");
}

/// The program that was flashed before stays.
fn images_without_functions_are_refused(board: &Board) {
    board.flash("int f(void) { return 0; }", &[]).unwrap();
    let x = board.embedded().tensor_from_seed(DType::I32, &[1], 1).unwrap();
    let mut image = prebuilt(board.name, ENTRY, board.link);
    let name = image.windows(15).position(|bytes| bytes == b"runtime_counted").unwrap();
    image[name] = b'R';
    let source = elf(image).option("functions", "functions");
    let error = board.embedded().flash(&source, &[Arg::read_write(&x), Arg::scalar(1i32)]).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unsupported && error.to_string().contains("runtime_counted"),
        "{error}"
    );
    board.embedded().run(DEADLINE).unwrap();
}

fn a_uart_counts_no_functions(board: &Board) {
    assert_eq!(board.link, Link::Uart);
    board.flash("int f(void) { return 0; }", &[]).unwrap();
    let error = flash(board, CODE, 1, Path::new("functions")).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("UART"), "{error}");
    board.embedded().run(DEADLINE).unwrap();
}
