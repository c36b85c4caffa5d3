//! Several threads on shared queues and tensors: every addition is applied once, while others copy, read and drop.

use std::sync::atomic::{AtomicU16, Ordering};

use runtime_core::{Arg, Geometry, Options, Tensor};

use super::random::Random;
use super::{kernel, open, queue};

const THREADS: u64 = 4;
const STEPS: usize = if cfg!(miri) { 10 } else { 150 };
const ELEMENTS: usize = 24;

#[test]
fn additions_of_many_threads_to_views_are_all_applied() {
    for options in [
        Options::new(),
        Options::new().with("reorders", true),
        Options::new().with("out_of_order", true),
        Options::new().with("needs_flush", true).with("needs_signals", true),
        Options::new().with("delay_us", 30),
    ] {
        let device = open("null:0", &options);
        let add = kernel(&*device, "saxpy_f32");
        let zeros = |_| device.tensor([ELEMENTS], &[0f32; ELEMENTS]).unwrap();
        let (sums, ones): ([Tensor; 3], _) =
            (std::array::from_fn(zeros), device.tensor([ELEMENTS], &[1f32; ELEMENTS]).unwrap());
        let counts: [[AtomicU16; ELEMENTS]; 3] =
            std::array::from_fn(|_| std::array::from_fn(|_| AtomicU16::new(0)));
        let queues: [_; 3] = std::array::from_fn(|_| queue(&*device));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (device, add, sums, ones, counts, queues) =
                    (&device, &add, &sums, &ones, &counts, &queues);
                scope.spawn(move || {
                    let mut random = Random(thread);
                    for _ in 0..STEPS {
                        let (queue, of) = (&queues[random.index(3)], random.index(3));
                        let from = random.index(ELEMENTS);
                        let to = from + 1 + random.index(ELEMENTS - from);
                        let step = 1 + random.index(3);
                        let count = (to - from).div_ceil(step);
                        let strides = [i64::try_from(step).unwrap()];
                        let view = sums[of].view(&[count], &strides, from).unwrap();
                        match random.index(6) {
                            0 => drop(queue.contiguous(&view).unwrap()),
                            1 => assert!(view.to_vec::<f32>().unwrap().iter().all(|sum| *sum >= 0.0)),
                            2 => drop(device.tensor([1], &[1f32]).unwrap()),
                            _ => {
                                let part = ones.slice(0, 0..count).unwrap();
                                let args =
                                    [Arg::read(&part), Arg::read_write(&view).strided(), Arg::scalar(1f32)];
                                drop(queue.launch(add, Geometry::single(), &args).unwrap());
                                (from..to).step_by(step).for_each(|at| {
                                    counts[of][at].fetch_add(1, Ordering::Relaxed);
                                });
                            }
                        }
                    }
                });
            }
        });
        for (sum, counts) in sums.iter().zip(&counts) {
            let expected: Vec<f32> =
                counts.iter().map(|count| f32::from(count.load(Ordering::Relaxed))).collect();
            assert_eq!(sum.to_vec::<f32>().unwrap(), expected, "{options:?}");
        }
    }
}
