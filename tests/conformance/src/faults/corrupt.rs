//! Corrupts what a backend returns, on its way to core.

use std::cell::Cell;
use std::ffi::c_void;

use runtime_core::abi::{
    self, Allocation, CompiledCode, Counter, CounterReading, CounterSetInfo, DeviceInfo, Error, Handle,
    KernelInfo, MemorySpace, MemoryUsage, NativeHandle, Occupancy, OptionSpec, Progress, Property, RunReport,
    Status, Str, Telemetry,
};
use runtime_core::backend::convert;
use runtime_core::{ErrorKind, end_of};

use super::corruption::Corruption;

thread_local! {
    /// The corruption for the current call of this thread.
    static CORRUPTION: Cell<Option<Corruption>> = const { Cell::new(None) };
}

const HUGE: u64 = 0x7fff_ffff_ffff_ffff;
const BINARY: Str = Str { ptr: b"\xff\xfe".as_ptr(), len: 2 };
const NOWHERE: Str = Str { ptr: std::ptr::null(), len: 7 };
const ENDLESS: Str = Str { ptr: b"x".as_ptr(), len: usize::MAX };

/// Arms a corruption for the current call of this thread.
pub(super) fn arm(corruption: Corruption) {
    CORRUPTION.set(Some(corruption));
}

/// Whether the current call must not reach the backend.
pub(super) fn is_skipped() -> bool {
    matches!(
        CORRUPTION.get(),
        Some(
            Corruption::Skipped | Corruption::BogusStatus | Corruption::EmptyError | Corruption::GarbageError
        )
    )
}

/// Whether the current call reaches the backend, but returns an error anyway.
pub(super) fn is_spurious_error() -> bool {
    CORRUPTION.get() == Some(Corruption::SpuriousError)
}

/// Takes the corruption of the current call, at its end.
pub(super) fn take() -> Option<Corruption> {
    CORRUPTION.take()
}

/// A return type of a table function.
pub(super) trait Returned {
    /// The value returned for a call that did not reach the backend.
    fn skipped() -> Self;
    /// The corrupted return value.
    fn corrupted(self, corruption: Corruption) -> Self;
}

impl Returned for Status {
    fn skipped() -> Self {
        std::ptr::null_mut()
    }

    fn corrupted(self, corruption: Corruption) -> Self {
        let error = |kind, message, operation, symbol| {
            let struct_size = if kind == 0 { 0 } else { end_of!(Error, release) };
            let raw = Error { struct_size, kind, code: 0, operation, message, symbol, release: None };
            Box::into_raw(Box::new(raw))
        };
        match corruption {
            Corruption::BogusStatus => std::ptr::without_provenance_mut(5),
            Corruption::EmptyError => error(0, Str::EMPTY, Str::EMPTY, Str::EMPTY),
            Corruption::GarbageError => error(u32::MAX, NOWHERE, BINARY, ENDLESS),
            Corruption::SpuriousError if self.is_null() => convert::into_status(runtime_core::Error::new(
                ErrorKind::Driver,
                "an error injected after the call succeeded",
            )),
            _ => self,
        }
    }
}

impl Returned for u32 {
    fn skipped() -> Self {
        0
    }

    fn corrupted(self, corruption: Corruption) -> Self {
        if corruption == Corruption::Max && self == 0 { Self::MAX } else { self }
    }
}

impl Returned for () {
    fn skipped() -> Self {}

    fn corrupted(self, _: Corruption) -> Self {}
}

/// An argument; if it is an output pointer, its target can be corrupted.
pub(super) trait Argument {
    /// # Safety
    /// A pointer that the backend has written through is valid.
    unsafe fn corrupt_output(self, _: Corruption)
    where
        Self: Sized,
    {
    }
}

impl<T> Argument for *const T {}
impl Argument for u32 {}
impl Argument for u64 {}
impl Argument for usize {}
impl Argument for Str {}
impl Argument for abi::SubmitInfo {}
impl Argument for abi::NativeWork {}

impl<T: OutValue> Argument for *mut T {
    unsafe fn corrupt_output(self, corruption: Corruption) {
        // SAFETY: the pointer is null or a valid output pointer of this type.
        if let Some(result) = unsafe { self.as_mut() } {
            result.corrupt(corruption);
        }
    }
}

/// A value that a backend writes through an output pointer.
pub(super) trait OutValue {
    fn corrupt(&mut self, _: Corruption) {}
}

impl OutValue for u8 {}
impl OutValue for c_void {}

impl OutValue for Handle {
    fn corrupt(&mut self, corruption: Corruption) {
        if corruption == Corruption::NullPointer {
            *self = std::ptr::null_mut();
        }
    }
}

impl OutValue for Allocation {
    fn corrupt(&mut self, corruption: Corruption) {
        match corruption {
            Corruption::NullPointer => self.buffer = std::ptr::null_mut(),
            Corruption::LowPointer => self.host_pointer = std::ptr::without_provenance_mut(8),
            Corruption::MisalignedPointer => {
                self.host_pointer = self.host_pointer.wrapping_add(1);
                self.kernel_address += 1;
            }
            _ => {}
        }
    }
}

impl<T> OutValue for *const T {
    fn corrupt(&mut self, corruption: Corruption) {
        *self = match corruption {
            Corruption::NullPointer => std::ptr::null(),
            Corruption::LowPointer => std::ptr::without_provenance(8),
            Corruption::MisalignedPointer => self.wrapping_byte_add(1),
            _ => return,
        };
    }
}

/// A wrong number instead of `number`.
fn corrupt_u64(number: u64, corruption: Corruption) -> u64 {
    match corruption {
        Corruption::Zero => 0,
        Corruption::One => 1,
        Corruption::Huge => HUGE,
        Corruption::Max => u64::MAX,
        _ => number,
    }
}

/// Like `corrupt_u64`, truncated to 32 bits.
fn corrupt_u32(number: u32, corruption: Corruption) -> u32 {
    u32::try_from(corrupt_u64(u64::from(number), corruption) & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

impl OutValue for u64 {
    fn corrupt(&mut self, corruption: Corruption) {
        *self = corrupt_u64(*self, corruption);
    }
}

impl OutValue for u32 {
    fn corrupt(&mut self, corruption: Corruption) {
        *self = corrupt_u32(*self, corruption);
    }
}

impl OutValue for usize {
    fn corrupt(&mut self, corruption: Corruption) {
        // Never raise a count to 1: core may read the listed elements.
        *self = match corruption {
            Corruption::One => (*self).min(1),
            _ => Self::try_from(corrupt_u64(*self as u64, corruption)).unwrap_or(Self::MAX),
        };
    }
}

impl OutValue for MemoryUsage {
    fn corrupt(&mut self, corruption: Corruption) {
        self.free_bytes = corrupt_u64(self.free_bytes, corruption);
        self.total_bytes =
            if corruption == Corruption::Max { 0 } else { corrupt_u64(self.total_bytes, corruption) };
    }
}

impl OutValue for Telemetry {
    fn corrupt(&mut self, corruption: Corruption) {
        self.valid = corrupt_u32(self.valid, corruption);
        self.clock_hz = corrupt_u64(self.clock_hz, corruption);
        self.temperature_millicelsius =
            corrupt_u64(self.temperature_millicelsius.cast_unsigned(), corruption).cast_signed();
        self.energy_microjoules = corrupt_u64(self.energy_microjoules, corruption);
    }
}

impl OutValue for Occupancy {
    fn corrupt(&mut self, corruption: Corruption) {
        self.groups = corrupt_u32(self.groups, corruption);
        self.sub_groups = corrupt_u32(self.sub_groups, corruption);
        self.max_sub_groups =
            if corruption == Corruption::Max { 0 } else { corrupt_u32(self.max_sub_groups, corruption) };
    }
}

impl OutValue for CounterSetInfo {
    fn corrupt(&mut self, corruption: Corruption) {
        self.passes = corrupt_u32(self.passes, corruption);
        match corruption {
            Corruption::ListsHuge => self.reason_count = usize::MAX,
            Corruption::ListsNull => self.unavailable_reasons = std::ptr::null(),
            _ => self.unavailable_reasons.corrupt(corruption),
        }
    }
}

impl OutValue for CounterReading {
    fn corrupt(&mut self, corruption: Corruption) {
        (self.value, self.counted) = match corruption {
            Corruption::Zero => (0.0, 0.0),
            Corruption::One => (1.0, f64::NAN),
            Corruption::Huge => (f64::MAX, 1.5),
            Corruption::Max => (f64::INFINITY, -1.0),
            _ => return,
        };
    }
}

impl OutValue for RunReport {
    fn corrupt(&mut self, corruption: Corruption) {
        let Self { struct_size: _, exit_code: _, cycles, elapsed_ns, overhead, stack_bytes, .. } = self;
        for value in [cycles, elapsed_ns, overhead, stack_bytes, &mut self.code_bytes, &mut self.data_bytes] {
            *value = corrupt_u64(*value, corruption);
        }
    }
}

impl OutValue for Progress {
    fn corrupt(&mut self, corruption: Corruption) {
        let Self { completed, first_failed } = self;
        match corruption {
            Corruption::ProgressAhead => *completed += 1,
            Corruption::ProgressFarAhead => *completed += 1000,
            Corruption::ProgressBackwards => *completed = completed.saturating_sub(1),
            Corruption::FailedFirst => *first_failed = 1,
            Corruption::FailedLater => *first_failed = *completed + 1000,
            _ => *completed = corrupt_u64(*completed, corruption),
        }
    }
}

impl OutValue for KernelInfo {
    fn corrupt(&mut self, corruption: Corruption) {
        self.registers = corrupt_u32(self.registers, corruption);
        self.shared_bytes = corrupt_u32(self.shared_bytes, corruption);
        self.max_group_items = corrupt_u32(self.max_group_items, corruption);
        self.preferred_multiple = corrupt_u32(self.preferred_multiple, corruption);
        self.group_size = self.group_size.map(|extent| corrupt_u32(extent, corruption));
        match corruption {
            Corruption::ListsHuge => self.param_count = usize::MAX,
            Corruption::ListsNull => (self.params, self.param_count) = (std::ptr::null(), 3),
            Corruption::LowPointer | Corruption::MisalignedPointer if self.param_count > 0 => {
                self.params.corrupt(corruption);
            }
            Corruption::UnknownKind if self.param_count > 0 => {
                // SAFETY: `params` has at least one element.
                let mut param = unsafe { *self.params };
                (param.kind, param.access, param.dtype.lanes) = (0xee, 0xff, 0);
                (self.params, self.param_count) = (Box::leak(Box::new(param)), 1);
            }
            _ => {}
        }
    }
}

impl OutValue for CompiledCode {
    fn corrupt(&mut self, corruption: Corruption) {
        (self.format, self.log) = (corrupt_str(self.format, corruption), corrupt_str(self.log, corruption));
        match corruption {
            Corruption::ListsHuge => {
                (self.code_bytes, self.kernel_count, self.option_count) = (usize::MAX, usize::MAX, 1 << 59);
            }
            Corruption::ListsNull => (self.code, self.kernels) = (std::ptr::null(), std::ptr::null()),
            Corruption::LowPointer => {
                (self.code, self.kernels) =
                    (std::ptr::without_provenance(8), std::ptr::without_provenance(8));
            }
            Corruption::MisalignedPointer => self.kernels = self.kernels.wrapping_byte_add(1),
            _ => {}
        }
    }
}

impl OutValue for NativeHandle {
    fn corrupt(&mut self, corruption: Corruption) {
        self.name = corrupt_str(self.name, corruption);
    }
}

/// A wrong string instead of `text`.
fn corrupt_str(text: Str, corruption: Corruption) -> Str {
    match corruption {
        Corruption::TextNull => NOWHERE,
        Corruption::TextHuge => ENDLESS,
        Corruption::TextBinary => BINARY,
        Corruption::TextEmpty => Str::EMPTY,
        _ => text,
    }
}

/// A list that a backend returns: output pointers to its address and its length.
pub(super) struct List<T>(pub(super) *mut *const T, pub(super) *mut usize);

impl<T: Copy> List<T> {
    /// Replaces a list that is not empty with a modified copy.
    ///
    /// # Safety
    /// The pointers are null, or point to a valid list and its length.
    unsafe fn change(self, change: impl FnOnce(&mut Vec<T>)) {
        // SAFETY: guaranteed by the caller.
        let (list, count) = (unsafe { self.0.as_mut() }, unsafe { self.1.as_mut() });
        let (Some(list), Some(count)) = (list, count) else { return };
        // SAFETY: the backend has written this list.
        let elements = unsafe { convert::borrow_slice("a list", *list, *count, usize::MAX) };
        let mut copy = elements.unwrap_or_default().to_vec();
        if !copy.is_empty() {
            change(&mut copy);
            *count = copy.len();
            *list = copy.leak().as_ptr();
        }
    }
}

impl List<Str> {
    /// Corrupts the names of a module's entry points.
    ///
    /// # Safety
    /// As for `change`.
    pub(super) unsafe fn corrupt(self, corruption: Corruption) {
        // SAFETY: guaranteed by the caller.
        unsafe { self.change(|names| names[0] = corrupt_str(names[0], corruption)) };
    }
}

impl List<Counter> {
    /// Corrupts the first counter of a device.
    ///
    /// # Safety
    /// As for `change`.
    pub(super) unsafe fn corrupt(self, corruption: Corruption) {
        let change = |counters: &mut Vec<Counter>| {
            let first = &mut counters[0];
            for text in
                [&mut first.name, &mut first.description, &mut first.unit, &mut first.unavailable_reason]
            {
                *text = corrupt_str(*text, corruption);
            }
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.change(change) };
    }
}

impl List<OptionSpec> {
    /// Corrupts the option specifications of a backend.
    ///
    /// # Safety
    /// As for `change`.
    pub(super) unsafe fn corrupt(self, corruption: Corruption) {
        let change = |options: &mut Vec<OptionSpec>| {
            let first = &mut options[0];
            (first.key, first.doc) = (corrupt_str(first.key, corruption), corrupt_str(first.doc, corruption));
            if corruption == Corruption::UnknownKind {
                (first.kind, first.scope) = (u32::MAX, 0);
            }
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.change(change) };
    }
}

impl List<Property> {
    /// Corrupts the texts that a backend lists.
    ///
    /// # Safety
    /// As for `change`.
    pub(super) unsafe fn corrupt(self, corruption: Corruption) {
        let change = |texts: &mut Vec<Property>| {
            let first = &mut texts[0];
            first.key = corrupt_str(first.key, corruption);
            if corruption == Corruption::UnknownKind {
                first.kind = u32::MAX;
            }
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.change(change) };
    }
}

impl List<*const DeviceInfo> {
    /// Corrupts the device descriptions of a backend.
    ///
    /// # Safety
    /// As for `change`; the elements point to descriptions of this version.
    pub(super) unsafe fn corrupt(self, corruption: Corruption) {
        let change = |devices: &mut Vec<*const DeviceInfo>| {
            for device in devices.iter_mut() {
                // SAFETY: a description of this version, from the backend.
                let mut info = unsafe { **device };
                corrupt_device_info(&mut info, corruption);
                *device = Box::leak(Box::new(info));
            }
            if corruption == Corruption::DuplicateDevice {
                devices.push(devices[0]);
            }
        };
        // SAFETY: guaranteed by the caller.
        unsafe { self.change(change) };
    }
}

fn corrupt_device_info(info: &mut DeviceInfo, corruption: Corruption) {
    info.name = corrupt_str(info.name, corruption);
    info.pci_address = corrupt_str(info.pci_address, corruption);
    match corruption {
        Corruption::SizeZero => info.struct_size = 0,
        Corruption::SizeMax => info.struct_size = u32::MAX,
        Corruption::UnknownKind => info.kind = 99,
        Corruption::SubDeviceZero => info.sub = 0,
        Corruption::MissingCapabilities => {
            info.capabilities &= abi::CAP_SERIAL | abi::CAP_GROUPS | abi::CAP_RANGE;
        }
        Corruption::ListsHuge => {
            (info.space_count, info.format_count, info.property_count) = (usize::MAX, 1 << 60, 1 << 59);
        }
        Corruption::ListsNull => (info.spaces, info.formats) = (std::ptr::null(), std::ptr::null()),
        Corruption::LimitsZero | Corruption::LimitsMax => {
            set_limits(info, if corruption == Corruption::LimitsMax { u64::MAX } else { 0 });
        }
        Corruption::AlignmentZero => set_alignment(info, 0),
        Corruption::AlignmentOdd => set_alignment(info, 3),
        Corruption::AlignmentMax => set_alignment(info, 1 << 63),
        _ => {}
    }
}

fn set_limits(info: &mut DeviceInfo, limit: u64) {
    let word = if limit == 0 { 0 } else { u32::MAX };
    (info.max_groups, info.max_group_size) = ([limit; 3], [word; 3]);
    (info.max_group_items, info.max_shared_bytes, info.max_allocation_bytes) = (word, limit, limit);
    (info.compute_units, info.clock_hz) = (word, limit);
}

fn set_alignment(info: &mut DeviceInfo, alignment_bytes: u64) {
    // SAFETY: the list of the backend, with its length.
    let spaces = unsafe { convert::borrow_slice("spaces", info.spaces, info.space_count, usize::MAX) };
    let spaces = spaces.unwrap_or_default().iter().map(|space| MemorySpace { alignment_bytes, ..*space });
    info.spaces = spaces.collect::<Vec<_>>().leak().as_ptr();
}
