//! `Tensor::fill` of views with gaps: the null device refuses the calls that filling through host memory would make.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use runtime_core::{CommonRuntime, DType, ErrorKind, Options, Placement, Runtime, Tensor};

const BYTES: usize = 12 * 40;

/// A device that refuses all calls of these functions.
fn refusing(slots: &[&str], kind: &str) -> Arc<dyn CommonRuntime> {
    let mut options = Options::new();
    for slot in slots {
        (1..=200).for_each(|nth| options.push("fail_call", format!("{slot}:{nth}:{kind}")));
    }
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    runtime.open_with("null:0", &options).unwrap()
}

/// 12 by 10 elements of 4 bytes, all of them `0xee`.
fn matrix(device: &dyn CommonRuntime, space: &str) -> Tensor {
    let matrix = device.allocate(DType::F32, &[12, 10], &Placement::space(space)).unwrap();
    matrix.fill(&[0xee]).unwrap();
    matrix
}

/// Views with gaps: a block of columns, one column, a few rows of it, every other element, a transposed block, three axes,
/// backwards, and one that repeats its elements.
fn views(matrix: &Tensor) -> Vec<Tensor> {
    let view = |shape: &[usize], strides: &[i64], offset| matrix.view(shape, strides, offset).unwrap();
    vec![
        matrix.slice(1, 2..7).unwrap(),
        matrix.slice(1, 9..10).unwrap(),
        matrix.slice(1, 0..4).unwrap().slice(0, 3..6).unwrap(),
        view(&[40], &[3], 1),
        matrix.slice(1, 2..6).unwrap().permute(&[1, 0]).unwrap(),
        view(&[2, 3, 4], &[60, 11, 2], 5),
        view(&[6, 4], &[-20, -2], 119),
        view(&[3, 4, 4], &[0, 10, 1], 3),
    ]
}

/// The bytes of the buffer, element by element, after `view` was filled.
fn expected(view: &Tensor, pattern: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xee; BYTES];
    let mut index = vec![0usize; view.shape().len()];
    for element in 0..view.len() {
        let strided =
            index.iter().zip(view.strides()).map(|(&at, &stride)| i64::try_from(at).unwrap() * stride);
        let at = view
            .byte_offset()
            .checked_add_signed(isize::try_from(4 * strided.sum::<i64>()).unwrap())
            .unwrap();
        for byte in 0..4 {
            bytes[at + byte] = pattern[(4 * element + byte) % pattern.len()];
        }
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            if index[axis] < view.shape()[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    bytes
}

/// Fills all views with patterns of these lengths, each in a new matrix, and compares all bytes of the matrix.
fn check(device: &dyn CommonRuntime, space: &str, lengths: &[usize]) {
    for index in 0..views(&matrix(device, space)).len() {
        for &length in lengths {
            let matrix = matrix(device, space);
            let view = &views(&matrix)[index];
            let pattern: Vec<u8> = (1..).take(length).collect();
            if !view.size_bytes().is_multiple_of(length) {
                continue;
            }
            view.fill(&pattern).unwrap();
            // Memory of the space `pinned` is read without a call of the backend.
            let pinned = matrix.to_device(device, &Placement::space("pinned")).unwrap().to_array().unwrap();
            assert_eq!(pinned.bytes(), expected(view, &pattern), "{view:?}, {length} bytes, {space}");
        }
    }
}

#[test]
fn views_with_gaps_are_filled_by_their_device() {
    let device = refusing(&["write", "read"], "driver");
    // The last view repeats its elements: a longer pattern would write different values to one location.
    check(&*device, "device", &[1, 2, 4]);
    let matrix = matrix(&*device, "device");
    let error = views(&matrix)[7].fill(&[1, 2, 3, 4, 5, 6, 7, 8]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Driver, "the host would be seen: {error}");
    for view in &views(&matrix)[..7] {
        for pattern in [&[1, 2, 3, 4, 5, 6, 7, 8][..], &[9; 16]] {
            if view.size_bytes().is_multiple_of(pattern.len()) {
                view.fill(pattern).unwrap();
            }
        }
    }
}

#[test]
fn every_pattern_fills_every_view() {
    let lengths = [1, 2, 3, 4, 6, 8, 12, 16, 24];
    let device = refusing(&[], "driver");
    check(&*device, "device", &lengths);
    check(&*device, "pinned", &lengths);
}

#[test]
fn a_device_without_copies_of_rows_fills_the_rows() {
    let device = refusing(&["copy_2d"], "unsupported");
    check(&*device, "device", &[1, 4, 8]);
}

#[test]
fn what_the_device_cannot_fill_is_filled_through_the_host() {
    check(&*refusing(&["fill"], "unsupported"), "device", &[1, 4, 8, 12]);
    check(&*refusing(&["fill", "copy_2d"], "unsupported"), "device", &[4, 16]);
}

#[test]
fn a_transposed_tensor_is_filled_like_a_contiguous_one() {
    let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    let mut options = Options::new().with("fail_call", "copy_2d:1");
    // The first fill is that of the matrix, the second that of the view.
    ["fill:3", "write:1", "read:1"].iter().for_each(|call| options.push("fail_call", *call));
    let device = runtime.open_with("null:0", &options).unwrap();
    let matrix = matrix(&*device, "device");
    matrix.permute(&[1, 0]).unwrap().fill(&[1, 2, 3, 4]).unwrap();
    let pinned = matrix.to_device(&*device, &Placement::space("pinned")).unwrap();
    assert_eq!(pinned.to_array().unwrap().bytes(), [1u8, 2, 3, 4].repeat(120));
}

#[test]
fn a_failed_or_refused_fill_says_so() {
    let device = refusing(&["copy_2d"], "driver");
    let broken = matrix(&*device, "device");
    let error = broken.slice(1, 2..7).unwrap().fill(&[1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Driver, "{error}");
    let frozen = matrix(&*device, "device");
    frozen.freeze().unwrap();
    let error = frozen.slice(1, 2..7).unwrap().fill(&[1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert_eq!(frozen.to_array().unwrap().bytes(), [0xee; BYTES]);
}
