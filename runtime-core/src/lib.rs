//! One API to **discover devices, place tensors on them, load code, run it asynchronously and time it
//! honestly**, on every compute target a machine has.
//!
//! This crate is the API, and the contract with the backends behind it (the host CPU, CUDA, OpenCL, …). It
//! knows none of them by name: a backend is a library, discovered at run time or linked in. The crate is made
//! for frameworks and compilers: it never aborts the process, never prints, and keeps no global state except a
//! fork counter, an exit flag, and the open lock files of code caches.
//!
//! # A first kernel
//!
//! The kernel is in WGSL: it is checked, so that nothing here is `unsafe`, and runs on every device. Two crates are linked in,
//! `runtime-host` and `runtime-kernel`; `Runtime::new()` finds installed backends as well.
//!
//! ```
//! use runtime_core::{ModuleSource, Runtime};
//!
//! const SAXPY: &str = "
//!     @group(0) @binding(0) var<storage, read> x: array<f32>;
//!     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
//!     @compute @workgroup_size(64) fn saxpy(@builtin(global_invocation_id) id: vec3u) {
//!         y[id.x] += 2.0 * x[id.x];
//!     }";
//!
//! let runtime =
//!     Runtime::builder().register(runtime_host::backend()).with_lowering(runtime_kernel::wgsl()).build();
//! let device = runtime.open("host")?; // "cuda:1", "vulkan", …
//!
//! // Tensors, in the device's default memory space.
//! let x = device.tensor([3], &[1.0f32, 2.0, 3.0])?;
//! let y = device.tensor([3], &[10.0f32, 20.0, 30.0])?;
//!
//! // Work: 1 group of 64 work-items. A launch returns at once, with an event.
//! let saxpy = device.kernel(ModuleSource::wgsl(SAXPY), "saxpy")?;
//! let queue = device.queue()?;
//! let done = queue.launch(&saxpy, (1, 64), (&x, &y))?; // in the order of the bindings
//! done.wait()?; // or `done.await?`
//! assert_eq!(y.to_vec::<f32>()?, [12.0, 24.0, 36.0]);
//! # Ok::<(), runtime_core::Error>(())
//! ```
//!
//! The other examples of this documentation need neither hardware nor a compiler: they run on `null`, the backend of the test suite,
//! whose native code is a list of built-in kernels. Native code, for example C on the host or CUDA C, is `unsafe` to construct:
//! only its author knows which memory it accesses. `examples/` has such programs.
//!
//! # Ownership and lifetimes
//!
//! ```text
//! Runtime ── open ──> device ──┬── allocate ────> Tensor ──> views (the same memory)
//!                              ├── load ────────> Module ──> Kernel
//!                              └── open_queue ──> Queue ──┬── launch, copy, fill, … ──> Event
//!                                                         └── record ──> Graph ──> ExecutableGraph
//! ```
//!
//! - **Every object keeps its parent alive.** A kernel keeps its module; a tensor, module or queue keeps its
//!   device; a device keeps its backend. The [`Runtime`] may therefore be dropped while its devices are in use.
//!   The one exception is an [`Event`], which does not keep its device open.
//! - **Work keeps what it uses alive.** A tensor, kernel or queue may be dropped right after the launch that uses it.
//!   Its memory is freed once the work has ended. Dropping never waits, and never cancels submitted work.
//! - **The last drop of a device**, once everything made from it is gone too, is the only one that waits: for
//!   work in flight, and for a few seconds at most. If the work has not ended by then, the device is leaked and
//!   the leak is logged.
//! - **Opening a device twice** gives two independent devices, each with its own tensors, modules and queues,
//!   and possibly with different options.
//!
//! # Terminology
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
//! An opened device is one of three kinds: [`Host`], whose memory is host memory; [`AcceleratorDevice`], with
//! memory of its own; and [`EmbeddedDevice`], which has no queues but is flashed with an image and run.
//! [`CommonRuntime`] is the interface they share, and all that most programs need.
//!
//! # Queues, events and hazards
//!
//! A [`Queue`] runs its submissions in order; different queues run concurrently. Each submission takes the next
//! *ticket* of its queue (1, 2, 3, …), and an [`Event`] is the pair `(queue, ticket)`.
//!
//! **What is ordered for you.** Each argument of a launch states how the kernel accesses the tensor ([`read()`],
//! [`write()`], [`read_write()`]), unless the kernel's code states it. Core orders any two conflicting accesses to the same
//! memory, also through views: read after write, write after read, write after write. It does so across queues, across
//! the devices of one `Runtime`, and with the host: [`Tensor::to_vec`] waits for the last writer. Where no tensor
//! implies the order you need, call [`Queue::wait_for`]. [`Queue::launch_untracked`] bypasses all of this, and is
//! `unsafe`.
//!
//! ```
//! # use runtime_core::{ModuleSource, Runtime, read_write, write};
//! # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
//! # let device = runtime.open("null:0")?;
//! # let source = unsafe { ModuleSource::native("null", "fill_f32\nscale_f32\nspin") };
//! # let module = device.load(&source)?;
//! # let (fill, scale, spin) = (module.kernel("fill_f32")?, module.kernel("scale_f32")?, module.kernel("spin")?);
//! let (first, second) = (device.queue()?, device.queue()?);
//! let x = device.empty::<f32>([2])?;
//! first.launch(&spin, (1, 1), (500i64,))?; // keeps the first queue busy for 500 µs
//! first.launch(&fill, (1, 1), (write(&x), 1.0f32))?;
//! let scaled = second.launch(&scale, (1, 1), (read_write(&x), 3.0f32))?; // runs after `fill`
//! assert_eq!(x.to_vec::<f32>()?, [3.0, 3.0]); // waits for `scale`
//! assert!(scaled.is_done()?);
//! # Ok::<(), runtime_core::Error>(())
//! ```
//!
//! **What blocks.** Submitting does not block, with three exceptions. If the device cannot wait for a dependency by
//! itself (usually work on another backend), the calling thread waits for it. It also waits for a transfer by
//! another thread that conflicts with the submission, such as a [`Tensor::write`] to one of its tensors: until the
//! program has copied the bytes or, for memory of the device, has submitted all copies. And [`Queue::copy`] goes
//! through host memory, and blocks, if no device can make the copy. No lock of core is held meanwhile, and waits for
//! dependencies and transfers end with `Timeout` after a minute. Waiting blocks ([`Event::wait`],
//! [`Queue::wait_idle`], [`Queue::call`]), and so does every access to a tensor's data from the host
//! ([`Tensor::write`], [`Tensor::to_vec`], [`Tensor::map`], [`Queue::read`], …). In async code, await the event
//! first, then read.
//!
//! A backend may also block a large transfer of pageable host memory while it stages the data, and later submissions to
//! the same queue with it. To avoid that, upload from pinned memory, or on a separate queue.
//!
//! **Waiting.** Wait for an event with or without a timeout, poll it ([`Event::is_done`]), or await it: an
//! event is a future. The first await on a device starts its wait thread, which polls that device and wakes tasks of
//! any executor. [`Event::all`] and [`Event::any`] combine events of any devices. A timeout cancels nothing and poisons nothing; nor does dropping a
//! future.
//!
//! **Host tasks.** [`Queue::host_task`] runs a closure once events have ended, on a thread that core starts for it. It may
//! submit and wait. [`Queue::keep_until`] and [`Event::keeping`] keep values that the work needs and the queue does not
//! know of. These threads, the wait thread and those that a backend documents are the only ones, and none starts before
//! it has something to do.
//!
//! **Signals are lazy.** `let event = queue.launch(…)?` keeps the event, so the next submission first makes the
//! driver signal that point; waiting for the event then does not wait for anything later. `queue.launch(…)?;`
//! drops the event at once and costs no more than the launch. Keep the events you intend to wait for, and no
//! others.
//!
//! **Failure is permanent, and propagates.** When a submission fails, all later ones on its queue fail with the
//! same error, and so does work on other queues that reads their results. The error names the ticket where it
//! began. Waiting for any of them returns that error; it never hangs. To go on, open another queue; to use an
//! affected tensor again, overwrite it. A submission that is *refused* (because of a wrong argument, say) takes
//! no ticket and has no effect.
//!
//! ```
//! # use runtime_core::{ErrorKind, ModuleSource, Runtime, read_write, write};
//! # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
//! # let device = runtime.open("null:0")?;
//! # let module = device.load(&unsafe { ModuleSource::native("null", "fail\nscale_f32") })?;
//! # let (fail, scale) = (module.kernel("fail")?, module.kernel("scale_f32")?);
//! let (broken, healthy) = (device.queue()?, device.queue()?);
//! let x = device.tensor([2], &[1.0f32, 2.0])?;
//! let event = broken.launch(&fail, (1, 1), (write(&x),))?; // accepted; fails on the device
//! assert_eq!(event.wait().unwrap_err().kind(), ErrorKind::Failed);
//! assert_eq!(x.to_vec::<f32>().unwrap_err().kind(), ErrorKind::Failed); // x was to hold the result
//!
//! x.write(&[1.0f32, 2.0])?;
//! healthy.call(&scale, (1, 1), (read_write(&x), 2.0f32))?; // launches and waits
//! assert_eq!(x.to_vec::<f32>()?, [2.0, 4.0]);
//! # Ok::<(), runtime_core::Error>(())
//! ```
//!
//! **Graphs.** [`Queue::recording`] records work instead of running it, also that of code which takes a queue
//! ([`Recording::queue`](graph::Recording::queue)), and [`Queue::replay`] submits all of it:
//! as one submission where the device supports graphs, node by node elsewhere. [`Graph::add_launch`] adds nodes with
//! explicit edges, [`Graph::add_graph`] a graph to another, and [`ExecutableGraph::rebind`] runs the same work on other tensors.
//!
//! # Tensors and placement
//!
//! A [`Tensor`] is an element type, a shape and strides over memory of one device; clones and views share that
//! memory. A [`Placement`] selects one of the device's memory spaces, which [`DeviceInfo::spaces`] lists:
//! `device`; `pinned`, host memory that the device accesses directly; `shared`, which host and device both access; or a
//! space specific to the backend. The first one listed is the default. Data moves in and out as slices, or as a
//! [`HostArray`], which also reads and writes `.npy` files; [`Safetensors`] loads weights straight to a device,
//! and [`dlpack`] shares memory with other libraries. A tensor from [`CommonRuntime::allocate`] is ready for
//! every queue; [`Queue::allocate`] allocates in order with one queue's work, which is cheaper where the driver
//! supports it.
//!
//! A kernel expects contiguous tensors. A view with gaps, such as a transposed matrix, is refused at launch,
//! because a kernel unaware of its strides would access the wrong elements. [`Queue::contiguous`] copies the
//! view on the device; [`Arg::strided`] declares that the kernel computes with the strides itself. [`Queue::cast`] converts
//! the elements to another type.
//!
//! [`Tensor::freeze`] makes the content final. Freeze weights: launches from many threads then share them
//! without any bookkeeping. [`Tensor::map`] exposes memory of a host-visible space as a slice; while that view
//! exists, a launch that conflicts with it is refused, not delayed.
//!
//! # Code, and what is `unsafe`
//!
//! A [`CodeFormat`] names what the bytes are: `c`, `shared-object`, `ptx`, `spirv-shader`, …
//! [`DeviceInfo::formats`] lists the formats a device accepts, best first. A framework picks the first one that
//! it can produce, without naming a backend.
//!
//! [`ModuleSource::native`] is `unsafe`: the caller guarantees that the code stays within the memory of its
//! arguments, and uses them only as each launch declares, which core relies on to order work. For similar
//! reasons these are `unsafe` too:
//!
//! - [`Host::import`] and [`import_dlpack`](CommonRuntime#method.import_dlpack), which trust a pointer;
//! - [`Queue::launch_untracked`]; [`Queue::native`], which runs work of other libraries on a queue, and
//!   [`queue_from_native`](CommonRuntime#method.queue_from_native), which wraps a queue of theirs;
//! - whatever brings in code that core then loads or calls: [`RuntimeBuilder::library`],
//!   [`RuntimeBuilder::directory`], and implementing [`Backend`](backend::Backend) or
//!   [`Lowering`](lowering::Lowering).
//!
//! Everything else is safe. The arguments of a launch (number, kind, element type and device) and its geometry
//! are checked before anything is submitted, as far as the code declares them.
//!
//! Portable kernels, [`ModuleSource::wgsl`], are bounds-checked and safe to construct. To use them, register
//! their lowering once ([`RuntimeBuilder::with_lowering`], with `runtime_kernel::wgsl()`); loading one is then the
//! same call as loading anything else, on every device.
//!
//! **Code is compiled once.** Where the backend gives out compiled code, a load takes it from the
//! [code cache](cache) on disk, which is checked on every read, or compiles it and keeps it there. Code that the device has loaded already is shared
//! ([`ModuleSource::unshared`] loads it again). [`CommonRuntime::compile`] compiles without loading, and
//! [`Runtime::compile`] without a device, for an architecture such as `cuda:sm_90`. [`RuntimeBuilder::on_load`] tells where
//! code came from, and how long each stage took.
//!
//! # Timing
//!
//! [`CommonRuntime::evaluate`] runs an [`Evaluation`](evaluate::Evaluation): is the kernel correct, how fast is it, by
//! which clock, and how certain is that? One timing loop serves all devices; see [`evaluate`].
//!
//! # Errors
//!
//! There is one [`Error`]. Branch on its [`ErrorKind`]; its `Display` is one line that says what to do.
//! `Unavailable` means "not on this machine", and is the only kind for which a test may be skipped. A missing
//! driver is not an error: [`Runtime::targets`] reports the backend as unavailable, with the reason.
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
//! Everything made from a device can be shared between threads. Threads that use different queues contend only for
//! the tensors they share, and frozen tensors cause no contention.
//!
//! ```
//! # use runtime_core::{CommonRuntime, Event, ExecutableGraph, Kernel, Module, Queue, Runtime, Tensor};
//! fn is_send_and_sync<T: Send + Sync + ?Sized>() {}
//! is_send_and_sync::<(Runtime, Tensor, Module, Kernel, Queue, Event, ExecutableGraph)>();
//! is_send_and_sync::<dyn CommonRuntime>();
//! ```
//!
//! - **Fork.** A forked child cannot use its parent's objects: every call fails at once with `Unavailable`, and
//!   drops leak. Make a new `Runtime` in the child.
//! - **Exit.** A process may exit, or return from `main`, with work in flight: it neither crashes nor hangs.
//! - **Lost devices.** On a lost device every call fails with `DeviceLost` within milliseconds. Drop it, and
//!   open it again.
//!
//! # Backends: discovered, named, or linked in
//!
//! [`Runtime::new`] searches the directories that it documents for files named `libruntime_<name>.so`.
//! [`RuntimeBuilder`] adds a library, a directory, or a backend linked into the program, and can turn discovery
//! off. From then on there is no difference: every backend is called through the same table of C functions.
//! [`Runtime::load_report`] has an entry for everything that was examined. Making a `Runtime` calls no driver
//! and starts no thread. Several can coexist; they share nothing.
//!
//! A new backend is a set of traits and one macro line: see [`backend`]. To write one in C or another language,
//! see [`abi`].
//!
//! # Modules
//!
//! The root of the crate has what a first program needs. The rest lies in modules:
//!
//! | module | for |
//! | --- | --- |
//! | [`tensor`], [`queue`], [`graph`], [`device`], [`code`] | what the methods of a [`Tensor`], [`Queue`], … take and return |
//! | [`evaluate`] | checking and timing kernels |
//! | [`dispatch`] | [`Dispatcher`](dispatch::Dispatcher): kernels that are compiled for the types of their arguments when they are called |
//! | [`fusion`] | [`Fuser`](fusion::Fuser): several launches as one kernel |
//! | [`cache`] | compiled code on disk |
//! | [`lowering`] | authors of lowerings of portable code |
//! | [`backend`], [`abi`] | authors of backends |
//!
//! # Environment
//!
//! | variable | effect |
//! | --- | --- |
//! | `RUNTIME_BACKENDS` | libraries and directories to use instead of all others |
//! | `RUNTIME_BACKEND_PATH` | directories to search first |
//! | `RUNTIME_FUSION` | `off`: a [`Fuser`](fusion::Fuser) submits everything as it is |
//! | `RUNTIME_CACHE` and others | where compiled code is kept; see [`cache`] |
//!
//! The first two are lists like `PATH`, of absolute paths. All are ignored in a process with raised privileges. Core also
//! reads `HOME` and `XDG_CACHE_HOME`. It logs through `tracing`; log records of backends have the target
//! `runtime::backend`.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod abi;
mod atomic_file;
pub mod backend;
pub mod cache;
pub mod code;
pub mod device;
pub mod dispatch;
mod error;
pub mod evaluate;
pub mod fusion;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
pub mod graph;
pub mod lowering;
mod memory;
mod model;
mod panics;
mod platform;
mod plugin;
mod process;
pub mod queue;
mod runtime;
pub mod tensor;
mod timeline;

/// The crate of the element types `f16` and `bf16`.
pub use half;
/// The crate of the element types `Complex<f32>` and `Complex<f64>`.
pub use num_complex;

pub use code::arg::Arg;
pub use code::argument_tuples::{read, read_write, write};
pub use code::kernel::Kernel;
pub use code::module::Module;
pub use code::source::ModuleSource;
pub use device::accelerator::AcceleratorDevice;
pub use device::common_runtime::CommonRuntime;
pub use device::embedded::EmbeddedDevice;
pub use device::host::Host;
pub use device::methods::Device;
pub use error::{Error, ErrorKind, Result};
pub use graph::Graph;
pub use graph::executable::ExecutableGraph;
pub use model::access::Access;
pub use model::code_format::CodeFormat;
pub use model::device_info::{DeviceId, DeviceInfo, DeviceKind};
pub use model::dtype::{DType, DTypeClass, Element};
pub use model::geometry::{Dim3, Geometry, LaunchConfig};
pub use model::options::{OptionValue, Options};
pub use model::placement::{Placement, QueueOptions};
pub use queue::Queue;
pub use runtime::{Runtime, RuntimeBuilder, Target};
pub use tensor::host_array::HostArray;
pub use tensor::number::Number;
pub use tensor::safetensors::Safetensors;
pub use tensor::{Tensor, dlpack};
pub use timeline::event::Event;
pub use timeline::event::status::EventStatus;
