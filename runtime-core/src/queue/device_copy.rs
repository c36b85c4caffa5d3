//! Blocking copies into a new tensor on another device or in another memory space, by the devices themselves where
//! possible.

use std::sync::Arc;

use crate::model::placement::Placement;
use crate::timeline::open_device::OpenDevice;
use crate::{DeviceKind, ErrorKind, Queue, Result, Tensor};

/// Copies `source` into `destination`, a new contiguous tensor of the same type and shape, and waits. The bytes pass
/// through other host memory only if no device can copy them.
///
/// # Errors
/// The failure of the copy, or of work that writes `source`; `OutOfMemory`.
pub(crate) fn copy_blocking(destination: &Tensor, source: &Tensor) -> Result<()> {
    destination.buffer("copy")?;
    if copy_by_device(destination, source)? {
        return Ok(());
    }
    if destination.is_host_visible() {
        return source.read_bytes(&mut destination.map_mut()?);
    }
    destination.write_array(&source.to_array()?)
}

/// Returns whether a device can copy.
fn copy_by_device(destination: &Tensor, source: &Tensor) -> Result<bool> {
    let Some(device) = copying_device(destination, source) else { return Ok(false) };
    if source.is_contiguous() || Arc::ptr_eq(device, source.device()) {
        return copy_on(device, destination, source);
    }
    // No device copies the rows of another one.
    match gathered(source)? {
        Some(dense) => copy_on(device, destination, &dense),
        None => Ok(false),
    }
}

/// The device that may be able to copy. The program itself copies into memory of the host.
fn copying_device<'a>(destination: &'a Tensor, source: &Tensor) -> Option<&'a Arc<OpenDevice>> {
    let (to, from) = (destination.device(), source.device());
    let is_host = |device: &OpenDevice| device.info.kind == DeviceKind::Host;
    let one_runtime = Arc::ptr_eq(&to.queues, &from.queues);
    let can_read_host = is_host(from) && source.is_contiguous() && !destination.is_host_visible();
    let can_copy = Arc::ptr_eq(&to.instance, &from.instance) || can_read_host;
    (one_runtime && can_copy && !is_host(to) && !source.is_empty()).then_some(to)
}

/// A contiguous copy on the same device; `None` if the device cannot make one, or has no memory for it.
fn gathered(source: &Tensor) -> Result<Option<Tensor>> {
    let (device, placement) = (source.device(), Placement::space(source.space()));
    let dense = match Tensor::allocate(device, source.dtype(), source.shape(), &placement) {
        Ok(dense) => dense,
        Err(error) if matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::InvalidArgument) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    Ok(copy_on(device, &dense, source)?.then_some(dense))
}

/// Copies on a transfer queue of `device` and waits; returns whether the device can.
fn copy_on(device: &Arc<OpenDevice>, destination: &Tensor, source: &Tensor) -> Result<bool> {
    let queue = Queue::lend(device)?;
    let Some(event) = queue.copy_unstaged(destination, source)? else { return Ok(false) };
    event.wait()?;
    for tensor in [destination, source] {
        // Otherwise every later launch would look up this queue.
        tensor.buffer("copy")?.hazards.lock().forget(queue.timeline.id);
    }
    Ok(true)
}
