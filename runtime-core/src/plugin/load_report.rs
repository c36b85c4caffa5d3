//! What became of every library and directory that was looked at.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::platform;

/// How far a library came.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// It was looked for, or found.
    Search,
    /// Its manifest was read from the file.
    Manifest,
    /// It was loaded into the process.
    Open,
    /// Its entry point was looked up.
    Symbol,
    /// Its table was negotiated.
    Table,
    /// Its state was made: it is in use.
    Instance,
}

impl fmt::Display for Stage {
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

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The backend is in use.
    Loaded,
    /// There was nothing to do here: no such directory, or a backend that is there already.
    Skipped,
    /// It was refused or does not work; `reason` says why and what to do.
    Failed,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Loaded => "loaded",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        })
    }
}

/// One line of the load report: what became of one library or directory.
///
/// `Display` is that line, as `runtime doctor` prints it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// The library or directory; empty for a backend that is linked in.
    pub path: PathBuf,
    /// Name of the backend, as far as it is known.
    pub target: Option<String>,
    /// Why it was looked at, e.g. `RUNTIME_BACKENDS`.
    pub origin: &'static str,
    /// How far it came.
    pub stage: Stage,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it ended like that, and the remedy.
    pub reason: String,
}

impl LoadReport {
    /// A line about something that is not a library to load.
    pub(crate) fn search(
        path: &Path,
        origin: &'static str,
        outcome: Outcome,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            path: path.to_owned(),
            target: platform::backend_of_file(path).map(str::to_owned),
            origin,
            stage: Stage::Search,
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
        if self.outcome == Outcome::Failed && self.stage != Stage::Search {
            write!(f, ": {}", self.stage)?;
        }
        write!(f, ": {} [{}]", self.reason, self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_where_why_and_how_it_was_found() {
        let mut line = LoadReport::search(
            Path::new("/x/libruntime_a.so"),
            "RUNTIME_BACKENDS",
            Outcome::Failed,
            "no such file",
        );
        assert_eq!(line.to_string(), "failed  /x/libruntime_a.so: no such file [RUNTIME_BACKENDS]");
        line.stage = Stage::Open;
        assert_eq!(line.to_string(), "failed  /x/libruntime_a.so: dlopen: no such file [RUNTIME_BACKENDS]");
        let linked =
            LoadReport { target: Some("a".into()), outcome: Outcome::Loaded, path: PathBuf::new(), ..line };
        assert_eq!(linked.to_string(), "loaded  a: no such file [RUNTIME_BACKENDS]");
    }
}
