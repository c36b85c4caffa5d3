//! For backend authors: traits, and one macro line that makes the table, the shims and the manifest.
//!
//! Implement [`Backend`], [`Device`], [`Buffer`], [`Module`], [`Kernel`] and [`Queue`]; what a device cannot do
//! keeps its default, which answers `Unsupported`. Then, in the crate that becomes the `cdylib`:
//!
//! ```ignore
//! runtime_core::export_backend!(MyBackend);
//! ```
//!
//! which makes the one exported symbol and the manifest section. Programs that link the backend in statically
//! register a [`LinkedBackend`] instead. `tests/null` is the skeleton to copy.
//!
//! One word of it is `unsafe`: the `impl` of [`Backend`], by which its author vouches for everything that is made from
//! it. Safe code cannot reach a backend's objects but through core, since [`Backend::open`] is `unsafe` to call.
//!
//! Threads: every method may be called from any thread. Submissions of one queue (`launch`, `claim`, `write`,
//! `read`, `copy`, `copy_rows`, `fill`, `empty`, `timestamp`, `mark`, `flush`, `wait_for`) never overlap; `poll`, `wait`,
//! `finish`, `run` and `failure` may run beside them.

mod cache_file;
mod device_bytes;
mod export;
mod host_bytes;
mod library;
mod linked;
mod log;
mod temporary_folder;
mod views;

pub use cache_file::keep_file;
pub use device_bytes::DeviceBytes;
#[doc(hidden)]
pub use export::enter;
pub use export::{catch_panic, manifest};
pub use host_bytes::{HostBytes, HostBytesMut};
pub use library::{check_library, open_library};
pub use linked::LinkedBackend;
pub use log::{Level, Log};
pub use temporary_folder::TemporaryFolder;
pub use views::{ArgRef, GraphNode, GraphWork, Launch, TensorArg};

pub use crate::model::kernel_info::{KernelInfo, Param, RunReport};
pub use crate::model::placement::QueueOptions;
pub use crate::platform::{cache_folder, is_privileged};

use std::time::Duration;

use crate::abi::{Place, Progress};
use crate::{
    Access, DType, DeviceInfo, Error, ErrorKind, Geometry, MemoryUsage, Occupancy, OptionSpec, Options,
    Result, Telemetry,
};

/// A backend's state: one per `Runtime`. Making it touches no driver.
///
/// # Safety
/// Core believes a backend, and safe programs believe core. Whoever implements this trait vouches for its state, and for
/// the [`Device`], [`Buffer`], [`Module`], [`Kernel`], [`Queue`] and [`Graph`] made from it:
///
/// - A buffer has as many bytes as were asked for, and its addresses stay valid until it is freed.
/// - Host memory that is lent ([`HostBytes`], [`HostBytesMut`], [`DeviceBytes`]) is not touched once its ticket has
///   ended, or its buffer is freed. [`Queue::poll`] reports no ticket as completed that may still touch memory.
/// - A kernel gets the arguments of its launch, and no submission touches memory outside the ranges that it is given.
/// - Objects may be used from any thread, as the comments of the traits allow it.
#[allow(unsafe_code, reason = "core believes what a backend says of memory")]
pub unsafe trait Backend: Sized + Send + Sync + 'static {
    /// Name of the target: the first part of a device string.
    const NAME: &'static str;
    /// Version of the backend itself; by default that of the `runtime-core` that it was built with.
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    /// Its devices.
    type Device: Device;

    /// Makes the state. `log` lasts for the life of the process.
    ///
    /// # Errors
    /// Only what makes the backend useless; a missing driver is reported by [`Backend::devices`].
    ///
    /// # Safety
    /// The caller does with all that is made from it what core does: valid arguments, ranges inside their buffers,
    /// ascending tickets, and nothing freed that is in use. Methods of the objects rely on it, and check nothing.
    unsafe fn open(log: Log) -> Result<Self>;

    /// The options that devices and modules accept; core validates them.
    fn options() -> Vec<OptionSpec> {
        Vec::new()
    }

    /// Lists all devices with stable indices, unusable ones included.
    ///
    /// # Errors
    /// `Unavailable`, with the reason, when there is no driver.
    fn devices(&self) -> Result<Vec<DeviceInfo>>;

    /// Opens a device, or one of its sub-devices.
    ///
    /// # Errors
    /// Any kind; a failure leaves nothing behind.
    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<Self::Device>;
}

/// An opened device.
pub trait Device: Send + Sync + 'static {
    /// Its memory.
    type Buffer: Buffer;
    /// Its loaded code.
    type Module: Module;
    /// Its queues.
    type Queue: Queue<Buffer = Self::Buffer, Kernel = <Self::Module as Module>::Kernel, Graph = Self::Graph>;
    /// Its native graphs; [`NoGraph`] if it has none.
    type Graph: Graph<Buffer = Self::Buffer>;

    /// Free and total bytes of memory space `space`.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn memory_usage(&self, _space: u32) -> Result<MemoryUsage> {
        Err(Error::unsupported("memory_usage is not supported"))
    }

    /// Whether kernels of this device can use memory of `other`.
    ///
    /// # Errors
    /// Whatever the driver says.
    fn peer_access(&self, _other: &Self) -> Result<bool> {
        Ok(false)
    }

    /// Current clocks, temperature, energy.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn telemetry(&self) -> Result<Telemetry> {
        Err(Error::unsupported("telemetry is not supported"))
    }

    /// Allocates memory.
    ///
    /// # Errors
    /// `OutOfMemory`; `InvalidArgument` for a space or alignment that does not exist.
    fn allocate(&self, request: &Allocate<'_, Self::Queue>) -> Result<Self::Buffer>;

    /// Frees memory: in order with `queue`'s work if one is given, else nothing uses it any more.
    fn free(&self, buffer: Self::Buffer, _queue: Option<&Self::Queue>) {
        drop(buffer);
    }

    /// Wraps host memory that outlives the buffer.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn import(&self, _space: u32, _memory: HostBytesMut) -> Result<Self::Buffer> {
        Err(Error::unsupported("import is not supported"))
    }

    /// Wraps memory of the device that another library allocated, and that outlives the buffer.
    ///
    /// # Errors
    /// `Unsupported` by default; `InvalidArgument` for memory that the driver does not know, where it can tell.
    fn adopt(&self, _space: u32, _memory: DeviceBytes) -> Result<Self::Buffer> {
        Err(Error::unsupported("adopt is not supported"))
    }

    /// Loads code.
    ///
    /// # Errors
    /// `CompileFailed` with the whole log; `Unsupported` for a format that the device does not take.
    fn load(&self, source: &Source<'_>) -> Result<Self::Module>;

    /// Makes a queue.
    ///
    /// # Errors
    /// `OutOfResources`; `Unsupported` on an embedded device.
    fn open_queue(&self, options: &QueueOptions) -> Result<Self::Queue>;

    /// Makes a native graph.
    ///
    /// # Errors
    /// `Unsupported` by default: core then submits the recording again.
    fn instantiate(
        &self,
        _nodes: &[GraphNode<'_, Self::Buffer, <Self::Module as Module>::Kernel>],
    ) -> Result<Self::Graph> {
        Err(Error::unsupported("instantiate is not supported"))
    }

    /// Flashes an embedded device. `args` refer to `tensors` by index.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn flash(&self, _image: &Source<'_>, _program: &Program<'_>) -> Result<()> {
        Err(Error::unsupported("flash is not supported"))
    }

    /// Runs the flashed program; `Timeout` after `deadline`.
    ///
    /// # Errors
    /// `Unsupported` by default; `Timeout`; `Failed` when the program says so.
    fn run(&self, _deadline: Duration) -> Result<RunReport> {
        Err(Error::unsupported("run is not supported"))
    }

    /// Reads bytes of a tensor of the flashed program.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn read(&self, _tensor: u32, _offset: u64, _destination: &mut [u8]) -> Result<()> {
        Err(Error::unsupported("read is not supported"))
    }
}

/// Memory of a device.
pub trait Buffer: Send + Sync + 'static {
    /// Address that kernels see; 0 where kernels take a handle.
    fn kernel_address(&self) -> u64;

    /// Where the program can reach the memory; null where it cannot. The program reads it as a slice of bytes without having
    /// written any: memory of Rust's own allocator must be zeroed when it is allocated (`alloc_zeroed`), that of a driver or
    /// of the system is initialised, whatever it holds.
    fn host_pointer(&self) -> *mut u8 {
        std::ptr::null_mut()
    }
}

/// Loaded code.
pub trait Module: Send + Sync + 'static {
    /// Its entry points. Holds what it needs of the module.
    type Kernel: Kernel;

    /// Names of the entry points, as far as the code tells.
    fn symbols(&self) -> &[String];

    /// Finds an entry point.
    ///
    /// # Errors
    /// `NotFound`; core adds the list of [`Module::symbols`].
    fn kernel(&self, name: &str) -> Result<Self::Kernel>;
}

/// An entry point.
pub trait Kernel: Send + Sync + 'static {
    /// What the driver says of it.
    fn info(&self) -> KernelInfo {
        KernelInfo::default()
    }

    /// How much of a compute unit its groups can fill at once, when they are launched like this.
    ///
    /// # Errors
    /// `Unsupported` by default; `InvalidArgument` for a geometry that cannot run at all.
    fn occupancy(&self, _geometry: &Geometry) -> Result<Occupancy> {
        Err(Error::unsupported("occupancy is not supported"))
    }
}

/// An in-order queue. Submissions return at once; an error means that the ticket was not taken.
pub trait Queue: Send + Sync + 'static {
    /// Memory of its device.
    type Buffer: Buffer;
    /// Kernels of its device.
    type Kernel: Kernel;
    /// Graphs of its device.
    type Graph;

    /// Submits a kernel. The arguments are valid during the call; the buffers live until the ticket ends.
    ///
    /// # Errors
    /// A refusal: the ticket is not taken.
    fn launch(&self, place: Place, kernel: &Self::Kernel, launch: &Launch<'_, Self::Buffer>) -> Result<()>;

    /// Takes `ticket` for a launch on the caller's thread if the queue is idle; `run` follows.
    fn claim(&self, _ticket: u64) -> bool {
        false
    }

    /// Runs a claimed launch and ends its ticket.
    ///
    /// # Errors
    /// The kernel's failure, which also fails the ticket.
    fn run(&self, _ticket: u64, _kernel: &Self::Kernel, _launch: &Launch<'_, Self::Buffer>) -> Result<()> {
        Err(Error::new(ErrorKind::Internal, "`run` without a successful `claim`"))
    }

    /// Runs a claimed launch of a kernel that does nothing, by the same way as [`Queue::run`], and ends its ticket.
    ///
    /// # Errors
    /// `Internal` by default.
    fn run_empty(&self, _ticket: u64) -> Result<()> {
        Err(Error::new(ErrorKind::Internal, "`run` without a successful `claim`"))
    }

    /// Copies host memory, which lives until the ticket ends, into a buffer.
    ///
    /// # Errors
    /// A refusal: the ticket is not taken.
    fn write(&self, place: Place, destination: &Self::Buffer, offset: u64, source: HostBytes) -> Result<()>;

    /// Copies a buffer into host memory, which lives until the ticket ends.
    ///
    /// # Errors
    /// A refusal: the ticket is not taken.
    fn read(&self, place: Place, source: &Self::Buffer, offset: u64, destination: HostBytesMut)
    -> Result<()>;

    /// Copies between buffers of the backend.
    ///
    /// # Errors
    /// A refusal: the ticket is not taken.
    fn copy(
        &self,
        place: Place,
        destination: (&Self::Buffer, u64),
        source: (&Self::Buffer, u64),
        bytes: u64,
    ) -> Result<()>;

    /// Copies rows between buffers of the backend; with the capability `ROWS`, between all that are the device's own.
    ///
    /// # Errors
    /// A refusal: the ticket is not taken. `Unsupported`, also by default, makes core go another way.
    fn copy_rows(&self, _place: Place, _rows: &RowCopy<'_, Self::Buffer>) -> Result<()> {
        Err(Error::unsupported("copy_rows is not supported"))
    }

    /// Fills `bytes` bytes with a pattern of 1, 2, 4, 8 or 16 bytes.
    ///
    /// # Errors
    /// A refusal: the ticket is not taken.
    fn fill(&self, place: Place, destination: (&Self::Buffer, u64), bytes: u64, pattern: &[u8])
    -> Result<()>;

    /// Submits a kernel that does nothing.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn empty(&self, _place: Place) -> Result<()> {
        Err(Error::unsupported("empty is not supported"))
    }

    /// Submits the recording of a device timestamp.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn timestamp(&self, _place: Place) -> Result<()> {
        Err(Error::unsupported("timestamp is not supported"))
    }

    /// Reads the timestamp of an ended ticket, in nanoseconds of the device's clock.
    ///
    /// # Errors
    /// `Unsupported` by default; `NotFound` if that ticket is no timestamp or was read before.
    fn read_timestamp(&self, _ticket: u64) -> Result<u64> {
        Err(Error::unsupported("read_timestamp is not supported"))
    }

    /// Submits a native graph as one ticket.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn replay(&self, _place: Place, _graph: &Self::Graph) -> Result<()> {
        Err(Error::unsupported("replay is not supported"))
    }

    /// Makes the end of the last submission, `ticket`, observable by itself.
    ///
    /// # Errors
    /// Whatever the driver says.
    fn mark(&self, _ticket: u64) -> Result<()> {
        Ok(())
    }

    /// Hands batched submissions to the driver.
    ///
    /// # Errors
    /// Whatever the driver says.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// How far the queue is. Never blocks.
    ///
    /// # Errors
    /// `DeviceLost`.
    fn poll(&self) -> Result<Progress>;

    /// Waits up to about `slice` for a marked ticket; may return early.
    ///
    /// # Errors
    /// `DeviceLost`.
    fn wait(&self, ticket: u64, slice: Duration) -> Result<()>;

    /// Blocks in the driver until `ticket`, which need be neither marked nor flushed, has ended; may return early. Waits for
    /// nothing later, and keeps no other call waiting. For drivers whose own wait is faster than looking.
    ///
    /// # Errors
    /// `Unsupported` by default: core then marks, flushes, and waits in slices. `DeviceLost`.
    fn finish(&self, _ticket: u64) -> Result<()> {
        Err(Error::unsupported("finish is not supported"))
    }

    /// Makes later submissions wait for the end of `ticket` of `other`, on the device. Only an order: they run even if the
    /// ticket failed, since core knows which failures travel. Does not block: core holds locks meanwhile.
    ///
    /// # Errors
    /// `Unsupported` by default, and for what the device cannot wait for: core then blocks the submitting thread instead, with
    /// a deadline and without locks.
    fn wait_for(&self, _other: &Self, _ticket: u64) -> Result<()> {
        Err(Error::unsupported("wait_for is not supported"))
    }

    /// Why `first_failed` failed.
    fn failure(&self) -> Option<Error>;
}

/// A native graph.
pub trait Graph: Send + Sync + 'static {
    /// Memory of its device.
    type Buffer: Buffer;

    /// Replaces the arguments of launch node `node`.
    ///
    /// # Errors
    /// `Unsupported`.
    fn update(&mut self, node: u32, launch: &Launch<'_, Self::Buffer>) -> Result<()>;
}

/// The graph type of a device without native graphs.
#[derive(Debug)]
pub struct NoGraph<B>(std::marker::PhantomData<fn() -> B>);

impl<B: Buffer> Graph for NoGraph<B> {
    type Buffer = B;

    fn update(&mut self, _node: u32, _launch: &Launch<'_, B>) -> Result<()> {
        Err(Error::unsupported("update is not supported"))
    }
}

/// Request for an allocation.
#[derive(Debug)]
pub struct Allocate<'a, Q> {
    /// Index into `DeviceInfo::spaces`.
    pub space: u32,
    /// Size; 0 is valid.
    pub bytes: usize,
    /// A power of two, at least the space's own alignment.
    pub alignment_bytes: usize,
    /// Back it with huge pages.
    pub huge_pages: bool,
    /// The queue in whose order it is allocated, and the ticket that it takes; only with the capability `STREAM_ORDERED`.
    pub queue: Option<(&'a Q, u64)>,
}

/// A copy of rows: of a block of columns, say. No byte is of both sides.
#[derive(Debug)]
pub struct RowCopy<'a, B> {
    /// Where to, and the first byte written.
    pub destination: (&'a B, u64),
    /// Bytes from one written row to the next, at least `row_bytes`.
    pub destination_pitch: u64,
    /// Where from, and the first byte read.
    pub source: (&'a B, u64),
    /// Bytes from one read row to the next, at least `row_bytes`.
    pub source_pitch: u64,
    /// Bytes of a row, at least 1.
    pub row_bytes: u64,
    /// Number of rows, at least 1.
    pub rows: u64,
}

impl<B> RowCopy<'_, B> {
    /// Bytes from the first to the last of rows that lie `pitch` apart, gaps included.
    #[must_use]
    pub const fn span_bytes(&self, pitch: u64) -> u64 {
        pitch.saturating_mul(self.rows.saturating_sub(1)).saturating_add(self.row_bytes)
    }
}

/// Code to load.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// A code format.
    pub format: &'a str,
    /// Where it came from; may be empty.
    pub path: &'a str,
    /// The bytes; `None`: read `path`.
    pub code: Option<&'a [u8]>,
    /// Validated load options.
    pub options: &'a Options,
}

/// A program's tensors and arguments, for an embedded device.
#[derive(Debug)]
pub struct Program<'a> {
    /// The tensors, created, filled and checked on the device.
    pub tensors: Vec<TensorDescription<'a>>,
    /// The arguments: a tensor argument's address is its index in `tensors`.
    pub args: Vec<ProgramArg<'a>>,
}

/// An argument of an embedded program.
#[derive(Clone, Copy, Debug)]
pub enum ProgramArg<'a> {
    /// Index into [`Program::tensors`].
    Tensor(u32),
    /// A scalar: its type and its bytes in a little-endian word.
    Scalar(DType, u64),
    /// Bytes by value.
    Bytes(&'a [u8]),
}

/// A tensor of an embedded device: described, not held.
#[derive(Clone, Copy, Debug)]
pub struct TensorDescription<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: &'a [i64],
    /// How the program uses it.
    pub access: Access,
    /// Initial bytes; `None`: filled from `seed`.
    pub data: Option<&'a [u8]>,
    /// Seed of the generator that fills it on the device.
    pub seed: u64,
}
