#![allow(unsafe_code, reason = "the test kernels write through pointers")]

use std::ffi::c_void;
use std::sync::atomic::AtomicU64;

use runtime_core::DType;

use super::*;
use crate::work_groups::Extent;

const DEADLINE: Duration = Duration::from_secs(20);

fn queue() -> HostQueue {
    let pool = Arc::new(Pool::new("rt-host-test-range".to_owned(), &[]));
    HostQueue::new("rt-host-test".to_owned(), Instant::now(), Log::silent(), pool)
}

fn submit(ticket: u64) -> SubmitInfo {
    SubmitInfo { ticket, after: 0 }
}

fn function(code: *const c_void) -> Arc<Function> {
    Arc::new(Function::new(code, None))
}

fn word<'a>(bits: u64) -> ArgRef<'a, HostBuffer> {
    ArgRef::Scalar { dtype: DType::U64, bits }
}

fn address<T>(shared: &T) -> ArgRef<'static, HostBuffer> {
    word(std::ptr::from_ref(shared).expose_provenance() as u64)
}

fn state(queue: &HostQueue) -> (u64, u64) {
    let state = queue.poll().unwrap();
    (state.completed, state.first_failed)
}

/// Waits for a ticket; returns the completed ticket and the first failed one.
fn wait(queue: &HostQueue, ticket: u64) -> (u64, u64) {
    let start = Instant::now();
    while queue.poll().unwrap().completed < ticket {
        assert!(start.elapsed() < DEADLINE, "ticket {ticket} does not end: {:?}", queue.poll());
        queue.wait(ticket, Duration::from_millis(50)).unwrap();
    }
    state(queue)
}

/// Appends a digit, which shows the order of calls.
extern "C" fn append(number: &AtomicU64, digit: u64) {
    number.store(number.load(Ordering::Relaxed) * 10 + digit, Ordering::Relaxed);
}

/// Waits until the gate is open.
extern "C" fn gate(open: &AtomicBool) {
    let start = Instant::now();
    while !open.load(Ordering::Acquire) && start.elapsed() < DEADLINE {
        std::thread::yield_now();
    }
}

extern "C" fn gate_then_append(open: &AtomicBool, number: &AtomicU64, digit: u64) {
    gate(open);
    append(number, digit);
}

#[test]
fn launches_run_in_order_on_another_thread() {
    let (queue, number) = (queue(), AtomicU64::new(0));
    let code = function(append as *const c_void);
    for digit in 1..=9 {
        queue
            .submit_launch(digit, &code, Extent::Single, [address(&number), word(digit)].into_iter())
            .unwrap();
    }
    assert_eq!(wait(&queue, 9), (9, 0));
    assert_eq!(number.load(Ordering::Relaxed), 123_456_789);
}

#[test]
fn submissions_return_while_earlier_work_runs() {
    let (queue, open, number) = (queue(), AtomicBool::new(false), AtomicU64::new(0));
    let gated = function(gate_then_append as *const c_void);
    let code = function(append as *const c_void);
    queue
        .submit_launch(1, &gated, Extent::Single, [address(&open), address(&number), word(1)].into_iter())
        .unwrap();
    for digit in 2..=5 {
        queue
            .submit_launch(digit, &code, Extent::Single, [address(&number), word(digit)].into_iter())
            .unwrap();
    }
    assert!(!queue.try_begin_inline(6), "a busy queue runs nothing on the caller's thread");
    queue.wait(5, Duration::from_millis(1)).unwrap();
    assert_eq!(queue.poll().unwrap().completed, 0);
    open.store(true, Ordering::Release);
    wait(&queue, 5);
    assert_eq!(number.load(Ordering::Relaxed), 12345);
}

#[test]
fn an_idle_queue_runs_calls_on_the_callers_thread() {
    extern "C" fn thread(out: &Mutex<Option<std::thread::ThreadId>>) {
        *out.lock() = Some(std::thread::current().id());
    }
    let (queue, out) = (queue(), Mutex::new(None));
    let code = function(thread as *const c_void);
    assert!(queue.try_begin_inline(1));
    assert!(!queue.try_begin_inline(2), "one call at a time");
    queue.run_on_caller(1, &code, Ok(Extent::Single), [address(&out)].into_iter()).unwrap();
    assert_eq!(*out.lock(), Some(std::thread::current().id()));
    assert!(!queue.started.load(Ordering::Relaxed), "no thread without asynchronous work");
    queue.submit_launch(2, &code, Extent::Single, [address(&out)].into_iter()).unwrap();
    wait(&queue, 2);
    assert_ne!(*out.lock(), Some(std::thread::current().id()));
    assert!(queue.try_begin_inline(3), "idle again");
}

#[test]
fn asynchronous_work_waits_for_the_inline_call() {
    let (queue, open, number) = (queue(), AtomicBool::new(false), AtomicU64::new(0));
    let gated = function(gate_then_append as *const c_void);
    let code = function(append as *const c_void);
    assert!(queue.try_begin_inline(1));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            queue
                .run_on_caller(
                    1,
                    &gated,
                    Ok(Extent::Single),
                    [address(&open), address(&number), word(1)].into_iter(),
                )
                .unwrap();
        });
        queue.submit_launch(2, &code, Extent::Single, [address(&number), word(2)].into_iter()).unwrap();
        queue.wait(2, Duration::from_millis(20)).unwrap();
        assert_eq!(queue.poll().unwrap().completed, 0);
        assert_eq!(number.load(Ordering::Relaxed), 0);
        open.store(true, Ordering::Release);
    });
    wait(&queue, 2);
    assert_eq!(number.load(Ordering::Relaxed), 12);
}

#[test]
fn a_queue_waits_for_a_ticket_of_another() {
    let (first, second) = (queue(), queue());
    let (open, number) = (AtomicBool::new(false), AtomicU64::new(0));
    let gated = function(gate_then_append as *const c_void);
    let code = function(append as *const c_void);
    first
        .submit_launch(1, &gated, Extent::Single, [address(&open), address(&number), word(1)].into_iter())
        .unwrap();
    second.wait_for(&first, 1).unwrap();
    assert!(!second.try_begin_inline(1), "a queue that waits is not idle");
    second.submit_launch(1, &code, Extent::Single, [address(&number), word(2)].into_iter()).unwrap();
    second.wait(1, Duration::from_millis(20)).unwrap();
    assert_eq!(second.poll().unwrap().completed, 0);
    open.store(true, Ordering::Release);
    wait(&second, 1);
    assert_eq!(number.load(Ordering::Relaxed), 12);
    second.wait_for(&first, 1).unwrap();
    assert!(second.try_begin_inline(2), "a wait for ended work has no effect");
}

#[test]
fn a_failure_is_permanent_and_waits_do_not_propagate_it() {
    let (first, second, number) = (queue(), queue(), AtomicU64::new(0));
    let code = function(append as *const c_void);
    first.submit_launch(1, &code, Extent::Single, [address(&number), word(1)].into_iter()).unwrap();
    first
        .submit_launch(
            2,
            &code,
            Extent::Single,
            [address(&number), word(2), ArgRef::Local(1 << 60)].into_iter(),
        )
        .unwrap();
    first.submit_launch(3, &code, Extent::Single, [address(&number), word(3)].into_iter()).unwrap();
    second.wait_for(&first, 2).unwrap();
    second.submit_launch(1, &code, Extent::Single, [address(&number), word(4)].into_iter()).unwrap();
    assert_eq!(wait(&first, 3), (3, 2));
    assert_eq!(first.failure().unwrap().kind(), ErrorKind::OutOfMemory);
    assert_eq!(wait(&second, 1), (1, 0), "a wait orders work but propagates no failure");
    assert_eq!(number.load(Ordering::Relaxed), 14, "nothing runs after the failure on its own queue");
    assert!(!first.try_begin_inline(4), "a failed queue is never idle");
    assert!(second.try_begin_inline(2));
}

#[test]
fn a_failed_inline_call_fails_its_ticket() {
    let queue = queue();
    assert!(queue.try_begin_inline(1));
    let error = queue
        .run_on_caller(
            1,
            &Arc::new(Function::empty()),
            Ok(Extent::Single),
            [ArgRef::Local(1 << 60)].into_iter(),
        )
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert_eq!(state(&queue), (1, 1));
}

#[test]
fn a_rejected_submission_takes_no_ticket() {
    let (queue, number) = (queue(), AtomicU64::new(0));
    let complex = ArgRef::Scalar { dtype: DType::COMPLEX128, bits: 0 };
    assert!(
        queue
            .submit_launch(1, &function(append as *const c_void), Extent::Single, [complex].into_iter())
            .is_err()
    );
    assert_eq!(state(&queue), (0, 0));
    queue
        .submit_launch(
            1,
            &function(append as *const c_void),
            Extent::Single,
            [address(&number), word(1)].into_iter(),
        )
        .unwrap();
    assert_eq!(wait(&queue, 1), (1, 0));
}

#[test]
fn transfers_small_and_large_are_in_order() {
    for bytes in [0, 1, 4096, INLINE_COPY_BYTES, INLINE_COPY_BYTES + 1, 3 << 20] {
        let (queue, open) = (queue(), AtomicBool::new(false));
        let [a, b] = [(); 2].map(|()| HostBuffer::allocate(bytes + 16, 256, false).unwrap());
        queue.fill(submit(1), (&a, 0), 16, FillPattern::new(&[1; 16], 16).unwrap()).unwrap();
        queue
            .submit_launch(2, &function(gate as *const c_void), Extent::Single, [address(&open)].into_iter())
            .unwrap();
        queue.fill(submit(3), (&a, 16), bytes as u64, FillPattern::new(&[7], 1).unwrap()).unwrap();
        queue.copy(submit(4), (&b, 0), (&a, 16), bytes as u64).unwrap();
        assert_eq!(queue.poll().unwrap().completed, 1, "behind the gate");
        open.store(true, Ordering::Release);
        wait(&queue, 4);
        // SAFETY: the buffer has that many bytes, written by the copy.
        let copied = unsafe { std::slice::from_raw_parts(b.start(), bytes) };
        assert!(copied.iter().all(|&byte| byte == 7));
        assert!(queue.copy(submit(5), (&b, 17), (&a, 0), bytes as u64).is_err());
    }
}

#[test]
fn timestamps_enclose_the_work_between_them() {
    extern "C" fn nap() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let queue = queue();
    queue.timestamp(submit(1)).unwrap();
    queue.submit_launch(2, &function(nap as *const c_void), Extent::Single, std::iter::empty()).unwrap();
    queue.timestamp(submit(3)).unwrap();
    queue.noop(submit(4)).unwrap();
    wait(&queue, 4);
    let (start, end) = (queue.read_timestamp(1).unwrap(), queue.read_timestamp(3).unwrap());
    assert!(end - start >= 5_000_000, "{start} {end}");
    assert_eq!(queue.read_timestamp(2).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn inline_and_asynchronous_calls_alternate() {
    let (queue, number) = (queue(), AtomicU64::new(0));
    extern "C" fn count(number: &AtomicU64, expected: u64) {
        let _ = number.compare_exchange(expected, expected + 1, Ordering::Relaxed, Ordering::Relaxed);
    }
    let code = function(count as *const c_void);
    for ticket in 1..=20_000 {
        let args = [address(&number), word(ticket - 1)].into_iter();
        if ticket % 3 != 0 && queue.try_begin_inline(ticket) {
            queue.run_on_caller(ticket, &code, Ok(Extent::Single), args).unwrap();
        } else {
            queue.submit_launch(ticket, &code, Extent::Single, args).unwrap();
        }
        if ticket % 101 == 0 {
            wait(&queue, ticket);
        }
    }
    wait(&queue, 20_000);
    assert_eq!(number.load(Ordering::Relaxed), 20_000, "every call saw the one before");
}

#[test]
fn closing_with_work_in_flight_does_not_hang() {
    static OPEN: AtomicBool = AtomicBool::new(false);
    let start = Instant::now();
    let (busy, waiting) = (queue(), queue());
    busy.submit_launch(1, &function(gate as *const c_void), Extent::Single, [address(&OPEN)].into_iter())
        .unwrap();
    waiting.wait_for(&busy, 1).unwrap();
    drop(waiting);
    drop(busy);
    assert!(start.elapsed() < DEADLINE / 2);
    OPEN.store(true, Ordering::Release);
}
