//! Boards that are reached over a UART.

use runtime_core::{Arg, DType, ErrorKind, HostArray};

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
    ("messages_come_between_replies", messages_come_between_replies),
    ("changed_code_is_flashed_again", changed_code_is_flashed_again),
    ("data_that_is_only_read_takes_ram", data_that_is_only_read_takes_ram),
    ("an_emulator_that_has_ended_is_replaced", lifetime::an_emulator_that_has_ended_is_replaced),
    ("runs_whose_numbers_are_equal_are_all_executed", runs_whose_numbers_are_equal_are_all_executed),
];

fn messages_come_between_replies(board: &Board) {
    let code = "
        void runtime_log(const char *);
        void f(int *x) { for (int i = 0; i < 50; i++) { runtime_log(\"a message\"); x[0] = i; } }";
    let x = board.embedded().tensor_from_seed(DType::I32, &[1], 1).unwrap();
    board.flash(code, &[Arg::read_write(&x)]).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    assert_eq!(board.embedded().read(0).unwrap().as_slice::<i32>().unwrap(), [49]);
}

fn runs_whose_numbers_are_equal_are_all_executed(board: &Board) {
    let device = board.embedded();
    let [x, y] = [0, 1].map(|seed| device.tensor_from_seed(DType::I32, &[1], seed).unwrap());
    let code = "void f(int *x, int *y) { x[0] += 1; y[0] = x[0]; }";
    board.flash(code, &[Arg::read_write(&x), Arg::read_write(&y)]).unwrap();
    let value = || device.read(0).unwrap().as_slice::<i32>().unwrap()[0];
    let mut expected = value();
    // A read is two requests, and a run few: after one of these numbers of reads, its number is that of the last run.
    for reads in 120..=127 {
        device.run(DEADLINE).unwrap();
        expected = expected.wrapping_add(1);
        for _ in 0..reads {
            assert_eq!(value(), expected, "before {reads} reads have ended");
        }
    }
}

fn data_that_is_only_read_takes_ram(board: &Board) {
    let device = board.embedded();
    let weights = device.tensor_from_array(HostArray::new(DType::U8, &[5 << 20]).unwrap()).unwrap();
    let error = board.flash("void f(unsigned char *x) {}", &[Arg::read(&weights)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.message().contains("over a UART") && error.message().contains("5242"), "{error}");
}

fn changed_code_is_flashed_again(board: &Board) {
    let code = "
        const int value = 5;
        void f(int *x) { volatile int *constant = (volatile int *)&value; x[0] = *constant; *constant = 9; }";
    let x = board.embedded().tensor_from_seed(DType::I32, &[1], 1).unwrap();
    for _ in 0..2 {
        board.flash(code, &[Arg::read_write(&x)]).unwrap();
        board.embedded().run(DEADLINE).unwrap();
        assert_eq!(board.embedded().read(0).unwrap().as_slice::<i32>().unwrap(), [5]);
    }
}
