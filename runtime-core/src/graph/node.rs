//! The nodes of a graph: their operations, and their dependencies on earlier nodes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::code::owned_arg::OwnedArg;
use crate::{Access, Error, Kernel, LaunchConfig, Result, Tensor};

/// Recorded nodes, and the accesses that the next one may depend on.
#[derive(Debug, Default)]
pub(super) struct NodeList {
    pub(super) list: Vec<Node>,
    /// Per buffer address: the last node that writes it, and the nodes that have read it since.
    uses: HashMap<usize, (Option<u32>, Vec<u32>)>,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) operation: Operation,
    pub(super) dependencies: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) enum Operation {
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
    pub(super) fn uses(&self) -> Vec<(&Tensor, Access)> {
        match self {
            Self::Launch { args, .. } => args.iter().filter_map(OwnedArg::tensor).collect(),
            Self::Copy { destination, source } => vec![(destination, Access::Write), (source, Access::Read)],
            Self::Fill { tensor, .. } => vec![(tensor, Access::Write)],
        }
    }
}

impl NodeList {
    /// Appends `operation` with its dependencies; returns its index.
    ///
    /// # Errors
    /// `InvalidArgument` for a write to a frozen tensor; then nothing is appended.
    pub(super) fn push(&mut self, operation: Operation) -> Result<u32> {
        let index =
            u32::try_from(self.list.len()).map_err(|_| Error::invalid("a graph has at most 2^32 nodes"))?;
        // Check all uses before recording any: a refused node must not change later dependencies.
        for (tensor, access) in operation.uses() {
            if tensor.buffer("record")?.is_frozen() && access.writes() {
                return Err(Error::invalid("a frozen tensor cannot be written"));
            }
        }
        let mut dependencies = Vec::new();
        for (tensor, access) in operation.uses() {
            let buffer = tensor.buffer("record")?;
            let (writer, readers) = self.uses.entry(Arc::as_ptr(buffer).addr()).or_default();
            dependencies.extend(writer.filter(|&writer| writer != index));
            if access.writes() {
                dependencies.extend(readers.drain(..).filter(|&reader| reader != index));
                *writer = Some(index);
            } else {
                readers.push(index);
            }
        }
        dependencies.sort_unstable();
        dependencies.dedup();
        self.list.push(Node { operation, dependencies });
        Ok(index)
    }
}
