//! Nontemporal stores for whole rows of output.
//!
//! A store to memory that is not cached fetches the line first, only to overwrite it. If a launch's memory exceeds
//! the caches, a row of a tensor that the kernel never reads is therefore written in parts to a small array, which a
//! compiler keeps in registers, and from there by stores that bypass the caches.

use std::collections::BTreeMap;

use naga::{
    AddressSpace, BinaryOperator as Op, Block, Expression, FastHashMap, GlobalVariable, Handle, Scalar,
    Statement, TypeInner, UnaryOperator,
};
use runtime_core::Result;

use super::entry::Entry;
use super::schedule::Analysis;
use super::schedule::row_facts::RowFacts;
use crate::ir::blocks::Skip;

/// Printed once: `stream_` copies part of a row, `STREAMED_` is the memory size of a launch from which on this
/// pays off.
const LIBRARY: &str = "\
#if defined(__x86_64__)
#define STREAMED_ (64ULL << 20)
#define stream_end_() __builtin_ia32_sfence()
#ifdef __AVX__
typedef long long wide_ __attribute__((vector_size(32)));
#define NT_STORE_ __builtin_ia32_movntdq256
#else
typedef long long wide_ __attribute__((vector_size(16)));
#define NT_STORE_ __builtin_ia32_movntdq
#endif
#ifdef __clang__
#undef NT_STORE_
#define NT_STORE_(to, value) __builtin_nontemporal_store(value, to)
#endif
static inline void stream_(void *to, const void *from, long bytes)
{
    if ((__UINTPTR_TYPE__)to % sizeof(wide_) != 0) {
        __builtin_memcpy(to, from, (unsigned long)bytes);
        return;
    }
    for (long at = 0; at < bytes; at += (long)sizeof(wide_)) {
        wide_ value;
        __builtin_memcpy(&value, (const char *)from + at, sizeof value);
        NT_STORE_((wide_ *)((char *)to + at), value);
    }
}
#else
#define STREAMED_ (~0ULL)
#define stream_end_() ((void)0)
#define stream_(to, from, bytes) __builtin_memcpy(to, from, bytes)
#endif
";

/// A row must consist of whole cache lines.
const LINE_BYTES: u32 = 64;

/// Elements per part, few enough for a compiler to keep in registers.
const PART: u32 = 64;

/// Entry points with more expressions get no such copy.
const MAX_EXPRESSIONS: usize = 1000;

/// A store by every invocation of a row, to consecutive elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct NontemporalStore {
    pub(super) access: Handle<Expression>,
    pub(super) variable: Handle<GlobalVariable>,
    pub(super) scalar: Scalar,
}

/// The context of the search for such stores.
struct Scan<'c> {
    /// The conditions among the row facts, with their values.
    known: FastHashMap<Handle<Expression>, bool>,
    width: u32,
    row_facts: &'c RowFacts,
}

/// By variable: its only such store; `None` if there are others.
type Found = BTreeMap<Handle<GlobalVariable>, Option<NontemporalStore>>;

impl Entry<'_, '_, '_> {
    /// The loop over a whole row, with a copy for launches that use much memory.
    pub(super) fn whole_row(&mut self, index: usize, open: &str) -> Result<()> {
        let nontemporal_stores = self.schedule.rows[index].nontemporal_stores.clone();
        if nontemporal_stores.is_empty() {
            return self.copy(index, open);
        }
        if self.printer.writer.first("stream_") {
            self.printer.writer.types.push_str(LIBRARY);
        }
        self.nontemporal_stores = true;
        let names = &self.printer.writer.names;
        let sizes: Vec<_> = self.printer.writer.program.interfaces[self.index]
            .tensors
            .iter()
            .map(|t| names.size(t.variable))
            .collect();
        let head = format!("if ({} >= STREAMED_) {{", sizes.join(" + "));
        self.open(&head);
        let part = if self.width.is_multiple_of(PART) { PART } else { self.width };
        self.open(&format!("for (int part_ = 0; part_ < {}; part_ += {part}) {{", self.width));
        let mut copies = Vec::new();
        for stream in nontemporal_stores {
            let type_name = self.printer.writer.scalar(stream.scalar)?;
            let tensor = self.printer.writer.names.global(stream.variable).to_owned();
            let row = self.printer.plan.fresh(&self.printer.writer.names, &format!("{tensor}_row"));
            self.line(&format!("{type_name} {row}[{part}] __attribute__((aligned({LINE_BYTES})));"));
            let assumed = &mut self.printer.environment.assumed;
            let first = assumed.firsts.get(&stream.access).cloned().unwrap_or_default();
            copies.push(format!("stream_({tensor} + {first} + part_, {row}, sizeof {row});"));
            assumed.moved.insert(stream.access, format!("{row}[x_ - part_]"));
        }
        self.copy(index, &format!("for (int x_ = part_; x_ < part_ + {part}; x_++) {{"))?;
        copies.iter().for_each(|copy| self.line(copy));
        self.close("}");
        self.printer.environment.assumed.moved.clear();
        self.printer.lines.reopen("} else {");
        self.copy(index, open)?;
        self.close("}");
        Ok(())
    }
}

impl Analysis<'_, '_> {
    /// The stores of a region that write whole rows, given the row facts.
    pub(super) fn nontemporal_stores(
        &self,
        index: usize,
        width: u32,
        row_facts: &RowFacts,
    ) -> Vec<NontemporalStore> {
        let region = &self.steps.regions[index];
        let mut known = FastHashMap::default();
        known
            .extend(row_facts.bounds.iter().chain(&row_facts.facts).map(|fact| (fact.handle, fact.expected)));
        let scan = Scan { known, width, row_facts };
        let mut found = Found::new();
        let straight = region.skips == Skip::No
            && self.function.expressions.len() <= MAX_EXPRESSIONS
            && self.scan(&region.body, true, &scan, &mut found);
        if straight { found.into_values().flatten().collect() } else { Vec::new() }
    }

    /// Finds stores; `certain` if every invocation reaches the block. Returns `false` if some may not reach its
    /// end.
    fn scan(&self, block: &Block, certain: bool, scan: &Scan<'_>, found: &mut Found) -> bool {
        block.iter().all(|statement| match statement {
            Statement::Store { pointer, .. } => {
                if let Some(variable) = self.written(*pointer) {
                    let stream =
                        if certain { self.nontemporal_store(*pointer, variable, scan) } else { None };
                    found.entry(variable).and_modify(|other| *other = None).or_insert(stream);
                }
                true
            }
            Statement::Block(inner) => self.scan(inner, certain, scan, found),
            Statement::If { condition, accept, reject } => {
                if self.is_certain(*condition, true, scan) {
                    self.scan(accept, certain, scan, found)
                } else if self.is_certain(*condition, false, scan) {
                    self.scan(reject, certain, scan, found)
                } else {
                    self.scan(accept, false, scan, found) && self.scan(reject, false, scan, found)
                }
            }
            Statement::Loop { body, continuing, .. } => {
                self.scan(body, false, scan, found) && self.scan(continuing, false, scan, found)
            }
            Statement::Switch { cases, .. } => {
                cases.iter().all(|case| self.scan(&case.body, false, scan, found))
            }
            Statement::Break | Statement::Continue => !certain,
            Statement::Return { .. }
            | Statement::Kill
            | Statement::Call { .. }
            | Statement::Atomic { .. } => false,
            _ => true,
        })
    }

    /// Whether the row facts imply a condition's value for all invocations.
    fn is_certain(&self, condition: Handle<Expression>, holds: bool, scan: &Scan<'_>) -> bool {
        match self.function.expressions[condition] {
            Expression::Unary { op: UnaryOperator::LogicalNot, expr } => self.is_certain(expr, !holds, scan),
            Expression::Binary { op, left, right }
                if (op == Op::LogicalAnd && holds) || (op == Op::LogicalOr && !holds) =>
            {
                self.is_certain(left, holds, scan) && self.is_certain(right, holds, scan)
            }
            _ => scan.known.get(&condition) == Some(&holds),
        }
    }

    /// The storage buffer that a pointer leads into.
    fn written(&self, pointer: Handle<Expression>) -> Option<Handle<GlobalVariable>> {
        match crate::ir::variables::root(self.function, pointer) {
            crate::ir::variables::Root::Global(variable) => {
                let space = self.module.global_variables[variable].space;
                matches!(space, AddressSpace::Storage { .. }).then_some(variable)
            }
            _ => None,
        }
    }

    fn nontemporal_store(
        &self,
        access: Handle<Expression>,
        variable: Handle<GlobalVariable>,
        scan: &Scan<'_>,
    ) -> Option<NontemporalStore> {
        let Expression::Access { base, .. } = self.function.expressions[access] else { return None };
        let TypeInner::Array { base: element, .. } =
            self.module.types[self.module.global_variables[variable].ty].inner
        else {
            return None;
        };
        let TypeInner::Scalar(scalar) = self.module.types[element].inner else { return None };
        let only_written = self.only_written.contains(&variable);
        let beside = scan.row_facts.accesses.get(&access).is_some_and(|index| index.slope == 1);
        let direct = matches!(self.function.expressions[base], Expression::GlobalVariable(_));
        let lines = (scan.width * u32::from(scalar.width)).is_multiple_of(LINE_BYTES);
        (only_written && beside && direct && lines).then_some(NontemporalStore { access, variable, scalar })
    }
}
