//! `Tensor::to_device` copies on the devices: the null device refuses the calls that a detour through the host would make.

#![allow(unsafe_code, reason = "loads code of the null device")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime_core::{CommonRuntime, ErrorKind, ModuleSource, Options, Placement, Runtime, Tensor, write};

const SLOTS: [&str; 4] = ["write", "read", "copy", "copy_2d"];

fn runtime() -> Runtime {
    Runtime::builder().discover(false).register(runtime_null::backend()).build()
}

/// Options with which a device refuses all calls of these functions.
fn refusing(slots: &[&str], kind: &str) -> Options {
    let mut options = Options::new();
    for slot in slots {
        assert!(SLOTS.contains(slot));
        (1..=100).for_each(|nth| options.push("fail_call", format!("{slot}:{nth}:{kind}")));
    }
    options
}

/// Options with which a device makes no transfers to or from the host.
fn without_host() -> Options {
    refusing(&["write", "read"], "driver")
}

/// 0, 1, 2, … in the device's own memory, written by a kernel.
fn iota(device: &dyn CommonRuntime, shape: &[usize]) -> Tensor {
    let tensor = device.empty::<i32>(shape).unwrap();
    // SAFETY: the builtins check their arguments.
    let iota = device.kernel(&unsafe { ModuleSource::native("null", "iota_i32") }, "iota_i32").unwrap();
    device.queue().unwrap().call(&iota, (1, 1), (write(&tensor),)).unwrap();
    tensor
}

/// The elements, read by a device that allows it.
fn elements(tensor: &Tensor, device: &dyn CommonRuntime) -> Vec<i32> {
    // Memory of the space `pinned` is read without a call of the backend.
    tensor.to_device(device, &Placement::space("pinned")).unwrap().to_vec().unwrap()
}

#[test]
fn a_copy_to_another_space_of_one_device_does_not_pass_the_host() {
    let device = runtime().open_with("null:0", &without_host()).unwrap();
    let here = iota(&*device, &[2, 3]);
    assert_eq!(here.to_vec::<i32>().unwrap_err().kind(), ErrorKind::Driver, "a read would be seen");
    let pinned = here.to_device(&*device, &Placement::space("pinned")).unwrap();
    assert_eq!((pinned.shape(), pinned.space()), (&[2, 3][..], "pinned"));
    assert_eq!(pinned.to_vec::<i32>().unwrap(), [0, 1, 2, 3, 4, 5]);
    let back = pinned.to_device(&*device, &Placement::default()).unwrap();
    assert_eq!((back.space(), elements(&back, &*device)), ("device", vec![0, 1, 2, 3, 4, 5]));
}

#[test]
fn a_copy_to_another_device_of_the_backend_does_not_pass_the_host() {
    let runtime = runtime();
    let first = runtime.open_with("null:0", &without_host()).unwrap();
    let second = runtime.open_with("null:1", &without_host()).unwrap();
    let there = iota(&*first, &[5]).to_device(&*second, &Placement::default()).unwrap();
    assert_eq!((there.device_id().index, there.space()), (1, "device"));
    assert_eq!(elements(&there, &*second), [0, 1, 2, 3, 4]);
}

#[test]
fn views_with_gaps_are_gathered_by_their_device() {
    let runtime = runtime();
    let first = runtime.open_with("null:0", &without_host()).unwrap();
    let second = runtime.open_with("null:1", &without_host()).unwrap();
    let matrix = iota(&*first, &[3, 4]);
    let views = [
        (matrix.slice(1, 1..3).unwrap(), vec![1, 2, 5, 6, 9, 10]),
        (matrix.permute(&[1, 0]).unwrap(), vec![0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]),
        (matrix.view(&[3], &[-2], 11).unwrap(), vec![11, 9, 7]),
        (matrix.view(&[2, 2], &[0, 1], 1).unwrap(), vec![1, 2, 1, 2]),
    ];
    for (view, expected) in &views {
        for device in [&first, &second] {
            let copy = view.to_device(&**device, &Placement::default()).unwrap();
            assert!(copy.is_contiguous());
            assert_eq!((copy.shape(), elements(&copy, &**device)), (view.shape(), expected.clone()));
        }
    }
}

#[test]
fn what_no_device_copies_is_staged_through_the_host() {
    let runtime = runtime();
    let options = refusing(&["copy", "copy_2d"], "unsupported");
    let first = runtime.open_with("null:0", &options).unwrap();
    let second = runtime.open_with("null:1", &options).unwrap();
    let matrix = iota(&*first, &[3, 4]);
    for (device, space) in [(&first, "device"), (&first, "pinned"), (&second, "device"), (&second, "shared")]
    {
        let dense = matrix.to_device(&**device, &Placement::space(space)).unwrap();
        assert_eq!(dense.to_vec::<i32>().unwrap(), (0..12).collect::<Vec<_>>(), "{space}");
        let columns = matrix.slice(1, 3..4).unwrap().to_device(&**device, &Placement::space(space)).unwrap();
        assert_eq!(columns.to_vec::<i32>().unwrap(), [3, 7, 11], "{space}");
    }
}

#[test]
fn devices_of_two_runtimes_exchange_tensors() {
    let open = || runtime().open("null:0").unwrap();
    let (first, second) = (open(), open());
    for space in ["device", "pinned"] {
        let there = iota(&*first, &[4]).to_device(&*second, &Placement::space(space)).unwrap();
        assert_eq!(there.to_vec::<i32>().unwrap(), [0, 1, 2, 3]);
    }
}

#[test]
fn frozen_and_empty_tensors_are_copied() {
    let runtime = runtime();
    let (first, second) = (runtime.open("null:0").unwrap(), runtime.open("null:1").unwrap());
    let frozen = iota(&*first, &[4]);
    frozen.freeze().unwrap();
    let copy = frozen.to_device(&*second, &Placement::default()).unwrap();
    assert!(!copy.is_frozen());
    copy.fill(&7i32.to_le_bytes()).unwrap();
    assert_eq!((copy.to_vec().unwrap(), frozen.to_vec().unwrap()), (vec![7i32; 4], vec![0i32, 1, 2, 3]));
    for device in [&first, &second] {
        for empty in [first.empty::<i32>([0, 3]).unwrap(), frozen.slice(0, 2..2).unwrap()] {
            let copy = empty.to_device(&**device, &Placement::space("shared")).unwrap();
            assert_eq!((copy.shape(), copy.to_vec::<i32>().unwrap().len()), (empty.shape(), 0));
        }
    }
}

#[test]
fn a_copy_waits_for_the_writer_and_for_itself() {
    const DELAY: Duration = Duration::from_millis(20);
    let delayed = Options::new().with("delay_us", i64::try_from(DELAY.as_micros()).unwrap());
    let device = runtime().open_with("null:0", &delayed).unwrap();
    let (queue, tensor) = (device.queue().unwrap(), device.empty::<i32>([3]).unwrap());
    let begin = Instant::now();
    let written = queue.fill(&tensor, &5i32.to_le_bytes()).unwrap();
    let pinned = tensor.to_device(&*device, &Placement::space("pinned")).unwrap();
    assert!(written.is_done().unwrap() && begin.elapsed() >= 2 * DELAY, "one delay each");
    assert_eq!(pinned.map().unwrap().as_slice::<i32>().unwrap(), [5; 3]);
}

#[test]
fn errors_are_those_of_the_writer_the_placement_and_the_copy() {
    let runtime = runtime();
    let device = runtime.open("null:0").unwrap();
    // SAFETY: the builtins check their arguments.
    let fail = device.kernel(&unsafe { ModuleSource::native("null", "fail") }, "fail").unwrap();
    let tensor = iota(&*device, &[3]);
    let to = |target: &Arc<dyn CommonRuntime>, space: &str| {
        tensor.to_device(&**target, &Placement::space(space)).unwrap_err()
    };
    let error = to(&device, "nowhere");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("nowhere"), "{error}");
    let embedded = runtime.open("null:2").unwrap();
    assert_eq!(to(&embedded, "device").kind(), ErrorKind::Unsupported);
    let broken = runtime.open_with("null:1", &refusing(&["copy"], "driver")).unwrap();
    let error = to(&broken, "device");
    assert_eq!(error.kind(), ErrorKind::Driver, "{error}");
    assert_eq!(tensor.to_vec::<i32>().unwrap(), [0, 1, 2], "a failed copy leaves its source usable");
    let lost = runtime.open_with("null:1", &Options::new().with("fail_ticket", 1)).unwrap();
    assert_eq!(to(&lost, "device").kind(), ErrorKind::Failed);
    assert_eq!(tensor.to_vec::<i32>().unwrap(), [0, 1, 2]);
    device.queue().unwrap().launch(&fail, (1, 1), (write(&tensor),)).unwrap();
    let error = to(&device, "pinned");
    assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
}
