//! The device options of staging, which are the same in every backend.

use crate::model::options::OptionSpec;
use crate::{Options, Result};

const SLOT_KIB: &str = "staging_slot_kib";
const THREADS: &str = "staging_threads";

/// How large transfers are staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StagingOptions {
    /// Size of a slot.
    pub slot_bytes: usize,
    /// Most threads of a transfer.
    pub threads: usize,
}

impl StagingOptions {
    /// Declares the options, with these values by default.
    #[must_use]
    pub fn declare(self) -> [OptionSpec; 2] {
        [
            OptionSpec::device(
                SLOT_KIB,
                (self.slot_bytes >> 10) as i64,
                "Size of a slot through which large transfers of pageable memory are staged, in KiB, 64 to 65536. Fixed when the \
                 device is first opened.",
            ),
            OptionSpec::device(
                THREADS,
                self.threads as i64,
                "Threads that stage a large transfer of pageable memory, 1 to 64; by default at most one per processor. Fixed \
                 when the device is first opened.",
            ),
        ]
    }

    /// Reads the options; those that are not given have these values, and no more threads than there are processors.
    ///
    /// # Errors
    /// `InvalidArgument` for a value out of range.
    pub fn parse(self, options: &Options) -> Result<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.min(processors);
        let number = |key: &str, default: usize, range| {
            let value = options.integer_within(key, default as i64, range);
            value.map(|value| usize::try_from(value).unwrap_or(default))
        };
        let slot_kib = number(SLOT_KIB, self.slot_bytes >> 10, 64..=64 << 10)?;
        Ok(Self { slot_bytes: slot_kib << 10, threads: number(THREADS, threads, 1..=64)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::options::OptionScope;

    const DEFAULTS: StagingOptions = StagingOptions { slot_bytes: 1 << 20, threads: 8 };

    #[test]
    fn options_out_of_range_are_refused() {
        let given = Options::new().with(SLOT_KIB, 64_i64).with(THREADS, 64_i64);
        assert_eq!(DEFAULTS.parse(&given).unwrap(), StagingOptions { slot_bytes: 64 << 10, threads: 64 });
        let defaults = DEFAULTS.parse(&Options::new()).unwrap();
        assert!(defaults.slot_bytes == 1 << 20 && (1..=8).contains(&defaults.threads));
        for (key, range) in [(SLOT_KIB, "64 to 65536"), (THREADS, "1 to 64")] {
            for value in [-1, 0, i64::MIN, i64::MAX] {
                let error = DEFAULTS.parse(&Options::new().with(key, value)).unwrap_err();
                assert!(error.message().contains(key) && error.message().contains(range), "{error}");
            }
        }
    }

    #[test]
    fn a_name_of_another_backend_or_version_gets_the_valid_one() {
        for old in ["upload_threads", "download_threads"] {
            let given = Options::new().with(old, 4_i64);
            let error = given.validate(&DEFAULTS.declare(), OptionScope::Device).unwrap_err();
            assert!(error.message().contains(old) && error.message().contains(THREADS), "{error}");
        }
    }
}
