//! The ABI form of a launch.

#![allow(unsafe_code, reason = "fills an array in place")]

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use crate::abi;
use crate::{Arg, LaunchConfig, LoweredKernel, Result};

/// The arguments and geometry of a launch in their ABI form.
#[derive(Default)]
pub(crate) struct RawLaunch {
    /// Inline for up to 16 arguments, plus the size of each for lowered code.
    args: SmallVec<[abi::Arg; 32]>,
}

impl RawLaunch {
    /// Fills an empty launch in place, because moving it would cost more than filling it. Calls `check` on each
    /// argument. Lowered code also gets the sizes of its tensors.
    #[inline]
    pub(crate) fn fill<'a>(
        &mut self,
        lowered: Option<&LoweredKernel>,
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
            for size in lowered.tensor_sizes(args) {
                self.args.push(raw_arg(&size)?);
            }
        }
        Ok(())
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
                groups: geometry.groups,
                group_size: geometry.group_size,
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
