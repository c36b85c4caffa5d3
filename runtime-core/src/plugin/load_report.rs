//! The load report: the result for every library and directory that the search considered.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::platform;

/// The last stage of loading that a library reached.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadStage {
    /// The search for the library.
    Search,
    /// Reading the manifest from the file.
    Manifest,
    /// Loading the library into the process.
    Open,
    /// Looking up the entry point.
    Symbol,
    /// Negotiating the function table.
    Table,
    /// Opening an instance.
    Instance,
}

impl fmt::Display for LoadStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Search => "search",
            Self::Manifest => "manifest",
            Self::Open => "dlopen",
            Self::Symbol => "symbol",
            Self::Table => "table",
            Self::Instance => "instance",
        })
    }
}

/// The result of loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadOutcome {
    /// The backend is in use.
    Loaded,
    /// Nothing to load: the directory does not exist, or the backend is already loaded.
    Skipped,
    /// The library was rejected or failed to load; `reason` states why, and the remedy.
    Failed,
}

impl fmt::Display for LoadOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Loaded => "loaded",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        })
    }
}

/// One line of the load report: the result for one library or directory.
///
/// `Display` formats it as `runtime doctor` prints it.
///
/// ```
/// # use runtime_core::Runtime;
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// use runtime_core::backend::LoadOutcome;
///
/// let report = runtime.load_report();
/// for line in report {
///     println!("{line}"); // loaded  null: null 0.1.0 (ABI 1.0) [linked in]
/// }
/// assert_eq!((report.len(), report[0].outcome), (1, LoadOutcome::Loaded));
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// The library or directory; empty for a statically linked backend.
    pub path: PathBuf,
    /// Name of the backend, if known.
    pub target: Option<String>,
    /// Where the path came from, e.g. `RUNTIME_BACKENDS`.
    pub origin: &'static str,
    /// The stage reached.
    pub stage: LoadStage,
    /// The result of loading.
    pub outcome: LoadOutcome,
    /// The reason for the result, and the remedy.
    pub reason: String,
}

impl LoadReport {
    /// A line for a path that is not loaded.
    pub(crate) fn search(
        path: &Path,
        origin: &'static str,
        outcome: LoadOutcome,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            target: platform::backend_of_file(path).map(str::to_owned),
            origin,
            stage: LoadStage::Search,
            outcome,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8}", self.outcome)?;
        match &self.target {
            Some(target) if self.path.as_os_str().is_empty() => write!(f, "{target}")?,
            _ => write!(f, "{}", self.path.display())?,
        }
        if self.outcome == LoadOutcome::Failed && self.stage != LoadStage::Search {
            write!(f, ": {}", self.stage)?;
        }
        write!(f, ": {} [{}]", self.reason, self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_outcome_path_stage_reason_and_origin() {
        let mut line = LoadReport::search(
            Path::new("/x/libruntime_a.so"),
            "RUNTIME_BACKENDS",
            LoadOutcome::Failed,
            "no such file",
        );
        assert_eq!(line.to_string(), "failed  /x/libruntime_a.so: no such file [RUNTIME_BACKENDS]");
        line.stage = LoadStage::Open;
        assert_eq!(line.to_string(), "failed  /x/libruntime_a.so: dlopen: no such file [RUNTIME_BACKENDS]");
        let linked = LoadReport {
            target: Some("a".into()),
            outcome: LoadOutcome::Loaded,
            path: PathBuf::new(),
            ..line
        };
        assert_eq!(linked.to_string(), "loaded  a: no such file [RUNTIME_BACKENDS]");
    }
}
