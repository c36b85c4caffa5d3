//! What is fused, and how the rest is submitted.

use runtime_core::fusion::FusionOptions;
use runtime_core::{ErrorKind, Event, QueueOptions, read, read_write, write};

use super::{Scene, in_time};

#[test]
fn two_kernels_become_one() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let (a, out) = (scene.tensor(&[1.0, 2.0]), scene.empty());
        let fuser = scene.fuser(&queue);
        let between = scene.empty();
        let first = scene.copy(fuser.queue(), &a, &between);
        scene.copy(fuser.queue(), &between, &out);
        drop(between);
        assert_eq!((fuser.len(), queue.submitted()), (2, 0), "nothing reaches the device");
        let (event, report) = fuser.complete().unwrap();
        assert_eq!(queue.submitted(), 1);
        assert_eq!(report.to_string(), "copy → copy fused, 1 promotion");
        assert!(report.is_one_kernel() && !report.is_cached);
        event.wait().unwrap();
        assert!(first.is_done().unwrap(), "an event of the list is that of the fused kernel");
        assert_eq!(out.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    });
}

#[test]
fn three_kernels_and_a_rest() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let (x, y) = (scene.tensor(&[1.0, 2.0]), scene.tensor(&[3.0, 4.0]));
        let fuser = scene.fuser(&queue);
        for tensor in [&x, &y, &x] {
            scene.noop(fuser.queue(), tensor);
        }
        scene.scale(fuser.queue(), &x, 2.0);
        let (_, report) = fuser.complete().unwrap();
        assert_eq!(
            report.to_string(),
            "noop → noop → noop fused; noop | scale not: these kernels do not join"
        );
        assert_eq!(
            report.kernels.iter().map(|kernel| kernel.launches.clone()).collect::<Vec<_>>(),
            [0..3, 3..4]
        );
        assert_eq!(queue.submitted(), 2);
        assert_eq!(x.to_vec::<f32>().unwrap(), [2.0, 4.0]);
    });
}

#[test]
fn complete_fusion_of_one_kernel_and_of_none() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let options = FusionOptions::new().require(true);
        let (event, report) = queue.fuser(&options).unwrap().complete().unwrap();
        assert!(event.is_done().unwrap());
        assert_eq!((report.to_string(), queue.submitted()), ("nothing was launched".to_owned(), 0));

        let x = scene.tensor(&[1.0]);
        let fuser = queue.fuser(&options).unwrap();
        scene.scale(fuser.queue(), &x, 3.0);
        let (event, report) = fuser.complete().unwrap();
        event.wait().unwrap();
        assert_eq!((report.to_string(), x.to_vec::<f32>().unwrap()), ("scale alone".to_owned(), vec![3.0]));
        assert_eq!(scene.plans(), 0, "there is nothing to plan");
    });
}

#[test]
fn require_makes_less_than_one_kernel_an_error_that_loses_nothing() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let x = scene.tensor(&[1.0]);
        let fuser = queue.fuser(&FusionOptions::new().require(true)).unwrap();
        scene.scale(fuser.queue(), &x, 2.0);
        let last = scene.scale(fuser.queue(), &x, 3.0);
        let error = fuser.complete().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("scale | scale not: these kernels do not join"), "{error}");
        last.wait().unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap(), [6.0], "the drop of the fuser ran them");
    });
}

#[test]
fn native_code_stays_as_it_is_and_in_order() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let x = scene.tensor(&[1.0]);
        let fuser = scene.fuser(&queue);
        scene.noop(fuser.queue(), &x);
        scene.noop(fuser.queue(), &x);
        fuser.queue().launch(&scene.native, (1, 1), (read_write(&x), 5.0f32)).unwrap();
        scene.noop(fuser.queue(), &x);
        let (_, report) = fuser.complete().unwrap();
        let text = report.to_string();
        assert!(
            text.starts_with("noop → noop fused; noop | scale_f32 not: \"scale_f32\" has no portable code"),
            "{text}"
        );
        assert_eq!((report.kernels.len(), queue.submitted()), (3, 3));
        assert_eq!(x.to_vec::<f32>().unwrap(), [5.0]);
    });
}

#[test]
fn a_full_list_is_completed_and_a_new_one_begins() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let x = scene.tensor(&[1.0]);
        let fuser = queue.fuser(&FusionOptions::new().limit(4)).unwrap();
        for _ in 0..10 {
            scene.noop(fuser.queue(), &x);
        }
        assert_eq!((fuser.len(), queue.submitted()), (2, 2));
        let (event, report) = fuser.complete().unwrap();
        event.wait().unwrap();
        let ranges: Vec<_> = report.kernels.iter().map(|kernel| kernel.launches.clone()).collect();
        assert_eq!(ranges, [0..4, 4..8, 8..10]);
        assert_eq!((report.launches.len(), report.seams.len(), queue.submitted()), (10, 9, 3));

        let fuser = queue.fuser(&FusionOptions::new().limit(1).require(true)).unwrap();
        scene.noop(fuser.queue(), &x);
        let refused = fuser.queue().launch(&scene.noop, (1, 1), (read_write(&x),)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::OutOfResources, "{refused}");
        fuser.complete().unwrap();
    });
}

#[test]
fn repeated_in_a_loop() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let (a, out) = (scene.tensor(&[1.0, 2.0]), scene.empty());
        for round in 0..20 {
            let fuser = scene.fuser(&queue);
            let between = scene.empty();
            scene.copy_through(fuser.queue(), [&a, &between, &out]);
            drop(between);
            let (_, report) = fuser.complete().unwrap();
            assert!(report.is_one_kernel());
            assert_eq!(report.is_cached, round != 0);
            scene.scale(&queue, &a, 2.0);
        }
        assert_eq!(out.to_vec::<f32>().unwrap(), [(1 << 19) as f32, (1 << 20) as f32]);
        assert_eq!(scene.plans(), 1);
    });
}

#[test]
fn sync_two_queues_requirement_and_event_dependency() {
    in_time(|| {
        let scene = Scene::with(&runtime_core::Options::new().with("out_of_order", true));
        let (queue, other) = (scene.queue(), scene.queue());
        let (a, between, out) = (scene.tensor(&[1.0, 2.0]), scene.empty(), scene.empty());
        scene.scale(&other, &a, 3.0);
        let unrelated = other.launch(&scene.spin, (1, 1), (20_000i64,)).unwrap();
        let fuser = scene.fuser(&queue);
        scene.copy(fuser.queue(), &a, &between);
        fuser.queue().wait_for(&unrelated).unwrap();
        scene.copy(fuser.queue(), &between, &out);
        drop(between);
        let (event, report) = fuser.complete().unwrap();
        assert!(report.is_one_kernel(), "{report}");
        event.wait().unwrap();
        assert!(unrelated.is_done().unwrap(), "the fused kernel waits for what its launches wait for");
        assert_eq!(out.to_vec::<f32>().unwrap(), [3.0, 6.0]);
    });
}

#[test]
fn work_on_the_real_queue_is_ordered_with_the_list_by_its_tensors() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let (x, y) = (scene.tensor(&[1.0]), scene.tensor(&[1.0]));
        scene.scale(&queue, &x, 2.0);
        let fuser = scene.fuser(&queue);
        scene.scale(fuser.queue(), &x, 3.0);
        scene.scale(&queue, &y, 7.0);
        assert_eq!((fuser.len(), queue.submitted()), (1, 2), "it touches nothing of the list");
        scene.scale(&queue, &x, 5.0);
        assert_eq!((fuser.len(), queue.submitted()), (0, 4), "it conflicts with the list");
        assert_eq!((x.to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap()), (vec![30.0], vec![7.0]));
        let (_, report) = fuser.complete().unwrap();
        assert_eq!(report.to_string(), "1 cancelled: other work depends on it");
    });
}

#[test]
fn a_refused_launch_takes_no_ticket() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let fuser = scene.fuser(&queue);
        fuser.queue().launch(&scene.scale, (1, 1), (2.0f32,)).unwrap_err();
        let x = scene.tensor(&[1.0]);
        x.freeze().unwrap();
        fuser.queue().launch(&scene.scale, (1, 1), (read_write(&x), 2.0f32)).unwrap_err();
        assert_eq!((fuser.queue().submitted(), fuser.is_empty()), (0, true));
    });
}

#[test]
fn fusers_do_not_nest() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let fuser = scene.fuser(&queue);
        let error = fuser.queue().fuser(&FusionOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        queue.fuser(&FusionOptions::new().limit(0)).unwrap_err();
    });
}

#[test]
fn a_switch_turns_fusion_off() {
    in_time(|| {
        let scene = Scene::on("null:0", &runtime_core::Options::new(), false);
        let queue = scene.queue();
        let x = scene.tensor(&[1.0]);
        let fuser = queue.fuser(&FusionOptions::new().require(true)).unwrap();
        scene.noop(fuser.queue(), &x);
        scene.noop(fuser.queue(), &x);
        let (event, report) = fuser.complete().unwrap();
        event.wait().unwrap();
        assert_eq!((queue.submitted(), scene.plans()), (2, 0));
        assert!(report.to_string().contains("RUNTIME_FUSION=off"), "{report}");
    });
}

#[test]
fn a_held_event_is_signaled_as_on_any_queue() {
    in_time(|| {
        let scene = Scene::with(&runtime_core::Options::new().with("needs_signals", true));
        let queue = scene.device.open_queue(&QueueOptions::default()).unwrap();
        let (x, y) = (scene.tensor(&[1.0]), scene.tensor(&[1.0]));
        let fuser = scene.fuser(&queue);
        let held = scene.scale(fuser.queue(), &x, 2.0);
        fuser.queue().launch(&scene.spin, (1, 1), (50_000_000i64,)).unwrap();
        fuser.cancel().unwrap();
        scene.scale(&queue, &y, 2.0);
        held.wait().unwrap();
        assert_eq!(queue.submitted(), 3);
        let all = Event::all(&[&held, &scene.scale(&scene.queue(), &scene.tensor(&[1.0]), 2.0)]);
        all.wait().unwrap();
        std::mem::forget(queue); // nobody waits for the spin
        std::mem::forget(fuser);
        std::mem::forget(scene);
    });
}

#[test]
fn a_sum_and_its_copy_become_one() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let (a, b, out) = (scene.tensor(&[1.0, 2.0]), scene.tensor(&[10.0, 20.0]), scene.empty());
        let fuser = scene.fuser(&queue);
        let sum = scene.empty();
        fuser.queue().launch(&scene.add, (1, 1), (read(&a), read(&b), write(&sum))).unwrap();
        scene.copy(fuser.queue(), &sum, &out);
        drop(sum);
        fuser.complete().unwrap();
        assert_eq!((out.to_vec::<f32>().unwrap(), queue.submitted()), (vec![11.0, 22.0], 1));
    });
}

#[test]
fn the_environment_turns_fusion_off() {
    const NAME: &str = "fusion::fusing::the_environment_turns_fusion_off";
    if std::env::var_os("RUNTIME_FUSION").is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", NAME]).env("RUNTIME_FUSION", "off");
        let output = child.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        return;
    }
    in_time(|| {
        let runtime = runtime_core::Runtime::builder().discover(false).register(runtime_null::backend());
        let device = runtime.with_lowering(super::lowering::joining()).build().open("null").unwrap();
        let noop = device.kernel(runtime_core::ModuleSource::wgsl("noop = noop"), "noop").unwrap();
        let (queue, x) = (device.queue().unwrap(), device.tensor([1], &[1.0f32]).unwrap());
        let fuser = queue.fuser(&FusionOptions::new()).unwrap();
        for _ in 0..2 {
            fuser.queue().launch(&noop, (1, 1), (read_write(&x),)).unwrap();
        }
        let (_, report) = fuser.complete().unwrap();
        assert_eq!(report.kernels.len(), 2);
        assert!(report.to_string().contains("RUNTIME_FUSION=off"), "{report}");
    });
}
