//! Programs that crash, hang or fail. The target is usable again after each.

use std::time::Duration;

use runtime_core::{Arg, DType, ErrorKind};

use crate::{Board, Case, DEADLINE, Link};

pub(crate) const CASES: &[Case] = &[
    ("crashes_are_named_and_located", crashes_are_named_and_located),
    ("a_null_call_names_its_caller", a_null_call_names_its_caller),
    ("a_stack_overflow_is_named", a_stack_overflow_is_named),
    ("a_frame_larger_than_the_stack_is_refused", a_frame_larger_than_the_stack_is_refused),
    ("arithmetic_and_alignment_trap_on_arm", arithmetic_and_alignment_trap_on_arm),
    ("a_hang_is_a_timeout_that_says_where", a_hang_is_a_timeout_that_says_where),
    ("a_reset_within_a_run_is_detected", a_reset_within_a_run_is_detected),
    ("writes_outside_a_tensor_are_found", writes_outside_a_tensor_are_found),
    ("an_exit_code_is_a_failure", an_exit_code_is_a_failure),
];

/// Runs a program, which must fail with an error that contains `words`; then another one, which must not.
fn expect(board: &Board, code: &str, kind: ErrorKind, words: &[&str]) {
    let deadline = if kind == ErrorKind::Timeout { Duration::from_millis(300) } else { DEADLINE };
    let x = board.embedded().tensor_from_seed(DType::I32, &[8], 1).unwrap();
    board.flash(code, &[Arg::read_write(&x)]).unwrap();
    let error = board.embedded().run(deadline).unwrap_err();
    let message = error.to_string();
    assert!(error.kind() == kind && words.iter().all(|word| message.contains(word)), "{words:?}: {message}");
    if kind == ErrorKind::Timeout {
        let again = board.embedded().run(deadline).unwrap_err().to_string();
        assert!(again.contains("flash again") && words.iter().all(|word| again.contains(word)), "{again}");
    }
    board.flash("void f(int *x) { x[0] = 77; }", &[Arg::read_write(&x)]).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    assert_eq!(board.embedded().read(0).unwrap().as_slice::<i32>().unwrap()[0], 77);
}

fn crashes_are_named_and_located(board: &Board) {
    let unimplemented = if board.is_cortex_m() { "udf #0" } else { "unimp" };
    let illegal = format!("\n\nvoid f(int *x) {{\n__asm__ volatile(\"{unimplemented}\");\n}}");
    expect(board, &illegal, ErrorKind::Crashed, &["crashed", "illegal instruction", "`f`", "kernel.c:4"]);
    let outside = "void f(int *x) {\n  x[0] = *(volatile int *)0xe8000000u;\n}";
    expect(board, outside, ErrorKind::Crashed, &["outside memory", "`f`", "kernel.c:2"]);
}

fn a_null_call_names_its_caller(board: &Board) {
    let code = "void f(int *x) {\n  void (*volatile g)(void) = 0;\n  g();\n  x[0] = 1;\n}";
    expect(board, code, ErrorKind::Crashed, &["crashed", "`f`", "kernel.c:"]);
}

fn a_stack_overflow_is_named(board: &Board) {
    let code = "
        static int __attribute__((noinline)) deep(volatile int *x) {
            volatile int frame[32];
            frame[0] = x[0];
            return deep(frame) + frame[1];
        }
        void f(int *x) { x[0] = deep(x); }";
    expect(board, code, ErrorKind::Crashed, &["stack overflow (65536 bytes of stack)"]);
    if !board.is_cortex_m() {
        return;
    }
    // Below the guard, this machine ignores writes: the return address is lost.
    let beyond = "
        static int __attribute__((noinline)) leaf(volatile int *x) { return x[0]; }
        static int __attribute__((noinline)) middle(volatile int *x) { return leaf(x) + leaf(x + 1); }
        static int __attribute__((noinline)) large(volatile int *x, int depth) {
            volatile int frame[12500];
            int sum = depth ? large(x, depth - 1) : middle(x);
            frame[x[0] & 7] = sum;
            return frame[x[0] & 7];
        }
        void f(int *x) { x[0] = large(x, 1); }";
    expect(board, beyond, ErrorKind::Crashed, &["stack overflow (65536 bytes of stack)"]);
}

fn a_frame_larger_than_the_stack_is_refused(board: &Board) {
    let code = "void f(int *x) { volatile int frame[20000]; frame[x[0] & 7] = 1; x[0] = frame[x[1] & 7]; }";
    let x = board.embedded().tensor_from_seed(DType::I32, &[8], 1).unwrap();
    let error = board.flash(code, &[Arg::read_write(&x)]).unwrap_err();
    let message = error.message();
    assert!(
        error.kind() == ErrorKind::CompileFailed && message.contains("is larger than 65536 bytes"),
        "{error}"
    );
}

fn arithmetic_and_alignment_trap_on_arm(board: &Board) {
    if !board.is_cortex_m() {
        return;
    }
    let division = "void f(int *x) { volatile int zero = 0; x[0] = 5 / zero; }";
    expect(board, division, ErrorKind::Crashed, &["division by zero", "`f`"]);
    let misaligned = "void f(int *x) { *(volatile int *)((char *)x + 1) = 3; }";
    expect(board, misaligned, ErrorKind::Crashed, &["misaligned access", "`f`"]);
}

fn a_hang_is_a_timeout_that_says_where(board: &Board) {
    let code = "void f(int *x) {\n  while (*(volatile int *)x != 12345)\n    ;\n}";
    // Over a UART, nothing interrupts the target.
    let place: &[&str] = if board.link == Link::Uart { &[] } else { &["`f`", "kernel.c:2"] };
    expect(board, code, ErrorKind::Timeout, &[&["300ms", "still running"], place].concat());
}

fn writes_outside_a_tensor_are_found(board: &Board) {
    expect(board, "void f(int *x) { x[8] = 1; }", ErrorKind::Failed, &["beyond tensor 0", "32 bytes"]);
    expect(board, "void f(int *x) { x[-1] = 1; }", ErrorKind::Failed, &["before tensor 0"]);
}

fn an_exit_code_is_a_failure(board: &Board) {
    expect(board, "int f(int *x) { return -3; }", ErrorKind::Failed, &["returned -3"]);
}

fn a_reset_within_a_run_is_detected(board: &Board) {
    let code = "void runtime_restart(void);\nvoid f(int *x) { runtime_restart(); }";
    expect(board, code, ErrorKind::Io, &["was reset"]);
}
