//! What a device lacks for a program: features, and room for its work-groups and their memory.

use runtime_core::{DeviceInfo, Error, ErrorKind, OptionValue, Result, abi};

use super::Writer;
use crate::analysis::features::Feature;
use crate::analysis::private_memory;
use crate::interface::Interface;
use crate::program::{Dialect, Program};

/// Fails on what the device does not support, before its compiler does so with a worse message.
pub(super) fn check_device(program: &Program, device: &DeviceInfo, writer: Writer) -> Result<()> {
    let has = |bits| device.capabilities.has(bits);
    for (feature, has) in [(Feature::F16, has(abi::CAP_F16)), (Feature::F64, has(abi::CAP_F64))] {
        if program.features().contains(&feature) && !has {
            let message = format!("the kernel uses {feature}, which {} does not support", device.name);
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    }
    for (index, interface) in program.interfaces().iter().enumerate() {
        check_group(interface, device, writer)?;
        // The writer of host C knows exactly what it puts on the stack.
        if writer != Writer::C(Dialect::Host) {
            check_private_memory(private_memory::of_entry(program, index), interface, device)?;
        }
    }
    Ok(())
}

/// Maximum private memory of an invocation: what NVIDIA's devices have, and more than compilers cope with elsewhere.
const MAX_PRIVATE_BYTES: u64 = 512 << 10;

/// Processors keep the private memory of a whole work-group on the stack of a thread, where too much of it is a crash.
fn check_private_memory(bytes: u64, interface: &Interface, device: &DeviceInfo) -> Result<()> {
    let items: u64 = interface.group_size.iter().map(|&size| u64::from(size)).product();
    let stack = match device.properties.value("thread_stack_bytes") {
        Some(OptionValue::Integer(bytes)) => u64::try_from(*bytes).ok(),
        _ => None,
    };
    // Half of it, to allow for the compiler's own use.
    let limit = stack.map_or(MAX_PRIVATE_BYTES, |stack| (stack / 2 / items.max(1)).min(MAX_PRIVATE_BYTES));
    if bytes <= limit {
        return Ok(());
    }
    let message = format!(
        "entry point \"{}\" needs {bytes} bytes of private memory per invocation, but with work-groups of {items} {} has \
         {limit}; use smaller arrays{}",
        interface.name,
        device.name,
        if stack.is_some() { " or a smaller work-group" } else { "" }
    );
    Err(Error::new(ErrorKind::OutOfResources, message))
}

/// What CUDA C may declare, however much the device has (CUDA C++ Programming Guide, "Compute Capabilities").
const CUDA_SHARED_BYTES: u64 = 48 << 10;

fn check_group(interface: &Interface, device: &DeviceInfo, writer: Writer) -> Result<()> {
    let (limits, size, name) = (&device.limits, interface.group_size, &interface.name);
    let too_large = |kind, what: &str, limit: String, given: String| {
        let message =
            format!("entry point \"{name}\" has {what} {given}, but the limit of {} is {limit}", device.name);
        Err(Error::new(kind, message))
    };
    // No kernel can have such groups; this one needs too much memory.
    let (invalid, resources) = (ErrorKind::InvalidArgument, ErrorKind::OutOfResources);
    if size.iter().zip(&limits.group_size).any(|(size, limit)| size > limit) {
        let limit = format!("{:?}", limits.group_size);
        return too_large(invalid, "work-groups of", limit, format!("{size:?}"));
    }
    let items: u64 = size.iter().map(|&size| u64::from(size)).product();
    if items > limits.group_items.into() {
        let limit = format!("{} items", limits.group_items);
        return too_large(invalid, "work-groups of", limit, format!("{items} items"));
    }
    let shared_bytes = match writer {
        Writer::C(Dialect::Cuda) => limits.shared_bytes.min(CUDA_SHARED_BYTES),
        _ => limits.shared_bytes,
    };
    if u64::from(interface.shared_bytes) > shared_bytes {
        let given = format!("{} bytes", interface.shared_bytes);
        return too_large(resources, "workgroup memory of", format!("{shared_bytes} bytes"), given);
    }
    Ok(())
}
