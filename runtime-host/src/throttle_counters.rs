//! How often the processors slowed down because of heat, from the counters of Linux's driver for Intel's thermal interrupts.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use runtime_core::{Error, Result, ThrottleReasons, abi};

use crate::describe::{number, numbered};

/// Counters of a processor: its own, and that of its package.
const COUNTERS: [&str; 2] = ["core_throttle_count", "package_throttle_count"];

/// The counters of the host, or of one of its nodes.
#[derive(Debug)]
pub(crate) struct ThrottleCounters {
    files: Vec<PathBuf>,
    /// The sum at the last reading.
    last: Mutex<Option<u64>>,
}

impl ThrottleCounters {
    /// The counters of these processors, or of the whole host for none.
    pub(crate) fn new(sysfs: &Path, cpus: &[usize]) -> Self {
        let folder = sysfs.join("devices/system/cpu");
        let names = match cpus.is_empty() {
            true => numbered(&folder, "cpu"),
            false => cpus.iter().map(|cpu| format!("cpu{cpu}")).collect(),
        };
        let counters = names.iter().flat_map(|name| COUNTERS.map(|counter| (name, counter)));
        let files = counters.map(|(name, counter)| folder.join(name).join("thermal_throttle").join(counter));
        Self { files: files.filter(|file| file.is_file()).collect(), last: Mutex::new(None) }
    }

    /// Whether a processor has slowed down since the last reading.
    ///
    /// # Errors
    /// `Unsupported` if there are no counters.
    pub(crate) fn read(&self) -> Result<ThrottleReasons> {
        if self.files.is_empty() {
            return Err(Error::unsupported(
                "the system does not count in /sys how often the processors throttle; virtual machines hide it",
            ));
        }
        let sum = self.files.iter().filter_map(|file| number::<u64>(file.clone())).sum();
        let before = self.last.lock().replace(sum);
        let has_throttled = before.is_some_and(|before| before != sum);
        Ok(ThrottleReasons(if has_throttled { abi::THROTTLE_HARDWARE_THERMAL } else { 0 }))
    }
}

#[cfg(test)]
mod tests {
    use runtime_core::ErrorKind;

    use super::*;

    fn write(sysfs: &Path, cpu: &str, counter: &str, value: &str) {
        let folder = sysfs.join("devices/system/cpu").join(cpu).join("thermal_throttle");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(counter), value).unwrap();
    }

    #[test]
    fn a_counter_that_rises_is_throttling_since_the_last_reading() {
        let sysfs = tempfile::tempdir().unwrap();
        write(sysfs.path(), "cpu0", "core_throttle_count", "3\n");
        write(sysfs.path(), "cpu1", "package_throttle_count", "7\n");
        let host = ThrottleCounters::new(sysfs.path(), &[]);
        let node = ThrottleCounters::new(sysfs.path(), &[0]);
        let read = |counters: &ThrottleCounters| counters.read().unwrap().disturbs();
        assert!(!read(&host) && !read(&node), "the past does not count");
        write(sysfs.path(), "cpu1", "package_throttle_count", "8\n");
        assert!(read(&host) && !read(&node), "cpu1 is not part of the node");
        assert!(!read(&host));
    }

    #[test]
    fn without_counters_it_is_unsupported() {
        let sysfs = tempfile::tempdir().unwrap();
        let error = ThrottleCounters::new(sysfs.path(), &[]).read().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
