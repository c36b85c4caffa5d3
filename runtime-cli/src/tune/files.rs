//! The outputs of `runtime tune`.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use runtime_core::Result;
use runtime_harness::report::csv;
use runtime_harness::tune::{Ranked, Ranking, Tuning, best_spec};
use runtime_harness::{Overrides, Report, Spec};

use super::{TuneArguments, json, text};
use crate::output::{self, Destination};
use crate::report::{made, median};

/// Where results go.
pub(super) struct Files {
    overrides: Overrides,
    /// The report without its rows.
    report: Report,
    top: usize,
    /// With the folder that its paths are relative to.
    best: Option<(Destination, PathBuf)>,
    json: Option<Destination>,
    csv: Option<Destination>,
    markdown: Option<Destination>,
    shows_table: bool,
}

impl Files {
    /// Opens all outputs, so that a wrong path fails before any work is done.
    pub(super) fn open(arguments: &TuneArguments, overrides: Overrides, report: Report) -> Result<Self> {
        let open = |path: &Option<PathBuf>| path.as_deref().map(Destination::open).transpose();
        let (json, csv, markdown) =
            (open(&arguments.json)?, open(&arguments.csv)?, open(&arguments.markdown)?);
        let best = open(&arguments.best)?.zip(arguments.best.as_deref().map(folder));
        let shows_table = ![&json, &csv, &markdown].into_iter().flatten().any(Destination::is_standard);
        Ok(Self { overrides, report, top: arguments.top, best, json, csv, markdown, shows_table })
    }

    /// Writes everything, once.
    pub(super) fn write(&mut self, spec: &Spec, results: &[(&Tuning, &Ranking)]) -> Result<()> {
        if std::mem::take(&mut self.shows_table) {
            output::print(&text::tables(spec, results, self.top))?;
        }
        if let Some(file) = self.json.take() {
            file.write(&json::document(results, self.report.clone())?)?;
        }
        if let Some(file) = self.csv.take() {
            let candidates = results.iter().flat_map(|(_, ranking)| &ranking.candidates);
            let lines: Result<String> =
                candidates.map(|candidate| csv::line(&candidate.trial.row, &self.report)).collect();
            file.write(&(csv::header()? + &lines?))?;
        }
        if let Some(file) = self.markdown.take() {
            file.write(&(made(&self.report) + &text::markdown(spec, results, self.top)))?;
        }
        if let (Some((file, folder)), Some((_, ranking))) = (self.best.take(), results.first())
            && let Some(best) = ranking.best()
        {
            let overrides = self.overrides.with(&best.trial.overrides);
            file.write(&best_spec(&spec.path, &overrides, &folder, &comment(spec, best, ranking))?)?;
        }
        Ok(())
    }
}

/// The folder of a file, which may be a link to a file elsewhere.
fn folder(path: &Path) -> PathBuf {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.parent().unwrap_or(Path::new("")).to_owned()
}

/// How a spec was found.
fn comment(spec: &Spec, best: &Ranked, ranking: &Ranking) -> String {
    let row = &best.trial.row;
    let device = row.device_info.as_ref().and_then(|info| info["name"].as_str()).unwrap_or("unknown");
    let time = row.measurement.as_ref().map(median).unwrap_or_default();
    let speedup = match (best.trial.is_default, best.speedup) {
        (true, _) => "with the spec's own values".to_owned(),
        (_, Some(speedup)) => format!("{speedup:.2} times as fast as with the spec's own values"),
        _ => "the spec's own values do not run".to_owned(),
    };
    let tied = match ranking.tied() {
        0 | 1 => String::new(),
        tied => format!("\n{} further candidates cannot be told from it.", tied - 1),
    };
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    format!(
        "Found by `runtime tune` in {} on {now}\nas the best of {} candidates on {} ({device}): {time}, {speedup}.{tied}",
        spec.path.display(),
        ranking.candidates.len(),
        row.device
    )
}
