//! Memory: allocation, transfers, views, mappings.

use runtime_core::{DType, ErrorKind, HostArray, Options, Placement};

use super::{floats, open, slow};

#[test]
fn every_space_stores_what_is_written() {
    let device = open("null:0", &Options::new());
    for space in ["device", "pinned", "shared"] {
        let placement = Placement::space(space).aligned(512);
        for count in [0usize, 1, 3] {
            let tensor = device.allocate(DType::F64, &[count], &placement).unwrap();
            let values: Vec<f64> = (0u8..3).map(f64::from).take(count).collect();
            tensor.write(&values).unwrap();
            assert_eq!(tensor.to_vec::<f64>().unwrap(), values, "{count} in {space}");
        }
    }
    assert!(device.empty::<f32>([usize::MAX, 2]).is_err());
}

#[test]
fn views_share_the_memory_whatever_their_strides() {
    let device = open("null:0", &Options::new());
    let matrix = device.tensor([2, 3], &[0i32, 1, 2, 3, 4, 5]).unwrap();
    let transposed = matrix.permute(&[1, 0]).unwrap();
    assert_eq!(transposed.to_vec::<i32>().unwrap(), [0, 3, 1, 4, 2, 5]);
    let reversed = matrix.view(&[6], &[-1], 5).unwrap();
    assert_eq!(reversed.to_vec::<i32>().unwrap(), [5, 4, 3, 2, 1, 0]);
    let repeated = matrix.view(&[2, 2], &[0, 1], 1).unwrap();
    assert_eq!(repeated.to_vec::<i32>().unwrap(), [1, 2, 1, 2]);
    reversed.slice(0, 0..2).unwrap().write(&[50i32, 40]).unwrap();
    drop((matrix, reversed, repeated));
    assert_eq!(transposed.to_vec::<i32>().unwrap(), [0, 3, 1, 40, 2, 50]);
}

#[test]
fn a_mapping_is_a_slice_that_excludes_work() {
    let device = slow();
    let tensor = device.allocate(DType::U32, &[4], &Placement::space("pinned")).unwrap();
    let queue = super::queue(&*device);
    queue.fill(&tensor, &7u32.to_le_bytes()).unwrap();
    let mut writing = tensor.map_mut().unwrap();
    writing.as_mut_slice::<u32>().unwrap()[1] = 8;
    assert_eq!(queue.fill(&tensor, &[0; 4]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    drop(writing);
    let (one, two) = (tensor.map().unwrap(), tensor.map().unwrap());
    drop(tensor);
    assert_eq!(one.as_slice::<u32>().unwrap(), two.as_slice::<u32>().unwrap());
    assert_eq!(two.as_slice::<u32>().unwrap(), [7, 8, 7, 7]);
    let empty = device.allocate(DType::U32, &[0], &Placement::space("pinned")).unwrap();
    assert!(empty.map().unwrap().is_empty());
}

#[test]
fn tensors_move_between_devices_of_one_runtime() {
    let runtime = super::runtime();
    let (first, second) = (runtime.open("null:0").unwrap(), runtime.open("null:1").unwrap());
    drop(runtime);
    let here = floats(&*first, &[1.0, 2.0]);
    let there = here.to_device(&*second, &Placement::space("shared")).unwrap();
    drop((first, here));
    let back = super::queue(&*second);
    let copy = second.empty::<f32>([2]).unwrap();
    back.copy(&copy, &there).unwrap().wait().unwrap();
    assert_eq!(copy.to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn host_arrays_are_aligned_and_typed() {
    let device = open("null:0", &Options::new());
    let array = HostArray::from_slice(&[2, 2], &[1u16, 2, 3, 4]).unwrap();
    let tensor = device.tensor_from_array(&array, &Placement::default()).unwrap();
    tensor.fill(&9u16.to_le_bytes()).unwrap();
    assert_eq!(tensor.to_array().unwrap().as_slice::<u16>().unwrap(), [9; 4]);
    tensor.freeze().unwrap();
    assert!(tensor.write_array(&array).is_err(), "frozen");
}
