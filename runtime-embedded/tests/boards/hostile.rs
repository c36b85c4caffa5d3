//! Programs that attack the firmware or leave the processor in a bad state, and devices that are used in unusual ways.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use runtime_core::{Arg, DType, ErrorKind};
use test_process::is_complete;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::{Board, CODE, Case, DEADLINE, Link, c};

pub(crate) const CASES: &[Case] = &[
    ("a_write_over_the_mailbox_is_found", a_write_over_the_mailbox_is_found),
    ("a_crash_is_no_overflow_of_another_stack", a_crash_is_no_overflow_of_another_stack),
    ("a_kernel_that_waits_for_the_host_has_failed", a_kernel_that_waits_for_the_host_has_failed),
    ("the_next_program_finds_a_reset_processor", the_next_program_finds_a_reset_processor),
    ("frames_that_jump_over_the_guard_are_overflows", frames_that_jump_over_the_guard_are_overflows),
    ("memory_is_read_at_the_edges", memory_is_read_at_the_edges),
    ("a_device_is_shared_by_threads", a_device_is_shared_by_threads),
    ("a_subscriber_cannot_use_the_device_that_logs", a_subscriber_cannot_use_the_device_that_logs),
];

/// The symbols of the firmware, and its mailbox up to the first tensor.
const FIRMWARE: &str = "
    extern volatile struct {
        unsigned long long magic;
        unsigned version, state, command, exit_code, tensors, calls;
        unsigned long long count, overhead, stack[3], heap[2], fault[6], address, bytes;
    } runtime_mailbox;
    void runtime_park(void);
    extern unsigned char runtime_heap_begin[];
    ";

/// Flashes a program with one tensor, and runs it `calls` times.
fn run(board: &Board, body: &str, calls: i64) -> runtime_core::Result<runtime_core::code::RunReport> {
    let x = board.embedded().tensor_from_seed(DType::I32, &[8], 1)?;
    let code = format!("{FIRMWARE}void f(int *x) {{\n{body}\n}}");
    board.embedded().flash(&c(&code).option("calls", calls), &[Arg::read_write(&x)])?;
    board.embedded().run(DEADLINE)
}

fn a_write_over_the_mailbox_is_found(board: &Board) {
    for body in [
        "runtime_mailbox.magic = 3;",
        "x[8] = 1; runtime_mailbox.tensors = 0;",
        "runtime_mailbox.stack[0] = 9; runtime_mailbox.stack[1] = 8;",
        "runtime_mailbox.address = (__UINTPTR_TYPE__)runtime_heap_begin;",
        "runtime_mailbox.bytes = 4;",
        // The firmware must not follow such a record.
        "runtime_mailbox.bytes = -1;",
        "for (int i = 0; i < 2184; i++) ((volatile unsigned char *)&runtime_mailbox)[i] = 0xff;",
        "for (int i = 16; i < 2184; i++) ((volatile unsigned char *)&runtime_mailbox)[i] = 0xff;",
        // The last argument, which the kernel does not have.
        "((volatile unsigned char *)&runtime_mailbox)[2183] = 1;",
    ] {
        let error = run(board, body, 1).unwrap_err();
        assert!(error.kind() == ErrorKind::Failed && error.message().contains("mailbox"), "{body}: {error}");
    }
    // In the first of several calls.
    let error = run(board, "runtime_mailbox.calls = 1;", 5).unwrap_err();
    assert!(error.kind() == ErrorKind::Failed && error.message().contains("mailbox"), "{error}");
    run(board, "x[0] = 1;", 5).unwrap();
}

/// The stack is where the firmware has reported it before the run.
fn a_crash_is_no_overflow_of_another_stack(board: &Board) {
    let illegal = if board.is_cortex_m() { "udf #0" } else { "unimp" };
    let body =
        format!("runtime_mailbox.stack[0] = runtime_mailbox.stack[1] = -1; __asm__ volatile(\"{illegal}\");");
    let error = run(board, &body, 1).unwrap_err();
    assert!(error.kind() == ErrorKind::Crashed && error.message().contains("illegal instruction"), "{error}");
    run(board, "x[0] = 1;", 1).unwrap();
}

/// Over a UART, the firmware does not answer within a run: it goes on.
fn a_kernel_that_waits_for_the_host_has_failed(board: &Board) {
    if board.link == Link::Debugger {
        let error = run(board, "runtime_park();", 1).unwrap_err();
        assert!(error.kind() == ErrorKind::Failed && error.message().contains("runtime_park"), "{error}");
        run(board, "x[0] = 1;", 1).unwrap();
    }
}

/// Counters, masks of interrupts, and timers are as after the start.
fn the_next_program_finds_a_reset_processor(board: &Board) {
    let states: &[&str] = match board.is_cortex_m() {
        true => &["cpsid f", "ldr r0, =0xe000e010\\n movs r1, #7\\n str r1, [r0]"],
        false => &["li t0, -1\\n csrw mcountinhibit, t0", "li t0, 0x888\\n csrw mie, t0"],
    };
    let count = |body: &str| run(board, body, 1).unwrap().cycles.unwrap();
    let usual = count("x[0] = 1;");
    for state in states {
        let clobbers = if board.is_cortex_m() { "\"r0\", \"r1\"" } else { "\"t0\"" };
        run(board, &format!("__asm__ volatile(\"{state}\" ::: {clobbers}, \"memory\");"), 1).unwrap();
        assert_eq!(count("x[0] = 1;"), usual, "{state}");
        let illegal = if board.is_cortex_m() { "udf #0" } else { "unimp" };
        let error = run(board, &format!("__asm__ volatile(\"{illegal}\");"), 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Crashed, "{state}: {error}");
        run(board, &format!("__asm__ volatile(\"{state}\" ::: {clobbers}, \"memory\");"), 1).unwrap();
        assert_eq!(count("x[0] = 1;"), usual, "{state}");
    }
}

/// Frames of which only the far end is written, so that the guard of 256 bytes is never touched.
fn frames_that_jump_over_the_guard_are_overflows(board: &Board) {
    // Cortex-M processors without a limit of the stack pointer have the guard only.
    if board.is_cortex_m() {
        return;
    }
    let leaf = "
        static int __attribute__((noinline)) leaf(volatile int *x) {
            volatile int frame[12500];
            frame[x[0] & 7] = 5;
            return frame[x[1] & 7];
        }";
    let nested = "
        static int __attribute__((noinline)) middle(volatile int *x) {
            volatile int frame[12500];
            int sum = x[0];
            frame[12499 - (x[0] & 7)] = 1;
            return sum + leaf(x) + frame[12499 - (x[1] & 7)];
        }";
    let call = |callee: &str| {
        format!(
            "static int __attribute__((noinline)) large(volatile int *x) {{
                volatile int frame[12500];
                frame[12499 - (x[0] & 7)] = {callee}(x);
                return frame[12499 - (x[1] & 7)];
            }}
            void f(int *x) {{ x[0] = large(x); }}"
        )
    };
    let x = board.embedded().tensor_from_seed(DType::I32, &[8], 1).unwrap();
    for code in [format!("{leaf}{}", call("leaf")), format!("{leaf}{nested}{}", call("middle"))] {
        board.flash(&code, &[Arg::read_write(&x)]).unwrap();
        let error = board.embedded().run(DEADLINE).unwrap_err();
        let message = error.message();
        assert!(error.kind() == ErrorKind::Crashed && message.contains("stack overflow"), "{error}");
        assert!(message.contains("`leaf`") || message.contains("`middle`"), "{error}");
    }
    run(board, "x[0] = 1;", 1).unwrap();
}

fn memory_is_read_at_the_edges(board: &Board) {
    let device = board.embedded();
    let read = |address: u64, bytes: usize| device.read_memory(address, &mut vec![0; bytes]);
    let fresh = board.another();
    for bytes in [0, 4] {
        let error = fresh.embedded().read_memory(0x8040_0000, &mut vec![0; bytes]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "nothing is flashed: {error}");
    }
    assert_eq!(fresh.embedded().registers().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(fresh.embedded().reset().unwrap_err().kind(), ErrorKind::InvalidArgument);
    run(board, "x[0] = 1;", 1).unwrap();
    let ram = if board.is_cortex_m() { 0x2000_0000u64 } else { 0x8040_0000 };
    // The end of the RAM; the machine has more memory behind it.
    for (address, bytes) in [(ram + 0x3f_ff00, 0x100), (ram + 0x3f_fffe, 2), (ram + 0x8000, 0)] {
        read(address, bytes).unwrap();
    }
    for (address, bytes) in [(u64::MAX, 1), (u64::MAX, 2), (0xe800_0000, 1 << 20), (u64::MAX - 0x100, 0x200)]
    {
        let error = read(address, bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Driver, "{address:#x} {error}");
    }
    run(board, "x[0] = 1;", 1).unwrap();
}

/// Each call is whole: one thread's program may run another's data, but nothing hangs, and results are those of some flash.
fn a_device_is_shared_by_threads(board: &Board) {
    let device = board.embedded();
    let longest = device.tensor_from_seed(DType::I32, &[4], 1).unwrap();
    board.flash(CODE, &[Arg::read_write(&longest), Arg::scalar(0i32)]).unwrap();
    let contents = device.read(0).unwrap().as_slice::<i32>().unwrap().to_vec();
    let contents = contents.as_slice();
    // Over a UART, a flash takes an emulator a second.
    let rounds = if board.link == Link::Uart && !is_complete() { 2 } else { 5 };
    thread::scope(|scope| {
        for thread in 0..4usize {
            scope.spawn(move || {
                let x = device.tensor_from_seed(DType::I32, &[thread + 1], 1).unwrap();
                for _ in 0..rounds {
                    board.flash(CODE, &[Arg::read_write(&x), Arg::scalar(0i32)]).unwrap();
                    device.run(DEADLINE).unwrap();
                    // Of some thread's flash, which adds nothing to what the target has created.
                    let read = device.read(0).unwrap();
                    let values = read.as_slice::<i32>().unwrap();
                    assert!((1..=4).contains(&values.len()), "{values:?}");
                    assert_eq!(values, &contents[..values.len()]);
                    let _ = device.registers();
                    device.reset().unwrap();
                }
            });
        }
    });
    // What is recorded of the flashed program is what the target has.
    device.run(DEADLINE).unwrap();
    let last = device.read(0).unwrap();
    let last = last.as_slice::<i32>().unwrap();
    assert!(!last.is_empty() && last == &contents[..last.len()], "{last:?}");
    let slow = "void f(int *x) { while (*(volatile int *)x != 12345) {} }";
    let x = device.tensor_from_seed(DType::I32, &[1], 1).unwrap();
    board.flash(slow, &[Arg::read_write(&x)]).unwrap();
    thread::scope(|scope| {
        let running = scope.spawn(|| device.run(Duration::from_millis(500)));
        thread::sleep(Duration::from_millis(100));
        device.reset().unwrap();
        let error = running.join().unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Timeout), "{error}");
    });
    run(board, "x[0] = 1;", 1).unwrap();
}

/// A subscriber that uses the device whose message it gets.
struct Reader(Board, Sender<ErrorKind>);

impl Subscriber for Reader {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "runtime::backend"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        let device = self.0.embedded();
        for result in [device.read(0).map(drop), device.reset()] {
            self.1.send(result.unwrap_err().kind()).unwrap();
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn a_subscriber_cannot_use_the_device_that_logs(board: &Board) {
    run(board, "x[0] = 1;", 1).unwrap();
    let (sender, kinds) = channel();
    let shared = || Board { device: Arc::clone(&board.device), ..*board };
    let (user, reader) = (shared(), Reader(shared(), sender));
    let (done, ends) = channel();
    // Not joined, since it might wait for itself.
    thread::spawn(move || {
        let x = user.embedded().tensor_from_seed(DType::I32, &[1], 1).unwrap();
        let args = [Arg::read_write(&x), Arg::scalar(0i32)];
        // Until it logs: `tracing` may still have it cached that nobody subscribes, while other threads' subscribers come and go.
        let flash = || -> runtime_core::Result<Vec<ErrorKind>> {
            for _ in 0..20 {
                user.flash(CODE, &args)?;
                let kinds: Vec<_> = kinds.try_iter().collect();
                if !kinds.is_empty() {
                    return Ok(kinds);
                }
            }
            Ok(Vec::new())
        };
        tracing::subscriber::with_default(reader, || done.send(flash()).unwrap());
    });
    let kinds = ends.recv_timeout(DEADLINE).unwrap().unwrap();
    assert!(!kinds.is_empty() && kinds.iter().all(|kind| *kind == ErrorKind::InvalidArgument), "{kinds:?}");
}
