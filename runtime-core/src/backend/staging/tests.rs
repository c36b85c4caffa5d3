use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pieces of a transfer, of one byte each.
const COUNT: usize = 200;

type Copy = dyn Fn(&Pieces) -> Result<()> + Send + Sync;

/// A transfer whose pieces a closure copies.
struct Fake {
    ready: Arc<AtomicBool>,
    copy: Box<Copy>,
    completed: Sender<Option<Error>>,
    pause: Duration,
    _device: Option<Arc<Device>>,
}

impl StagedTransfer for Fake {
    type Slots = ();

    const THREAD_NAME: &'static str = "fake-staging";
    const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }

    fn wait_until_ready(&self) -> Duration {
        self.pause
    }

    fn copy(&self, _: &mut Option<()>, pieces: &Pieces) -> Result<()> {
        (self.copy)(pieces)
    }

    fn complete(&self, failure: Option<Error>) {
        self.completed.send(failure).unwrap();
    }
}

/// A device, which owns the threads, and whose drop says on which thread it ran and for how long.
struct Device {
    pool: Option<StagingPool<Fake>>,
    dropped: Sender<(Option<String>, Duration)>,
}

impl Drop for Device {
    fn drop(&mut self) {
        let begin = Instant::now();
        drop(self.pool.take());
        let name = thread::current().name().map(str::to_owned);
        self.dropped.send((name, begin.elapsed())).unwrap();
    }
}

fn fake(
    ready: bool,
    copy: impl Fn(&Pieces) -> Result<()> + Send + Sync + 'static,
) -> (Fake, Receiver<Option<Error>>) {
    let (completed, completion) = channel();
    let ready = Arc::new(AtomicBool::new(ready));
    (
        Fake { ready, copy: Box::new(copy), completed, pause: Duration::from_micros(50), _device: None },
        completion,
    )
}

fn pool(threads: usize) -> StagingPool<Fake> {
    let pool = StagingPool::default();
    pool.start_threads(threads).unwrap();
    pool
}

/// Waits until `condition` holds.
fn eventually(condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain");
        thread::yield_now();
    }
}

/// Returns once `count` threads have called it with the same counter.
fn meet(arrived: &AtomicUsize, count: usize) {
    arrived.fetch_add(1, Ordering::SeqCst);
    eventually(|| arrived.load(Ordering::SeqCst) >= count);
}

/// A copy that `threads` threads make together, and how often it copied each piece.
fn copy_together(
    threads: usize,
) -> (impl Fn(&Pieces) -> Result<()> + Send + Sync, Arc<[AtomicUsize; COUNT]>) {
    let (arrived, copies) = (AtomicUsize::new(0), Arc::new([const { AtomicUsize::new(0) }; COUNT]));
    let counted = Arc::clone(&copies);
    let copy = move |pieces: &Pieces| {
        meet(&arrived, threads);
        while let Some(piece) = pieces.take() {
            counted[piece.offset].fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    };
    (copy, copies)
}

fn take_all(pieces: &Pieces) -> Result<()> {
    while pieces.take().is_some() {}
    Ok(())
}

fn assert_copied_once(copies: &[AtomicUsize; COUNT], completion: &Receiver<Option<Error>>) {
    assert!(completion.recv_timeout(PATIENCE).unwrap().is_none());
    assert!(copies.iter().all(|count| count.load(Ordering::SeqCst) == 1));
    assert!(completion.try_recv().is_err(), "completed twice");
}

#[test]
fn threads_copy_every_piece_once() {
    let pool = pool(4);
    for _ in 0..20 {
        let (copy, copies) = copy_together(4);
        let (transfer, completion) = fake(true, copy);
        pool.submit(transfer, Pieces::new(COUNT, 1), false);
        assert_copied_once(&copies, &completion);
    }
}

#[test]
fn the_submitter_helps() {
    let pool = pool(3);
    let (copy, copies) = copy_together(4);
    let (transfer, completion) = fake(true, copy);
    pool.submit(transfer, Pieces::new(COUNT, 1), true);
    assert_copied_once(&copies, &completion);
}

#[test]
fn all_threads_copy_a_transfer_that_becomes_ready() {
    let pool = pool(4);
    let (copy, copies) = copy_together(4);
    let (transfer, completion) = fake(false, copy);
    let ready = Arc::clone(&transfer.ready);
    pool.submit(transfer, Pieces::new(COUNT, 1), false);
    // The threads fall asleep.
    thread::sleep(Duration::from_millis(20));
    ready.store(true, Ordering::SeqCst);
    assert_copied_once(&copies, &completion);
}

#[test]
fn a_transfer_that_is_not_ready_delays_no_other() {
    const OTHERS: u32 = 20;
    let pool = pool(1);
    let (copy, copies) = copy_together(1);
    let (mut waiting, waiting_completion) = fake(false, copy);
    waiting.pause = Duration::from_millis(100);
    let (pause, ready) = (waiting.pause, Arc::clone(&waiting.ready));
    pool.submit(waiting, Pieces::new(COUNT, 1), false);
    let begin = Instant::now();
    for _ in 0..OTHERS {
        // In the middle of a pause.
        eventually(|| pool.0.list.lock().has_waiter);
        thread::sleep(Duration::from_millis(1));
        let (transfer, completion) = fake(true, take_all);
        pool.submit(transfer, Pieces::new(1, 1), false);
        assert!(completion.recv_timeout(PATIENCE).unwrap().is_none());
    }
    assert!(begin.elapsed() < pause * OTHERS / 2, "the others wait for the pauses");
    assert!(waiting_completion.try_recv().is_err());
    ready.store(true, Ordering::SeqCst);
    assert_copied_once(&copies, &waiting_completion);
}

#[test]
fn a_failure_stops_the_other_threads_and_the_first_is_kept() {
    let pool = pool(2);
    let (arrived, released) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
    let release = Arc::clone(&released);
    let (transfer, completion) = fake(true, move |pieces| {
        let first = pieces.take().unwrap();
        meet(&arrived, 2);
        if first.offset == 0 {
            return Err(Error::invalid("first"));
        }
        eventually(|| released.load(Ordering::SeqCst));
        Err(Error::invalid(if pieces.take().is_none() { "second" } else { "not stopped" }))
    });
    pool.submit(transfer, Pieces::new(COUNT, 1), false);
    eventually(|| pool.0.list.lock().entries.first().is_none_or(|entry| !entry.job.pieces.are_left()));
    // The other thread still has a piece.
    assert!(completion.recv_timeout(Duration::from_millis(50)).is_err());
    release.store(true, Ordering::SeqCst);
    let failure = completion.recv_timeout(PATIENCE).unwrap().unwrap();
    assert!(failure.message().contains("first"), "{failure}");
    assert!(completion.try_recv().is_err(), "completed twice");
}

#[test]
fn dropping_the_pool_ends_its_threads() {
    let pool = pool(3);
    let shared = Arc::downgrade(&pool.0);
    let begin = Instant::now();
    drop(pool);
    assert!(begin.elapsed() < Fake::SHUTDOWN_TIMEOUT);
    eventually(|| shared.strong_count() == 0);
}

#[test]
fn dropping_the_pool_waits_for_work_in_flight_until_the_deadline() {
    let pool = pool(2);
    let released = Arc::new(AtomicBool::new(false));
    let release = Arc::clone(&released);
    let (transfer, completion) = fake(true, move |_| {
        eventually(|| released.load(Ordering::SeqCst));
        Err(Error::invalid("late"))
    });
    pool.submit(transfer, Pieces::new(1, 1), false);
    eventually(|| pool.0.list.lock().entries[0].active_threads > 0);
    let begin = Instant::now();
    drop(pool);
    assert!((Fake::SHUTDOWN_TIMEOUT..PATIENCE).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    release.store(true, Ordering::SeqCst);
    assert!(completion.recv_timeout(PATIENCE).unwrap().is_some());
}

#[test]
fn a_staging_thread_may_drop_the_device() {
    let (dropped, drops) = channel();
    let device = Arc::new(Device { pool: Some(pool(3)), dropped });
    let released = Arc::new(AtomicBool::new(false));
    let release = Arc::clone(&released);
    let (mut transfer, completion) = fake(true, move |pieces| {
        eventually(|| released.load(Ordering::SeqCst));
        take_all(pieces)
    });
    transfer._device = Some(Arc::clone(&device));
    device.pool.as_ref().unwrap().submit(transfer, Pieces::new(COUNT, 1), false);
    drop(device);
    release.store(true, Ordering::SeqCst);
    assert!(completion.recv_timeout(PATIENCE).unwrap().is_none());
    let (thread, elapsed) = drops.recv_timeout(PATIENCE).unwrap();
    assert_eq!(thread.as_deref(), Some(Fake::THREAD_NAME));
    assert!(elapsed < Fake::SHUTDOWN_TIMEOUT, "it waited for itself: {elapsed:?}");
}
