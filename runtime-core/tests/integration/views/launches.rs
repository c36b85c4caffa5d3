//! Every way of launching rejects a view with gaps, unless the argument or the code declares strides.

use runtime_core::{Arg, ErrorKind, Geometry, Options, Result, Tensor};

use super::{kernel, open, queue};

/// Four views with gaps, and their tensor.
fn views(device: &dyn runtime_core::CommonRuntime) -> (Tensor, [Tensor; 4]) {
    let x = device.tensor([2, 3], &[0f32, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
    let views = [
        x.permute(&[1, 0]).unwrap(),
        x.slice(1, 0..2).unwrap(),
        x.view(&[4], &[0], 1).unwrap(),
        x.view(&[6], &[-1], 5).unwrap(),
    ];
    (x, views)
}

fn is_refused<T>(launched: Result<T>) {
    let error = launched.err().expect("a view with gaps was accepted");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    for part in ["argument 0 of \"noop\" is not contiguous", "Queue::contiguous", ".strided()"] {
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn every_way_to_launch_rejects_gaps() {
    for name in ["null:0", "null:1"] {
        let device = open(name, &Options::new());
        let (queue, noop, one) = (queue(&*device), kernel(&*device, "noop"), Geometry::single());
        let (x, views) = views(&*device);
        for view in &views {
            let arg = Arg::read(view);
            is_refused(queue.launch(&noop, one, &[arg]));
            is_refused(queue.call(&noop, one, &[arg]));
            // SAFETY: nothing is launched.
            is_refused(unsafe { queue.launch_untracked(&noop, one, &[arg]) });
            let recorded = queue.record(|recorder| {
                is_refused(recorder.launch(&noop, one, &[arg]));
                recorder.launch(&noop, one, &[Arg::read(&x)])
            });
            let mut graph = queue.instantiate(&recorded.unwrap()).unwrap();
            is_refused(graph.update(0, &[arg]));
            graph.update(0, &[arg.strided()]).unwrap();
            queue.replay(&graph).unwrap().wait().unwrap();
            queue.launch(&noop, one, &[arg.strided()]).unwrap();
            queue.launch(&noop, one, &[Arg::read(&queue.contiguous(view).unwrap())]).unwrap();
        }
        queue.wait_idle().unwrap();
    }
}

#[test]
fn strides_without_gaps_are_contiguous() {
    let device = open("null:0", &Options::new());
    let (queue, noop) = (queue(&*device), kernel(&*device, "noop"));
    let x = device.tensor([4], &[0f32; 4]).unwrap();
    for (shape, strides) in
        [(&[1][..], &[-9][..]), (&[1, 4], &[77, 1]), (&[0, 3], &[0, 0]), (&[], &[]), (&[2, 1, 2], &[2, 5, 1])]
    {
        let view = x.view(shape, strides, 0).unwrap();
        assert!(view.is_contiguous(), "{shape:?} {strides:?}");
        queue.call(&noop, Geometry::single(), &[Arg::read(&view)]).unwrap();
    }
}

#[test]
fn code_that_declares_strides_accesses_only_the_view() {
    let device = open("null:0", &Options::new());
    let (queue, scale) = (queue(&*device), kernel(&*device, "scale_f32"));
    let (x, [transposed, columns, repeated, reversed]) = views(&*device);
    for view in [&transposed, &columns, &repeated, &reversed] {
        queue.call(&scale, Geometry::single(), &[Arg::read_write(view), Arg::scalar(2f32)]).unwrap();
    }
    // Everything twice, the two left columns once more, one element four times more.
    assert_eq!(x.to_vec::<f32>().unwrap(), [0.0, 8.0 * 16.0, 8.0, 24.0, 32.0, 20.0]);
}
