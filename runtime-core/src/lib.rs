//! One way to **find devices, place tensors on them, load code, run it asynchronously and time it honestly**, on
//! whatever compute target a machine has.
//!
//! This crate is the API, and the contract with the backends behind it (the host CPU, CUDA, OpenCL, …). It knows none
//! of them by name: each is a library that is found while the program runs, or linked in. It is made for frameworks
//! and compilers: it never aborts the process, never prints, and keeps no global state.
//!
//! # A first kernel
//!
//! The examples on this page run without hardware, on the `null` backend of the tests, whose code is a list of built-in
//! kernels. With a real device only three things differ: `Runtime::new()`, the device's name, and the code.
//!
//! ```
//! use runtime_core::{Arg, Geometry, ModuleSource, QueueOptions, Runtime, Tensor};
//!
//! // On a real machine: `Runtime::new()`, which finds the backends that are installed.
//! let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
//! let device = runtime.open("null:0")?; // "host:0", "cuda:1", …
//!
//! // Tensors, in the device's default memory.
//! let x = device.tensor(&[3], &[1.0f32, 2.0, 3.0])?;
//! let y = device.tensor(&[3], &[10.0f32, 20.0, 30.0])?;
//!
//! // Code. Native code is unsafe to make, since only its author knows what it touches.
//! // SAFETY: `saxpy_f32` reads all of x, and reads and writes all of y, as the launch below says.
//! let source = unsafe { ModuleSource::native("null", "saxpy_f32") };
//! let saxpy = device.load(&source)?.kernel("saxpy_f32")?;
//!
//! // Work. A launch returns at once, with an event.
//! let queue = device.open_queue(&QueueOptions::default())?;
//! let args = [Arg::read(&x), Arg::read_write(&y), Arg::scalar(2.0f32)]; // in the order of the kernel's parameters
//! let done = queue.launch(&saxpy, &Geometry::single(), &args)?;
//! done.wait()?; // or `done.await?`
//! assert_eq!(y.to_vec::<f32>()?, [12.0, 24.0, 36.0]);
//! # Ok::<(), runtime_core::Error>(())
//! ```
//!
//! For the host, the same in C: `open("host")`, format `c`, and
//! `void saxpy(const float *x, float *y, float a, long n)` as the code. That program, and nine more, are in `examples/`.
//!
//! # The life of things
//!
//! ```text
//! Runtime ── open ──> device ──┬── allocate ────> Tensor ──> views (the same memory)
//!                              ├── load ────────> Module ──> Kernel
//!                              └── open_queue ──> Queue ──┬── launch, copy, fill, … ──> Event
//!                                                         └── record ──> Graph ──> ExecutableGraph
//! ```
//!
//! - **What keeps what alive.** Everything keeps what it was made from: a kernel its module, a tensor, module or queue
//!   its device, a device its backend. So the [`Runtime`] may be dropped while its devices are in use. The one exception
//!   is an [`Event`]: it keeps its place on the timeline, not the device.
//! - **Work keeps what it uses.** A tensor, kernel or queue may be dropped right after the launch that uses it. Its
//!   memory is given back once the work has ended; dropping never waits, and never cancels what was submitted.
//! - **The last drop of a device** (it, and all that was made from it) is the only one that waits: for work in flight,
//!   for at most some seconds. Work that does not end by then makes it leak the device, and log that.
//! - **Opening twice** gives two devices, each with its own tensors, modules and queues, and perhaps other options.
//!
//! # The words
//!
//! | here | CUDA | OpenCL | Vulkan |
//! | --- | --- | --- | --- |
//! | device, [`CommonRuntime`] | device and its context | device and its context | physical and logical device |
//! | sub-device | MIG instance | sub-device | – |
//! | memory space, [`Placement`] | device, pinned, managed memory | buffer, host pointer, SVM | memory type |
//! | [`Tensor`] (over a buffer) | device pointer | `cl_mem` | `VkBuffer` |
//! | [`Module`] | module, library | program | shader module |
//! | [`Kernel`] | function | kernel | compute pipeline |
//! | [`Queue`] | stream | in-order command queue | queue with a timeline semaphore |
//! | [`Event`] | event | event | value of a timeline semaphore |
//! | [`Graph`], [`ExecutableGraph`] | graph, executable graph | command buffer | command buffer |
//! | group, group size, cluster | block, block size, cluster | work-group, local size, – | workgroup, local size, – |
//! | work-group memory | shared memory | local memory | shared memory |
//! | compute unit | SM | compute unit | – |
//!
//! An opened device is one of three kinds: [`Host`] (its memory is the program's), [`AcceleratorDevice`] (memory of its
//! own) and [`EmbeddedDevice`] (flashed with an image and run, without queues). [`CommonRuntime`] is what they share, and
//! what most programs need.
//!
//! # Queues, events and hazards
//!
//! A [`Queue`] runs its submissions in order; queues run beside each other. Each submission takes the next *ticket* of
//! its queue, 1, 2, 3, …, and an [`Event`] is nothing but `(queue, ticket)`.
//!
//! **What is ordered for you.** A launch says how it uses each tensor ([`Arg::read`], [`Arg::write`],
//! [`Arg::read_write`]). Core orders whatever conflicts on the same memory, views included: a read after a write, a write
//! after reads, a write after a write; between any queues, devices of one `Runtime`, and the program itself (so
//! [`Tensor::to_vec`] waits for the last writer). An order that no tensor shows is made with [`Queue::wait_for`].
//! [`Queue::launch_untracked`] does without all this, and is `unsafe`.
//!
//! ```
//! # use runtime_core::{Arg, DType, Geometry, ModuleSource, Placement, QueueOptions, Runtime};
//! # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
//! # let device = runtime.open("null:0")?;
//! # let source = unsafe { ModuleSource::native("null", "fill_f32\nscale_f32\nspin") };
//! # let module = device.load(&source)?;
//! # let (fill, scale, spin) = (module.kernel("fill_f32")?, module.kernel("scale_f32")?, module.kernel("spin")?);
//! # let plain = Geometry::single();
//! let open_queue = || device.open_queue(&QueueOptions::default());
//! let (first, second) = (open_queue()?, open_queue()?);
//! let x = device.allocate(DType::F32, &[2], &Placement::default())?;
//! first.launch(&spin, &plain, &[Arg::scalar(500i64)])?; // keeps the first queue busy for 500 µs
//! first.launch(&fill, &plain, &[Arg::write(&x), Arg::scalar(1.0f32)])?;
//! let scaled = second.launch(&scale, &plain, &[Arg::read_write(&x), Arg::scalar(3.0f32)])?; // after `fill`
//! assert_eq!(x.to_vec::<f32>()?, [3.0, 3.0]); // after `scale`
//! assert!(scaled.is_done()?);
//! # Ok::<(), runtime_core::Error>(())
//! ```
//!
//! **What blocks.** Submitting does not, but for two cases: work that the device cannot wait for by itself (another
//! backend's, as a rule) is waited for on the spot, and [`Queue::copy`] stages through the program what no device can
//! copy alone. Waiting does ([`Event::wait`], [`Queue::wait_idle`], [`Queue::call`]), and so does what gives the program
//! a tensor's data ([`Tensor::write`], [`Tensor::to_vec`], [`Tensor::map`], [`Queue::read`], …). In async code, await
//! the event first and read after it.
//!
//! **Waiting.** An event is waited for, with or without a timeout, polled ([`Event::is_done`]), or awaited: it is a
//! future. The first await of a device starts core's only thread, which polls that device and wakes tasks of any
//! executor. A timeout cancels nothing and poisons nothing, and neither does dropping a future.
//!
//! **Marks are lazy.** `let event = queue.launch(…)?` keeps the event: the next submission marks the place behind it in
//! the driver, so that waiting for it does not wait for anything later. `queue.launch(…)?;` drops it at once, and costs
//! nothing more than the launch. Keep the events that you mean to wait for, and only those.
//!
//! **Failure is permanent, and travels.** When a submission fails, all later ones of its queue fail with its error, and
//! so does what read its results on other queues. The error names the ticket where it began; a wait for any of them
//! returns it, and never hangs. Open another queue to go on; write a tensor anew to use it again. A
//! submission that is *refused* (a wrong argument, say) takes no ticket and harms nothing.
//!
//! ```
//! # use runtime_core::{Arg, ErrorKind, Geometry, ModuleSource, QueueOptions, Runtime, Tensor};
//! # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
//! # let device = runtime.open("null:0")?;
//! # let module = device.load(&unsafe { ModuleSource::native("null", "fail\nscale_f32") })?;
//! # let (fail, scale) = (module.kernel("fail")?, module.kernel("scale_f32")?);
//! # let open_queue = || device.open_queue(&QueueOptions::default());
//! # let plain = Geometry::single();
//! let (broken, healthy) = (open_queue()?, open_queue()?);
//! let x = device.tensor(&[2], &[1.0f32, 2.0])?;
//! let event = broken.launch(&fail, &plain, &[Arg::write(&x)])?; // submitted; it fails on the device
//! assert_eq!(event.wait().unwrap_err().kind(), ErrorKind::Failed);
//! assert_eq!(x.to_vec::<f32>().unwrap_err().kind(), ErrorKind::Failed); // it would have been the result
//!
//! x.write(&[1.0f32, 2.0])?;
//! healthy.call(&scale, &plain, &[Arg::read_write(&x), Arg::scalar(2.0f32)])?; // launch and wait
//! assert_eq!(x.to_vec::<f32>()?, [2.0, 4.0]);
//! # Ok::<(), runtime_core::Error>(())
//! ```
//!
//! **Graphs.** [`Queue::record`] notes work instead of running it, and [`Queue::replay`] submits all of it: at once where the
//! device has graphs, node by node elsewhere.
//!
//! # Tensors and placement
//!
//! A [`Tensor`] is an element type, a shape and strides over memory of one device; clones and views share the memory.
//! A [`Placement`] names one of the device's memory spaces, which [`DeviceInfo::spaces`] lists: `device`; `pinned`, host
//! memory that the device reads directly; `shared`, which moves by itself; or a name of the backend's own. The first is
//! the default. Data go in and out as slices, or as a [`HostArray`], which also reads and writes `.npy` files;
//! [`Safetensors`] loads weights straight to a device, and [`dlpack`] shares memory with other libraries.
//! [`CommonRuntime::allocate`] makes a tensor for everybody; [`Queue::allocate`] one in order with a queue's work, which
//! is cheaper where the driver can do it.
//!
//! A kernel gets contiguous tensors. A view with gaps, such as a transposed matrix, is refused at launch, since a kernel that
//! does not know its strides would work on other elements: [`Queue::contiguous`] copies it on the device, and [`Arg::strided`]
//! says that the kernel computes with the strides itself.
//!
//! [`Tensor::freeze`] makes the content final. That is for weights: launches from many threads then share them without
//! any bookkeeping. [`Tensor::map`] lends the memory of a host-visible space to the program; a launch that conflicts with
//! such a view is refused, not delayed.
//!
//! # Code, and what is `unsafe`
//!
//! A [`CodeFormat`] says what the bytes are: `c`, `shared-object`, `ptx`, `spirv-shader`, … [`DeviceInfo::formats`] lists
//! what a device accepts, best first; a framework picks the first one that it can produce, and names no backend.
//!
//! [`ModuleSource::native`] is `unsafe`: the caller vouches that the code keeps to the memory of its arguments and to the
//! access that the launch states, which core trusts when it orders work. So are [`Host::import`] and
//! [`import_dlpack`](CommonRuntime#method.import_dlpack), which trust a pointer, [`Queue::launch_untracked`], and whatever brings in code that core then
//! calls or loads: [`RuntimeBuilder::library`] and [`RuntimeBuilder::directory`], and to implement
//! [`Backend`](backend::Backend) or [`Lowering`]. Everything else is safe: number, kind,
//! element type, device and geometry of a launch are checked as far as the code tells them, before anything is submitted.
//! Portable kernels, [`ModuleSource::wgsl`], are bounds-checked and safe to make; a program that wants them registers what
//! lowers them ([`RuntimeBuilder::lower_with`], with `runtime_kernel::wgsl()`), and from then on loading one is the same
//! call as loading anything else, on every device.
//!
//! # Timing
//!
//! [`CommonRuntime::evaluate`] answers an [`Evaluation`]: is the kernel right, how fast is it, by which clock, and how
//! sure is that. There is one such loop, for all devices; see [`Evaluation`], [`Timing`] and [`Measurement`].
//!
//! # Errors
//!
//! One [`Error`], one [`ErrorKind`] to decide on, and a `Display` of one line that says what to do. `Unavailable` means
//! "not on this machine", and is the only kind that a test may skip. A missing driver is not an error of the program:
//! [`Runtime::targets`] lists the backend with the reason.
//!
//! ```
//! use runtime_core::{ErrorKind, Runtime};
//!
//! let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
//! let error = runtime.open("nul:0").unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::NotFound);
//! assert!(error.to_string().contains("did you mean \"null\"?"));
//! ```
//!
//! # Threads, fork and exit
//!
//! Threads may share everything that is made of a device. Those that use queues of their own contend for nothing but
//! the tensors that they share, and not even for these once they are frozen.
//!
//! ```
//! # use runtime_core::{CommonRuntime, Event, ExecutableGraph, Kernel, Module, Queue, Runtime, Tensor};
//! fn may_be_shared<T: Send + Sync + ?Sized>() {}
//! may_be_shared::<(Runtime, Tensor, Module, Kernel, Queue, Event, ExecutableGraph)>();
//! may_be_shared::<dyn CommonRuntime>();
//! ```
//!
//! - **Fork.** A forked child cannot use what its parent made: every call there is `Unavailable`, at no cost, and drops
//!   leak. Make a new `Runtime` in the child.
//! - **Exit.** A program may exit, or return from `main`, with work in flight: it neither crashes nor hangs.
//! - **A lost device** says so on every call, in milliseconds (`DeviceLost`). Drop it, and open it again.
//!
//! # Backends: found, named, or linked in
//!
//! [`Runtime::new`] looks for files `libruntime_<name>.so` in the places that it lists. [`RuntimeBuilder`] adds a library,
//! a directory, or a backend that is linked into the program, and can turn discovery off. There is no difference
//! afterwards: both ways go through the same table of C functions. [`Runtime::load_report`] has a line for all that was
//! looked at. Making a `Runtime` touches no driver and starts no thread. Several may live side by side, and share
//! nothing.
//!
//! A new backend is a set of traits and one macro line: see [`backend`]; in C, or another language, see [`abi`].
//!
//! # Environment
//!
//! | variable | what it does |
//! | --- | --- |
//! | `RUNTIME_BACKENDS` | libraries and directories that are used, and nothing else |
//! | `RUNTIME_BACKEND_PATH` | directories that are searched first |
//!
//! Both are lists as `PATH` is, of absolute paths; both are ignored in a program with raised privileges. Core reads no
//! other variable but `HOME`. It logs through `tracing`; the records of backends have the target `runtime::backend`.
//!
//! # Features
//!
//! `serde`: [`Measurement`] and what it holds can be serialised.

pub mod abi;
pub mod backend;
mod code;
mod device;
mod error;
mod evaluate;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod graph;
mod memory;
mod model;
mod platform;
mod plugin;
mod process;
mod queue;
mod runtime;
mod tensor;
mod timeline;

pub use code::arg::{Arg, Scalar};
pub use code::arguments::{Arguments, IntoArg};
pub use code::kernel::Kernel;
pub use code::module::Module;
pub use code::source::ModuleSource;
pub use device::accelerator::AcceleratorDevice;
pub use device::common_runtime::CommonRuntime;
pub use device::embedded::EmbeddedDevice;
pub use device::host::Host;
pub use device::tensors::Device;
pub use error::{Error, ErrorKind, Result};
pub use evaluate::*;
pub use graph::Graph;
pub use graph::executable::ExecutableGraph;
pub use graph::recorder::Recorder;
pub use model::access::{Access, ArgKind};
pub use model::code_format::CodeFormat;
pub use model::device_info::{
    Capabilities, DeviceId, DeviceInfo, DeviceKind, Limits, MemorySpace, MemoryUsage, Telemetry,
};
pub use model::dtype::{DType, DTypeClass, Element};
pub use model::geometry::{Dim3, Geometry, Occupancy};
pub use model::kernel_info::{KernelInfo, Param, RunReport};
pub use model::lowering::{Lowered, LoweredKernel, LoweredParam, Lowering, Portable};
pub use model::options::{OptionScope, OptionSpec, Options, Value, suggest};
pub use model::placement::{Placement, QueueOptions};
pub use plugin::convert;
pub use plugin::load_report::{LoadReport, Outcome, Stage};
pub use queue::Queue;
pub use queue::transfer::Download;
pub use runtime::{Runtime, RuntimeBuilder, Target};
pub use tensor::atomic_file::AtomicFile;
pub use tensor::host_array::HostArray;
pub use tensor::host_view::{HostView, HostViewMut};
pub use tensor::safetensors::{Safetensors, StoredTensor};
pub use tensor::{Tensor, dlpack};
pub use timeline::event::Event;
