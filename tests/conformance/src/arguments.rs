//! Command-line options of the suite.

use std::path::PathBuf;

use clap::Args;

use crate::selection::Selection;

/// The options of a program that runs the suite, apart from the backends.
#[derive(Args, Clone, Debug, Default)]
pub struct SuiteArguments {
    /// Load the suite's kernels from the files suite.FORMAT of a folder, for devices that support none of the built-in formats
    #[arg(long, value_name = "DIR")]
    kernels: Option<PathBuf>,
    /// Do not fail when no kernel of the suite was launched on a device
    #[arg(long)]
    allow_no_launches: bool,
}

impl SuiteArguments {
    /// [`Selection::new`] with these options.
    #[must_use]
    pub fn select(&self, backends: Vec<String>) -> Selection {
        let (kernels, allow_no_launches) = (self.kernels.clone(), self.allow_no_launches);
        Selection { kernels, allow_no_launches, ..Selection::new(backends) }
    }
}
