//! The program's view of an evaluation while it runs.

/// When an [`Observer`] is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Calls have returned: of the warm-up, of the calibration or of a sample.
    Window,
    /// The first sample is about to begin.
    BeforeSamples,
    /// The last sample has ended.
    AfterSamples,
}

/// Called while kernels are timed, between windows of calls.
pub type Observer<'a> = Box<dyn FnMut(Moment) + Send + 'a>;
