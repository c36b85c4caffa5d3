//! The state of a backend.

use super::{Device, Source};
use crate::backend::Log;
use crate::model::compiled::CompiledCode;
use crate::model::options::OptionSpec;
use crate::{DeviceInfo, Error, Options, Result};

/// The state of a backend: one per `Runtime`. Creating it makes no driver call.
///
/// # Safety
/// Core trusts a backend, and safe programs trust core. An implementation guarantees the following for its
/// state and for every object created from it (the implementations of the traits in [`crate::backend`]):
///
/// - A buffer has the requested size, and its addresses stay valid until it is freed.
/// - Borrowed memory ([`HostBytes`](crate::backend::HostBytes), [`HostBytesMut`](crate::backend::HostBytesMut),
///   [`DeviceBytes`](crate::backend::DeviceBytes)) is not accessed after its ticket has ended or its buffer has
///   been freed. [`Queue::poll`](crate::backend::Queue::poll) does not report a ticket as completed while its work
///   may still access memory.
/// - A kernel receives exactly the arguments of its launch, and no submission accesses memory outside the
///   ranges it was given.
/// - Objects may be used from any thread, within the limits that the traits document.
#[allow(unsafe_code, reason = "core trusts a backend's statements about memory")]
pub unsafe trait Backend: Sized + Send + Sync + 'static {
    /// Target name, the first part of a device string.
    const NAME: &'static str;
    /// Version of the backend; by default the version of the `runtime-core` it was built with.
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    /// A device of this backend.
    type Device: Device;

    /// Creates the state. `log` is valid for the life of the process.
    ///
    /// # Errors
    /// Only for failures that make the backend unusable; a missing driver is reported by
    /// [`Backend::devices`].
    ///
    /// # Safety
    /// The caller uses every object created from the backend as core does: valid arguments, ranges inside
    /// their buffers, ascending tickets, and nothing freed while in use. The methods rely on this without
    /// checking.
    unsafe fn open(log: Log) -> Result<Self>;

    /// Describes the options that devices and modules accept. Core validates options against this list.
    fn options() -> Vec<OptionSpec> {
        Vec::new()
    }

    /// Lists all devices, including unusable ones, with stable indices.
    ///
    /// # Errors
    /// `Unavailable`, with the reason, if there is no driver.
    fn devices(&self) -> Result<Vec<DeviceInfo>>;

    /// Opens a device, or one of its sub-devices.
    ///
    /// # Errors
    /// Any kind. A failure leaks nothing.
    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<Self::Device>;

    /// Describes the device that code for `architecture` is compiled for: its formats, capabilities and limits, as far as
    /// they follow from the architecture. Makes no driver call.
    ///
    /// # Errors
    /// `Unsupported` by default; `NotFound`, with the architectures, for an unknown one.
    fn architecture(&self, _architecture: &str) -> Result<DeviceInfo> {
        Err(Error::unsupported("compiling without a device is not supported"))
    }

    /// As [`Device::compile`], for an architecture, without a device.
    ///
    /// # Errors
    /// `Unsupported` by default; `Unavailable` without the compiler; `CompileFailed` with the complete log.
    fn compile_for(&self, _architecture: &str, _source: &Source<'_>) -> Result<CompiledCode> {
        Err(Error::unsupported("compiling without a device is not supported"))
    }

    /// Reports what the backend finds on this machine, which users send to its authors when something fails: texts by title.
    /// Calls no driver, because that may crash, and is bounded in size and time. `runtime doctor NAME` removes the names of users
    /// and machines from the texts.
    ///
    /// # Errors
    /// `Unsupported` by default.
    fn diagnose(&self) -> Result<Options> {
        Err(Error::unsupported("this backend has no diagnosis of its own"))
    }

    /// Lists the environment variables that a process needs from its start to open `device`, the part of a device string behind
    /// the target, with `options`; for drivers that read them once per process. There are none by default, and should be none if
    /// the process can open the device as it is, or if no variable would help. Calls no driver.
    ///
    /// # Errors
    /// Any kind.
    fn process_variables(&self, _device: &str, _options: &Options) -> Result<Options> {
        Ok(Options::new())
    }
}
