//! The functions for subgroup operations, as WGSL text.

use std::collections::BTreeSet;

use naga::{CollectiveOperation, Direction, GatherMode, Span, SubgroupOperation, TypeInner};

use super::Sharing;
use super::arrays::Array;
use crate::ir::declare::scalar_name;

/// The variable that holds the local invocation index.
pub(super) const ITEM: &str = "subgroup_item";
/// The variable that holds the number of invocations, where that differs between entry points.
pub(super) const ITEMS: &str = "subgroup_items";

/// The functions that a module calls.
pub(super) struct Library {
    pub(super) size: u32,
    /// Invocations of the largest work-group.
    pub(super) items: u32,
    is_one_size: bool,
    sharing: Sharing,
    functions: Vec<(String, Span)>,
    /// The types that the operations exchange.
    types: BTreeSet<String>,
    /// The arrays that matrices are loaded from and stored to.
    pub(super) arrays: Vec<Array>,
    /// The matrices that are exchanged.
    pub(super) exchanged: BTreeSet<&'static str>,
}

/// WGSL's name of a type that operations exchange.
pub(super) fn type_name(inner: &TypeInner) -> Option<String> {
    match *inner {
        TypeInner::Scalar(scalar) => Some(scalar_name(scalar).to_owned()),
        TypeInner::Vector { size, scalar } => Some(format!("vec{}<{}>", size as u8, scalar_name(scalar))),
        _ => None,
    }
}

impl Library {
    pub(super) fn new(size: u32, items: &[u32], sharing: Sharing) -> Self {
        Self {
            size,
            items: items.iter().copied().max().unwrap_or(1),
            is_one_size: items.windows(2).all(|pair| pair[0] == pair[1]),
            sharing,
            functions: Vec::new(),
            types: BTreeSet::new(),
            arrays: Vec::new(),
            exchanged: BTreeSet::new(),
        }
    }

    /// The places in the text that called each function first.
    pub(super) fn spans(&self) -> impl Iterator<Item = Span> + '_ {
        self.functions.iter().map(|(_, span)| *span)
    }

    /// The whole text.
    pub(super) fn text(&self) -> String {
        let has_f16 = |text: &String| text.contains("f16");
        let is_used = self.types.iter().any(has_f16) || self.functions.iter().any(|(text, _)| has_f16(text));
        let f16 = if is_used { "enable f16; " } else { "" };
        let mut text = format!("{f16}var<private> {ITEM}: u32; var<private> {ITEMS}: u32;\n");
        for ty in &self.types {
            text += &format!("var<workgroup> {}: array<{ty}, {}>;\n", values(ty), self.items);
        }
        for (at, array) in self.arrays.iter().enumerate() {
            text += &array.declaration(at);
        }
        text += &self.exchanged_variables();
        for (at, (function, _)) in self.functions.iter().enumerate() {
            text += &format!("fn subgroup_{at}{function}\n");
        }
        text
    }

    pub(super) fn ballot(&mut self, takes_value: bool, span: Span) -> usize {
        let ty = "bool";
        let (parameter, value) = if takes_value { ("v: bool", "v") } else { ("", "true") };
        let exchange = self.exchange(ty, value);
        let x = values(ty);
        self.add(
            format!(
                "({parameter}) -> vec4<u32> {{ {exchange} var r: vec4<u32>; for (var i = first; i < end; i++) {{ \
                 if {x}[i] {{ r[(i - first) / 32u] |= 1u << ((i - first) & 31u); }} }} return r; }}"
            ),
            span,
        )
    }

    pub(super) fn collective(
        &mut self,
        op: SubgroupOperation,
        collective: CollectiveOperation,
        ty: &str,
        span: Span,
    ) -> usize {
        use SubgroupOperation as S;
        let (exchange, x) = (self.exchange(ty, "v"), values(ty));
        let combined = match op {
            S::Min => format!("min(r, {x}[i])"),
            S::Max => format!("max(r, {x}[i])"),
            S::Add => format!("r + {x}[i]"),
            S::Mul => format!("r * {x}[i]"),
            S::All | S::And => format!("r & {x}[i]"),
            S::Any | S::Or => format!("r | {x}[i]"),
            S::Xor => format!("r ^ {x}[i]"),
        };
        let neutral = u8::from(op == S::Mul);
        let (start, from, to) = match collective {
            CollectiveOperation::Reduce => (format!("{x}[first]"), "first + 1u", "end".to_owned()),
            CollectiveOperation::InclusiveScan => {
                (format!("{x}[first]"), "first + 1u", format!("{ITEM} + 1u"))
            }
            CollectiveOperation::ExclusiveScan => (format!("{ty}({neutral})"), "first", ITEM.to_owned()),
        };
        self.add(
            format!(
                "(v: {ty}) -> {ty} {{ {exchange} var r = {start}; \
                 for (var i = {from}; i < {to}; i++) {{ r = {combined}; }} return r; }}"
            ),
            span,
        )
    }

    /// A read of another invocation's value; of the own one where WGSL leaves the value open.
    pub(super) fn gather(&mut self, mode: &GatherMode, ty: &str, index: Option<&str>, span: Span) -> usize {
        let (exchange, x) = (self.exchange(ty, "v"), values(ty));
        let lane = match mode {
            GatherMode::BroadcastFirst => "0u",
            GatherMode::Broadcast(_) | GatherMode::Shuffle(_) => "u32(at)",
            GatherMode::ShuffleDown(_) => "lane + u32(at)",
            GatherMode::ShuffleUp(_) => "lane - u32(at)",
            GatherMode::ShuffleXor(_) => "lane ^ u32(at)",
            GatherMode::QuadBroadcast(_) => "(lane & 0xfffffffcu) | (u32(at) & 3u)",
            GatherMode::QuadSwap(Direction::X) => "lane ^ 1u",
            GatherMode::QuadSwap(Direction::Y) => "lane ^ 2u",
            GatherMode::QuadSwap(Direction::Diagonal) => "lane ^ 3u",
        };
        let parameter = index.map_or_else(String::new, |index| format!(", at: {index}"));
        self.add(
            format!(
                "(v: {ty}{parameter}) -> {ty} {{ {exchange} let lane = {ITEM} - first; let source = {lane}; \
                 if source < end - first {{ return {x}[first + source]; }} return v; }}"
            ),
            span,
        )
    }

    /// Stores the values of all invocations, and names the range of the own subgroup.
    fn exchange(&mut self, ty: &str, value: &str) -> String {
        self.types.insert(ty.to_owned());
        let (size, x) = (self.size, values(ty));
        let items = if self.is_one_size { format!("{}u", self.items) } else { ITEMS.to_owned() };
        let end = match self.is_one_size && self.items.is_multiple_of(size) {
            true => format!("first + {size}u"),
            false => format!("min(first + {size}u, {items})"),
        };
        format!(
            "workgroupBarrier(); {x}[{ITEM}] = {value}; workgroupBarrier(); \
             let first = {ITEM} / {size}u * {size}u; let end = {end};"
        )
    }

    /// The place of an array, which is added if it is new.
    pub(super) fn array(&mut self, array: Array) -> usize {
        let known = self.arrays.iter().position(|known| *known == array);
        known.unwrap_or_else(|| {
            self.arrays.push(array);
            self.arrays.len() - 1
        })
    }

    pub(super) fn add(&mut self, function: String, span: Span) -> usize {
        let known = self.functions.iter().position(|(known, _)| *known == function);
        match known.filter(|_| self.sharing == Sharing::Shared) {
            Some(at) => at,
            None => {
                self.functions.push((function, span));
                self.functions.len() - 1
            }
        }
    }
}

/// The variable in work-group memory through which values of a type are exchanged.
fn values(ty: &str) -> String {
    format!("subgroup_{}", ty.replace(['<', '>'], "_"))
}
