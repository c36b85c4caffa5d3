//! Many threads that start at the same moment: first each with its own `Runtime`, then all with one.

use std::process::ExitCode;
use std::sync::Barrier;

use runtime_core::{CommonRuntime, Result, Runtime};

/// Number of threads.
const THREADS: usize = 16;
/// How often each thread creates and uses a `Runtime`.
const ROUNDS: usize = 4;
const ELEMENTS: usize = 257;

/// Uses `devices` from all threads; prints the failures, and the number of successes.
pub(crate) fn use_at_once(devices: &[String]) -> ExitCode {
    let own = at_once(|thread| {
        (0..ROUNDS).try_for_each(|_| {
            let runtime = Runtime::new();
            devices.iter().try_for_each(|device| work(&*runtime.open(device)?, thread))
        })
    });
    let shared = Runtime::new();
    let one = at_once(|thread| devices.iter().try_for_each(|device| work(&*shared.open(device)?, thread)));
    for line in shared.load_report() {
        println!("{line}");
    }
    let failures: Vec<_> = own.into_iter().chain(one).filter_map(Result::err).collect();
    for failure in &failures {
        println!("{failure}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs `body` on all threads, which start together.
fn at_once(body: impl Fn(usize) -> Result<()> + Sync) -> Vec<Result<()>> {
    let (all, body) = (Barrier::new(THREADS), &body);
    std::thread::scope(|scope| {
        let start = |thread| {
            let all = &all;
            scope.spawn(move || {
                all.wait();
                body(thread)
            })
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    })
}

/// Fills, copies across two queues and reads: each thread reads its own number.
fn work(device: &dyn CommonRuntime, thread: usize) -> Result<()> {
    let number = u8::try_from(thread).expect("few threads") + 1;
    let allocate = || device.empty::<u8>([ELEMENTS]);
    let (from, to) = (allocate()?, allocate()?);
    let (first, second) = (device.queue()?, device.queue()?);
    first.fill(&from, &[number])?;
    second.copy(&to, &from)?.wait()?;
    let found = to.to_vec::<u8>()?;
    if found == [number; ELEMENTS] {
        return Ok(());
    }
    Err(runtime_core::Error::invalid(format!("thread {thread} found {:?}…", &found[..4])))
}
