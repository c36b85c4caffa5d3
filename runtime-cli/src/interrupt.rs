//! Cleans up when a signal ends the command: completes the outputs, ends workers and kills child processes, removes
//! temporary files.
//!
//! The signal handlers only wake a thread, which cleans up and then lets the signal end the process. A second signal
//! ends it at once.

#![allow(unsafe_code, reason = "changes the environment before there are threads, and kills child processes")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::backend::TemporaryFolder;
use runtime_harness::pool::Stopper;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::output;

type CloseReports = Box<dyn FnOnce(&str) + Send>;

/// Held by the thread that ends the process: the main thread or the signal thread.
static TERMINATION: Mutex<()> = Mutex::new(());
/// Completes the outputs.
static CLOSE_REPORTS: Mutex<Option<CloseReports>> = Mutex::new(None);
/// The directory of all temporary files of the process.
static TEMPORARY_FOLDER: Mutex<Option<TemporaryFolder>> = Mutex::new(None);

/// The workers of the process.
static WORKERS: Mutex<Option<Stopper>> = Mutex::new(None);

/// How long workers may take to kill their processes and to remove their files, on whatever machine they are. A supervisor
/// waits 1 s for its inner process, and tries for 3 s to kill what is left.
const WORKERS_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for child processes to exit.
const CHILD_TIMEOUT: Duration = Duration::from_secs(1);
/// How long to retry removing temporary files.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(1);

/// Cleans up when it is dropped, or earlier when a signal ends the process.
#[derive(Debug)]
pub(crate) struct SignalGuard(());

impl SignalGuard {
    /// Installs the signal handlers and gives the process its own directory for temporary files. Must be called before
    /// any thread is started.
    pub(crate) fn install() -> Self {
        // Held until the directory is recorded, so that a signal in between cannot leave it behind.
        let mut recorded = TEMPORARY_FOLDER.lock();
        if let Err(error) = handle_signals() {
            output::print_stderr(&format!(
                "warning: temporary files will not be removed on a signal: {error}"
            ));
        }
        // If it cannot be created, the first user of a temporary file reports that.
        if let Ok(folder) = TemporaryFolder::new("runtime-command-") {
            // SAFETY: the only other thread is the signal thread, which does not use the environment; a backend starts none when it is
            // loaded.
            unsafe { std::env::set_var("TMPDIR", folder.path()) };
            *recorded = Some(folder);
        }
        drop(recorded);
        Self(())
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        // Never released: only one thread may end the process.
        std::mem::forget(TERMINATION.lock());
        drop(TEMPORARY_FOLDER.lock().take());
    }
}

/// Registers `close` to complete the outputs when a signal ends the process. Its argument is the signal's name. Once a
/// signal has come, this blocks until the process ends: outputs that are begun now would be about removed files.
pub(crate) fn on_interrupt(close: impl FnOnce(&str) + Send + 'static) {
    let _not_ending = TERMINATION.lock();
    *CLOSE_REPORTS.lock() = Some(Box::new(close));
}

/// Registers workers, which are asked to end before child processes are killed. Blocks as [`on_interrupt`] does.
pub(crate) fn stop_workers(stopper: Stopper) {
    let _not_ending = TERMINATION.lock();
    *WORKERS.lock() = Some(stopper);
}

fn handle_signals() -> std::io::Result<()> {
    let ending = Arc::new(AtomicBool::new(false));
    // Exceeding the file size limit is an error like a full disk; it must not end the process.
    flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let ignored = ignored_signals();
    // Leave alone the signals that `nohup` and shells without job control ignore on purpose.
    let handled = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let handled: Vec<_> = handled.collect();
    for &signal in &handled {
        flag::register_conditional_default(signal, Arc::clone(&ending))?;
    }
    let mut signals = Signals::new(handled)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            ending.store(true, Ordering::SeqCst);
            terminate(signal);
        }
    })?;
    Ok(())
}

/// The signals that were ignored when the process was started, as a bit mask.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

fn terminate(signal: i32) {
    let _ending = TERMINATION.lock();
    if let Some(close) = CLOSE_REPORTS.lock().take() {
        close(low_level::signal_name(signal).unwrap_or("a signal"));
    }
    if let Some(workers) = WORKERS.lock().take() {
        // Those that are left are killed with the other children.
        let _ = workers.stop(WORKERS_TIMEOUT);
    }
    let folder = TEMPORARY_FOLDER.lock().as_ref().map(|folder| folder.path().to_owned());
    // Twice: the main thread may start another compiler meanwhile, or make the folder again for a cache.
    for _ in 0..2 {
        kill_descendants();
        folder.as_deref().into_iter().for_each(remove_folder);
    }
    let _ = low_level::emulate_default_handler(signal);
    low_level::exit(128 + signal);
}

/// Removes the directory of temporary files. The main thread is still running and may add files, hence the retries.
fn remove_folder(path: &Path) {
    let begin = Instant::now();
    while std::fs::remove_dir_all(path).is_err() && path.exists() && begin.elapsed() < CLEANUP_TIMEOUT {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills all descendants of this process: a compiler would go on with files that are gone.
fn kill_descendants() {
    // SAFETY: makes this process adopt orphaned descendants, so that they are found too.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    let begin = Instant::now();
    let mut empty_scans = 0;
    // A process that ends while the processes are listed may have started one that is not on the list.
    while begin.elapsed() < CHILD_TIMEOUT && empty_scans < 2 {
        let children = descendants(&parents_by_process(Path::new("/proc")), std::process::id());
        empty_scans = if children.is_empty() { empty_scans + 1 } else { 0 };
        for child in children {
            // With the group that it may lead: some of that may have lost their parents before.
            for target in [-child.cast_signed(), child.cast_signed()] {
                // SAFETY: the process descends from this one and was not reaped, so its ID was not reused.
                unsafe { libc::kill(target, libc::SIGKILL) };
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The parent of each running process.
fn parents_by_process(proc: &Path) -> BTreeMap<u32, u32> {
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let process = |entry: std::fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name in front is in parentheses and may contain any character.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        (!is_dead).then_some((id, parent))
    };
    entries.filter_map(process).collect()
}

/// The processes that descend from `root`.
fn descendants(parents: &BTreeMap<u32, u32>, root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        let children = parents.iter().filter(|(id, of)| **of == parent && !found.contains(id));
        let children: Vec<u32> = children.map(|(id, _)| *id).collect();
        found.extend(children);
        at += 1;
    }
    found.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_include_grandchildren() {
        let parents = BTreeMap::from([(1, 0), (2, 1), (3, 2), (4, 1), (5, 3), (6, 4)]);
        assert_eq!(descendants(&parents, 2), [3, 5]);
        assert_eq!(descendants(&parents, 6), [0; 0]);
        assert_eq!(descendants(&BTreeMap::from([(1, 1), (2, 1)]), 1), [2], "a cycle terminates");
    }

    #[test]
    fn this_process_is_found() {
        let parents = parents_by_process(Path::new("/proc"));
        assert_eq!(parents.get(&std::process::id()), Some(&std::os::unix::process::parent_id()));
    }
}
