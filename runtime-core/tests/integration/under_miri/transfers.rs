//! Transfers that do not block, and blocking ones that do not delay other threads.

use std::time::{Duration, Instant};

use runtime_core::{Arg, ErrorKind, Geometry, Options};

use super::{BUSY_US, calls, floats, kernel, open, queue, slow};

#[test]
fn uploads_and_downloads_are_in_order_with_the_queue() {
    let device = slow();
    let (queue, scale, x) = (queue(&*device), kernel(&*device, "scale_f32"), floats(&*device, &[0.0; 3]));
    let uploaded = queue.upload(&x, vec![1f32, 2.0, 3.0]).unwrap();
    queue.launch(&scale, Geometry::single(), (Arg::read_write(&x), 2f32)).unwrap();
    let download = queue.download::<f32>(&x).unwrap();
    assert!(!download.is_done().unwrap(), "it waits for earlier work");
    assert_eq!(download.wait().unwrap(), [2.0, 4.0, 6.0]);
    assert!(uploaded.is_done().unwrap());
}

#[test]
fn memory_of_transfers_lives_until_they_have_ended() {
    for name in ["null:0", "null:1"] {
        let device = open(name, &Options::new().with("delay_us", BUSY_US));
        let (queue, x) = (queue(&*device), floats(&*device, &[0.0; 1000]));
        queue.upload(&x, vec![7f32; 1000]).unwrap();
        drop(queue.download::<f32>(&x).unwrap());
        drop(queue);
        assert_eq!(x.to_vec::<f32>().unwrap(), [7.0; 1000]);
    }
    // The device itself is dropped while the work is in flight.
    let device = slow();
    let (queue, x) = (queue(&*device), floats(&*device, &[0.0; 1000]));
    queue.upload(&x, vec![7f32; 1000]).unwrap();
    let download = queue.download::<f32>(&x).unwrap();
    drop((queue, x, device));
    assert_eq!(download.wait().unwrap(), [7.0; 1000]);
}

#[test]
fn invalid_transfers_are_rejected() {
    let device = slow();
    let (queue, x) = (queue(&*device), floats(&*device, &[0.0; 6]));
    let transposed = x.reshape(&[2, 3]).unwrap().permute(&[1, 0]).unwrap();
    let refused = [
        queue.upload(&x, vec![1f32; 5]).unwrap_err(),
        queue.upload(&x, vec![1i32; 6]).unwrap_err(),
        queue.download::<u32>(&x).unwrap_err(),
        queue.download::<f32>(&floats(&*slow(), &[1.0])).unwrap_err(),
    ];
    refused.iter().for_each(|error| assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}"));
    assert_eq!(queue.upload(&transposed, [1f32; 6]).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(queue.submitted(), 0);
    let empty = device.empty::<f32>([0]).unwrap();
    queue.upload::<f32>(&empty, []).unwrap().wait().unwrap();
    assert!(queue.download::<f32>(&empty).unwrap().wait().unwrap().is_empty());
}

#[test]
fn a_download_of_a_failed_kernels_output_fails() {
    let device = slow();
    let (first, second, x) = (queue(&*device), queue(&*device), floats(&*device, &[1.0]));
    first.launch(&kernel(&*device, "fail"), Geometry::single(), (Arg::write(&x),)).unwrap();
    let download = second.download::<f32>(&x).and_then(runtime_core::queue::Download::wait);
    assert_eq!(download.unwrap_err().kind(), ErrorKind::Failed);
}

#[test]
fn a_blocking_copy_delays_no_launch() {
    const DELAY: Duration = Duration::from_micros(10 * BUSY_US.unsigned_abs());
    let device = open("null:0", &Options::new().with("delay_us", 10 * BUSY_US));
    let (queue, noop, x) = (queue(&*device), kernel(&*device, "noop"), floats(&*device, &[0.0; 4]));
    let begin = Instant::now();
    let launched = std::thread::scope(|scope| {
        scope.spawn(|| x.write(&[1f32; 4]).unwrap());
        std::thread::sleep(DELAY / 4);
        queue.launch(&noop, Geometry::single(), &[Arg::read(&x)]).unwrap();
        begin.elapsed()
    });
    let copied = begin.elapsed();
    assert!(
        copied >= DELAY && launched < copied - DELAY / 4,
        "launched after {launched:?}, copied after {copied:?}"
    );
}

#[test]
fn tuples_use_tensors_as_the_code_declares() {
    let device = slow();
    let (queue, scale, x) = (queue(&*device), kernel(&*device, "scale_f32"), floats(&*device, &[1.0, 2.0]));
    queue.launch(&scale, (1, 1), (&x, 2f32)).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [2.0, 4.0], "the null device declares it as read and written");
    let error = queue.launch(&scale, (1, 1), (&x, 2f32, &x)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

#[test]
fn a_clone_of_an_event_is_signaled_by_the_next_submission() {
    const SIGNALS: usize = 1;
    let signals = |keep: bool| {
        let device = open("null:0", &Options::new());
        let (queue, noop) = (queue(&*device), kernel(&*device, "noop"));
        let event = queue.launch(&noop, Geometry::single(), ()).unwrap();
        let clone = keep.then(|| event.clone());
        drop(event);
        let signals = calls(&*device, &queue, SIGNALS);
        drop(clone);
        signals
    };
    assert_eq!((signals(false), signals(true)), (0, 1));
}
