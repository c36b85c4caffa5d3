//! What a dispatch runs: work-items in up to three dimensions, in work-groups that the runtime or the caller chooses.

use std::fmt;

use crate::model::counted::counted;
use crate::model::device_info::Limits;
use crate::model::kernel_info::KernelInfo;
use crate::{Dim3, Error, Geometry, Result};

/// Work-items of which the groups surely fit into 32 bits.
const MOST_ITEMS: usize = u32::MAX as usize;

/// Extents in one to three dimensions. Dimension 0 is `x`, the one that varies fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    sizes: [usize; 3],
    /// More than 3 are refused when they are used.
    rank: usize,
}

impl Extents {
    fn check(&self, name: &str) -> Result<()> {
        let rank = self.rank;
        if !(1..=3).contains(&rank) {
            return Err(Error::invalid(format!("{name} has {rank} dimensions; a kernel runs in 1 to 3")));
        }
        match self.sizes().iter().position(|&size| size == 0) {
            Some(axis) => Err(Error::invalid(format!(
                "{name} is {self}: dimension {axis} is 0, so there is nothing to run; every dimension needs at least 1"
            ))),
            None => Ok(()),
        }
    }

    fn sizes(&self) -> &[usize] {
        &self.sizes[..self.rank.min(3)]
    }
}

impl fmt::Display for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.sizes())
    }
}

impl From<usize> for Extents {
    fn from(size: usize) -> Self {
        Self { sizes: [size, 1, 1], rank: 1 }
    }
}

impl From<&[usize]> for Extents {
    fn from(list: &[usize]) -> Self {
        let mut sizes = [1; 3];
        sizes.iter_mut().zip(list).for_each(|(size, given)| *size = *given);
        Self { sizes, rank: list.len() }
    }
}

impl<const N: usize> From<[usize; N]> for Extents {
    fn from(list: [usize; N]) -> Self {
        list.as_slice().into()
    }
}

/// At least this many work-items; the runtime chooses the groups.
///
/// Groups are whole, so a kernel may also run for indices at the end that are out of range, and must check for them, as
/// a kernel of any other launch does. A kernel that uses work-group memory depends on its groups, and takes an [`NdRange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range(Extents);

impl Range {
    /// So many work-items in one to three dimensions.
    pub fn new(items: impl Into<Extents>) -> Self {
        Self(items.into())
    }
}

/// Exactly these work-items, in groups of a given size: `global` work-items, `local` of them in each group.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// use runtime_core::dispatch::{Dispatcher, NdRange};
///
/// # let source = unsafe { ModuleSource::native("null", "group_ids_u32") };
/// let number = Dispatcher::new(source, "group_ids_u32"); // each work-item writes its number
/// let x = device.zeros::<u32>([64])?;
/// number.call(NdRange::new([8, 8], [4, 4]), (&x,))?; // 4 groups of 4 × 4
/// assert_eq!(x.to_vec::<u32>()?[63], 63);
/// let error = number.call(NdRange::new([8, 9], [4, 4]), (&x,)).unwrap_err();
/// assert!(error.message().contains("not a multiple"));
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NdRange {
    global: Extents,
    local: Extents,
}

impl NdRange {
    /// `global` work-items in groups of `local`. Both have the same number of dimensions, and each of `global` is a
    /// multiple of that of `local`.
    pub fn new(global: impl Into<Extents>, local: impl Into<Extents>) -> Self {
        Self { global: global.into(), local: local.into() }
    }
}

/// What [`Dispatcher::call`](crate::dispatch::Dispatcher::call) and [`submit`](crate::dispatch::Dispatcher::submit) run: a [`Range`] (a number or
/// an array converts to it), or an [`NdRange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// The runtime chooses the work-groups.
    Range(Range),
    /// The caller chooses the work-groups.
    NdRange(NdRange),
}

impl From<Range> for Domain {
    fn from(range: Range) -> Self {
        Self::Range(range)
    }
}

impl From<NdRange> for Domain {
    fn from(range: NdRange) -> Self {
        Self::NdRange(range)
    }
}

impl From<usize> for Domain {
    fn from(items: usize) -> Self {
        Self::Range(Range::new(items))
    }
}

impl<const N: usize> From<[usize; N]> for Domain {
    fn from(items: [usize; N]) -> Self {
        Self::Range(Range::new(items))
    }
}

impl Domain {
    /// The grid to launch. `preferred` gives the group size for a range whose kernel fixes none.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the values that do not fit each other or the device.
    #[inline]
    pub(super) fn geometry(
        &self,
        (kernel, limits): (&KernelInfo, &Limits),
        local_bytes: u64,
        preferred: impl FnOnce(&[usize]) -> [u32; 3],
    ) -> Result<Geometry> {
        match self {
            // The common case skips the checks that it passes anyway.
            Self::Range(Range(Extents { sizes: [items @ 1..=MOST_ITEMS, ..], rank: 1 }))
                if local_bytes == 0 && kernel.shared_bytes.unwrap_or(0) == 0 =>
            {
                let group = kernel.group_size.unwrap_or_else(|| preferred(&[*items]));
                // At most `MOST_ITEMS`.
                let groups = u32::try_from(cover(*items, group[0])).unwrap_or(u32::MAX);
                Ok(Geometry::new(groups, group))
            }
            Self::Range(Range(items)) => {
                items.check("the range")?;
                check_no_group_memory(kernel, local_bytes)?;
                let group = kernel.group_size.unwrap_or_else(|| preferred(items.sizes()));
                let groups = [0, 1, 2].map(|axis| cover(items.sizes[axis], group[axis]));
                Ok(Geometry::new(grid("the range", items, groups)?, group))
            }
            Self::NdRange(range) => range.geometry(kernel, limits),
        }
    }

    /// The number of work-items of a host function, which is called for parts of a range and has no work-groups.
    ///
    /// # Errors
    /// `InvalidArgument` for an invalid range; `Unsupported` for an [`NdRange`].
    pub(super) fn items(&self, kernel: &str) -> Result<i64> {
        let Self::Range(Range(items)) = self else {
            return Err(Error::unsupported(format!(
                "\"{kernel}\" is a host function, which has no work-groups; pass a range instead of an NdRange"
            )));
        };
        items.check("the range")?;
        let count = items.sizes().iter().try_fold(1usize, |all, &size| all.checked_mul(size));
        let count = count.and_then(|count| i64::try_from(count).ok());
        count.ok_or_else(|| Error::invalid(format!("the range {items} has more than 2^63 work-items")))
    }
}

impl NdRange {
    fn geometry(&self, kernel: &KernelInfo, limits: &Limits) -> Result<Geometry> {
        let Self { global, local } = self;
        global.check("the global range")?;
        local.check("the local range")?;
        if global.rank != local.rank {
            let (global_rank, local_rank) = (counted(global.rank, "dimension"), local.rank);
            return Err(Error::invalid(format!(
                "the global range {global} has {global_rank}, but the local range {local} has {local_rank}"
            )));
        }
        if let Some(axis) = (0..3).find(|&axis| global.sizes[axis] % local.sizes[axis] != 0) {
            return Err(Error::invalid(format!(
                "the global range {global} is not a multiple of the local range {local} in dimension {axis}"
            )));
        }
        let group = self.group_size(kernel, limits)?;
        let groups = [0, 1, 2].map(|axis| global.sizes[axis] / local.sizes[axis]);
        Ok(Geometry::new(grid("the global range", global, groups)?, group))
    }

    fn group_size(&self, kernel: &KernelInfo, limits: &Limits) -> Result<[u32; 3]> {
        let local = &self.local;
        let size = local.sizes.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
        if let Some(fixed) = kernel.group_size
            && fixed != size
        {
            return Err(Error::invalid(format!(
                "the local range is {local}, but the kernel's code fixes it to {:?}",
                &fixed[..local.rank]
            )));
        }
        // Loading has checked it; the code may run larger groups than the device has.
        if kernel.group_size.is_some() {
            return Ok(size);
        }
        if let Some(axis) = (0..3).find(|&axis| size[axis] > limits.group_size[axis]) {
            let limit = limits.group_size[axis];
            return Err(Error::invalid(format!(
                "the local range {local} exceeds the device's limit of {limit} in dimension {axis}"
            )));
        }
        let items = size.iter().fold(1u64, |items, &n| items.saturating_mul(u64::from(n)));
        if items > u64::from(limits.group_items) {
            return Err(Error::invalid(format!(
                "the local range {local} has {items} work-items, but a group of this device has at most {}",
                limits.group_items
            )));
        }
        Ok(size)
    }
}

/// The groups of `group` items that cover `items`. Most axes have one, and a division is slow.
#[inline]
fn cover(items: usize, group: u32) -> usize {
    let group = group.max(1) as usize;
    if items <= group { 1 } else { items.div_ceil(group) }
}

fn grid(name: &str, extents: &Extents, groups: [usize; 3]) -> Result<Dim3> {
    let mut grid = [0; 3];
    for (axis, count) in groups.into_iter().enumerate() {
        grid[axis] = u32::try_from(count).map_err(|_| {
            Error::invalid(format!(
                "{name} {extents} has {count} groups in dimension {axis}, more than any device runs"
            ))
        })?;
    }
    Ok(Dim3(grid))
}

fn check_no_group_memory(kernel: &KernelInfo, local_bytes: u64) -> Result<()> {
    let own = u64::from(kernel.shared_bytes.unwrap_or(0));
    if own == 0 && local_bytes == 0 {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the kernel uses {} bytes of work-group memory, so its result depends on its groups; pass an NdRange, which states \
         their size, instead of a range",
        own.saturating_add(local_bytes)
    )))
}
