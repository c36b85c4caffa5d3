//! Turns what a backend has answered into a lie, on its way to core.

use std::cell::Cell;
use std::ffi::c_void;

use runtime_core::abi::{
    self, Allocation, DeviceInfo, Error, Handle, KernelInfo, MemorySpace, MemoryUsage, Occupancy, OptionSpec,
    Progress, RunReport, Status, Str, Telemetry,
};
use runtime_core::{ErrorKind, convert, end_of};

use super::lies::Lie;

thread_local! {
    /// The lie that the call under way tells.
    static LIE: Cell<Option<Lie>> = const { Cell::new(None) };
}

const HUGE: u64 = 0x7fff_ffff_ffff_ffff;
const BINARY: Str = Str { ptr: b"\xff\xfe".as_ptr(), len: 2 };
const NOWHERE: Str = Str { ptr: std::ptr::null(), len: 7 };
const ENDLESS: Str = Str { ptr: b"x".as_ptr(), len: usize::MAX };

/// The call that has begun on this thread is to lie.
pub(super) fn prepare(lie: Lie) {
    LIE.set(Some(lie));
}

/// Whether the call under way is not to be made at all.
pub(super) fn is_skipped() -> bool {
    matches!(LIE.get(), Some(Lie::Silent | Lie::Number | Lie::Blank | Lie::Broken))
}

/// Whether the call under way is made, and an error returned nevertheless.
pub(super) fn is_denied() -> bool {
    LIE.get() == Some(Lie::Anyway)
}

/// The lie of the call that ends.
pub(super) fn take() -> Option<Lie> {
    LIE.take()
}

/// What a function of the tables returns.
pub(super) trait Returned {
    /// What it returns when it was not called.
    fn nothing() -> Self;
    /// What it returns instead.
    fn lied(self, lie: Lie) -> Self;
}

impl Returned for Status {
    fn nothing() -> Self {
        std::ptr::null_mut()
    }

    fn lied(self, lie: Lie) -> Self {
        let error = |kind, message, operation, symbol| {
            let struct_size = if kind == 0 { 0 } else { end_of!(Error, release) };
            let raw = Error { struct_size, kind, code: 0, operation, message, symbol, release: None };
            Box::into_raw(Box::new(raw))
        };
        match lie {
            Lie::Number => std::ptr::without_provenance_mut(5),
            Lie::Blank => error(0, Str::EMPTY, Str::EMPTY, Str::EMPTY),
            Lie::Broken => error(u32::MAX, NOWHERE, BINARY, ENDLESS),
            Lie::Anyway if self.is_null() => convert::into_status(runtime_core::Error::new(
                ErrorKind::Driver,
                "an error of a call that succeeded",
            )),
            _ => self,
        }
    }
}

impl Returned for u32 {
    fn nothing() -> Self {
        0
    }

    fn lied(self, lie: Lie) -> Self {
        if lie == Lie::Max && self == 0 { Self::MAX } else { self }
    }
}

impl Returned for () {
    fn nothing() -> Self {}

    fn lied(self, _: Lie) -> Self {}
}

/// An argument: where it is the place of a result, what is there becomes a lie.
pub(super) trait Argument {
    /// # Safety
    /// A pointer that the backend has written to is valid.
    unsafe fn lie(self, _: Lie)
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
impl Argument for abi::Place {}

impl<T: Answer> Argument for *mut T {
    unsafe fn lie(self, lie: Lie) {
        // SAFETY: null, or the place of an answer of this type.
        if let Some(answer) = unsafe { self.as_mut() } {
            answer.become_lie(lie);
        }
    }
}

/// What a backend fills in.
pub(super) trait Answer {
    fn become_lie(&mut self, _: Lie) {}
}

impl Answer for u8 {}
impl Answer for c_void {}

impl Answer for Handle {
    fn become_lie(&mut self, lie: Lie) {
        if lie == Lie::Null {
            *self = std::ptr::null_mut();
        }
    }
}

impl Answer for Allocation {
    fn become_lie(&mut self, lie: Lie) {
        match lie {
            Lie::Null => self.buffer = std::ptr::null_mut(),
            Lie::Low => self.host_pointer = std::ptr::without_provenance_mut(8),
            Lie::Odd => {
                self.host_pointer = self.host_pointer.wrapping_add(1);
                self.kernel_address += 1;
            }
            _ => {}
        }
    }
}

impl<T> Answer for *const T {
    fn become_lie(&mut self, lie: Lie) {
        *self = match lie {
            Lie::Null => std::ptr::null(),
            Lie::Low => std::ptr::without_provenance(8),
            Lie::Odd => self.wrapping_byte_add(1),
            _ => return,
        };
    }
}

/// A wrong number in place of `number`.
fn figure(number: u64, lie: Lie) -> u64 {
    match lie {
        Lie::Zero => 0,
        Lie::One => 1,
        Lie::Huge => HUGE,
        Lie::Max => u64::MAX,
        _ => number,
    }
}

/// The same in so many bits.
fn small(number: u32, lie: Lie) -> u32 {
    u32::try_from(figure(u64::from(number), lie) & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

impl Answer for u64 {
    fn become_lie(&mut self, lie: Lie) {
        *self = figure(*self, lie);
    }
}

impl Answer for u32 {
    fn become_lie(&mut self, lie: Lie) {
        *self = small(*self, lie);
    }
}

impl Answer for usize {
    fn become_lie(&mut self, lie: Lie) {
        // What is counted must be there, or not be read.
        *self = match lie {
            Lie::One => (*self).min(1),
            _ => Self::try_from(figure(*self as u64, lie)).unwrap_or(Self::MAX),
        };
    }
}

impl Answer for MemoryUsage {
    fn become_lie(&mut self, lie: Lie) {
        self.free_bytes = figure(self.free_bytes, lie);
        self.total_bytes = if lie == Lie::Max { 0 } else { figure(self.total_bytes, lie) };
    }
}

impl Answer for Telemetry {
    fn become_lie(&mut self, lie: Lie) {
        self.valid = small(self.valid, lie);
        self.clock_hz = figure(self.clock_hz, lie);
        self.temperature_millicelsius =
            figure(self.temperature_millicelsius.cast_unsigned(), lie).cast_signed();
        self.energy_microjoules = figure(self.energy_microjoules, lie);
    }
}

impl Answer for Occupancy {
    fn become_lie(&mut self, lie: Lie) {
        self.groups = small(self.groups, lie);
        self.sub_groups = small(self.sub_groups, lie);
        self.max_sub_groups = if lie == Lie::Max { 0 } else { small(self.max_sub_groups, lie) };
    }
}

impl Answer for RunReport {
    fn become_lie(&mut self, lie: Lie) {
        self.cycles = figure(self.cycles, lie);
        self.elapsed_ns = figure(self.elapsed_ns, lie);
    }
}

impl Answer for Progress {
    fn become_lie(&mut self, lie: Lie) {
        let Self { completed, first_failed } = self;
        match lie {
            Lie::Ahead => *completed += 1,
            Lie::FarAhead => *completed += 1000,
            Lie::Back => *completed = completed.saturating_sub(1),
            Lie::FailedFirst => *first_failed = 1,
            Lie::FailedLater => *first_failed = *completed + 1000,
            _ => *completed = figure(*completed, lie),
        }
    }
}

impl Answer for KernelInfo {
    fn become_lie(&mut self, lie: Lie) {
        self.registers = small(self.registers, lie);
        self.shared_bytes = small(self.shared_bytes, lie);
        self.max_group_items = small(self.max_group_items, lie);
        self.preferred_multiple = small(self.preferred_multiple, lie);
        self.group_size = self.group_size.map(|extent| small(extent, lie));
        match lie {
            Lie::ListsHuge => self.param_count = usize::MAX,
            Lie::ListsNull => (self.params, self.param_count) = (std::ptr::null(), 3),
            Lie::Low | Lie::Odd if self.param_count > 0 => self.params.become_lie(lie),
            Lie::KindWild if self.param_count > 0 => {
                // SAFETY: the kernel's parameters, at least one.
                let mut param = unsafe { *self.params };
                (param.kind, param.access, param.dtype.lanes) = (0xee, 0xff, 0);
                (self.params, self.param_count) = (Box::leak(Box::new(param)), 1);
            }
            _ => {}
        }
    }
}

/// A wrong text in place of `text`.
fn words(text: Str, lie: Lie) -> Str {
    match lie {
        Lie::TextNull => NOWHERE,
        Lie::TextHuge => ENDLESS,
        Lie::TextBinary => BINARY,
        Lie::TextEmpty => Str::EMPTY,
        _ => text,
    }
}

/// A list that a backend answers with: the places of its address and of its length.
pub(super) struct List<T>(pub(super) *mut *const T, pub(super) *mut usize);

impl<T: Copy> List<T> {
    /// Replaces the list by a copy that is changed; an empty one stays.
    ///
    /// # Safety
    /// The places are null, or hold a list and its length.
    unsafe fn change(self, change: impl FnOnce(&mut Vec<T>)) {
        // SAFETY: the caller's promise.
        let (list, count) = (unsafe { self.0.as_mut() }, unsafe { self.1.as_mut() });
        let (Some(list), Some(count)) = (list, count) else { return };
        // SAFETY: what the backend has filled in.
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
    /// Lies about the names of a module's entry points.
    ///
    /// # Safety
    /// As `change`.
    pub(super) unsafe fn lie(self, lie: Lie) {
        // SAFETY: the caller's promise.
        unsafe { self.change(|names| names[0] = words(names[0], lie)) };
    }
}

impl List<OptionSpec> {
    /// Lies about the options of a backend.
    ///
    /// # Safety
    /// As `change`.
    pub(super) unsafe fn lie(self, lie: Lie) {
        let change = |options: &mut Vec<OptionSpec>| {
            let first = &mut options[0];
            (first.key, first.doc) = (words(first.key, lie), words(first.doc, lie));
            if lie == Lie::KindWild {
                (first.kind, first.scope) = (u32::MAX, 0);
            }
        };
        // SAFETY: the caller's promise.
        unsafe { self.change(change) };
    }
}

impl List<*const DeviceInfo> {
    /// Lies about the devices of a backend.
    ///
    /// # Safety
    /// As `change`, of pointers to descriptions of this version.
    pub(super) unsafe fn lie(self, lie: Lie) {
        let change = |devices: &mut Vec<*const DeviceInfo>| {
            for device in devices.iter_mut() {
                // SAFETY: the backend's description, of this version.
                let mut info = unsafe { **device };
                lie_about(&mut info, lie);
                *device = Box::leak(Box::new(info));
            }
            if lie == Lie::Twice {
                devices.push(devices[0]);
            }
        };
        // SAFETY: the caller's promise.
        unsafe { self.change(change) };
    }
}

fn lie_about(info: &mut DeviceInfo, lie: Lie) {
    info.name = words(info.name, lie);
    info.pci_address = words(info.pci_address, lie);
    match lie {
        Lie::SizeZero => info.struct_size = 0,
        Lie::SizeMax => info.struct_size = u32::MAX,
        Lie::KindWild => info.kind = 99,
        Lie::SubZero => info.sub = 0,
        Lie::Incapable => info.capabilities &= abi::CAP_SERIAL | abi::CAP_GROUPS | abi::CAP_RANGE,
        Lie::ListsHuge => {
            (info.space_count, info.format_count, info.property_count) = (usize::MAX, 1 << 60, 1 << 59);
        }
        Lie::ListsNull => (info.spaces, info.formats) = (std::ptr::null(), std::ptr::null()),
        Lie::LimitsZero | Lie::LimitsMax => limit(info, if lie == Lie::LimitsMax { u64::MAX } else { 0 }),
        Lie::AlignmentZero => align(info, 0),
        Lie::AlignmentOdd => align(info, 3),
        Lie::AlignmentMax => align(info, 1 << 63),
        _ => {}
    }
}

fn limit(info: &mut DeviceInfo, limit: u64) {
    let word = if limit == 0 { 0 } else { u32::MAX };
    (info.max_groups, info.max_group_size) = ([limit; 3], [word; 3]);
    (info.max_group_items, info.max_shared_bytes, info.max_allocation_bytes) = (word, limit, limit);
    (info.compute_units, info.clock_hz) = (word, limit);
}

fn align(info: &mut DeviceInfo, alignment_bytes: u64) {
    // SAFETY: the backend's list, of its length.
    let spaces = unsafe { convert::borrow_slice("spaces", info.spaces, info.space_count, usize::MAX) };
    let spaces = spaces.unwrap_or_default().iter().map(|space| MemorySpace { alignment_bytes, ..*space });
    info.spaces = spaces.collect::<Vec<_>>().leak().as_ptr();
}
