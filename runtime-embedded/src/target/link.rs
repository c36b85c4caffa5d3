//! The link between host and firmware.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime_core::code::Register;
use runtime_core::{Error, ErrorKind, Result};

use super::flash_constants::Constant;
use super::trace::{Counts, Window};
use crate::image::Image;

/// For the firmware to start, and to create tensors.
pub(super) const PREPARE_DEADLINE: Duration = Duration::from_secs(60);

/// What a session needs of the way to its firmware.
pub(super) trait Link: Debug + Send {
    /// Replaces the image, together with constants in flash, and lets its firmware start.
    fn flash(&mut self, image: &Arc<Image>, constants: &[Constant<'_>]) -> Result<()>;

    /// Reads memory while the firmware waits.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<()>;

    /// Writes memory while the firmware waits.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()>;

    /// Lets the firmware execute the command in its mailbox.
    ///
    /// # Errors
    /// `Timeout` if it is still running at the deadline.
    fn execute(&mut self, until: Instant) -> Result<()>;

    /// As [`Link::execute`], and counts how often the instruction at each address is executed between the readings of the counter
    /// before and after the calls.
    ///
    /// # Errors
    /// `Unsupported` where the link does not know, which [`super::FunctionTrace::new`] finds before.
    fn trace(&mut self, _window: Window, _until: Instant) -> Result<Counts> {
        Err(Error::unsupported("this link does not report executed instructions"))
    }

    /// As [`Link::execute`], and counts the instructions from the one at `begin` until the firmware waits again.
    ///
    /// # Errors
    /// As for [`Link::trace`].
    fn execute_counted(&mut self, _begin: u64, _until: Instant) -> Result<u64> {
        Err(Error::unsupported("this link does not report executed instructions"))
    }

    /// Reads the registers while the target has stopped.
    ///
    /// # Errors
    /// `Unsupported` where the link does not reach them.
    fn registers(&mut self) -> Result<Vec<Register>> {
        Err(Error::unsupported("over a serial port, registers can be read only after a crash"))
    }

    /// Whether the target can take another image as it is.
    fn is_usable(&mut self) -> bool;
}

/// An error before the program has run, so that it is not the program that has crashed.
pub(super) fn before_run(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Crashed => Error::new(ErrorKind::Io, format!("before its run, {}", error.message())),
        _ => error,
    }
}
