//! Converts the device and option descriptions of a backend to owned data.

#![allow(unsafe_code, reason = "reads structures across the ABI")]

use std::collections::HashSet;
use std::fmt::Display;

use crate::abi::{self, Str};
use crate::model::device_info::{Capabilities, Limits, MemorySpace};
use crate::model::options::{OptionScope, OptionSpec};
use crate::plugin::convert::{self, abi_mismatch};
use crate::plugin::negotiate::copy_common_prefix;
use crate::{CodeFormat, DeviceId, DeviceInfo, DeviceKind, OptionValue, Result, end_of};

/// Reads the device list of backend `target`.
///
/// # Errors
/// `AbiMismatch`, naming the field, for an invalid address, string or count, for a device that is listed
/// twice, and for a sub-device that is listed before its whole device.
///
/// # Safety
/// `list` is null or points to `count` pointers to device descriptions that are valid during the call.
pub(crate) unsafe fn devices(
    target: &str,
    list: *const *const abi::DeviceInfo,
    count: usize,
) -> Result<Vec<DeviceInfo>> {
    // SAFETY: guaranteed by the caller.
    let list = unsafe { convert::borrow_slice("the list of devices", list, count, abi::MAX_DEVICES) }?;
    let (mut devices, mut known) = (Vec::new(), HashSet::new());
    for (at, &raw) in list.iter().enumerate() {
        if !convert::is_plausible_pointer(raw) {
            return Err(abi_mismatch(format!("devices[{at}] is {raw:p}, which is not a valid address")));
        }
        // SAFETY: the caller guarantees a description, which begins with its size.
        let stated = unsafe { *raw.cast::<u32>() };
        if stated < end_of!(abi::DeviceInfo, name) {
            return Err(abi_mismatch(format!(
                "devices[{at}].struct_size is {stated}, but the structure has {} bytes; set it to the end of its last field",
                end_of!(abi::DeviceInfo, property_count)
            )));
        }
        // SAFETY: it states its size, and zero is valid for every field.
        let raw = unsafe { copy_common_prefix(raw, stated as usize) };
        check_identity(at, &raw, &mut known)?;
        // SAFETY: the caller guarantees that everything it points to is valid.
        devices.push(unsafe { device(target, at, &raw) }?);
    }
    Ok(devices)
}

/// Checks that a device has its own identity, and that a sub-device follows its whole device.
fn check_identity(at: usize, raw: &abi::DeviceInfo, known: &mut HashSet<(u32, u32)>) -> Result<()> {
    let (index, sub) = (raw.index, raw.sub);
    if sub != abi::WHOLE_DEVICE && !known.contains(&(index, abi::WHOLE_DEVICE)) {
        return Err(abi_mismatch(format!(
            "devices[{at}].sub is {sub}, but whole device {index} is not listed before it; for a whole device, \
             set `sub` to WHOLE_DEVICE (RT_WHOLE_DEVICE)"
        )));
    }
    if !known.insert((index, sub)) {
        let part = if sub == abi::WHOLE_DEVICE { String::new() } else { format!(" and sub {sub}") };
        return Err(abi_mismatch(format!("devices[{at}] has index {index}{part}, like an earlier device")));
    }
    Ok(())
}

unsafe fn device(target: &str, at: usize, raw: &abi::DeviceInfo) -> Result<DeviceInfo> {
    let field = |name: &str| format!("devices[{at}].{name}");
    // SAFETY: guaranteed by the caller.
    let text = |name: &str, text: Str| unsafe { convert::read_str(field(name), text) };
    let known_text =
        |name: &str, raw: Str| Ok::<_, crate::Error>(Some(text(name, raw)?).filter(|text| !text.is_empty()));
    let unavailable_reason = known_text("unavailable_reason", raw.unavailable_reason)?;
    Ok(DeviceInfo {
        id: DeviceId {
            target: target.to_owned(),
            index: raw.index,
            sub: (raw.sub != abi::WHOLE_DEVICE).then_some(raw.sub),
        },
        kind: device_kind(raw.kind).unwrap_or(DeviceKind::Accelerator),
        name: text("name", raw.name)?,
        arch: known_text("arch", raw.arch)?,
        vendor: known_text("vendor", raw.vendor)?,
        driver_version: known_text("driver_version", raw.driver_version)?,
        unavailable_reason: match device_kind(raw.kind) {
            Some(_) => unavailable_reason,
            None => Some(unknown_kind(raw.kind)),
        },
        uuid: Some(raw.uuid).filter(|uuid| *uuid != [0; 16]),
        pci_address: known_text("pci_address", raw.pci_address)?,
        dlpack_type: raw.dlpack_type,
        compute_units: Some(raw.compute_units).filter(|units| *units > 0),
        clock_hz: known(raw.clock_hz),
        capabilities: Capabilities(raw.capabilities),
        limits: limits(raw),
        // SAFETY: guaranteed by the caller.
        spaces: unsafe { spaces(&field("spaces"), raw) }?,
        // SAFETY: guaranteed by the caller.
        formats: unsafe { formats(&field("formats"), raw) }?,
        // SAFETY: the caller guarantees valid properties.
        properties: unsafe {
            convert::read_properties(field("properties"), raw.properties, raw.property_count)
        }?,
        open_options: crate::Options::new(),
    })
}

fn unknown_kind(kind: u32) -> String {
    match kind {
        0 => "`kind` in its description is 0, which is not one of `KIND_*`".to_owned(),
        _ => format!("device kind {kind} is unknown to this program; update the program"),
    }
}

unsafe fn spaces(field: &str, raw: &abi::DeviceInfo) -> Result<Vec<MemorySpace>> {
    // SAFETY: guaranteed by the caller.
    let list = unsafe { convert::borrow_slice(field, raw.spaces, raw.space_count, abi::MAX_SPACES) }?;
    // SAFETY: the caller guarantees readable strings.
    let space = |(at, raw)| unsafe { memory_space(format_args!("{field}[{at}]"), raw) };
    list.iter().enumerate().map(space).collect()
}

unsafe fn formats(field: &str, raw: &abi::DeviceInfo) -> Result<Vec<CodeFormat>> {
    // SAFETY: guaranteed by the caller.
    let list = unsafe { convert::borrow_slice(field, raw.formats, raw.format_count, abi::MAX_FORMATS) }?;
    // SAFETY: the caller guarantees readable strings.
    let name = |(at, &text)| unsafe { convert::read_str(format_args!("{field}[{at}]"), text) };
    list.iter().enumerate().map(|format| name(format).map(CodeFormat::from)).collect()
}

/// A value that is 0 in the ABI if it is unknown.
const fn known(value: u64) -> Option<u64> {
    if value == 0 { None } else { Some(value) }
}

const fn device_kind(kind: u32) -> Option<DeviceKind> {
    match kind {
        abi::KIND_HOST => Some(DeviceKind::Host),
        abi::KIND_ACCELERATOR => Some(DeviceKind::Accelerator),
        abi::KIND_EMBEDDED => Some(DeviceKind::Embedded),
        _ => None,
    }
}

const fn limits(raw: &abi::DeviceInfo) -> Limits {
    Limits {
        groups: raw.max_groups,
        group_size: raw.max_group_size,
        group_items: raw.max_group_items,
        shared_bytes: raw.max_shared_bytes,
        allocation_bytes: known(raw.max_allocation_bytes),
    }
}

unsafe fn memory_space(field: impl Display, raw: &abi::MemorySpace) -> Result<MemorySpace> {
    if !raw.alignment_bytes.is_power_of_two() {
        let alignment = raw.alignment_bytes;
        return Err(abi_mismatch(format!(
            "{field}.alignment_bytes is {alignment}, which is not a power of two"
        )));
    }
    Ok(MemorySpace {
        // SAFETY: guaranteed by the caller.
        name: unsafe { convert::read_str(format_args!("{field}.name"), raw.name) }?,
        total_bytes: known(raw.total_bytes),
        alignment_bytes: raw.alignment_bytes,
        host_visible: raw.flags & abi::SPACE_HOST_VISIBLE != 0,
        kernel_visible: raw.flags & abi::SPACE_KERNEL_VISIBLE != 0,
    })
}

/// Reads a list of options. Options of a kind or scope unknown to this version are skipped: they cannot be
/// set.
///
/// # Errors
/// `AbiMismatch` for a null pointer or an invalid string.
///
/// # Safety
/// `list` is null or points to `count` option descriptions whose strings are readable.
pub(crate) unsafe fn options(list: *const abi::OptionSpec, count: usize) -> Result<Vec<OptionSpec>> {
    // SAFETY: guaranteed by the caller.
    let list = unsafe { convert::borrow_slice("the list of options", list, count, abi::MAX_OPTIONS) }?;
    // SAFETY: the caller guarantees readable strings.
    let read = |(at, raw)| unsafe { option(at, raw) }.transpose();
    list.iter().enumerate().filter_map(read).collect()
}

unsafe fn option(at: usize, raw: &abi::OptionSpec) -> Result<Option<OptionSpec>> {
    let scope = match raw.scope {
        abi::SCOPE_DEVICE => OptionScope::Device,
        abi::SCOPE_DEVICE_CODE => OptionScope::DeviceCode,
        abi::SCOPE_MODULE => OptionScope::Module,
        _ => return Ok(None),
    };
    // SAFETY: guaranteed by the caller.
    let text =
        |name: &str, text: Str| unsafe { convert::read_str(format_args!("options[{at}].{name}"), text) };
    let words = text("default", raw.default)?;
    let default = match raw.kind {
        abi::VALUE_FLAG => OptionValue::Flag(words == "true"),
        abi::VALUE_INTEGER => OptionValue::Integer(words.parse().unwrap_or(0)),
        abi::VALUE_NUMBER => OptionValue::Number(words.parse().unwrap_or(0.0)),
        abi::VALUE_TEXT => OptionValue::Text(words),
        _ => return Ok(None),
    };
    let choices = text("choices", raw.choices)?;
    Ok(Some(OptionSpec {
        key: text("key", raw.key)?,
        scope,
        default,
        choices: choices.split('|').filter(|choice| !choice.is_empty()).map(str::to_owned).collect(),
        doc: text("doc", raw.doc)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn zeroed() -> abi::DeviceInfo {
        // SAFETY: zero is valid for every field, and nothing is read.
        unsafe { copy_common_prefix(std::ptr::null(), 0) }
    }

    #[test]
    fn a_description_is_converted_to_owned_data() {
        let space = abi::MemorySpace {
            name: Str::new("device"),
            total_bytes: 7,
            alignment_bytes: 256,
            flags: abi::SPACE_KERNEL_VISIBLE,
        };
        let format = Str::new("c");
        let raw = abi::DeviceInfo {
            struct_size: crate::end_of!(abi::DeviceInfo, property_count),
            kind: abi::KIND_HOST,
            index: 3,
            sub: 1,
            name: Str::new("CPU"),
            spaces: &raw const space,
            space_count: 1,
            formats: &raw const format,
            format_count: 1,
            ..zeroed()
        };
        let whole = abi::DeviceInfo { sub: abi::WHOLE_DEVICE, ..raw };
        let list = [&raw const whole, &raw const raw];
        // SAFETY: everything is a local of this function.
        let info = unsafe { devices("host", list.as_ptr(), 2) }.unwrap().remove(1);
        assert_eq!(info.id.to_string(), "host:3.1");
        assert_eq!(
            (info.name.as_str(), info.unavailable_reason, info.formats),
            ("CPU", None, vec![CodeFormat::C])
        );
        assert!(info.spaces[0].kernel_visible && !info.spaces[0].host_visible);
    }

    #[test]
    fn missing_fields_of_an_older_description_are_empty() {
        let raw = abi::DeviceInfo {
            struct_size: crate::end_of!(abi::DeviceInfo, name),
            kind: 77,
            sub: abi::WHOLE_DEVICE,
            name: Str::new("future"),
            spaces: std::ptr::dangling(),
            space_count: 1 << 40,
            ..zeroed()
        };
        let list = [&raw const raw];
        // SAFETY: everything within the stated size is valid.
        let info = unsafe { devices("x", list.as_ptr(), 1) }.unwrap().remove(0);
        assert!(info.spaces.is_empty(), "a field beyond the stated size was read");
        assert!(info.unavailable_reason.unwrap().contains("kind 77"));
    }

    #[test]
    fn broken_lists_are_errors() {
        assert_eq!(reason(std::ptr::null(), 1), "the list of devices has 1 elements at a null pointer");
        let list = [std::ptr::null(), std::ptr::without_provenance(8)];
        for (at, address) in ["0x0", "0x8"].into_iter().enumerate() {
            let expected = format!("devices[0] is {address}, which is not a valid address");
            assert_eq!(reason(list[at..].as_ptr(), 1), expected);
        }
        for count in [abi::MAX_DEVICES + 1, 1 << 60, isize::MAX as usize, usize::MAX] {
            let expected = format!("the list of devices has {count} elements; at most 65536 are accepted");
            assert_eq!(reason(list.as_ptr(), count), expected);
        }
    }

    /// The error for a device list.
    fn reason(list: *const *const abi::DeviceInfo, count: usize) -> String {
        // SAFETY: every list here is rejected before invalid memory is read.
        let error = unsafe { devices("x", list, count) }.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AbiMismatch);
        error.message().to_owned()
    }

    /// The error for a device description.
    fn refused(change: impl FnOnce(&mut abi::DeviceInfo)) -> String {
        let whole = abi::DeviceInfo {
            struct_size: end_of!(abi::DeviceInfo, property_count),
            kind: abi::KIND_HOST,
            sub: abi::WHOLE_DEVICE,
            ..zeroed()
        };
        let mut raw = abi::DeviceInfo { index: 1, ..whole };
        change(&mut raw);
        reason([&raw const whole, &raw const raw].as_ptr(), 2)
    }

    #[test]
    fn numbers_that_a_backend_leaves_at_0_are_unknown() {
        let raw = abi::DeviceInfo { kind: abi::KIND_HOST, sub: abi::WHOLE_DEVICE, ..zeroed() };
        // SAFETY: every pointer of the description is null, with a length of 0.
        let info = unsafe { device("x", 0, &raw) }.unwrap();
        assert_eq!((info.compute_units, info.clock_hz, info.limits.allocation_bytes), (None, None, None));
        // SAFETY: as above.
        let info = unsafe { device("x", 0, &abi::DeviceInfo { compute_units: 3, ..raw }) }.unwrap();
        assert_eq!(info.compute_units, Some(3));
    }

    #[test]
    fn errors_name_the_invalid_field() {
        let bad = Str { ptr: b"a\xff".as_ptr(), len: 2 };
        assert_eq!(
            refused(|raw| raw.arch = bad),
            "devices[1].arch is not UTF-8: byte 1 of 2 is invalid: \"a\u{fffd}\""
        );
        let none = Str { ptr: std::ptr::null(), len: 3 };
        assert_eq!(refused(|raw| raw.vendor = none), "devices[1].vendor has 3 elements at a null pointer");
        let long = Str { len: usize::MAX, ..Str::new("x") };
        assert!(
            refused(|raw| raw.name = long)
                .starts_with("devices[1].name has 18446744073709551615 elements; at most")
        );
        for (field, count) in [("spaces", 1 << 59), ("formats", 1 << 60), ("properties", usize::MAX)] {
            let text = refused(|raw| match field {
                "spaces" => (raw.spaces, raw.space_count) = (std::ptr::dangling(), count),
                "formats" => (raw.formats, raw.format_count) = (std::ptr::dangling(), count),
                _ => (raw.properties, raw.property_count) = (std::ptr::dangling(), count),
            });
            assert!(text.starts_with(&format!("devices[1].{field} has {count} elements; at most")), "{text}");
        }
        let size = refused(|raw| raw.struct_size = 0);
        assert!(size.starts_with("devices[1].struct_size is 0, but the structure has 256 bytes"), "{size}");
        let sub = refused(|raw| raw.sub = 0);
        assert!(sub.starts_with("devices[1].sub is 0") && sub.contains("RT_WHOLE_DEVICE"), "{sub}");
        assert_eq!(refused(|raw| raw.index = 0), "devices[1] has index 0, like an earlier device");
    }

    #[test]
    fn errors_name_the_invalid_list_element() {
        let space = |alignment_bytes| abi::MemorySpace {
            name: Str::new("m"),
            total_bytes: 0,
            alignment_bytes,
            flags: 0,
        };
        for alignment in [0, 3, u64::MAX] {
            let spaces = [space(8), space(alignment)];
            let text = refused(|raw| (raw.spaces, raw.space_count) = (spaces.as_ptr(), 2));
            let expected =
                format!("devices[1].spaces[1].alignment_bytes is {alignment}, which is not a power of two");
            assert_eq!(text, expected);
        }
        let formats = [Str::new("c"), Str { ptr: std::ptr::null(), len: 1 }];
        let text = refused(|raw| (raw.formats, raw.format_count) = (formats.as_ptr(), 2));
        assert_eq!(text, "devices[1].formats[1] has 1 elements at a null pointer");
        let property =
            abi::Property { key: Str::new("k"), kind: 9, reserved: 0, value: abi::Value { integer: 0 } };
        let text = refused(|raw| (raw.properties, raw.property_count) = (&raw const property, 1));
        assert_eq!(text, "devices[1].properties[0].kind is 9, which is not one of `VALUE_*`");
    }

    #[test]
    fn options_of_unknown_kind_or_scope_are_skipped() {
        let spec = |kind, scope, default| abi::OptionSpec {
            key: Str::new("k"),
            kind,
            scope,
            choices: Str::new("1|2"),
            default: Str::new(default),
            doc: Str::new("d"),
        };
        let raw = [
            spec(abi::VALUE_INTEGER, abi::SCOPE_DEVICE, "2"),
            spec(abi::VALUE_FLAG, abi::SCOPE_MODULE, "true"),
            spec(99, abi::SCOPE_DEVICE, ""),
            spec(abi::VALUE_TEXT, 99, ""),
        ];
        // SAFETY: static text.
        let specs = unsafe { options(raw.as_ptr(), raw.len()) }.unwrap();
        assert_eq!(specs.len(), 2);
        assert_eq!(
            (specs[0].default.clone(), specs[0].choices.join(",")),
            (OptionValue::Integer(2), "1,2".to_owned())
        );
        assert_eq!(
            (specs[1].default.clone(), specs[1].scope),
            (OptionValue::Flag(true), OptionScope::Module)
        );
    }
}
