//! Launches, hazards and lifetimes, on one thread and on several.

use runtime_core::{Arg, DType, Geometry, Options, Placement, Queue};

use super::{BUSY_US, calls, floats, kernel, launch, open, queue, slow};

#[test]
fn hazards_order_work_on_a_shared_tensor_across_queues() {
    for options in [
        Options::new().with("delay_us", BUSY_US),
        Options::new().with("out_of_order", true),
        Options::new().with("reorders", true),
        Options::new().with("needs_flush", true).with("needs_signals", true),
    ] {
        let device = open("null:0", &options);
        let (scale, saxpy) = (kernel(&*device, "scale_f32"), kernel(&*device, "saxpy_f32"));
        let (x, y) = (floats(&*device, &[1.0, 2.0]), floats(&*device, &[0.0, 0.0]));
        let queues: [Queue; 3] = std::array::from_fn(|_| queue(&*device));
        for round in 0..3 {
            let (first, second) = (&queues[round % 3], &queues[(round + 1) % 3]);
            launch(first, &scale, &[Arg::read_write(&x), Arg::scalar(2f32)]).unwrap();
            launch(second, &saxpy, &[Arg::read(&x), Arg::read_write(&y), Arg::scalar(1f32)]).unwrap();
        }
        assert_eq!(y.to_vec::<f32>().unwrap(), [14.0, 28.0], "{options:?}");
    }
}

#[test]
fn more_arguments_than_fit_inline_and_two_views_of_one_buffer() {
    let device = slow();
    let (noop, add) = (kernel(&*device, "noop"), kernel(&*device, "add_f32"));
    let (tensor, queue) = (floats(&*device, &[1.0; 4]), queue(&*device));
    let mut args = vec![Arg::read(&tensor), Arg::scalar(1u8), Arg::bytes(&[1, 2, 3]), Arg::local(64)];
    args.extend((0..40u32).map(Arg::scalar));
    launch(&queue, &noop, &args).unwrap();
    let parts: Vec<_> = (0..4).map(|at| tensor.slice(0, at..at + 1).unwrap()).collect();
    let many: Vec<_> = parts.iter().cycle().take(20).map(Arg::read).collect();
    launch(&queue, &noop, &many).unwrap();
    launch(&queue, &add, &[Arg::read(&parts[0]), Arg::read(&parts[1]), Arg::write(&parts[2])]).unwrap();
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.0, 1.0, 2.0, 1.0]);
}

#[test]
fn threads_share_queues_and_tensors() {
    let device = slow();
    let scale = kernel(&*device, "scale_f32");
    let (shared, own) = (queue(&*device), queue(&*device));
    let (x, weights) = (floats(&*device, &[1.0]), floats(&*device, &[3.0]));
    weights.freeze().unwrap();
    let saxpy = kernel(&*device, "saxpy_f32");
    std::thread::scope(|scope| {
        for queue in [&shared, &shared, &own] {
            scope.spawn(|| {
                launch(queue, &scale, &[Arg::read_write(&x), Arg::scalar(2f32)]).unwrap();
                let y = floats(&*device, &[1.0]);
                let args = [Arg::read(&weights), Arg::read_write(&y), Arg::scalar(2f32)];
                queue.call(&saxpy, Geometry::single(), &args).unwrap();
                assert_eq!(y.to_vec::<f32>().unwrap(), [7.0]);
            });
        }
    });
    assert_eq!(x.to_vec::<f32>().unwrap(), [8.0]);
}

#[test]
fn transfers_are_in_order_with_their_queue() {
    let device = slow();
    let (queue, other) = (queue(&*device), queue(&*device));
    let (a, b) = (floats(&*device, &[0.0; 3]), floats(&*device, &[0.0; 3]));
    queue.write(&a, bytes_of(&[1.0, 2.0, 3.0]).as_slice()).unwrap();
    let copied = other.copy(&b, &a).unwrap();
    other.fill(&a.slice(0, 1..2).unwrap(), &9f32.to_le_bytes()).unwrap();
    queue.wait_for(&copied).unwrap();
    let mut bytes = [0; 12];
    queue.read(&b, &mut bytes).unwrap();
    assert_eq!(bytes.as_slice(), bytes_of(&[1.0, 2.0, 3.0]));
    assert_eq!(a.to_vec::<f32>().unwrap(), [1.0, 9.0, 3.0]);
    let allocated = queue.allocate(DType::F32, &[3], &Placement::default()).unwrap();
    queue.copy(&allocated, &b).unwrap();
    drop(queue);
    assert_eq!(allocated.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
}

/// A signal costs a driver call; without one, the end of a ticket is not observable.
#[test]
fn only_tickets_that_may_be_waited_for_are_signaled() {
    const SIGNAL: usize = 1;
    let device = open("null:0", &Options::new());
    let (queue, other, noop) = (queue(&*device), queue(&*device), kernel(&*device, "noop"));
    let x = floats(&*device, &[1.0]);
    let signals = |work: &dyn Fn()| {
        let before = calls(&*device, &queue, SIGNAL);
        work();
        calls(&*device, &queue, SIGNAL) - before
    };
    let run = || launch(&queue, &noop, &[]).unwrap();
    // Reading the counters waits for this.
    let own = signals(&|| {});
    assert_eq!(signals(&|| (0..3).for_each(|_| drop(run()))) - own, 0, "their events were dropped");
    assert_eq!(signals(&|| drop([run(), run(), run()])) - own, 2, "the last event was dropped in time");
    assert_eq!(
        signals(&|| (0..3).for_each(|_| drop(queue.fill(&x, &[0; 4]).unwrap()))) - own,
        3,
        "transfers"
    );
    let waited = || {
        let event = run();
        event.wait().unwrap();
        run();
        drop(event);
    };
    assert_eq!(signals(&waited) - own, 1, "once");
    let marked = || {
        drop(run());
        let mark = queue.barrier(&[]).unwrap();
        run();
        drop(mark);
    };
    assert_eq!(signals(&marked) - own, 1, "the first event was dropped, but not the second one");
    other.wait_for(&run()).unwrap();
    assert_eq!(signals(&|| (0..3).for_each(|_| drop(run()))), 4, "another queue waits on this one");
}

#[test]
fn objects_dropped_while_in_use_live_until_the_work_has_ended() {
    let device = slow();
    let result = floats(&*device, &[0.0; 2]);
    {
        let (queue, add) = (queue(&*device), kernel(&*device, "add_f32"));
        let (a, b) = (floats(&*device, &[1.0, 2.0]), floats(&*device, &[3.0, 4.0]));
        launch(&queue, &add, &[Arg::read(&a), Arg::read(&b), Arg::write(&result)]).unwrap();
        // SAFETY: nobody else uses these tensors, and `wait_idle` below ends the work.
        unsafe {
            queue.launch_untracked(
                &add,
                Geometry::single(),
                &[Arg::read(&a), Arg::read(&b), Arg::write(&result)],
            )
        }
        .unwrap();
        queue.wait_idle().unwrap();
        launch(&queue, &add, &[Arg::read(&a), Arg::read(&b), Arg::write(&result)]).unwrap();
    }
    assert_eq!(result.to_vec::<f32>().unwrap(), [4.0, 6.0]);
}

#[test]
fn dropped_memory_is_freed_after_its_last_ticket_and_not_before() {
    let device = open("null:0", &Options::new());
    let (queue, other, noop) = (queue(&*device), queue(&*device), kernel(&*device, "noop"));
    // A submission frees what is no longer used.
    let free_bytes = || {
        launch(&other, &noop, &[]).unwrap().wait().unwrap();
        device.memory_usage("device").unwrap().free_bytes
    };
    let before = free_bytes();
    let x = floats(&*device, &[1.0]);
    let left = free_bytes();
    assert!(left < before);
    launch(&queue, &noop, &[Arg::read(&x)]).unwrap().wait().unwrap();
    let held = queue.hold().unwrap();
    let event = launch(&queue, &noop, &[Arg::read(&x)]).unwrap();
    drop(x);
    assert_eq!(free_bytes(), left, "the ticket before the last one has ended");
    assert!(held.resume().unwrap());
    event.wait().unwrap();
    assert_eq!(free_bytes(), before);
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
