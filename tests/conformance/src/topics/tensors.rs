//! Tensors and views: shapes, strides, shared memory, freezing.

use runtime_core::{
    CommonRuntime, DType, ErrorKind, HostArray, ModuleSource, Number, Options, Placement, Tensor,
};

use crate::case::{Failure, Requirement, Verdict, cases};
use crate::context::Context;
use crate::expect::{expect_all, expect_equal, expect_error};
use crate::fixture::Fixture;
use crate::test_data::Random;

cases! {
    [Requirement::Queues] => a_tensor_describes_itself, slices_are_parts, slices_of_slices_compose,
        permuted_axes_read_back, reshape_keeps_the_order, reversed_and_broadcast_views,
        a_strided_write_leaves_the_gaps_alone, fills_leave_the_gaps_alone, empty_views_work, views_and_clones_share_memory,
        a_view_outlives_its_tensor, a_view_outside_is_refused, a_wrong_slice_is_refused,
        a_wrong_permutation_is_refused, a_wrong_reshape_is_refused, a_wrong_element_type_is_refused,
        a_wrong_element_count_is_refused, arrays_round_trip, to_device_is_a_copy,
        to_device_gathers_views_with_gaps, to_device_reaches_the_host_and_back,
        a_frozen_tensor_is_final, casts_are_those_of_arrays, a_cast_is_in_order_with_its_queue;
}

fn matrix(context: &Context) -> runtime_core::Result<Tensor> {
    context.fixture().device().tensor([3, 4], &(0..12).collect::<Vec<i32>>())
}

fn a_tensor_describes_itself(context: &Context) -> Verdict {
    let tensor = matrix(context)?;
    assert_eq!((tensor.dtype(), tensor.shape(), tensor.strides()), (DType::I32, &[3, 4][..], &[4, 1][..]));
    assert_eq!((tensor.len(), tensor.size_bytes(), tensor.byte_offset()), (12, 48, 0));
    assert!(tensor.is_contiguous() && !tensor.is_frozen());
    assert_eq!(tensor.device_id(), context.fixture().device().device_id());
    Ok(())
}

fn slices_are_parts(context: &Context) -> Verdict {
    let tensor = matrix(context)?;
    expect_equal("row", &tensor.slice(0, 1..2)?.to_vec::<i32>()?, &[4, 5, 6, 7])?;
    let columns = tensor.slice(1, 1..3)?;
    assert!(!columns.is_contiguous() && columns.byte_offset() == 4);
    expect_equal("columns", &columns.to_vec::<i32>()?, &[1, 2, 5, 6, 9, 10])
}

fn slices_of_slices_compose(context: &Context) -> Verdict {
    let part = matrix(context)?.slice(0, 1..3)?.slice(1, 2..4)?.slice(0, 1..2)?;
    expect_equal("corner", &part.to_vec::<i32>()?, &[10, 11])
}

fn permuted_axes_read_back(context: &Context) -> Verdict {
    let turned = matrix(context)?.permute(&[1, 0])?;
    assert_eq!((turned.shape(), turned.strides()), (&[4, 3][..], &[1, 4][..]));
    expect_equal("turned", &turned.to_vec::<i32>()?, &[0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11])
}

fn reshape_keeps_the_order(context: &Context) -> Verdict {
    let reshaped = matrix(context)?.slice(0, 1..3)?.reshape(&[2, 2, 2])?;
    assert_eq!(reshaped.shape(), [2, 2, 2]);
    expect_equal("reshaped", &reshaped.to_vec::<i32>()?, &[4, 5, 6, 7, 8, 9, 10, 11])
}

fn reversed_and_broadcast_views(context: &Context) -> Verdict {
    let tensor = context.fixture().tensor(&[1i32, 2, 3, 4])?;
    expect_equal("reversed", &tensor.view(&[4], &[-1], 3)?.to_vec::<i32>()?, &[4, 3, 2, 1])?;
    expect_equal("broadcast", &tensor.view(&[2, 3], &[1, 0], 1)?.to_vec::<i32>()?, &[2, 2, 2, 3, 3, 3])?;
    expect_equal("windows", &tensor.view(&[3, 2], &[1, 1], 0)?.to_vec::<i32>()?, &[1, 2, 2, 3, 3, 4])
}

fn a_strided_write_leaves_the_gaps_alone(context: &Context) -> Verdict {
    let tensor = matrix(context)?;
    tensor.slice(1, 1..3)?.write(&[-1i32, -2, -3, -4, -5, -6])?;
    expect_equal("gaps", &tensor.to_vec::<i32>()?, &[0, -1, -2, 3, 4, -3, -4, 7, 8, -5, -6, 11])?;
    tensor.view(&[6], &[-2], 10)?.write(&[1i32, 2, 3, 4, 5, 6])?;
    expect_equal("backwards", &tensor.to_vec::<i32>()?, &[6, -1, 5, 3, 4, -3, 3, 7, 2, -5, 1, 11])
}

fn empty_views_work(context: &Context) -> Verdict {
    let tensor = matrix(context)?;
    for view in [tensor.slice(0, 3..3)?, tensor.slice(1, 2..2)?, tensor.view(&[0, 99], &[7, 7], 0)?] {
        assert_eq!(view.len(), 0);
        assert!(view.to_vec::<i32>()?.is_empty());
        view.write::<i32>(&[])?;
        view.fill(&[1])?;
    }
    expect_equal("untouched", &tensor.to_vec::<i32>()?, &(0..12).collect::<Vec<i32>>())
}

fn views_and_clones_share_memory(context: &Context) -> Verdict {
    let tensor = context.fixture().full(10, 1.0)?;
    tensor.clone().slice(0, 0..10)?.fill(&2.0f32.to_le_bytes())?;
    expect_all("shared", &tensor, 2.0)
}

fn a_view_outlives_its_tensor(context: &Context) -> Verdict {
    let tensor = context.fixture().full(1000, 3.0)?;
    let view = tensor.slice(0, 990..1000)?;
    drop(tensor);
    let _others = (0..10).map(|_| context.fixture().full(1000, 9.0)).collect::<Result<Vec<_>, _>>()?;
    expect_all("the view", &view, 3.0)
}

fn a_view_outside_is_refused(context: &Context) -> Verdict {
    let tensor = matrix(context)?;
    let views: [(&[usize], &[i64], usize); 5] =
        [(&[13], &[1], 0), (&[12], &[1], 1), (&[4], &[-1], 2), (&[2], &[i64::MAX], 0), (&[3], &[1 << 40], 0)];
    for (shape, strides, offset) in views {
        expect_error(
            "view",
            tensor.view(shape, strides, offset),
            ErrorKind::InvalidArgument,
            &["view", "out of bounds"],
        )?;
    }
    expect_error("dimensions", tensor.view(&[2, 2], &[1], 0), ErrorKind::InvalidArgument, &["dimensions"])
        .map(drop)
}

fn a_wrong_slice_is_refused(context: &Context) -> Verdict {
    let tensor = matrix(context)?;
    expect_error("range", tensor.slice(0, 1..4), ErrorKind::InvalidArgument, &["slice", "1..4", "axis 0"])?;
    #[expect(clippy::reversed_empty_ranges, reason = "that is the point")]
    let reversed = 2..1;
    expect_error("reversed", tensor.slice(0, reversed), ErrorKind::InvalidArgument, &["2..1"])?;
    expect_error("axis", tensor.slice(2, 0..1), ErrorKind::InvalidArgument, &["axis 2"]).map(drop)
}

fn a_wrong_permutation_is_refused(context: &Context) -> Verdict {
    let tensor = matrix(context)?;
    for axes in [&[0][..], &[0, 0], &[0, 2], &[0, 1, 2]] {
        expect_error("axes", tensor.permute(axes), ErrorKind::InvalidArgument, &["permute", "permutation"])?;
    }
    Ok(())
}

fn a_wrong_reshape_is_refused(context: &Context) -> Verdict {
    let tensor = matrix(context)?;
    expect_error("count", tensor.reshape(&[5, 2]), ErrorKind::InvalidArgument, &["reshape", "[5, 2]"])?;
    expect_error("overflow", tensor.reshape(&[usize::MAX, 12]), ErrorKind::InvalidArgument, &["reshape"])?;
    expect_error("gaps", tensor.permute(&[1, 0])?.reshape(&[12]), ErrorKind::InvalidArgument, &["contiguous"])
        .map(drop)
}

fn a_wrong_element_type_is_refused(context: &Context) -> Verdict {
    let tensor = matrix(context)?;
    expect_error("read", tensor.to_vec::<f32>(), ErrorKind::InvalidArgument, &["f32", "i32"])?;
    expect_error("write", tensor.write(&[0.0f32; 12]), ErrorKind::InvalidArgument, &["f32", "i32"])?;
    let array = HostArray::new(DType::F32, &[3, 4])?;
    expect_error("array", tensor.write_array(&array), ErrorKind::InvalidArgument, &["f32", "i32"]).map(drop)
}

fn a_wrong_element_count_is_refused(context: &Context) -> Verdict {
    let device = context.fixture().device();
    expect_error("slice", device.tensor([3, 4], &[0i32; 11]), ErrorKind::InvalidArgument, &["12", "11"])?;
    let overflow = device.tensor([usize::MAX, 3], &[0i32; 3]);
    expect_error("overflow", overflow, ErrorKind::InvalidArgument, &["shape"]).map(drop)
}

fn arrays_round_trip(context: &Context) -> Verdict {
    let data = Random::new(7).floats(24);
    let array = HostArray::from_slice(&[2, 3, 4], &data)?;
    let tensor = context.fixture().device().tensor_from_array(&array, &Placement::default())?;
    assert_eq!(tensor.to_array()?, array);
    let part = tensor.slice(1, 1..3)?.to_array()?;
    assert_eq!(part.shape(), [2, 2, 4]);
    Ok(())
}

fn to_device_is_a_copy(context: &Context) -> Verdict {
    let tensor = context.fixture().full(100, 1.0)?;
    let copy = tensor.to_device(context.fixture().device(), &Placement::default())?;
    tensor.fill(&[0])?;
    expect_all("the copy", &copy, 1.0)?;
    let strided = copy.view(&[50], &[2], 0)?.to_device(context.fixture().device(), &Placement::default())?;
    assert!(strided.is_contiguous());
    expect_all("dense again", &strided, 1.0)
}

fn fills_leave_the_gaps_alone(context: &Context) -> Verdict {
    let views: [(&[usize], &[i64], usize); 6] = [
        (&[9, 3], &[50, 1], 7),
        (&[600, 10], &[50, 1], 40),
        (&[10, 600], &[1, 50], 40),
        (&[700], &[-40], 29_000),
        (&[5, 6, 7], &[5000, 60, 3], 11),
        (&[4, 30], &[0, 50], 0),
    ];
    let pattern: Vec<u8> = [1.5f32, 2.5].iter().flat_map(|value| value.to_le_bytes()).collect();
    for (shape, strides, offset) in views {
        let whole = context.fixture().full(30_000, -1.0)?;
        let view = whole.view(shape, strides, offset)?;
        view.fill(&3.0f32.to_le_bytes())?;
        expect_all(&format!("{view:?}"), &view, 3.0)?;
        let others =
            |filled: f32| whole.to_vec::<f32>().map(|all| all.iter().filter(|&&x| x == filled).count());
        let distinct =
            shape.iter().zip(strides).filter(|(_, stride)| **stride != 0).map(|(n, _)| n).product();
        assert_eq!((others(3.0)?, others(-1.0)?), (distinct, 30_000 - distinct), "{view:?}");
        if distinct == view.len() && distinct % 2 == 0 {
            view.fill(&pattern)?;
            let expected: Vec<_> = (0..distinct).map(|i| [1.5, 2.5][i % 2]).collect();
            expect_equal(&format!("{view:?} with two values"), &view.to_vec::<f32>()?, &expected)?;
            assert_eq!(others(-1.0)?, 30_000 - distinct, "{view:?}");
        }
    }
    Ok(())
}

/// The columns of a matrix, its transpose, and an axis that runs backwards, to `device`, checked there.
fn check_moved_views(from: &Fixture, device: &dyn CommonRuntime) -> Verdict {
    let data = Random::new(8).floats(35);
    let matrix = from.device().tensor([5, 7], &data)?;
    let views = [
        matrix.clone(),
        matrix.slice(1, 2..5)?,
        matrix.permute(&[1, 0])?,
        matrix.view(&[5], &[-7], 34)?,
        matrix.slice(0, 1..1)?,
    ];
    for view in &views {
        for space in &device.info().spaces {
            let copy = view.to_device(device, &Placement::space(&space.name))?;
            assert!(copy.is_contiguous() && copy.space() == space.name && copy.shape() == view.shape());
            expect_equal(&format!("{view:?} in {}", space.name), &copy.to_vec::<f32>()?, &view.to_vec()?)?;
        }
    }
    Ok(())
}

fn to_device_gathers_views_with_gaps(context: &Context) -> Verdict {
    check_moved_views(context.fixture(), context.fixture().device())?;
    check_moved_views(context.fixture(), context.reopen(&Options::new())?.device())
}

fn to_device_reaches_the_host_and_back(context: &Context) -> Verdict {
    let host = context.runtime().open("host");
    let host =
        host.map_err(|error| Failure::Unsupported(format!("the host backend is not here: {error}")))?;
    check_moved_views(context.fixture(), &*host)?;
    let matrix = host.tensor([2, 3], &[0f32, 1.0, 2.0, 3.0, 4.0, 5.0])?;
    let here = context.fixture().device();
    for view in [matrix.clone(), matrix.permute(&[1, 0])?] {
        let copy = view.to_device(here, &Placement::default())?;
        expect_equal("from the host", &copy.to_vec::<f32>()?, &view.to_vec()?)?;
    }
    Ok(())
}

fn a_frozen_tensor_is_final(context: &Context) -> Verdict {
    let (fixture, queue) = (context.fixture(), context.fixture().queue()?);
    let tensor = fixture.full(10, 1.0)?;
    let view = tensor.slice(0, 0..5)?;
    tensor.freeze()?;
    assert!(view.is_frozen(), "a view of a frozen tensor");
    expect_error("write", tensor.write(&[0.0f32; 10]), ErrorKind::InvalidArgument, &["frozen"])?;
    expect_error("fill", view.fill(&[0]), ErrorKind::InvalidArgument, &["frozen"])?;
    expect_error("queue fill", queue.fill(&view, &[0]), ErrorKind::InvalidArgument, &["frozen"])?;
    expect_error("queue write", queue.write(&tensor, &[0; 40]), ErrorKind::InvalidArgument, &["frozen"])?;
    expect_error(
        "copy",
        queue.copy(&tensor, &fixture.full(10, 2.0)?),
        ErrorKind::InvalidArgument,
        &["frozen"],
    )?;
    tensor.freeze()?;
    expect_all("final", &tensor, 1.0)?;
    let copy = fixture.full(10, 0.0)?;
    queue.copy(&copy, &tensor)?.wait_timeout(crate::wait::WAIT_TIMEOUT)?;
    expect_all("read", &copy, 1.0)
}

/// Numbers near the bounds of the types, halfway between numbers of smaller ones, infinities and NaN.
fn difficult_numbers() -> Vec<f64> {
    let bounds = [7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64].map(|bits| f64::from(bits).exp2());
    let mut numbers = vec![0.0, -0.0, 0.5, 1.5, 2.5, -1.5, 0.1, 65_504.0, 65_520.0, 1e9, -1e30, 1e300];
    numbers.extend(bounds.iter().flat_map(|bound| [*bound, bound - 1.0, -bound, 1.0 - bound, bound + 1.0]));
    numbers.extend(
        [11, 24].iter().flat_map(|bits| [0.0, 1e-12, -1e-12].map(|beside| 1.0 + 2f64.powi(-bits) + beside)),
    );
    numbers.extend([f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
    numbers
}

fn casts_are_those_of_arrays(context: &Context) -> Verdict {
    let device = context.fixture().device();
    let queue = device.queue()?;
    let floats = difficult_numbers();
    let integers = [i64::MIN, i64::MAX, (1 << 53) + 1, (1 << 39) + (1 << 15) + 1, -(1 << 25) - 1, 16_777_217];
    let sources = [HostArray::from_slice(&[floats.len()], &floats)?, HostArray::from_slice(&[6], &integers)?];
    let numbers = DType::all().filter(|dtype| sources[0].cast(*dtype).is_ok()).collect::<Vec<_>>();
    for (source, from) in sources.iter().flat_map(|source| numbers.iter().map(move |from| (source, *from))) {
        let array = source.cast(from)?;
        let tensor = device.tensor_from_array(&array, &Placement::default())?;
        for to in &numbers {
            let (is, should) = (queue.cast(&tensor, *to)?.to_array()?, array.cast(*to)?);
            expect_equal(&format!("{from} to {to}"), &values(&is), &values(&should))?;
        }
    }
    let complex = device.empty_of(DType::COMPLEX64, [2])?;
    expect_error("no number", queue.cast(&complex, DType::F32), ErrorKind::InvalidArgument, &["complex64"])
        .map(drop)
}

/// The bits of all elements, where every NaN is the same.
fn values(array: &HostArray) -> Vec<u64> {
    let bits = |at: usize| {
        let mut word = [0; 8];
        let bytes = array.dtype().bytes();
        word[..bytes].copy_from_slice(&array.bytes()[at * bytes..][..bytes]);
        u64::from_le_bytes(word)
    };
    let value = |bits| match Number::of_bits(array.dtype(), bits) {
        Some(Number::Float(value)) if value.is_nan() => u64::MAX,
        _ => bits,
    };
    (0..array.len()).map(bits).map(value).collect()
}

fn a_cast_is_in_order_with_its_queue(context: &Context) -> Verdict {
    let device = context.fixture().device();
    let queue = device.queue()?;
    let matrix = device.zeros::<i32>([300, 2])?;
    drop(queue.fill(&matrix, &7i32.to_le_bytes())?);
    let column = matrix.slice(1, 1..2)?;
    let first = queue.cast(&column, DType::F32)?;
    drop(queue.fill(&matrix, &8i32.to_le_bytes())?);
    let second = queue.cast(&column, DType::F32)?;
    assert_eq!((first.shape(), first.space()), (&[300, 1][..], matrix.space()));
    expect_equal("before", &first.to_vec::<f32>()?, &[7.0; 300])?;
    expect_equal("after", &second.to_vec::<f32>()?, &[8.0; 300])?;
    assert_eq!(queue.cast(&matrix, DType::I32)?.shape(), [300, 2], "the tensor itself");
    let copy = "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(1) fn copy() { x[0] = 1; }";
    if device.load(&ModuleSource::wgsl(copy)).is_ok() {
        let before = queue.submitted();
        drop(queue.cast(&first, DType::I32)?);
        assert!(queue.submitted() > before, "the device converts");
    }
    let empty = queue.cast(&matrix.slice(0, 5..5)?, DType::U8)?;
    assert_eq!((empty.dtype(), empty.len()), (DType::U8, 0));
    Ok(())
}
