//! Tensors whose elements are kept in a variable of each item.

use naga::TypeInner;

use super::collide::{Overlap, is_same_place, overlap};
use super::legality::Launch;
use super::linear::{Fact, Scalars};
use super::merge::Promoted;
use super::walk::{Access, Accesses, LoopCounter, Part, Path};

/// The accesses of the launches of a run to a tensor.
pub(super) struct Uses<'a> {
    pub(super) tensor: usize,
    /// The size of the tensor.
    pub(super) bytes: u64,
    /// Bytes from one element to the next.
    pub(super) stride: u32,
    /// In the order of the text, with their launches.
    pub(super) list: Vec<(usize, &'a Access)>,
    /// The counters of the launches' loops.
    pub(super) counters: Vec<LoopCounter>,
}

impl<'a> Uses<'a> {
    /// The accesses to a tensor that is an array of scalars or vectors, with elements of the same size in all launches.
    pub(super) fn of(users: &[(Launch<'_>, &'a Accesses)], (tensor, bytes): (usize, u64)) -> Option<Self> {
        let (mut list, mut counters) = (Vec::new(), Vec::new());
        let mut stride = None;
        for (launch, accesses) in users {
            for used in launch.tensors().filter(|used| used.tensor == tensor) {
                let own = element_stride(launch, used.argument)?;
                if *stride.get_or_insert(own) != own {
                    return None;
                }
            }
            let is_own = |access: &&Access| {
                launch.tensors().any(|used| used.tensor == tensor && used.argument == access.argument)
            };
            list.extend(accesses.list.iter().filter(is_own).map(|access| (launch.index, access)));
            counters.extend(&accesses.counters);
        }
        Some(Self { tensor, bytes, stride: stride?, list, counters })
    }
}

/// The promotion of a tensor if each item uses a single element of it, and writes that element before it reads it; with what the
/// proof relies on.
pub(super) fn private(uses: &Uses<'_>) -> Option<(Promoted, Vec<(usize, Scalars)>)> {
    let &Uses { tensor, bytes, stride, list: ref all, .. } = uses;
    let &(writer, first) = all.first()?;
    let whole = first.is_write && first.part == Part::Element && first.path.is_known;
    let whole = whole && first.path.loops.is_empty();
    let place = first.offset.as_ref().filter(|_| whole)?;
    let mut relies = vec![(writer, place.relies)];
    if overlap(first, first).0 != Overlap::SameItem {
        return None;
    }
    let mut is_checked = false;
    for (launch, access) in &all[1..] {
        let offset = access.offset.as_ref()?;
        if !is_same_place(place, offset) || access.part == Part::Other {
            return None;
        }
        let (on_path, on_access) = implied(&first.path, access)?;
        let (overlaps, on) = overlap(first, access);
        if overlaps != Overlap::SameItem {
            return None;
        }
        relies.extend([(writer, on_path | on[0]), (*launch, offset.relies | on_access | on[1])]);
        let in_range = access.knowledge.range(offset).filter(|([_, max], _)| {
            max - offset.constant % i128::from(stride) + i128::from(stride) <= i128::from(bytes)
        });
        match in_range {
            Some((_, on)) => relies.push((*launch, on)),
            None if access.is_write => {}
            // A check replaces whole elements only.
            None if access.part == Part::Element => is_checked = true,
            None => return None,
        }
    }
    relies.retain(|(_, on)| *on != 0);
    Some((Promoted { tensor, stride, is_checked, array: None }, relies))
}

/// The stride of a tensor that is an array of scalars or vectors.
fn element_stride(launch: &Launch<'_>, argument: usize) -> Option<u32> {
    let module = &launch.body.program.module;
    let variable = launch.body.interface().tensors[argument].variable;
    let TypeInner::Array { base, stride, .. } = module.types[module.global_variables[variable].ty].inner
    else {
        return None;
    };
    matches!(module.types[base].inner, TypeInner::Scalar(_) | TypeInner::Vector { .. }).then_some(stride)
}

/// Whether an access happens only where a path was taken: what that relies on, of the launch of the path and its own.
fn implied(path: &Path, access: &Access) -> Option<(Scalars, Scalars)> {
    let (mut on_path, mut on_access) = (0, 0);
    for Fact { terms, max, relies } in &path.facts {
        let (known, more) = access.knowledge.max_of(terms)?;
        if known > *max {
            return None;
        }
        on_path |= relies;
        on_access |= more;
    }
    Some((on_path, on_access))
}
