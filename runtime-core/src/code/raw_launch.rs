//! A launch in the form that crosses the ABI.

#![allow(unsafe_code, reason = "fills an array in place")]

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use crate::abi;
use crate::{Arg, Geometry, Kernel, Result};

/// The arguments and geometry of a launch, in the form that crosses the seam.
#[derive(Default)]
pub(crate) struct RawLaunch {
    /// Up to 16, and the sizes of as many tensors for lowered code.
    args: SmallVec<[abi::Arg; 32]>,
}

impl RawLaunch {
    /// Fills an empty one in place, since moving it would cost more than filling it, with arguments that `check` lets pass.
    #[inline]
    pub(crate) fn fill<'a>(
        &mut self,
        kernel: &Kernel,
        args: &[Arg<'a>],
        mut check: impl FnMut(usize, &Arg<'a>) -> Result<()>,
    ) -> Result<()> {
        if args.len() > self.args.inline_size() {
            self.args.reserve(args.len());
        }
        let first = self.args.as_mut_ptr();
        for (index, arg) in args.iter().enumerate() {
            check(index, arg)?;
            // SAFETY: there is room for as many as `args`.
            let place = unsafe { first.add(index) }.cast::<MaybeUninit<abi::Arg>>();
            // SAFETY: as above, the place is aligned, and nobody else knows it.
            arg.write_raw(unsafe { &mut *place })?;
        }
        // SAFETY: the loop wrote all of them.
        unsafe { self.args.set_len(args.len()) };
        if let Some(lowered) = kernel.lowered() {
            for size in lowered.tensor_sizes(args) {
                self.args.push(raw_arg(&size)?);
            }
        }
        Ok(())
    }

    /// The launch; it points to the arguments where they lie now.
    #[inline]
    pub(crate) fn pointed(&self, geometry: &Geometry) -> abi::Launch {
        abi::Launch {
            struct_size: crate::end_of!(abi::Launch, arg_count),
            flags: if geometry.cooperative { abi::LAUNCH_COOPERATIVE } else { 0 },
            groups: geometry.groups,
            group_size: geometry.group_size,
            cluster: geometry.cluster,
            shared_bytes: geometry.shared_bytes,
            range: geometry.raw_range(),
            grain: geometry.grain,
            args: self.args.as_ptr(),
            arg_count: self.args.len(),
        }
    }
}

/// An argument in the form that crosses the seam, where it need not be fast.
pub(crate) fn raw_arg(arg: &Arg<'_>) -> Result<abi::Arg> {
    let mut place = MaybeUninit::uninit();
    arg.write_raw(&mut place)?;
    // SAFETY: it was written.
    Ok(unsafe { place.assume_init() })
}
