#![allow(unsafe_code, reason = "the kernels of the tests write through pointers")]

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr};

use runtime_core::backend::ArgRef;
use runtime_core::{DType, ErrorKind};

use super::*;
use crate::arg_packing::{Packed, Scratch};
use crate::memory::HostBuffer;

fn grouped(code: *const c_void) -> Arc<Function> {
    Arc::new(Function::new(code, None).with_convention(Convention::Groups, "f"))
}

fn run(code: &Arc<Function>, args: &[ArgRef<'_, HostBuffer>], groups: [u32; 3], pool: &Pool) -> Result<()> {
    let mut packed = Packed::default();
    packed.fill(Convention::Groups, args.iter().copied()).unwrap();
    packed.invoke(code, &Extent::Groups(groups), &mut Scratch::default(), pool)
}

fn word(bits: u64) -> ArgRef<'static, HostBuffer> {
    ArgRef::Scalar { dtype: DType::U64, bits }
}

/// Counts every group of its piece, by `args[1]`; and that the grid is `args[2] × 2 × 3`.
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

/// What code says went wrong.
static FAILURE: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());

/// Says in the fifth group that something is wrong.
extern "C" fn fail(_: *const u64, _: *const u32, begin: i64, end: i64) {
    if (begin..end).contains(&4) {
        FAILURE.store(c"k.wgsl:7".as_ptr().cast_mut(), Ordering::Relaxed);
    }
}

#[test]
fn what_the_code_says_went_wrong_fails_the_launch_once() {
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
            // Again and again: how long it took last decides where it runs.
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

/// Lasts as long as `args[0]` says, in microseconds a group; notes whether another thread than `args[1]`'s runs it.
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
fn a_grid_that_turns_out_long_is_shared() {
    let pool = Pool::with_threads("rt-host-test".to_owned(), 2);
    let code = grouped(last as *const c_void);
    let meeting = Meeting { host: std::thread::current().id(), helped: AtomicBool::new(false) };
    let args = |micros| [word(micros), word((&raw const meeting).expose_provenance() as u64)];
    // It seems to take nothing.
    code.group_time().learn(1 << 30, Duration::from_nanos(1));
    run(&code, &args(2000), [64, 1, 1], &pool).unwrap();
    assert!(meeting.helped.load(Ordering::Relaxed), "the first step took too long to go on alone");
    assert!(code.group_time().expect(1).unwrap() > Duration::from_micros(500), "and next time it is known");
}

#[test]
fn what_cannot_be_a_grid_is_refused() {
    let asked = |groups, range| Asked { groups, group_size: [1; 3], range, grain: 0 };
    let (plain, groups) = (Function::empty(), grouped(count as *const c_void));
    assert_eq!(Extent::of(&plain, &asked([1; 3], None)).unwrap(), Extent::Once);
    assert_eq!(Extent::of(&groups, &asked([1; 3], None)).unwrap(), Extent::Groups([1; 3]));
    let error = Extent::of(&plain, &asked([2, 1, 1], None)).unwrap_err();
    assert!(error.message().contains("convention = \"groups\""), "{error}");
    let error = Extent::of(&groups, &asked([u32::MAX; 3], None)).unwrap_err();
    assert!(error.message().contains("more than can be counted"), "{error}");
    assert_eq!(Extent::of(&groups, &asked([1; 3], Some([0, 9]))).unwrap_err().kind(), ErrorKind::Unsupported);
    let pool = Pool::with_threads("rt-host-test".to_owned(), 1);
    let error = run(&groups, &[word(0), ArgRef::Local(8)], [1; 3], &pool).unwrap_err();
    assert!(error.message().contains("argument 1"), "{error}");
}
