//! Compute follows data.

use runtime_core::{ErrorKind, read_write};

use super::{dispatcher, open, refused, runtime};

#[test]
fn the_queue_is_that_of_the_device_which_holds_the_arguments() {
    let device = open();
    let x = device.tensor([2], &[1.0f32, 2.0]).unwrap();
    let scale = dispatcher("scale_f32");
    scale.call(1, (&x, 2.0f32)).unwrap();
    let queue = device.default_queue().unwrap();
    let submitted = queue.submitted();
    scale.submit(1, &[], (&x, 2.0f32)).unwrap();
    assert_eq!(queue.submitted(), submitted + 1, "the dispatch did not go to the default queue");
    let own = device.queue().unwrap();
    scale.on(&own).submit(1, &[], (&x, 2.0f32)).unwrap();
    scale.on(&own).call(1, (&x, 2.0f32)).unwrap();
    assert_eq!((own.submitted(), queue.submitted()), (2, submitted + 1));
    assert_eq!(x.to_vec::<f32>().unwrap(), [16.0, 32.0]);
}

#[test]
fn arguments_on_two_devices_are_refused_whether_or_not_the_overload_exists() {
    let runtime = runtime();
    let (first, second) = (runtime.open("null:0").unwrap(), runtime.open("null:1").unwrap());
    let x = first.tensor([1], &[1.0f32]).unwrap();
    let y = second.tensor([1], &[1.0f32]).unwrap();
    let add = dispatcher("add_f32");
    for _ in 0..2 {
        let message = refused(add.call(1, (&x, &y, &x)), ErrorKind::InvalidArgument);
        assert!(
            message.contains("argument 1 of \"add_f32\" is on null:1, but argument 0 is on null:0"),
            "{message}"
        );
        assert!(message.contains("Tensor::to_device"), "{message}");
        add.call(1, (&x, &x, &first.empty::<f32>([1]).unwrap())).unwrap();
    }
    let queue = second.queue().unwrap();
    let message = refused(add.on(&queue).call(1, (&x, &x, &x)), ErrorKind::InvalidArgument);
    assert!(
        message.contains("argument 0 of \"add_f32\" is on null:0, but the queue is on null:1"),
        "{message}"
    );
    assert_eq!(queue.submitted(), 0);
    let again = runtime.open("null:0").unwrap().tensor([1], &[1.0f32]).unwrap();
    let message = refused(add.call(1, (&x, &again, &x)), ErrorKind::InvalidArgument);
    assert!(message.contains("another instance of that device"), "{message}");
}

#[test]
fn without_a_tensor_the_queue_must_be_named() {
    let device = open();
    let spin = dispatcher("spin");
    let message = refused(spin.call(1, (1i64,)), ErrorKind::InvalidArgument);
    assert!(message.contains("name a queue with `Dispatcher::on`"), "{message}");
    spin.on(&device.queue().unwrap()).call(1, (1i64,)).unwrap();
}

#[test]
fn dependencies_on_other_queues_are_waited_for() {
    let device = open();
    let (x, y) = (device.tensor([1], &[1.0f32]).unwrap(), device.tensor([1], &[1.0f32]).unwrap());
    let (scale, spin) = (dispatcher("scale_f32"), dispatcher("spin"));
    let other = device.queue().unwrap();
    let slow = spin.on(&other).submit(1, &[], (50_000i64,)).unwrap();
    let after = scale.submit(1, &[&slow, &slow], (&x, 2.0f32)).unwrap();
    after.wait().unwrap();
    assert!(slow.is_done().unwrap());
    let failed = dispatcher("fail").on(&other).submit(1, &[], (read_write(&y),)).unwrap();
    let _ = failed.wait().unwrap_err();
    let message = refused(scale.submit(1, &[&failed], (&x, 2.0f32)), ErrorKind::Failed);
    assert!(message.contains("the kernel `fail` was run"), "{message}");
}

#[test]
fn a_failed_default_queue_is_replaced() {
    let device = open();
    let (x, y) = (device.tensor([1], &[1.0f32]).unwrap(), device.tensor([1], &[3.0f32]).unwrap());
    let scale = dispatcher("scale_f32");
    scale.call(1, (&x, 2.0f32)).unwrap();
    let before = device.default_queue().unwrap();
    refused(dispatcher("fail").call(1, (read_write(&y),)), ErrorKind::Failed);
    assert!(before.launch_noop().is_err(), "failure is permanent");
    for _ in 0..3 {
        scale.call(1, (&x, 2.0f32)).unwrap();
    }
    assert_eq!(x.to_vec::<f32>().unwrap(), [16.0]);
    let now = device.default_queue().unwrap();
    assert_eq!(now.submitted(), 3);
    // What the failed kernel wrote stays failed.
    refused(scale.call(1, (&y, 2.0f32)), ErrorKind::Failed);
}
