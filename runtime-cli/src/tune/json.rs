//! The JSON of `runtime tune --json`: a report as of `runtime eval`, the best row first, and the ranking.

use runtime_core::{Error, ErrorKind, Result};
use runtime_harness::Report;
use runtime_harness::tune::{Ranking, Tuning};
use serde_json::{Value, json};

pub(super) fn document(results: &[(&Tuning, &Ranking)], mut report: Report) -> Result<String> {
    report.complete = results.iter().all(|(tuning, _)| tuning.complete);
    let mut tunings = Vec::new();
    for (tuning, ranking) in results {
        let first = report.rows.len();
        report.rows.extend(ranking.candidates.iter().map(|candidate| candidate.trial.row.clone()));
        let candidates = ranking.candidates.iter().enumerate().map(|(at, candidate)| {
            json!({
                "row": first + at,
                "rank": candidate.rank,
                "is_default": candidate.trial.is_default,
                "round": candidate.trial.rung,
                "is_logged": candidate.trial.is_logged,
                "speedup": candidate.speedup,
                "speedup_interval": candidate.speedup_interval,
            })
        });
        let candidates: Vec<Value> = candidates.collect();
        tunings.push(json!({
            "devices": tuning.devices,
            "complete": tuning.complete,
            "tied": ranking.tied(),
            "candidates": candidates,
        }));
    }
    let failed = |error: serde_json::Error| Error::new(ErrorKind::Internal, format!("JSON: {error}"));
    let mut document = serde_json::to_value(&report).map_err(failed)?;
    document["tunings"] = tunings.into();
    Ok(format!("{document:#}\n"))
}
