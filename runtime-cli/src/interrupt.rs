//! What happens when a user or a system ends the command: outputs are completed, child processes and temporary files go.
//!
//! The signal handlers only wake a thread, which does the work and then lets the signal end the process. A second
//! signal ends it at once.

#![allow(unsafe_code, reason = "changes the environment before there are threads, and ends child processes")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::backend::TemporaryFolder;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::output;

type CloseReports = Box<dyn FnOnce(&str) + Send>;

/// Held by whoever ends the process: the main thread, or the one that got a signal.
static TERMINATION: Mutex<()> = Mutex::new(());
/// Completes the outputs.
static CLOSE_REPORTS: Mutex<Option<CloseReports>> = Mutex::new(None);
/// The folder of all temporary files of the process.
static TEMPORARY_FOLDER: Mutex<Option<TemporaryFolder>> = Mutex::new(None);

/// How long child processes have to end.
const CHILD_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the removal of temporary files is tried.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(1);

/// Cleans up at its end, or when a signal ends the process before.
#[derive(Debug)]
pub(crate) struct SignalGuard(());

impl SignalGuard {
    /// Begins to watch for signals, and gives the process a folder of its own for temporary files. Called before
    /// anything starts a thread.
    pub(crate) fn install() -> Self {
        // Held until the folder is known: a signal in between must not leave it behind.
        let mut known = TEMPORARY_FOLDER.lock();
        if let Err(error) = handle_signals() {
            output::print_stderr(&format!("warning: signals leave temporary files behind: {error}"));
        }
        // A folder that cannot be made is reported by whoever needs it.
        if let Ok(folder) = TemporaryFolder::new("runtime-command-") {
            // SAFETY: the only other thread is that of the signals, which does not use the environment.
            unsafe { std::env::set_var("TMPDIR", folder.path()) };
            *known = Some(folder);
        }
        drop(known);
        Self(())
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        // Never released: two must not end one process.
        std::mem::forget(TERMINATION.lock());
        drop(TEMPORARY_FOLDER.lock().take());
    }
}

/// Lets `close` complete the outputs when a signal ends the process; it gets the signal's name.
pub(crate) fn on_interrupt(close: impl FnOnce(&str) + Send + 'static) {
    *CLOSE_REPORTS.lock() = Some(Box::new(close));
}

fn handle_signals() -> std::io::Result<()> {
    let ending = Arc::new(AtomicBool::new(false));
    // A file beyond the limit of its size is an error like a full disk, not the end of the process.
    flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
    let ignored = ignored_signals();
    // `nohup` and shells without workload control have signals ignored, and mean it.
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let wanted: Vec<_> = wanted.collect();
    for &signal in &wanted {
        flag::register_conditional_default(signal, Arc::clone(&ending))?;
    }
    let mut signals = Signals::new(wanted)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            ending.store(true, Ordering::SeqCst);
            terminate(signal);
        }
    })?;
    Ok(())
}

/// The signals that the process was started with as ignored, a bit for each.
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
    kill_descendants();
    remove_temporary_folder();
    // The main thread may have started another compiler since then.
    kill_descendants();
    let _ = low_level::emulate_default_handler(signal);
    low_level::exit(128 + signal);
}

/// Removes the folder for temporary files. The main thread goes on meanwhile, and may add a file behind the removal.
fn remove_temporary_folder() {
    let Some(folder) = TEMPORARY_FOLDER.lock().take() else { return };
    let path = folder.path().to_owned();
    drop(folder);
    let begin = Instant::now();
    while path.exists() && begin.elapsed() < CLEANUP_TIMEOUT {
        std::thread::sleep(Duration::from_millis(1));
        let _ = std::fs::remove_dir_all(&path);
    }
}

/// Ends all child processes and theirs: a compiler would go on with files that are gone.
#[cfg(target_os = "linux")]
fn kill_descendants() {
    // SAFETY: makes this process the parent of those whose parent is ended, so that they are found, too.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
    let begin = Instant::now();
    while begin.elapsed() < CHILD_TIMEOUT {
        let children = descendants(&parents_by_process(Path::new("/proc")), std::process::id());
        if children.is_empty() {
            return;
        }
        for child in children {
            // SAFETY: a signal is sent to a process that descends from this one, so its number is not given away yet.
            unsafe { libc::kill(child.cast_signed(), libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Child processes are known on Linux only.
#[cfg(not(target_os = "linux"))]
fn kill_descendants() {}

/// The parent of each process that runs.
fn parents_by_process(proc: &Path) -> BTreeMap<u32, u32> {
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let process = |entry: std::fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name before stands in parentheses, and may have any character.
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
    fn descendants_are_children_and_theirs() {
        let parents = BTreeMap::from([(1, 0), (2, 1), (3, 2), (4, 1), (5, 3), (6, 4)]);
        assert_eq!(descendants(&parents, 2), [3, 5]);
        assert_eq!(descendants(&parents, 6), [0; 0]);
        assert_eq!(descendants(&BTreeMap::from([(1, 1), (2, 1)]), 1), [2], "a circle ends");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_known() {
        let parents = parents_by_process(Path::new("/proc"));
        assert_eq!(parents.get(&std::process::id()), Some(&std::os::unix::process::parent_id()));
    }
}
