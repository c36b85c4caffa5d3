//! Views of other shapes, and tensors of types that are chosen at run time.

use runtime_core::half::f16;
use runtime_core::{DType, ErrorKind, HostArray, Options, Placement};

use super::open;

#[test]
fn axes_are_reversed_removed_and_repeated() {
    let device = open("null:0", &Options::new());
    let matrix = device.tensor([2, 3], &[0i32, 1, 2, 3, 4, 5]).unwrap();
    let transposed = matrix.transpose().unwrap();
    assert_eq!(
        (transposed.shape(), transposed.to_vec::<i32>().unwrap()),
        (&[3, 2][..], vec![0, 3, 1, 4, 2, 5])
    );
    let row = matrix.slice(0, 1..2).unwrap();
    assert_eq!(row.squeeze().unwrap().shape(), [3]);
    assert_eq!(row.slice(1, 2..3).unwrap().squeeze().unwrap().to_vec::<i32>().unwrap(), [5], "a scalar");
    let repeated = row.broadcast_to(&[2, 2, 3]).unwrap();
    assert_eq!(repeated.strides(), [0, 0, 1]);
    assert_eq!(repeated.to_vec::<i32>().unwrap(), [3, 4, 5].repeat(4));
    let scalar = device.full(DType::I32, [], 7).unwrap();
    assert_eq!(scalar.broadcast_to(&[3]).unwrap().to_vec::<i32>().unwrap(), [7; 3]);
    assert!(scalar.broadcast_to(&[0]).unwrap().is_empty());
    for wrong in [&[3][..], &[2, 2], &[3, 3], &[2, 1]] {
        let error = matrix.broadcast_to(wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains(&format!("[2, 3] is not broadcast to {wrong:?}")), "{error}");
    }
    assert!(scalar.broadcast_to(&[usize::MAX, 2]).is_err(), "more elements than can be counted");
}

#[test]
fn tensors_are_made_of_any_type_of_numbers() {
    let device = open("null:0", &Options::new());
    for dtype in DType::all().filter(|dtype| dtype.complex_part().is_none()) {
        let like = device.empty_like(&device.empty_of(dtype, [2, 3]).unwrap()).unwrap();
        assert_eq!((like.dtype(), like.shape()), (dtype, &[2, 3][..]));
        let Ok(indices) = HostArray::arange(dtype, &[2]) else { continue };
        let made = device.arange(dtype, [2]).unwrap();
        assert_eq!(made.to_array().unwrap().bytes(), indices.bytes(), "{dtype}");
        let random = device.random(dtype, [5], 3).unwrap().to_array().unwrap();
        let placed = device.tensor_from_array(&random, &Placement::default()).unwrap();
        assert_eq!(placed.to_array().unwrap().bytes(), random.bytes());
    }
    let filled = device.full(DType::F16, [3], 0.5).unwrap();
    assert_eq!(filled.to_vec::<f16>().unwrap(), [f16::from_f32(0.5); 3]);
    let complex = device.full(DType::COMPLEX64, [2], 1.5).unwrap();
    assert_eq!(complex.to_vec::<f32>().map_err(|error| error.kind()), Err(ErrorKind::InvalidArgument));
    assert_eq!(complex.to_array().unwrap().bytes()[..8], [1.5f32.to_le_bytes(), [0; 4]].concat()[..]);
    let error = device.full(DType::U8, [3], -1).unwrap_err();
    assert!(error.message().contains("-1 does not fit u8 (0 to 255)"), "{error}");
}
