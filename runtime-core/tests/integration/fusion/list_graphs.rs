//! Lists that are completed again and again, as executable graphs.

use runtime_core::fusion::{FusionOptions, FusionReport};
use runtime_core::{ModuleSource, Options, Queue, QueueOptions, Tensor, write};

use super::{Scene, in_time};

/// A device with native graphs.
fn scene(options: &Options) -> Scene {
    Scene::on("null:1", options, true)
}

/// Completes a list that multiplies `x` by all factors, one kernel for each.
fn scaled(scene: &Scene, queue: &Queue, x: &Tensor, factors: &[f32]) -> FusionReport {
    with_options(scene, queue, &FusionOptions::new(), x, factors)
}

fn with_options(
    scene: &Scene,
    queue: &Queue,
    options: &FusionOptions,
    x: &Tensor,
    factors: &[f32],
) -> FusionReport {
    let fuser = queue.fuser(options).unwrap();
    for factor in factors {
        scene.scale(fuser.queue(), x, *factor);
    }
    let (event, report) = fuser.complete().unwrap();
    event.wait().unwrap();
    report
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

#[test]
fn a_repeated_list_is_submitted_at_once() {
    in_time(|| {
        let scene = scene(&Options::new());
        let queue = scene.queue();
        let x = scene.tensor(&[1.0]);
        assert!(!scaled(&scene, &queue, &x, &[2.0, 3.0, 5.0]).is_graph);
        assert_eq!((values(&x), queue.submitted()), (vec![30.0], 3));
        for (round, factors) in [[2.0, 3.0, 5.0], [2.0, 0.5, 1.0], [0.25, 0.5, 8.0]].iter().enumerate() {
            let other = scene.tensor(&[1.0]);
            let tensor = if round == 1 { &other } else { &x };
            let before = values(tensor)[0];
            let report = scaled(&scene, &queue, tensor, factors);
            assert!(report.is_graph && report.kernels.len() == 3, "{report}");
            assert_eq!(values(tensor), [before * factors.iter().product::<f32>()], "round {round}");
            assert_eq!(queue.submitted(), 4 + round as u64, "one submission each");
        }
    });
}

#[test]
fn fused_and_native_kernels_are_nodes_too() {
    in_time(|| {
        let scene = scene(&Options::new());
        let queue = scene.queue();
        for round in 0..4 {
            let (a, out) = (scene.tensor(&[round as f32, 1.0]), scene.empty());
            let fuser = scene.fuser(&queue);
            let between = scene.empty();
            scene.copy_through(fuser.queue(), [&a, &between, &out]);
            drop(between);
            fuser.queue().launch(&scene.native, (1, 1), (runtime_core::read_write(&out), 3.0f32)).unwrap();
            let (event, report) = fuser.complete().unwrap();
            event.wait().unwrap();
            assert_eq!(values(&out), [3.0 * round as f32, 3.0]);
            assert_eq!((report.is_graph, report.kernels.len()), (round > 0, 2), "{report}");
            assert!(report.kernels[0].is_fused && !report.kernels[1].is_fused);
        }
        assert_eq!(queue.submitted(), 2 + 3);
    });
}

#[test]
fn only_lists_of_several_kernels_on_devices_with_graphs() {
    in_time(|| {
        let without = Scene::new();
        let (queue, x) = (without.queue(), without.tensor(&[1.0]));
        assert!((0..3).all(|_| !scaled(&without, &queue, &x, &[2.0, 2.0]).is_graph));
        let off = Scene::on("null:1", &Options::new(), false);
        let (queue, x) = (off.queue(), off.tensor(&[1.0]));
        assert!((0..3).all(|_| !scaled(&off, &queue, &x, &[2.0, 2.0]).is_graph));
        let scene = scene(&Options::new());
        let (queue, x) = (scene.queue(), scene.tensor(&[1.0]));
        assert!((0..3).all(|_| !scaled(&scene, &queue, &x, &[2.0]).is_graph));
        let uncached = FusionOptions::new().cache(false);
        assert!((0..3).all(|_| !with_options(&scene, &queue, &uncached, &x, &[2.0, 2.0]).is_graph));
        assert!((0..3).all(|round| scaled(&scene, &queue, &x, &[2.0, 2.0]).is_graph == (round > 0)));
    });
}

#[test]
fn another_geometry_is_another_list() {
    in_time(|| {
        let scene = scene(&Options::new());
        let queue = scene.queue();
        let ids = scene.device.kernel(ModuleSource::wgsl("ids = group_ids_u32"), "ids").unwrap();
        let mut are_graphs = Vec::new();
        for groups in [4u32, 4, 3, 3, 4] {
            let (x, y) = (
                scene.device.tensor([5], &[9u32; 5]).unwrap(),
                scene.device.tensor([5], &[9u32; 5]).unwrap(),
            );
            let fuser = scene.fuser(&queue);
            fuser.queue().launch(&ids, (groups, 1), (write(&x),)).unwrap();
            fuser.queue().launch(&ids, (groups, 1), (write(&y),)).unwrap();
            are_graphs.push(fuser.complete().unwrap().1.is_graph);
            let wanted: Vec<u32> = (0..5).map(|id| if id < groups { id } else { 9 }).collect();
            assert_eq!([x, y].map(|tensor| tensor.to_vec::<u32>().unwrap()), [wanted.clone(), wanted]);
        }
        assert_eq!(are_graphs, [false, true, false, true, true]);
    });
}

#[test]
fn work_before_and_after_a_graph_is_in_order() {
    in_time(|| {
        let scene = scene(&Options::new().with("out_of_order", true).with("delay_us", 200));
        let (queue, other) = (scene.queue(), scene.queue());
        let x = scene.tensor(&[1.0]);
        let copies: Vec<_> = (0..6).map(|_| [scene.tensor(&[0.0]), scene.tensor(&[0.0])]).collect();
        for [between, copy] in &copies {
            scene.scale(&other, &x, 3.0);
            let fuser = scene.fuser(&queue);
            scene.copy_through(fuser.queue(), [&x, between, copy]);
            assert_eq!(fuser.complete().unwrap().1.kernels.len(), 2);
        }
        for (round, [_, copy]) in (1..).zip(&copies) {
            assert_eq!(values(copy), [3f32.powi(round)], "round {round}");
        }
    });
}

#[test]
fn a_held_event_within_the_list_keeps_its_launches_apart() {
    in_time(|| {
        let scene = scene(&Options::new());
        let (queue, x) = (scene.queue(), scene.tensor(&[1.0]));
        scaled(&scene, &queue, &x, &[2.0, 2.0]);
        let fuser = scene.fuser(&queue);
        let first = scene.scale(fuser.queue(), &x, 2.0);
        let last = scene.scale(fuser.queue(), &x, 2.0);
        let (_, report) = fuser.complete().unwrap();
        assert!(!report.is_graph, "{report}");
        first.wait().unwrap();
        last.wait().unwrap();
        let fuser = scene.fuser(&queue);
        drop(scene.scale(fuser.queue(), &x, 2.0));
        let last = scene.scale(fuser.queue(), &x, 2.0);
        let (event, report) = fuser.complete().unwrap();
        assert!(report.is_graph, "{report}");
        last.wait().unwrap();
        assert!(event.is_done().unwrap());
        assert_eq!(values(&x), [64.0]);
    });
}

#[test]
fn a_graph_that_the_device_refuses_is_submitted_as_launches() {
    in_time(|| {
        for (call, later) in [
            ("instantiate:1:driver", true),
            ("instantiate:1:unsupported", false),
            ("update:1:driver", true),
            ("update:1:unsupported", false),
            ("replay:1:driver", true),
        ] {
            let scene = scene(&Options::new().with("fail_call", call));
            let (queue, x) = (scene.queue(), scene.tensor(&[1.0]));
            let factors = [[2.0, 3.0], [3.0, 5.0], [5.0, 7.0], [7.0, 11.0], [2.0, 2.0]];
            let mut reports: Vec<_> =
                factors.iter().map(|factors| scaled(&scene, &queue, &x, factors)).collect();
            assert_eq!(values(&x), [factors.as_flattened().iter().product::<f32>()], "{call}");
            let last = reports.pop().unwrap();
            assert_eq!(last.is_graph, later, "{call}: {last}");
            assert!(last.fallback.is_none() && queue.submitted() > 5, "{call}: {last}");
        }
    });
}

#[test]
fn a_failed_graph_fails_its_events() {
    in_time(|| {
        let scene = scene(&Options::new().with("fail_ticket", 3));
        let (queue, x) = (scene.queue(), scene.tensor(&[1.0]));
        scaled(&scene, &queue, &x, &[2.0, 2.0]);
        let fuser = scene.fuser(&queue);
        scene.scale(fuser.queue(), &x, 2.0);
        let last = scene.scale(fuser.queue(), &x, 2.0);
        let (event, report) = fuser.complete().unwrap();
        assert!(report.is_graph, "{report}");
        let error = event.wait().unwrap_err();
        assert!(error.to_string().contains("ticket 3 of queue"), "{error}");
        assert_eq!(last.wait().unwrap_err().kind(), error.kind());
        assert_eq!(x.to_vec::<f32>().unwrap_err().kind(), error.kind());
        assert_eq!(queue.fuser(&FusionOptions::new()).unwrap_err().kind(), error.kind());
    });
}

#[test]
fn a_graph_keeps_no_tensors_and_never_runs_on_those_of_before() {
    in_time(|| {
        let scene = scene(&Options::new());
        let queue = scene.queue();
        for round in 0..20 {
            // The memory of the tensor before is used again, at the same address.
            let x = scene.tensor(&[round as f32]);
            scaled(&scene, &queue, &x, &[2.0, 4.0]);
            assert_eq!(values(&x), [8.0 * round as f32]);
        }
        let (queue, x) = (scene.queue(), scene.tensor(&[1.0]));
        scaled(&scene, &queue, &x, &[2.0, 2.0]);
        assert!(scaled(&scene, &queue, &x, &[2.0, 2.0]).is_graph);
        let fuser = scene.fuser(&queue);
        scene.copy_through(fuser.queue(), [&x, &scene.tensor(&[0.0]), &scene.tensor(&[0.0])]);
        assert_eq!(fuser.complete().unwrap().1.launches.len(), 2);
    });
}

#[test]
fn the_time_of_a_graph_is_that_of_its_launches() {
    in_time(|| {
        let scene = scene(&Options::new());
        let queue =
            scene.device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() }).unwrap();
        for round in 0..3 {
            let event = queue.timed(|queue| {
                let fuser = queue.fuser(&FusionOptions::new())?;
                for _ in 0..2 {
                    fuser.queue().launch(&scene.spin, (1, 1), (1000i64,))?;
                }
                let (event, report) = fuser.complete()?;
                assert_eq!(report.is_graph, round > 0);
                Ok(event)
            });
            let event = event.unwrap();
            event.wait().unwrap();
            let times = event.times().unwrap();
            assert!(times.end_ns - times.start_ns >= 2_000_000, "{times:?}");
        }
    });
}

#[test]
fn the_lists_that_a_queue_remembers_are_bounded() {
    in_time(|| {
        let scene = scene(&Options::new());
        let (queue, x) = (scene.queue(), scene.tensor(&[1.0]));
        let is_graph = |length: usize| scaled(&scene, &queue, &x, &vec![1.0; length]).is_graph;
        for length in 2..40 {
            assert!(!is_graph(length));
            assert!(is_graph(length));
        }
        assert_eq!([is_graph(39), is_graph(2)], [true, false], "the oldest was forgotten");
    });
}

#[test]
fn threads_and_queues_have_graphs_of_their_own() {
    in_time(|| {
        let scene = scene(&Options::new().with("out_of_order", true));
        let queues = [scene.queue(), scene.queue()];
        std::thread::scope(|threads| {
            for thread in 0..8 {
                let (scene, queue) = (&scene, &queues[thread % 2]);
                threads.spawn(move || {
                    for round in 0..50 {
                        let x = scene.tensor(&[1.0]);
                        scaled(scene, queue, &x, &[2.0, round as f32, 3.0]);
                        assert_eq!(values(&x), [6.0 * round as f32]);
                    }
                });
            }
        });
        let x = scene.tensor(&[1.0]);
        assert!(queues.iter().all(|queue| scaled(&scene, queue, &x, &[1.0, 1.0, 1.0]).is_graph));
    });
}
