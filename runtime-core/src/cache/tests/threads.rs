//! Threads that want the same code at once.

use std::sync::atomic::AtomicBool;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use test_process::Sleeper;

use super::*;

const THREADS: usize = 64;

/// Runs `work` in many threads at once.
fn in_threads<T: Send>(work: impl Fn() -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        let run = || {
            barrier.wait();
            work()
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Returns once all threads have entered, and those other than this one sleep: they wait for what this one compiles.
fn wait_until_others_sleep(entered: &Mutex<Vec<Sleeper>>) {
    while entered.lock().unwrap().len() < THREADS {
        std::thread::yield_now();
    }
    let (all, own) = (entered.lock().unwrap().clone(), Sleeper::current());
    all.iter().filter(|sleeper| **sleeper != own).for_each(|sleeper| sleeper.wait_until_asleep(|| false));
}

fn count(outcomes: &[CacheOutcome], outcome: CacheOutcome) -> usize {
    outcomes.iter().filter(|other| **other == outcome).count()
}

#[test]
fn one_of_many_threads_compiles() {
    let fixture = Fixture::new();
    // Caches of one process share what is in flight.
    let caches = [fixture.cache(), fixture.cache()];
    let next = AtomicUsize::new(0);
    let outcomes = in_threads(|| {
        let cache = &caches[next.fetch_add(1, Ordering::Relaxed) % 2];
        let compile = || {
            fixture.compiled.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
            Ok(code(1))
        };
        let (found, outcome) = cache.get(&key(1), compile).unwrap();
        assert_eq!(*found, code(1));
        outcome
    });
    assert_eq!(fixture.compiled(), 1);
    assert_eq!((count(&outcomes, CacheOutcome::Miss), count(&outcomes, CacheOutcome::Hit)), (1, THREADS - 1));
}

#[test]
fn threads_share_even_without_a_store() {
    let fixture = Fixture::new();
    std::fs::write(fixture.path().join("file"), "").unwrap();
    let folder = Some(fixture.path().join("file/cache"));
    let cache = CodeCache::with_options(CacheOptions { folder, ..CacheOptions::default() });
    let entered = Mutex::new(Vec::new());
    let outcomes = in_threads(|| {
        entered.lock().unwrap().push(Sleeper::current());
        let compile = || {
            fixture.compiled.fetch_add(1, Ordering::Relaxed);
            wait_until_others_sleep(&entered);
            Ok(code(1))
        };
        cache.get(&key(1), compile).unwrap().1
    });
    let compiled = fixture.compiled();
    assert!(compiled < THREADS / 2, "{compiled} compiled");
    assert_eq!(count(&outcomes, CacheOutcome::Uncached), compiled);
    assert!(cache.list().is_err());
}

#[test]
fn a_failing_compiler_wakes_all() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    let entered = Mutex::new(Vec::new());
    let messages = in_threads(|| {
        entered.lock().unwrap().push(Sleeper::current());
        let compile = || {
            fixture.compiled.fetch_add(1, Ordering::Relaxed);
            wait_until_others_sleep(&entered);
            Err(Error::new(ErrorKind::CompileFailed, "line 7"))
        };
        cache.get(&key(1), compile).unwrap_err().message().to_owned()
    });
    assert!(messages.iter().all(|message| message == "line 7"));
    assert!(fixture.compiled() < THREADS / 2, "{} compiled", fixture.compiled());
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Miss, "the error was not stored");
}

#[test]
fn a_panicking_compiler_lets_others_try() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    let panicked = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            cache.get(&key(1), || {
                panicked.store(true, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
                std::panic::resume_unwind(Box::new("a compiler's bug"))
            })
        });
        while !panicked.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        assert_eq!(fixture.get(&cache, 1), CacheOutcome::Miss);
        assert!(first.join().is_err());
    });
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Hit);
}

#[test]
fn a_thread_that_takes_too_long_is_not_waited_for() {
    let fixture = Fixture::new();
    let timeout = Duration::from_millis(50);
    let cache = CodeCache::with_options(CacheOptions { lock_timeout: timeout, ..fixture.options() });
    let (begun, done) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let slow = cache.get(&key(1), || {
                begun.store(true, Ordering::SeqCst);
                while !done.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(code(1))
            });
            assert_eq!(slow.unwrap().1, CacheOutcome::Miss);
        });
        while !begun.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let begin = Instant::now();
        assert_eq!(fixture.get(&cache, 1), CacheOutcome::Miss);
        assert!(begin.elapsed() >= timeout);
        assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Hit, "and others are not in its way");
        done.store(true, Ordering::SeqCst);
    });
}

#[test]
fn threads_that_read_and_write_many_keys_agree() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    let next = AtomicUsize::new(0);
    in_threads(|| {
        let start = next.fetch_add(7, Ordering::Relaxed);
        for step in 0..40 {
            fixture.get(&cache, u32::try_from((start + step) % 20).unwrap());
        }
    });
    assert_eq!((fixture.compiled(), cache.usage().unwrap().entries), (20, 20));
    assert!(cache.verify().unwrap().damaged.is_empty());
}
