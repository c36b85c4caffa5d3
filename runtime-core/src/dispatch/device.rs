//! Compute follows data: the device of a dispatch is that of its tensors.

use std::sync::Arc;

use crate::code::arg::ArgValue;
use crate::timeline::open_device::OpenDevice;
use crate::{Arg, Error, Queue, Result};

/// The device that holds all tensors, which is that of the queue if one is named.
///
/// # Errors
/// `InvalidArgument` for tensors on several devices, naming both; without a tensor and a queue.
#[inline]
pub(super) fn of_arguments<'a>(
    kernel: &str,
    queue: Option<&'a Queue>,
    args: &[Arg<'a>],
) -> Result<&'a Arc<OpenDevice>> {
    let mut first: Option<(usize, &Arc<OpenDevice>)> = None;
    for (index, arg) in args.iter().enumerate() {
        let ArgValue::Tensor(tensor, ..) = arg.value else { continue };
        let device = tensor.device();
        match (queue, first) {
            (Some(queue), _) if !Arc::ptr_eq(&queue.device, device) => {
                return Err(conflict(kernel, (index, device), "the queue", &queue.device));
            }
            (None, Some((earlier, other))) if !Arc::ptr_eq(other, device) => {
                return Err(conflict(kernel, (index, device), &format!("argument {earlier}"), other));
            }
            (_, None) => first = Some((index, device)),
            _ => {}
        }
    }
    match (queue, first) {
        (Some(queue), _) => Ok(&queue.device),
        (None, Some((_, device))) => Ok(device),
        (None, None) => Err(Error::invalid(format!(
            "no argument of \"{kernel}\" is a tensor, so the device is unknown; name a queue with `Dispatcher::on`"
        ))),
    }
}

#[cold]
fn conflict(kernel: &str, (index, device): (usize, &OpenDevice), what: &str, other: &OpenDevice) -> Error {
    let place = if device.name == other.name { "another instance of that device" } else { &device.name };
    let other = &other.name;
    Error::invalid(format!(
        "argument {index} of \"{kernel}\" is on {place}, but {what} is on {other}; copy it there with `Tensor::to_device`"
    ))
}
