//! Boards that are reached over a UART.

use runtime_core::{Arg, DType, ErrorKind};

use crate::{Board, Case, DEADLINE, lifetime, refusals, results};

/// Cases of other files that run over a UART as well.
pub(crate) const SHARED: &[Case] = &[
    ("a_kernel_runs_on_its_data", results::a_kernel_runs_on_its_data),
    ("a_prebuilt_image_is_flashed", refusals::a_prebuilt_image_is_flashed),
    ("large_tensors_survive_the_way", results::large_tensors_survive_the_way),
    ("flashes_leak_nothing", lifetime::flashes_leak_nothing),
    ("a_dead_emulator_is_reported_and_replaced", lifetime::a_dead_emulator_is_reported_and_replaced),
];

pub(crate) const CASES: &[Case] = &[
    ("a_reset_within_a_run_is_detected", a_reset_within_a_run_is_detected),
    ("messages_come_between_replies", messages_come_between_replies),
];

fn a_reset_within_a_run_is_detected(board: &Board) {
    let code = "void runtime_restart(void);\nvoid f(int *x) { if (x[0] != 5) runtime_restart(); }";
    let x = board.embedded().tensor_from_seed(DType::I32, &[1], 1).unwrap();
    board.flash(code, &[Arg::read_write(&x)]).unwrap();
    let error = board.embedded().run(DEADLINE).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("was reset"), "{error}");
    board.flash("void f(int *x) { x[0] = 77; }", &[Arg::read_write(&x)]).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    assert_eq!(board.embedded().read(0).unwrap().as_slice::<i32>().unwrap(), [77]);
}

fn messages_come_between_replies(board: &Board) {
    let code = "
        void runtime_log(const char *);
        void f(int *x) { for (int i = 0; i < 50; i++) { runtime_log(\"a message\"); x[0] = i; } }";
    let x = board.embedded().tensor_from_seed(DType::I32, &[1], 1).unwrap();
    board.flash(code, &[Arg::read_write(&x)]).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    assert_eq!(board.embedded().read(0).unwrap().as_slice::<i32>().unwrap(), [49]);
}
