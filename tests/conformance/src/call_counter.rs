//! A layer over a backend's table that counts the calls of each queue, to check on any device which calls core makes for
//! submissions, waits and events.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, RwLock};

use runtime_core::abi::{
    BackendTable, Handle, Header, Launch, Progress, QueueOptions, QueueTable, Status, SubmitInfo,
};
use runtime_core::backend::LinkedBackend;
use runtime_core::{Error, ErrorKind, Queue, Result};

use crate::backend_table::{copy_known, leak, struct_size, sub_table};
use crate::fixture::Fixture;

/// The maximum number of backends with a layer: `open` has no user data, so each layer needs its own function.
const MAX_LAYERS: usize = 16;

/// The queue tables below the layers, by index of the layer.
static BELOW: [OnceLock<QueueTable>; MAX_LAYERS] = [const { OnceLock::new() }; MAX_LAYERS];
/// The layers, by the address of the backend's table.
static LAYERS: Mutex<Vec<(usize, LinkedBackend)>> = Mutex::new(Vec::new());
/// Open queues, by handle.
static QUEUES: LazyLock<RwLock<HashMap<usize, CountedQueue>>> = LazyLock::new(RwLock::default);

thread_local! {
    /// The counters of the queue that this thread opened last.
    static OPENED: RefCell<Option<Arc<Counters>>> = const { RefCell::new(None) };
}

/// An open queue.
#[derive(Clone, Debug)]
struct CountedQueue {
    below: &'static QueueTable,
    counters: Arc<Counters>,
}

/// The call counters of a queue.
#[derive(Debug)]
pub(crate) struct Calls(Arc<Counters>);

/// Opens a queue of a device behind a layer.
///
/// # Errors
/// As `open_queue`.
pub(crate) fn open_queue(fixture: &Fixture) -> Result<(Queue, Calls)> {
    let queue = fixture.queue()?;
    let counters = OPENED
        .take()
        .ok_or_else(|| Error::new(ErrorKind::Internal, "the queue was not opened through the layer"))?;
    Ok((queue, Calls(counters)))
}

/// Puts a layer over a backend; returns the existing one if it has one.
///
/// # Errors
/// `OutOfResources` for more than `MAX_LAYERS` backends.
pub(crate) fn layer_over(backend: LinkedBackend) -> Result<LinkedBackend> {
    let backend_table = backend.table();
    let address = std::ptr::from_ref(backend_table).addr();
    let mut layers = LAYERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, layer)) = layers.iter().find(|(known, _)| *known == address) {
        return Ok(*layer);
    }
    let (below, open) = BELOW
        .get(layers.len())
        .zip(OPEN.get(layers.len()))
        .ok_or_else(|| Error::new(ErrorKind::OutOfResources, format!("more than {MAX_LAYERS} backends")))?;
    // SAFETY: the header of a table states its size.
    let table: BackendTable = unsafe { copy_known(backend_table, backend_table.header.struct_size) };
    let below = below.get_or_init(|| sub_table(table.queue));
    let queue = QueueTable { open: below.open.map(|_| *open), ..wrap(below) };
    let header = Header { struct_size: struct_size::<BackendTable>(), ..table.header };
    let layer = leak(BackendTable { header, queue: leak(queue), ..table });
    // SAFETY: the layer only forwards calls.
    let layer = unsafe { LinkedBackend::from_table(layer) };
    layers.push((address, layer));
    Ok(layer)
}

type Open = unsafe extern "C" fn(Handle, *const QueueOptions, *mut Handle) -> Status;

const OPEN: [Open; MAX_LAYERS] = [
    open::<0>, open::<1>, open::<2>, open::<3>, open::<4>, open::<5>, open::<6>, open::<7>, open::<8>,
    open::<9>, open::<10>, open::<11>, open::<12>, open::<13>, open::<14>, open::<15>,
];

unsafe extern "C" fn open<const N: usize>(
    device: Handle,
    options: *const QueueOptions,
    out: *mut Handle,
) -> Status {
    let below = BELOW[N].get().expect("a layer has a table below it");
    let open = below.open.expect("only present functions are wrapped");
    // SAFETY: forwards core's arguments.
    let status = unsafe { open(device, options, out) };
    if status.is_null() {
        let counted_queue = CountedQueue { below, counters: Arc::default() };
        OPENED.set(Some(counted_queue.counters.clone()));
        // SAFETY: `out` is valid, and the backend has written the handle.
        let queue = unsafe { *out };
        QUEUES.write().unwrap_or_else(PoisonError::into_inner).insert(queue.addr(), counted_queue);
    }
    status
}

unsafe extern "C" fn close(queue: Handle) {
    // Before closing: a new queue may get the same handle.
    let closed = QUEUES.write().unwrap_or_else(PoisonError::into_inner).remove(&queue.addr());
    let close = closed
        .and_then(|counted_queue| counted_queue.below.close)
        .expect("only present functions are wrapped");
    // SAFETY: forwards core's argument.
    unsafe { close(queue) };
}

fn counted_queue(queue: Handle) -> CountedQueue {
    let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
    queues.get(&queue.addr()).cloned().expect("core uses only open queues")
}

/// Defines a counting wrapper for each function, under its own name.
macro_rules! count_calls {
    ($($slot:ident($($arg:ident: $ty:ty),*);)*) => {
        #[derive(Debug, Default)]
        struct Counters {
            $($slot: AtomicU64,)*
        }

        /// Calls of each function for one queue.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Counts {
            $(pub(crate) $slot: u64,)*
        }

        impl Calls {
            /// The counts so far.
            pub(crate) fn counts(&self) -> Counts {
                Counts { $($slot: self.0.$slot.load(Ordering::SeqCst),)* }
            }
        }

        /// A table of counting functions; a function missing in the backend stays missing.
        fn wrap(below: &QueueTable) -> QueueTable {
            QueueTable {
                struct_size: struct_size::<QueueTable>(),
                close: below.close.map(|_| { let function: unsafe extern "C" fn(Handle) = close; function }),
                $($slot: below.$slot.map(|_| {
                    let function: unsafe extern "C" fn(Handle, $($ty),*) -> Status = $slot;
                    function
                }),)*
                ..*below
            }
        }

        $(unsafe extern "C" fn $slot(queue: Handle, $($arg: $ty),*) -> Status {
            let CountedQueue { below, counters } = counted_queue(queue);
            counters.$slot.fetch_add(1, Ordering::SeqCst);
            let function = below.$slot.expect("only present functions are wrapped");
            // SAFETY: forwards core's arguments.
            unsafe { function(queue, $($arg),*) }
        })*
    };
}

count_calls! {
    launch(submit: SubmitInfo, kernel: Handle, launch: *const Launch);
    run_inline(ticket: u64, kernel: Handle, launch: *const Launch);
    write(submit: SubmitInfo, destination: Handle, offset: u64, source: *const u8, bytes: u64);
    read(submit: SubmitInfo, source: Handle, offset: u64, destination: *mut u8, bytes: u64);
    copy(submit: SubmitInfo, destination: Handle, destination_offset: u64, source: Handle, source_offset: u64, bytes: u64);
    fill(submit: SubmitInfo, destination: Handle, offset: u64, bytes: u64, pattern: *const u8, pattern_bytes: u32);
    noop(submit: SubmitInfo);
    timestamp(submit: SubmitInfo);
    signal(ticket: u64);
    flush();
    poll(out: *mut Progress);
    wait(ticket: u64, slice_ns: u64);
    wait_for(other: Handle, ticket: u64);
}
