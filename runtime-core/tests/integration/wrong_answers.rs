//! Backends that return invalid results: the program gets an error that names the call, and memory stays safe.

#![allow(unsafe_code, reason = "changes the table of a backend")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use runtime_core::abi::{
    Allocation, BackendTable, Error as RawError, Handle, KernelInfo, MemoryTable, ModuleTable, Progress,
    QueueTable, Status, Str,
};
use runtime_core::backend::LinkedBackend;
use runtime_core::{
    Arg, CommonRuntime, DType, Error, ErrorKind, Geometry, ModuleSource, Placement, Queue, Result, Runtime,
};

/// Null's tables.
struct Below {
    memory: MemoryTable,
    module: ModuleTable,
    queue: QueueTable,
}

static BELOW: LazyLock<Below> = LazyLock::new(|| {
    let table = runtime_null::backend().table();
    // SAFETY: null has all tables, and they are static.
    let (memory, module) = (unsafe { &*table.memory }, unsafe { &*table.module });
    // SAFETY: as above.
    Below { memory: *memory, module: *module, queue: unsafe { *table.queue } }
});
/// What `poll` adds to `completed`, and reports as `first_failed`.
static AHEAD: AtomicU64 = AtomicU64::new(0);
static FAILED: AtomicU64 = AtomicU64::new(0);
/// Buffers that were freed.
static FREED: AtomicU64 = AtomicU64::new(0);

/// One test at a time: functions of a table have no state of their own.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for number in [&AHEAD, &FAILED, &FREED] {
        number.store(0, Ordering::SeqCst);
    }
    guard
}

unsafe extern "C" fn poll(queue: Handle, out: *mut Progress) -> Status {
    if AHEAD.load(Ordering::SeqCst) == u64::MAX {
        return std::ptr::null_mut();
    }
    // SAFETY: core's arguments, passed on.
    let status = unsafe { (BELOW.queue.poll.unwrap())(queue, out) };
    // SAFETY: core passes a place for the answer, and null has filled it.
    let progress = unsafe { &mut *out };
    progress.completed += AHEAD.load(Ordering::SeqCst);
    progress.first_failed = progress.first_failed.max(FAILED.load(Ordering::SeqCst));
    status
}

unsafe extern "C" fn free(device: Handle, buffer: Handle, queue: Handle) {
    FREED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: core's arguments, passed on.
    unsafe { (BELOW.memory.free.unwrap())(device, buffer, queue) }
}

/// Null's table, changed.
fn backend(change: impl FnOnce(&mut Below)) -> LinkedBackend {
    let mut tables = Below { memory: BELOW.memory, module: BELOW.module, queue: BELOW.queue };
    tables.queue.poll = Some(poll);
    tables.memory.free = Some(free);
    change(&mut tables);
    let Below { memory, module, queue } = Box::leak(Box::new(tables));
    let table = BackendTable { memory, module, queue, ..*runtime_null::backend().table() };
    // SAFETY: null's functions, and such as core checks.
    unsafe { LinkedBackend::from_table(Box::leak(Box::new(table))) }
}

fn open(backend: LinkedBackend) -> std::sync::Arc<dyn CommonRuntime> {
    Runtime::builder().discover(false).register(backend).build().open("null:1").unwrap()
}

fn queue(device: &dyn CommonRuntime) -> Queue {
    device.queue().unwrap()
}

fn allocate(device: &dyn CommonRuntime) -> runtime_core::Tensor {
    device.empty::<u8>([64]).unwrap()
}

/// A queue with one fill, and the result of polling it.
fn polled(ahead: u64, failed: u64) -> (Result<u64>, Result<()>) {
    let device = open(backend(|_| {}));
    let (queue, tensor) = (queue(&*device), allocate(&*device));
    let ended = queue.fill(&tensor, &[7]).unwrap();
    ended.wait().unwrap();
    AHEAD.store(ahead, Ordering::SeqCst);
    FAILED.store(failed, Ordering::SeqCst);
    let event = queue.fill(&tensor, &[8]);
    let outcome = (queue.completed(), event.and_then(|event| event.wait()));
    ended.wait().expect("a success that was observed stays one");
    drop((tensor, queue));
    AHEAD.store(0, Ordering::SeqCst);
    outcome
}

#[test]
fn progress_beyond_what_was_submitted_loses_the_device_and_frees_nothing() {
    for (ahead, failed) in [(1, 0), (2, 0), (1 << 40, 0), (0, 3), (0, u64::MAX), (u64::MAX, 0)] {
        let _alone = alone();
        let (completed, waited) = polled(ahead, failed);
        let error = completed.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DeviceLost, "{ahead} {failed}: {error}");
        assert_eq!(waited.unwrap_err().kind(), ErrorKind::DeviceLost, "{ahead} {failed}");
        assert!(error.to_string().starts_with("null:1: poll: the backend"), "{error}");
        let what = if ahead == u64::MAX { "succeeded without a result" } else { "2 tickets were submitted" };
        assert!(error.to_string().contains(what), "{error}");
        assert_eq!(FREED.load(Ordering::SeqCst), 0, "{ahead} {failed}: memory that may be in use");
    }
}

#[test]
fn plausible_progress_is_accepted() {
    let _alone = alone();
    let (completed, waited) = polled(0, 0);
    assert_eq!(completed.unwrap(), 2);
    waited.unwrap();
    assert_eq!(FREED.load(Ordering::SeqCst), 1);
}

#[test]
fn a_blocking_transfer_rejects_it_too() {
    let _alone = alone();
    let device = open(backend(|_| {}));
    let tensor = allocate(&*device);
    AHEAD.store(5, Ordering::SeqCst);
    let error = tensor.to_vec::<u8>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeviceLost, "{error}");
    assert_eq!(tensor.to_vec::<u8>().unwrap_err().kind(), ErrorKind::DeviceLost);
    drop((tensor, device));
    assert_eq!(FREED.load(Ordering::SeqCst), 0);
    AHEAD.store(0, Ordering::SeqCst);
}

/// Many threads submit to queues and poll them: progress of a submission that is under way is valid.
#[test]
fn progress_of_a_correct_backend_is_accepted_by_many_threads() {
    let _alone = alone();
    let device = open(backend(|_| {}));
    let queue = queue(&*device);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (queue, device) = (&queue, &device);
            scope.spawn(move || {
                let tensor = allocate(&**device);
                for _ in 0..300 {
                    queue.fill(&tensor, &[1]).unwrap();
                    queue.completed().unwrap();
                }
            });
        }
    });
    queue.wait_idle().unwrap();
    assert_eq!(queue.completed().unwrap(), 1200);
}

static SILENT: Mutex<RawError> = Mutex::new(RawError {
    struct_size: 72,
    kind: 6,
    code: 0,
    operation: Str::EMPTY,
    message: Str::EMPTY,
    symbol: Str::EMPTY,
    release: None,
});

unsafe extern "C" fn refuse_silently(
    _: Handle,
    _: *const runtime_core::abi::ModuleSource,
    _: *mut Handle,
) -> Status {
    &raw mut *SILENT.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn a_number(
    _: Handle,
    _: *const runtime_core::abi::ModuleSource,
    _: *mut Handle,
) -> Status {
    std::ptr::without_provenance_mut(7)
}

unsafe extern "C" fn nothing_loaded(
    _: Handle,
    _: *const runtime_core::abi::ModuleSource,
    _: *mut Handle,
) -> Status {
    std::ptr::null_mut()
}

unsafe extern "C" fn nothing_allocated(
    _: Handle,
    _: *const runtime_core::abi::AllocateRequest,
    _: *mut Allocation,
) -> Status {
    std::ptr::null_mut()
}

/// Allocates at these addresses.
unsafe extern "C" fn allocated<const HOST_POINTER: usize, const KERNEL_ADDRESS: u64>(
    _: Handle,
    _: *const runtime_core::abi::AllocateRequest,
    out: *mut Allocation,
) -> Status {
    let buffer = std::ptr::without_provenance_mut(1 << 16);
    let host_pointer = std::ptr::without_provenance_mut(HOST_POINTER);
    // SAFETY: core passes a place for the answer.
    let made = unsafe { &mut *out };
    *made = Allocation { buffer, host_pointer, kernel_address: KERNEL_ADDRESS, ..*made };
    std::ptr::null_mut()
}

unsafe extern "C" fn many_params(_: Handle, out: *mut KernelInfo) -> Status {
    // SAFETY: core passes a place for the answer.
    unsafe { (*out).params = std::ptr::without_provenance(1 << 16) };
    // SAFETY: as above.
    unsafe { (*out).param_count = 1 << 60 };
    std::ptr::null_mut()
}

unsafe extern "C" fn many_symbols(_: Handle, list: *mut *const Str, count: *mut usize) -> Status {
    // SAFETY: core passes a place for the list.
    unsafe { *list = std::ptr::without_provenance(1 << 16) };
    // SAFETY: core passes a place for the count.
    unsafe { *count = 1 << 59 };
    std::ptr::null_mut()
}

fn load(backend: LinkedBackend) -> Result<runtime_core::Module> {
    // SAFETY: null's builtins check their arguments.
    open(backend).load(&unsafe { ModuleSource::native("null", "scale_f32") })
}

fn said(error: &Error, kind: ErrorKind, words: &str) {
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, words));
}

#[test]
fn an_invalid_result_is_named() {
    let _alone = alone();
    let error = load(backend(|tables| tables.module.load = Some(refuse_silently))).unwrap_err();
    said(&error, ErrorKind::OutOfMemory, "null:1: load: an error of kind OutOfMemory (6) without a message");
    let error = load(backend(|tables| tables.module.load = Some(a_number))).unwrap_err();
    said(
        &error,
        ErrorKind::AbiMismatch,
        "null:1: load: it returned 0x7; expected null or a pointer to an error",
    );
    let error = load(backend(|tables| tables.module.load = Some(nothing_loaded))).unwrap_err();
    said(&error, ErrorKind::AbiMismatch, "null:1: load: it succeeded but returned a null module handle");
    let device = open(backend(|tables| tables.memory.allocate = Some(nothing_allocated)));
    let error = device.empty::<u8>([1]).unwrap_err();
    said(&error, ErrorKind::AbiMismatch, "null:1: allocate: it succeeded but returned a null buffer handle");
    let aligned = Placement::default().aligned(4096);
    for (allocate, words) in [
        (
            allocated::<8, 0> as unsafe extern "C" fn(_, _, _) -> _,
            "`host_pointer` is 0x8, which is not a valid address",
        ),
        (allocated::<0, 0x10_0010>, "`kernel_address` is 0x100010, which is not a multiple of 4096 bytes"),
    ] {
        let device = open(backend(|tables| tables.memory.allocate = Some(allocate)));
        let error = device.allocate(DType::U8, &[1], &aligned).unwrap_err();
        said(&error, ErrorKind::AbiMismatch, &format!("null:1: allocate: the field {words}"));
    }
}

#[test]
fn lists_beyond_memory_are_named() {
    let _alone = alone();
    let error = load(backend(|tables| tables.module.kernel_info = Some(many_params)))
        .and_then(|module| module.kernel("scale_f32"))
        .unwrap_err();
    let params = "KernelInfo.params has 1152921504606846976 elements; at most 65536 are accepted";
    said(&error, ErrorKind::AbiMismatch, &format!("null:1: kernel_info: {params}"));
    let error = load(backend(|tables| tables.module.symbols = Some(many_symbols)))
        .and_then(|module| module.symbols())
        .unwrap_err();
    let symbols = "the list of symbols has 576460752303423488 elements; at most 1048576 are accepted";
    said(&error, ErrorKind::AbiMismatch, &format!("null:1: symbols: {symbols}"));
}

#[test]
fn a_program_can_reopen_the_device() {
    let _alone = alone();
    let (completed, _) = polled(9, 0);
    assert_eq!(completed.unwrap_err().kind(), ErrorKind::DeviceLost);
    let device = open(backend(|_| {}));
    let x = device.tensor([2], &[1.0f32, 2.0]).unwrap();
    // SAFETY: null's builtins check their arguments.
    let module = device.load(&unsafe { ModuleSource::native("null", "scale_f32") }).unwrap();
    let args = [Arg::read_write(&x), Arg::scalar(2.0f32)];
    queue(&*device).call(&module.kernel("scale_f32").unwrap(), Geometry::single(), &args).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [2.0, 4.0]);
}
