//! The interface for backend authors: traits to implement, and a macro that generates the function table, its
//! shims and the manifest.
//!
//! Implement [`Backend`], [`Device`], [`Buffer`], [`Module`], [`Kernel`] and [`Queue`]. Optional methods
//! default to `Unsupported`. Then, in the `cdylib` crate:
//!
//! ```ignore
//! runtime_core::export_backend!(MyBackend);
//! ```
//!
//! The macro defines the one exported symbol and the manifest section. Programs that link the backend
//! statically register a [`LinkedBackend`] instead. `tests/null` is a skeleton to copy.
//!
//! Only the `impl` of [`Backend`] is `unsafe`: with it, the author guarantees that every object created from the
//! backend is sound. Safe code can use those objects only through core, because [`Backend::open`] is `unsafe` to
//! call.
//!
//! Threads: every method may be called from any thread. For one queue, core never overlaps calls to `launch`,
//! `try_begin_inline`, `write`, `read`, `copy`, `copy_2d`, `fill`, `noop`, `timestamp`, `mark`, `flush` and
//! `wait_for`; `poll`, `wait`, `wait_blocking`, `run_inline` and `failure` may run concurrently with them.

mod cache_file;
mod device_bytes;
mod export;
mod fill_pattern;
mod host_borrow;
mod host_bytes;
mod library;
mod linked;
mod log;
mod polling;
mod read_file;
mod temporary_folder;
mod unread_timestamps;
mod views;

pub use cache_file::write_atomic;
pub use device_bytes::DeviceBytes;
#[doc(hidden)]
pub use export::enter;
pub use export::{catch_panic, manifest};
pub use fill_pattern::FillPattern;
pub use host_borrow::HostBorrowGuard;
pub use host_bytes::{HostBytes, HostBytesMut};
pub use library::{check_library, open_library};
pub use linked::LinkedBackend;
pub use log::{Level, Log};
pub use polling::{backoff, spin_until};
pub use read_file::read_file;
pub use temporary_folder::TemporaryFolder;
pub use unread_timestamps::UnreadTimestamps;
pub use views::{ArgRef, GraphNode, GraphWork, Launch, TensorArg, unsupported_argument};

pub use crate::model::kernel_info::{KernelInfo, Param, RunReport};
pub use crate::model::placement::QueueOptions;
pub use crate::platform::{cache_folder, is_privileged};

use std::time::Duration;

use crate::abi::{Progress, SubmitInfo};
use crate::{
    Access, DType, DeviceInfo, Error, ErrorKind, Geometry, MemoryUsage, Occupancy, OptionSpec, Options,
    Result, Telemetry,
};

/// The state of a backend: one per `Runtime`. Creating it makes no driver call.
///
/// # Safety
/// Core trusts a backend, and safe programs trust core. An implementation guarantees the following for its
/// state and for every [`Device`], [`Buffer`], [`Module`], [`Kernel`], [`Queue`] and [`Graph`] created from
/// it:
///
/// - A buffer has the requested size, and its addresses stay valid until it is freed.
/// - Borrowed memory ([`HostBytes`], [`HostBytesMut`], [`DeviceBytes`]) is not accessed after its ticket has
///   ended or its buffer has been freed. [`Queue::poll`] does not report a ticket as completed while its work
///   may still access memory.
/// - A kernel receives exactly the arguments of its launch, and no submission accesses memory outside the
///   ranges it was given.
/// - Objects may be used from any thread, within the limits that the traits document.
#[allow(unsafe_code, reason = "core trusts a backend's statements about memory")]
pub unsafe trait Backend: Sized + Send + Sync + 'static {
    /// Target name, the first part of a device string.
    const NAME: &'static str;
    /// Version of the backend; by default the version of the `runtime-core` it was built with.
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    /// A device of this backend.
    type Device: Device;

    /// Creates the state. `log` is valid for the life of the process.
    ///
    /// # Errors
    /// Only for failures that make the backend unusable; a missing driver is reported by
    /// [`Backend::devices`].
    ///
    /// # Safety
    /// The caller uses every object created from the backend as core does: valid arguments, ranges inside
    /// their buffers, ascending tickets, and nothing freed while in use. The methods rely on this without
    /// checking.
    unsafe fn open(log: Log) -> Result<Self>;

    /// Describes the options that devices and modules accept. Core validates options against this list.
    fn options() -> Vec<OptionSpec> {
        Vec::new()
    }

    /// Lists all devices, including unusable ones, with stable indices.
    ///
    /// # Errors
    /// `Unavailable`, with the reason, if there is no driver.
    fn devices(&self) -> Result<Vec<DeviceInfo>>;

    /// Opens a device, or one of its sub-devices.
    ///
    /// # Errors
    /// Any kind. A failure leaks nothing.
    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<Self::Device>;
}

/// An open device.
pub trait Device: Send + Sync + 'static {
    /// A buffer of this device.
    type Buffer: Buffer;
    /// A loaded module.
    type Module: Module;
    /// A queue of this device.
    type Queue: Queue<Buffer = Self::Buffer, Kernel = <Self::Module as Module>::Kernel, Graph = Self::Graph>;
    /// A native graph; [`NoGraph`] if the device has none.
    type Graph: Graph<Buffer = Self::Buffer>;

    /// Returns the free and total bytes of memory space `space`.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn memory_usage(&self, _space: u32) -> Result<MemoryUsage> {
        Err(Error::unsupported("memory_usage is not supported"))
    }

    /// Returns whether kernels on this device can access memory of `other`.
    ///
    /// # Errors
    /// Any error of the driver.
    fn peer_access(&self, _other: &Self) -> Result<bool> {
        Ok(false)
    }

    /// Reads current clocks, temperature, power and energy.
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

    /// Frees memory: in order with the work of `queue` if there is one; otherwise no work uses the buffer.
    fn free(&self, buffer: Self::Buffer, _queue: Option<&Self::Queue>) {
        drop(buffer);
    }

    /// Creates a buffer from host memory, which outlives the buffer.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn import_host(&self, _space: u32, _memory: HostBytesMut) -> Result<Self::Buffer> {
        Err(Error::unsupported("import_host is not supported"))
    }

    /// Creates a buffer from device memory that another library allocated. The memory outlives the buffer.
    ///
    /// # Errors
    /// `Unsupported` by default; `InvalidArgument` for memory that the driver does not recognise, where this
    /// can be detected.
    fn import_device_memory(&self, _space: u32, _memory: DeviceBytes) -> Result<Self::Buffer> {
        Err(Error::unsupported("import_device_memory is not supported"))
    }

    /// Loads code.
    ///
    /// # Errors
    /// `CompileFailed` with the complete log; `Unsupported` for a format that the device does not accept.
    fn load(&self, source: &Source<'_>) -> Result<Self::Module>;

    /// Creates a queue.
    ///
    /// # Errors
    /// `OutOfResources`; `Unsupported` on an embedded device.
    fn open_queue(&self, options: &QueueOptions) -> Result<Self::Queue>;

    /// Creates a native graph.
    ///
    /// # Errors
    /// `Unsupported` by default; core then replays the recording by submitting it again.
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

    /// Runs the flashed program and waits for it, at most until `deadline`.
    ///
    /// # Errors
    /// `Unsupported` by default; `Timeout` after `deadline`; `Failed` if the program reports a failure.
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
    /// Address that kernels use; 0 if kernels take a handle.
    fn kernel_address(&self) -> u64;

    /// Address at which the host can access the memory; null if it cannot. The host may read it as a slice of
    /// bytes before writing it, so memory from Rust's allocator must be allocated zeroed (`alloc_zeroed`);
    /// memory from a driver or the operating system counts as initialised, whatever it contains.
    fn host_pointer(&self) -> *mut u8 {
        std::ptr::null_mut()
    }
}

/// A loaded module.
pub trait Module: Send + Sync + 'static {
    /// An entry point of the module. It keeps alive whatever it needs from the module.
    type Kernel: Kernel;

    /// Names of the entry points, as far as they are known.
    fn symbols(&self) -> &[String];

    /// Looks up an entry point.
    ///
    /// # Errors
    /// `NotFound`; core adds the list of [`Module::symbols`].
    fn kernel(&self, name: &str) -> Result<Self::Kernel>;
}

/// An entry point.
pub trait Kernel: Send + Sync + 'static {
    /// Properties of the kernel, as the driver reports them.
    fn info(&self) -> KernelInfo {
        KernelInfo::default()
    }

    /// Occupancy of a compute unit by the kernel's groups when launched with this geometry and so much dynamic
    /// work-group memory.
    ///
    /// # Errors
    /// `Unsupported` by default; `InvalidArgument` for a geometry that cannot run at all.
    fn occupancy(&self, _geometry: &Geometry, _local_bytes: u64) -> Result<Occupancy> {
        Err(Error::unsupported("occupancy is not supported"))
    }
}

/// An in-order queue. A submission returns without waiting; if it fails, its ticket has not been taken.
pub trait Queue: Send + Sync + 'static {
    /// A buffer of the device.
    type Buffer: Buffer;
    /// A kernel of the device.
    type Kernel: Kernel;
    /// A graph of the device.
    type Graph;

    /// Submits a kernel launch. The arguments are valid during the call; the buffers live until the ticket
    /// ends.
    ///
    /// # Errors
    /// Any kind; the ticket is then not taken.
    fn launch(
        &self,
        submit: SubmitInfo,
        kernel: &Self::Kernel,
        launch: &Launch<'_, Self::Buffer>,
    ) -> Result<()>;

    /// Claims `ticket` for a launch on the calling thread, if the queue is idle. If this returns true, core
    /// calls `run_inline`.
    fn try_begin_inline(&self, _ticket: u64) -> bool {
        false
    }

    /// Runs a claimed launch on the calling thread and ends its ticket.
    ///
    /// # Errors
    /// The failure of the kernel, which also fails the ticket.
    fn run_inline(
        &self,
        _ticket: u64,
        _kernel: &Self::Kernel,
        _launch: &Launch<'_, Self::Buffer>,
    ) -> Result<()> {
        Err(Error::new(ErrorKind::Internal, "`run_inline` without a successful `try_begin_inline`"))
    }

    /// Runs a claimed no-op launch along the same path as [`Queue::run_inline`], and ends its ticket.
    ///
    /// # Errors
    /// `Internal` by default.
    fn run_inline_noop(&self, _ticket: u64) -> Result<()> {
        Err(Error::new(ErrorKind::Internal, "`run_inline` without a successful `try_begin_inline`"))
    }

    /// Submits a copy from host memory to a buffer. The host memory stays valid until the ticket ends.
    ///
    /// # Errors
    /// Any kind; the ticket is then not taken.
    fn write(
        &self,
        submit: SubmitInfo,
        destination: &Self::Buffer,
        offset: u64,
        source: HostBytes,
    ) -> Result<()>;

    /// Submits a copy from a buffer to host memory. The host memory stays valid until the ticket ends.
    ///
    /// # Errors
    /// Any kind; the ticket is then not taken.
    fn read(
        &self,
        submit: SubmitInfo,
        source: &Self::Buffer,
        offset: u64,
        destination: HostBytesMut,
    ) -> Result<()>;

    /// Submits a copy between buffers of this backend.
    ///
    /// # Errors
    /// Any kind; the ticket is then not taken.
    fn copy(
        &self,
        submit: SubmitInfo,
        destination: (&Self::Buffer, u64),
        source: (&Self::Buffer, u64),
        bytes: u64,
    ) -> Result<()>;

    /// Submits a pitched 2-D copy between buffers of this backend. With the capability `ROWS` it must work
    /// between any two buffers of the device.
    ///
    /// # Errors
    /// Any kind; the ticket is then not taken. On `Unsupported`, the default, core falls back to other
    /// copies.
    fn copy_2d(&self, _submit: SubmitInfo, _rows: &Copy2D<'_, Self::Buffer>) -> Result<()> {
        Err(Error::unsupported("copy_2d is not supported"))
    }

    /// Submits a fill of `bytes` bytes with a repeated pattern.
    ///
    /// # Errors
    /// Any kind; the ticket is then not taken.
    fn fill(
        &self,
        submit: SubmitInfo,
        destination: (&Self::Buffer, u64),
        bytes: u64,
        pattern: FillPattern,
    ) -> Result<()>;

    /// Submits a no-op kernel.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn noop(&self, _submit: SubmitInfo) -> Result<()> {
        Err(Error::unsupported("noop is not supported"))
    }

    /// Submits a device timestamp.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn timestamp(&self, _submit: SubmitInfo) -> Result<()> {
        Err(Error::unsupported("timestamp is not supported"))
    }

    /// Reads the timestamp of an ended ticket, in nanoseconds of the device's clock.
    ///
    /// # Errors
    /// `Unsupported` by default; `NotFound` if the ticket is not a timestamp or has been read already.
    fn read_timestamp(&self, _ticket: u64) -> Result<u64> {
        Err(Error::unsupported("read_timestamp is not supported"))
    }

    /// Submits a native graph under one ticket.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn replay(&self, _submit: SubmitInfo, _graph: &Self::Graph) -> Result<()> {
        Err(Error::unsupported("replay is not supported"))
    }

    /// Makes the completion of the last submission, `ticket`, individually observable.
    ///
    /// # Errors
    /// Any error of the driver.
    fn mark(&self, _ticket: u64) -> Result<()> {
        Ok(())
    }

    /// Submits batched work to the driver.
    ///
    /// # Errors
    /// Any error of the driver.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// Reports the progress of the queue. Never blocks.
    ///
    /// # Errors
    /// `DeviceLost`.
    fn poll(&self) -> Result<Progress>;

    /// Waits about `slice` at most for a marked ticket; may return early.
    ///
    /// # Errors
    /// `DeviceLost`.
    fn wait(&self, ticket: u64, slice: Duration) -> Result<()>;

    /// Blocks in the driver until `ticket` has ended; may return early. The ticket need not be marked or
    /// flushed. Must not wait for later tickets or hold up other calls. For drivers whose own wait is faster
    /// than polling.
    ///
    /// # Errors
    /// `Unsupported` by default; core then marks, flushes and waits in slices. `DeviceLost`.
    fn wait_blocking(&self, _ticket: u64) -> Result<()> {
        Err(Error::unsupported("wait_blocking is not supported"))
    }

    /// Makes later submissions wait, on the device, until `ticket` of `other` has ended. This is an execution
    /// dependency only: they run even if the ticket failed, because core decides which failures propagate.
    /// Must not block: core holds locks during the call.
    ///
    /// # Errors
    /// `Unsupported` by default, and for anything the device cannot wait for; core then blocks the submitting
    /// thread instead, with a deadline and without holding locks.
    fn wait_for(&self, _other: &Self, _ticket: u64) -> Result<()> {
        Err(Error::unsupported("wait_for is not supported"))
    }

    /// The error of the ticket `first_failed`.
    fn failure(&self) -> Option<Error>;
}

/// A native graph.
pub trait Graph: Send + Sync + 'static {
    /// A buffer of the device.
    type Buffer: Buffer;

    /// Replaces the arguments of launch node `node`.
    ///
    /// # Errors
    /// `Unsupported`.
    fn update(&mut self, node: u32, launch: &Launch<'_, Self::Buffer>) -> Result<()>;
}

/// Graph type of a device without native graphs.
#[derive(Debug)]
pub struct NoGraph<B>(std::marker::PhantomData<fn() -> B>);

impl<B: Buffer> Graph for NoGraph<B> {
    type Buffer = B;

    fn update(&mut self, _node: u32, _launch: &Launch<'_, B>) -> Result<()> {
        Err(Error::unsupported("update is not supported"))
    }
}

/// An allocation request.
#[derive(Debug)]
pub struct Allocate<'a, Q> {
    /// Index into `DeviceInfo::spaces`.
    pub space: u32,
    /// Size in bytes; 0 is valid.
    pub bytes: usize,
    /// Alignment in bytes: a power of two, at least that of the space.
    pub alignment_bytes: usize,
    /// Back the allocation with huge pages.
    pub huge_pages: bool,
    /// The queue that orders the allocation, and the ticket that the allocation takes; only with the
    /// capability `STREAM_ORDERED`.
    pub queue: Option<(&'a Q, u64)>,
}

/// A pitched 2-D copy, e.g. of a block of columns. Source and destination do not overlap.
#[derive(Debug)]
pub struct Copy2D<'a, B> {
    /// Destination buffer, and offset of the first byte written.
    pub destination: (&'a B, u64),
    /// Bytes between the starts of consecutive destination rows; at least `row_bytes`.
    pub destination_pitch: u64,
    /// Source buffer, and offset of the first byte read.
    pub source: (&'a B, u64),
    /// Bytes between the starts of consecutive source rows; at least `row_bytes`.
    pub source_pitch: u64,
    /// Bytes per row; at least 1.
    pub row_bytes: u64,
    /// Number of rows; at least 1.
    pub rows: u64,
}

impl<B> Copy2D<'_, B> {
    /// Bytes from the first byte of the first row to the last byte of the last row, with rows `pitch` bytes
    /// apart.
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
    /// Path of the source file; may be empty.
    pub path: &'a str,
    /// The code; `None` if the backend is to read `path`.
    pub code: Option<&'a [u8]>,
    /// Validated load options.
    pub options: &'a Options,
}

/// The tensors and arguments of an embedded program.
#[derive(Debug)]
pub struct Program<'a> {
    /// The tensors, which are created, filled and checked on the device.
    pub tensors: Vec<TensorDescription<'a>>,
    /// The arguments. A tensor argument is an index into `tensors`.
    pub args: Vec<ProgramArg<'a>>,
}

/// An argument of an embedded program.
#[derive(Clone, Copy, Debug)]
pub enum ProgramArg<'a> {
    /// Index into [`Program::tensors`].
    Tensor(u32),
    /// A scalar: its type, and its bytes as a little-endian, zero-extended word.
    Scalar(DType, u64),
    /// Bytes passed by value.
    Bytes(&'a [u8]),
}

/// Description of a tensor that an embedded program uses.
#[derive(Clone, Copy, Debug)]
pub struct TensorDescription<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: &'a [i64],
    /// How the program uses the tensor.
    pub access: Access,
    /// Initial contents; `None` to fill the tensor from `seed`.
    pub data: Option<&'a [u8]>,
    /// Seed of the generator that fills the tensor on the device.
    pub seed: u64,
}
