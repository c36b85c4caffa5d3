//! What a launch runs, and its validation against the limits of device and kernel.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::model::device_info::Limits;
use crate::model::kernel_info::KernelInfo;
use crate::{DeviceInfo, Error, ErrorKind, Result, abi};

/// What a launch runs: a grid of work-groups, or on a host a range of iterations.
///
/// `(groups, group_size)` and `begin..end` convert to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchConfig {
    /// A grid of work-groups.
    Groups(Geometry),
    /// Iterations that a host divides among its threads.
    Range(ParallelRange),
}

/// A range of iterations for native code on a host, which is called on several threads, each time for another
/// part of the range. Such a function has two more parameters, `begin` and `end`, both `int64_t` and the last
/// ones. The code does not state whether a function has them, so launch such functions, and no others, with a
/// range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelRange {
    /// First iteration.
    pub begin: i64,
    /// One past the last iteration.
    pub end: i64,
    /// Maximum iterations per call; `None` lets the backend choose.
    pub grain: Option<u32>,
}

/// Geometry of a grid: `groups × group size` in up to three dimensions.
///
/// ```
/// # use runtime_core::{Geometry, ModuleSource, Runtime, write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let kernel = device.kernel(&unsafe { ModuleSource::native("null", "group_ids_u32") }, "group_ids_u32")?;
/// let geometry = Geometry::cover(1000, 256); // 1,024 work-items; the kernel ignores those beyond 1,000
/// assert_eq!((geometry.groups, geometry.group_size), ([4, 1, 1], [256, 1, 1]));
/// let ids = device.empty::<u32>([1000])?;
/// device.queue()?.call(&kernel, geometry, (write(&ids),))?; // or `(4, 256)` instead of `geometry`
/// assert_eq!(ids.to_vec::<u32>()?[999], 999);
///
/// // A tuner asks first, instead of launching what is refused.
/// let error = Geometry::new(1, [32, 64]).check(device.info(), kernel.info()).unwrap_err();
/// assert!(error.message().contains("the limit is 1024"));
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of groups, per dimension.
    pub groups: [u32; 3],
    /// Work-items per group, per dimension.
    pub group_size: [u32; 3],
    /// Groups per cluster, per dimension.
    pub cluster: [u32; 3],
    /// All groups are resident at once and may synchronise with each other.
    pub cooperative: bool,
}

impl Default for Geometry {
    /// A single work-item.
    fn default() -> Self {
        Self { groups: [1; 3], group_size: [1; 3], cluster: [1; 3], cooperative: false }
    }
}

/// Work-groups, and work-items of each.
impl<G: Into<Dim3>, S: Into<Dim3>> From<(G, S)> for Geometry {
    fn from((groups, group_size): (G, S)) -> Self {
        Self::new(groups, group_size)
    }
}

impl Geometry {
    /// `groups` groups of `group_size` work-items each.
    #[must_use]
    pub fn new(groups: impl Into<Dim3>, group_size: impl Into<Dim3>) -> Self {
        Self { groups: groups.into().0, group_size: group_size.into().0, ..Self::default() }
    }

    /// A single work-item; the same as `default`.
    #[must_use]
    pub fn single() -> Self {
        Self::default()
    }

    /// As many groups of `group_size` as cover `items` work-items, in one dimension.
    #[must_use]
    pub fn cover(items: u32, group_size: u32) -> Self {
        Self::new(items.div_ceil(group_size.max(1)), group_size.max(1))
    }

    /// Whether this is a single work-item, the only geometry of a device without work-groups.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.groups == [1; 3] && self.group_size == [1; 3]
    }

    /// Whether there are no groups, so that nothing runs.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.groups.contains(&0)
    }

    /// Checks the geometry against the limits of the device and the kernel, before any driver call.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the field and the limit; `OutOfResources` for a group that the device could hold, but
    /// not with this kernel; `Unsupported` for a feature that the device lacks.
    pub fn check(&self, info: &DeviceInfo, kernel: &KernelInfo) -> Result<()> {
        // Every device supports a single work-item without extras.
        if self.is_single() && self.has_no_extras() && kernel.group_size.is_none() {
            return Ok(());
        }
        if !self.has_no_extras() || !info.capabilities.has(abi::CAP_GROUPS) {
            self.check_capabilities(info)?;
        }
        let limits = &info.limits;
        // Subtracting 1 wraps 0 around, so 0 fails the check too.
        let fits = |value: u32, limit: u64| u64::from(value).wrapping_sub(1) < limit;
        if !(0..3).all(|axis| {
            fits(self.groups[axis], limits.groups[axis])
                && fits(self.group_size[axis], u64::from(limits.group_size[axis]))
        }) {
            self.check_extents(limits)?;
        }
        let items = self.group_size.iter().fold(1u64, |items, &n| items.saturating_mul(u64::from(n)));
        if items > u64::from(limits.group_items) {
            return Err(Error::invalid(format!(
                "group_size {:?} has {items} work-items, the limit is {}",
                self.group_size, limits.group_items
            )));
        }
        self.check_group_size(kernel)?;
        match kernel.max_group_items {
            Some(most) if items > u64::from(most) => Err(self.too_large_for_kernel(items, most)),
            _ => Ok(()),
        }
    }

    /// Fails if the kernel's code fixes another group size.
    #[inline]
    pub(crate) fn check_group_size(&self, kernel: &KernelInfo) -> Result<()> {
        match kernel.group_size {
            Some(fixed) if fixed != self.group_size => Err(Error::invalid(format!(
                "group_size is {:?}, but the kernel's code fixes it to {fixed:?}",
                self.group_size
            ))),
            _ => Ok(()),
        }
    }

    #[cold]
    fn too_large_for_kernel(&self, items: u64, most: u32) -> Error {
        let size = self.group_size;
        Error::new(
            ErrorKind::OutOfResources,
            format!(
                "group_size {size:?} has {items} work-items, but the resources that this kernel needs, such as \
                 registers, limit its groups to {most}; use smaller groups"
            ),
        )
    }

    /// Reports the first extent that exceeds its limit or is an invalid 0.
    #[cold]
    fn check_extents(&self, limits: &Limits) -> Result<()> {
        for axis in 0..3 {
            let (groups, size) = (self.groups[axis], self.group_size[axis]);
            // Zero groups are valid: there is nothing to run.
            if groups > 0 {
                check_limit("groups", axis, u64::from(groups), limits.groups[axis])?;
            }
            check_limit("group_size", axis, u64::from(size), u64::from(limits.group_size[axis]))?;
        }
        Ok(())
    }

    fn has_no_extras(&self) -> bool {
        !self.cooperative && self.cluster == [1; 3]
    }

    fn check_capabilities(&self, info: &DeviceInfo) -> Result<()> {
        let needs = [
            (!self.is_single(), abi::CAP_GROUPS, "groups and group_size other than 1"),
            (self.cooperative, abi::CAP_COOPERATIVE, "cooperative"),
            (self.cluster != [1; 3], abi::CAP_CLUSTERS, "cluster"),
        ];
        match needs.iter().find(|(used, capability, _)| *used && !info.capabilities.has(*capability)) {
            Some((_, _, what)) => Err(Error::unsupported(format!("{what} is not supported on {}", info.id))),
            None => Ok(()),
        }
    }
}

impl ParallelRange {
    /// Sets the maximum iterations per call.
    #[must_use]
    pub const fn grain(mut self, iterations: u32) -> Self {
        self.grain = Some(iterations);
        self
    }

    /// Checks the range, before any driver call.
    ///
    /// # Errors
    /// `InvalidArgument` for a range that ends before it begins, and for a grain of 0; `Unsupported` on a device
    /// that divides no ranges.
    pub fn check(&self, info: &DeviceInfo) -> Result<()> {
        let Self { begin, end, grain } = *self;
        if !info.capabilities.has(abi::CAP_RANGE) {
            Err(Error::unsupported(format!("range is not supported on {}", info.id)))
        } else if begin > end {
            Err(Error::invalid(format!("range is [{begin}, {end}]; it ends before it begins")))
        } else if grain == Some(0) {
            Err(Error::invalid(
                "grain is 0; specify the iterations per call, or none to let the backend choose",
            ))
        } else {
            Ok(())
        }
    }

    /// The range as in the ABI, where two zeros mean no range; an empty range is `[1, 1]` there.
    pub(crate) const fn raw(&self) -> [i64; 2] {
        if self.begin == self.end { [1, 1] } else { [self.begin, self.end] }
    }
}

impl From<Range<i64>> for ParallelRange {
    fn from(range: Range<i64>) -> Self {
        Self { begin: range.start, end: range.end, grain: None }
    }
}

impl LaunchConfig {
    /// Checks the launch against the limits of the device and the kernel, before any driver call.
    ///
    /// # Errors
    /// As [`Geometry::check`] and [`ParallelRange::check`].
    #[inline]
    pub fn check(&self, info: &DeviceInfo, kernel: &KernelInfo) -> Result<()> {
        match self {
            Self::Groups(geometry) => geometry.check(info, kernel),
            Self::Range(range) => range.check(info),
        }
    }

    /// Whether there are no groups, so that nothing runs.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Groups(geometry) if geometry.is_empty())
    }

    /// The grid, if it is one.
    #[must_use]
    pub const fn geometry(&self) -> Option<&Geometry> {
        match self {
            Self::Groups(geometry) => Some(geometry),
            Self::Range(_) => None,
        }
    }
}

impl From<Geometry> for LaunchConfig {
    #[inline]
    fn from(geometry: Geometry) -> Self {
        Self::Groups(geometry)
    }
}

impl From<ParallelRange> for LaunchConfig {
    #[inline]
    fn from(range: ParallelRange) -> Self {
        Self::Range(range)
    }
}

impl From<Range<i64>> for LaunchConfig {
    #[inline]
    fn from(range: Range<i64>) -> Self {
        Self::Range(range.into())
    }
}

/// Work-groups, and work-items of each.
impl<G: Into<Dim3>, S: Into<Dim3>> From<(G, S)> for LaunchConfig {
    #[inline]
    fn from(grid: (G, S)) -> Self {
        Self::Groups(grid.into())
    }
}

/// Occupancy of a compute unit by the groups of a kernel; see
/// [`Kernel::occupancy`](crate::Kernel::occupancy). A cooperative launch is limited to `groups` times the
/// number of compute units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Groups that are resident on one compute unit at the same time.
    pub groups: u32,
    /// Sub-groups (warps) of those groups.
    pub sub_groups: u32,
    /// Maximum number of sub-groups resident on one compute unit, for any kernel.
    pub max_sub_groups: u32,
}

impl Occupancy {
    /// The theoretical occupancy, `sub_groups / max_sub_groups`, from 0 to 1.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        f64::from(self.sub_groups) / f64::from(self.max_sub_groups.max(1))
    }
}

fn check_limit(field: &str, axis: usize, value: u64, limit: u64) -> Result<()> {
    let name = ["x", "y", "z"][axis];
    match value {
        0 => Err(Error::invalid(format!("{field}.{name} is 0; every dimension needs at least 1"))),
        _ if value > limit => Err(Error::invalid(format!("{field}.{name} is {value}, the limit is {limit}"))),
        _ => Ok(()),
    }
}

/// Up to three extents; missing ones are 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3(pub [u32; 3]);

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self([x, 1, 1])
    }
}
impl From<[u32; 2]> for Dim3 {
    fn from([x, y]: [u32; 2]) -> Self {
        Self([x, y, 1])
    }
}
impl From<[u32; 3]> for Dim3 {
    fn from(extents: [u32; 3]) -> Self {
        Self(extents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceKind;
    use crate::model::device_info::Capabilities;

    #[test]
    fn a_group_beyond_the_device_is_invalid_and_one_beyond_the_kernel_lacks_resources() {
        let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, "device");
        info.capabilities = Capabilities(abi::CAP_GROUPS);
        info.limits = Limits {
            groups: [1 << 20; 3],
            group_size: [1024, 1024, 64],
            group_items: 1024,
            ..Limits::default()
        };
        let kernel = KernelInfo { max_group_items: Some(640), ..KernelInfo::default() };
        let kind = |size: [u32; 3], kernel: &KernelInfo| {
            Geometry::new(1, size).check(&info, kernel).err().map(|error| error.kind())
        };
        assert_eq!(kind([640, 1, 1], &kernel), None);
        assert_eq!(kind([641, 1, 1], &kernel), Some(ErrorKind::OutOfResources));
        assert_eq!(kind([32, 32, 1], &kernel), Some(ErrorKind::OutOfResources), "the most of the device");
        assert_eq!(
            kind([32, 33, 1], &kernel),
            Some(ErrorKind::InvalidArgument),
            "more than any kernel can have"
        );
        assert_eq!(kind([1, 1, 65], &kernel), Some(ErrorKind::InvalidArgument));
        let fixed =
            KernelInfo { group_size: Some([64, 1, 1]), max_group_items: Some(64), ..KernelInfo::default() };
        assert_eq!(kind([64, 1, 1], &fixed), None);
        assert_eq!(
            kind([128, 1, 1], &fixed),
            Some(ErrorKind::InvalidArgument),
            "another size than the code's"
        );
        let error = Geometry::new(1, [1024, 1, 1]).check(&info, &kernel).unwrap_err();
        assert!(
            ["1024", "640", "smaller groups"].iter().all(|word| error.message().contains(word)),
            "{error}"
        );
    }

    #[test]
    fn a_range_is_validated_and_encoded() {
        let mut info = DeviceInfo::new(DeviceKind::Host, 0, "host");
        let check = |info: &DeviceInfo, range: ParallelRange| {
            LaunchConfig::from(range).check(info, &KernelInfo::default())
        };
        assert_eq!(check(&info, (0..9).into()).unwrap_err().kind(), ErrorKind::Unsupported);
        info.capabilities = Capabilities(abi::CAP_RANGE);
        assert!(check(&info, ParallelRange::from(-4..9).grain(3)).is_ok());
        let backwards = ParallelRange { begin: 2, end: 1, grain: None };
        assert!(check(&info, backwards).unwrap_err().message().starts_with("range is [2, 1]"));
        assert!(
            check(&info, ParallelRange::from(0..1).grain(0)).unwrap_err().message().starts_with("grain is 0")
        );
        assert_eq!(ParallelRange::from(-4..9).raw(), [-4, 9]);
        assert_eq!(ParallelRange::from(0..0).raw(), [1, 1], "an empty range differs from no range");
    }
}
