//! Counters of an opened device: what can be counted, and sets of counters that are read around work.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::collections::HashSet;
use std::sync::Arc;

use crate::abi::{self, Handle, MAX_COUNTER_PASSES, MAX_COUNTERS, Str};
use crate::device::common_runtime::CommonRuntime;
use crate::model::counters::{CounterInfo, CounterReading};
use crate::plugin::convert;
use crate::timeline::open_device::OpenDevice;
use crate::{Error, Result};

impl<'d> dyn CommonRuntime + 'd {
    /// Lists the counters of the device, including those that cannot be read on this machine. Further names may be
    /// valid, such as raw codes of the processor.
    ///
    /// # Errors
    /// `Unsupported` if the backend has no counters; `Unavailable` with the remedy if none can be listed.
    pub fn counters(&self) -> Result<Vec<CounterInfo>> {
        list(self.opened().0)
    }

    /// Opens a set of counters, to be read around work on this device.
    ///
    /// ```
    /// # let runtime = runtime_core::Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// let mut set = device.counter_set(&["launches"])?;
    /// let queue = device.queue()?;
    /// let readings = set.measure(|| {
    ///     queue.launch_noop()?;
    ///     queue.wait_idle()
    /// })?;
    /// assert_eq!(readings[0].map(|reading| reading.value), Some(1.0));
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for an unknown name; `InvalidArgument` for no name, or one that occurs twice; `Unsupported` if the
    /// backend has no counters. A counter that exists but cannot be read is not an error: see
    /// [`CounterSet::unavailable_reason`].
    pub fn counter_set<S: AsRef<str>>(&self, names: &[S]) -> Result<CounterSet> {
        let names: Vec<_> = names.iter().map(AsRef::as_ref).collect();
        CounterSet::open(self.opened().0, &names)
    }
}

fn list(device: &Arc<OpenDevice>) -> Result<Vec<CounterInfo>> {
    let (mut raw, mut count) = (std::ptr::null(), 0);
    // SAFETY: the device is open and the out-parameters live during the call.
    device.call("counters", |calls, device| unsafe {
        (calls.counters.list)(device, &raw mut raw, &raw mut count)
    })?;
    // SAFETY: by contract the list is valid until the device is closed, which `device` keeps open.
    let listed = unsafe { convert::borrow_slice("counters", raw, count, MAX_COUNTERS) };
    let read = |counter: &abi::Counter| {
        // SAFETY: as above; the strings belong to the list.
        let text = |field, text| unsafe { convert::read_str(format_args!("Counter.{field}"), text) };
        let optional = |field, raw| text(field, raw).map(|text| (!text.is_empty()).then_some(text));
        Ok(CounterInfo {
            name: text("name", counter.name)?,
            description: text("description", counter.description)?,
            unit: optional("unit", counter.unit)?,
            unavailable_reason: optional("unavailable_reason", counter.unavailable_reason)?,
        })
    };
    let infos: Result<Vec<_>> = listed.and_then(|listed| listed.iter().map(read).collect());
    infos.map_err(|error| error.in_operation("counters").on_device(&device.name))
}

/// An open set of counters. It keeps its device open.
///
/// A set may need several passes: run the same work once per pass, each between [`begin`](Self::begin) and
/// [`end`](Self::end), then [`read`](Self::read); or let [`measure`](Self::measure) do it. The values include all work on
/// the device in that time, so run nothing else.
///
/// ```
/// # let runtime = runtime_core::Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let queue = device.queue()?;
/// let mut set = device.counter_set(&["launches", "bytes"])?;
/// for _ in 0..set.passes() {
///     set.begin()?;
///     queue.launch_noop()?.wait()?; // the same work in each pass
///     set.end()?;
/// }
/// let values: Vec<_> = set.read()?.into_iter().map(|reading| reading.map(|reading| reading.value)).collect();
/// assert_eq!((set.passes(), values), (2, vec![Some(1.0), Some(64.0)]));
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
pub struct CounterSet {
    device: Arc<OpenDevice>,
    handle: Handle,
    passes: u32,
    reasons: Vec<Option<String>>,
    /// The next pass to begin or, while `counting`, the present one.
    pass: u32,
    counting: bool,
}

// SAFETY: the ABI lets any thread use a set; methods that change it take `&mut self`.
unsafe impl Send for CounterSet {}
// SAFETY: as above.
unsafe impl Sync for CounterSet {}

impl CounterSet {
    fn open(device: &Arc<OpenDevice>, names: &[&str]) -> Result<Self> {
        check_names(names).map_err(|error| error.in_operation("counter_set").on_device(&device.name))?;
        let raw: Vec<_> = names.iter().map(|name| Str::new(name)).collect();
        let mut handle = std::ptr::null_mut();
        // SAFETY: the device is open; the names and the out-parameter live during the call.
        device.call("counter_set", |calls, device| unsafe {
            (calls.counters.open)(device, raw.as_ptr(), raw.len(), &raw mut handle)
        })?;
        device.check_made("counter_set", "counter set", handle)?;
        let device = Arc::clone(device);
        let mut set = Self { device, handle, passes: 1, reasons: Vec::new(), pass: 0, counting: false };
        (set.passes, set.reasons) = set.info(names.len())?;
        Ok(set)
    }

    fn info(&self, counters: usize) -> Result<(u32, Vec<Option<String>>)> {
        let mut raw = abi::CounterSetInfo {
            struct_size: crate::end_of!(abi::CounterSetInfo, reason_count),
            passes: 0,
            unavailable_reasons: std::ptr::null(),
            reason_count: 0,
        };
        self.device.call("counter_set", |calls, _| {
            // SAFETY: the set is open and the out-structure lives during the call.
            unsafe { (calls.counters.info)(self.handle, &raw mut raw) }
        })?;
        decode_info(&raw, counters).map_err(|error| self.annotate(error, "counter_set"))
    }

    /// How often the same work must run until every counter has been read.
    #[must_use]
    pub const fn passes(&self) -> u32 {
        self.passes
    }

    /// Why counter `index` of the set cannot be read; `None` if it can, or if there is no such counter.
    #[must_use]
    pub fn unavailable_reason(&self, index: usize) -> Option<&str> {
        self.reasons.get(index)?.as_deref()
    }

    /// Begins the next pass; after the last one, or after [`read`](Self::read), the first, which discards earlier values.
    /// Wait for all work on the device first.
    ///
    /// # Errors
    /// `InvalidArgument` if a pass has begun and not ended; any error of the driver.
    pub fn begin(&mut self) -> Result<()> {
        if self.counting {
            return Err(self.annotate(Error::invalid("a pass has begun; call `end` first"), "begin"));
        }
        let pass = if self.pass < self.passes { self.pass } else { 0 };
        // SAFETY: the set is open, and exclusively borrowed.
        let begun =
            self.device.call("begin", |calls, _| unsafe { (calls.counters.begin)(self.handle, pass) });
        (self.pass, self.counting) = (pass, begun.is_ok());
        begun
    }

    /// Ends the pass. Wait for all work submitted since [`begin`](Self::begin) first.
    ///
    /// # Errors
    /// `InvalidArgument` if no pass has begun; any error of the driver, after which the passes start again.
    pub fn end(&mut self) -> Result<()> {
        if !self.counting {
            return Err(self.annotate(Error::invalid("no pass has begun; call `begin` first"), "end"));
        }
        self.counting = false;
        // SAFETY: the set is open, and exclusively borrowed.
        let ended = self.device.call("end", |calls, _| unsafe { (calls.counters.end)(self.handle) });
        self.pass = if ended.is_ok() { self.pass + 1 } else { 0 };
        ended
    }

    /// Reads the values after the last pass, in the order in which the counters were named; `None` for those without a
    /// value.
    ///
    /// # Errors
    /// `InvalidArgument` unless all passes have ended; any error of the driver.
    pub fn read(&mut self) -> Result<Vec<Option<CounterReading>>> {
        if self.counting || self.pass < self.passes {
            let message =
                format!("{} of {} passes have ended; run the work in each pass", self.pass, self.passes);
            return Err(self.annotate(Error::invalid(message), "read"));
        }
        let mut raw = vec![abi::CounterReading::default(); self.reasons.len()];
        // SAFETY: the set is open, and `raw` has room for one reading per counter.
        self.device.call("read", |calls, _| unsafe {
            (calls.counters.read)(self.handle, raw.as_mut_ptr(), raw.len())
        })?;
        let read: Result<Vec<_>> = raw.iter().map(decode_reading).collect();
        read.map_err(|error| self.annotate(error, "read"))
    }

    /// Runs `work` once per pass and reads the values. `work` returns when everything that it submitted has ended.
    ///
    /// # Errors
    /// Errors of `work`, and of [`begin`](Self::begin), [`end`](Self::end) and [`read`](Self::read).
    pub fn measure(&mut self, mut work: impl FnMut() -> Result<()>) -> Result<Vec<Option<CounterReading>>> {
        self.pass = 0;
        for _ in 0..self.passes {
            self.begin()?;
            let worked = work();
            let ended = self.end();
            worked.and(ended)?;
        }
        self.read()
    }

    fn annotate(&self, error: Error, operation: &str) -> Error {
        error.in_operation(operation).on_device(&self.device.name)
    }
}

impl Drop for CounterSet {
    fn drop(&mut self) {
        if !self.device.must_leak() {
            let _serial = self.device.lock_serial();
            // SAFETY: the set is open, and not used afterwards.
            unsafe { (self.device.calls.counters.close)(self.handle) };
        }
    }
}

fn check_names(names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Err(Error::invalid("no counter is named; `counters` lists them"));
    }
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(**name)) {
        Some(twice) => Err(Error::invalid(format!("the counter \"{twice}\" is named twice"))),
        None => Ok(()),
    }
}

fn decode_info(raw: &abi::CounterSetInfo, counters: usize) -> Result<(u32, Vec<Option<String>>)> {
    if raw.passes == 0 || raw.passes > MAX_COUNTER_PASSES {
        let message = format!("CounterSetInfo.passes is {}; 1 to {MAX_COUNTER_PASSES} are valid", raw.passes);
        return Err(convert::abi_mismatch(message));
    }
    if raw.reason_count == 0 {
        return Ok((raw.passes, vec![None; counters]));
    }
    if raw.reason_count != counters {
        let message = format!("CounterSetInfo.reason_count is {} for {counters} counters", raw.reason_count);
        return Err(convert::abi_mismatch(message));
    }
    let field = "CounterSetInfo.unavailable_reasons";
    // SAFETY: the reasons are borrowed from the set, which is open.
    let reasons = unsafe { convert::borrow_slice(field, raw.unavailable_reasons, counters, MAX_COUNTERS) }?;
    // SAFETY: as above.
    let read = |reason: &Str| unsafe { convert::read_str(field, *reason) };
    let reasons: Result<Vec<_>> =
        reasons.iter().map(|reason| read(reason).map(|text| (!text.is_empty()).then_some(text))).collect();
    Ok((raw.passes, reasons?))
}

/// A value that is not finite, such as a ratio of two counters that are 0, is none.
fn decode_reading(raw: &abi::CounterReading) -> Result<Option<CounterReading>> {
    if raw.flags & abi::READING_VALID == 0 || !raw.value.is_finite() {
        return Ok(None);
    }
    if !(raw.counted > 0.0 && raw.counted <= 1.0) {
        let message =
            format!("CounterReading.counted is {}, which is not a share above 0 and up to 1", raw.counted);
        return Err(convert::abi_mismatch(message));
    }
    let is_ratio = raw.flags & abi::READING_RATIO != 0;
    Ok(Some(CounterReading { value: raw.value, counted: raw.counted, is_ratio }))
}
