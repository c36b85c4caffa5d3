//! Views with more elements than memory can hold give an error, never an abort.

use runtime_core::{DType, ErrorKind, Options, Placement};

use super::{open, queue};

#[test]
fn copying_a_view_of_too_many_elements_is_an_error() {
    let device = open("null:0", &Options::new());
    for space in ["device", "shared"] {
        let x = device.allocate(DType::F32, &[4], &Placement::space(space)).unwrap();
        x.write(&[1f32, 2.0, 3.0, 4.0]).unwrap();
        let huge = x.view(&[1 << 44], &[0], 2).unwrap();
        let beyond = |result: runtime_core::Result<()>| {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        };
        beyond(huge.to_vec::<f32>().map(drop));
        beyond(huge.to_array().map(drop));
        beyond(huge.fill(&[0; 8]));
        let refused = queue(&*device).contiguous(&huge).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::OutOfMemory | ErrorKind::InvalidArgument), "{refused}");
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
        // All elements share one address, and get one value.
        huge.fill(&7f32.to_le_bytes()).unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0, 7.0, 4.0]);
    }
}

#[test]
fn a_fill_repeats_any_pattern_from_any_offset() {
    let device = open("null:0", &Options::new());
    for space in ["device", "shared"] {
        for (unit, units, from) in
            [(1, 5, 0), (3, 1000, 1), (16, 3, 5), (24, 7, 2), (1, 3 << 20, 7), (12, 1 << 18, 1)]
        {
            let bytes = unit * units;
            let x = device.allocate(DType::U8, &[bytes + 16], &Placement::space(space)).unwrap();
            x.write(&vec![9u8; bytes + 16]).unwrap();
            let pattern: Vec<u8> = (100..).take(unit).collect();
            x.slice(0, from..from + bytes).unwrap().fill(&pattern).unwrap();
            let mut expected = vec![9; bytes + 16];
            expected[from..from + bytes].copy_from_slice(&pattern.repeat(units));
            assert!(x.to_vec::<u8>().unwrap() == expected, "{space}: {units} times {unit} bytes from {from}");
        }
    }
    let empty = device.tensor::<u32>([0], &[]).unwrap();
    empty.fill(&[1, 2, 3]).unwrap();
}

#[test]
fn shapes_at_the_limit_of_the_counters_are_rejected() {
    let device = open("null:0", &Options::new());
    let x = device.tensor([4], &[0u8; 4]).unwrap();
    let max = usize::MAX;
    for (shape, strides, offset) in [
        (&[max][..], &[0][..], 0),
        (&[max / 2 + 1], &[0], 0),
        (&[2], &[i64::MIN], 0),
        (&[2], &[i64::MAX], 1),
        (&[3], &[i64::MIN / 2], 3),
        (&[1 << 32, 1 << 32], &[0, 0], 0),
        (&[4], &[1], max),
        (&[2, 2], &[1], 0),
    ] {
        let error = x.view(shape, strides, offset).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{shape:?} {strides:?} {offset}: {error}");
    }
    // The most that a view of one byte can have.
    let most = x.view(&[max / 2], &[0], 3).unwrap();
    assert_eq!(most.size_bytes(), max / 2);
    assert_eq!(most.to_vec::<u8>().unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert!(most.slice(0, max / 2 - 1..max / 2).is_ok());
}
