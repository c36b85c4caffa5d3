//! Native graphs, on `null:1` only. A backend without graphs deletes this file and sets `type Graph = NoGraph<…>`.

use std::sync::Arc;
use std::time::Duration;

use runtime_core::backend::{Graph, GraphNode, GraphWork, Launch};
use runtime_core::{Error, Result};

use crate::arguments::Arguments;
use crate::builtins::Code;
use crate::fault::{Faults, OnDrop};
use crate::memory::{Memory, NullBuffer};
use crate::module::NullKernel;

/// An executable graph.
#[derive(Debug)]
pub struct NullGraph {
    /// A replay in flight keeps the nodes that it was submitted with.
    nodes: Vec<Arc<Node>>,
    faults: Arc<Faults>,
    _close: OnDrop,
}

#[derive(Debug)]
enum Node {
    Launch(Code, Box<Arguments>),
    Copy { to: (Arc<Memory>, u64), from: (Arc<Memory>, u64), bytes: usize },
    Fill { to: (Arc<Memory>, u64), bytes: Vec<u8> },
}

impl NullGraph {
    pub(crate) fn new(nodes: &[GraphNode<'_, NullBuffer, NullKernel>], faults: &Arc<Faults>) -> Result<Self> {
        // Nodes run in order, so every edge must point backwards.
        let forward = |(index, node): (usize, &GraphNode<'_, _, _>)| {
            node.dependencies.iter().any(|&needed| needed as usize >= index)
        };
        if let Some(index) = nodes.iter().enumerate().position(forward) {
            return Err(Error::invalid(format!("node {index} depends on itself or a later one")));
        }
        let nodes = nodes.iter().map(|node| Node::new(&node.work).map(Arc::new)).collect::<Result<_>>()?;
        Ok(Self { nodes, faults: Arc::clone(faults), _close: OnDrop::new(faults, "close_graph") })
    }

    /// The time that a replay takes.
    pub(crate) fn duration(&self) -> Result<Duration> {
        self.nodes.iter().map(|node| node.duration()).sum()
    }

    /// The work of a replay, which receives the counters of its queue.
    pub(crate) fn work(&self) -> impl FnOnce(&[u64]) -> Result<()> + Send + use<> {
        let nodes = self.nodes.clone();
        move |counters| nodes.iter().try_for_each(|node| node.run(counters))
    }
}

impl Graph for NullGraph {
    type Buffer = NullBuffer;

    fn update(&mut self, node: u32, launch: &Launch<'_, NullBuffer>) -> Result<()> {
        self.faults.call("update")?;
        let place = self.nodes.get_mut(node as usize);
        let updated = place.and_then(|place| match **place {
            Node::Launch(code, _) => Some((place, code)),
            _ => None,
        });
        let (place, code) = updated.ok_or_else(|| Error::invalid(format!("node {node} is not a launch")))?;
        *place = Arc::new(Node::Launch(code, Box::new(Arguments::of_launch(launch)?)));
        Ok(())
    }
}

impl Node {
    fn new(work: &GraphWork<'_, NullBuffer, NullKernel>) -> Result<Self> {
        let length =
            |bytes: u64| usize::try_from(bytes).map_err(|_| Error::invalid("a node of too many bytes"));
        let end = |(buffer, offset): (&NullBuffer, u64)| (Arc::clone(&buffer.memory), offset);
        Ok(match *work {
            GraphWork::Launch { kernel, ref launch } => {
                Self::Launch(kernel.builtin.code, Box::new(Arguments::of_launch(launch)?))
            }
            GraphWork::Copy { destination, source, bytes } => {
                Self::Copy { to: end(destination), from: end(source), bytes: length(bytes)? }
            }
            GraphWork::Fill { destination, bytes, pattern } => Self::Fill {
                to: end(destination),
                bytes: pattern.shortest().iter().copied().cycle().take(length(bytes)?).collect(),
            },
        })
    }

    fn duration(&self) -> Result<Duration> {
        match self {
            Self::Launch(code, arguments) => code.duration(arguments),
            _ => Ok(Duration::ZERO),
        }
    }

    fn run(&self, counters: &[u64]) -> Result<()> {
        match self {
            Self::Launch(code, arguments) => code.run(arguments, counters),
            Self::Copy { to, from, bytes } => to.0.copy(to.1, &from.0, from.1, *bytes),
            Self::Fill { to, bytes } => to.0.put(to.1, bytes),
        }
    }
}
