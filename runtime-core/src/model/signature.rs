//! Signatures of kernels whose element types are not chosen yet.

use crate::{Access, DType};

/// A parameter of a kernel whose element types may still be open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureParam {
    /// Its name in the code; empty if it has none.
    pub name: String,
    /// What it takes.
    pub kind: SignatureKind,
}

impl SignatureParam {
    /// Whether it is a layout, which the runtime passes for a tensor.
    pub(crate) const fn is_layout(&self) -> bool {
        matches!(self.kind, SignatureKind::Layout { .. })
    }

    /// Whether it is the layout of the tensor at this index.
    pub(crate) const fn is_layout_of(&self, index: usize) -> bool {
        matches!(self.kind, SignatureKind::Layout { tensor, .. } if tensor == index)
    }
}

/// What a parameter takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureKind {
    /// A tensor.
    Tensor {
        /// How the kernel accesses it.
        access: Access,
        /// Its element type.
        element: ElementType,
    },
    /// A scalar.
    Scalar(ElementType),
    /// Shape and strides of a tensor, as a structure `Layout`. The kernel accepts views with gaps of that tensor.
    Layout {
        /// The index of the tensor among the parameters.
        tensor: usize,
        /// The most dimensions that the structure holds.
        rank: usize,
    },
    /// A structure, or bytes by value.
    Bytes,
    /// Dynamic work-group memory.
    Local,
}

/// The element type of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// This one.
    Fixed(DType),
    /// The type parameter of this name, such as `T`. All parameters with the same name have the same type.
    Parameter(String),
    /// Any: the code reads structures or bytes.
    Any,
}
