//! Recording, native graphs and re-submission.

use runtime_core::{Arg, ErrorKind, Geometry, Options};

use super::{BUSY_US, floats, kernel, launch, open, queue};

#[test]
fn a_graph_is_replayed_updated_and_dropped_while_busy() {
    for (name, native) in [("null:0", false), ("null:1", true)] {
        let device = open(name, &Options::new().with("delay_us", BUSY_US));
        let (scale, saxpy) = (kernel(&*device, "scale_f32"), kernel(&*device, "saxpy_f32"));
        let (x, y, z) = (floats(&*device, &[1.0]), floats(&*device, &[0.0]), floats(&*device, &[0.0]));
        let queue = queue(&*device);
        let one = Geometry::single();
        let graph = queue
            .record(|recorder| {
                recorder.fill(&y, &1f32.to_le_bytes())?;
                recorder.launch(&scale, one, &[Arg::read_write(&x), Arg::scalar(2f32)])?;
                let args = [Arg::read(&x), Arg::read_write(&y), Arg::scalar(1f32)];
                recorder.launch(&saxpy, one, &args)?;
                recorder.copy(&z, &y)
            })
            .unwrap();
        assert_eq!(graph.dependencies(2), Some(&[0, 1][..]));
        let mut work = queue.instantiate(&graph).unwrap();
        assert_eq!(work.is_native(), native);
        queue.replay(&work).unwrap().wait().unwrap();
        assert_eq!(z.to_vec::<f32>().unwrap(), [3.0]);
        work.update(1, &[Arg::read_write(&x), Arg::scalar(10f32)]).unwrap();
        assert!(work.update(0, &[]).is_err(), "node 0 is not a launch");
        drop((graph, scale, saxpy, x, y));
        let event = queue.replay(&work).unwrap();
        drop((work, queue));
        event.wait().unwrap();
        assert_eq!(z.to_vec::<f32>().unwrap(), [21.0]);
    }
}

#[test]
fn a_failed_recording_leaks_nothing() {
    let device = open("null:1", &Options::new());
    let (queue, x, noop) = (queue(&*device), floats(&*device, &[1.0]), kernel(&*device, "noop"));
    let recorded = queue.record(|recorder| {
        assert_eq!(recorder.launch(&noop, Geometry::single(), &[Arg::read(&x)])?, 0);
        recorder.fill(&x, &[1; 3])
    });
    assert_eq!(recorded.unwrap_err().kind(), ErrorKind::InvalidArgument);
    launch(&queue, &noop, &[Arg::read(&x)]).unwrap().wait().unwrap();
    assert_eq!(queue.submitted(), 1);
}
