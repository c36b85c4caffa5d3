//! Where a tensor lies, for work that the runtime does not submit.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use crate::model::native::{NativeHandles, NativeTensor};
use crate::plugin::native;
use crate::{ErrorKind, Result, Tensor};

impl Tensor {
    /// Where the tensor lies: its address on the device, or the objects of the driver that hold it. They are valid as long as the
    /// tensor lives; [`Queue::native`](crate::Queue) orders work on it.
    ///
    /// # Errors
    /// `Unsupported` on an embedded device, and for memory that only the runtime can use.
    pub fn native(&self) -> Result<NativeTensor> {
        self.locate().map_err(|error| error.in_operation("native"))
    }

    fn locate(&self) -> Result<NativeTensor> {
        let buffer = self.buffer("native")?;
        let (mut offset, first) = (0, self.byte_offset() as u64);
        let asked = native::ask(|handles, capacity, count| {
            // SAFETY: the device is open, with room for so many handles.
            buffer.device.call("native", |calls, device| unsafe {
                (calls.native.buffer)(device, buffer.handle, handles, capacity, count, &raw mut offset)
            })
        });
        let address = Some(buffer.kernel_address).filter(|address| *address != 0);
        let handles = match asked {
            // An address says enough.
            Err(error) if error.kind() == ErrorKind::Unsupported && address.is_some() => {
                NativeHandles::default()
            }
            asked => asked?,
        };
        let address = address.map(|address| address + first);
        let host = buffer.host_pointer;
        let host_address = (!host.is_null()).then(|| host.expose_provenance() as u64 + first);
        Ok(NativeTensor { address, host_address, handles, byte_offset: offset + first })
    }
}
