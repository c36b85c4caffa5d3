//! Checks of the work that a graph can hold.

use std::sync::Arc;

use crate::code::owned_arg::OwnedArg;
use crate::graph::node::Operation;
use crate::queue::copy::{check_copy, check_fill, check_placed_on, overlap};
use crate::timeline::open_device::OpenDevice;
use crate::{Arg, Error, Kernel, LaunchConfig, Result, Tensor};

impl Operation {
    /// A launch, with copies of its arguments.
    ///
    /// # Errors
    /// `InvalidArgument` as for `Queue::launch`, and for a geometry of 0 work-groups; `Unsupported` for a kernel
    /// loaded with `assert_proofs`.
    pub(super) fn launch(
        device: &Arc<OpenDevice>,
        kernel: &Kernel,
        config: &LaunchConfig,
        args: &[Arg<'_>],
    ) -> Result<Self> {
        let check = || {
            kernel.check_launch(device, config, args)?;
            kernel.check_args(device, args)?;
            if kernel.reporting().is_some() {
                return Err(Error::unsupported("a kernel with assert_proofs cannot be recorded: launch it"));
            }
            if config.is_empty() {
                // Native graphs have no node for it.
                return Err(Error::invalid("a launch of 0 groups cannot be recorded; leave it out"));
            }
            let args = args.iter().map(OwnedArg::new).collect();
            Ok(Self::Launch { kernel: kernel.clone(), config: *config, args })
        };
        check().map_err(|error| error.in_operation("launch").on_device(&device.name))
    }

    /// A copy between contiguous tensors that do not overlap.
    ///
    /// # Errors
    /// `InvalidArgument` as for `Queue::copy`; `Unsupported` for tensors that have gaps or overlap.
    pub(super) fn copy(device: &Arc<OpenDevice>, destination: &Tensor, source: &Tensor) -> Result<Self> {
        let check = || {
            check_copy(destination, source)?;
            check_placed_on(device, destination).and_then(|()| check_placed_on(device, source))?;
            // A copy node copies one range of bytes.
            if !destination.is_contiguous() || !source.is_contiguous() {
                return Err(Error::unsupported(
                    "a copy of a tensor with gaps cannot be recorded: use Queue::copy",
                ));
            }
            if Arc::ptr_eq(destination.buffer("copy")?, source.buffer("copy")?)
                && overlap(destination, source)
            {
                return Err(Error::unsupported(
                    "a copy between tensors that overlap cannot be recorded: use Queue::copy",
                ));
            }
            Ok(Self::Copy { destination: destination.clone(), source: source.clone() })
        };
        check().map_err(|error| error.in_operation("copy").on_device(&device.name))
    }

    /// A fill of a contiguous tensor.
    ///
    /// # Errors
    /// As `Queue::fill`.
    pub(super) fn fill(device: &Arc<OpenDevice>, tensor: &Tensor, pattern: &[u8]) -> Result<Self> {
        let checked = check_placed_on(device, tensor).and_then(|()| check_fill(tensor, pattern));
        checked.map_err(|error| error.in_operation("fill").on_device(&device.name))?;
        Ok(Self::Fill { tensor: tensor.clone(), pattern: pattern.to_vec() })
    }

    /// The same with other tensors, not yet checked.
    ///
    /// # Errors
    /// Any error of `map`.
    pub(super) fn map_tensors(&self, mut map: impl FnMut(&Tensor) -> Result<Tensor>) -> Result<Self> {
        Ok(match self {
            Self::Launch { kernel, config, args } => {
                let args = args.iter().map(|arg| match arg {
                    OwnedArg::Tensor(tensor, access, strided) => {
                        map(tensor).map(|tensor| OwnedArg::Tensor(tensor, *access, *strided))
                    }
                    other => Ok(other.clone()),
                });
                Self::Launch { kernel: kernel.clone(), config: *config, args: args.collect::<Result<_>>()? }
            }
            Self::Copy { destination, source } => {
                Self::Copy { destination: map(destination)?, source: map(source)? }
            }
            Self::Fill { tensor, pattern } => Self::Fill { tensor: map(tensor)?, pattern: pattern.clone() },
        })
    }

    /// Itself, if a graph of the device can hold it.
    ///
    /// # Errors
    /// As [`Operation::launch`], [`Operation::copy`] and [`Operation::fill`].
    pub(super) fn checked(self, device: &Arc<OpenDevice>) -> Result<Self> {
        match &self {
            Self::Launch { kernel, args, .. } => {
                let args: Vec<_> = args.iter().map(OwnedArg::borrow).collect();
                kernel.check_args(device, &args)?;
            }
            Self::Copy { destination, source } => drop(Self::copy(device, destination, source)?),
            Self::Fill { tensor, pattern } => drop(Self::fill(device, tensor, pattern)?),
        }
        Ok(self)
    }
}
