//! Native graphs: lists of commands that are recorded once and are part of many others.

use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::backend::{Graph, GraphNode, GraphWork, Launch};
use runtime_core::{Error, Result};

use crate::context::Context;
use crate::convert::{self, Piece};
use crate::driver::{Commands, Home, Memory, Pool};
use crate::fill::{self, Step};
use crate::launch::Packed;
use crate::memory::VulkanBuffer;
use crate::module::VulkanKernel;
use crate::progress::Shared;

/// A graph that can be replayed, also on several queues at once.
#[derive(Debug)]
pub struct VulkanGraph {
    recordings: Mutex<Vec<Recording>>,
    nodes: Vec<Node>,
    context: Arc<Context>,
}

/// A node, in the form in which it is recorded.
#[derive(Debug)]
struct Node {
    /// It waits for all nodes before it, which no node between them waited for.
    ordered: bool,
    work: Work,
}

#[derive(Debug)]
enum Work {
    Launch { kernel: VulkanKernel, packed: Box<Packed> },
    Copy { to: (Arc<Memory>, u64), from: (Arc<Memory>, u64), bytes: u64 },
    Fill { to: Arc<Memory>, steps: Vec<Step> },
}

/// The nodes as commands, and the work that they are part of. The last one is of the graph as it is now.
#[derive(Debug)]
struct Recording {
    commands: Commands,
    _pool: Pool,
    uses: Vec<(Arc<Shared>, u64)>,
    /// Arguments that were replaced, and that its work still uses.
    replaced: Vec<Packed>,
    stale: bool,
}

impl VulkanGraph {
    pub(crate) fn new(
        context: &Arc<Context>,
        nodes: &[GraphNode<'_, VulkanBuffer, VulkanKernel>],
    ) -> Result<Self> {
        let mut made = Self {
            recordings: Mutex::default(),
            nodes: Vec::with_capacity(nodes.len()),
            context: Arc::clone(context),
        };
        let mut covered = 0;
        for (index, node) in nodes.iter().enumerate() {
            let needed = node.dependencies.iter().map(|&needed| needed as usize + 1).max().unwrap_or(0);
            if needed > index {
                return Err(Error::invalid(format!("node {index} depends on itself or a later one")));
            }
            let ordered = needed > covered;
            if ordered {
                covered = index;
            }
            made.nodes.push(Node { ordered, work: made.work(&node.work)? });
        }
        let recording = made.record()?;
        made.recordings.get_mut().push(recording);
        Ok(made)
    }

    fn work(&self, work: &GraphWork<'_, VulkanBuffer, VulkanKernel>) -> Result<Work> {
        Ok(match work {
            GraphWork::Launch { kernel, launch } => {
                Work::Launch { kernel: (*kernel).clone(), packed: Box::new(Packed::new(kernel, launch)?) }
            }
            GraphWork::Copy { destination, source, bytes } => {
                destination.0.check("copy: destination", destination.1, *bytes)?;
                source.0.check("copy: source", source.1, *bytes)?;
                let side = |(buffer, offset): &(&VulkanBuffer, u64)| (Arc::clone(&buffer.memory), *offset);
                Work::Copy { to: side(destination), from: side(source), bytes: *bytes }
            }
            GraphWork::Fill { destination: (buffer, offset), bytes, pattern } => {
                buffer.check("fill", *offset, *bytes)?;
                let wide = fill::pattern(pattern, *bytes)?;
                let start = buffer.memory.start;
                let pieces = convert::pieces(start + offset, *bytes, wide);
                let steps = pieces.map(|piece| self.step(start, piece)).collect::<Result<_>>()?;
                Work::Fill { to: Arc::clone(&buffer.memory), steps }
            }
        })
    }

    fn step(&self, start: u64, piece: Piece) -> Result<Step> {
        Step::new(&self.context, start, piece, || {
            Ok((Arc::new(Memory::allocate(&self.context.logical, Home::Pinned, 16, 16)?), 0))
        })
    }

    fn record(&self) -> Result<Recording> {
        let logical = &self.context.logical;
        let family = logical.facts.compute_family().map_or(0, |family| family.index);
        let pool = Pool::new(logical, family)?;
        let mut commands = pool.commands(true)?;
        commands.begin_replayed()?;
        for node in &self.nodes {
            if node.ordered {
                commands.barrier();
            }
            self.record_work(&node.work, &mut commands)?;
        }
        commands.end()?;
        Ok(Recording { commands, _pool: pool, uses: Vec::new(), replaced: Vec::new(), stale: false })
    }

    fn record_work(&self, work: &Work, commands: &mut Commands) -> Result<()> {
        match work {
            Work::Launch { kernel, packed } => packed.record(kernel, commands)?,
            Work::Copy { bytes: 0, .. } => {}
            Work::Copy { to, from, bytes } => commands.copy((&to.0, to.1), (&from.0, from.1), *bytes),
            Work::Fill { to, steps } => {
                let logical = &self.context.logical;
                steps.iter().try_for_each(|step| step.record(logical, commands, to))?;
            }
        }
        Ok(())
    }

    /// Makes everything part of a queue's commands; says whether it writes memory that the program reaches.
    pub(crate) fn include(&self, commands: &mut Commands, queue: &Arc<Shared>, ticket: u64) -> Result<bool> {
        let mut recordings = self.recordings.lock();
        if recordings.last().is_none_or(|recording| recording.stale) {
            recordings.retain(|recording| !recording.has_ended());
            recordings.push(self.record()?);
        }
        if let Some(recording) = recordings.last_mut() {
            commands.include(&recording.commands);
            match recording.uses.iter_mut().find(|(known, _)| Arc::ptr_eq(known, queue)) {
                Some((_, last)) => *last = ticket,
                None => {
                    // Queues come and go, and a graph may outlive many.
                    recording.uses.retain(|(known, last)| known.completed() < *last);
                    recording.uses.push((Arc::clone(queue), ticket));
                }
            }
        }
        Ok(self.nodes.iter().any(Node::is_seen))
    }
}

impl Node {
    /// Whether it writes memory that the program reaches.
    fn is_seen(&self) -> bool {
        match &self.work {
            Work::Launch { packed, .. } => packed.seen,
            Work::Copy { to: (memory, _), .. } | Work::Fill { to: memory, .. } => memory.host().is_some(),
        }
    }
}

impl Recording {
    /// Whether nobody runs it, nor will.
    fn has_ended(&self) -> bool {
        self.stale && self.uses.iter().all(|(queue, ticket)| queue.completed() >= *ticket)
    }
}

impl Graph for VulkanGraph {
    type Buffer = VulkanBuffer;

    fn update(&mut self, node: u32, launch: &Launch<'_, VulkanBuffer>) -> Result<()> {
        let Some(Node { work: Work::Launch { kernel, packed }, .. }) = self.nodes.get_mut(node as usize)
        else {
            return Err(Error::invalid(format!("node {node} is no launch")));
        };
        let replaced = std::mem::replace(&mut **packed, Packed::new(kernel, launch)?);
        if let Some(recording) = self.recordings.get_mut().last_mut() {
            recording.replaced.push(replaced);
            recording.stale = true;
        }
        Ok(())
    }
}
