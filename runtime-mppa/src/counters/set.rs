//! An open set of counters: its passes over a source of raw values.

use std::collections::BTreeMap;

use runtime_core::backend::CounterSet;
use runtime_core::device::CounterReading;
use runtime_core::{Error, ErrorKind, Result};

use super::{Event, Plan, RawValues, Request};

/// What counts events: a transport.
pub trait CounterSource: Send + 'static {
    /// Starts counting the events in these slots from 0.
    ///
    /// # Errors
    /// Any error of the driver.
    fn start(&mut self, slots: &[(u8, Event)]) -> Result<()>;

    /// Stops counting, and returns the values in the order of the slots.
    ///
    /// # Errors
    /// Any error of the driver.
    fn stop(&mut self) -> Result<Vec<RawValues>>;

    /// Whether the device is simulated, where few events are counted, approximately.
    fn is_simulated(&self) -> bool;
}

/// An open set of counters.
#[derive(Debug)]
pub struct Counters<S> {
    pub(super) source: S,
    requests: Vec<Request>,
    plan: Plan,
    pass: Option<u32>,
    values: BTreeMap<Event, RawValues>,
}

impl<S: CounterSource> Counters<S> {
    /// Opens counters. Those that a simulator does not count take no slot.
    #[must_use]
    pub fn new(source: S, requests: &[Request]) -> Self {
        let counted = requests.iter().filter(|request| is_counted(&source, request));
        let plan = Plan::new(&counted.copied().collect::<Vec<_>>());
        Self { source, requests: requests.to_vec(), plan, pass: None, values: BTreeMap::new() }
    }
}

/// Whether a source counts the event of a request.
fn is_counted(source: &impl CounterSource, request: &Request) -> bool {
    !source.is_simulated() || request.event.is_simulated()
}

impl<S: CounterSource> CounterSet for Counters<S> {
    fn passes(&self) -> u32 {
        self.plan.passes()
    }

    fn unavailable_reasons(&self) -> Vec<Option<String>> {
        let reason = |request: &Request| {
            (!is_counted(&self.source, request))
                .then(|| "simulators count only PCC, EBE and ENIE, approximately; run on a board".to_owned())
        };
        self.requests.iter().map(reason).collect()
    }

    fn begin(&mut self, pass: u32) -> Result<()> {
        if pass == 0 {
            self.values.clear();
        }
        self.pass = None;
        self.source.start(&self.plan.slots(pass).collect::<Vec<_>>())?;
        self.pass = Some(pass);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let pass = self.pass.take().ok_or_else(|| Error::invalid("`end` without `begin`"))?;
        let slots: Vec<_> = self.plan.slots(pass).collect();
        let values = self.source.stop()?;
        if values.len() != slots.len() {
            let message =
                format!("{} events were counted, and {} values came back", slots.len(), values.len());
            return Err(Error::new(ErrorKind::Driver, message));
        }
        self.values.extend(slots.into_iter().map(|(_, event)| event).zip(values));
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<Option<CounterReading>>> {
        let reading = |request: &Request| {
            let raw = self.values.get(&request.event)?;
            // One repeat: the caller divides by the number of its calls.
            Some(CounterReading { value: request.reduce(raw, 1), counted: 1.0, is_ratio: false })
        };
        Ok(self.requests.iter().map(reading).collect())
    }
}
