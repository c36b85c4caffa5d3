//! Subgroups: emulated where a device has none, and of the size that a kernel requires.

use runtime_core::backend::OptionSpec;
use runtime_core::{DeviceInfo, Error, ErrorKind, Options, Result};

use super::Writer;
use super::matrix_units;
use crate::program::{Dialect, Feature, Program};

/// The option for the number of items.
const SIZE: &str = "subgroup_size";

pub(super) fn option() -> OptionSpec {
    OptionSpec::module(
        SIZE,
        0,
        "Items of a subgroup that the kernel requires: loading fails on a device with subgroups of another size. A device without subgroups \
         emulates them with this number, a power of two from 4 to 128, or from 16 to 64 with matrices.",
    )
}

/// The program as the device runs it.
///
/// # Errors
/// `Unsupported` if the device has subgroups of another size than required, or runs an operation only where all items of a
/// work-group reach it; `InvalidArgument` for a size that no device has.
pub(super) fn applied(
    program: Program,
    options: &Options,
    device: &DeviceInfo,
    writer: Writer,
) -> Result<Program> {
    let required = match options.integer_within(SIZE, 0, 0..=128)? {
        0 => None,
        size => u32::try_from(size).ok(),
    };
    if !program.features().contains(&Feature::Subgroups) {
        return Ok(program);
    }
    let is_emulated = match program.features().contains(&Feature::MatrixUnits) {
        false => !has_subgroups(device, writer),
        // Otherwise, `device_limits` rejects the kernel where units are missing.
        true if options.flag(matrix_units::OPTION) => !matrix_units::are_in(device, &program, writer),
        true => writer == Writer::C(Dialect::Host),
    };
    if is_emulated {
        return program.with_emulated_subgroups(required);
    }
    match required.map(|size| (size, device_size(device))) {
        Some((size, known)) if known != Some(size.into()) => {
            let known = known.map_or("an unknown number of".to_owned(), |known| known.to_string());
            let message = format!(
                "the kernel requires subgroups of {size} items, but those of {} have {known}",
                device.name
            );
            Err(Error::new(ErrorKind::Unsupported, message))
        }
        _ => Ok(program),
    }
}

/// OpenCL lists its extensions; a device without a list is assumed to have all.
fn has_subgroups(device: &DeviceInfo, writer: Writer) -> bool {
    match writer {
        Writer::C(Dialect::Host) => false,
        Writer::C(Dialect::OpenCl) => {
            device.properties.text("extensions").is_none_or(|words| words.contains("_subgroups"))
        }
        _ => true,
    }
}

/// The items of a subgroup of a device, if it states them.
pub(super) fn device_size(device: &DeviceInfo) -> Option<i64> {
    ["sub_group_size", "warp_size"].into_iter().find_map(|key| device.properties.integer(key))
}
