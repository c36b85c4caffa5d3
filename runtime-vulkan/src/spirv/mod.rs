//! Reads SPIR-V, just enough to find the parameters of an entry point. It does not validate; use `spirv-val` for that.
//!
//! The parser is written by hand, with the constants of the `spirv` crate: `rspirv` rejects a module that has a single instruction
//! it does not know, while this parser skips such instructions.

mod access;
mod interface;
mod parse;
mod spec_constants;

pub(crate) use interface::{Interface, PushConstantBlock, PushConstantMember};
pub(crate) use parse::words;
pub(crate) use spec_constants::SpecValues;

use std::collections::HashMap;

use ::spirv::StorageClass;
use runtime_core::{Error, ErrorKind, Result};

use access::Function;

/// A result id.
type Id = u32;

/// A type, as far as it matters here.
#[derive(Clone, Debug, PartialEq)]
enum Type {
    Bool,
    Int {
        bits: u32,
        signed: bool,
    },
    Float {
        bits: u32,
    },
    Vector {
        of: Id,
        count: u32,
    },
    Matrix {
        of: Id,
        columns: u32,
    },
    Array {
        of: Id,
        length: Id,
    },
    RuntimeArray {
        of: Id,
    },
    Struct {
        members: Vec<Id>,
    },
    Pointer {
        storage_class: Option<StorageClass>,
        to: Id,
    },
    /// Images, samplers and other types that cannot be kernel arguments.
    Other,
}

/// The size of a type as a tree of types.
#[derive(Clone, Copy, Debug)]
struct TypeExtent {
    depth: u32,
    /// The leaves, each counted as often as it occurs.
    leaves: u32,
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
enum Constant {
    Scalar {
        ty: Id,
        bits: u64,
        /// It is a specialisation constant.
        is_spec: bool,
    },
    Composite(Vec<Id>),
    /// Computed from others (`OpSpecConstantOp`), or null.
    Computed,
}

/// The decorations of an id (`OpDecorate`).
#[derive(Clone, Debug, Default)]
struct Decorations {
    buffer_block: bool,
    read_only: bool,
    write_only: bool,
    binding: Option<u32>,
    set: Option<u32>,
    spec_id: Option<u32>,
    array_stride: Option<u32>,
    is_work_group_size: bool,
}

/// The decorations of a structure's member (`OpMemberDecorate`).
#[derive(Clone, Copy, Debug, Default)]
struct MemberDecorations {
    offset: u32,
    matrix_stride: u32,
    row_major: bool,
    read_only: bool,
    write_only: bool,
}

/// An entry point's work-group size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkGroupSize {
    Literal([u32; 3]),
    Constants([Id; 3]),
}

#[derive(Clone, Debug)]
struct EntryPoint {
    name: String,
    function: Id,
}

/// A module-scope variable. The storage class is `None` if the `spirv` crate does not have it.
#[derive(Clone, Copy, Debug)]
struct Variable {
    ty: Id,
    storage_class: Option<StorageClass>,
}

/// A parsed module: the declarations that describe its compute entry points.
#[derive(Debug, Default)]
pub(crate) struct SpirvModule {
    pub(crate) capabilities: Vec<u32>,
    entry_points: Vec<EntryPoint>,
    /// By the entry point's function.
    work_group_sizes: HashMap<Id, WorkGroupSize>,
    names: HashMap<Id, String>,
    decorations: HashMap<Id, Decorations>,
    /// By the structure's type and the member's index.
    member_decorations: HashMap<(Id, u32), MemberDecorations>,
    types: HashMap<Id, Type>,
    type_extents: HashMap<Id, TypeExtent>,
    constants: HashMap<Id, Constant>,
    variables: HashMap<Id, Variable>,
    functions: HashMap<Id, Function>,
}

impl SpirvModule {
    /// The names of the compute entry points, of which there is at least one.
    ///
    /// # Errors
    /// `CompileFailed` if there is none.
    pub(crate) fn entry_names(&self) -> Result<Vec<String>> {
        let names: Vec<_> = self.entry_points.iter().map(|entry| entry.name.clone()).collect();
        match names.is_empty() {
            false => Ok(names),
            true => Err(Error::new(
                ErrorKind::CompileFailed,
                "the code has no compute entry point (GLCompute); compile a compute shader",
            )),
        }
    }

    fn decorations_of(&self, id: Id) -> Decorations {
        self.decorations.get(&id).cloned().unwrap_or_default()
    }
}
