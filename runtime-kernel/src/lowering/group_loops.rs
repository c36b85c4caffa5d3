//! The option for running work-groups in loops, and the groups for which it is necessary.

use runtime_core::{DeviceInfo, OptionSpec, OptionValue, Options};

use super::Writer;
use super::device_limits::{MAX_PRIVATE_BYTES, fits_group};
use crate::group_loops::GroupLoops;
use crate::program::{Dialect, Program};

/// The option for the number of work-items.
const OPTION: &str = "work_items";

/// Half of a thread's stack, to allow for the compiler's own use.
const STACK_PART: u64 = 2;

pub(super) fn option() -> OptionSpec {
    OptionSpec::module(
        OPTION,
        "auto",
        "Work-items that run the items of a work-group in loops, on OpenCL devices: auto is as many as the device allows, or 1 on \
         processors, and only for modules with groups larger than the device's; a number holds for all groups.",
    )
    .choices(&["auto", "1", "2", "4", "8", "16"])
}

/// The program, with loops over the items of its groups if the options or the device's limits ask for them.
pub(super) fn applied(program: Program, options: &Options, device: &DeviceInfo, writer: Writer) -> Program {
    if writer != Writer::C(Dialect::OpenCl) {
        return program;
    }
    let asked = options.value(OPTION).and_then(|value| value.to_string().parse::<u32>().ok());
    let is_processor = device.properties.text("type") == Some("cpu");
    let most = match asked {
        Some(most) => most,
        None if program.interfaces().iter().all(|interface| fits_group(interface, device)) => return program,
        None if is_processor => 1,
        None => device.limits.group_items,
    };
    let loops = GroupLoops::new(program.interfaces(), most, &device.limits, private_bytes(device));
    program.with_group_loops(loops)
}

/// The private memory of all work-items of a group: processors keep it on the stack of a thread.
fn private_bytes(device: &DeviceInfo) -> u64 {
    let stack = match device.properties.value("thread_stack_bytes") {
        Some(OptionValue::Integer(bytes)) => u64::try_from(*bytes).ok(),
        _ => None,
    };
    stack.map_or(MAX_PRIVATE_BYTES, |stack| (stack / STACK_PART).min(MAX_PRIVATE_BYTES))
}
