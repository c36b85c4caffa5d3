//! Shims for devices and their memory.

use std::ffi::c_void;

use super::counters::OpenedDevice;
use super::ffi::{borrow, byte_len, from_handle, into_handle, out_param, read_struct, write_struct};
use super::panic::{catch_panic, guard};
use super::{Backend, BufferOf, QueueOf, Shims};
use crate::abi::{self, AllocateRequest, Allocation, DeviceTable, Handle, MemoryTable, Status};
use crate::backend::{Allocate, Buffer, Device, DeviceBytes, HostBytesMut};
use crate::model::device_info::{MemoryUsage, Telemetry};
use crate::{Error, end_of};

impl<B: Backend> Shims<B> {
    pub(super) const DEVICE: &'static DeviceTable = &DeviceTable {
        struct_size: end_of!(DeviceTable, processes),
        reserved: 0,
        close: Some(Self::close_device),
        memory_usage: Some(Self::memory_usage),
        peer_access: Some(Self::peer_access),
        telemetry: Some(Self::telemetry),
        throttle_reasons: Some(Self::throttle_reasons),
        processes: Some(Self::processes),
    };

    pub(super) const MEMORY: &'static MemoryTable = &MemoryTable {
        struct_size: end_of!(MemoryTable, import_device_memory),
        reserved: 0,
        allocate: Some(Self::allocate),
        free: Some(Self::free),
        import_host: Some(Self::import_host),
        import_device_memory: Some(Self::import_device_memory),
    };

    unsafe extern "C" fn close_device(device: Handle) {
        // The hook logs a panic in `drop`; there is no status to return it in.
        let _ = catch_panic("close_device", || {
            // SAFETY: core passes each device that `open_device` created exactly once.
            drop(unsafe { from_handle::<OpenedDevice<B::Device>>(device) });
        });
    }

    unsafe extern "C" fn memory_usage(device: Handle, space: u32, usage: *mut abi::MemoryUsage) -> Status {
        guard("memory_usage", || {
            // SAFETY: core passes a live device of this backend.
            let MemoryUsage { free_bytes, total_bytes } =
                unsafe { borrow::<B::Device>(device) }?.memory_usage(space)?;
            let struct_size = end_of!(abi::MemoryUsage, total_bytes);
            let raw = abi::MemoryUsage { struct_size, reserved: 0, free_bytes, total_bytes };
            // SAFETY: core passes a structure that states its size.
            unsafe { write_struct(usage, raw) }
        })
    }

    unsafe extern "C" fn peer_access(device: Handle, other: Handle, answer: *mut u32) -> Status {
        guard("peer_access", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            // SAFETY: as above.
            let other = unsafe { borrow::<B::Device>(other) }?;
            // SAFETY: core passes a writable output pointer.
            unsafe { out_param(answer) }?.write(u32::from(device.peer_access(other)?));
            Ok(())
        })
    }

    unsafe extern "C" fn telemetry(device: Handle, telemetry: *mut abi::Telemetry) -> Status {
        guard("telemetry", || {
            // SAFETY: core passes a live device of this backend.
            let raw = raw_telemetry(unsafe { borrow::<B::Device>(device) }?.telemetry()?);
            // SAFETY: core passes a structure that states its size.
            unsafe { write_struct(telemetry, raw) }
        })
    }

    unsafe extern "C" fn throttle_reasons(device: Handle, reasons: *mut u64) -> Status {
        guard("throttle_reasons", || {
            // SAFETY: core passes a live device of this backend.
            let found = unsafe { borrow::<B::Device>(device) }?.throttle_reasons()?;
            // SAFETY: core passes a writable output pointer.
            unsafe { out_param(reasons) }?.write(found.0);
            Ok(())
        })
    }

    unsafe extern "C" fn processes(device: Handle, ids: *mut u32, capacity: u32, count: *mut u32) -> Status {
        guard("processes", || {
            // SAFETY: core passes a live device of this backend.
            let found = unsafe { borrow::<B::Device>(device) }?.processes()?;
            // SAFETY: core passes a writable output pointer.
            unsafe { out_param(count) }?.write(u32::try_from(found.len()).unwrap_or(u32::MAX));
            for (index, id) in found.into_iter().take(capacity as usize).enumerate() {
                // SAFETY: core passes room for `capacity` IDs.
                let place = unsafe { ids.add(index) };
                // SAFETY: as above.
                unsafe { out_param(place) }?.write(id);
            }
            Ok(())
        })
    }

    unsafe extern "C" fn allocate(
        device: Handle,
        request: *const AllocateRequest,
        allocation: *mut Allocation,
    ) -> Status {
        guard("allocate", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            // SAFETY: core passes a structure that states its size.
            let raw = unsafe { read_struct(request) }?;
            // SAFETY: the queue is null or a live queue of this backend.
            let queue = unsafe { raw.queue.cast::<QueueOf<B>>().as_ref() };
            let huge_pages = raw.flags & abi::ALLOCATE_HUGE_PAGES != 0;
            if huge_pages && !B::Device::HUGE_PAGES {
                return Err(Error::unsupported("huge_pages are not supported by this device"));
            }
            if !raw.alignment_bytes.max(1).is_power_of_two() {
                let message = format!("an alignment of {} bytes is not a power of two", raw.alignment_bytes);
                return Err(Error::invalid(message));
            }
            let buffer = device.allocate(&Allocate {
                space: raw.space,
                bytes: byte_len(raw.bytes)?,
                alignment_bytes: byte_len(raw.alignment_bytes)?,
                huge_pages,
                queue: queue.map(|queue| (queue, raw.ticket)),
            })?;
            // SAFETY: core passes a structure that states its size.
            unsafe { write_allocation(allocation, buffer) }
        })
    }

    unsafe extern "C" fn free(device: Handle, buffer: Handle, queue: Handle) {
        // The hook logs a panic; there is no status to return it in.
        let _ = catch_panic("free", || {
            // SAFETY: core passes each buffer of this device exactly once.
            let buffer = unsafe { from_handle::<BufferOf<B>>(buffer) };
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) };
            // SAFETY: the queue is null or a live queue of this backend.
            let queue = unsafe { queue.cast::<QueueOf<B>>().as_ref() };
            if let (Ok(device), Some(buffer)) = (device, buffer) {
                device.free(*buffer, queue);
            }
        });
    }

    unsafe extern "C" fn import_host(
        device: Handle,
        space: u32,
        pointer: *mut u8,
        bytes: u64,
        allocation: *mut Allocation,
    ) -> Status {
        guard("import_host", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            // SAFETY: core keeps the memory alive, and unused elsewhere, until the buffer is freed.
            let memory = unsafe { HostBytesMut::new(pointer, byte_len(bytes)?) };
            let buffer = device.import_host(space, memory)?;
            // SAFETY: core passes a structure that states its size.
            unsafe { write_allocation(allocation, buffer) }
        })
    }

    unsafe extern "C" fn import_device_memory(
        device: Handle,
        space: u32,
        memory: *mut c_void,
        bytes: u64,
        allocation: *mut Allocation,
    ) -> Status {
        guard("import_device_memory", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            // SAFETY: core keeps the memory alive, and unused elsewhere, until the buffer is freed.
            let memory = unsafe { DeviceBytes::new(memory, byte_len(bytes)?) };
            let buffer = device.import_device_memory(space, memory)?;
            // SAFETY: core passes a structure that states its size.
            unsafe { write_allocation(allocation, buffer) }
        })
    }
}

unsafe fn write_allocation<T: Buffer>(allocation: *mut Allocation, buffer: T) -> crate::Result<()> {
    let (kernel_address, host_pointer) = (buffer.kernel_address(), buffer.host_pointer());
    let struct_size = end_of!(Allocation, host_pointer);
    let buffer = into_handle(buffer);
    // SAFETY: guaranteed by the caller.
    let written = unsafe {
        write_struct(
            allocation,
            Allocation { struct_size, reserved: 0, buffer, kernel_address, host_pointer },
        )
    };
    if written.is_err() {
        // SAFETY: core did not receive the handle.
        drop(unsafe { from_handle::<T>(buffer) });
    }
    written
}

fn raw_telemetry(telemetry: Telemetry) -> abi::Telemetry {
    let readings = [
        (telemetry.clock_hz.is_some(), abi::TELEMETRY_CLOCK),
        (telemetry.memory_clock_hz.is_some(), abi::TELEMETRY_MEMORY_CLOCK),
        (telemetry.temperature_millicelsius.is_some(), abi::TELEMETRY_TEMPERATURE),
        (telemetry.power_milliwatts.is_some(), abi::TELEMETRY_POWER),
        (telemetry.energy_microjoules.is_some(), abi::TELEMETRY_ENERGY),
    ];
    abi::Telemetry {
        struct_size: end_of!(abi::Telemetry, energy_microjoules),
        valid: readings.iter().filter(|(valid, _)| *valid).map(|(_, bit)| bit).sum(),
        clock_hz: telemetry.clock_hz.unwrap_or(0),
        memory_clock_hz: telemetry.memory_clock_hz.unwrap_or(0),
        temperature_millicelsius: telemetry.temperature_millicelsius.unwrap_or(0),
        power_milliwatts: telemetry.power_milliwatts.unwrap_or(0),
        energy_microjoules: telemetry.energy_microjoules.unwrap_or(0),
    }
}
