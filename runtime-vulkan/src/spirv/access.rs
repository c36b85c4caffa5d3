//! Which module-scope variables a function accesses, and how.

use std::collections::HashMap;

use ::spirv::Op;

use super::{Id, SpirvModule};

/// How a variable is accessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VariableAccess {
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// Only its address or length is used.
const NEITHER: VariableAccess = VariableAccess { reads: false, writes: false };
const READ: VariableAccess = VariableAccess { reads: true, writes: false };
const WRITE: VariableAccess = VariableAccess { reads: false, writes: true };
const READ_WRITE: VariableAccess = VariableAccess { reads: true, writes: true };

/// Index of the result id in the operands of an instruction with a result.
const RESULT_ID: usize = 1;
/// Index of the first operand behind the result type and the result id.
const AFTER_RESULT: usize = 2;

impl VariableAccess {
    fn add(&mut self, other: Self) {
        self.reads |= other.reads;
        self.writes |= other.writes;
    }
}

/// A function: the variables that it accesses itself, and the functions that it calls.
#[derive(Debug, Default)]
pub(super) struct Function {
    accesses: HashMap<Id, VariableAccess>,
    calls: Vec<Id>,
    /// Pointers derived from variables: the variable of each.
    pointer_roots: HashMap<Id, Id>,
}

impl Function {
    /// Visits an instruction. Only operands that can be pointers are looked up, since others may be literals.
    pub(super) fn visit(&mut self, op: Op, operands: &[u32], is_variable: impl Fn(Id) -> bool) {
        let operand = |index: usize| operands.get(index).copied();
        let root = |roots: &HashMap<Id, Id>, id: Id| {
            if is_variable(id) { Some(id) } else { roots.get(&id).copied() }
        };
        let mut access = |index: usize, how: VariableAccess| {
            if let Some(variable) = operand(index).and_then(|id| root(&self.pointer_roots, id)) {
                self.accesses.entry(variable).or_default().add(how);
            }
        };
        match op {
            Op::FunctionCall => {
                (AFTER_RESULT + 1..operands.len()).for_each(|argument| access(argument, READ_WRITE));
                self.calls.extend(operand(AFTER_RESULT));
            }
            Op::Load | Op::AtomicLoad | Op::CooperativeMatrixLoadKHR | Op::CooperativeMatrixLoadNV => {
                access(AFTER_RESULT, READ);
            }
            Op::Store => {
                access(0, WRITE);
                // A stored pointer is not followed further.
                access(1, READ_WRITE);
            }
            Op::AtomicStore
            | Op::AtomicFlagClear
            | Op::CooperativeMatrixStoreKHR
            | Op::CooperativeMatrixStoreNV => access(0, WRITE),
            Op::ReturnValue => access(0, READ_WRITE),
            Op::CopyMemory | Op::CopyMemorySized => {
                access(0, WRITE);
                access(1, READ);
            }
            Op::AccessChain
            | Op::InBoundsAccessChain
            | Op::PtrAccessChain
            | Op::InBoundsPtrAccessChain
            | Op::CopyObject => {
                access(AFTER_RESULT, NEITHER);
                let base = operand(AFTER_RESULT).and_then(|id| root(&self.pointer_roots, id));
                if let (Some(result), Some(variable)) = (operand(RESULT_ID), base) {
                    self.pointer_roots.insert(result, variable);
                }
            }
            Op::ArrayLength => access(AFTER_RESULT, NEITHER),
            Op::Select | Op::Phi => {
                (AFTER_RESULT..operands.len()).for_each(|choice| access(choice, READ_WRITE));
            }
            _ if is_atomic_update(op) => access(AFTER_RESULT, READ_WRITE),
            _ => {}
        }
    }
}

/// Whether an instruction atomically reads and writes.
fn is_atomic_update(op: Op) -> bool {
    matches!(
        op,
        Op::AtomicExchange
            | Op::AtomicCompareExchange
            | Op::AtomicCompareExchangeWeak
            | Op::AtomicIIncrement
            | Op::AtomicIDecrement
            | Op::AtomicIAdd
            | Op::AtomicISub
            | Op::AtomicSMin
            | Op::AtomicUMin
            | Op::AtomicSMax
            | Op::AtomicUMax
            | Op::AtomicAnd
            | Op::AtomicOr
            | Op::AtomicXor
            | Op::AtomicFlagTestAndSet
            | Op::AtomicFMinEXT
            | Op::AtomicFMaxEXT
            | Op::AtomicFAddEXT
    )
}

impl SpirvModule {
    /// The variables that a function accesses, itself and through its callees.
    pub(super) fn accesses(&self, function: Id) -> HashMap<Id, VariableAccess> {
        let mut found: HashMap<Id, VariableAccess> = HashMap::new();
        let (mut pending, mut seen) = (vec![function], vec![function]);
        while let Some(function) = pending.pop().and_then(|id| self.functions.get(&id)) {
            for (id, access) in &function.accesses {
                found.entry(*id).or_default().add(*access);
            }
            for callee in &function.calls {
                if !seen.contains(callee) {
                    seen.push(*callee);
                    pending.push(*callee);
                }
            }
        }
        found
    }
}
