//! The option for thread coarsening, and the size of a launch from which it pays.

use runtime_core::lowering::Coarsening;
use runtime_core::{DeviceInfo, Options, Result};

use super::Writer;
use crate::interface::Interface;
use crate::program::{Dialect, Program};

/// The option for the number of items.
pub(super) const OPTION: &str = "items_per_thread";
pub(super) const CHOICES: [&str; 5] = ["auto", "1", "2", "4", "8"];

/// Items that a compute unit of a large GPU holds at once (CUDA C++ Programming Guide, "Technical Specifications per Compute
/// Capability").
const UNIT_ITEMS: u64 = 2048;
/// Compute units of a device that does not report them.
const UNITS: u32 = 128;
/// Groups along x that a coarsened launch must have, per item, so that the last ones of each row, which have less work, matter
/// little.
const ROW_GROUPS: u32 = 8;
/// How often a coarsened launch must fill the device, so that it is as evenly loaded as without: `vector_add` of 2²⁰ elements
/// takes as long either way on an H200, and 0.7 of the time coarsened from 2²¹ on.
const WAVES: u64 = 1;

/// The program, coarsened as the options and the device ask for.
///
/// # Errors
/// Those of [`Program::coarsened`].
pub(super) fn applied(
    program: Program,
    options: &Options,
    device: &DeviceInfo,
    writer: Writer,
) -> Result<Program> {
    // Processors vectorise a work-group as it is.
    let is_gpu = match writer {
        Writer::C(Dialect::Host) => return Ok(program),
        Writer::C(Dialect::Cuda) => true,
        Writer::C(Dialect::OpenCl) | Writer::Spirv => device.is_gpu(),
    };
    match chosen(options) {
        Some(items) => program.coarsened(Some(items)),
        None if is_gpu => program.coarsened(None),
        None => Ok(program),
    }
}

/// How an entry point is launched; `None` if it is not coarsened.
pub(super) fn of(interface: &Interface, options: &Options, device: &DeviceInfo) -> Option<Coarsening> {
    let factor = interface.items_per_thread;
    let units = u64::from(device.compute_units.unwrap_or(UNITS));
    let group_items: u64 = interface.group_size.iter().map(|&extent| u64::from(extent)).product();
    let (min_groups, min_groups_x) = match chosen(options) {
        Some(_) => (0, 0),
        None => (u64::from(factor) * WAVES * units * UNIT_ITEMS / group_items.max(1), ROW_GROUPS * factor),
    };
    (factor > 1).then_some(Coarsening { factor, min_groups, min_groups_x })
}

/// The number of items that the options ask for; `None` leaves it to the device and the kernel.
fn chosen(options: &Options) -> Option<u32> {
    options.value(OPTION)?.to_string().parse().ok()
}
