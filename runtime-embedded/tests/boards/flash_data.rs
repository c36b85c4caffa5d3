//! Data that a kernel only reads, in flash.

use runtime_core::{Arg, ErrorKind, HostArray, Tensor};

use crate::{Board, Case, DEADLINE};

pub(crate) const CASES: &[Case] = &[
    ("data_that_is_only_read_is_in_flash", data_that_is_only_read_is_in_flash),
    ("data_beyond_the_flash_is_in_ram", data_beyond_the_flash_is_in_ram),
    ("a_changed_constant_is_a_failure", a_changed_constant_is_a_failure),
];

fn tensor(board: &Board, data: &[u8]) -> Tensor {
    board.embedded().tensor_from_array(HostArray::from_slice(&[data.len()], data).unwrap()).unwrap()
}

/// Where a kernel finds its first tensor, with the size of the constants.
fn address(board: &Board, data: &Tensor, is_read_only: bool) -> (u64, u64) {
    let device = board.embedded();
    let at = tensor(board, &[0; 8]);
    let code = "#include <stdint.h>
        void f(const uint8_t *data, uint64_t *at, uint32_t n) { *at = data[n - 1] == 7 ? (uintptr_t)data : 0; }";
    let first = if is_read_only { Arg::read(data) } else { Arg::read_write(data) };
    let length = u32::try_from(data.len()).unwrap();
    board.flash(code, &[first, Arg::read_write(&at), Arg::scalar(length)]).unwrap();
    let report = device.run(DEADLINE).unwrap();
    assert!(device.read(0).unwrap().bytes().ends_with(&[1, 7]), "it is read back");
    let at = device.read(1).unwrap().bytes().try_into().unwrap();
    (u64::from_le_bytes(at), report.image.unwrap().constant_bytes)
}

fn is_in_flash(board: &Board, address: u64) -> bool {
    let ram = match board.name {
        "riscv64-virt" | "riscv32-virt" => 0x8040_0000,
        "mps3-an547" => 0x3000_0000,
        _ => 0x2000_0000,
    };
    address < ram
}

fn data_that_is_only_read_is_in_flash(board: &Board) {
    let data = tensor(board, &[&[5; 4001][..], &[1, 7]].concat());
    let (written, before) = address(board, &data, false);
    let (read, after) = address(board, &data, true);
    assert!(is_in_flash(board, read) && !is_in_flash(board, written), "{read:#x} and {written:#x}");
    assert_eq!(after - before, 4003, "the report has its size");
}

/// Of two tensors that do not fit together, the second is in RAM.
fn data_beyond_the_flash_is_in_ram(board: &Board) {
    let device = board.embedded();
    let flash = board.device.info().properties.integer("flash_bytes").unwrap();
    let half = usize::try_from(flash / 2).unwrap();
    let large = tensor(board, &vec![5; half + (half >> 3)]);
    let code = "#include <stdint.h>
        void f(const void *a, const void *b, uint64_t *at) { at[0] = (uintptr_t)a; at[1] = (uintptr_t)b; }";
    let at = tensor(board, &[0; 16]);
    board.flash(code, &[Arg::read(&large), Arg::read(&large), Arg::read_write(&at)]).unwrap();
    device.run(DEADLINE).unwrap();
    let at = device.read(2).unwrap();
    let [a, b] = [0, 8].map(|from| u64::from_le_bytes(at.bytes()[from..from + 8].try_into().unwrap()));
    assert!(is_in_flash(board, a) && !is_in_flash(board, b), "{a:#x} and {b:#x}");
}

/// The flash of an emulated board can be written. The next flash writes it again.
fn a_changed_constant_is_a_failure(board: &Board) {
    let data = tensor(board, &[3, 1, 7]);
    let code = "void f(const unsigned char *x) { *(volatile unsigned char *)x = 8; }";
    board.flash(code, &[Arg::read(&data)]).unwrap();
    let error = board.embedded().run(DEADLINE).unwrap_err();
    assert!(error.kind() == ErrorKind::Failed && error.to_string().contains("changed tensor 0"), "{error}");
    board.flash("void f(const unsigned char *x) {}", &[Arg::read(&data)]).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    assert_eq!(board.embedded().read(0).unwrap().bytes(), [3, 1, 7]);
}
