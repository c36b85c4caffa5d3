//! The body of an entry point as a tree of steps.
//!
//! Its inner nodes are uniform control flow; its leaves are blocks that run *once* (uniform values, and variables that only
//! ever hold such) and *regions*, which run for every invocation.

use std::collections::BTreeSet;

use naga::{Block, SwitchValue};

use crate::ir::blocks::Skip;
use crate::ir::{Local, Value};

/// A step of a work-group.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Runs once.
    Once(Numbered),
    /// Runs for every invocation: an index into [`Steps::regions`].
    Lanes(usize),
    /// Steps without barriers that run row by row.
    Rows(Rows),
    Barrier,
    If {
        condition: Condition,
        accept: Vec<Self>,
        reject: Vec<Self>,
    },
    Switch {
        selector: Condition,
        cases: Vec<(SwitchValue, bool, Vec<Self>)>,
    },
    Loop {
        body: Vec<Self>,
        continuing: Vec<Self>,
        break_if: Option<Condition>,
    },
    Break,
    Continue,
    Return,
}

impl Step {
    /// The lists of steps inside.
    pub(crate) fn inner(&self) -> impl Iterator<Item = &[Self]> {
        let (two, cases) = match self {
            Self::Rows(rows) => ([Some(&rows.steps), None], &[][..]),
            Self::If { accept: first, reject: second, .. }
            | Self::Loop { body: first, continuing: second, .. } => ([Some(first), Some(second)], &[][..]),
            Self::Switch { cases, .. } => ([None; 2], &cases[..]),
            _ => ([None; 2], &[][..]),
        };
        two.into_iter().flatten().chain(cases.iter().map(|(_, _, steps)| steps)).map(Vec::as_slice)
    }

    /// [`inner`](Self::inner), to be changed.
    pub(crate) fn inner_mut(&mut self) -> impl Iterator<Item = &mut Vec<Self>> {
        let (two, cases) = match self {
            Self::Rows(rows) => ([Some(&mut rows.steps), None], &mut [][..]),
            Self::If { accept: first, reject: second, .. }
            | Self::Loop { body: first, continuing: second, .. } => {
                ([Some(first), Some(second)], &mut [][..])
            }
            Self::Switch { cases, .. } => ([None, None], &mut cases[..]),
            _ => ([None, None], &mut [][..]),
        };
        two.into_iter().flatten().chain(cases.iter_mut().map(|(_, _, steps)| steps))
    }

    /// The condition that chooses among the steps inside, or ends the loop.
    pub(crate) const fn condition(&self) -> Option<Condition> {
        match *self {
            Self::If { condition, .. } | Self::Switch { selector: condition, .. } => Some(condition),
            Self::Loop { break_if, .. } => break_if,
            _ => None,
        }
    }

    /// Whether it continues the loop around it.
    pub(crate) fn continues(&self) -> bool {
        match self {
            Self::Continue => true,
            Self::If { .. } | Self::Switch { .. } => self.inner().flatten().any(Self::continues),
            _ => false,
        }
    }
}

/// Statements of the program with their numbers in the order of the text; an `Emit` may be split into parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbered {
    pub(crate) body: Block,
    pub(crate) numbers: Vec<u32>,
}

/// Steps that run row by row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) steps: Vec<Step>,
    /// Invocations per row.
    pub(crate) width: u32,
    /// Group variables that the steps write: every row starts from their values before the first.
    pub(crate) written: BTreeSet<Local>,
    /// Per-invocation variables that the row carries through its loops.
    pub(crate) carried: BTreeSet<Local>,
}

/// A condition with the same value for all invocations of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Computed at its use.
    Once(Value),
    /// Computed by the invocations of the preceding region, which all agree.
    FromRegion(Value),
}

/// Code that runs for every invocation between two cuts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Region {
    pub(crate) body: Block,
    /// The numbers of its statements.
    pub(crate) numbers: Vec<u32>,
    /// Uniform values that it computes for the group.
    pub(crate) uniform_values: Vec<Value>,
    /// Whether it is inside a uniform loop.
    pub(crate) repeats: bool,
    /// How far some invocations jump ahead, past the following region.
    pub(crate) skips: Skip,
}

/// The whole body as a tree of steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    pub(crate) steps: Vec<Step>,
    pub(crate) regions: Vec<Region>,
    /// Expressions evaluated once, ahead of a region in which invocations may jump over them.
    pub(crate) ahead: BTreeSet<Value>,
}
