//! Data of timed windows that changes between them.

use crate::Result;

/// Writes what the calls of a window begin with, and looks at what they have left: for kernels that are not trusted to do in each call
/// what they did in the one that was checked.
///
/// Both happen outside of the timed part, and in each window: those of the warm-up and of the calibration, too. Calls that validate
/// the kernel are no windows, and neither are those of a no-op kernel.
pub trait WindowData: Send {
    /// A window is about to make so many calls with a set of arguments: 0 for [`args`](super::Evaluation::args), 1 for the first of
    /// [`other_args`](super::Evaluation::other_args). Returns how many calls are made before it, which are not timed: one brings the
    /// data into the caches.
    ///
    /// # Errors
    /// Any error, which ends the evaluation.
    fn prepare(&mut self, set: usize, number: u64) -> Result<u64>;

    /// The window has ended, and the device is idle.
    ///
    /// # Errors
    /// Any error, which ends the evaluation.
    fn check(&mut self, set: usize, number: u64) -> Result<()>;
}
