//! Shims for instances, and the device and option lists that they own in C form.

use std::any::TypeId;
use std::sync::{Mutex, PoisonError};

use super::compiled::Compiled;
use super::counters::OpenedDevice;
use super::ffi::{abi_mismatch, answer, answer_list, into_handle, out_param, release};
use super::module::source;
use super::panic::{guard, install_hook};
use super::{Backend, Shims};
use crate::abi::{self, Handle, HostTable, InstanceTable, ModuleSource, Property, Status, Str};
use crate::backend::Log;
use crate::model::options::{OptionScope, OptionSpec};
use crate::plugin::convert;
use crate::{DeviceInfo, DeviceKind, Options, Result, end_of};

/// A backend's state, and the device list that core may still be reading.
struct Instance<B> {
    backend: B,
    last_list: Mutex<Option<DeviceList>>,
    last_architecture: Mutex<Option<DeviceList>>,
    last_diagnosis: Mutex<Option<Texts>>,
    last_variables: Mutex<Option<Texts>>,
}

impl<B: Backend> Shims<B> {
    pub(super) const INSTANCE: &'static InstanceTable = &InstanceTable {
        struct_size: end_of!(InstanceTable, process_variables),
        reserved: 0,
        options: Some(Self::options),
        open: Some(Self::open),
        close: Some(Self::close),
        devices: Some(Self::devices),
        open_device: Some(Self::open_device),
        architecture: Some(Self::architecture),
        compile_for: Some(Self::compile_for),
        diagnose: Some(Self::diagnose),
        process_variables: Some(Self::process_variables),
    };

    unsafe extern "C" fn options(list: *mut *const abi::OptionSpec, count: *mut usize) -> Status {
        guard("options", || {
            // SAFETY: core passes a writable output pointer.
            let list = unsafe { out_param(list) }?;
            // SAFETY: core passes a writable output pointer.
            let count = unsafe { out_param(count) }?;
            let specs = static_options::<B>();
            list.write(specs.as_ptr());
            count.write(specs.len());
            Ok(())
        })
    }

    unsafe extern "C" fn open(host: *const HostTable, handle: *mut Handle) -> Status {
        guard("open", || {
            // SAFETY: core passes a writable output pointer.
            let handle = unsafe { out_param(handle) }?;
            // SAFETY: core passes its table, which is valid for the life of the process.
            let log = unsafe { host_log(host) }?;
            install_hook(log);
            // SAFETY: core follows the contract of `Backend::open`.
            let backend = unsafe { B::open(log) }?;
            handle.write(into_handle(Instance {
                backend,
                last_list: Mutex::default(),
                last_architecture: Mutex::default(),
                last_diagnosis: Mutex::default(),
                last_variables: Mutex::default(),
            }));
            Ok(())
        })
    }

    unsafe extern "C" fn close(instance: Handle) {
        // SAFETY: core passes each instance that `open` created exactly once.
        unsafe { release::<Instance<B>>("close", instance) }
    }

    unsafe extern "C" fn devices(
        instance: Handle,
        list: *mut *const *const abi::DeviceInfo,
        count: *mut usize,
    ) -> Status {
        let ask = |instance: &Instance<B>| {
            let devices = DeviceList::new(instance.backend.devices()?);
            let mut last_list = instance.last_list.lock().unwrap_or_else(PoisonError::into_inner);
            let pointers = &last_list.insert(devices).pointers;
            Ok((pointers.as_ptr(), pointers.len()))
        };
        // SAFETY: core passes a live instance of this backend, and writable output pointers.
        unsafe { answer_list("devices", instance, (list, count), ask) }
    }

    unsafe extern "C" fn open_device(
        instance: Handle,
        index: u32,
        sub: u32,
        options: *const Property,
        count: usize,
        device: *mut Handle,
    ) -> Status {
        let open = |instance: &Instance<B>| {
            // SAFETY: core passes `count` properties, readable during the call.
            let options = unsafe { convert::read_properties("options", options, count) }?;
            let sub = (sub != abi::WHOLE_DEVICE).then_some(sub);
            Ok(into_handle(OpenedDevice::new(instance.backend.open_device(index, sub, &options)?)))
        };
        // SAFETY: core passes a live instance of this backend, and a writable output pointer.
        unsafe { answer("open_device", instance, device, open) }
    }

    unsafe extern "C" fn architecture(
        instance: Handle,
        architecture: Str,
        device: *mut *const abi::DeviceInfo,
    ) -> Status {
        let ask = |instance: &Instance<B>| {
            // SAFETY: core passes text that is readable during the call.
            let architecture = unsafe { convert::borrow_str("architecture", architecture) }?;
            let list = DeviceList::new(vec![instance.backend.architecture(architecture)?]);
            let mut last = instance.last_architecture.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(last.insert(list).pointers[0])
        };
        // SAFETY: core passes a live instance of this backend, and a writable output pointer.
        unsafe { answer("architecture", instance, device, ask) }
    }

    unsafe extern "C" fn compile_for(
        instance: Handle,
        architecture: Str,
        code: *const ModuleSource,
        handle: *mut Handle,
    ) -> Status {
        let compile = |instance: &Instance<B>| {
            // SAFETY: core passes text that is readable during the call.
            let architecture = unsafe { convert::borrow_str("architecture", architecture) }?;
            let mut options = Options::new();
            // SAFETY: core passes a structure that states its size; it is readable during the call.
            let code = unsafe { source(code, &mut options) }?;
            Ok(into_handle(Compiled::new(instance.backend.compile_for(architecture, &code)?)))
        };
        // SAFETY: core passes a live instance of this backend, and a writable output pointer.
        unsafe { answer("compile_for", instance, handle, compile) }
    }

    unsafe extern "C" fn diagnose(instance: Handle, list: *mut *const Property, count: *mut usize) -> Status {
        let ask = |instance: &Instance<B>| Ok(lend(instance.backend.diagnose()?, &instance.last_diagnosis));
        // SAFETY: core passes a live instance of this backend, and writable output pointers.
        unsafe { answer_list("diagnose", instance, (list, count), ask) }
    }

    unsafe extern "C" fn process_variables(
        instance: Handle,
        device: Str,
        options: *const Property,
        option_count: usize,
        list: *mut *const Property,
        count: *mut usize,
    ) -> Status {
        let ask = |instance: &Instance<B>| {
            // SAFETY: core passes text that is readable during the call.
            let device = unsafe { convert::borrow_str("device", device) }?;
            // SAFETY: core passes `option_count` properties, readable during the call.
            let options = unsafe { convert::read_properties("options", options, option_count) }?;
            let variables = instance.backend.process_variables(device, &options)?;
            Ok(lend(variables, &instance.last_variables))
        };
        // SAFETY: core passes a live instance of this backend, and writable output pointers.
        unsafe { answer_list("process_variables", instance, (list, count), ask) }
    }
}

/// Texts in C form, with the strings that they borrow.
struct Texts {
    properties: Vec<Property>,
    _texts: Options,
}

// SAFETY: the properties refer to strings of the list itself, which never change.
unsafe impl Send for Texts {}

/// Lends texts to core until the next call.
fn lend(texts: Options, last: &Mutex<Option<Texts>>) -> (*const Property, usize) {
    // Moving a list does not move its strings.
    let texts = Texts { properties: convert::properties(&texts), _texts: texts };
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let properties = &last.insert(texts).properties;
    (properties.as_ptr(), properties.len())
}

unsafe fn host_log(host: *const HostTable) -> Result<Log> {
    if host.is_null() || !host.is_aligned() {
        return Err(abi_mismatch("`open` was called without a host table"));
    }
    // SAFETY: a host table begins with its header and is valid for the life of the process.
    let header = unsafe { (*host).header };
    if header.magic != abi::MAGIC || header.major != abi::MAJOR {
        return Err(abi_mismatch(format!(
            "the host has ABI major {}, this backend {}",
            header.major,
            abi::MAJOR
        )));
    }
    if header.struct_size < end_of!(HostTable, log) {
        return Ok(Log(None));
    }
    // SAFETY: the stated size covers the field.
    Ok(Log(unsafe { (*host).log }))
}

/// Option descriptions in C form. They are static, so they are leaked once per backend.
fn static_options<B: Backend>() -> &'static [abi::OptionSpec] {
    static CACHE: Mutex<Vec<(TypeId, &[abi::OptionSpec])>> = Mutex::new(Vec::new());
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, specs)) = cache.iter().find(|(backend, _)| *backend == TypeId::of::<B>()) {
        return specs;
    }
    let specs: &[_] = B::options().into_iter().map(static_option).collect::<Vec<_>>().leak();
    cache.push((TypeId::of::<B>(), specs));
    specs
}

fn static_option(spec: OptionSpec) -> abi::OptionSpec {
    let text = |text: String| Str::new(text.leak());
    abi::OptionSpec {
        kind: spec.default.kind(),
        scope: match spec.scope {
            OptionScope::Device => abi::SCOPE_DEVICE,
            OptionScope::DeviceCode => abi::SCOPE_DEVICE_CODE,
            OptionScope::Module => abi::SCOPE_MODULE,
        },
        key: text(spec.key),
        choices: text(spec.choices.join("|")),
        default: text(spec.default.to_string()),
        doc: text(spec.doc),
    }
}

/// A device list in C form, with the data it points to.
struct DeviceList {
    pointers: Vec<*const abi::DeviceInfo>,
    _devices: Vec<Device>,
}

// SAFETY: the pointers refer to the list's own memory, which never changes.
unsafe impl Send for DeviceList {}

/// A device description in C form, with the data it points to.
struct Device {
    raw: abi::DeviceInfo,
    _info: Box<DeviceInfo>,
    _spaces: Vec<abi::MemorySpace>,
    _formats: Vec<Str>,
    _properties: Vec<Property>,
}

impl DeviceList {
    fn new(infos: Vec<DeviceInfo>) -> Self {
        let devices: Vec<_> = infos.into_iter().map(Device::new).collect();
        // Moving a vector does not move its elements.
        Self { pointers: devices.iter().map(|device| &raw const device.raw).collect(), _devices: devices }
    }
}

impl Device {
    fn new(info: DeviceInfo) -> Self {
        // Boxed first, so that pointers to its strings stay valid.
        let info = Box::new(info);
        let spaces: Vec<_> = info.spaces.iter().map(raw_space).collect();
        let formats: Vec<_> = info.formats.iter().map(|format| Str::new(format.as_str())).collect();
        let properties = convert::properties(&info.properties);
        let raw = raw_info(&info, &spaces, &formats, &properties);
        Self { raw, _info: info, _spaces: spaces, _formats: formats, _properties: properties }
    }
}

fn raw_space(space: &crate::model::device_info::MemorySpace) -> abi::MemorySpace {
    let flag = |set: bool, bit: u64| if set { bit } else { 0 };
    abi::MemorySpace {
        name: Str::new(&space.name),
        total_bytes: space.total_bytes.unwrap_or(0),
        alignment_bytes: space.alignment_bytes,
        flags: flag(space.host_visible, abi::SPACE_HOST_VISIBLE)
            | flag(space.kernel_visible, abi::SPACE_KERNEL_VISIBLE),
    }
}

/// A text; empty if there is none.
fn text(text: &Option<String>) -> Str {
    text.as_deref().map_or(Str::EMPTY, Str::new)
}

/// The C form, which borrows everything.
fn raw_info(
    info: &DeviceInfo,
    spaces: &[abi::MemorySpace],
    formats: &[Str],
    properties: &[Property],
) -> abi::DeviceInfo {
    abi::DeviceInfo {
        struct_size: end_of!(abi::DeviceInfo, property_count),
        kind: match info.kind {
            DeviceKind::Host => abi::KIND_HOST,
            DeviceKind::Accelerator => abi::KIND_ACCELERATOR,
            DeviceKind::Embedded => abi::KIND_EMBEDDED,
        },
        index: info.id.index,
        sub: info.id.sub.unwrap_or(abi::WHOLE_DEVICE),
        name: Str::new(&info.name),
        arch: text(&info.arch),
        vendor: text(&info.vendor),
        driver_version: text(&info.driver_version),
        unavailable_reason: match info.unavailable_reason.as_deref() {
            None => Str::EMPTY,
            Some("") => Str::new("the backend gives no reason"),
            Some(reason) => Str::new(reason),
        },
        uuid: info.uuid.unwrap_or_default(),
        pci_address: text(&info.pci_address),
        dlpack_type: info.dlpack_type,
        compute_units: info.compute_units.unwrap_or(0),
        clock_hz: info.clock_hz.unwrap_or(0),
        capabilities: info.capabilities.0,
        max_groups: info.limits.groups,
        max_group_size: info.limits.group_size,
        max_group_items: info.limits.group_items,
        max_shared_bytes: info.limits.shared_bytes,
        max_allocation_bytes: info.limits.allocation_bytes.unwrap_or(0),
        spaces: spaces.as_ptr(),
        space_count: spaces.len(),
        formats: formats.as_ptr(),
        format_count: formats.len(),
        properties: properties.as_ptr(),
        property_count: properties.len(),
    }
}
