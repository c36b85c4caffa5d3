//! Shims for counters, and the lists that core borrows from a device and from a set.

use std::sync::{Mutex, PoisonError};

use super::ffi::{abi_mismatch, borrow, from_handle, into_handle, out_param, write_struct};
use super::panic::{catch_panic, guard};
use super::{Backend, Shims};
use crate::abi::{self, CounterTable, Handle, Status, Str};
use crate::backend::{CounterSet, Device};
use crate::model::counters::CounterInfo;
use crate::plugin::convert;
use crate::{Error, Result, end_of};

/// What a device handle points to. `repr(C)`, so that its address is that of the device.
#[repr(C)]
pub(super) struct OpenedDevice<D> {
    device: D,
    counters: Mutex<Option<CounterList>>,
}

impl<D> OpenedDevice<D> {
    pub(super) const fn new(device: D) -> Self {
        Self { device, counters: Mutex::new(None) }
    }
}

/// A list of counters in C form, with the texts that it points to.
struct CounterList {
    raw: Vec<abi::Counter>,
    _infos: Vec<CounterInfo>,
}

// SAFETY: the pointers refer to the list's own memory, which never changes.
unsafe impl Send for CounterList {}

impl CounterList {
    fn new(infos: Vec<CounterInfo>) -> Self {
        let text = |text: &Option<String>| text.as_deref().map_or(Str::EMPTY, Str::new);
        // Moving a vector does not move its elements.
        let raw = infos.iter().map(|info| abi::Counter {
            name: Str::new(&info.name),
            description: Str::new(&info.description),
            unit: text(&info.unit),
            unavailable_reason: text(&info.unavailable_reason),
        });
        Self { raw: raw.collect(), _infos: infos }
    }
}

/// What the handle of a set points to.
struct OpenedSet {
    set: Box<dyn CounterSet>,
    passes: u32,
    raw_reasons: Vec<Str>,
    _reasons: Vec<String>,
}

impl OpenedSet {
    fn new(set: Box<dyn CounterSet>) -> Self {
        let reasons: Vec<_> = set.unavailable_reasons().into_iter().map(Option::unwrap_or_default).collect();
        let raw_reasons = reasons.iter().map(|reason| Str::new(reason)).collect();
        Self { passes: set.passes(), set, raw_reasons, _reasons: reasons }
    }
}

impl<B: Backend> Shims<B> {
    pub(super) const COUNTERS: &'static CounterTable = &CounterTable {
        struct_size: end_of!(CounterTable, close),
        reserved: 0,
        list: Some(Self::list_counters),
        open: Some(Self::open_counters),
        info: Some(Self::counter_info),
        begin: Some(Self::begin_counters),
        end: Some(Self::end_counters),
        read: Some(Self::read_counters),
        close: Some(Self::close_counters),
    };

    unsafe extern "C" fn list_counters(
        device: Handle,
        list: *mut *const abi::Counter,
        count: *mut usize,
    ) -> Status {
        guard("list_counters", || {
            // SAFETY: core passes a live device of this backend.
            let opened = unsafe { borrow::<OpenedDevice<B::Device>>(device) }?;
            // SAFETY: core passes a writable output pointer.
            let list = unsafe { out_param(list) }?;
            // SAFETY: core passes a writable output pointer.
            let count = unsafe { out_param(count) }?;
            let mut counters = opened.counters.lock().unwrap_or_else(PoisonError::into_inner);
            let counters = match &mut *counters {
                Some(listed) => listed,
                none => none.insert(CounterList::new(opened.device.counters()?)),
            };
            list.write(counters.raw.as_ptr());
            count.write(counters.raw.len());
            Ok(())
        })
    }

    unsafe extern "C" fn open_counters(
        device: Handle,
        names: *const Str,
        count: usize,
        handle: *mut Handle,
    ) -> Status {
        guard("open_counters", || {
            // SAFETY: core passes a live device of this backend.
            let device = unsafe { borrow::<B::Device>(device) }?;
            // SAFETY: core passes a writable output pointer.
            let handle = unsafe { out_param(handle) }?;
            // SAFETY: core passes `count` names, valid during the call.
            let names = unsafe { convert::borrow_slice("names", names, count, abi::MAX_COUNTERS) }?;
            // SAFETY: as above.
            let names: Result<Vec<_>> =
                names.iter().map(|&name| unsafe { convert::borrow_str("names[]", name) }).collect();
            handle.write(into_handle(OpenedSet::new(device.open_counters(&names?)?)));
            Ok(())
        })
    }

    unsafe extern "C" fn counter_info(set: Handle, info: *mut abi::CounterSetInfo) -> Status {
        guard("counter_info", || {
            // SAFETY: core passes a live set of this backend.
            let set = unsafe { borrow::<OpenedSet>(set) }?;
            let raw = abi::CounterSetInfo {
                struct_size: end_of!(abi::CounterSetInfo, reason_count),
                passes: set.passes,
                unavailable_reasons: set.raw_reasons.as_ptr(),
                reason_count: set.raw_reasons.len(),
            };
            // SAFETY: core passes a structure that states its size.
            unsafe { write_struct(info, raw) }
        })
    }

    unsafe extern "C" fn begin_counters(set: Handle, pass: u32) -> Status {
        guard("begin_counters", || {
            // SAFETY: core passes a live set and makes no other call with it meanwhile.
            unsafe { opened_set(set) }?.set.begin(pass)
        })
    }

    unsafe extern "C" fn end_counters(set: Handle) -> Status {
        guard("end_counters", || {
            // SAFETY: core passes a live set and makes no other call with it meanwhile.
            unsafe { opened_set(set) }?.set.end()
        })
    }

    unsafe extern "C" fn read_counters(
        set: Handle,
        readings: *mut abi::CounterReading,
        count: usize,
    ) -> Status {
        guard("read_counters", || {
            // SAFETY: core passes a live set and makes no other call with it meanwhile.
            let values = unsafe { opened_set(set) }?.set.read()?;
            if values.len() != count {
                let message = format!("a set of {} counters was read as {count}", values.len());
                return Err(abi_mismatch(message));
            }
            for (index, value) in values.into_iter().enumerate() {
                let raw = value.map_or_else(abi::CounterReading::default, |reading| abi::CounterReading {
                    value: reading.value,
                    counted: reading.counted,
                    flags: abi::READING_VALID | if reading.is_ratio { abi::READING_RATIO } else { 0 },
                    reserved: 0,
                });
                // SAFETY: core passes room for `count` readings.
                unsafe { out_param(readings.wrapping_add(index)) }?.write(raw);
            }
            Ok(())
        })
    }

    unsafe extern "C" fn close_counters(set: Handle) {
        // The hook logs a panic in `drop`; there is no status to return it in.
        let _ = catch_panic("close_counters", || {
            // SAFETY: core passes each set that `open` created exactly once.
            drop(unsafe { from_handle::<OpenedSet>(set) });
        });
    }
}

/// Borrows a set.
///
/// # Safety
/// `set` is null, or a live set that nothing else borrows.
unsafe fn opened_set<'a>(set: Handle) -> Result<&'a mut OpenedSet> {
    // SAFETY: guaranteed by the caller.
    let opened = unsafe { set.cast::<OpenedSet>().as_mut() };
    opened.ok_or_else(|| -> Error { abi_mismatch("expected a handle of a counter set, got null") })
}
