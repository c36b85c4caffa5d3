//! Arguments of an evaluation, and where their data are when timing starts.

use super::Clock;
use crate::code::arg::ArgValue;
use crate::{Access, Arg, DeviceInfo, DeviceKind, Error, HostArray, Result, Tensor};

/// Where the data of a tensor argument are when timing starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataLocation {
    /// On the device, uploaded in advance, like a model's weights: no transfer is timed.
    #[default]
    Device,
    /// In host memory. Each call uploads what the kernel reads and downloads what it writes, inside the timed
    /// window; the transfers are also reported separately. A host device accesses host memory directly, so
    /// there this is the same as `Device`.
    Host,
    /// In host memory that the device accesses directly (memory space `pinned`): the kernel time includes the
    /// cost.
    Pinned,
    /// In memory that migrates on demand (memory space `shared`): the kernel time includes the cost.
    Shared,
}

/// What a tensor that a kernel both reads and writes holds before each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EachCall {
    /// What the call before has left, as with kernels that accumulate.
    #[default]
    Keep,
    /// Its contents at the start of the evaluation, for kernels that need zeroed counters. They are written again outside the timed part,
    /// so each call is a window of its own, and a sample is the sum of such windows.
    Initial,
}

/// An argument of an evaluation: a launch argument, and where its data are when timing starts.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationArg<'a> {
    /// The launch argument. For a tensor on the host, pass its copy on the device; each call uploads the
    /// contents that this copy has at the start.
    pub arg: Arg<'a>,
    /// Where the data are; only tensors can be anywhere but on the device.
    pub on: DataLocation,
    /// What it holds before each call; only tensors that are read and written have a choice.
    pub each_call: EachCall,
}

impl<'a> EvaluationArg<'a> {
    /// A tensor that the kernel accesses by `access` and that is located at `on` when timing starts.
    #[must_use]
    pub const fn tensor(tensor: &'a Tensor, access: Access, on: DataLocation) -> Self {
        Self { arg: Arg::tensor(tensor, access), on, each_call: EachCall::Keep }
    }

    /// Declares that the kernel uses the strides of this tensor, like [`Arg::strided`].
    #[must_use]
    pub const fn strided(self) -> Self {
        Self { arg: self.arg.strided(), ..self }
    }

    /// What this tensor holds before each call.
    #[must_use]
    pub const fn each_call(self, each_call: EachCall) -> Self {
        Self { each_call, ..self }
    }

    /// The tensor and its access, if the argument is one.
    pub(crate) const fn as_tensor(&self) -> Option<(&'a Tensor, Access)> {
        match self.arg.value {
            ArgValue::Tensor(tensor, access, _) => Some((tensor, access)),
            _ => None,
        }
    }

    /// The tensor and its access, if each call transfers it from or to host memory.
    pub(crate) fn host_tensor(&self, info: &DeviceInfo) -> Option<(&'a Tensor, Access)> {
        self.as_tensor().filter(|_| self.on == DataLocation::Host && info.kind != DeviceKind::Host)
    }

    pub(crate) fn check(&self, index: usize, info: &DeviceInfo, clock: Clock) -> Result<()> {
        if self.host_tensor(info).is_some() && !matches!(clock, Clock::DeviceBatch | Clock::HostWall) {
            return Err(Error::invalid(format!(
                "argument {index} is on the host, so each call includes a transfer, which clock {clock} cannot time; use device_batch or host_wall, or place it on the device"
            )));
        }
        if self.each_call == EachCall::Initial
            && !self.as_tensor().is_some_and(|(_, access)| access == Access::ReadWrite)
        {
            return Err(Error::invalid(format!(
                "argument {index} is to hold its initial contents before each call, but is no tensor that is read and written: leave \
                 each_call at Keep"
            )));
        }
        let space = match self.on {
            DataLocation::Pinned => "pinned",
            DataLocation::Shared => "shared",
            DataLocation::Device | DataLocation::Host => return Ok(()),
        };
        match self.as_tensor() {
            Some((tensor, _)) if info.kind != DeviceKind::Host && tensor.space() != space => {
                Err(Error::invalid(format!(
                    "argument {index} is declared {space}, but is in memory space {}; allocate it with \
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
                "reference {index}: argument {index} is not a tensor that the kernel writes"
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
        Self { arg, on: DataLocation::Device, each_call: EachCall::Keep }
    }
}
