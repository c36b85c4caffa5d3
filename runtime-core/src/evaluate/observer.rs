//! The program's view of the samples of an evaluation.

/// When an [`Observer`] is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The first sample is about to begin.
    BeforeSamples,
    /// The last sample has ended.
    AfterSamples,
}

/// Called around the samples of an evaluation.
pub type Observer<'a> = Box<dyn FnMut(Moment) + Send + 'a>;
