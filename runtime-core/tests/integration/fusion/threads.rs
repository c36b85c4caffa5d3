//! Fusers of several threads.

use std::sync::Barrier;
use std::sync::atomic::Ordering;

use runtime_core::fusion::{Fuser, FusionOptions};
use runtime_core::{Options, Tensor, read_write};

use super::{Scene, in_time};

#[test]
fn sixteen_threads_fuse_on_one_device() {
    in_time(|| {
        let scene = Scene::with(&Options::new().with("out_of_order", true));
        let shared = scene.tensor(&[1.0, 2.0]);
        std::thread::scope(|threads| {
            for _ in 0..16 {
                threads.spawn(|| {
                    let queue = scene.queue();
                    for _ in 0..50 {
                        let (between, out) = (scene.empty(), scene.empty());
                        let fuser = scene.fuser(&queue);
                        scene.copy_through(fuser.queue(), [&shared, &between, &out]);
                        drop(between);
                        let (_, report) = fuser.complete().unwrap();
                        assert!(report.is_one_kernel(), "{report}");
                        assert_eq!(out.to_vec::<f32>().unwrap(), [1.0, 2.0]);
                    }
                });
            }
        });
    });
}

#[test]
fn lists_that_read_one_tensor_do_not_cancel_each_other() {
    in_time(|| {
        let scene = Scene::new();
        let (shared, queues) = (scene.tensor(&[1.0, 2.0]), [(); 40].map(|()| scene.queue()));
        let fusers = queues.each_ref().map(|queue| scene.fuser(queue));
        for fuser in &fusers {
            scene.copy_through(fuser.queue(), [&shared, &scene.empty(), &scene.empty()]);
        }
        assert!(fusers.iter().all(|fuser| fuser.len() == 2));
        let written = scene.scale(&queues[0], &shared, 2.0);
        assert!(fusers.iter().all(Fuser::is_empty), "a writer comes after all of them");
        written.wait().unwrap();
    });
}

#[test]
fn fusers_that_conflict_cancel_each_other_and_lose_nothing() {
    in_time(|| {
        const THREADS: usize = 8;
        const ROUNDS: usize = 40;
        let scene = Scene::with(&Options::new().with("out_of_order", true));
        // Powers of two are exact.
        let tensors: Vec<_> = (0..3).map(|_| scene.tensor(&[1.0])).collect();
        let queues = [scene.queue(), scene.queue()];
        std::thread::scope(|threads| {
            for thread in 0..THREADS {
                let (scene, tensors, queue) = (&scene, &tensors, &queues[thread % 2]);
                threads.spawn(move || {
                    for round in 0..ROUNDS {
                        let fuser = scene.fuser(queue);
                        let factor = if round % 2 == 0 { 2.0 } else { 0.5 };
                        for at in 0..tensors.len() {
                            // In an order of its own, so that locks in another order would show.
                            scene.scale(fuser.queue(), &tensors[(at + thread) % tensors.len()], factor);
                        }
                        match round % 3 {
                            0 => drop(fuser),
                            1 => fuser.complete().unwrap().0.wait().unwrap(),
                            _ => fuser.cancel().unwrap(),
                        }
                    }
                });
            }
        });
        for tensor in &tensors {
            assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.0]);
        }
    });
}

#[test]
fn several_threads_use_one_virtual_queue() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let fuser = queue.fuser(&FusionOptions::new().limit(7)).unwrap();
        let tensors: Vec<_> = (0..8).map(|_| scene.tensor(&[1.0])).collect();
        std::thread::scope(|threads| {
            for (index, tensor) in tensors.iter().enumerate() {
                let (scene, fuser) = (&scene, &fuser);
                threads.spawn(move || {
                    for round in 0..40 {
                        let event =
                            scene.scale(fuser.queue(), tensor, if round % 2 == 0 { 4.0 } else { 0.25 });
                        match (round + index) % 10 {
                            0 => event.wait().unwrap(),
                            1 => drop(tensor.to_vec::<f32>().unwrap()),
                            2 => fuser.cancel().unwrap(),
                            _ => {}
                        }
                    }
                });
            }
        });
        let (event, report) = fuser.complete().unwrap();
        event.wait().unwrap();
        let cancelled = report.cancelled.as_ref().map_or(0, |(_, count)| *count);
        assert_eq!((report.launches.len() + cancelled, queue.submitted()), (320, 320));
        for tensor in &tensors {
            assert_eq!(tensor.to_vec::<f32>().unwrap(), [1.0]);
        }
    });
}

#[test]
fn a_list_that_is_needed_while_it_is_planned_does_not_wait_for_the_plan() {
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let x = scene.tensor(&[3.0]);
        scene.lowering.is_stopped.store(true, Ordering::Release);
        std::thread::scope(|threads| {
            let fuser = scene.fuser(&queue);
            scene.noop(fuser.queue(), &x);
            let event = scene.noop(fuser.queue(), &x);
            let planning = threads.spawn(move || fuser.complete().unwrap());
            while !scene.lowering.is_waiting.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            event.wait().unwrap();
            assert_eq!(x.to_vec::<f32>().unwrap(), [3.0]);
            scene.lowering.is_stopped.store(false, Ordering::Release);
            let (last, report) = planning.join().unwrap();
            last.wait().unwrap();
            assert_eq!(report.cancelled.as_ref().map(|(_, count)| *count), Some(2));
            assert_eq!(queue.submitted(), 2);
        });
    });
}

#[test]
fn drops_in_every_order() {
    in_time(|| {
        for order in 0..24 {
            let scene = Scene::with(&Options::new().with("needs_signals", true).with("delay_us", 500));
            let queue = scene.queue();
            let x = scene.tensor(&[1.0]);
            let fuser = scene.fuser(&queue);
            scene.scale(fuser.queue(), &x, 2.0);
            let event = scene.scale(fuser.queue(), &x, 2.0);
            let mut things: Vec<Option<Box<dyn std::any::Any>>> =
                vec![Some(Box::new(queue)), Some(Box::new(x)), Some(Box::new(fuser)), Some(Box::new(scene))];
            let mut left = vec![0, 1, 2, 3];
            let mut code = order;
            for count in (1..=4).rev() {
                drop(things[left.remove(code % count)].take());
                code /= count;
            }
            event.wait().unwrap();
        }
    });
}

#[test]
fn a_fuser_moves_between_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Fuser>();
    in_time(|| {
        let scene = Scene::new();
        let queue = scene.queue();
        let x: Tensor = scene.tensor(&[1.0]);
        let start = Barrier::new(2);
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    start.wait();
                    for _ in 0..200 {
                        let fuser = scene.fuser(&queue);
                        fuser.queue().launch(&scene.noop, (1, 1), (read_write(&x),)).unwrap();
                        fuser.queue().launch(&scene.noop, (1, 1), (read_write(&x),)).unwrap();
                        fuser.complete().unwrap();
                    }
                });
            }
        });
        assert_eq!(x.to_vec::<f32>().unwrap(), [1.0]);
    });
}
