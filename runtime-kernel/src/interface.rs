//! What a kernel takes, as plain data.

use naga::{GlobalVariable, Handle};
use runtime_core::{Access, DType};

/// One entry point: its arguments and its work-group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name in the text.
    pub name: String,
    /// Tensor arguments, by binding.
    pub tensors: Vec<Tensor>,
    /// Scalar arguments, in the order of the struct: they follow the tensors.
    pub scalars: Vec<Scalar>,
    /// The `var<immediate>` that has the scalars.
    pub(crate) immediate: Option<Handle<GlobalVariable>>,
    /// Invocations of a work-group.
    pub group_size: [u32; 3],
    /// Bytes of workgroup memory.
    pub shared_bytes: u32,
}

/// A storage buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The variable's name.
    pub name: String,
    /// `@binding`, which is its place among the arguments.
    pub binding: u32,
    /// As declared, `read` or `read_write`; a `read_write` that the entry point never reads is `Write`.
    pub access: Access,
    /// The scalar that its elements are made of; `None` for structs.
    pub dtype: Option<DType>,
    /// Bytes of its part of fixed size.
    pub min_bytes: u64,
    /// What its address must be a multiple of: the size of the widest scalar in it, a power of two. Vectors need no more.
    pub alignment_bytes: u64,
    pub(crate) variable: Handle<GlobalVariable>,
}

/// A member of the `var<immediate>` struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// The member's name.
    pub name: String,
    /// Its type.
    pub dtype: DType,
    /// Where it lies in the struct.
    pub offset_bytes: u32,
}

/// An `override` constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Its name.
    pub name: String,
    /// `@id`, if it has one.
    pub id: Option<u16>,
    /// `bool`, `i32`, `u32`, `f32`, …
    pub type_name: String,
    /// Its default as it stands in the text; `None` if a value must be given.
    pub default: Option<String>,
}
