//! How thoroughly peaks are measured.

use std::time::Duration;

/// How thoroughly peaks are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Some 10 s per device.
    #[default]
    Full,
    /// Some 3 s per device, with wider intervals.
    Quick,
}

impl Effort {
    const fn choose<T: Copy>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }

    pub(super) const fn samples(self) -> usize {
        self.choose(15, 7)
    }

    /// Minimum duration of a sample.
    pub(super) const fn sample(self) -> Duration {
        Duration::from_micros(self.choose(15_000, 3000))
    }

    /// Minimum duration of a call.
    pub(super) const fn call(self) -> Duration {
        Duration::from_micros(self.choose(2000, 1000))
    }

    /// Time limit of one figure.
    pub(super) const fn budget(self) -> Duration {
        Duration::from_millis(self.choose(1000, 150))
    }
}
