//! Native graphs: command buffers (`cl_khr_command_buffer`), recorded in order on a queue of their own.
//!
//! A command buffer keeps the arguments that it was recorded with, and fits queues of the same properties: it is recorded once
//! per sort of queue that replays it, and again when arguments change.

#![allow(unsafe_code, reason = "records through the driver")]

use std::sync::Arc;

use cl3::ext::{
    CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR, CL_COMMAND_BUFFER_FLAGS_KHR,
    CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR,
};
use parking_lot::Mutex;
use runtime_core::backend::{Graph, GraphNode, GraphWork, Launch, QueueOptions};
use runtime_core::{Error, Result};

use crate::catalog::Entry;
use crate::context::Primary;
use crate::convert::{self, Piece};
use crate::driver::extensions::CommandBuffers;
use crate::driver::handle::{CommandQueue, Event, Owned};
use crate::driver::{Driver, Raw};
use crate::kernel::{Bound, OpenClKernel};
use crate::launch;
use crate::memory::{OpenClBuffer, Reach};
use crate::queue;

/// Commands that are recorded in the same place.
#[derive(Debug)]
enum Command {
    Launch { kernel: OpenClKernel, bound: Bound, shape: [[u32; 3]; 2] },
    Copy { to: (Raw, usize), from: (Raw, usize), bytes: usize },
    Fill { to: Raw, piece: Piece },
}

// SAFETY: the objects may be used by any thread; kernels are used under the graph's lock, or by its only owner.
unsafe impl Send for Command {}

/// The commands of a node.
#[derive(Debug, Default)]
struct Node(Vec<Command>);

/// A command buffer, and the queue that it was recorded on.
#[derive(Debug)]
struct Recorded {
    options: QueueOptions,
    buffer: Raw,
    calls: CommandBuffers,
    driver: &'static Driver,
    _queue: Owned<CommandQueue>,
}

// SAFETY: a command buffer may be used by any thread; it is, under the graph's lock.
unsafe impl Send for Recorded {}

/// An executable graph.
#[derive(Debug)]
pub struct OpenClGraph {
    primary: Arc<Primary>,
    device: usize,
    calls: CommandBuffers,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    nodes: Vec<Node>,
    recorded: Vec<Recorded>,
}

/// The functions of command buffers, where a device has such that can be replayed while they run.
pub(crate) fn support(driver: &Driver, entry: &Entry) -> Option<CommandBuffers> {
    let capabilities = driver.device_number(entry.device, CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR);
    let repeats = capabilities & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR != 0;
    if repeats { driver.command_buffers(entry.platform) } else { None }
}

impl OpenClGraph {
    pub(crate) fn new(
        primary: &Arc<Primary>,
        device: Raw,
        nodes: &[GraphNode<'_, OpenClBuffer, OpenClKernel>],
    ) -> Result<Self> {
        let calls =
            primary.facts.command_buffers.ok_or_else(|| Error::unsupported("a graph is not supported"))?;
        let nodes = nodes.iter().map(|node| Node::new(primary, node)).collect::<Result<Vec<_>>>()?;
        let graph = Self {
            primary: Arc::clone(primary),
            device: device.expose_provenance(),
            calls,
            state: Mutex::new(State { nodes, recorded: Vec::new() }),
        };
        // What the driver refuses to record is known now.
        let first = graph.record(&graph.state.lock().nodes, QueueOptions::default())?;
        graph.state.lock().recorded.push(first);
        Ok(graph)
    }

    fn record(&self, nodes: &[Node], options: QueueOptions) -> Result<Recorded> {
        let driver = self.primary.driver;
        let device = std::ptr::with_exposed_provenance_mut(self.device);
        let own = queue::command_queue(&self.primary, device, &options)?;
        let (list, properties) =
            ([own.raw()], [CL_COMMAND_BUFFER_FLAGS_KHR, CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0]);
        let buffer = driver.make("clCreateCommandBufferKHR", |_, code| {
            let properties = properties.as_ptr();
            // SAFETY: one queue, and a list of properties that ends with 0.
            Some(unsafe { (self.calls.clCreateCommandBufferKHR)(1, list.as_ptr(), properties, code) })
        })?;
        // On an error the drop releases it.
        let made = Recorded { options, buffer, calls: self.calls, driver, _queue: own };
        for command in nodes.iter().flat_map(|node| &node.0) {
            made.add(command)?;
        }
        driver.extension("clFinalizeCommandBufferKHR", || {
            // SAFETY: the command buffer is complete.
            unsafe { (self.calls.clFinalizeCommandBufferKHR)(buffer) }
        })?;
        Ok(made)
    }

    /// Submits everything as one command.
    pub(crate) fn enqueue(&self, queue: Raw, options: QueueOptions) -> Result<Owned<Event>> {
        let mut state = self.state.lock();
        if !state.recorded.iter().any(|recorded| recorded.options == options) {
            let more = self.record(&state.nodes, options)?;
            state.recorded.push(more);
        }
        let fitting = state.recorded.iter().find(|recorded| recorded.options == options);
        let buffer = fitting.map_or(std::ptr::null_mut(), |recorded| recorded.buffer);
        let mut queues = [queue];
        self.primary.enqueue("clEnqueueCommandBufferKHR", |_, event| {
            let none = std::ptr::null();
            // SAFETY: the command buffer is finalized, and was recorded on a queue like this one.
            Some(unsafe {
                (self.calls.clEnqueueCommandBufferKHR)(1, queues.as_mut_ptr(), buffer, 0, none, event)
            })
        })
    }
}

impl Node {
    fn new(primary: &Arc<Primary>, node: &GraphNode<'_, OpenClBuffer, OpenClKernel>) -> Result<Self> {
        Ok(Self(match &node.work {
            GraphWork::Launch { kernel, launch } => {
                launch::check(launch)?;
                let shape = [launch.groups(), launch.group_size()];
                let kernel = kernel.share()?;
                let mut bound = Bound::new(&kernel)?;
                set(&mut bound, &kernel, launch)?;
                if shape[0].contains(&0) {
                    Vec::new()
                } else {
                    vec![Command::Launch { kernel, bound, shape }]
                }
            }
            GraphWork::Copy { destination, source, bytes } => {
                let (to, to_offset, bytes) = object(primary, "copy: destination", *destination, *bytes)?;
                let (from, from_offset, _) = object(primary, "copy: source", *source, bytes as u64)?;
                let copy = Command::Copy { to: (to, to_offset), from: (from, from_offset), bytes };
                if bytes == 0 { Vec::new() } else { vec![copy] }
            }
            GraphWork::Fill { destination, bytes, pattern } => {
                let (to, offset, bytes) = object(primary, "fill", *destination, *bytes)?;
                let pieces = convert::pieces(offset, bytes, pattern)
                    .ok_or_else(|| Error::invalid(format!("fill: a pattern of {} bytes", pattern.len())))?;
                pieces.map(|piece| Command::Fill { to, piece }).collect()
            }
        }))
    }
}

/// The memory object of a range.
fn object(
    primary: &Arc<Primary>,
    what: &str,
    (buffer, offset): (&OpenClBuffer, u64),
    bytes: u64,
) -> Result<(Raw, usize, usize)> {
    let (offset, bytes) = buffer.range(what, offset, bytes)?;
    match buffer.reach() {
        Reach::Object(object) if Arc::ptr_eq(buffer.primary(), primary) && primary.facts.records_copies => {
            Ok((object, offset, bytes))
        }
        _ => Err(Error::unsupported("a copy or fill of this memory in a command buffer is not supported")),
    }
}

fn set(bound: &mut Bound, kernel: &OpenClKernel, launch: &Launch<'_, OpenClBuffer>) -> Result<()> {
    if bound.set_all(kernel, launch.args())? {
        Ok(())
    } else {
        Err(Error::unsupported("a graph takes no view that must be copied"))
    }
}

impl Recorded {
    /// Adds a command, which runs after those before it.
    fn add(&self, command: &Command) -> Result<()> {
        // Commands on an in-order queue need no points to wait for.
        let (buffer, queue, none) = (self.buffer, std::ptr::null_mut(), std::ptr::null_mut::<u32>());
        let (properties, handle) = (std::ptr::null(), std::ptr::null_mut());
        match command {
            Command::Launch { bound, shape, .. } => {
                let (dimensions, global, local) = launch::shape(*shape);
                self.driver.extension("clCommandNDRangeKernelKHR", || {
                    // SAFETY: the arguments are set, and core keeps what they refer to as long as the graph.
                    unsafe {
                        (self.calls.clCommandNDRangeKernelKHR)(
                            buffer,
                            queue,
                            properties,
                            bound.function(),
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
                // SAFETY: both ranges were checked, and core keeps the buffers as long as the graph.
                unsafe {
                    (self.calls.clCommandCopyBufferKHR)(
                        buffer, queue, properties, from.0, to.0, from.1, to.1, *bytes, 0, none, none, handle,
                    )
                }
            }),
            Command::Fill { to, piece } => self.driver.extension("clCommandFillBufferKHR", || {
                let (pattern, unit) = (piece.pattern.as_ptr().cast(), piece.unit);
                let (offset, bytes) = (piece.offset, piece.bytes);
                // SAFETY: as above, and the pattern is copied.
                unsafe {
                    (self.calls.clCommandFillBufferKHR)(
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
            // SAFETY: made once, and given up here; the driver keeps it while it runs.
            unsafe { (self.calls.clReleaseCommandBufferKHR)(self.buffer) }
        });
    }
}

impl Graph for OpenClGraph {
    type Buffer = OpenClBuffer;

    fn update(&mut self, node: u32, launch: &Launch<'_, OpenClBuffer>) -> Result<()> {
        let state = self.state.get_mut();
        let command = state.nodes.get_mut(node as usize).and_then(|node| node.0.first_mut());
        match command {
            Some(Command::Launch { kernel, bound, .. }) => {
                // What is refused leaves the node as it was.
                let mut fresh = Bound::new(kernel)?;
                set(&mut fresh, kernel, launch)?;
                *bound = fresh;
            }
            // A launch of no groups, which core does not tell from others.
            None if launch.groups().contains(&0) => {}
            _ => return Err(Error::invalid(format!("node {node} is no launch"))),
        }
        // What is in flight goes on with what it was recorded with.
        state.recorded.clear();
        Ok(())
    }
}
