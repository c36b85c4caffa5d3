//! Random kernels with divergent and uniform control flow, barriers, work-group memory and functions, and an
//! interpreter that executes each statement for all invocations of a group before the next.
//!
//! The kernels have no races, so the order of invocations between two barriers does not matter. The interpreter
//! checks that, and that all invocations reach every barrier.

mod functions;
mod generate;
mod interpret;
mod shrink;
mod text;

pub use generate::kernel;
pub use interpret::{Invalid, program};
pub use shrink::smaller;
pub use text::text;

use crate::tree::{Base, Input, Tree, Type};

/// Output words per invocation: the variables, and two that statements write.
pub(crate) const OUTPUTS: usize = 12;
/// Slots of the atomic arrays, each with its own operation.
pub(crate) const COUNTERS: usize = 4;
/// The maximum nesting of loops.
pub(crate) const LOOPS: usize = 4;

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The entry point.
    pub entry: String,
    /// The work-group size.
    pub size: [u32; 3],
    /// The number of work-groups.
    pub groups: u32,
    /// The scalar argument.
    pub argument: i32,
    /// The statements between initialising the variables and writing them.
    pub body: Block,
}

/// A sequence of statements.
pub type Block = Vec<Statement>;

/// An array shared by invocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Array {
    /// `array<i32, N>` in workgroup memory.
    Signed,
    /// `array<u32, N>` in workgroup memory.
    Unsigned,
    /// `i32` in storage, N per group.
    Storage,
}

/// The array slot that an invocation owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// `(lid + c) % N`.
    Rotated(u32),
    /// `N - 1 - lid`.
    Reversed,
}

/// The slot that is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// The invocation's own slot.
    Own(Slot),
    /// Any slot: an unsigned index, modulo N.
    Any(Tree),
}

/// A kind of barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// `workgroupBarrier()`.
    Workgroup,
    /// `storageBarrier()`.
    Storage,
    /// Both.
    Both,
}

/// The form of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `for (var k = 0i; k < min(limit, bound); k += 1i) {…}`
    For,
    /// `while (k < min(limit, bound)) { k += 1i; … }`
    While,
    /// `loop { … continuing { k += 1i; …; break if k >= min(limit, bound); } }`
    Continuing,
}

/// A helper function of module `functions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// Returns the value of a neighbour: uses barriers.
    Rotate,
    /// An inclusive scan over the group: uses barriers in a loop.
    Scan,
    /// Like `Rotate`, but returns early if its uniform argument says so.
    Pick,
    /// Loops and early returns, without barriers.
    Search,
    /// Modifies a variable of the caller.
    Bump,
}

/// A statement. Variables are identified by index.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `variable = e;`
    Assign(usize, Tree),
    /// `variable = array[place];`
    Read(usize, Array, Place),
    /// `array[slot] = e;`
    Write(Array, Slot, Tree),
    /// `variable = input[e % length];`
    Input(usize, Tree),
    /// `output[10 + n] = e;`
    Output(usize, Tree),
    /// An atomic operation on a counter of the group, or of all groups.
    Count(bool, usize, Tree),
    /// `variable = atomicLoad(counter);`
    Counter(usize, usize),
    /// `if (lid == 0u) { cell = e; }`
    SetCell(Tree),
    /// `variable = workgroupUniformLoad(&cell);`
    LoadCell(usize),
    /// `if (c) {…} else {…}`
    If(Tree, Block, Block),
    /// A loop with counter `k`depth: form, depth, limit, bound, body, `continuing` block.
    Loop(Form, usize, i32, Tree, Block, Block),
    /// `switch (e % 4)` with cases 0, (1, 2), and the default.
    Switch(Tree, [Block; 3]),
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return;`
    Return,
    /// A barrier.
    Barrier(Barrier),
    /// `variable = function(…);`
    Call(Function, usize, Tree, Tree),
}

/// The first variable of each kind.
pub(crate) mod variable {
    /// `v0` … `v4`: i32.
    pub(crate) const SIGNED: usize = 0;
    /// `u0`, `u1`: u32.
    pub(crate) const UNSIGNED: usize = 5;
    /// `n0` … `n2`: i32, uniform.
    pub(crate) const UNIFORM: usize = 7;
    /// The local invocation index.
    pub(crate) const LID: usize = 10;
    /// The global invocation index.
    pub(crate) const GID: usize = 11;
    /// The index of the group.
    pub(crate) const WID: usize = 12;
    /// The scalar argument.
    pub(crate) const ARGUMENT: usize = 13;
    /// The loop counters, by depth.
    pub(crate) const COUNTER: usize = 14;
}

impl Kernel {
    /// The number of invocations per group.
    #[must_use]
    pub const fn lanes(&self) -> usize {
        (self.size[0] * self.size[1] * self.size[2]) as usize
    }
}

/// All variables.
#[must_use]
pub fn variables() -> Vec<Input> {
    let names = ["v0", "v1", "v2", "v3", "v4", "u0", "u1", "n0", "n1", "n2", "lid", "gid", "wid", "arg"];
    let mut inputs: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    inputs.extend((0..LOOPS).map(|depth| format!("k{depth}")));
    let unsigned = |name: &str| name.starts_with('u') || ["lid", "gid", "wid"].contains(&name);
    let base = |name: &str| if unsigned(name) { Base::U32 } else { Base::I32 };
    inputs.into_iter().map(|name| Input { ty: Type::scalar(base(&name)), name }).collect()
}
