//! The resources that this process has used.

#![allow(unsafe_code, reason = "calls a function of the system")]

/// The resources used by all threads of this process since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ProcessUsage {
    pub(super) cpu_s: f64,
    pub(super) minor_page_faults: u64,
    pub(super) major_page_faults: u64,
    pub(super) voluntary_switches: u64,
    pub(super) involuntary_switches: u64,
}

impl ProcessUsage {
    /// Reads them with `getrusage`.
    pub(super) fn now() -> Option<Self> {
        // SAFETY: a zeroed structure is a valid one.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the structure is a local variable.
        if unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) } != 0 {
            return None;
        }
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        let count = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
        Some(Self {
            cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            minor_page_faults: count(usage.ru_minflt),
            major_page_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_uses_resources() {
        let before = ProcessUsage::now().unwrap();
        let begin = std::time::Instant::now();
        let mut pages = Vec::new();
        while ProcessUsage::now().unwrap().cpu_s < before.cpu_s + 0.02 && begin.elapsed().as_secs() < 20 {
            pages.push(vec![1_u8; 1 << 20]);
            pages.truncate(16);
        }
        let after = ProcessUsage::now().unwrap();
        assert!(after.cpu_s > before.cpu_s, "{before:?}, {after:?}");
        assert!(after.minor_page_faults > before.minor_page_faults, "{before:?}, {after:?}");
    }
}
