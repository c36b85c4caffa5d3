//! Memory and registers of a target that has stopped, and its reset.

use std::time::Duration;

use runtime_core::{Arg, ErrorKind, HostArray, Tensor};

use crate::{Board, CODE, Case, DEADLINE, Link};

pub(crate) const CASES: &[Case] = &[
    ("memory_is_read", memory_is_read),
    ("a_crash_is_inspected", a_crash_is_inspected),
    ("a_hang_is_inspected", a_hang_is_inspected),
    ("a_reset_starts_the_program_over", a_reset_starts_the_program_over),
];

fn number(board: &Board, value: i32) -> Tensor {
    board.embedded().tensor_from_array(HostArray::from_slice(&[1], &[value]).unwrap()).unwrap()
}

/// The tensor of the program.
fn result(board: &Board) -> i32 {
    board.embedded().read(0).unwrap().as_slice::<i32>().unwrap()[0]
}

fn register(board: &Board, name: &str) -> u64 {
    let registers = board.embedded().registers().unwrap();
    registers.iter().find(|register| register.name == name).unwrap().value
}

/// The program tells where its variable is.
fn memory_is_read(board: &Board) {
    let code = "
        static volatile unsigned variable = 0x1234abcdu;
        void f(unsigned *x) { x[0] = (unsigned)(__UINTPTR_TYPE__)&variable; variable++; }";
    let x = number(board, 0);
    board.flash(code, &[Arg::read_write(&x)]).unwrap();
    for runs in 1..3 {
        board.embedded().run(DEADLINE).unwrap();
        let mut bytes = [0; 4];
        board.embedded().read_memory(u64::from(result(board).cast_unsigned()), &mut bytes).unwrap();
        assert_eq!(u32::from_le_bytes(bytes), 0x1234_abcd + runs);
    }
    let there = u64::from(result(board).cast_unsigned());
    for nowhere in [0xe800_0000, 0x1_0000_0000 + there, u64::MAX - 1] {
        let error = board.embedded().read_memory(nowhere, &mut [0; 4]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Driver, "{nowhere:#x} {error}");
    }
    board.embedded().run(DEADLINE).unwrap();
    match board.link {
        Link::Debugger => assert_ne!(register(board, "sp"), 0),
        Link::Uart => {
            assert_eq!(board.embedded().registers().unwrap_err().kind(), ErrorKind::Unsupported);
        }
    }
}

fn a_crash_is_inspected(board: &Board) {
    let (name, bytes) = if board.is_cortex_m() { ("udf #0", [0, 0xde]) } else { ("unimp", [0, 0]) };
    let code = format!("void f(int *x) {{ x[0] = 5; __asm__ volatile(\"{name}\"); }}");
    let x = number(board, 3);
    board.flash(&code, &[Arg::read_write(&x)]).unwrap();
    for _ in 0..2 {
        assert_eq!(board.embedded().run(DEADLINE).unwrap_err().kind(), ErrorKind::Crashed);
        let mut found = [1; 2];
        board.embedded().read_memory(register(board, "pc"), &mut found).unwrap();
        assert_eq!(found, bytes, "the instruction that trapped");
        assert_eq!(board.embedded().run(DEADLINE).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(board.embedded().read(0).is_err(), "a program that has crashed has no results");
        board.embedded().reset().unwrap();
        assert_eq!(result(board), 3, "the first contents");
    }
}

fn a_hang_is_inspected(board: &Board) {
    let code = "void f(int *x) { while (*(volatile int *)x != 12345) {} }";
    let x = number(board, 3);
    board.flash(code, &[Arg::read_write(&x)]).unwrap();
    let error = board.embedded().run(Duration::from_millis(100)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    match board.link {
        Link::Debugger => {
            let pc = register(board, "pc");
            assert!(error.to_string().contains(&format!("{pc:#x}")), "{pc:#x} {error}");
            board.embedded().read_memory(pc, &mut [0; 2]).unwrap();
        }
        // The program runs on, so that the firmware does not answer.
        Link::Uart => {
            assert_eq!(board.embedded().registers().unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
    }
    board.embedded().reset().unwrap();
    assert_eq!(result(board), 3);
}

fn a_reset_starts_the_program_over(board: &Board) {
    let x = number(board, 40);
    board.flash(CODE, &[Arg::read_write(&x), Arg::scalar(2i32)]).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    assert_eq!(result(board), 44);
    board.embedded().reset().unwrap();
    assert_eq!(result(board), 40);
    board.embedded().run(DEADLINE).unwrap();
    assert_eq!(result(board), 42);
}
