//! Staging of pageable memory: threads copy between it and pinned slots while the device copies between the slots and its own
//! memory.
//!
//! The driver does the same with one thread and one slot, which leaves most of the bus idle. A transfer starts when its stream
//! has reached it, so that no thread ever waits for a kernel; later submissions to the queue are deferred until the whole
//! transfer is enqueued (see [`crate::queue`]).

mod slot_ring;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use runtime_core::backend::{HostRange, Pieces, StagedTransfer, StagingOptions, StagingPool, copy_pieces};
use runtime_core::{Error, Result};

use crate::driver::abi::DevicePtr;
use crate::progress::StreamState;
use slot_ring::SlotRing;

/// How often a thread polls whether a stream has reached its transfer.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// A device that a transfer keeps open.
pub(crate) type KeptDevice = Arc<dyn Any + Send + Sync>;

/// The staging threads of a device.
#[derive(Debug)]
pub(crate) struct Staging {
    options: StagingOptions,
    pool: StagingPool<Transfer>,
}

impl Staging {
    pub(crate) fn new(options: StagingOptions) -> Self {
        Self { options, pool: StagingPool::default() }
    }

    /// Submits a transfer between pageable host memory and the device as `ticket` of a queue.
    ///
    /// # Errors
    /// `OutOfResources` if no thread can be started; the ticket is not taken.
    pub(crate) fn submit(
        &self,
        (state, device): (&Arc<StreamState>, KeptDevice),
        ticket: u64,
        host: HostRange,
        at: DevicePtr,
    ) -> Result<()> {
        let StagingOptions { threads, slot_bytes } = self.options;
        let pieces = Pieces::for_slots(host.size_bytes(), threads, slot_bytes);
        self.pool.start_threads(threads.min(pieces.count()))?;
        // Before any thread can finish it.
        state.begin_staging(ticket);
        let transfer = Transfer { state: Arc::clone(state), _device: device, host, at, slot_bytes };
        self.pool.submit(transfer, pieces, false);
        Ok(())
    }
}

/// A transfer in progress.
#[derive(Debug)]
struct Transfer {
    state: Arc<StreamState>,
    /// Otherwise its drop would end the threads before the transfer.
    _device: KeptDevice,
    host: HostRange,
    at: DevicePtr,
    slot_bytes: usize,
}

impl StagedTransfer for Transfer {
    type Slots = SlotRing;

    const THREAD_NAME: &'static str = "cuda-staging";

    /// Whether the stream has reached it.
    fn is_ready(&self) -> bool {
        self.state.primary.is_stream_idle(self.state.stream).unwrap_or(true)
    }

    fn wait_until_ready(&self) -> Duration {
        POLL_INTERVAL
    }

    fn copy(&self, slots: &mut Option<SlotRing>, pieces: &Pieces) -> Result<()> {
        let slots = match slots {
            Some(slots) => slots,
            none => none.insert(SlotRing::allocate(&self.state.primary, self.slot_bytes)?),
        };
        copy_pieces(slots, self, self.host.direction(), pieces)
    }

    fn complete(&self, failure: Option<Error>) {
        self.state.finish_staging(failure.map_or(Ok(self.host.direction()), Err));
    }
}
