//! Replays: never two of one graph at a time, whatever they share, and their times.

use std::time::{Duration, Instant};

use runtime_core::{ErrorKind, ExecutableGraph, Graph, Options, Queue, QueueOptions, read, read_write};

use super::{DEVICES, Scene, values};

const ONE: (u32, u32) = (1, 1);
/// Long against what else happens; a simulated kernel takes at least that.
const SPIN_US: i64 = 30_000;
const SPIN: Duration = Duration::from_millis(30);

/// A graph that uses no tensor, so that no hazard orders its replays.
fn spinning(scene: &Scene) -> ExecutableGraph {
    let graph = scene.queue.record(|recorder| recorder.launch(&scene.spin, ONE, (SPIN_US,))).unwrap();
    scene.queue.instantiate(&graph).unwrap()
}

#[test]
fn replays_on_two_queues_do_not_overlap() {
    for scene in Scene::all() {
        let (graph, other) = (spinning(&scene), scene.device.queue().unwrap());
        let begin = Instant::now();
        drop(scene.queue.replay(&graph).unwrap());
        let second = other.replay(&graph).unwrap();
        let third = scene.queue.replay(&graph).unwrap();
        second.wait().unwrap();
        assert!(begin.elapsed() >= 2 * SPIN, "{:?}", begin.elapsed());
        third.wait().unwrap();
        assert!(begin.elapsed() >= 3 * SPIN, "{:?}", begin.elapsed());
    }
}

#[test]
fn a_replay_waits_for_one_of_a_dropped_queue() {
    for scene in Scene::all() {
        let (graph, other) = (spinning(&scene), scene.device.queue().unwrap());
        let begin = Instant::now();
        drop(other.replay(&graph).unwrap());
        drop(other);
        scene.queue.replay(&graph).unwrap().wait().unwrap();
        assert!(begin.elapsed() >= 2 * SPIN, "{:?}", begin.elapsed());
    }
}

#[test]
fn a_refused_replay_does_not_hide_the_one_before_it() {
    for (name, slot) in [("null:0", "launch"), ("null:1", "replay")] {
        let scene = Scene::new(name, &Options::new().with("fail_call", format!("{slot}:2:driver")));
        let (graph, others) = (spinning(&scene), [(); 2].map(|()| scene.device.queue().unwrap()));
        let begin = Instant::now();
        drop(scene.queue.replay(&graph).unwrap());
        assert_eq!(others[0].replay(&graph).unwrap_err().kind(), ErrorKind::Driver);
        others[1].replay(&graph).unwrap().wait().unwrap();
        assert!(begin.elapsed() >= 2 * SPIN, "{name}: {:?}", begin.elapsed());
    }
}

/// Where two replays were mixed, `y` would get a sum that no order of whole replays gives.
#[test]
fn replays_of_several_threads_do_not_mix_their_nodes() {
    const THREADS: usize = 4;
    const REPLAYS: usize = 25;
    for name in DEVICES {
        let scene = Scene::new(name, &Options::new().with("out_of_order", true));
        let [one, x, y] = [1f32, 0.0, 0.0].map(|value| scene.tensor(&[value]));
        let graph = scene
            .queue
            .record(|recorder| {
                recorder.launch(&scene.saxpy, ONE, (read(&one), read_write(&x), 1f32))?;
                recorder.launch(&scene.saxpy, ONE, (read(&x), read_write(&y), 1f32))
            })
            .unwrap();
        let executable = scene.queue.instantiate(&graph).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let queue = scene.device.queue().unwrap();
                    for _ in 0..REPLAYS {
                        drop(queue.replay(&executable).unwrap());
                    }
                    queue.wait_idle().unwrap();
                });
            }
        });
        let replays = (THREADS * REPLAYS) as f32;
        assert_eq!(
            (values(&x), values(&y)),
            (vec![replays], vec![replays * (replays + 1.0) / 2.0]),
            "{name}"
        );
    }
}

#[test]
fn a_failed_replay_fails_no_replay_that_reads_nothing_of_it() {
    for scene in Scene::all() {
        let (graph, other) = (spinning(&scene), scene.device.queue().unwrap());
        drop(scene.queue.launch(&scene.fail, ONE, ()).unwrap());
        let first = scene.queue.replay(&graph).unwrap();
        let second = other.replay(&graph).unwrap();
        assert_eq!(first.wait().unwrap_err().kind(), ErrorKind::Failed, "its queue has failed");
        second.wait().unwrap();
        other.replay(&graph).unwrap().wait().unwrap();
    }
}

#[test]
fn the_times_of_a_replay_reach_from_its_first_node_to_its_last() {
    for scene in Scene::all() {
        let options = QueueOptions { timestamps: true, ..QueueOptions::default() };
        let queue: Queue = scene.device.open_queue(&options).unwrap();
        let x = scene.tensor(&[1.0]);
        let mut graph = Graph::new(&queue);
        let first = graph.add_launch(&scene.spin, ONE, (SPIN_US,), &[]).unwrap();
        let second = graph.add_launch(&scene.scale, ONE, (read_write(&x), 2f32), &[first]).unwrap();
        graph.add_launch(&scene.spin, ONE, (SPIN_US,), &[second]).unwrap();
        let executable = queue.instantiate(&graph).unwrap();
        let before = queue.timed(|queue| queue.launch(&scene.spin, ONE, (SPIN_US,))).unwrap();
        let event = queue.timed(|queue| queue.replay(&executable)).unwrap();
        event.wait().unwrap();
        let (before, times) = (before.times().unwrap(), event.times().unwrap());
        let nanoseconds = u64::try_from((2 * SPIN).as_nanos()).unwrap();
        assert!(times.end_ns - times.start_ns >= nanoseconds, "{times:?}");
        assert!(times.start_ns >= before.end_ns, "{before:?} {times:?}");
    }
}
