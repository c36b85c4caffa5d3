//! Native graphs: command buffers (`cl_khr_command_buffer`), recorded in order on a queue of their own.
//!
//! The arguments of a command buffer are fixed, and it only runs on queues that have the same properties as the queue it was
//! recorded on. So a graph is recorded once for each combination of queue properties, and again when its arguments change.

#![allow(unsafe_code, reason = "records through the driver")]

use std::sync::Arc;

use cl3::ext::{CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR};
use parking_lot::Mutex;
use runtime_core::backend::{Graph, GraphNode, GraphWork, Launch};
use runtime_core::{Error, QueueOptions, Result};

use crate::context::SharedContext;
use crate::convert::{self, FillPiece};
use crate::driver::extensions::CommandBuffers;
use crate::driver::handle::{CommandQueue, Event, Owned};
use crate::driver::{Driver, Raw};
use crate::grid_lock::Grid;
use crate::hold::Hold;
use crate::kernel::OpenClKernel;
use crate::kernel_binding::KernelBinding;
use crate::launch;
use crate::memory::{BufferAccess, OpenClBuffer};

/// A command of a node.
#[derive(Debug)]
enum Command {
    Launch { kernel: OpenClKernel, binding: KernelBinding, shape: [[u32; 3]; 2] },
    Copy { to: (Raw, usize), from: (Raw, usize), bytes: usize },
    Fill { to: Raw, piece: FillPiece },
}

impl Command {
    /// The kernel and the groups of a launch.
    fn grid(&self) -> Option<Grid<'_>> {
        match self {
            Self::Launch { kernel, shape, .. } => Some((&kernel.name, *shape)),
            Self::Copy { .. } | Self::Fill { .. } => None,
        }
    }
}

// SAFETY: any thread may use the objects; kernels are used under the graph's lock or through its unique owner.
unsafe impl Send for Command {}

/// The commands of a graph node.
#[derive(Debug, Default)]
struct Node(Vec<Command>);

/// A command buffer, and the queue that it was recorded on.
#[derive(Debug)]
struct Recorded {
    options: QueueOptions,
    buffer: Raw,
    functions: CommandBuffers,
    driver: &'static Driver,
    _queue: Owned<CommandQueue>,
}

// SAFETY: any thread may use a command buffer, here under the graph's lock.
unsafe impl Send for Recorded {}

/// An executable graph.
#[derive(Debug)]
pub struct OpenClGraph {
    context: Arc<SharedContext>,
    device: usize,
    functions: CommandBuffers,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    nodes: Vec<Node>,
    recorded: Vec<Recorded>,
}

impl OpenClGraph {
    pub(crate) fn new(
        context: &Arc<SharedContext>,
        device: Raw,
        nodes: &[GraphNode<'_, OpenClBuffer, OpenClKernel>],
    ) -> Result<Self> {
        let functions = context
            .caps
            .command_buffers
            .ok_or_else(|| Error::unsupported("graphs are not supported by this device"))?;
        let nodes = nodes.iter().map(|node| Node::new(context, node)).collect::<Result<Vec<_>>>()?;
        let graph = Self {
            context: Arc::clone(context),
            device: device.expose_provenance(),
            functions,
            state: Mutex::new(State { nodes, recorded: Vec::new() }),
        };
        // Record once now, so that the driver refuses here and not at the first replay.
        let first = graph.record(&graph.state.lock().nodes, QueueOptions::default())?;
        graph.state.lock().recorded.push(first);
        Ok(graph)
    }

    fn record(&self, nodes: &[Node], options: QueueOptions) -> Result<Recorded> {
        let driver = self.context.driver;
        let device = std::ptr::with_exposed_provenance_mut(self.device);
        let queue = self.context.create_queue(device, &options)?;
        let (list, properties) =
            ([queue.raw()], [CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0]);
        let buffer = driver.create_raw("clCreateCommandBufferKHR", |_, code| {
            let properties = properties.as_ptr();
            // SAFETY: one queue, and a list of properties that ends with 0.
            Some(unsafe { (self.functions.clCreateCommandBufferKHR)(1, list.as_ptr(), properties, code) })
        })?;
        // On error, the drop releases it.
        let recorded = Recorded { options, buffer, functions: self.functions, driver, _queue: queue };
        for command in nodes.iter().flat_map(|node| &node.0) {
            recorded.record(command)?;
        }
        driver.extension("clFinalizeCommandBufferKHR", || {
            // SAFETY: the command buffer is complete.
            unsafe { (self.functions.clFinalizeCommandBufferKHR)(buffer) }
        })?;
        Ok(recorded)
    }

    /// Enqueues the whole graph as one command.
    pub(crate) fn enqueue(&self, queue: Raw, options: QueueOptions, hold: &Hold) -> Result<Owned<Event>> {
        let mut state = self.state.lock();
        if !state.recorded.iter().any(|recorded| recorded.options == options) {
            let recorded = self.record(&state.nodes, options)?;
            state.recorded.push(recorded);
        }
        let matching = state.recorded.iter().find(|recorded| recorded.options == options);
        let buffer = matching.map_or(std::ptr::null_mut(), |recorded| recorded.buffer);
        let mut queues = [queue];
        let grids: Vec<_> = state.nodes.iter().flat_map(|node| &node.0).filter_map(Command::grid).collect();
        let guard = hold.keep_apart(&self.context, queue, &grids);
        let event = self.context.enqueue("clEnqueueCommandBufferKHR", |_, event| {
            let none = std::ptr::null();
            // SAFETY: the command buffer is finalized and was recorded on a queue with the same properties.
            Some(unsafe {
                (self.functions.clEnqueueCommandBufferKHR)(1, queues.as_mut_ptr(), buffer, 0, none, event)
            })
        })?;
        if let Some(guard) = guard {
            guard.note(&grids, &event);
        }
        Ok(event)
    }
}

impl Node {
    fn new(context: &Arc<SharedContext>, node: &GraphNode<'_, OpenClBuffer, OpenClKernel>) -> Result<Self> {
        Ok(Self(match &node.work {
            GraphWork::Launch { kernel, launch } => {
                launch::check_supported(launch)?;
                let shape = [launch.groups(), launch.group_size()];
                let kernel = kernel.reload()?;
                let mut binding = KernelBinding::new(&kernel)?;
                set_args(&mut binding, &kernel, launch)?;
                if shape[0].contains(&0) {
                    Vec::new()
                } else {
                    vec![Command::Launch { kernel, binding, shape }]
                }
            }
            GraphWork::Copy { destination, source, bytes } => {
                let (to, to_offset, bytes) =
                    buffer_range(context, "copy: destination", *destination, *bytes)?;
                let (from, from_offset, _) = buffer_range(context, "copy: source", *source, bytes as u64)?;
                let copy = Command::Copy { to: (to, to_offset), from: (from, from_offset), bytes };
                if bytes == 0 { Vec::new() } else { vec![copy] }
            }
            GraphWork::Fill { destination, bytes, pattern } => {
                let (to, offset, bytes) = buffer_range(context, "fill", *destination, *bytes)?;
                let pieces = convert::split_fill(offset, bytes, *pattern);
                pieces.map(|piece| Command::Fill { to, piece }).collect()
            }
        }))
    }
}

/// The `cl_mem`, offset and size of a range that can be recorded.
fn buffer_range(
    context: &Arc<SharedContext>,
    what: &str,
    (buffer, offset): (&OpenClBuffer, u64),
    bytes: u64,
) -> Result<(Raw, usize, usize)> {
    let (offset, bytes) = buffer.range(what, offset, bytes)?;
    match buffer.access() {
        BufferAccess::Object(object)
            if Arc::ptr_eq(buffer.context(), context) && context.caps.can_record_copies =>
        {
            Ok((object, offset, bytes))
        }
        _ => Err(Error::unsupported("command buffers cannot copy or fill this memory")),
    }
}

fn set_args(
    binding: &mut KernelBinding,
    kernel: &OpenClKernel,
    launch: &Launch<'_, OpenClBuffer>,
) -> Result<()> {
    if binding.set_args(kernel, launch.args())? {
        Ok(())
    } else {
        Err(Error::unsupported("graphs cannot use views that must be copied for the kernel"))
    }
}

impl Recorded {
    /// Records a command, which runs after the earlier ones.
    fn record(&self, command: &Command) -> Result<()> {
        // Commands on an in-order queue need no sync points.
        let (buffer, queue, none) = (self.buffer, std::ptr::null_mut(), std::ptr::null_mut::<u32>());
        let (properties, handle) = (std::ptr::null(), std::ptr::null_mut());
        match command {
            Command::Launch { binding, shape, .. } => {
                let (dimensions, global, local) = launch::nd_range(*shape);
                self.driver.extension("clCommandNDRangeKernelKHR", || {
                    // SAFETY: the arguments are set, and core keeps what they refer to alive as long as the graph.
                    unsafe {
                        (self.functions.clCommandNDRangeKernelKHR)(
                            buffer,
                            queue,
                            properties,
                            binding.raw(),
                            dimensions,
                            std::ptr::null(),
                            global.as_ptr(),
                            local.as_ptr(),
                            0,
                            none,
                            none,
                            handle,
                        )
                    }
                })
            }
            Command::Copy { to, from, bytes } => self.driver.extension("clCommandCopyBufferKHR", || {
                // SAFETY: both ranges were checked, and core keeps the buffers alive as long as the graph.
                unsafe {
                    (self.functions.clCommandCopyBufferKHR)(
                        buffer, queue, properties, from.0, to.0, from.1, to.1, *bytes, 0, none, none, handle,
                    )
                }
            }),
            Command::Fill { to, piece } => self.driver.extension("clCommandFillBufferKHR", || {
                let (pattern, unit) = (piece.pattern.as_ptr().cast(), piece.unit);
                let (offset, bytes) = (piece.offset, piece.bytes);
                // SAFETY: the range was checked, core keeps the buffer alive as long as the graph, and the pattern is copied.
                unsafe {
                    (self.functions.clCommandFillBufferKHR)(
                        buffer, queue, properties, *to, pattern, unit, offset, bytes, 0, none, none, handle,
                    )
                }
            }),
        }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = self.driver.extension("clReleaseCommandBufferKHR", || {
            // SAFETY: created once and given up here; the driver retains it while it runs.
            unsafe { (self.functions.clReleaseCommandBufferKHR)(self.buffer) }
        });
    }
}

impl Graph for OpenClGraph {
    type Buffer = OpenClBuffer;

    fn update(&mut self, node: u32, launch: &Launch<'_, OpenClBuffer>) -> Result<()> {
        let state = self.state.get_mut();
        let command = state.nodes.get_mut(node as usize).and_then(|node| node.0.first_mut());
        match command {
            Some(Command::Launch { kernel, binding, .. }) => {
                // If the driver refuses the arguments, the node stays as it was.
                let mut fresh = KernelBinding::new(kernel)?;
                set_args(&mut fresh, kernel, launch)?;
                *binding = fresh;
            }
            // A launch without groups has no command; core does not distinguish it from other launches.
            None if launch.groups().contains(&0) => {}
            _ => return Err(Error::invalid(format!("node {node} is not a launch"))),
        }
        // Replays in flight keep the arguments that they were recorded with.
        state.recorded.clear();
        Ok(())
    }
}
