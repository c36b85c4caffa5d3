//! Fault injection through device options, for the tests of core.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use runtime_core::backend::{OptionSpec, did_you_mean};
use runtime_core::{Error, ErrorKind, Options, Result};

/// Functions of the ABI's tables that can be made to fail.
const FALLIBLE: [&str; 44] = [
    "open_device",
    "memory_usage",
    "peer_access",
    "telemetry",
    "counters",
    "open_counters",
    "begin_counters",
    "end_counters",
    "read_counters",
    "throttle_reasons",
    "processes",
    "allocate",
    "import_device_memory",
    "load",
    "compiler_identity",
    "compile",
    "fits",
    "kernel",
    "occupancy",
    "open_queue",
    "open_native_queue",
    "launch",
    "write",
    "read",
    "copy",
    "copy_2d",
    "fill",
    "noop",
    "timestamp",
    "read_timestamp",
    "signal",
    "flush",
    "poll",
    "wait",
    "wait_for",
    "hold",
    "resume",
    "instantiate",
    "update",
    "replay",
    "flash",
    "run",
    "inspect",
    "any",
];
/// Functions without a status, which can only panic or hang.
const OTHERS: [&str; 10] = [
    "close_device",
    "free",
    "unload",
    "symbols",
    "release_kernel",
    "kernel_info",
    "close_queue",
    "close_graph",
    "close_counters",
    "failure",
];

/// The error kinds of `fail_call`.
const KINDS: [(&str, ErrorKind); 8] = [
    ("driver", ErrorKind::Driver),
    ("unsupported", ErrorKind::Unsupported),
    ("invalid_argument", ErrorKind::InvalidArgument),
    ("out_of_memory", ErrorKind::OutOfMemory),
    ("out_of_resources", ErrorKind::OutOfResources),
    ("timeout", ErrorKind::Timeout),
    ("device_lost", ErrorKind::DeviceLost),
    ("internal", ErrorKind::Internal),
];

/// The options, with their documentation.
pub(crate) fn options() -> Vec<OptionSpec> {
    let mut slots = [&FALLIBLE[..FALLIBLE.len() - 1], &OTHERS].concat();
    slots.sort_unstable();
    vec![
        OptionSpec::device(
            "fail_call",
            "",
            "SLOT:N[:KIND]: the N-th call of this function fails; `any` counts all functions; may be repeated.",
        ),
        OptionSpec::device("panic_in", "", "Panics in every call of this function.").choices(&slots),
        OptionSpec::device("hang_in", "", "Never returns from this function.").choices(&slots),
        OptionSpec::device(
            "fail_ticket",
            0,
            "This ticket of each queue fails, and with it all later ones; 0: none.",
        ),
        OptionSpec::device(
            "delay_us",
            0,
            "Each submission completes this many microseconds late; at most a day.",
        ),
        OptionSpec::device(
            "lose_after",
            -1,
            "The device is lost after this many submissions; negative: never.",
        ),
        OptionSpec::device("out_of_order", false, "Always advances the newest queue first."),
        OptionSpec::device(
            "reorders",
            false,
            "Runs the submissions of a queue in reverse order, as far as `SubmitInfo::after` allows.",
        ),
        OptionSpec::device("needs_flush", false, "Submissions are batched: nothing runs before `flush`."),
        OptionSpec::device("needs_signals", false, "Only signaled tickets are reported as completed."),
        OptionSpec::device(
            "most_held",
            0,
            "A held queue is resumed after this many submissions, as if it were full; 0: never.",
        ),
        OptionSpec::device(
            "out_of_memory_after_bytes",
            -1,
            "Allocations beyond this many bytes in total fail; negative: never.",
        ),
        OptionSpec::device("open_fails", false, "Opening the device fails."),
    ]
}

/// A day.
const MOST_DELAY_US: i64 = 86_400_000_000;

/// The faults selected for a device.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Whether any call may fail; otherwise this is all that a call checks.
    armed: bool,
    calls: Vec<FailedCall>,
    panic_in: Option<String>,
    hang_in: Option<String>,
    fail_ticket: u64,
    delay: Duration,
    lose_after: Option<u64>,
    submitted: AtomicU64,
    /// Launches and no-ops so far, which the simulated counters report.
    launches: AtomicU64,
    out_of_order: bool,
    reorders: bool,
    needs_flush: bool,
    needs_signals: bool,
    /// How many submissions a held queue has room for; 0: any number.
    most_held: u64,
    most_bytes: Option<u64>,
}

/// One `fail_call`.
#[derive(Debug)]
struct FailedCall {
    slot: String,
    nth: u64,
    kind: ErrorKind,
    seen: AtomicU64,
}

impl Faults {
    pub(crate) fn new(options: &Options) -> Result<Arc<Self>> {
        if options.flag("open_fails") {
            return Err(Error::new(ErrorKind::Driver, "refused, as option \"open_fails\" asks"));
        }
        // For these two options, a negative number means never.
        let number = |key: &str| options.integer(key).and_then(|n| u64::try_from(n).ok());
        let count = |key: &str, most: i64| {
            options.integer_within(key, 0, 0..=most).map(|n| u64::try_from(n).unwrap_or(0))
        };
        let faults = Self {
            calls: options.texts("fail_call").map(FailedCall::parse).collect::<Result<_>>()?,
            panic_in: options.text("panic_in").map(str::to_owned),
            hang_in: options.text("hang_in").map(str::to_owned),
            fail_ticket: count("fail_ticket", i64::MAX)?,
            delay: Duration::from_micros(count("delay_us", MOST_DELAY_US)?),
            lose_after: number("lose_after"),
            out_of_order: options.flag("out_of_order"),
            reorders: options.flag("reorders"),
            needs_flush: options.flag("needs_flush"),
            needs_signals: options.flag("needs_signals"),
            most_held: count("most_held", i64::MAX)?,
            most_bytes: number("out_of_memory_after_bytes"),
            ..Self::default()
        };
        let named = faults.panic_in.is_some() || faults.hang_in.is_some();
        let armed = named || !faults.calls.is_empty() || faults.lose_after.is_some();
        Ok(Arc::new(Self { armed, ..faults }))
    }

    /// Called first in every function that can fail.
    #[inline]
    pub(crate) fn call(&self, slot: &str) -> Result<()> {
        if self.armed { self.inject(slot) } else { Ok(()) }
    }

    /// Called first in every submission.
    #[inline]
    pub(crate) fn submit(&self, slot: &str) -> Result<()> {
        self.call(slot)?;
        if self.lose_after.is_some() {
            self.submitted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Counts a launch or a no-op.
    #[inline]
    pub(crate) fn note_launch(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    /// Launches and no-ops so far.
    pub(crate) fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    /// Called first in every function that has no status to return.
    pub(crate) fn enter(&self, slot: &str) {
        assert!(self.panic_in.as_deref() != Some(slot), "as option \"panic_in\" asks");
        while self.hang_in.as_deref() == Some(slot) {
            std::thread::park();
        }
    }

    #[cold]
    fn inject(&self, slot: &str) -> Result<()> {
        self.enter(slot);
        if self.lose_after.is_some_and(|most| self.submitted.load(Ordering::Relaxed) >= most) {
            return Err(Error::new(
                ErrorKind::DeviceLost,
                "lost, as option \"lose_after\" asks; open the device again",
            ));
        }
        let matching = self.calls.iter().filter(|call| call.slot == slot || call.slot == "any");
        let failed = matching.filter(|call| call.seen.fetch_add(1, Ordering::Relaxed) + 1 == call.nth);
        // Every matching entry counts the call, even if an earlier one fails it.
        match failed.collect::<Vec<_>>().first() {
            Some(call) => Err(Error::new(
                call.kind,
                format!("call {} of {slot} fails, as option \"fail_call\" asks", call.nth),
            )),
            None => Ok(()),
        }
    }

    /// Fails if `ticket` is the one that shall fail.
    #[inline]
    pub(crate) fn ticket(&self, ticket: u64) -> Result<()> {
        if ticket == self.fail_ticket && ticket != 0 {
            return Err(Error::new(
                ErrorKind::Failed,
                format!("ticket {ticket} fails, as option \"fail_ticket\" asks"),
            ));
        }
        Ok(())
    }

    /// Fails if `bytes` more than `used` exceed the limit.
    pub(crate) fn allocate(&self, used: u64, bytes: usize) -> Result<()> {
        match self.most_bytes {
            Some(most) if used.saturating_add(bytes as u64) > most => Err(Error::new(
                ErrorKind::OutOfMemory,
                format!(
                    "no room for {bytes} bytes: {used} of {most} are used, as option \"out_of_memory_after_bytes\" asks"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Whether submissions run only when the queue is polled.
    #[inline]
    pub(crate) fn deferred(&self) -> bool {
        self.out_of_order || self.reorders || self.needs_flush || !self.delay.is_zero()
    }

    pub(crate) const fn delay(&self) -> Duration {
        self.delay
    }

    pub(crate) const fn out_of_order(&self) -> bool {
        self.out_of_order
    }

    pub(crate) const fn reorders(&self) -> bool {
        self.reorders
    }

    pub(crate) const fn needs_flush(&self) -> bool {
        self.needs_flush
    }

    /// Whether a held queue is full with this many submissions.
    pub(crate) const fn fills_a_hold(&self, submissions: u64) -> bool {
        self.most_held != 0 && submissions >= self.most_held
    }

    pub(crate) const fn needs_signals(&self) -> bool {
        self.needs_signals
    }
}

impl FailedCall {
    fn parse(text: &str) -> Result<Self> {
        let mut parts = text.split(':');
        let (slot, nth, kind) =
            (parts.next().unwrap_or_default(), parts.next(), parts.next().unwrap_or("driver"));
        if !FALLIBLE.contains(&slot) {
            return Err(Error::invalid(format!(
                "fail_call: no function \"{slot}\" to fail; {}",
                did_you_mean(slot, &FALLIBLE)
            )));
        }
        let nth = nth.and_then(|nth| nth.parse().ok()).filter(|&nth| nth > 0);
        let nth = nth.ok_or_else(|| {
            Error::invalid(format!("fail_call: \"{text}\" has no call number; write \"{slot}:1\""))
        })?;
        let kinds = KINDS.map(|(name, _)| name);
        let (_, kind) = KINDS.into_iter().find(|(name, _)| *name == kind).ok_or_else(|| {
            Error::invalid(format!("fail_call: unknown kind \"{kind}\"; {}", did_you_mean(kind, &kinds)))
        })?;
        Ok(Self { slot: slot.to_owned(), nth, kind, seen: AtomicU64::new(0) })
    }
}

/// Panics when dropped, if selected: a field of every object whose release function has no status.
#[derive(Debug)]
pub(crate) struct OnDrop {
    faults: Arc<Faults>,
    slot: &'static str,
}

impl OnDrop {
    pub(crate) fn new(faults: &Arc<Faults>, slot: &'static str) -> Self {
        Self { faults: Arc::clone(faults), slot }
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        // A panic during a panic would abort the process.
        if !std::thread::panicking() {
            self.faults.enter(self.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_call_fails_once() {
        let faults = Faults::new(&Options::new().with("fail_call", "launch:2:out_of_resources")).unwrap();
        assert!(faults.call("launch").is_ok() && faults.call("write").is_ok());
        assert_eq!(faults.call("launch").unwrap_err().kind(), ErrorKind::OutOfResources);
        assert!(faults.call("launch").is_ok());
    }

    #[test]
    fn a_lost_device_stays_lost() {
        let faults = Faults::new(&Options::new().with("lose_after", 1)).unwrap();
        faults.submit("launch").unwrap();
        for _ in 0..2 {
            assert_eq!(faults.call("poll").unwrap_err().kind(), ErrorKind::DeviceLost);
        }
    }

    #[test]
    fn errors_of_invalid_options_name_the_remedy() {
        for (text, remedy) in
            [("lauch:1", "did you mean \"launch\""), ("launch", "launch:1"), ("launch:1:lost", "device_lost")]
        {
            let error = Faults::new(&Options::new().with("fail_call", text)).unwrap_err();
            assert!(error.message().contains(remedy), "{error}");
        }
        for (key, value) in [("delay_us", -1), ("delay_us", i64::MAX), ("fail_ticket", -1)] {
            let error = Faults::new(&Options::new().with(key, value)).unwrap_err();
            assert!(error.message().contains(key) && error.message().contains("give 0 to"), "{error}");
        }
    }
}
