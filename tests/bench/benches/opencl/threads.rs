//! Eight threads, each with a queue, that launch one shared kernel; compared with one kernel object per thread.

use std::sync::{Barrier, Mutex};
use std::time::Duration;

use crate::raw::{Enqueuer, Raw};
use crate::{BATCH, Device, Fixture, compare, line, module, time};

const THREADS: usize = 8;

/// The time of the slowest thread.
fn each(work: &(dyn Fn(usize) + Sync)) -> Duration {
    let (barrier, longest) = (Barrier::new(THREADS), Mutex::new(Duration::ZERO));
    std::thread::scope(|scope| {
        for index in 0..THREADS {
            let (barrier, longest) = (&barrier, &longest);
            scope.spawn(move || {
                barrier.wait();
                let took = time(|| work(index));
                let mut longest = longest.lock().expect("no panic");
                *longest = took.max(*longest);
            });
        }
    });
    longest.into_inner().expect("no panic")
}

pub(crate) fn measure(device: &Device, raw: &Raw) {
    let enqueuers: Vec<Enqueuer> = (0..THREADS).map(|_| raw.enqueuer()).collect();
    let one = module(device);
    let shared: Vec<_> = (0..THREADS).map(|_| Fixture::of(device, &one)).collect();
    let separate: Vec<_> = (0..THREADS).map(|_| Fixture::open(device)).collect();
    let plain = || {
        let elapsed = each(&|index| (0..BATCH).for_each(|_| raw.launch(enqueuers[index], 3.0)));
        enqueuers.iter().for_each(|enqueuer| Raw::wait(enqueuer.queue));
        elapsed
    };
    let ours = |fixtures: &[Fixture]| {
        let elapsed = each(&|index| (0..BATCH).for_each(|_| drop(fixtures[index].launch())));
        fixtures.iter().for_each(Fixture::wait);
        elapsed
    };
    let (calls, rounds) = ((BATCH * THREADS as u64) as f64, 30);
    let beside = compare(rounds, plain, || ours(&shared));
    line("8 threads, a queue each, per launch of all; plain a kernel each, ours one", beside, calls);
    let among = compare(rounds, || ours(&separate), || ours(&shared));
    line("the same, ours with a kernel each beside ours with one", among, calls);
}
