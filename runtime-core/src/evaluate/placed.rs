//! Arguments of an evaluation, and where they live when the clock starts.

use super::Clock;
use crate::{Access, Arg, DeviceInfo, DeviceKind, Error, HostArray, Result, Tensor};

/// Where a tensor argument lives when the clock starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum On {
    /// On the device, placed ahead of time as a framework places weights: no transfer is timed.
    #[default]
    Device,
    /// In the program's memory. What the kernel reads is sent before each call and what it writes is fetched after,
    /// inside the timed window; the transfers are also reported alone. A host device reads it where it is, so there
    /// this is the same as `Device`.
    Host,
    /// In host memory that the device reads directly (memory space `pinned`): its cost is in the kernel.
    Pinned,
    /// In memory that moves on demand (memory space `shared`): its cost is in the kernel.
    Shared,
}

/// An argument of an evaluation.
#[derive(Clone, Copy, Debug)]
pub enum EvaluationArg<'a> {
    /// A tensor of the evaluation's device.
    Tensor {
        /// The tensor. For [`On::Host`] it is the device's copy, whose contents are also what the host sends.
        tensor: &'a Tensor,
        /// How the kernel uses it.
        access: Access,
        /// Where it lives when the clock starts.
        on: On,
    },
    /// A scalar, bytes by value, or a size of work-group memory.
    Value(Arg<'a>),
}

impl<'a> EvaluationArg<'a> {
    /// A tensor that the kernel uses by `access` and that lives `on` when the clock starts.
    #[must_use]
    pub const fn tensor(tensor: &'a Tensor, access: Access, on: On) -> Self {
        Self::Tensor { tensor, access, on }
    }

    /// The argument of the launch.
    pub(crate) fn arg(&self) -> Arg<'a> {
        match *self {
            Self::Tensor { tensor, access, .. } => Arg::tensor(tensor, access),
            Self::Value(arg) => arg,
        }
    }

    /// The tensor and its access, if it is one.
    pub(crate) const fn as_tensor(&self) -> Option<(&'a Tensor, Access)> {
        match *self {
            Self::Tensor { tensor, access, .. } => Some((tensor, access)),
            Self::Value(_) => None,
        }
    }

    /// The tensor and its access, if each call sends it or fetches it.
    pub(crate) fn moved(&self, info: &DeviceInfo) -> Option<(&'a Tensor, Access)> {
        match *self {
            Self::Tensor { tensor, access, on: On::Host } if info.kind != DeviceKind::Host => {
                Some((tensor, access))
            }
            _ => None,
        }
    }

    pub(crate) fn check(&self, index: usize, info: &DeviceInfo, clock: Clock) -> Result<()> {
        if self.moved(info).is_some() && matches!(clock, Clock::DeviceKernel | Clock::HostSubmit) {
            return Err(Error::invalid(format!(
                "argument {index} is on the host, so its transfer belongs to the call, which clock {clock} does not \
                 see; use device_batch or host_wall, or place it on the device"
            )));
        }
        let Self::Tensor { tensor, on, .. } = self else { return Ok(()) };
        let space = match on {
            On::Pinned => "pinned",
            On::Shared => "shared",
            On::Device | On::Host => return Ok(()),
        };
        if info.kind == DeviceKind::Host || tensor.space() == space {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "argument {index} is said to be {space}, but lies in memory space {}; allocate it with Placement::space(\"{space}\")",
            tensor.space()
        )))
    }

    pub(crate) fn check_reference(&self, index: usize, expected: &HostArray) -> Result<()> {
        let Some((tensor, _)) = self.as_tensor().filter(|(_, access)| access.writes()) else {
            return Err(Error::invalid(format!(
                "reference {index}: argument {index} is no tensor that the kernel writes"
            )));
        };
        let shape = expected.shape().iter().map(|&extent| extent as i64);
        if tensor.dtype() == expected.dtype() && tensor.shape().iter().copied().eq(shape) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "reference {index} is {} {:?}, but argument {index} is {} {:?}",
            expected.dtype(),
            expected.shape(),
            tensor.dtype(),
            tensor.shape()
        )))
    }
}

impl<'a> From<Arg<'a>> for EvaluationArg<'a> {
    fn from(arg: Arg<'a>) -> Self {
        Self::Value(arg)
    }
}
