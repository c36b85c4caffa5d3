//! Open devices and their memory.

use std::time::Duration;

use super::{CounterSet, Graph, Module, Program, Queue, Source};
use crate::backend::{Buffer, DeviceBytes, GraphNode, HostBytesMut, NativeHandle};
use crate::model::compiled::{CompiledCode, Fit};
use crate::model::counters::CounterInfo;
use crate::model::device_info::{MemoryUsage, Telemetry};
use crate::model::kernel_info::{Register, RunReport};
use crate::model::throttle_reasons::ThrottleReasons;
use crate::{Error, QueueOptions, Result};

/// An open device.
pub trait Device: Send + Sync + 'static {
    /// A buffer of this device.
    type Buffer: Buffer;
    /// A loaded module.
    type Module: Module;
    /// A queue of this device.
    type Queue: Queue<Buffer = Self::Buffer, Kernel = <Self::Module as Module>::Kernel, Graph = Self::Graph>;
    /// A native graph; [`NoGraph`](super::NoGraph) if the device has none.
    type Graph: Graph<Buffer = Self::Buffer>;

    /// Whether [`Device::allocate`] takes requests for huge pages.
    const HUGE_PAGES: bool = false;

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

    /// Returns why the device runs slower than it could, now or at any time since the last call. It is called between
    /// kernels, so it must be fast.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn throttle_reasons(&self) -> Result<ThrottleReasons> {
        Err(Error::unsupported("throttle_reasons is not supported"))
    }

    /// Returns the IDs of other processes that use the device; 0 for one of another PID namespace.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn processes(&self) -> Result<Vec<u32>> {
        Err(Error::unsupported("processes is not supported"))
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

    /// A text that identifies everything outside `source` that [`Device::compile`]'s result depends on: the compiler and
    /// its version, the processor, environment variables, the content of included files. Core keeps compiled code under
    /// it, beside the source, its options, and the device's architecture and driver version. For portable code the code
    /// is empty: it is not lowered yet.
    ///
    /// # Errors
    /// `Unsupported` by default: such code is loaded as it is, or its compiled form must not be kept.
    fn compiler_identity(&self, _source: &Source<'_>) -> Result<String> {
        Err(Error::unsupported("compiler_identity is not supported"))
    }

    /// Compiles code to native code that [`Device::load`] accepts, without loading it.
    ///
    /// # Errors
    /// `Unsupported` by default, and for code that is native already; `CompileFailed` with the complete log.
    fn compile(&self, _source: &Source<'_>) -> Result<CompiledCode> {
        Err(Error::unsupported("compile is not supported"))
    }

    /// How native code fits this device and its driver.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn fits(&self, _code: &Source<'_>) -> Result<Fit> {
        Err(Error::unsupported("fits is not supported"))
    }

    /// Creates a queue.
    ///
    /// # Errors
    /// `OutOfResources`; `Unsupported` on an embedded device.
    fn open_queue(&self, options: &QueueOptions) -> Result<Self::Queue>;

    /// Creates a queue of one that the program has opened with the driver: `native` is its handle. It outlives the queue's work,
    /// and is never destroyed.
    ///
    /// # Errors
    /// `Unsupported` by default; `InvalidArgument` for a queue of another device or context, where this can be detected.
    fn open_native_queue(&self, _native: u64) -> Result<Self::Queue> {
        Err(Error::unsupported("queues of the program are not supported"))
    }

    /// The objects of the driver that stand for the device.
    ///
    /// # Errors
    /// Any error of the driver.
    fn native(&self) -> Result<Vec<NativeHandle>> {
        Ok(Vec::new())
    }

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

    /// Lists the counters, including those that cannot be read on this machine. Called once per opened device.
    ///
    /// # Errors
    /// `Unsupported` by default; `Unavailable` with the remedy if no counter can be listed.
    fn counters(&self) -> Result<Vec<CounterInfo>> {
        Err(Error::unsupported("counters are not supported"))
    }

    /// Opens a set of counters; no name occurs twice. A counter that exists but cannot be read does not make it fail.
    ///
    /// # Errors
    /// `Unsupported` by default; `NotFound` for an unknown name.
    fn open_counters(&self, _names: &[&str]) -> Result<Box<dyn CounterSet>> {
        Err(Error::unsupported("counters are not supported"))
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

    /// Reads memory of a target that has stopped, also after a run that failed.
    ///
    /// # Errors
    /// `Unsupported` by default; `InvalidArgument` while nothing is flashed.
    fn read_memory(&self, _address: u64, _destination: &mut [u8]) -> Result<()> {
        Err(Error::unsupported("reading memory is not supported"))
    }

    /// Reads the registers of a target that has stopped, also after a run that failed. Names contain no spaces. After a
    /// flash or a run without errors, one of them is `pc`, and memory can be read at its value.
    ///
    /// # Errors
    /// `Unsupported` by default; `InvalidArgument` while nothing is flashed.
    fn registers(&self) -> Result<Vec<Register>> {
        Err(Error::unsupported("reading registers is not supported"))
    }
}

/// An allocation request.
#[derive(Debug)]
pub struct Allocate<'a, Q> {
    /// Index into `DeviceInfo::spaces`.
    pub space: u32,
    /// Size in bytes; 0 is valid.
    pub bytes: usize,
    /// Alignment in bytes: 0 or a power of two, which the exported table checks.
    pub alignment_bytes: usize,
    /// Back the allocation with huge pages; never of a device without [`Device::HUGE_PAGES`].
    pub huge_pages: bool,
    /// The queue that orders the allocation, and the ticket that the allocation takes; only with the
    /// capability `STREAM_ORDERED`.
    pub queue: Option<(&'a Q, u64)>,
}
