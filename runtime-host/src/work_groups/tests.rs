#![allow(unsafe_code, reason = "the kernels of the tests write through pointers")]

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr};

use runtime_core::backend::ArgRef;
use runtime_core::{DType, ErrorKind};

use super::*;
use crate::arg_packing::{PackedArgs, Scratch};
use crate::memory::HostBuffer;

fn grouped(code: *const c_void) -> Arc<Function> {
    Arc::new(Function::new(code, None).with_convention(Convention::Groups, "f"))
}

fn run(code: &Arc<Function>, args: &[ArgRef<'_, HostBuffer>], groups: [u32; 3], pool: &Pool) -> Result<()> {
    let mut packed = PackedArgs::default();
    packed.fill(Convention::Groups, args.iter().copied()).unwrap();
    packed.invoke(code, &Extent::Groups(groups), &mut Scratch::default(), pool)
}

fn word(bits: u64) -> ArgRef<'static, HostBuffer> {
    ArgRef::Scalar { dtype: DType::U64, bits }
}

/// Adds `args[1]` to the counter of every group of its chunk, if the grid is `args[2] × 2 × 3`.
extern "C" fn count(args: *const u64, groups: *const u32, begin: i64, end: i64) {
    // SAFETY: the test passes three words.
    let args = unsafe { std::slice::from_raw_parts(args, 3) };
    // SAFETY: a grid has three counts.
    let groups = unsafe { std::slice::from_raw_parts(groups, 3) };
    let counts = std::ptr::with_exposed_provenance::<AtomicU64>(usize::try_from(args[0]).unwrap());
    let right = u64::from(groups[0]) == args[2] && groups[1..] == [2, 3];
    for group in begin..end {
        // SAFETY: the test passes as many counters as there are groups.
        let counter = unsafe { &*counts.wrapping_add(usize::try_from(group).unwrap()) };
        counter.fetch_add(if right { args[1] } else { 1 << 40 }, Ordering::Relaxed);
    }
}

/// The failure reported by the code.
static FAILURE: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());

/// Reports a failure in the fifth group.
extern "C" fn fail(_: *const u64, _: *const u32, begin: i64, end: i64) {
    if (begin..end).contains(&4) {
        FAILURE.store(c"k.wgsl:7".as_ptr().cast_mut(), Ordering::Relaxed);
    }
}

#[test]
fn a_failure_reported_by_the_code_fails_the_launch_once() {
    let address = Some((&raw const FAILURE).cast::<c_void>());
    let code = Function::new(fail as *const c_void, None).with_failure(address);
    let code = Arc::new(code.with_convention(Convention::Groups, "f"));
    for threads in [1, 3] {
        let pool = Pool::with_threads("rt-host-test".to_owned(), threads);
        for _ in 0..4 {
            let error = run(&code, &[], [9, 1, 1], &pool).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Failed);
            assert!(error.to_string().contains("\"f\": k.wgsl:7: an index"), "{error}");
            run(&code, &[], [4, 1, 1], &pool).unwrap();
        }
    }
}

#[test]
fn every_group_runs_once() {
    for threads in [1, 2, 5] {
        let pool = Pool::with_threads("rt-host-test".to_owned(), threads);
        let code = grouped(count as *const c_void);
        for groups in [1_u32, 2, 7, 1000, 20_000] {
            // Repeated, because the time of the last run decides where the next one runs.
            for _ in 0..4 {
                let counts: Vec<AtomicU64> = (0..6 * groups).map(|_| AtomicU64::new(0)).collect();
                let address = counts.as_ptr().expose_provenance() as u64;
                let args = [word(address), word(3), word(u64::from(groups))];
                run(&code, &args, [groups, 2, 3], &pool).unwrap();
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 3), "{groups} {threads}");
            }
        }
    }
}

/// Takes `args[0]` microseconds per group, and notes whether it runs on another thread than that of `args[1]`.
extern "C" fn last(args: *const u64, _groups: *const u32, begin: i64, end: i64) {
    // SAFETY: the test passes two words.
    let args = unsafe { std::slice::from_raw_parts(args, 2) };
    let meeting = std::ptr::with_exposed_provenance::<Meeting>(usize::try_from(args[1]).unwrap());
    // SAFETY: the test passes the address of its own, and waits for the call.
    let meeting = unsafe { &*meeting };
    meeting.helped.fetch_or(std::thread::current().id() != meeting.host, Ordering::Relaxed);
    std::thread::sleep(Duration::from_micros(args[0] * begin.abs_diff(end)));
}

struct Meeting {
    host: std::thread::ThreadId,
    helped: AtomicBool,
}

#[test]
fn a_grid_that_takes_longer_than_estimated_is_distributed() {
    let pool = Pool::with_threads("rt-host-test".to_owned(), 2);
    let code = grouped(last as *const c_void);
    let meeting = Meeting { host: std::thread::current().id(), helped: AtomicBool::new(false) };
    let args = |micros| [word(micros), word((&raw const meeting).expose_provenance() as u64)];
    // The estimate is far too low.
    code.group_time().record(1 << 30, Duration::from_nanos(1));
    run(&code, &args(2000), [64, 1, 1], &pool).unwrap();
    assert!(meeting.helped.load(Ordering::Relaxed), "other threads help once the estimate proves wrong");
    assert!(code.group_time().estimate(1).unwrap() > Duration::from_micros(500), "the new time is recorded");
}

#[test]
fn an_invalid_grid_is_rejected() {
    let asked = |groups, range| LaunchShape { groups, group_size: [1; 3], range, grain: 0 };
    let (plain, groups) = (Function::empty(), grouped(count as *const c_void));
    assert_eq!(Extent::of(&plain, &asked([1; 3], None)).unwrap(), Extent::Single);
    assert_eq!(Extent::of(&groups, &asked([1; 3], None)).unwrap(), Extent::Groups([1; 3]));
    let error = Extent::of(&plain, &asked([2, 1, 1], None)).unwrap_err();
    assert!(error.message().contains("convention = \"groups\""), "{error}");
    let error = Extent::of(&groups, &asked([u32::MAX; 3], None)).unwrap_err();
    assert!(error.message().contains("63 bits"), "{error}");
    assert_eq!(Extent::of(&groups, &asked([1; 3], Some([0, 9]))).unwrap_err().kind(), ErrorKind::Unsupported);
    let pool = Pool::with_threads("rt-host-test".to_owned(), 1);
    let error = run(&groups, &[word(0), ArgRef::Local(8)], [1; 3], &pool).unwrap_err();
    assert!(error.message().contains("argument 1"), "{error}");
}
