//! What is not a launch, on a virtual queue.

use std::sync::Arc;

use runtime_core::{DType, Event, EventStatus, Options, Placement, QueueOptions, read_write};

use super::{Scene, in_time};

#[test]
fn transfers_that_touch_nothing_of_the_list_run_at_once() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let fuser = scene.fuser(&queue);
        let listed = scene.tensor(&[1.0]);
        scene.noop(fuser.queue(), &listed);
        scene.noop(fuser.queue(), &listed);
        let (x, y) = (scene.tensor(&[1.0]), scene.tensor(&[2.0]));
        let own = fuser.queue();
        own.copy(&x, &y).unwrap().wait().unwrap();
        own.fill(&y, &3.0f32.to_ne_bytes()).unwrap().wait().unwrap();
        own.write(&y, &4.0f32.to_ne_bytes()).unwrap();
        let mut bytes = [0; 4];
        own.read(&x, &mut bytes).unwrap();
        assert_eq!(f32::from_ne_bytes(bytes), 2.0);
        own.upload(&x, vec![5.0f32]).unwrap().wait().unwrap();
        assert_eq!(own.download::<f32>(&x).unwrap().wait().unwrap(), [5.0]);
        own.allocate(DType::F32, &[1], &Placement::default()).unwrap();
        own.contiguous(&x).unwrap();
        own.keep_until(&[], ()).unwrap();
        assert_eq!(fuser.len(), 2);
        assert_eq!(fuser.complete().unwrap().1.to_string(), "noop → noop fused");
    });
}

#[test]
fn what_is_kept_until_a_listed_event_ends_cancels_nothing() {
    in_time(|| {
        for is_cancelled in [false, true] {
            let scene = Scene::with(&Options::new().with("delay_us", 1000));
            let queue = scene.queue();
            let fuser = scene.fuser(&queue);
            let (x, kept) = (scene.tensor(&[1.0]), Arc::new(()));
            drop(scene.noop(fuser.queue(), &x).keeping(kept.clone()));
            let event = scene.noop(fuser.queue(), &x);
            fuser.queue().keep_until(&[&event], kept.clone()).unwrap();
            drop(Event::all(&[&event, &queue.launch_noop().unwrap()]).keeping(kept.clone()));
            assert_eq!((fuser.len(), Arc::strong_count(&kept)), (2, 4));
            if is_cancelled {
                fuser.cancel().unwrap();
            } else {
                assert!(fuser.complete().unwrap().1.is_one_kernel());
            }
            event.wait().unwrap();
            while Arc::strong_count(&kept) > 1 {
                std::thread::yield_now();
            }
        }
    });
}

#[test]
fn a_kernel_that_reports_runs_at_once() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let code = runtime_core::ModuleSource::wgsl("checked = noop");
        let checked = scene.device.kernel(code, "checked").unwrap();
        let fuser = scene.fuser(&queue);
        let x = scene.tensor(&[1.0]);
        scene.scale(fuser.queue(), &x, 2.0);
        let event = fuser.queue().launch(&checked, (1, 1), (read_write(&scene.tensor(&[1.0])),)).unwrap();
        assert_eq!((fuser.len(), event.status().unwrap()), (0, EventStatus::Complete));
        scene.scale(fuser.queue(), &x, 3.0);
        let (last, report) = fuser.complete().unwrap();
        last.wait().unwrap();
        assert_eq!(report.cancelled.as_ref().map(|(_, count)| *count), Some(1));
        assert_eq!(x.to_vec::<f32>().unwrap(), [6.0]);
    });
}

#[test]
fn sync_acc_mem_op() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let fuser = scene.fuser(&queue);
        let (x, y) = (scene.tensor(&[1.0]), scene.empty().slice(0, 0..1).unwrap());
        scene.scale(fuser.queue(), &x, 2.0);
        fuser.queue().copy(&y, &x).unwrap();
        assert_eq!(fuser.len(), 0, "it reads what the list writes");
        scene.scale(fuser.queue(), &x, 3.0);
        fuser.queue().fill(&x, &1.0f32.to_ne_bytes()).unwrap();
        scene.scale(fuser.queue(), &x, 5.0);
        let (_, report) = fuser.complete().unwrap();
        assert_eq!(report.cancelled.as_ref().map(|(_, count)| *count), Some(2));
        assert_eq!((x.to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap()), (vec![5.0], vec![2.0]));
    });
}

#[test]
fn sync_usm_mem_op() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let fuser = scene.fuser(&queue);
        let x = scene.tensor(&[1.0]);
        scene.scale(fuser.queue(), &x, 2.0);
        assert_eq!(fuser.queue().download::<f32>(&x).unwrap().wait().unwrap(), [2.0]);
        scene.scale(fuser.queue(), &x, 3.0);
        fuser.queue().upload(&x, vec![1.0f32]).unwrap();
        assert_eq!((fuser.len(), queue.submitted()), (0, 4));
    });
}

#[test]
fn what_no_tensor_orders_cancels_first() {
    in_time(|| {
        let scene = Scene::new();
        let queue =
            scene.device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() }).unwrap();
        let x = scene.tensor(&[1.0]);
        let fuser = scene.fuser(&queue);
        scene.scale(fuser.queue(), &x, 2.0);
        fuser.queue().launch_noop().unwrap().wait().unwrap();
        assert_eq!(fuser.len(), 0);
        scene.scale(fuser.queue(), &x, 3.0);
        let timestamp = fuser.queue().timestamp().unwrap();
        timestamp.wait().unwrap();
        fuser.queue().read_timestamp(&timestamp).unwrap();
        assert_eq!(fuser.len(), 0);
        scene.scale(fuser.queue(), &x, 5.0);
        let held = fuser.queue().hold().unwrap();
        assert_eq!(fuser.len(), 0);
        assert!(held.resume().unwrap());
        assert_eq!(x.to_vec::<f32>().unwrap(), [30.0]);
    });
}

#[test]
fn a_barrier_orders_the_list_and_what_comes_after() {
    in_time(|| {
        let scene = Scene::with(&Options::new().with("out_of_order", true));
        let (queue, other) = (scene.queue(), scene.queue());
        let x = scene.tensor(&[1.0]);
        let outside = other.launch(&scene.spin, (1, 1), (20_000i64,)).unwrap();
        let fuser = scene.fuser(&queue);
        scene.noop(fuser.queue(), &x);
        let direct = fuser.queue().fill(&scene.tensor(&[1.0]), &[1]).unwrap();
        let barrier = fuser.queue().barrier(&[&outside]).unwrap();
        scene.noop(fuser.queue(), &x);
        assert_eq!(fuser.len(), 2, "it submits nothing");
        let (event, report) = fuser.complete().unwrap();
        assert_eq!(report.to_string(), "noop → noop fused");
        event.wait().unwrap();
        assert!(outside.is_done().unwrap());
        barrier.wait().unwrap();
        assert!(direct.is_done().unwrap());
    });
}

#[test]
fn a_barrier_ends_after_the_list_and_after_what_went_to_the_real_queue() {
    in_time(|| {
        let scene = Scene::with(&Options::new().with("delay_us", 20_000).with("out_of_order", true));
        let queue = scene.queue();
        let fuser = scene.fuser(&queue);
        let direct = fuser.queue().fill(&scene.tensor(&[1.0]), &[1]).unwrap();
        fuser.queue().barrier(&[]).unwrap().wait().unwrap();
        assert_eq!(direct.status().unwrap(), EventStatus::Complete);
        scene.noop(fuser.queue(), &scene.tensor(&[1.0]));
        let barrier = fuser.queue().barrier(&[]).unwrap();
        assert_eq!(fuser.len(), 1);
        let (event, _) = fuser.complete().unwrap();
        barrier.wait().unwrap();
        assert_eq!(event.status().unwrap(), EventStatus::Complete);
    });
}

#[test]
fn timed_work_is_not_fused_and_knows_its_times() {
    in_time(|| {
        let scene = Scene::new();
        let queue =
            scene.device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() }).unwrap();
        let fuser = scene.fuser(&queue);
        let event = fuser.queue().timed(|queue| queue.launch(&scene.spin, (1, 1), (2000i64,))).unwrap();
        event.wait().unwrap();
        let times = event.times().unwrap();
        assert!(times.end_ns - times.start_ns >= 2_000_000);
        assert_eq!(event.status().unwrap(), EventStatus::Complete);
    });
}

#[test]
fn a_call_waits_for_its_launch() {
    in_time(|| {
        for name in ["null:0", "null:0.0"] {
            let scene = Scene::on(name, &Options::new(), true);
            let queue = scene.queue();
            let fuser = scene.fuser(&queue);
            let x = scene.tensor(&[1.0]);
            fuser.queue().call(&scene.scale, (1, 1), (read_write(&x), 2.0f32)).unwrap();
            fuser.queue().call_noop().unwrap();
            assert_eq!((fuser.len(), x.to_vec::<f32>().unwrap()), (0, vec![2.0]));
        }
    });
}

#[test]
fn a_replay_of_a_graph_is_ordered_with_the_list() {
    in_time(|| {
        for name in ["null:0", "null:1"] {
            let scene = Scene::on(name, &Options::new(), true);
            let queue = scene.queue();
            let x = scene.tensor(&[1.0]);
            let graph =
                queue.record(|recorder| recorder.launch(&scene.scale, (1, 1), (read_write(&x), 3.0f32)));
            let graph = queue.instantiate(&graph.unwrap()).unwrap();
            let fuser = scene.fuser(&queue);
            fuser.queue().fill(&x, &2.0f32.to_ne_bytes()).unwrap();
            scene.scale(fuser.queue(), &x, 2.0);
            fuser.queue().replay(&graph).unwrap();
            assert_eq!(fuser.len(), 0);
            assert_eq!(x.to_vec::<f32>().unwrap(), [12.0]);
        }
    });
}
