//! The nodes of a graph: what each does, and which earlier ones it waits for.

use std::collections::HashMap;
use std::sync::Arc;

use crate::code::arg::Value;
use crate::{Access, Arg, DType, Error, Geometry, Kernel, Result, Tensor};

/// Recorded nodes, and what the next one may depend on.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) list: Vec<Node>,
    /// Per buffer: the last node that writes it, and those that read it since.
    last: HashMap<usize, (Option<u32>, Vec<u32>)>,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) work: Work,
    pub(super) dependencies: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) enum Work {
    Launch { kernel: Kernel, geometry: Geometry, args: Vec<OwnedArg> },
    Copy { destination: Tensor, source: Tensor },
    Fill { tensor: Tensor, pattern: Vec<u8> },
}

#[derive(Clone, Debug)]
pub(super) enum OwnedArg {
    /// With its access, and whether the kernel computes with its strides.
    Tensor(Tensor, Access, bool),
    Scalar(DType, u64),
    Bytes(Vec<u8>),
    Local(u64),
}

impl OwnedArg {
    pub(super) fn new(arg: &Arg<'_>) -> Self {
        match arg.value {
            Value::Tensor(tensor, access, strided) => Self::Tensor(tensor.clone(), access, strided),
            Value::Scalar(dtype, bits) => Self::Scalar(dtype, bits),
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Value::Local(bytes) => Self::Local(bytes),
        }
    }

    pub(super) fn borrow(&self) -> Arg<'_> {
        match self {
            Self::Tensor(tensor, access, false) => Arg::tensor(tensor, *access),
            Self::Tensor(tensor, access, true) => Arg::tensor(tensor, *access).strided(),
            Self::Scalar(dtype, bits) => Arg::scalar_bits(*dtype, *bits),
            Self::Bytes(bytes) => Arg::bytes(bytes),
            Self::Local(bytes) => Arg::local(*bytes),
        }
    }
}

impl Node {
    pub(super) fn geometry(&self) -> Option<&Geometry> {
        match &self.work {
            Work::Launch { geometry, .. } => Some(geometry),
            _ => None,
        }
    }
}

impl Work {
    pub(super) fn uses(&self) -> Vec<(&Tensor, Access)> {
        match self {
            Self::Launch { args, .. } => args
                .iter()
                .filter_map(|arg| match arg {
                    OwnedArg::Tensor(tensor, access, _) => Some((tensor, *access)),
                    _ => None,
                })
                .collect(),
            Self::Copy { destination, source } => vec![(destination, Access::Write), (source, Access::Read)],
            Self::Fill { tensor, .. } => vec![(tensor, Access::Write)],
        }
    }
}

impl Nodes {
    /// Appends `work` behind what it depends on; returns its index.
    ///
    /// # Errors
    /// `InvalidArgument` for a write to a frozen tensor; nothing is appended then.
    pub(super) fn push(&mut self, work: Work) -> Result<u32> {
        let index =
            u32::try_from(self.list.len()).map_err(|_| Error::invalid("a graph has at most 2^32 nodes"))?;
        // All are checked before one is noted: a refused node leaves the order as it was.
        for (tensor, access) in work.uses() {
            if tensor.buffer("record")?.is_frozen() && access.writes() {
                return Err(Error::invalid("a frozen tensor cannot be written"));
            }
        }
        let mut dependencies = Vec::new();
        for (tensor, access) in work.uses() {
            let buffer = tensor.buffer("record")?;
            let (writer, readers) = self.last.entry(Arc::as_ptr(buffer).addr()).or_default();
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
        self.list.push(Node { work, dependencies });
        Ok(index)
    }
}
