//! Work-groups that run as loops in fewer work-items, for devices whose groups are smaller than the kernel's.

use runtime_core::device::Limits;

use crate::interface::Interface;

/// How the work-groups of a program run as loops in OpenCL C: each work-item runs a block of a group's invocations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLoops {
    /// By entry point: work-items per group and dimension; each number divides the group's extent.
    pub(crate) work_items: Vec<[u32; 3]>,
    /// Private memory of a work-item in bytes.
    pub(crate) private_bytes: u64,
}

impl GroupLoops {
    /// Distributes the invocations of each group over as many work-items as divide its extents, at most `most` of them, within
    /// the limits of a device. `private_bytes` is the private memory of all work-items of a group in bytes.
    #[must_use]
    pub fn new(interfaces: &[Interface], most: u32, limits: &Limits, private_bytes: u64) -> Self {
        let most = most.min(limits.group_items).max(1);
        let work_items =
            interfaces.iter().map(|interface| work_items(interface.group_size, most, limits.group_size));
        Self { work_items: work_items.collect(), private_bytes: private_bytes / u64::from(most) }
    }
}

/// The work-items of a group of `size`, at most `most`. Rows stay as long as possible, since compilers vectorise along x.
fn work_items(size: [u32; 3], most: u32, limits: [u32; 3]) -> [u32; 3] {
    let (mut left, mut counts) = (most, [1; 3]);
    for axis in (0..3).rev() {
        let fits = |count: &u32| size[axis].is_multiple_of(*count);
        counts[axis] = (1..=left.min(limits[axis]).min(size[axis])).rev().find(fits).unwrap_or(1);
        left /= counts[axis];
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_items_divide_a_group_and_keep_its_rows_long() {
        let limits = [16; 3];
        for (size, most, expected) in [
            ([256, 1, 1], 16, [16, 1, 1]),
            ([256, 1, 1], 1, [1, 1, 1]),
            ([16, 16, 1], 16, [1, 16, 1]),
            ([8, 8, 8], 16, [1, 2, 8]),
            ([100, 3, 1], 16, [5, 3, 1]),
            ([251, 1, 1], 16, [1, 1, 1]),
            ([4, 1, 1], 16, [4, 1, 1]),
            ([1, 1, 64], 16, [1, 1, 16]),
        ] {
            assert_eq!(work_items(size, most, limits), expected, "{size:?}");
        }
        assert_eq!(work_items([64, 64, 1], 16, [16, 4, 1]), [4, 4, 1]);
    }
}
