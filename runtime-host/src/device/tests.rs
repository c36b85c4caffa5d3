#![allow(unsafe_code, reason = "the test kernels call the system")]

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::path::Path;
use std::time::Duration;

use parking_lot::Mutex;
use runtime_core::DType;
use runtime_core::abi::SubmitInfo;
use runtime_core::backend::{ArgRef, Queue};

use super::*;
use crate::call::Function;
use crate::range::IndexRange;
use crate::telemetry::tests::sysfs;
use crate::topology::tests::fake;
use crate::work_groups::Extent;

fn backend(nodes: &Path) -> HostBackend {
    HostBackend {
        log: Log::silent(),
        epoch: Instant::now(),
        nodes: nodes.to_owned(),
        sysfs: PathBuf::from(SYSFS),
    }
}

fn open(backend: &HostBackend, sub: Option<u32>) -> Result<HostDevice> {
    backend.open_device(0, sub, &Options::new())
}

fn request<'a>(space: u32, bytes: usize) -> Allocate<'a, HostQueue> {
    Allocate { space, bytes, alignment_bytes: 256, huge_pages: false, queue: None }
}

/// Records the processors that it runs on.
extern "C" fn processors(seen: &Mutex<BTreeSet<i32>>, begin: i64, end: i64) {
    for _ in begin..end.max(begin + 1) {
        std::thread::sleep(Duration::from_micros(200));
        // SAFETY: only asks for a number.
        seen.lock().insert(unsafe { libc::sched_getcpu() });
    }
}

/// The last processor that this process may use.
fn last_processor() -> usize {
    // SAFETY: a processor set is plain bits.
    let mut set = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
    // SAFETY: writes the set in its own size.
    unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    // SAFETY: the numbers are below the size of the set.
    (0..1024).rfind(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).unwrap()
}

#[test]
fn memory_spaces_follow_the_nodes() {
    let (folder, _) = fake(&[(0, "0", 1024), (1, "0", 2048)]);
    let backend = backend(folder.path());
    let whole = open(&backend, None).unwrap();
    let names: Vec<_> = backend.devices().unwrap()[0].spaces.iter().map(|space| space.name.clone()).collect();
    assert_eq!(names, ["device", "node0", "node1"]);
    assert_eq!(whole.memory_usage(2).unwrap().total_bytes, 2048 << 10);
    assert!(whole.memory_usage(0).unwrap().total_bytes > 1 << 20, "all of the machine's");
    let error = whole.allocate(&request(3, 1)).unwrap_err();
    assert!(error.message().contains("device, node0, node1"), "{error}");
    assert!(whole.allocate(&request(1, 5000)).is_ok());
    let node = open(&backend, Some(1)).unwrap();
    assert_eq!(node.memory_usage(0).unwrap().total_bytes, 2048 << 10);
    assert!(node.allocate(&request(1, 1)).is_err(), "a node has one space");
}

#[test]
fn a_missing_node_is_an_error_that_lists_the_nodes() {
    let (folder, _) = fake(&[(0, "0", 1024), (4, "0", 2048), (5, "", 2048)]);
    let error = open(&backend(folder.path()), Some(5)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("host:0.0, host:0.4"), "{error}");
    let error = open(&backend(Path::new("no/such/folder")), Some(0)).unwrap_err();
    assert!(error.message().contains("open \"host:0\""), "{error}");
}

#[test]
fn a_node_reports_the_clock_of_its_own_processors() {
    let (folder, _) = fake(&[(0, "0", 1024), (1, "1-2", 2048)]);
    let clock = |cpu| format!("devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
    let root = sysfs(&[(&clock(0), "3000000"), (&clock(2), "2000000")]);
    let backend = HostBackend { sysfs: root.path().to_owned(), ..backend(folder.path()) };
    let hertz = |sub| open(&backend, sub).unwrap().telemetry().unwrap().clock_hz;
    assert_eq!(hertz(None), Some(3_000_000_000));
    assert_eq!(hertz(Some(1)), Some(2_000_000_000));
}

/// Tests nothing on a machine with one node.
#[test]
fn memory_of_a_node_is_allocated_on_that_node() {
    let backend = backend(Path::new(SYSTEM));
    let whole = open(&backend, None).unwrap();
    let nodes: Vec<_> = Topology::read(Path::new(SYSTEM)).with_memory().map(|node| node.id).collect();
    for (index, &id) in nodes.iter().enumerate() {
        let buffer = whole.allocate(&request(u32::try_from(index + 1).unwrap(), 1 << 20)).unwrap();
        let mut found = -1_i32;
        let last = buffer.start().wrapping_add((1 << 20) - 1);
        // SAFETY: the last byte of the buffer.
        unsafe { last.write(1) };
        // SAFETY: asks on which node (flags 1 and 2) the page of an address is.
        unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut found, 0, 0, last, 3) };
        assert_eq!(u32::try_from(found).unwrap(), id, "of {nodes:?}");
    }
}

#[test]
fn work_of_a_node_runs_on_its_processors() {
    let cpu = last_processor();
    let (folder, _) = fake(&[(0, "0", 1024), (1, &format!("{cpu},1000"), 1024)]);
    let node = open(&backend(folder.path()), Some(1)).unwrap();
    let queue = node.open_queue(&QueueOptions::default()).unwrap();
    assert!(!queue.try_begin_inline(1), "the caller's thread may be anywhere");
    let seen: Mutex<BTreeSet<i32>> = Mutex::default();
    let bits = (&raw const seen).expose_provenance() as u64;
    let code = Arc::new(Function::new(processors as *const c_void, None));
    let span = IndexRange::of(&code, Some([0, 50]), 1).unwrap();
    let args = [ArgRef::Scalar { dtype: DType::U64, bits }].into_iter();
    queue.submit_launch(1, &code, Extent::Range(span.unwrap()), args).unwrap();
    queue.noop(SubmitInfo { ticket: 2, after: 0 }).unwrap();
    let start = Instant::now();
    while queue.poll().unwrap().completed < 2 {
        assert!(start.elapsed() < Duration::from_secs(20));
        queue.wait(2, Duration::from_millis(50)).unwrap();
    }
    assert_eq!(*seen.lock(), BTreeSet::from([i32::try_from(cpu).unwrap()]));
}
