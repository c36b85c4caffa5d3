#![allow(unsafe_code, reason = "the kernels of the tests write through pointers")]

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::backend::ArgRef;
use runtime_core::code::Record;
use runtime_core::{DType, ErrorKind};

use super::*;
use crate::arg_packing::{PackedArgs, Scratch};
use crate::memory::HostBuffer;
use crate::parallel_for::ParallelFor;
use crate::pool::Pool;
use crate::work_groups::Extent;

fn function(code: *const c_void) -> Arc<Function> {
    Arc::new(Function::new(code, None))
}

fn span(range: [i64; 2], grain: u32) -> IndexRange {
    IndexRange::of(&Function::empty(), Some(range), grain).unwrap().unwrap()
}

fn chunks(range: [i64; 2], grain: u32, threads: usize) -> Vec<[i64; 2]> {
    let split = span(range, grain).split(threads);
    (0..split.chunks).map(|index| split.chunk(index)).collect()
}

fn word(bits: u64) -> ArgRef<'static, HostBuffer> {
    ArgRef::Scalar { dtype: DType::U64, bits }
}

fn address<T>(shared: &T) -> ArgRef<'static, HostBuffer> {
    word(std::ptr::from_ref(shared).expose_provenance() as u64)
}

/// Calls `code` for `range` on `threads` threads.
fn run(
    code: &Arc<Function>,
    args: &[ArgRef<'_, HostBuffer>],
    range: [i64; 2],
    grain: u32,
    threads: usize,
) -> Result<()> {
    let mut packed = PackedArgs::default();
    packed.fill(Convention::Plain, args.iter().copied()).unwrap();
    let pool = Pool::with_threads("rt-host-test".to_owned(), threads);
    packed.invoke(code, &Extent::Range(span(range, grain)), &mut Scratch::default(), &pool)
}

#[test]
fn a_range_is_split_at_multiples_of_the_grain() {
    assert_eq!(chunks([-3, 8], 4, 2), [[-3, 1], [1, 5], [5, 8]]);
    assert_eq!(chunks([5, 5], 4, 2), [[0_i64; 2]; 0]);
    assert_eq!(chunks([0, 3], 100, 2), [[0, 3]]);
    assert_eq!(chunks([0, 32], 0, 2).len(), 16, "eight per thread");
    assert_eq!(chunks([0, 5], 0, 4).len(), 5, "never less than one iteration");
    assert_eq!(chunks([0, 1000], 0, 1), [[0, 1000]], "one thread needs no chunks");
    let first = i64::MAX - (i64::from(u32::MAX) + 1);
    let last = chunks([first, i64::MAX], u32::MAX, 2);
    assert_eq!(last, [[first, i64::MAX - 1], [i64::MAX - 1, i64::MAX]]);
}

#[test]
fn an_invalid_range_is_rejected() {
    let plain = Function::empty();
    assert_eq!(IndexRange::of(&plain, None, 1).unwrap(), None);
    let error = IndexRange::of(&plain, Some([2, 1]), 0).unwrap_err();
    assert!(error.message().starts_with("range is [2, 1]"), "{error}");
    let packed = Function::empty().with_convention(Convention::Packed, "f");
    assert_eq!(IndexRange::of(&packed, Some([0, 1]), 0).unwrap_err().kind(), ErrorKind::Unsupported);
}

/// Counts every iteration of its chunk.
extern "C" fn count(counts: *const AtomicU64, begin: i64, end: i64) {
    for index in begin..end {
        let place = counts.wrapping_add(usize::try_from(index).unwrap());
        // SAFETY: the test passes as many counters as there are iterations.
        unsafe { &*place }.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn every_iteration_runs_once() {
    let code = function(count as *const c_void);
    for threads in [1, 2, 5] {
        for (items, grain) in [(0, 0), (1, 0), (1000, 1), (1000, 7), (1000, 0), (10, 1 << 31), (4096, 64)] {
            let counts: Vec<AtomicU64> = (0..items).map(|_| AtomicU64::new(0)).collect();
            let end = i64::from(items);
            let args = [word(counts.as_ptr().expose_provenance() as u64)];
            run(&code, &args, [0, end], grain, threads).unwrap();
            assert!(
                counts.iter().all(|count| count.load(Ordering::Relaxed) == 1),
                "{items} {grain} {threads}"
            );
        }
    }
}

/// More arguments than registers, before `begin` and `end`.
extern "C" fn many(
    sum: &AtomicU64,
    a: u64,
    b: f64,
    c: u64,
    d: u64,
    e: u64,
    f: f32,
    g: i8,
    begin: i64,
    end: i64,
) {
    let right = (a, c, d, e) == (1, 3, 4, 5) && b.to_bits() == 2.5_f64.to_bits() && f > 6.0 && g == -7;
    for index in begin..end {
        sum.fetch_add(if right { index.cast_unsigned() } else { 1 << 40 }, Ordering::Relaxed);
    }
}

#[test]
fn begin_and_end_follow_any_number_of_arguments() {
    let sum = AtomicU64::new(0);
    let args = [
        address(&sum),
        word(1),
        ArgRef::Scalar { dtype: DType::F64, bits: 2.5_f64.to_bits() },
        word(3),
        word(4),
        word(5),
        ArgRef::Scalar { dtype: DType::F32, bits: u64::from(6.5_f32.to_bits()) },
        ArgRef::Scalar { dtype: DType::I8, bits: 0xf9 },
    ];
    run(&function(many as *const c_void), &args, [0, 100], 9, 3).unwrap();
    assert_eq!(sum.load(Ordering::Relaxed), 4950);
}

/// What two threads share to detect that they run at the same time.
struct Meeting {
    host: std::thread::ThreadId,
    inside: AtomicU64,
    met: AtomicBool,
    left: AtomicU64,
}

/// Waits until two threads run it at once; the helper returns late.
extern "C" fn meet(meeting: &Meeting, _begin: i64, _end: i64) {
    let others = meeting.inside.fetch_add(1, Ordering::AcqRel);
    meeting.met.fetch_or(others > 0, Ordering::AcqRel);
    let start = Instant::now();
    while !meeting.met.load(Ordering::Acquire) && start.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    if std::thread::current().id() != meeting.host {
        std::thread::sleep(Duration::from_millis(50));
    }
    meeting.inside.fetch_sub(1, Ordering::AcqRel);
    meeting.left.fetch_add(1, Ordering::AcqRel);
}

#[test]
fn pieces_run_at_the_same_time_and_are_waited_for() {
    let meeting = Meeting {
        host: std::thread::current().id(),
        inside: AtomicU64::new(0),
        met: AtomicBool::new(false),
        left: AtomicU64::new(0),
    };
    run(&function(meet as *const c_void), &[address(&meeting)], [0, 2], 1, 2).unwrap();
    assert_eq!((meeting.left.load(Ordering::Acquire), meeting.met.load(Ordering::Acquire)), (2, true));
}

#[repr(C)]
struct Point {
    x: u8,
    y: f64,
    z: i64,
}

/// Writes to local memory, and checks that no other thread overwrites it; also checks the structure of the launch.
extern "C" fn own(seen: &Mutex<BTreeSet<usize>>, local: *mut i64, point: Point, begin: i64, end: i64) {
    for index in begin..end {
        // SAFETY: the test passes 8 bytes of local memory.
        unsafe { local.write_volatile(index) };
        std::thread::sleep(Duration::from_millis(1));
        // SAFETY: as above.
        let kept = unsafe { local.read_volatile() } == index;
        let right = (point.x, point.y, point.z) == (42, 0.5, -7);
        seen.lock().insert(if kept && right { local.addr() } else { 1 });
    }
}

#[test]
fn every_thread_has_local_memory_of_its_own() {
    let seen: Mutex<BTreeSet<usize>> = Mutex::default();
    let point = Record::new().with(42u8).with(0.5f64).with(-7i64);
    let point = ArgRef::Record { fields: point.fields(), bytes: point.as_bytes() };
    let args = [address(&seen), ArgRef::Local(8), point];
    run(&function(own as *const c_void), &args, [0, 40], 1, 4).unwrap();
    let seen = seen.lock();
    assert!(!seen.is_empty() && seen.len() <= 4 && seen.iter().all(|address| address % 64 == 0), "{seen:?}");
    let args = [address(&*seen), ArgRef::Local(1 << 62)];
    let error = run(&function(own as *const c_void), &args, [0, 40], 1, 4).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
}

#[test]
fn a_range_does_not_wait_for_threads_of_another_range() {
    static OPEN: AtomicBool = AtomicBool::new(false);
    extern "C" fn gate(_begin: i64, _end: i64) {
        let start = Instant::now();
        while !OPEN.load(Ordering::Acquire) && start.elapsed() < Duration::from_secs(20) {
            std::thread::yield_now();
        }
    }
    let pool = Pool::with_threads("rt-host-test".to_owned(), 2);
    let (gated, quick) = (function(gate as *const c_void), Arc::new(Function::empty()));
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let split = span([0, 2], 1).split(2);
            ParallelFor::new(RangeCall::new(&gated, &[], SmallVec::new()), split).run(&pool)
        });
        for _ in 0..100 {
            let split = span([0, 1000], 10).split(2);
            ParallelFor::new(RangeCall::new(&quick, &[], SmallVec::new()), split).run(&pool).unwrap();
        }
        OPEN.store(true, Ordering::Release);
        slow.join().unwrap().unwrap();
    });
}
