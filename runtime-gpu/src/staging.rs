//! Staging of pageable memory: threads copy between it and pinned slots while the device copies between the slots and its own
//! memory.
//!
//! The driver does the same with one thread and one slot, which leaves most of the bus idle. A transfer starts when its stream
//! has reached it, so that no thread ever waits for a kernel; later submissions to the queue are deferred until the whole
//! transfer is enqueued (see [`crate::queue`]).

mod slot_ring;

use std::sync::Arc;
use std::time::Duration;

use runtime_core::backend::{Direction, HostRange, Pieces, StagedTransfer, StagingPool, copy_pieces};
use runtime_core::{Error, ErrorKind, Options, Result};

use crate::driver::abi::DevicePtr;
use crate::progress::StreamState;
use slot_ring::SlotRing;

/// How often a thread polls whether a stream has reached its transfer.
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// Numbers of threads, and the size of their slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StagingConfig {
    pub(crate) slot_bytes: usize,
    pub(crate) upload_threads: usize,
    pub(crate) download_threads: usize,
}

impl StagingConfig {
    /// Parses the device options; the defaults were fastest on an H200.
    ///
    /// # Errors
    /// `InvalidArgument` for a value out of range.
    pub(crate) fn parse(options: &Options) -> Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(8));
        let option = |key: &str, default: usize, range| {
            let value = options.integer_within(key, default as i64, range);
            value.map(|value| usize::try_from(value).unwrap_or(default))
        };
        Ok(Self {
            slot_bytes: option("staging_slot_kib", 1024, 64..=1 << 16)? << 10,
            upload_threads: option("upload_threads", cores, 1..=64)?,
            download_threads: option("download_threads", cores, 1..=64)?,
        })
    }

    const fn threads(self, direction: Direction) -> usize {
        match direction {
            Direction::Upload => self.upload_threads,
            Direction::Download => self.download_threads,
        }
    }
}

/// The staging threads of a device.
#[derive(Debug)]
pub(crate) struct Staging {
    config: StagingConfig,
    pool: StagingPool<Transfer>,
}

impl Staging {
    pub(crate) fn new(config: StagingConfig) -> Self {
        Self { config, pool: StagingPool::default() }
    }

    /// Submits a transfer between pageable host memory and the device as `ticket` of a queue.
    ///
    /// # Errors
    /// `OutOfResources` if no thread can be started; the ticket is not taken.
    pub(crate) fn submit(
        &self,
        state: &Arc<StreamState>,
        ticket: u64,
        host: HostRange,
        device: DevicePtr,
    ) -> Result<()> {
        let config = self.config;
        let max_threads = config.threads(host.direction());
        let pieces = Pieces::for_slots(host.size_bytes(), max_threads, config.slot_bytes);
        self.pool.start_threads(max_threads.min(pieces.count())).map_err(|error| {
            let message = format!("cannot start a staging thread: {error}; end other threads");
            Error::new(ErrorKind::OutOfResources, message)
        })?;
        // Before any thread can finish it.
        state.begin_staging(ticket);
        self.pool.submit(Transfer { state: Arc::clone(state), host, device, config }, pieces, false);
        Ok(())
    }
}

/// A transfer in progress.
#[derive(Debug)]
struct Transfer {
    state: Arc<StreamState>,
    host: HostRange,
    device: DevicePtr,
    config: StagingConfig,
}

impl StagedTransfer for Transfer {
    type Slots = SlotRing;

    const THREAD_NAME: &'static str = "cuda-staging";
    const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

    /// Whether the stream has reached it.
    fn is_ready(&self) -> bool {
        self.state.primary.is_stream_idle(self.state.stream).unwrap_or(true)
    }

    fn wait_until_ready(&self) -> Duration {
        POLL_INTERVAL
    }

    fn max_threads(&self) -> usize {
        self.config.threads(self.host.direction())
    }

    fn copy(&self, slots: &mut Option<SlotRing>, pieces: &Pieces) -> Result<()> {
        let slots = match slots {
            Some(slots) => slots,
            none => none.insert(SlotRing::allocate(&self.state.primary, self.config.slot_bytes)?),
        };
        copy_pieces(slots, self, self.host.direction(), pieces)
    }

    fn complete(&self, failure: Option<Error>) {
        self.state.finish_staging(failure.map_or(Ok(self.host.direction()), Err));
    }
}
