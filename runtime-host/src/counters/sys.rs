//! `perf_event_open(2)`.
//!
//! By hand: it is one system call with a structure of 64 bytes, for which the crate `perf-event2` brings sampling, ring
//! buffers and generated bindings.

#![allow(unsafe_code, reason = "calls Linux")]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd};

use runtime_core::{Error, ErrorKind, Result};

use super::event::{Event, SOFTWARE};

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const UNITS: &str = "/sys/bus/event_source/devices";

/// `struct perf_event_attr` of the first version (`PERF_ATTR_SIZE_VER0`), which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

const READ_TIMES: u64 = 1 | 2;
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
/// `PERF_EVENT_IOC_ENABLE` and `PERF_EVENT_IOC_DISABLE`.
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;

/// A counter of one thread, and of the threads and processes that it starts.
#[derive(Debug)]
pub(super) struct ThreadCounter(File);

impl ThreadCounter {
    /// Opens a counter; `None` if the thread has ended.
    ///
    /// # Errors
    /// `OutOfResources` with the remedy; `Driver`.
    pub(super) fn open(event: &Event, thread: libc::pid_t) -> Result<Option<Self>> {
        match open(event, thread) {
            Ok(file) => Ok(Some(Self(file))),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
            Err(error) => Err(open_error(event, &error)),
        }
    }

    pub(super) fn enable(&self) {
        self.control(ENABLE);
    }

    pub(super) fn disable(&self) {
        self.control(DISABLE);
    }

    fn control(&self, request: libc::c_ulong) {
        // SAFETY: an open counter; both requests take no argument and cannot fail on one.
        unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, 0) };
    }

    /// The count, and the nanoseconds for which it was enabled and did count.
    pub(super) fn read(mut self) -> Result<(u64, u64, u64)> {
        let mut words = [[0; 8]; 3];
        self.0
            .read_exact(words.as_flattened_mut())
            .map_err(|error| Error::new(ErrorKind::Driver, format!("cannot read a counter: {error}")))?;
        let [count, enabled, running] = words.map(u64::from_ne_bytes);
        Ok((count, enabled, running))
    }
}

fn open(event: &Event, thread: libc::pid_t) -> io::Result<File> {
    let scope = if event.in_kernel { 0 } else { EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR };
    let attributes = Attributes {
        kind: event.kind,
        size: 64,
        config: event.config,
        read_format: READ_TIMES,
        flags: DISABLED | INHERIT | scope,
        ..Attributes::default()
    };
    let any_processor: libc::c_int = -1;
    let no_group: libc::c_int = -1;
    // SAFETY: the structure states its size and lives during the call.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            thread,
            any_processor,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    match i32::try_from(descriptor) {
        Ok(descriptor @ 0..) => {
            // SAFETY: a new descriptor that nothing else owns.
            Ok(unsafe { File::from_raw_fd(descriptor) })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the machine lets the calling thread count the event. True if it is only short of resources at the moment: the answer
/// is kept until the device is closed.
///
/// # Errors
/// Why not, with the remedy.
pub(super) fn check(event: &Event) -> std::result::Result<(), String> {
    judge(event, open(event, 0))
}

fn judge<T>(event: &Event, opened: io::Result<T>) -> std::result::Result<(), String> {
    match opened {
        Err(error) if shortage(&error).is_none() => Err(reason(event, &error)),
        _ => Ok(()),
    }
}

/// What the system is short of, with the remedy, if that is why a counter cannot be opened.
fn shortage(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::EMFILE | libc::ENFILE => Some(
            "too many open files: each counter needs one per thread; raise `ulimit -n`, or count fewer at a time",
        ),
        libc::ENOMEM => Some("the system has no memory for another counter; count fewer at a time"),
        _ => None,
    }
}

/// The threads of this process.
pub(super) fn threads() -> Result<Vec<libc::pid_t>> {
    let listed = std::fs::read_dir("/proc/self/task").map_err(|error| {
        Error::new(ErrorKind::Unavailable, format!("cannot list the threads in /proc/self/task: {error}"))
    })?;
    Ok(listed.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

fn open_error(event: &Event, error: &io::Error) -> Error {
    match shortage(error) {
        Some(message) => Error::new(ErrorKind::OutOfResources, message),
        None => Error::new(ErrorKind::Driver, reason(event, error)),
    }
}

/// Why an event cannot be opened.
fn reason(event: &Event, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => permission(event),
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL) if event.kind == SOFTWARE => {
            format!("the kernel has no event \"{}\"", event.name)
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::EINVAL) if has_unit() => {
            format!("this processor does not count \"{}\"", event.name)
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "the system shows no performance monitoring unit, as in most virtual machines; software events such as \
             \"page-faults\" can be counted"
                .to_owned()
        }
        Some(libc::ENOSYS) => "the kernel was built without perf_event_open".to_owned(),
        _ => format!("perf_event_open: {error}"),
    }
}

fn permission(event: &Event) -> String {
    let level = std::fs::read_to_string(PARANOID).unwrap_or_default();
    let needed = if event.in_kernel { 1 } else { 2 };
    match level.trim().parse::<i32>() {
        Ok(level) if level > needed => format!(
            "perf_event_paranoid is {level}: run `sysctl kernel.perf_event_paranoid={needed}` as root, or give the \
             program CAP_PERFMON"
        ),
        _ => "the system forbids perf_event_open, as containers do; allow it in the seccomp profile, or add \
              CAP_PERFMON"
            .to_owned(),
    }
}

/// Whether the system shows a performance monitoring unit of the processor.
fn has_unit() -> bool {
    let Ok(units) = std::fs::read_dir(UNITS) else { return false };
    let is_processor = |name: &str| name.starts_with("cpu") || name.starts_with("armv");
    units.flatten().any(|unit| unit.file_name().to_str().is_some_and(is_processor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_permanent_reason_makes_a_counter_unavailable() {
        let event = Event::parse("page-faults").unwrap();
        let failed = |code: i32| io::Result::<()>::Err(io::Error::from_raw_os_error(code));
        for code in [libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
            assert_eq!(judge(&event, failed(code)), Ok(()), "{code}");
            let error = open_error(&event, &io::Error::from_raw_os_error(code));
            assert_eq!(error.kind(), ErrorKind::OutOfResources, "{code}");
        }
        for code in [libc::EACCES, libc::ENOENT, libc::ENOSYS, libc::EBUSY] {
            assert!(judge(&event, failed(code)).is_err_and(|reason| !reason.is_empty()), "{code}");
        }
        assert_eq!(judge(&event, Ok(())), Ok(()));
    }
}
