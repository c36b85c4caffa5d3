//! Open sets of counters.

use crate::Result;
use crate::model::counters::CounterReading;

/// An open set of counters. Dropping it abandons a pass that has begun.
pub trait CounterSet: Send + 'static {
    /// How often the same work must run until every counter has been read; at least 1.
    fn passes(&self) -> u32 {
        1
    }

    /// Per counter, why it cannot be read; in the order in which they were opened.
    fn unavailable_reasons(&self) -> Vec<Option<String>>;

    /// Begins pass `pass`, counted from 0. No work of the device is in flight. Pass 0 discards earlier values.
    ///
    /// # Errors
    /// Any error of the driver.
    fn begin(&mut self, pass: u32) -> Result<()>;

    /// Ends the pass. All work submitted since `begin` has ended.
    ///
    /// # Errors
    /// Any error of the driver.
    fn end(&mut self) -> Result<()>;

    /// Reads the values after the last pass, in the order in which the counters were opened; `None` for those without
    /// a value.
    ///
    /// # Errors
    /// Any error of the driver.
    fn read(&mut self) -> Result<Vec<Option<CounterReading>>>;
}
