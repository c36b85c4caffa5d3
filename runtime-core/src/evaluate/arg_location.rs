//! Arguments of an evaluation, and where they live when the clock starts.

use super::Clock;
use crate::code::arg::Value;
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

/// An argument of an evaluation: an argument of the launch, and where it lives when the clock starts.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationArg<'a> {
    /// The argument of the launch. A tensor that lives on the host is given as the device's copy, whose contents are
    /// also what the host sends.
    pub arg: Arg<'a>,
    /// Where it lives; only tensors live anywhere but on the device.
    pub on: On,
}

impl<'a> EvaluationArg<'a> {
    /// A tensor that the kernel uses by `access` and that lives `on` when the clock starts.
    #[must_use]
    pub const fn tensor(tensor: &'a Tensor, access: Access, on: On) -> Self {
        Self { arg: Arg::tensor(tensor, access), on }
    }

    /// Says that the kernel computes with the strides of this tensor, as [`Arg::strided`].
    #[must_use]
    pub const fn strided(self) -> Self {
        Self { arg: self.arg.strided(), ..self }
    }

    /// The tensor and its access, if it is one.
    pub(crate) const fn as_tensor(&self) -> Option<(&'a Tensor, Access)> {
        match self.arg.value {
            Value::Tensor(tensor, access, _) => Some((tensor, access)),
            _ => None,
        }
    }

    /// The tensor and its access, if each call sends it or fetches it.
    pub(crate) fn host_tensor(&self, info: &DeviceInfo) -> Option<(&'a Tensor, Access)> {
        self.as_tensor().filter(|_| self.on == On::Host && info.kind != DeviceKind::Host)
    }

    pub(crate) fn check(&self, index: usize, info: &DeviceInfo, clock: Clock) -> Result<()> {
        if self.host_tensor(info).is_some() && !matches!(clock, Clock::DeviceBatch | Clock::HostWall) {
            return Err(Error::invalid(format!(
                "argument {index} is on the host, so its transfer belongs to the call, which clock {clock} does not \
                 see; use device_batch or host_wall, or place it on the device"
            )));
        }
        let space = match self.on {
            On::Pinned => "pinned",
            On::Shared => "shared",
            On::Device | On::Host => return Ok(()),
        };
        match self.as_tensor() {
            Some((tensor, _)) if info.kind != DeviceKind::Host && tensor.space() != space => {
                Err(Error::invalid(format!(
                    "argument {index} is said to be {space}, but lies in memory space {}; allocate it with \
                     Placement::space(\"{space}\")",
                    tensor.space()
                )))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn check_reference(&self, index: usize, expected: &HostArray) -> Result<()> {
        let Some((tensor, _)) = self.as_tensor().filter(|(_, access)| access.writes()) else {
            return Err(Error::invalid(format!(
                "reference {index}: argument {index} is no tensor that the kernel writes"
            )));
        };
        if tensor.dtype() == expected.dtype() && tensor.shape() == expected.shape() {
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
    /// An argument on the device.
    fn from(arg: Arg<'a>) -> Self {
        Self { arg, on: On::Device }
    }
}
