//! What the command tells of a crash: a benchmark that crashes is seen without it.

/// Something foreign that is going on.
#[derive(Debug)]
pub(crate) struct Doing;

impl Doing {
    pub(crate) fn begin(_: String) -> Self {
        Self
    }
}
