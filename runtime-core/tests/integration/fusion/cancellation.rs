//! What submits a list as it is, before it is complete.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use runtime_core::fusion::{Fuser, FusionOptions};
use runtime_core::{ErrorKind, Event, EventStatus, Options, Placement, Queue, Tensor, read_write};

use super::{Scene, in_time};

/// A list of two kernels that would be fused, on tensors of its own, and what they compute.
struct Listed {
    scene: Scene,
    queue: Queue,
    fuser: Fuser,
    x: Tensor,
    event: Event,
}

impl Listed {
    fn new() -> Self {
        Self::with(&Options::new())
    }

    fn with(options: &Options) -> Self {
        let scene = Scene::with(options);
        let queue = scene.queue();
        let fuser = scene.fuser(&queue);
        let x = scene.tensor(&[1.0]);
        scene.noop(fuser.queue(), &x);
        let event = scene.noop(fuser.queue(), &x);
        assert_eq!((fuser.len(), queue.submitted()), (2, 0));
        Self { scene, queue, fuser, x, event }
    }

    /// Checks that both launches were submitted as they are, and that the fuser says why.
    fn assert_cancelled(self, reason: &str) {
        assert_eq!(self.fuser.len(), 0, "{reason}");
        assert!(self.queue.submitted() >= 2);
        self.event.wait().unwrap();
        let (event, report) = self.fuser.complete().unwrap();
        event.wait().unwrap();
        let text = report.to_string();
        assert!(text.starts_with("2 cancelled: ") && text.contains(reason), "{text}");
        assert_eq!(self.scene.plans(), 0);
    }

    fn assert_listed(self) {
        assert_eq!(self.fuser.len(), 2);
        let (_, report) = self.fuser.complete().unwrap();
        assert_eq!(report.to_string(), "noop → noop fused");
    }
}

#[test]
fn sync_event_wait() {
    in_time(|| {
        let listed = Listed::new();
        listed.event.wait().unwrap();
        listed.assert_cancelled("waited for");
    });
}

#[test]
fn a_poll_and_a_status() {
    in_time(|| {
        let listed = Listed::new();
        assert!(listed.event.is_done().unwrap());
        listed.assert_cancelled("polled");
        let listed = Listed::new();
        assert_eq!(listed.event.status().unwrap(), EventStatus::Complete);
        listed.assert_cancelled("polled");
    });
}

/// Whether a task was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn an_await_wakes_the_task() {
    in_time(|| {
        let listed = Listed::with(&Options::new().with("delay_us", 20_000));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let mut future = pin!(listed.event.clone());
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        while !woken.0.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        assert!(matches!(future.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(Ok(()))));
        listed.assert_cancelled("awaited");
    });
}

#[test]
fn a_group_of_events() {
    in_time(|| {
        let listed = Listed::new();
        Event::all(&[&listed.event, &listed.scene.queue().launch_noop().unwrap()]).wait().unwrap();
        listed.assert_cancelled("waited for");
        let listed = Listed::with(&Options::new().with("delay_us", 1000));
        Event::any(&[&listed.event, &listed.event.clone()]).wait().unwrap();
        listed.assert_cancelled("waited for");
    });
}

#[test]
fn a_wait_and_a_flush_of_the_virtual_queue() {
    in_time(|| {
        let listed = Listed::new();
        listed.fuser.queue().wait_idle().unwrap();
        assert_eq!(listed.fuser.queue().completed().unwrap(), 2);
        listed.assert_cancelled("flushed");
        let listed = Listed::new();
        listed.fuser.queue().flush().unwrap();
        listed.assert_cancelled("flushed");
        let listed = Listed::new();
        assert_eq!(listed.fuser.queue().completed().unwrap(), 2);
        listed.assert_cancelled("flushed");
    });
}

#[test]
fn sync_queue_destruction() {
    in_time(|| {
        let Listed { scene, queue, fuser, x, event } = Listed::new();
        drop(queue);
        assert_eq!(fuser.len(), 2, "the fuser keeps the real queue");
        drop(fuser);
        event.wait().unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0]);
        drop((scene, x));
        assert!(event.is_done().unwrap(), "an event outlives its device");
    });
}

#[test]
fn sync_host_accessor() {
    in_time(|| {
        let listed = Listed::new();
        assert_eq!(listed.x.to_vec::<f32>().unwrap(), [1.0]);
        listed.assert_cancelled("accessed a tensor");
        let listed = Listed::new();
        listed.x.write(&[2.0f32]).unwrap();
        listed.assert_cancelled("accessed a tensor");
        let listed = Listed::new();
        listed.x.freeze().unwrap();
        listed.assert_cancelled("accessed a tensor");
        let listed = Listed::new();
        drop(listed.x.to_dlpack().unwrap());
        listed.assert_cancelled("accessed a tensor");
    });
}

#[test]
fn a_host_view_of_a_tensor_that_the_list_writes() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let fuser = scene.fuser(&queue);
        let x = scene.device.allocate(runtime_core::DType::F32, &[1], &Placement::space("pinned")).unwrap();
        x.write(&[1.0f32]).unwrap();
        scene.scale(fuser.queue(), &x, 2.0);
        let view = x.map().unwrap();
        assert_eq!((fuser.len(), view.as_slice::<f32>().unwrap()), (0, &[2.0f32][..]));
        let refused = fuser.queue().launch(&scene.scale, (1, 1), (read_write(&x), 2.0f32)).unwrap_err();
        assert!(refused.message().contains("mapped"), "{refused}");
    });
}

#[test]
fn a_read_of_what_the_list_only_reads_cancels_nothing() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let fuser = scene.fuser(&queue);
        let (a, out) = (scene.tensor(&[1.0, 2.0]), scene.empty());
        scene.copy(fuser.queue(), &a, &out);
        assert_eq!(a.to_vec::<f32>().unwrap(), [1.0, 2.0]);
        assert_eq!(fuser.len(), 1);
    });
}

#[test]
fn sync_host_task() {
    in_time(|| {
        let listed = Listed::new();
        let task = listed.fuser.queue().host_task(&[&listed.event], || ()).unwrap();
        task.wait().unwrap();
        listed.assert_cancelled("awaited");
        let listed = Listed::new();
        listed.fuser.queue().host_task(&[], || ()).unwrap().wait().unwrap();
        listed.assert_listed();
    });
}

#[test]
fn a_submission_that_depends_on_an_event_of_the_list() {
    in_time(|| {
        let listed = Listed::new();
        let other = listed.scene.queue();
        other.wait_for(&listed.event).unwrap();
        listed.assert_cancelled("other work depends on it");
        let listed = Listed::new();
        listed.fuser.queue().wait_for(&listed.event).unwrap();
        listed.assert_listed();
    });
}

#[test]
fn a_conflicting_submission_of_another_queue() {
    in_time(|| {
        let listed = Listed::with(&Options::new().with("out_of_order", true));
        let other = listed.scene.queue();
        listed.scene.scale(&other, &listed.x, 4.0);
        assert_eq!(listed.x.to_vec::<f32>().unwrap(), [4.0]);
        listed.assert_cancelled("other work depends on it");
        let listed = Listed::new();
        listed.scene.scale(&listed.scene.queue(), &listed.scene.tensor(&[1.0]), 4.0);
        listed.assert_listed();
    });
}

#[test]
fn a_conflicting_launch_of_another_fuser_cancels_the_first_list() {
    in_time(|| {
        let listed = Listed::new();
        let other = listed.scene.queue();
        let second = listed.scene.fuser(&other);
        listed.scene.scale(second.queue(), &listed.x, 4.0);
        assert_eq!(second.len(), 1);
        let x = listed.x.clone();
        listed.assert_cancelled("other work depends on it");
        second.complete().unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap(), [4.0]);
    });
}

#[test]
fn a_cyclic_dependency_cannot_arise() {
    in_time(|| {
        let listed = Listed::new();
        let other = listed.scene.queue();
        let outside = listed.scene.scale(&other, &listed.x, 2.0); // depends on the list, which is handed over
        listed.fuser.queue().wait_for(&outside).unwrap();
        listed.scene.scale(listed.fuser.queue(), &listed.x, 3.0); // depends on that
        let (event, report) = listed.fuser.complete().unwrap();
        event.wait().unwrap();
        assert_eq!(report.cancelled.as_ref().map(|(_, count)| *count), Some(2));
        assert_eq!(listed.x.to_vec::<f32>().unwrap(), [6.0]);
    });
}

#[test]
fn two_cancel() {
    in_time(|| {
        let listed = Listed::new();
        listed.fuser.cancel().unwrap();
        listed.fuser.cancel().unwrap();
        assert_eq!(listed.queue.submitted(), 2);
        listed.assert_cancelled("the program cancelled it");
    });
}

#[test]
fn launches_after_a_cancellation_make_a_new_list() {
    in_time(|| {
        let Listed { scene, queue, fuser, x, event } = Listed::new();
        event.wait().unwrap();
        scene.noop(fuser.queue(), &x);
        scene.noop(fuser.queue(), &x);
        let (last, report) = fuser.complete().unwrap();
        last.wait().unwrap();
        assert_eq!(queue.submitted(), 3);
        assert!(report.to_string().ends_with("; noop → noop fused"), "{report}");
        assert!(!report.is_one_kernel());
    });
}

#[test]
fn a_panic_or_an_error_before_the_completion_loses_nothing() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let x = scene.tensor(&[1.0]);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let fuser = queue.fuser(&FusionOptions::default()).unwrap();
            scene.scale(fuser.queue(), &x, 2.0);
            std::panic::resume_unwind(Box::new("in the middle"));
        }));
        assert!(panicked.is_err());
        let library = || -> runtime_core::Result<()> {
            let fuser = queue.fuser(&FusionOptions::default())?;
            scene.scale(fuser.queue(), &x, 3.0);
            fuser.queue().launch(&scene.scale, (1, 1), (2.0f32,))?;
            fuser.complete().map(drop)
        };
        assert_eq!(library().unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(x.to_vec::<f32>().unwrap(), [6.0]);
    });
}

#[test]
fn dropping_unrelated_resources_cancels_nothing() {
    in_time(|| {
        let listed = Listed::new();
        let frozen = listed.scene.tensor(&[1.0]);
        frozen.freeze().unwrap();
        let other = listed.scene.queue();
        listed.scene.scale(&other, &listed.scene.tensor(&[1.0]), 2.0);
        drop((frozen, other));
        listed.scene.device.load(&runtime_core::ModuleSource::wgsl("other = noop")).unwrap();
        listed.assert_listed();
    });
}
