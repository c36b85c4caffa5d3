//! Boards that are reached over a UART.

use runtime_core::{Arg, DType};

use crate::{Board, Case, DEADLINE, lifetime, refusals, results};

/// Cases of other files that run over a UART as well.
pub(crate) const SHARED: &[Case] = &[
    ("a_kernel_runs_on_its_data", results::a_kernel_runs_on_its_data),
    ("a_prebuilt_image_is_flashed", refusals::a_prebuilt_image_is_flashed),
    ("large_tensors_survive_the_way", results::large_tensors_survive_the_way),
    ("flashes_leak_nothing", lifetime::flashes_leak_nothing),
    ("a_dead_emulator_is_reported_and_replaced", lifetime::a_dead_emulator_is_reported_and_replaced),
];

pub(crate) const CASES: &[Case] = &[("messages_come_between_replies", messages_come_between_replies)];

fn messages_come_between_replies(board: &Board) {
    let code = "
        void runtime_log(const char *);
        void f(int *x) { for (int i = 0; i < 50; i++) { runtime_log(\"a message\"); x[0] = i; } }";
    let x = board.embedded().tensor_from_seed(DType::I32, &[1], 1).unwrap();
    board.flash(code, &[Arg::read_write(&x)]).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    assert_eq!(board.embedded().read(0).unwrap().as_slice::<i32>().unwrap(), [49]);
}
