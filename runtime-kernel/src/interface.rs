//! The arguments and work-group of each entry point, as plain data.

use runtime_core::{Access, DType};

use crate::ir::Global;

/// An entry point: its arguments and its work-group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name in the text.
    pub name: String,
    /// Tensor arguments, in the order of (group, binding).
    pub tensors: Vec<Tensor>,
    /// Scalar arguments, in the order of the struct's members; they come after the tensors. Those of a [`Layout`] come one
    /// by one.
    pub scalars: Vec<Scalar>,
    /// The layouts of tensors among the scalars, in their order.
    pub layouts: Vec<Layout>,
    /// The `var<immediate>` that holds the scalars.
    pub(crate) immediate: Option<Global>,
    /// Invocations per work-group.
    pub group_size: [u32; 3],
    /// Bytes of workgroup memory.
    pub shared_bytes: u32,
    /// Invocations whose work one invocation does. If it is more than one, the last scalar is no argument: it is the number of
    /// work-groups along x that the launch asks for, whereas the device runs that number divided by this one, rounded up.
    pub items_per_thread: u32,
}

impl Interface {
    /// The scalars that are arguments: all but the one that a launch adds for a coarsened kernel.
    #[must_use]
    pub fn scalar_arguments(&self) -> &[Scalar] {
        let added = usize::from(self.items_per_thread > 1);
        &self.scalars[..self.scalars.len().saturating_sub(added)]
    }
}

/// A storage buffer, a texture, or a uniform buffer, which is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The variable's name.
    pub name: String,
    /// Its position among the arguments: that of its (`@group`, `@binding`) among those that the entry point uses.
    pub binding: u32,
    /// The declared access, `read` or `read_write`; a `read_write` buffer that the entry point never reads is
    /// `Write`.
    pub access: Access,
    /// The scalar type of its elements; `None` for structs.
    pub dtype: Option<DType>,
    /// Size in bytes of the part that is not runtime-sized.
    pub min_bytes: u64,
    /// Required alignment of its address: the size of its widest scalar, a power of two. Vectors need no more.
    pub alignment_bytes: u64,
    pub(crate) variable: Global,
}

/// A member of the `var<immediate>` struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// The member's name.
    pub name: String,
    /// Its type.
    pub dtype: DType,
    /// Its offset in the struct.
    pub offset_bytes: u32,
}

/// Scalars that receive the shape and the strides of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The tensor, as an index of `tensors`.
    pub tensor: usize,
    /// The dimensions that it holds.
    pub rank: usize,
    /// The first of its `2 * rank` scalars, the extents and then the strides, as an index of `scalars`.
    pub first_scalar: usize,
    /// Whether the tensor may have gaps; that of a texture may not.
    pub is_strided: bool,
}

/// An `override` constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Its name.
    pub name: String,
    /// `@id`, if present.
    pub id: Option<u16>,
    /// `bool`, `i32`, `u32`, `f32`, …
    pub type_name: String,
    /// The default as written in the text; `None` if a value must be given.
    pub default: Option<String>,
}
