//! The calls to a chip: which one is in progress, how long it may take, and why the chip is lost.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::backend::{Level, Log};
use runtime_core::{Error, ErrorKind, Result};

use super::simulator::Simulator;

/// How often a thread that waits for a call checks that the chip still answers.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// How much of the time between two checks counts: while this process is stopped, nothing is late.
const MAX_COUNTED: Duration = Duration::from_secs(1);

/// The state of the thread that makes the calls to a chip.
#[derive(Debug)]
pub(crate) struct Calls {
    /// Its name in messages.
    chip: String,
    is_board: bool,
    state: Mutex<State>,
    log: Log,
}

#[derive(Debug, Default)]
struct State {
    current: Option<Current>,
    lost: Option<Error>,
}

/// A call in progress.
#[derive(Debug)]
struct Current {
    function: String,
    /// How long it has taken so far, without the times when this process was stopped.
    taken: Duration,
    /// When that was counted.
    counted: Instant,
    /// `None`: it takes as long as it needs, as a kernel does.
    limit: Option<Duration>,
    /// The error if it takes longer.
    late: ErrorKind,
}

impl Calls {
    pub(super) fn new(chip: &str, is_board: bool, log: Log) -> Self {
        Self { chip: chip.to_owned(), is_board, state: Mutex::default(), log }
    }

    /// Begins a call, unless the chip is lost. Returns whether it was begun.
    pub(super) fn begin(&self, function: &str, limit: Option<Duration>, late: ErrorKind) -> bool {
        let mut state = self.state.lock();
        if state.lost.is_some() {
            return false;
        }
        let (function, counted) = (function.to_owned(), Instant::now());
        state.current = Some(Current { function, taken: Duration::ZERO, counted, limit, late });
        true
    }

    /// Ends the call in progress.
    pub(super) fn end(&self) {
        self.state.lock().current = None;
    }

    /// Whether the call in progress may take any time.
    pub(super) fn has_unlimited(&self) -> bool {
        self.state.lock().current.as_ref().is_some_and(|current| current.limit.is_none())
    }

    /// Whether the chip is that of a board.
    pub(super) const fn is_board(&self) -> bool {
        self.is_board
    }

    /// Whether the chip is lost, and the library may still use it: a call has not returned, or a board was not closed.
    pub(super) fn is_stuck(&self) -> bool {
        let state = self.state.lock();
        state.lost.is_some() && (self.is_board || state.current.is_some())
    }

    /// Does something that must not be going on when the loss of the chip is reported, or after that.
    ///
    /// # Errors
    /// `DeviceLost` if the simulator has ended, with its output, or a call has not returned in time.
    pub(super) fn while_running<T>(
        &self,
        simulator: Option<&Simulator>,
        act: impl FnOnce() -> T,
    ) -> Result<T> {
        // Every report of the loss takes this lock first.
        let mut state = self.state.lock();
        if let Some(error) = &state.lost {
            return Err(error.clone());
        }
        let (error, is_late) = match simulator.map_or(Ok(()), Simulator::check) {
            Err(error) => (error, false),
            Ok(()) => match state.current.as_mut().and_then(Current::is_late) {
                None => return Ok(act()),
                Some(late) => (self.late(late, simulator), true),
            },
        };
        state.lost = Some(error.clone());
        drop(state);
        if is_late {
            self.log.write(Level::Error, "mppa", error.message());
        }
        Err(error)
    }

    /// The error of a call that has not returned in time. The simulator is ended.
    fn late(
        &self,
        (function, limit, kind): (&str, Duration, ErrorKind),
        simulator: Option<&Simulator>,
    ) -> Error {
        let what = format!("{function} has not returned within {limit:?}");
        match simulator {
            Some(simulator) => simulator.end(kind, &format!("runs, but {what}, so it was ended")),
            None => Error::new(
                kind,
                format!(
                    "{}: {what}, so the chip is lost, and its memory stays allocated; restart this process, with a larger \
                     \"call_timeout_ms\" if the call needs more time",
                    self.chip
                ),
            ),
        }
    }
}

impl Current {
    /// What a late error says; `None` while the call has time left.
    fn is_late(&mut self) -> Option<(&str, Duration, ErrorKind)> {
        self.count(self.counted.elapsed());
        let limit = self.limit.filter(|limit| self.taken >= *limit)?;
        Some((&self.function, limit, self.late))
    }

    /// Counts the time since the last check.
    fn count(&mut self, elapsed: Duration) {
        self.counted = Instant::now();
        self.taken += elapsed.min(MAX_COUNTED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Option<Duration> = Some(Duration::ZERO);

    fn calls() -> Calls {
        Calls::new("chip 7", true, Log::silent())
    }

    #[test]
    fn a_late_call_loses_the_chip_and_no_other_begins() {
        let calls = calls();
        assert!(calls.begin("mppa_offload_free", SOON, ErrorKind::DeviceLost) && !calls.is_stuck());
        for _ in 0..2 {
            let error = calls.while_running(None, || panic!("it is lost")).map(|(): ()| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::DeviceLost);
            for words in ["chip 7", "mppa_offload_free has not returned", "call_timeout_ms", "restart"] {
                assert!(error.message().contains(words), "{error}");
            }
        }
        assert!(calls.is_stuck() && !calls.begin("next", None, ErrorKind::DeviceLost));
        calls.end();
        assert!(calls.is_stuck(), "a board stays open");
        assert!(!calls.begin("next", None, ErrorKind::DeviceLost));
    }

    #[test]
    fn a_call_is_not_late_because_the_process_was_stopped() {
        let calls = calls();
        let limit = 10 * MAX_COUNTED;
        assert!(calls.begin("mppa_offload_alloc", Some(limit), ErrorKind::DeviceLost));
        let count = || calls.state.lock().current.as_mut().unwrap().count(1000 * limit);
        for _ in 0..9 {
            count();
        }
        calls.while_running(None, || ()).unwrap();
        count();
        assert!(calls.while_running(None, || ()).is_err());
    }

    #[test]
    fn a_kernel_takes_as_long_as_it_needs() {
        let calls = calls();
        assert!(calls.begin("exec", None, ErrorKind::DeviceLost) && calls.has_unlimited());
        assert_eq!(calls.while_running(None, || 5).unwrap(), 5);
        calls.end();
        assert!(!calls.has_unlimited());
        assert!(calls.begin("free", Some(Duration::MAX), ErrorKind::DeviceLost) && !calls.has_unlimited());
        calls.while_running(None, || ()).unwrap();
    }
}
