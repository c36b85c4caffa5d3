//! Launch geometry, and its validation against the limits of device and kernel.

use crate::{DeviceInfo, Error, KernelInfo, Limits, Result, abi};

/// Geometry of a launch: `groups × group size` in up to three dimensions, or a range on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of groups, per dimension.
    pub groups: [u32; 3],
    /// Work-items per group, per dimension.
    pub group_size: [u32; 3],
    /// Groups per cluster, per dimension.
    pub cluster: [u32; 3],
    /// Additional dynamic work-group memory in bytes.
    pub shared_bytes: u32,
    /// All groups are resident at once and may synchronise with each other.
    pub cooperative: bool,
    /// Half-open range for kernels whose last parameters are `begin` and `end`, two `int64_t`. The code does
    /// not state whether a kernel takes them, so set a range for such kernels and for no others.
    pub range: Option<[i64; 2]>,
    /// Iterations of the range per call; 0 lets the backend choose.
    pub grain: i64,
}

impl Default for Geometry {
    /// A single work-item.
    fn default() -> Self {
        Self {
            groups: [1; 3],
            group_size: [1; 3],
            cluster: [1; 3],
            shared_bytes: 0,
            cooperative: false,
            range: None,
            grain: 0,
        }
    }
}

impl From<&Self> for Geometry {
    #[inline]
    fn from(geometry: &Self) -> Self {
        *geometry
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

    /// Adds dynamic work-group memory.
    #[must_use]
    pub const fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
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
    /// `InvalidArgument`, naming the field and the limit; `Unsupported` for a feature that the device lacks.
    pub fn check(&self, info: &DeviceInfo, kernel: &KernelInfo) -> Result<()> {
        // Every device supports a single work-item without extras.
        if self.is_single() && self.has_no_extras() && kernel.group_size.is_none() {
            return Ok(());
        }
        if !self.has_no_extras() || !info.capabilities.has(abi::CAP_GROUPS) {
            self.check_capabilities(info)?;
            self.check_range()?;
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
        let most = limits.group_items.min(kernel.max_group_items.unwrap_or(u32::MAX));
        if items > u64::from(most) {
            return Err(Error::invalid(format!(
                "group_size {:?} has {items} work-items, the limit is {most}",
                self.group_size
            )));
        }
        let shared = u64::from(self.shared_bytes) + u64::from(kernel.shared_bytes.unwrap_or(0));
        if shared > limits.shared_bytes {
            return Err(Error::invalid(format!(
                "shared_bytes: {shared} bytes of work-group memory, the limit is {}",
                limits.shared_bytes
            )));
        }
        match kernel.group_size {
            Some(fixed) if fixed != self.group_size => Err(Error::invalid(format!(
                "group_size is {:?}, but the kernel's code fixes it to {fixed:?}",
                self.group_size
            ))),
            _ => Ok(()),
        }
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
        self.shared_bytes == 0 && !self.cooperative && self.range.is_none() && self.cluster == [1; 3]
    }

    /// The range as in the ABI, where two zeros mean no range; an empty range is `[1, 1]` there.
    pub(crate) fn raw_range(&self) -> [i64; 2] {
        match self.range {
            None => [0, 0],
            Some([begin, end]) if begin == end => [1, 1],
            Some(range) => range,
        }
    }

    fn check_range(&self) -> Result<()> {
        match self.range {
            Some([begin, end]) if begin > end => {
                Err(Error::invalid(format!("range is [{begin}, {end}]; it ends before it begins")))
            }
            Some(_) if self.grain < 0 => Err(Error::invalid(format!(
                "grain is {}; specify the iterations per call, or 0 to let the backend choose",
                self.grain
            ))),
            _ => Ok(()),
        }
    }

    fn check_capabilities(&self, info: &DeviceInfo) -> Result<()> {
        let needs = [
            (!self.is_single(), abi::CAP_GROUPS, "groups and group_size other than 1"),
            (self.range.is_some(), abi::CAP_RANGE, "range"),
            (self.cooperative, abi::CAP_COOPERATIVE, "cooperative"),
            (self.cluster != [1; 3], abi::CAP_CLUSTERS, "cluster"),
        ];
        match needs.iter().find(|(used, capability, _)| *used && !info.capabilities.has(*capability)) {
            Some((_, _, what)) => Err(Error::unsupported(format!("{what} is not supported on {}", info.id))),
            None => Ok(()),
        }
    }
}

/// Occupancy of a compute unit by the groups of a kernel; see
/// [`Kernel::occupancy`](crate::Kernel::occupancy). A cooperative launch is limited to `groups` times the
/// number of compute units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    use crate::{Capabilities, DeviceKind};

    #[test]
    fn a_range_is_validated_and_encoded() {
        let mut info = DeviceInfo::new(DeviceKind::Host, 0, "host");
        let geometry =
            |begin, end, grain| Geometry { range: Some([begin, end]), grain, ..Geometry::default() };
        let check = |info: &DeviceInfo, geometry: Geometry| geometry.check(info, &KernelInfo::default());
        assert_eq!(check(&info, geometry(0, 9, 0)).unwrap_err().kind(), crate::ErrorKind::Unsupported);
        info.capabilities = Capabilities(abi::CAP_RANGE);
        assert!(check(&info, geometry(-4, 9, 3)).is_ok());
        assert!(check(&info, geometry(2, 1, 0)).unwrap_err().message().starts_with("range is [2, 1]"));
        assert!(check(&info, geometry(0, 1, -1)).unwrap_err().message().starts_with("grain is -1"));
        assert_eq!(geometry(-4, 9, 3).raw_range(), [-4, 9]);
        assert_eq!(geometry(0, 0, 0).raw_range(), [1, 1], "an empty range differs from no range");
        assert_eq!(Geometry::default().raw_range(), [0, 0]);
    }
}
