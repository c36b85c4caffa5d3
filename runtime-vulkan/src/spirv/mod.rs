//! A reader of SPIR-V: just enough to know what an entry point takes.

mod constants;
mod interface;
mod parse;
mod uses;

pub(crate) use interface::{Block, Interface, Member};
pub(crate) use parse::words;

use std::collections::HashMap;

use uses::Function;

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
        class: u32,
        to: Id,
    },
    /// Images, samplers, and whatever else a kernel cannot be handed.
    Other,
}

/// How far a type reaches into others.
#[derive(Clone, Copy, Debug)]
struct Nesting {
    depth: u32,
    /// Types that it is made of, each counted as often as it occurs.
    parts: u32,
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Scalar {
        ty: Id,
        bits: u64,
        specialised: bool,
    },
    Composite(Vec<Id>),
    /// What is computed of others.
    Computed,
}

/// What an instruction `OpDecorate` says.
#[derive(Clone, Debug, Default)]
struct Decorations {
    buffer_block: bool,
    read_only: bool,
    write_only: bool,
    binding: Option<u32>,
    set: Option<u32>,
    spec_id: Option<u32>,
    stride: Option<u32>,
    builtin: Option<u32>,
}

/// What an instruction `OpMemberDecorate` says.
#[derive(Clone, Copy, Debug, Default)]
struct MemberDecorations {
    offset: u32,
    matrix_stride: u32,
    row_major: bool,
    read_only: bool,
    write_only: bool,
}

/// How large a work-group is, by what the entry point says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Literal([u32; 3]),
    Constants([Id; 3]),
}

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    function: Id,
}

/// A variable outside functions.
#[derive(Clone, Copy, Debug)]
struct Variable {
    ty: Id,
    class: u32,
}

/// Code that was read.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) capabilities: Vec<u32>,
    entries: Vec<Entry>,
    sizes: HashMap<Id, Size>,
    names: HashMap<Id, String>,
    decorations: HashMap<Id, Decorations>,
    members: HashMap<(Id, u32), MemberDecorations>,
    types: HashMap<Id, Type>,
    nestings: HashMap<Id, Nesting>,
    values: HashMap<Id, Value>,
    variables: HashMap<Id, Variable>,
    functions: HashMap<Id, Function>,
}

impl Code {
    /// Names of the entry points for compute.
    pub(crate) fn entry_names(&self) -> Vec<String> {
        self.entries.iter().map(|entry| entry.name.clone()).collect()
    }

    fn decoration(&self, id: Id) -> Decorations {
        self.decorations.get(&id).cloned().unwrap_or_default()
    }
}

/// Storage classes.
mod class {
    pub(super) const UNIFORM_CONSTANT: u32 = 0;
    pub(super) const UNIFORM: u32 = 2;
    pub(super) const WORK_GROUP: u32 = 4;
    pub(super) const PUSH_CONSTANT: u32 = 9;
    pub(super) const STORAGE_BUFFER: u32 = 12;
}
