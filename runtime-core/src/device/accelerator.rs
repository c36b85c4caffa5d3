//! Accelerators: devices with memory of their own, explicit transfers, queues and peers.

use std::ops::Deref;
use std::sync::Arc;

use crate::Result;
use crate::device::common_runtime::{CommonRuntime, sealed::Opened, sealed::Shared};
use crate::timeline::open_device::OpenDevice;

/// A device with memory of its own, which is filled by explicit transfers.
///
/// Everything except peer access is in [`CommonRuntime`].
///
/// ```
/// # use runtime_core::{Placement, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// let (first, second) = (runtime.open("null:0")?, runtime.open("null:1")?);
/// if let (Some(one), Some(other)) = (first.as_accelerator(), second.as_accelerator()) {
///     assert!(one.can_access(other)?);
/// }
/// let x = first.tensor([2], &[1.0f32, 2.0])?;
/// let copy = x.to_device(&*second, &Placement::default())?; // directly, as both are of one backend
/// assert_eq!((copy.device_id().index, copy.to_vec::<f32>()?), (1, vec![1.0, 2.0]));
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
pub struct AcceleratorDevice(pub(crate) Arc<OpenDevice>);

impl Opened for AcceleratorDevice {
    fn opened(&self) -> Shared<'_> {
        Shared(&self.0)
    }
}

/// The methods of every opened device, without an import of the trait.
impl Deref for AcceleratorDevice {
    type Target = dyn CommonRuntime;

    fn deref(&self) -> &Self::Target {
        self
    }
}

impl CommonRuntime for AcceleratorDevice {
    fn as_accelerator(&self) -> Option<&AcceleratorDevice> {
        Some(self)
    }
}

impl AcceleratorDevice {
    /// Whether this device reaches the memory of `peer`, an opened device of the same backend, so that copies between them do not pass
    /// through the host. Kernels take tensors of their own device only.
    ///
    /// # Errors
    /// Any error of the driver.
    #[allow(unsafe_code, reason = "calls a function of a backend's table")]
    pub fn can_access(&self, peer: &Self) -> Result<bool> {
        if !Arc::ptr_eq(&self.0.instance, &peer.0.instance) {
            return Ok(false);
        }
        let mut answer = 0;
        // SAFETY: both devices are open and the out-parameter lives during the call.
        self.0.call("peer_access", |calls, device| unsafe {
            (calls.device.peer_access)(device, peer.0.handle, &raw mut answer)
        })?;
        Ok(answer == 1)
    }
}
