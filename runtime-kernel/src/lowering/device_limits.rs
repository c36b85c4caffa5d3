//! What a device lacks for a program: features, and room for its work-groups and their memory.

use runtime_core::{DeviceInfo, Error, ErrorKind, Result, abi};

use super::Writer;
use super::matrix_units;
use super::subgroups::device_size;
use crate::analysis::private_memory;
use crate::check::cooperative::check_full_subgroups;
use crate::interface::Interface;
use crate::program::{Dialect, Feature, Program};

/// Fails on what the device does not support, before its compiler does so with a worse message.
pub(super) fn check_device(program: &Program, device: &DeviceInfo, writer: Writer) -> Result<()> {
    for &feature in program.features() {
        let is_there = match feature {
            Feature::F16 => device.capabilities.has(abi::CAP_F16),
            Feature::F64 => device.capabilities.has(abi::CAP_F64),
            Feature::MatrixUnits => matrix_units::are_in(device, program, writer),
            _ => true,
        };
        if !is_there {
            let remedy = match feature {
                Feature::MatrixUnits => format!("; the load option `{}` emulates them", matrix_units::OPTION),
                _ => String::new(),
            };
            let message =
                format!("the kernel uses {feature}, which {} does not support{remedy}", device.name);
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    }
    if program.features().contains(&Feature::MatrixUnits) {
        let size = device_size(device).and_then(|size| u32::try_from(size).ok()).unwrap_or(32);
        check_full_subgroups(program, size, &format!("the subgroups of {}", device.name))?;
    }
    for (index, interface) in program.interfaces().iter().enumerate() {
        let has_loops = program.group_loops.is_some();
        if !has_loops {
            check_group(interface, device)?;
        }
        check_shared_bytes(interface, device, writer)?;
        // The writers of loops know exactly what they put on the stack.
        if writer != Writer::C(Dialect::Host) && !has_loops {
            check_private_memory(private_memory::of_entry(program, index), interface, device)?;
        }
    }
    Ok(())
}

/// Maximum private memory of an invocation: what NVIDIA's devices have, and more than compilers cope with elsewhere.
pub(super) const MAX_PRIVATE_BYTES: u64 = 512 << 10;

/// The stack of a thread that work-groups may use: half of it, to allow for the compiler's own use.
pub(super) fn usable_stack(device: &DeviceInfo) -> Option<u64> {
    let bytes = device.properties.integer("thread_stack_bytes")?;
    u64::try_from(bytes).ok().map(|bytes| bytes / 2)
}

/// Processors keep the private memory of a whole work-group on the stack of a thread, where too much of it is a crash.
fn check_private_memory(bytes: u64, interface: &Interface, device: &DeviceInfo) -> Result<()> {
    let items: u64 = interface.group_size.iter().map(|&size| u64::from(size)).product();
    let stack = usable_stack(device);
    let limit = stack.map_or(MAX_PRIVATE_BYTES, |stack| (stack / items.max(1)).min(MAX_PRIVATE_BYTES));
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

/// Whether the device has groups as large as an entry point's.
pub(super) fn fits_group(interface: &Interface, device: &DeviceInfo) -> bool {
    check_group(interface, device).is_ok()
}

/// No kernel can have groups beyond the limits.
fn check_group(interface: &Interface, device: &DeviceInfo) -> Result<()> {
    let (limits, size) = (&device.limits, interface.group_size);
    let too_large = |limit: String, given: String| {
        Err(beyond((interface, device), ErrorKind::InvalidArgument, "work-groups of", &limit, &given))
    };
    if size.iter().zip(&limits.group_size).any(|(size, limit)| size > limit) {
        return too_large(format!("{:?}", limits.group_size), format!("{size:?}"));
    }
    let items: u64 = size.iter().map(|&size| u64::from(size)).product();
    if items > limits.group_items.into() {
        return too_large(format!("{} items", limits.group_items), format!("{items} items"));
    }
    Ok(())
}

fn check_shared_bytes(interface: &Interface, device: &DeviceInfo, writer: Writer) -> Result<()> {
    let limit = match writer {
        Writer::C(Dialect::Cuda) => device.limits.shared_bytes.min(CUDA_SHARED_BYTES),
        _ => device.limits.shared_bytes,
    };
    if u64::from(interface.shared_bytes) <= limit {
        return Ok(());
    }
    let (limit, given) = (format!("{limit} bytes"), format!("{} bytes", interface.shared_bytes));
    Err(beyond((interface, device), ErrorKind::OutOfResources, "workgroup memory of", &limit, &given))
}

fn beyond(
    (interface, device): (&Interface, &DeviceInfo),
    kind: ErrorKind,
    what: &str,
    limit: &str,
    given: &str,
) -> Error {
    let (name, device) = (&interface.name, &device.name);
    Error::new(
        kind,
        format!("entry point \"{name}\" has {what} {given}, but the limit of {device} is {limit}"),
    )
}
