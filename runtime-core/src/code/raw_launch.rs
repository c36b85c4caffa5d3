//! The ABI form of a launch.

#![allow(unsafe_code, reason = "fills an array in place")]

use std::mem::MaybeUninit;
use std::num::NonZeroU32;

use smallvec::SmallVec;

use crate::model::lowering::LoweredKernel;
use crate::{Arg, LaunchConfig, Result, abi};

/// The arguments and geometry of a launch in their ABI form.
#[derive(Default)]
pub(crate) struct RawLaunch {
    /// Inline for up to 16 arguments, plus the size of each for lowered code, and the number of groups.
    args: SmallVec<[abi::Arg; 36]>,
    /// The divisor of the number of groups along x, if the launch is coarsened.
    group_divisor: Option<NonZeroU32>,
    /// The work-items of a group that the device runs, if they are not those of the launch.
    work_items: Option<[u32; 3]>,
}

impl RawLaunch {
    /// A launch without arguments.
    pub(crate) fn without_args(lowered: Option<&LoweredKernel>) -> Self {
        Self { work_items: lowered.and_then(|lowered| lowered.work_items), ..Self::default() }
    }

    /// Fills an empty launch in place, because moving it would cost more than filling it. Calls `check` on each
    /// argument. Lowered code also gets its hidden arguments.
    #[inline]
    pub(crate) fn fill<'a>(
        &mut self,
        (lowered, config): (Option<&LoweredKernel>, &LaunchConfig),
        args: &[Arg<'a>],
        mut check: impl FnMut(usize, &Arg<'a>) -> Result<()>,
    ) -> Result<()> {
        if args.len() > self.args.inline_size() {
            self.args.reserve(args.len());
        }
        let first = self.args.as_mut_ptr();
        for (index, arg) in args.iter().enumerate() {
            check(index, arg)?;
            // SAFETY: the capacity is at least `args.len()`.
            let slot = unsafe { first.add(index) }.cast::<MaybeUninit<abi::Arg>>();
            // SAFETY: as above; the slot is aligned, and no other reference to it exists.
            arg.write_abi(unsafe { &mut *slot })?;
        }
        // SAFETY: the loop initialised all of them.
        unsafe { self.args.set_len(args.len()) };
        if let Some(lowered) = lowered {
            for hidden in lowered.hidden_args(config, args) {
                self.args.push(raw_arg(&hidden)?);
            }
            self.group_divisor = lowered.group_divisor(config);
            self.work_items = lowered.work_items;
        }
        Ok(())
    }

    #[inline]
    fn divided(&self, [x, y, z]: [u32; 3]) -> [u32; 3] {
        match self.group_divisor {
            Some(divisor) => [x.div_ceil(divisor.get()), y, z],
            None => [x, y, z],
        }
    }

    /// The launch, which points to the arguments in `self`; `self` must not move while it is used.
    #[inline]
    pub(crate) fn pointed(&self, config: &LaunchConfig) -> abi::Launch {
        let launch = abi::Launch {
            struct_size: crate::end_of!(abi::Launch, arg_count),
            flags: 0,
            groups: [1; 3],
            group_size: [1; 3],
            cluster: [1; 3],
            grain: 0,
            range: [0; 2],
            args: self.args.as_ptr(),
            arg_count: self.args.len(),
        };
        match config {
            LaunchConfig::Groups(geometry) => abi::Launch {
                flags: if geometry.cooperative { abi::LAUNCH_COOPERATIVE } else { 0 },
                groups: self.divided(geometry.groups),
                group_size: self.work_items.unwrap_or(geometry.group_size),
                cluster: geometry.cluster,
                ..launch
            },
            LaunchConfig::Range(range) => {
                abi::Launch { range: range.raw(), grain: range.grain.unwrap_or(0), ..launch }
            }
        }
    }
}

/// The ABI form of one argument, for paths that need not be fast.
pub(crate) fn raw_arg(arg: &Arg<'_>) -> Result<abi::Arg> {
    let mut slot = MaybeUninit::uninit();
    arg.write_abi(&mut slot)?;
    // SAFETY: initialised by `write_abi`.
    Ok(unsafe { slot.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Geometry;
    use crate::model::lowering::Coarsening;

    fn kernel() -> LoweredKernel {
        LoweredKernel {
            name: String::new(),
            symbol: String::new(),
            params: Vec::new(),
            group_size: [1; 3],
            work_items: None,
            shared_bytes: 0,
            tensor_sizes: true,
            coarsening: Some(Coarsening { factor: 4, min_groups: 8, min_groups_x: 6 }),
            reports_on: None,
        }
    }

    /// The groups that the device runs, and the hidden scalars of a launch.
    fn launched(config: Geometry) -> ([u32; 3], Vec<u64>) {
        let kernel = kernel();
        let (config, mut raw) = (LaunchConfig::Groups(config), RawLaunch::default());
        raw.fill((Some(&kernel), &config), &[], |_, _| Ok(())).unwrap();
        // SAFETY: a kernel without tensors gets scalars only.
        let scalars = raw.args.iter().map(|arg| unsafe { arg.value.scalar });
        (raw.pointed(&config).groups, scalars.collect())
    }

    #[test]
    fn a_large_launch_of_a_coarsened_kernel_runs_fewer_groups_and_passes_their_number() {
        let groups = |groups: [u32; 3]| launched(Geometry::new(groups, [1; 3]));
        assert_eq!(groups([7, 1, 1]), ([7, 1, 1], vec![7]));
        assert_eq!(groups([8, 1, 1]), ([2, 1, 1], vec![8]));
        assert_eq!(groups([5, 9, 1]), ([5, 9, 1], vec![5]), "too few along x");
        assert_eq!(groups([9, 2, 3]), ([3, 2, 3], vec![9]));
        assert_eq!(groups([u32::MAX, 2, 1]), ([1 << 30, 2, 1], vec![u32::MAX.into()]));
        let clustered = Geometry { cluster: [2, 1, 1], ..Geometry::new([8, 1, 1], [1; 3]) };
        assert_eq!(launched(clustered), ([8, 1, 1], vec![8]), "clusters have a shape of their own");
    }

    #[test]
    fn a_group_that_runs_as_loops_has_the_work_items_of_its_code() {
        let kernel = LoweredKernel { work_items: Some([4, 2, 1]), coarsening: None, ..kernel() };
        let config = LaunchConfig::Groups(Geometry::new([5, 6, 7], [256, 2, 1]));
        let mut raw = RawLaunch::default();
        raw.fill((Some(&kernel), &config), &[], |_, _| Ok(())).unwrap();
        for raw in [raw, RawLaunch::without_args(Some(&kernel))] {
            let launch = raw.pointed(&config);
            assert_eq!((launch.groups, launch.group_size), ([5, 6, 7], [4, 2, 1]));
        }
    }
}
