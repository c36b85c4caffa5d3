//! The size of work-groups for a range, where the kernel's code fixes none.

use crate::model::device_info::Limits;
use crate::{Geometry, Kernel};

/// The candidates. Among those of equal occupancy, the first one is taken: groups of 256 work-items hide latency on GPUs, and
/// leave several groups to a compute unit.
const CANDIDATES: [u32; 5] = [256, 128, 512, 64, 1024];
/// Work-items along `x` of a group with several dimensions: neighbours there access neighbouring memory.
const ROW: u32 = 32;

/// The number of work-items of a group: the candidate with the highest occupancy, as far as the driver tells it.
pub(super) fn choose(kernel: &Kernel) -> u32 {
    let (info, limits) = (kernel.info(), &kernel.device().info.limits);
    let most =
        limits.group_items.min(info.max_group_items.unwrap_or(u32::MAX)).min(limits.group_size[0]).max(1);
    let multiple = info.preferred_multiple.unwrap_or(1).max(1);
    let fits = |items: &u32| *items <= most && items.is_multiple_of(multiple);
    let occupancy = |items: u32| {
        let occupancy = kernel.occupancy(&Geometry::new(1, items), 0);
        occupancy.map_or(0.0, |occupancy| occupancy.fraction())
    };
    let mut best = None;
    for items in CANDIDATES.into_iter().filter(fits) {
        let share = occupancy(items);
        if best.is_none_or(|(_, highest)| share > highest) {
            best = Some((items, share));
        }
    }
    best.map_or_else(|| (most / multiple * multiple).max(1), |(items, _)| items)
}

/// The shape of a group of about `items` work-items for a range of these extents.
pub(super) fn shape(extents: &[usize], items: u32, limits: &Limits) -> [u32; 3] {
    let mut left = items.max(1);
    let mut shape = [1; 3];
    for (axis, &extent) in extents.iter().enumerate().take(3) {
        let is_last = axis + 1 == extents.len();
        let wanted = match (axis, is_last) {
            (_, true) => left,
            (0, _) => left.min(ROW),
            _ => left.min(4),
        };
        let needed =
            u32::try_from(extent).unwrap_or(u32::MAX).checked_next_power_of_two().unwrap_or(u32::MAX);
        shape[axis] = wanted.min(needed).min(limits.group_size[axis]).max(1);
        left = (left / shape[axis]).max(1);
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_a_row_in_one_dimension_and_a_tile_in_several() {
        let limits = Limits { group_size: [1024, 1024, 64], ..Limits::default() };
        assert_eq!(shape(&[1000], 256, &limits), [256, 1, 1]);
        assert_eq!(shape(&[3], 256, &limits), [4, 1, 1]);
        assert_eq!(shape(&[1000, 1000], 256, &limits), [32, 8, 1]);
        assert_eq!(shape(&[1, 1000], 256, &limits), [1, 256, 1]);
        assert_eq!(shape(&[100, 100, 100], 256, &limits), [32, 4, 2]);
        assert_eq!(shape(&[1, 1, 1000], 256, &limits), [1, 1, 64]);
        assert_eq!(shape(&[7, 7], 1, &limits), [1, 1, 1]);
    }
}
