//! How a kernel is spread over a device, and whether the device allows it.

use crate::{DeviceInfo, Error, KernelInfo, Limits, Result, abi};

/// Geometry of a launch: `groups × group size`, up to three dimensions, or a range on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of groups per dimension.
    pub groups: [u32; 3],
    /// Work-items of a group per dimension.
    pub group_size: [u32; 3],
    /// Groups of a cluster per dimension.
    pub cluster: [u32; 3],
    /// Extra dynamic work-group memory in bytes.
    pub shared_bytes: u32,
    /// All groups run at once and may synchronise.
    pub cooperative: bool,
    /// Half-open range for kernels that take `begin` and `end`, two `int64_t`, as their last parameters. Code does not
    /// tell whether it takes them: a kernel that does is given a range, and no other is.
    pub range: Option<[i64; 2]>,
    /// Iterations of the range given to one call; 0: the backend chooses.
    pub grain: i64,
}

impl Default for Geometry {
    /// One plain call.
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

impl Geometry {
    /// `groups` groups of `group_size` work-items each.
    #[must_use]
    pub fn new(groups: impl Into<Dim3>, group_size: impl Into<Dim3>) -> Self {
        Self { groups: groups.into().0, group_size: group_size.into().0, ..Self::default() }
    }

    /// One plain call, the same as `default`.
    #[must_use]
    pub fn single() -> Self {
        Self::default()
    }

    /// Groups of `group_size` that cover `items` work-items of one dimension.
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

    /// Whether it is one plain call: what a device without geometry takes.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.groups == [1; 3] && self.group_size == [1; 3]
    }

    /// Whether it has no groups at all: nothing runs.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.groups.contains(&0)
    }

    /// Checks against the limits of a device and of a kernel, before any driver sees it.
    ///
    /// # Errors
    /// `InvalidArgument` that names the field and the limit; `Unsupported` for what the device does not have.
    pub fn check(&self, info: &DeviceInfo, kernel: &KernelInfo) -> Result<()> {
        // One plain call without extras is right everywhere.
        if self.is_single() && self.has_no_extras() && kernel.group_size.is_none() {
            return Ok(());
        }
        if !self.has_no_extras() || !info.capabilities.has(abi::CAP_GROUPS) {
            self.check_capabilities(info)?;
            self.check_range()?;
        }
        let limits = &info.limits;
        // Also 0 is beyond its limit, once 1 is taken from it.
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

    /// Says which extent is beyond its limit, or 0 where there is no such thing.
    #[cold]
    fn check_extents(&self, limits: &Limits) -> Result<()> {
        for axis in 0..3 {
            let (groups, size) = (self.groups[axis], self.group_size[axis]);
            // Zero groups are work that is done already.
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

    /// The range as it crosses the seam, where two zeros are none: an empty one begins at 1.
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
                "grain is {}; give the iterations of one call, or 0 to leave it open",
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

/// How much of a compute unit the groups of a kernel can fill at once, as [`Kernel::occupancy`](crate::Kernel::occupancy)
/// tells. For a cooperative launch, `groups` times the device's compute units is the most that fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Groups that one compute unit runs at once.
    pub groups: u32,
    /// Sub-groups (warps) of those groups.
    pub sub_groups: u32,
    /// Most sub-groups that one compute unit runs at once, whatever the kernel.
    pub max_sub_groups: u32,
}

impl Occupancy {
    /// The theoretical occupancy: `sub_groups` of `max_sub_groups`, from 0 to 1.
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
    fn a_range_is_checked_before_it_crosses() {
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
        assert_eq!(geometry(0, 0, 0).raw_range(), [1, 1], "an empty range is not a plain call");
        assert_eq!(Geometry::default().raw_range(), [0, 0]);
    }
}
