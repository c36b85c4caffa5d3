//! The options of a run of the suite on a command line.

use std::path::PathBuf;

use clap::Args;

use crate::selection::Selection;

/// What the programs that run the suite take beside the backends.
#[derive(Args, Clone, Debug, Default)]
pub struct SuiteArguments {
    /// Take the suite's kernels from the files suite.FORMAT of a folder, for devices that take none of the suite's own formats
    #[arg(long, value_name = "DIR")]
    kernels: Option<PathBuf>,
    /// Do not fail for a device on which no kernel of the suite was launched
    #[arg(long)]
    allow_no_launches: bool,
}

impl SuiteArguments {
    /// Selects what [`Selection::new`] does, with these options.
    #[must_use]
    pub fn select(&self, backends: Vec<String>) -> Selection {
        let (kernels, allow_no_launches) = (self.kernels.clone(), self.allow_no_launches);
        Selection { kernels, allow_no_launches, ..Selection::new(backends) }
    }
}
