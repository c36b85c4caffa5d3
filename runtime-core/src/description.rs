//! Descriptions that a backend gives through its table, as owned data.

#![allow(unsafe_code, reason = "reads structures across the seam")]

use crate::abi::{self, Str};
use crate::negotiate::copy_known;
use crate::{
    Capabilities, DeviceId, DeviceInfo, DeviceKind, Error, ErrorKind, Limits, MemorySpace, OptionScope,
    OptionSpec, Result, Value,
};

/// Reads a list of devices of backend `target`.
///
/// # Errors
/// `AbiMismatch` for a null pointer, broken text or an unknown value kind.
///
/// # Safety
/// `list` is null or points to `count` pointers to device descriptions that are valid during the call.
pub(crate) unsafe fn devices(
    target: &str,
    list: *const *const abi::DeviceInfo,
    count: usize,
) -> Result<Vec<DeviceInfo>> {
    // SAFETY: the caller's promise.
    let list = unsafe { abi::borrow_slice(list, count) }?;
    let read = |&raw: &*const abi::DeviceInfo| {
        if raw.is_null() || !raw.is_aligned() {
            return Err(Error::new(ErrorKind::AbiMismatch, "device description at a bad address"));
        }
        // SAFETY: the caller promises a description, which begins with its size.
        let stated = unsafe { *raw.cast::<u32>() };
        // SAFETY: it states its size, and zero is valid in every field.
        let raw = unsafe { copy_known(raw, stated as usize) };
        // SAFETY: the caller promises that everything it points to is valid.
        unsafe { device(target, &raw) }
    };
    list.iter().map(read).collect()
}

unsafe fn device(target: &str, raw: &abi::DeviceInfo) -> Result<DeviceInfo> {
    // SAFETY: the caller's promise.
    let text = |text: Str| unsafe { abi::read_str(text) };
    // SAFETY: the caller's promise.
    let spaces = unsafe { abi::borrow_slice(raw.spaces, raw.space_count) }?;
    // SAFETY: the caller's promise.
    let formats = unsafe { abi::borrow_slice(raw.formats, raw.format_count) }?;
    let kind = device_kind(raw.kind);
    let unusable = text(raw.unusable)?;
    Ok(DeviceInfo {
        id: DeviceId {
            target: target.to_owned(),
            index: raw.index,
            sub: (raw.sub != abi::WHOLE_DEVICE).then_some(raw.sub),
        },
        kind: kind.unwrap_or(DeviceKind::Accelerator),
        name: text(raw.name)?,
        arch: text(raw.arch)?,
        vendor: text(raw.vendor)?,
        driver_version: text(raw.driver_version)?,
        unusable: match kind {
            None => {
                Some(format!("kind {} of device is unknown to this program; update the program", raw.kind))
            }
            Some(_) => (!unusable.is_empty()).then_some(unusable),
        },
        uuid: raw.uuid,
        pci_address: text(raw.pci_address)?,
        dlpack_type: raw.dlpack_type,
        compute_units: raw.compute_units,
        clock_hz: raw.clock_hz,
        capabilities: Capabilities(raw.capabilities),
        limits: limits(raw),
        // SAFETY: the caller promises readable names.
        spaces: spaces.iter().map(|raw| unsafe { memory_space(raw) }).collect::<Result<_>>()?,
        formats: formats.iter().map(|&format| text(format)).collect::<Result<_>>()?,
        // SAFETY: the caller promises valid properties.
        properties: unsafe { abi::read_properties(raw.properties, raw.property_count) }?,
    })
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
        allocation_bytes: raw.max_allocation_bytes,
    }
}

unsafe fn memory_space(raw: &abi::MemorySpace) -> Result<MemorySpace> {
    Ok(MemorySpace {
        // SAFETY: the caller's promise.
        name: unsafe { abi::read_str(raw.name) }?,
        total_bytes: raw.total_bytes,
        alignment_bytes: raw.alignment_bytes,
        host_visible: raw.flags & abi::SPACE_HOST_VISIBLE != 0,
        kernel_visible: raw.flags & abi::SPACE_KERNEL_VISIBLE != 0,
    })
}

/// Reads a list of options. One whose kind or scope this version does not know is left out: it cannot be given.
///
/// # Errors
/// `AbiMismatch` for a null pointer or broken text.
///
/// # Safety
/// `list` is null or points to `count` option descriptions whose text is readable.
pub(crate) unsafe fn options(list: *const abi::OptionSpec, count: usize) -> Result<Vec<OptionSpec>> {
    // SAFETY: the caller's promise.
    let list = unsafe { abi::borrow_slice(list, count) }?;
    // SAFETY: the caller promises readable text.
    list.iter().filter_map(|raw| unsafe { option(raw) }.transpose()).collect()
}

unsafe fn option(raw: &abi::OptionSpec) -> Result<Option<OptionSpec>> {
    let scope = match raw.scope {
        abi::SCOPE_DEVICE => OptionScope::Device,
        abi::SCOPE_MODULE => OptionScope::Module,
        _ => return Ok(None),
    };
    // SAFETY: the caller's promise.
    let text = |text: Str| unsafe { abi::read_str(text) };
    let words = text(raw.default)?;
    let default = match raw.kind {
        abi::VALUE_FLAG => Value::Flag(words == "true"),
        abi::VALUE_INTEGER => Value::Integer(words.parse().unwrap_or(0)),
        abi::VALUE_NUMBER => Value::Number(words.parse().unwrap_or(0.0)),
        abi::VALUE_TEXT => Value::Text(words),
        _ => return Ok(None),
    };
    let choices = text(raw.choices)?;
    Ok(Some(OptionSpec {
        key: text(raw.key)?,
        scope,
        default,
        choices: choices.split('|').filter(|choice| !choice.is_empty()).map(str::to_owned).collect(),
        doc: text(raw.doc)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeroed() -> abi::DeviceInfo {
        // SAFETY: zero is valid in every field, and nothing is read.
        unsafe { copy_known(std::ptr::null(), 0) }
    }

    #[test]
    fn a_description_becomes_owned_data() {
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
        let list = [&raw const raw];
        // SAFETY: everything lives in this function.
        let info = unsafe { devices("host", list.as_ptr(), 1) }.unwrap().remove(0);
        assert_eq!(info.id.to_string(), "host:3.1");
        assert_eq!((info.name.as_str(), info.unusable, info.formats), ("CPU", None, vec!["c".to_owned()]));
        assert!(info.spaces[0].kernel_visible && !info.spaces[0].host_visible);
    }

    #[test]
    fn an_older_and_shorter_description_leaves_the_rest_empty() {
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
        assert!(info.unusable.unwrap().contains("kind 77"));
    }

    #[test]
    fn broken_lists_are_errors() {
        // SAFETY: null with a count is what is checked for.
        assert_eq!(unsafe { devices("x", std::ptr::null(), 1) }.unwrap_err().kind(), ErrorKind::AbiMismatch);
        let list = [std::ptr::null()];
        // SAFETY: null elements are what is checked for.
        assert_eq!(unsafe { devices("x", list.as_ptr(), 1) }.unwrap_err().kind(), ErrorKind::AbiMismatch);
    }

    #[test]
    fn options_of_the_future_are_left_out() {
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
            (Value::Integer(2), "1,2".to_owned())
        );
        assert_eq!((specs[1].default.clone(), specs[1].scope), (Value::Flag(true), OptionScope::Module));
    }
}
