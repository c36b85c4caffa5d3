//! `--resume`: the rows that an interrupted run has measured.

use std::path::Path;

use runtime_core::{Error, Options, Result};
use runtime_harness::{Report, Row, Settings, Spec, describe};

/// Rows that are not measured again.
#[derive(Debug, Default)]
pub(super) struct Resumed(Vec<Row>);

impl Resumed {
    /// Reads the rows of a report, if it exists.
    ///
    /// # Errors
    /// Those of [`Report::read`]; `InvalidArgument` if its devices were opened with other options.
    pub(super) fn read(path: Option<&Path>, options: &Options) -> Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        if !path.exists() {
            return Ok(Self::default());
        }
        let report = Report::read(path)?;
        if report.device_options != describe::options(options) {
            return Err(Error::invalid(format!(
                "--resume {}: its devices were opened with other options; give the same --option values, or another file",
                path.display()
            )));
        }
        Ok(Self(report.rows))
    }

    /// The row of a spec on a device, if it was measured with the same settings.
    pub(super) fn row(&self, spec: &Spec, settings: &Settings, device: &str) -> Option<&Row> {
        self.0.iter().find(|row| row.is_of(spec, settings, device))
    }
}
