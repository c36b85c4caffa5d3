//! The option for running work-groups in loops, and the groups for which it is necessary.

use runtime_core::backend::OptionSpec;
use runtime_core::{DeviceInfo, Options};

use super::Writer;
use super::device_limits::{MAX_PRIVATE_BYTES, fits_group, usable_stack};
use crate::group_loops::GroupLoops;
use crate::program::{Dialect, Program};

/// The option for the number of work-items.
const OPTION: &str = "work_items";

pub(super) fn option() -> OptionSpec {
    OptionSpec::module(
        OPTION,
        "auto",
        "Work-items that run the items of a work-group in loops, on OpenCL devices: auto is as many as the device allows, or 1 on \
         processors, and only for modules with groups larger than the device's; a number holds for all groups.",
    )
    .choices(&["auto", "1", "2", "4", "8", "16"])
}

/// The loops over the items of a program's groups, if the options or the device's limits ask for them.
pub(super) fn of(
    program: &Program,
    options: &Options,
    device: &DeviceInfo,
    writer: Writer,
) -> Option<GroupLoops> {
    if writer != Writer::C(Dialect::OpenCl) {
        return None;
    }
    let asked = options.value(OPTION).and_then(|value| value.to_string().parse::<u32>().ok());
    let is_processor = device.properties.text("type") == Some("cpu");
    let most = match asked {
        Some(most) => most,
        None if program.interfaces().iter().all(|interface| fits_group(interface, device)) => return None,
        None if is_processor => 1,
        None => device.limits.group_items,
    };
    // Processors keep the private memory of all work-items of a group on the stack of a thread.
    let private_bytes = usable_stack(device).unwrap_or(MAX_PRIVATE_BYTES).min(MAX_PRIVATE_BYTES);
    Some(GroupLoops::new(program.interfaces(), most, &device.limits, private_bytes))
}
