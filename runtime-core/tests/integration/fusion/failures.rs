//! Failures of the analysis, the compiler and the device.

use runtime_core::fusion::FusionOptions;
use runtime_core::{ErrorKind, Options, read, write};
use test_process::Messages;

use super::lowering::Fault;
use super::{Scene, in_time};

const FAULTS: [Fault; 4] = [Fault::Analysis, Fault::Code, Fault::GroupSize, Fault::Plan];

#[test]
fn a_failure_of_analysis_compiler_or_resources_falls_back() {
    in_time(|| {
        for fault in FAULTS {
            let scene = Scene::new();
            scene.break_lowering(fault);
            let queue = scene.queue();
            for round in 0..2 {
                let x = scene.tensor(&[1.0]);
                let fuser = scene.fuser(&queue);
                scene.noop(fuser.queue(), &x);
                scene.noop(fuser.queue(), &x);
                let (event, report) = fuser.complete().unwrap();
                event.wait().unwrap();
                assert_eq!(queue.submitted(), 2 * (round + 1));
                assert!(report.fallback.is_some() && !report.is_one_kernel(), "{fault:?}: {report}");
                assert!(report.to_string().starts_with("failed: "), "{report}");
            }
            assert_eq!(scene.plans(), 1, "{fault:?} would fail again, so it is remembered");
        }
    });
}

/// What is logged while two equal lists are completed on a device.
fn messages(options: &Options, fault: Option<Fault>) -> Vec<String> {
    Messages::during(&["runtime::fusion"], || {
        let scene = Scene::with(options);
        if let Some(fault) = fault {
            scene.break_lowering(fault);
        }
        let (queue, a) = (scene.queue(), scene.tensor(&[1.0, 2.0]));
        for _ in 0..2 {
            let (between, out) = (scene.empty(), scene.empty());
            let fuser = scene.fuser(&queue);
            scene.copy_through(fuser.queue(), [&a, &between, &out]);
            drop(between);
            fuser.complete().unwrap().0.wait().unwrap();
            assert_eq!(out.to_vec::<f32>().unwrap(), [1.0, 2.0]);
        }
    })
}

#[test]
fn a_list_that_cannot_be_fused_gives_the_same_results_and_one_warning() {
    in_time(|| {
        assert_eq!(messages(&Options::new(), None), [""; 0]);
        for fault in FAULTS {
            let messages = messages(&Options::new(), Some(fault));
            assert!(messages.len() == 1 && messages[0].contains("were not fused"), "{fault:?}: {messages:?}");
        }
        let refuses = Options::new().with("fail_call", "launch:1:out_of_resources");
        let messages = messages(&refuses, None);
        assert!(messages.len() == 1 && messages[0].contains("were not fused"), "{messages:?}");
    });
}

#[test]
fn a_cancellation_gives_one_warning() {
    in_time(|| {
        let messages = Messages::during(&["runtime::fusion"], || {
            let scene = Scene::new();
            let (queue, x) = (scene.queue(), scene.tensor(&[1.0]));
            let fuser = scene.fuser(&queue);
            scene.scale(fuser.queue(), &x, 2.0);
            scene.scale(fuser.queue(), &x, 3.0);
            assert_eq!(x.to_vec::<f32>().unwrap(), [6.0]);
            fuser.cancel().unwrap();
            fuser.complete().unwrap().0.wait().unwrap();
        });
        assert!(messages.len() == 1 && messages[0].contains("were not fused"), "{messages:?}");
    });
}

#[test]
fn with_require_a_failure_is_an_error() {
    in_time(|| {
        for fault in FAULTS {
            let scene = Scene::new();
            scene.break_lowering(fault);
            let queue = scene.queue();
            let x = scene.tensor(&[1.0]);
            let fuser = queue.fuser(&FusionOptions::new().require(true)).unwrap();
            scene.noop(fuser.queue(), &x);
            let last = scene.noop(fuser.queue(), &x);
            let error = fuser.complete().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{fault:?}: {error}");
            assert!(error.message().contains("failed: "), "{error}");
            last.wait().unwrap();
            assert_eq!(queue.submitted(), 2);
        }
    });
}

#[test]
fn fused_code_that_the_device_refuses_is_submitted_unfused() {
    in_time(|| {
        let scene = Scene::with(&Options::new().with("fail_call", "launch:1:out_of_resources"));
        let queue = scene.queue();
        let (a, out) = (scene.tensor(&[1.0, 2.0]), scene.empty());
        let fuser = scene.fuser(&queue);
        let between = scene.empty();
        scene.copy_through(fuser.queue(), [&a, &between, &out]);
        drop(between);
        let (event, report) = fuser.complete().unwrap();
        event.wait().unwrap();
        assert_eq!((out.to_vec::<f32>().unwrap(), queue.submitted()), (vec![1.0, 2.0], 2));
        assert!(report.to_string().contains("the device refused the fused code"), "{report}");
    });
}

#[test]
fn a_refused_launch_of_the_list_fails_its_event_and_later_ones() {
    in_time(|| {
        let scene = Scene::with(&Options::new().with("fail_call", "launch:2:driver"));
        let queue = scene.queue();
        let (x, y) = (scene.tensor(&[1.0]), scene.tensor(&[1.0]));
        let fuser = scene.fuser(&queue);
        let first = scene.scale(fuser.queue(), &x, 2.0);
        let second = scene.scale(fuser.queue(), &y, 3.0);
        let third = scene.scale(fuser.queue(), &x, 5.0);
        let error = fuser.cancel().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Driver);
        first.wait().unwrap();
        for failed in [&second, &third] {
            let error = failed.wait().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Driver);
            assert!(error.to_string().contains("ticket 2 of queue"), "{error}");
        }
        assert!(fuser.queue().launch(&scene.scale, (1, 1), (runtime_core::read_write(&x), 1.0f32)).is_err());
        let (event, _) = fuser.complete().unwrap();
        assert_eq!(event.wait().unwrap_err().kind(), ErrorKind::Driver);
        assert_eq!(x.to_vec::<f32>().unwrap_err().kind(), ErrorKind::Driver, "it was to be written");
        assert_eq!(y.to_vec::<f32>().unwrap_err().kind(), ErrorKind::Driver);
        queue.launch(&scene.spin, (1, 1), (0i64,)).unwrap().wait().unwrap(); // the real queue goes on
        x.write(&[1.0f32]).unwrap();
        scene.scale(&queue, &x, 7.0);
        assert_eq!(x.to_vec::<f32>().unwrap(), [7.0]);
    });
}

#[test]
fn a_failed_ticket_keeps_its_kind_and_origin() {
    in_time(|| {
        let scene = Scene::with(&Options::new().with("fail_ticket", 2));
        let queue = scene.queue();
        let (x, y) = (scene.tensor(&[1.0, 1.0]), scene.empty());
        let fuser = scene.fuser(&queue);
        let first = scene.scale(fuser.queue(), &x, 2.0);
        let second = scene.scale(fuser.queue(), &x, 3.0);
        fuser.complete().unwrap();
        first.wait().unwrap();
        let error = second.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed);
        assert!(error.to_string().contains("ticket 2 of queue"), "{error}");
        let other = scene.queue();
        let dependent = other.launch(&scene.copy, (1, 1), (read(&x), write(&y)));
        assert_eq!(dependent.and_then(|event| event.wait()).unwrap_err().kind(), ErrorKind::Failed);
        assert!(queue.fuser(&FusionOptions::default()).is_err(), "the queue has failed");
    });
}

#[test]
fn a_failed_dependency_fails_the_launch_that_reads_it() {
    in_time(|| {
        let scene = Scene::new();
        let (queue, other) = (scene.queue(), scene.queue());
        // SAFETY: the builtin checks its arguments.
        let source = unsafe { runtime_core::ModuleSource::native("null", "fail") };
        let fail = scene.device.kernel(source, "fail").unwrap();
        let (x, y) = (scene.tensor(&[1.0]), scene.tensor(&[1.0]));
        let fuser = scene.fuser(&queue);
        scene.scale(fuser.queue(), &y, 2.0);
        other.launch(&scene.spin, (1, 1), (20_000i64,)).unwrap();
        other.launch(&fail, (1, 1), (write(&x),)).unwrap();
        let dependent = scene.scale(fuser.queue(), &x, 2.0);
        let (event, _) = fuser.complete().unwrap();
        assert_eq!(dependent.wait().unwrap_err().kind(), ErrorKind::Failed);
        assert_eq!(event.wait().unwrap_err().kind(), ErrorKind::Failed);
    });
}

#[test]
fn a_lost_device_answers_at_once() {
    in_time(|| {
        let scene = Scene::with(&Options::new().with("lose_after", 1));
        let queue = scene.queue();
        let x = scene.device.empty::<f32>([1]).unwrap();
        let fuser = scene.fuser(&queue);
        scene.scale(fuser.queue(), &x, 2.0);
        let last = scene.scale(fuser.queue(), &x, 2.0);
        let _ = fuser.complete();
        assert_eq!(last.wait().unwrap_err().kind(), ErrorKind::DeviceLost);
        drop(scene);
    });
}

#[test]
fn a_device_that_cannot_wait_for_another_queue_blocks_the_launch() {
    in_time(|| {
        for (name, options) in [
            ("null:0.1", Options::new()),
            ("null:0", Options::new().with("fail_call", "wait_for:1:unsupported")),
        ] {
            let scene = Scene::on(name, &options, true);
            let (queue, other) = (scene.queue(), scene.queue());
            let (x, out) = (scene.tensor(&[1.0, 2.0]), scene.empty());
            other.launch(&scene.spin, (1, 1), (5000i64,)).unwrap();
            scene.scale(&other, &x, 3.0);
            let fuser = scene.fuser(&queue);
            scene.copy(fuser.queue(), &x, &out);
            assert_eq!(fuser.len(), 1);
            fuser.complete().unwrap();
            assert_eq!(out.to_vec::<f32>().unwrap(), [3.0, 6.0], "{name}");
        }
    });
}
