//! Known exceptions: cases that a backend does not support or is expected to fail.

/// What is expected of the cases that match an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The backend does not support this: the case is not run.
    Unsupported,
    /// The case is run and must fail; if it passes, the run fails, which keeps the table current.
    ExpectedFailure,
}

/// An entry of the table.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// Name of the target.
    pub backend: &'static str,
    /// `topic::case`, or `topic::*`.
    pub pattern: &'static str,
    /// What to do with the case.
    pub expectation: Expectation,
    /// The reason, for the report.
    pub reason: &'static str,
}

/// The exceptions of the backends of this repository: none.
pub(crate) const KNOWN: &[Exception] = &[];

impl Exception {
    fn matches(&self, backend: &str, case: &str) -> bool {
        let named = match self.pattern.strip_suffix('*') {
            Some(start) => case.starts_with(start),
            None => case == self.pattern,
        };
        self.backend == backend && named
    }
}

/// The first exception that matches a case of a backend.
pub(crate) fn find<'a>(table: &'a [Exception], backend: &str, case: &str) -> Option<&'a Exception> {
    table.iter().find(|exception| exception.matches(backend, case))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn exception(pattern: &'static str) -> Exception {
        Exception { backend: "b", pattern, expectation: Expectation::Unsupported, reason: "because" }
    }

    #[test]
    fn a_pattern_is_a_case_or_a_topic() {
        let table = [exception("launch::one"), exception("graphs::*")];
        assert!(find(&table, "b", "launch::one").is_some());
        assert!(find(&table, "b", "launch::one_more").is_none());
        assert!(find(&table, "b", "graphs::any").is_some());
        assert!(find(&table, "c", "graphs::any").is_none());
    }
}
