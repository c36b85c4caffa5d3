//! What is tested.

use crate::exceptions::{self, Exception};

/// Names of backends that must be there, separated by commas: then "not on this machine" is a failure.
const REQUIRE: &str = "RUNTIME_REQUIRE";

/// Which backends and devices are tested, and what is expected of them.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Backend libraries (paths), targets (`host`) and devices (`null:0`); none: every device that is found.
    pub backends: Vec<String>,
    /// Targets of which a device must be usable.
    pub required: Vec<String>,
    /// What is known not to work, and why.
    pub exceptions: &'static [Exception],
}

impl Selection {
    /// Selects `backends`, requires what the environment variable `RUNTIME_REQUIRE` lists, and knows the usual
    /// exceptions.
    #[must_use]
    pub fn new(backends: Vec<String>) -> Self {
        let required = std::env::var(REQUIRE).unwrap_or_default();
        let required = required.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        Self { backends, required: required.collect(), exceptions: exceptions::KNOWN }
    }

    /// Whether the absence of a target is a failure.
    pub(crate) fn requires(&self, target: &str) -> bool {
        self.required.iter().any(|name| name == target)
    }
}

impl Default for Selection {
    /// Every device that is found, as [`Selection::new`] without backends.
    fn default() -> Self {
        Self::new(Vec::new())
    }
}
