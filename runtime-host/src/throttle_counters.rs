//! How often the processors slowed down because of heat, from the counters of Linux's driver for Intel's thermal interrupts.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use runtime_core::device::ThrottleReasons;
use runtime_core::{Error, Result, abi};

use crate::sysfs::{number, numbered};

/// Counters of a processor: its own, and that of its package.
const COUNTERS: [&str; 2] = ["core_throttle_count", "package_throttle_count"];

/// The counters of the host, or of one of its nodes.
#[derive(Debug)]
pub(crate) struct ThrottleCounters {
    files: Vec<PathBuf>,
    /// The last value of each file; `None` before the first.
    last: Mutex<Vec<Option<u64>>>,
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
        let files: Vec<_> = files.filter(|file| file.is_file()).collect();
        Self { last: Mutex::new(vec![None; files.len()]), files }
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
        let mut last = self.last.lock();
        let mut has_throttled = false;
        for (file, last) in self.files.iter().zip(last.iter_mut()) {
            // The counters of a processor vanish while it is offline, and may begin anew.
            let Some(count) = number::<u64>(file.clone()) else { continue };
            has_throttled |= last.replace(count).is_some_and(|before| count > before);
        }
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
    fn a_processor_that_goes_offline_is_not_throttled() {
        let sysfs = tempfile::tempdir().unwrap();
        write(sysfs.path(), "cpu0", "core_throttle_count", "3\n");
        write(sysfs.path(), "cpu1", "core_throttle_count", "7\n");
        let host = ThrottleCounters::new(sysfs.path(), &[]);
        let read = || host.read().unwrap().disturbs();
        assert!(!read());
        let counters = sysfs.path().join("devices/system/cpu/cpu1/thermal_throttle");
        std::fs::remove_dir_all(&counters).unwrap();
        assert!(!read(), "its counters have vanished");
        write(sysfs.path(), "cpu1", "core_throttle_count", "7\n");
        assert!(!read(), "it is back");
        write(sysfs.path(), "cpu1", "core_throttle_count", "0\n");
        assert!(!read(), "it counts anew");
        write(sysfs.path(), "cpu1", "core_throttle_count", "1\n");
        assert!(read());
    }

    #[test]
    fn without_counters_it_is_unsupported() {
        let sysfs = tempfile::tempdir().unwrap();
        let error = ThrottleCounters::new(sysfs.path(), &[]).read().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
