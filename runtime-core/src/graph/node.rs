//! The nodes of a graph: their operations, and their dependencies on earlier nodes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::code::owned_arg::OwnedArg;
use crate::{Access, Error, Kernel, LaunchConfig, Result, Tensor};

/// Recorded nodes, and the accesses that the next one may depend on.
#[derive(Debug, Default)]
pub(crate) struct NodeList {
    pub(crate) list: Vec<Node>,
    uses: TensorUses,
}

/// Per buffer address: the last node that writes it, and the nodes that have read it since.
#[derive(Debug, Default)]
pub(super) struct TensorUses(HashMap<usize, (Option<u32>, Vec<u32>)>);

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) operation: Operation,
    pub(crate) dependencies: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Launch { kernel: Kernel, config: LaunchConfig, args: Vec<OwnedArg> },
    Copy { destination: Tensor, source: Tensor },
    Fill { tensor: Tensor, pattern: Vec<u8> },
}

impl Node {
    pub(super) fn config(&self) -> Option<&LaunchConfig> {
        match &self.operation {
            Operation::Launch { config, .. } => Some(config),
            _ => None,
        }
    }
}

impl Operation {
    /// Refuses a write to a frozen tensor.
    pub(super) fn check_writable(&self) -> Result<()> {
        for (tensor, access) in self.uses() {
            if tensor.buffer("record")?.is_frozen() && access.writes() {
                return Err(Error::invalid("a frozen tensor cannot be written"));
            }
        }
        Ok(())
    }

    pub(super) fn uses(&self) -> Vec<(&Tensor, Access)> {
        match self {
            Self::Launch { args, .. } => args.iter().filter_map(OwnedArg::tensor).collect(),
            Self::Copy { destination, source } => vec![(destination, Access::Write), (source, Access::Read)],
            Self::Fill { tensor, .. } => vec![(tensor, Access::Write)],
        }
    }
}

impl TensorUses {
    /// Adds node `index`, and the nodes that it depends on to `dependencies`; some may be added twice.
    pub(super) fn add(
        &mut self,
        index: u32,
        operation: &Operation,
        dependencies: &mut Vec<u32>,
    ) -> Result<()> {
        for (tensor, access) in operation.uses() {
            let buffer = tensor.buffer("record")?;
            let (writer, readers) = self.0.entry(Arc::as_ptr(buffer).addr()).or_default();
            dependencies.extend(writer.filter(|&writer| writer != index));
            if access.writes() {
                dependencies.extend(readers.drain(..).filter(|&reader| reader != index));
                *writer = Some(index);
            } else {
                readers.push(index);
            }
        }
        Ok(())
    }
}

/// The error of a node whose index does not fit.
pub(super) fn too_many_nodes() -> Error {
    Error::invalid("a graph has at most 2^32 nodes")
}

impl NodeList {
    /// Appends `operation` with its dependencies: on the nodes that use its tensors, and on those in `after`.
    /// Returns its index.
    ///
    /// # Errors
    /// `InvalidArgument` for a write to a frozen tensor, or an index in `after` that is not of an earlier node;
    /// then nothing is appended.
    pub(crate) fn push(&mut self, operation: Operation, after: &[usize]) -> Result<u32> {
        let index = u32::try_from(self.list.len()).map_err(|_| too_many_nodes())?;
        // Check everything before recording anything: a refused node must not change later dependencies.
        let mut dependencies = after.iter().map(|&node| self.earlier(node)).collect::<Result<Vec<_>>>()?;
        operation.check_writable()?;
        self.uses.add(index, &operation, &mut dependencies)?;
        dependencies.sort_unstable();
        dependencies.dedup();
        self.list.push(Node { operation, dependencies });
        Ok(index)
    }

    /// Appends the nodes of another graph. Those that depend on none of its nodes depend on those in `after`.
    ///
    /// # Errors
    /// As [`NodeList::push`]; then nothing is appended.
    pub(super) fn extend(&mut self, nodes: &[Node], after: &[usize]) -> Result<Range<usize>> {
        let first = self.list.len();
        after.iter().try_for_each(|&node| self.earlier(node).map(drop))?;
        nodes.iter().try_for_each(|node| node.operation.check_writable())?;
        if u32::try_from(first + nodes.len()).is_err() {
            return Err(too_many_nodes());
        }
        for node in nodes {
            let inner: Vec<_> = node.dependencies.iter().map(|&needed| first + needed as usize).collect();
            self.push(node.operation.clone(), if inner.is_empty() { after } else { &inner })?;
        }
        Ok(first..self.list.len())
    }

    /// The number of a node that the next one may depend on.
    fn earlier(&self, node: usize) -> Result<u32> {
        match u32::try_from(node) {
            Ok(index) if node < self.list.len() => Ok(index),
            _ => {
                let (next, one) = (self.list.len(), "a node can only depend on earlier ones");
                Err(Error::invalid(format!("node {next} cannot depend on node {node}: {one}")))
            }
        }
    }
}
