//! Keeps elements of a tensor in an array per item, or per group.

use super::collide::{Overlap, overlap};
use super::cover::Cover;
use super::linear::{Linear, Scalars, Variable};
use super::merge::{Array, CountedIndex, Promoted};
use super::promote::Uses;
use super::walk::{Access, Part};

/// The most elements of an array of an item.
const MAX_OWN: i128 = 8;

/// Why a tensor is not kept in an array.
pub(super) enum Refusal {
    /// Nothing is proven.
    Unproven,
    /// It takes this many bytes of work-group memory, more than are left.
    TooLarge(i128),
}

/// The elements of a tensor that an item or a group uses.
struct Span {
    /// Multiples of the positions that choose the array.
    base: Vec<(Variable, i128)>,
    /// Bytes to the first and to the last element, from there.
    ends: [i128; 2],
    /// Bytes from one element to the next.
    step: i128,
}

/// A tensor whose elements are kept in an array in work-group memory, `room` bytes at most, or of each item, and what the proof
/// relies on.
///
/// # Errors
/// Why it is not.
pub(super) fn array(
    uses: &Uses<'_>,
    (is_shared, room): (bool, i128),
) -> Result<(Promoted, Vec<(usize, Scalars)>), Refusal> {
    let mut relies = Vec::new();
    let (span, bounds) = span(uses, is_shared, &mut relies).ok_or(Refusal::Unproven)?;
    let len = (span.ends[1] - span.ends[0]) / span.step + 1;
    let stride = i128::from(uses.stride);
    if !is_shared && len > MAX_OWN {
        return Err(Refusal::Unproven);
    }
    check_overlaps(uses, is_shared, &mut relies).ok_or(Refusal::Unproven)?;
    check_reads(uses, is_shared, &mut relies).ok_or(Refusal::Unproven)?;
    let is_checked = is_checked(uses, &mut relies).ok_or(Refusal::Unproven)?;
    if is_shared && len * stride > room {
        return Err(Refusal::TooLarge(len * stride));
    }
    let mut array = laid_out(&span, (is_shared, len), stride).ok_or(Refusal::Unproven)?;
    if !is_shared {
        let counted = |(launch, access): &(usize, &Access)| counted(uses, &span, (*launch, access));
        array.counted = uses.list.iter().filter_map(counted).collect();
        array.bounds = bounds;
    }
    relies.retain(|(_, on)| *on != 0);
    Ok((Promoted { tensor: uses.tensor, stride: uses.stride, is_checked, array: Some(array) }, relies))
}

/// The elements that all accesses use, if the positions that choose the array count the same in all of them, and the scalars of
/// launches that bound them.
fn span(
    uses: &Uses<'_>,
    is_shared: bool,
    relies: &mut Vec<(usize, Scalars)>,
) -> Option<(Span, Vec<(usize, Scalars)>)> {
    let stride = i128::from(uses.stride);
    let mut span: Option<(Span, i128)> = None;
    let mut bounds = Vec::new();
    for (launch, access) in &uses.list {
        let offset = access.offset.as_ref()?;
        let is_whole = offset.constant % stride == 0 || access.part == Part::OfElement;
        if access.part == Part::Other || !is_whole {
            return None;
        }
        let constant = offset.constant.div_euclid(stride) * stride;
        let chooses = |variable: Variable| match variable {
            Variable::Group(_) => true,
            Variable::Local(_) => !is_shared,
            _ => false,
        };
        let (base, rest): (Vec<_>, Vec<_>) =
            offset.terms.iter().copied().partition(|(variable, _)| chooses(*variable));
        let is_known = |(variable, factor): &(Variable, i128)| {
            factor % stride == 0 && !matches!(variable, Variable::Groups(_) | Variable::Congruent(..))
        };
        if !base.iter().chain(&rest).all(is_known) {
            return None;
        }
        let ([least, greatest], on) = access.knowledge.range_of(&rest)?;
        relies.push((*launch, on | offset.relies));
        bounds.push((*launch, on));
        let ends = [least + constant, greatest + constant];
        let step = rest.iter().fold(0, |step, (_, factor)| divisor(step, *factor));
        span = Some(match span {
            None => (Span { base, ends, step }, constant),
            Some((all, first)) if all.base == base => {
                let step = divisor(divisor(all.step, step), constant - first);
                let ends = [all.ends[0].min(ends[0]), all.ends[1].max(ends[1])];
                (Span { base, ends, step }, first)
            }
            Some(_) => return None,
        });
    }
    let (span, _) = span?;
    Some((Span { step: if span.step == 0 { stride } else { span.step }, ..span }, bounds))
}

/// The greatest common divisor.
fn divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { divisor(b, a % b) }
}

/// Whether no two arrays have the same element.
fn check_overlaps(uses: &Uses<'_>, is_shared: bool, relies: &mut Vec<(usize, Scalars)>) -> Option<()> {
    for (at, (one, first)) in uses.list.iter().enumerate() {
        for (two, second) in &uses.list[at..] {
            if !(first.is_write || second.is_write) {
                continue;
            }
            let (overlaps, on) = overlap(first, second);
            match overlaps {
                Overlap::Never | Overlap::SameItem => {}
                // Within a launch, its own barriers may be for storage only.
                Overlap::SameGroup if is_shared && one != two => {}
                _ => return None,
            }
            relies.extend([(*one, on[0]), (*two, on[1])]);
        }
    }
    Some(())
}

/// Whether each element that is read was written before.
fn check_reads(uses: &Uses<'_>, is_shared: bool, relies: &mut Vec<(usize, Scalars)>) -> Option<()> {
    for (at, (reader, read)) in uses.list.iter().enumerate() {
        if read.is_write {
            continue;
        }
        let found =
            uses.list[..at].iter().filter(|(_, access)| access.is_write).find_map(|(writer, write)| {
                let cover = Cover { write, read, stride: uses.stride.into() };
                let on_group = || if is_shared && writer != reader { cover.by_group() } else { None };
                Some((*writer, cover.by_item().or_else(on_group)?))
            });
        let (writer, [on_write, on_read]) = found?;
        relies.extend([(writer, on_write), (*reader, on_read)]);
    }
    Some(())
}

/// Whether some reads may be out of range; `None` if they cannot be checked.
fn is_checked(uses: &Uses<'_>, relies: &mut Vec<(usize, Scalars)>) -> Option<bool> {
    let mut is_checked = false;
    for (launch, access) in uses.list.iter().filter(|(_, access)| !access.is_write) {
        match in_range(uses, access) {
            Some(on) => relies.push((*launch, on)),
            // A check replaces whole elements only.
            None if access.part == Part::Element => is_checked = true,
            None => return None,
        }
    }
    Some(is_checked)
}

fn in_range(uses: &Uses<'_>, access: &Access) -> Option<Scalars> {
    let (offset, stride) = (access.offset.as_ref()?, i128::from(uses.stride));
    let ([_, max], on) = access.knowledge.range(offset)?;
    (max - offset.constant % stride + stride <= i128::from(uses.bytes)).then_some(on)
}

/// The index of an access whose element is that of the iteration of a loop: the first element in the first iteration, and so on.
fn counted(uses: &Uses<'_>, span: &Span, (launch, access): (usize, &Access)) -> Option<CountedIndex> {
    let offset = access.offset.as_ref()?;
    let mut rest = offset.terms.iter().filter(|term| !span.base.contains(term));
    let (Some(&(iteration, factor)), None) = (rest.next(), rest.next()) else { return None };
    let counter = uses.counters.iter().find(|counter| counter.iteration == iteration)?;
    let is_whole = access.part == Part::Element && factor == span.step && offset.constant == span.ends[0];
    let pointer = access.pointer.filter(|_| is_whole)?;
    Some(CountedIndex { launch, pointer, counter: counter.local, step: counter.step })
}

fn laid_out(span: &Span, (is_shared, len): (bool, i128), stride: i128) -> Option<Array> {
    let elements = |bytes: i128| u32::try_from((bytes / stride).rem_euclid(1 << 32)).ok();
    let mut first = Linear::constant(elements(span.ends[0])?);
    for &(variable, factor) in &span.base {
        first = first.plus_times(&Linear::variable(variable, 1), elements(factor)?);
    }
    let step = u32::try_from(span.step / stride).ok()?;
    Some(Array {
        is_shared,
        len: u32::try_from(len).ok()?,
        step,
        first,
        counted: Vec::new(),
        bounds: Vec::new(),
    })
}
