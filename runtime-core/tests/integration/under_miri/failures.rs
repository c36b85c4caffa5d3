//! Failures: rejected submissions, propagation, permanence, panics.

use runtime_core::{Arg, ErrorKind, ModuleSource, Options};

use super::{BUSY_US, floats, kernel, launch, open, queue, runtime, slow};

#[test]
fn a_failure_propagates_until_the_tensor_is_overwritten() {
    let device = slow();
    let (fail, scale) = (kernel(&*device, "fail"), kernel(&*device, "scale_f32"));
    let (broken, other, third) = (queue(&*device), queue(&*device), queue(&*device));
    let x = floats(&*device, &[1.0]);
    let origin = launch(&broken, &fail, &[Arg::write(&x)]).unwrap();
    let carried = launch(&other, &scale, &[Arg::read_write(&x), Arg::scalar(2f32)]).unwrap();
    third.wait_for(&carried).unwrap();
    let far = third.launch_noop().unwrap();
    for event in [&far, &carried, &origin] {
        let error = event.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed);
        assert!(error.to_string().contains("ticket 1 of queue"), "{error}");
    }
    assert_eq!(x.to_vec::<f32>().unwrap_err().kind(), ErrorKind::Failed);
    drop((broken, other, third, origin, carried));
    x.write(&[3f32]).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [3.0]);
}

#[test]
fn work_keeps_the_first_failure_that_reaches_it() {
    let device = slow();
    let (fail, spin, noop) = (kernel(&*device, "fail"), kernel(&*device, "spin"), kernel(&*device, "noop"));
    let (early, late, waiter) = (queue(&*device), queue(&*device), queue(&*device));
    let (x, y) = (floats(&*device, &[1.0]), floats(&*device, &[1.0]));
    launch(&early, &fail, &[Arg::write(&x)]).unwrap();
    launch(&late, &spin, &[Arg::scalar(BUSY_US)]).unwrap();
    launch(&late, &fail, &[Arg::write(&y)]).unwrap();
    let event = launch(&waiter, &noop, &[Arg::read(&x), Arg::read(&y)]).unwrap();
    let first = event.wait().unwrap_err().to_string();
    assert!(first.contains("ticket 1 of queue"), "{first}");
    late.wait_idle().unwrap_err();
    // Opening a queue polls all others.
    drop(queue(&*device));
    assert_eq!(event.wait().unwrap_err().to_string(), first);
}

#[test]
fn a_tensor_passed_twice_counts_as_written_by_either_argument() {
    let device = slow();
    let fail = kernel(&*device, "fail");
    let (x, y) = (floats(&*device, &[1.0]), floats(&*device, &[1.0]));
    // Their order in memory is not known.
    for (first, last) in [(&x, &y), (&y, &x)] {
        let broken = queue(&*device);
        let args = [Arg::read(first), Arg::write(last), Arg::write(last)];
        let event = launch(&broken, &fail, &args).unwrap();
        assert_eq!(last.to_vec::<f32>().unwrap_err().kind(), ErrorKind::Failed);
        event.wait().unwrap_err();
        first.to_vec::<f32>().unwrap();
        last.write(&[1f32]).unwrap();
    }
}

#[test]
fn a_rejection_changes_nothing_and_a_loss_everything() {
    for (fault, kind) in [
        ("launch:2:out_of_resources", ErrorKind::OutOfResources),
        ("launch:2:device_lost", ErrorKind::DeviceLost),
    ] {
        let device = open("null:0", &Options::new().with("fail_call", fault));
        let (first, second, noop) = (queue(&*device), queue(&*device), kernel(&*device, "noop"));
        let ended = launch(&first, &noop, &[]).unwrap();
        ended.wait().unwrap();
        assert_eq!(launch(&first, &noop, &[]).unwrap_err().kind(), kind);
        ended.wait().unwrap();
        for queue in [&first, &second] {
            let outcome = launch(queue, &noop, &[]).map_err(|error| error.kind());
            assert_eq!(outcome.err(), (kind == ErrorKind::DeviceLost).then_some(kind), "{fault}");
        }
    }
}

#[test]
fn a_failed_queue_accepts_no_more_work() {
    let device = open("null:0", &Options::new());
    let (broken, fail) = (queue(&*device), kernel(&*device, "fail"));
    launch(&broken, &fail, &[]).unwrap().wait().unwrap_err();
    let error = launch(&broken, &kernel(&*device, "noop"), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(error.to_string().contains("ticket 1 of queue"), "{error}");
}

#[test]
fn rejections_and_losses_have_their_kinds() {
    let cases = [
        ("launch:2:out_of_resources", ErrorKind::OutOfResources),
        ("signal:1:driver", ErrorKind::Driver),
        ("poll:2:device_lost", ErrorKind::DeviceLost),
        ("wait:1:internal", ErrorKind::Internal),
        ("flush:1:timeout", ErrorKind::Timeout),
    ];
    for (fault, kind) in cases {
        // `wait` is called while the work lasts only, and a busy machine may come late.
        let late_us = if fault.starts_with("wait") { 25 * BUSY_US } else { BUSY_US };
        let device = open("null:0", &Options::new().with("delay_us", late_us).with("fail_call", fault));
        let (queue, noop) = (queue(&*device), kernel(&*device, "noop"));
        let outcome = launch(&queue, &noop, &[])
            .and_then(|first| launch(&queue, &noop, &[]).map(|second| (first, second)))
            .and_then(|(first, second)| second.wait().and_then(|()| first.wait()));
        assert_eq!(outcome.unwrap_err().kind(), kind, "{fault}");
    }
}

#[test]
fn a_panic_in_any_entry_becomes_an_error_or_nothing() {
    let fails = |step| (step, ErrorKind::Failed);
    let panics = |step| (step, ErrorKind::Internal);
    // Calls that fail through the panic, and the ticket that fails on purpose.
    let cases = [
        ("allocate", vec![panics("allocate")]),
        ("load", vec![panics("load")]),
        ("kernel", vec![panics("kernel")]),
        ("symbols", vec![panics("symbols"), fails("second")]),
        ("kernel_info", vec![panics("kernel")]),
        ("launch", vec![panics("first"), panics("second")]),
        ("signal", vec![panics("first"), panics("second")]),
        // The reason of the failure cannot be read.
        ("failure", vec![panics("second")]),
        ("free", vec![fails("second")]),
        ("unload", vec![fails("second")]),
        ("release_kernel", vec![fails("second")]),
        ("close_queue", vec![fails("second")]),
    ];
    for (slot, expected) in cases {
        assert_eq!(errors_of_a_program(slot), expected, "a panic in {slot}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "work whose end cannot be observed is leaked")]
fn a_panic_that_hides_the_end_of_work_leaks() {
    let panics = |step| (step, ErrorKind::Internal);
    assert_eq!(errors_of_a_program("poll"), [panics("first"), panics("second")]);
}

/// The steps of a small program that end in an error on a device that panics in `slot`, and whose second ticket fails.
fn errors_of_a_program(slot: &str) -> Vec<(&'static str, ErrorKind)> {
    let device = open("null:0", &Options::new().with("panic_in", slot).with("fail_ticket", 2));
    let mut errors = Vec::new();
    let mut note = |step, error: runtime_core::Error| errors.push((step, error.kind()));
    // SAFETY: the null device's builtins check their arguments.
    let module = device.load(&unsafe { ModuleSource::native("null", "noop") });
    let module = module.map_err(|error| note("load", error));
    let _ = module.as_ref().map(|module| module.symbols().map_err(|error| note("symbols", error)));
    let kernel = module.and_then(|module| module.kernel("noop").map_err(|error| note("kernel", error)));
    let tensor = device.empty::<u8>([4]);
    let tensor = tensor.map_err(|error| note("allocate", error));
    if let (Ok(kernel), Ok(tensor)) = (kernel, tensor) {
        let queue = queue(&*device);
        for step in ["first", "second"] {
            let outcome = launch(&queue, &kernel, &[Arg::write(&tensor)]).and_then(|event| event.wait());
            let _ = outcome.map_err(|error| note(step, error));
        }
    }
    errors
}

#[test]
fn a_failed_open_leaks_nothing() {
    let runtime = runtime();
    assert!(runtime.open_with("null:0", &Options::new().with("open_fails", true)).is_err());
    assert_eq!(runtime.open("null:9").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(runtime.open("null:3").unwrap_err().kind(), ErrorKind::Unavailable);
    let wrong = Options::new().with("dely_us", 1);
    assert!(runtime.open_with("null:0", &wrong).unwrap_err().to_string().contains("delay_us"));
    assert_eq!(runtime.devices().len(), 6);
    assert_eq!(runtime.targets()[0].devices.as_ref().unwrap().len(), 6);
}
