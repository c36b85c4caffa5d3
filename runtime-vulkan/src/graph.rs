//! Graphs: secondary command buffers, recorded once and executed by any number of primary ones.

use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::backend::{Graph, GraphNode, GraphWork, Launch};
use runtime_core::{Error, Result};

use crate::convert::{self, FillPiece};
use crate::device_state::DeviceState;
use crate::driver::{CommandBuffer, CommandPool, Memory, MemoryLocation};
use crate::fill::FillStep;
use crate::launch::PackedArgs;
use crate::memory::VulkanBuffer;
use crate::module::VulkanKernel;
use crate::progress::QueueProgress;

/// A graph that can be replayed, on several queues at once too.
#[derive(Debug)]
pub struct VulkanGraph {
    /// Only the last one can be current; earlier ones are stale, and kept while work uses them.
    recordings: Mutex<Vec<Recording>>,
    nodes: Vec<Node>,
    shared: Arc<DeviceState>,
}

/// A node, ready to be recorded.
#[derive(Debug)]
struct Node {
    /// It depends on a node that no earlier barrier orders.
    needs_barrier: bool,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Launch { kernel: VulkanKernel, args: Box<PackedArgs> },
    Copy { to: (Arc<Memory>, u64), from: (Arc<Memory>, u64), bytes: u64 },
    Fill { to: Arc<Memory>, steps: Vec<FillStep> },
}

/// The nodes as commands, and the submissions that execute them.
#[derive(Debug)]
struct Recording {
    commands: CommandBuffer,
    _pool: CommandPool,
    /// By queue, the last ticket that executes it.
    last_uses: Vec<(Arc<QueueProgress>, u64)>,
    /// Replaced arguments that pending work may still use.
    replaced: Vec<PackedArgs>,
    /// The graph's arguments have changed since.
    stale: bool,
}

impl VulkanGraph {
    pub(crate) fn new(
        shared: &Arc<DeviceState>,
        nodes: &[GraphNode<'_, VulkanBuffer, VulkanKernel>],
    ) -> Result<Self> {
        let mut graph = Self {
            recordings: Mutex::default(),
            nodes: Vec::with_capacity(nodes.len()),
            shared: Arc::clone(shared),
        };
        let mut barrier_before = 0;
        for (index, node) in nodes.iter().enumerate() {
            let needed = node.dependencies.iter().map(|&node| node as usize + 1).max().unwrap_or(0);
            if needed > index {
                return Err(Error::invalid(format!("node {index} depends on itself or a later one")));
            }
            let needs_barrier = needed > barrier_before;
            if needs_barrier {
                barrier_before = index;
            }
            graph.nodes.push(Node { needs_barrier, work: graph.prepare(&node.work)? });
        }
        let recording = graph.record()?;
        graph.recordings.get_mut().push(recording);
        Ok(graph)
    }

    fn prepare(&self, work: &GraphWork<'_, VulkanBuffer, VulkanKernel>) -> Result<Work> {
        Ok(match work {
            GraphWork::Launch { kernel, launch } => {
                Work::Launch { kernel: (*kernel).clone(), args: Box::new(PackedArgs::new(kernel, launch)?) }
            }
            GraphWork::Copy { destination, source, bytes } => {
                destination.0.check("copy: destination", destination.1, *bytes)?;
                source.0.check("copy: source", source.1, *bytes)?;
                let side = |(buffer, offset): &(&VulkanBuffer, u64)| (Arc::clone(&buffer.memory), *offset);
                Work::Copy { to: side(destination), from: side(source), bytes: *bytes }
            }
            GraphWork::Fill { destination: (buffer, offset), bytes, pattern } => {
                buffer.check("fill", *offset, *bytes)?;
                let base_offset = buffer.memory.base_offset;
                let pieces = convert::split_fill(base_offset + offset, *bytes, pattern.repeated());
                let steps = pieces.map(|piece| self.fill_step(base_offset, piece)).collect::<Result<_>>()?;
                Work::Fill { to: Arc::clone(&buffer.memory), steps }
            }
        })
    }

    fn fill_step(&self, base_offset: u64, piece: FillPiece) -> Result<FillStep> {
        FillStep::new(&self.shared, base_offset, piece, || {
            Ok((Arc::new(Memory::allocate(&self.shared.logical, MemoryLocation::Pinned, 16, 16)?), 0))
        })
    }

    fn record(&self) -> Result<Recording> {
        let logical = &self.shared.logical;
        let family = logical.caps.compute_family().map_or(0, |family| family.index);
        let pool = CommandPool::new(logical, family)?;
        let mut commands = pool.allocate_secondary()?;
        commands.begin_secondary()?;
        for node in &self.nodes {
            if node.needs_barrier {
                commands.barrier();
            }
            self.record_work(&node.work, &mut commands)?;
        }
        commands.end()?;
        Ok(Recording { commands, _pool: pool, last_uses: Vec::new(), replaced: Vec::new(), stale: false })
    }

    fn record_work(&self, work: &Work, commands: &mut CommandBuffer) -> Result<()> {
        match work {
            Work::Launch { kernel, args } => args.record(kernel, commands)?,
            Work::Copy { bytes: 0, .. } => {}
            Work::Copy { to, from, bytes } => commands.copy((&to.0, to.1), (&from.0, from.1), *bytes),
            Work::Fill { to, steps } => {
                let logical = &self.shared.logical;
                steps.iter().try_for_each(|step| step.record(logical, commands, to))?;
            }
        }
        Ok(())
    }

    /// Executes the graph as part of a queue's commands; returns whether it writes host-visible memory.
    pub(crate) fn execute(
        &self,
        commands: &mut CommandBuffer,
        queue: &Arc<QueueProgress>,
        ticket: u64,
    ) -> Result<bool> {
        let mut recordings = self.recordings.lock();
        if recordings.last().is_none_or(|recording| recording.stale) {
            recordings.retain(|recording| !recording.is_unused());
            recordings.push(self.record()?);
        }
        if let Some(recording) = recordings.last_mut() {
            commands.execute(&recording.commands);
            match recording.last_uses.iter_mut().find(|(known, _)| Arc::ptr_eq(known, queue)) {
                Some((_, last)) => *last = ticket,
                None => {
                    // A graph may outlive many queues.
                    recording.last_uses.retain(|(known, last)| known.completed() < *last);
                    recording.last_uses.push((Arc::clone(queue), ticket));
                }
            }
        }
        Ok(self.nodes.iter().any(Node::writes_host_visible_memory))
    }
}

impl Node {
    fn writes_host_visible_memory(&self) -> bool {
        match &self.work {
            Work::Launch { args, .. } => args.host_visible_write,
            Work::Copy { to: (memory, _), .. } | Work::Fill { to: memory, .. } => memory.host_ptr().is_some(),
        }
    }
}

impl Recording {
    /// Whether it is neither executing nor will be executed again.
    fn is_unused(&self) -> bool {
        self.stale && self.last_uses.iter().all(|(queue, ticket)| queue.completed() >= *ticket)
    }
}

impl Graph for VulkanGraph {
    type Buffer = VulkanBuffer;

    fn update(&mut self, node: u32, launch: &Launch<'_, VulkanBuffer>) -> Result<()> {
        let Some(Node { work: Work::Launch { kernel, args }, .. }) = self.nodes.get_mut(node as usize) else {
            return Err(Error::invalid(format!("node {node} is not a launch")));
        };
        let replaced = std::mem::replace(&mut **args, PackedArgs::new(kernel, launch)?);
        if let Some(recording) = self.recordings.get_mut().last_mut() {
            recording.replaced.push(replaced);
            recording.stale = true;
        }
        Ok(())
    }
}
