//! The ranked tables of `runtime tune`.

use std::collections::BTreeMap;
use std::fmt::Write;

use runtime_harness::Spec;
use runtime_harness::printable::printable;
use runtime_harness::tune::{Ranked, Ranking, Trial, TrialClass, Tuning};

use crate::report::{escaped, headline, median, significant, status};
use crate::table::Table;

/// Number of failures that are listed.
const MAX_FAILURES: usize = 20;

/// The tables, one for each device or group of devices.
pub(super) fn tables(spec: &Spec, results: &[(&Tuning, &Ranking)], top: usize) -> String {
    let table = |(tuning, ranking): &(&Tuning, &Ranking)| {
        let mut table = Table::new(&header(ranking));
        shown(ranking, top).for_each(|candidate| table.row(cells(candidate, ranking)));
        let table = table.to_string();
        let table = if has_any(ranking) { table + "\n" } else { String::new() };
        format!("{}\n{table}{}", title(spec, tuning), notes(tuning, ranking, top).join("\n") + "\n")
    };
    results.iter().map(table).collect::<Vec<_>>().join("\n")
}

/// The tables as Markdown.
pub(super) fn markdown(spec: &Spec, results: &[(&Tuning, &Ranking)], top: usize) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let table = |(tuning, ranking): &(&Tuning, &Ranking)| {
        let header: Vec<String> = header(ranking).iter().map(|name| (*name).to_owned()).collect();
        let rule: Vec<String> = header.iter().map(|_| "---".to_owned()).collect();
        let mut text = format!("{}\n\n{}{}", escaped(&title(spec, tuning)), line(&header), line(&rule));
        for candidate in shown(ranking, top) {
            let cells: Vec<String> = cells(candidate, ranking).iter().map(|cell| escaped(cell)).collect();
            text += &line(&cells);
        }
        let notes = notes(tuning, ranking, top);
        text + "\n" + &notes.iter().map(|note| format!("- {}\n", escaped(note.trim()))).collect::<String>()
    };
    results.iter().map(table).collect::<Vec<_>>().join("\n")
}

fn title(spec: &Spec, tuning: &Tuning) -> String {
    format!("{} on {}", spec.name, tuning.devices.join(", "))
}

fn has_any(ranking: &Ranking) -> bool {
    ranking.best().is_some()
}

/// Several rounds; most candidates take part only in the first.
fn has_rounds(ranking: &Ranking) -> bool {
    ranking.candidates.iter().any(|candidate| candidate.trial.rung > 0)
}

fn header(ranking: &Ranking) -> Vec<&'static str> {
    let mut header = vec!["rank", "values", "status", "median", "GFLOP/s", "GB/s", "speed-up"];
    if has_rounds(ranking) {
        header.push("round");
    }
    header
}

/// The first candidates, all that are tied for the best, and the spec's own values.
fn shown(ranking: &Ranking, top: usize) -> impl Iterator<Item = &Ranked> {
    let ran = ranking.of_class(TrialClass::Ran).enumerate();
    let is_shown = move |(at, candidate): &(usize, &Ranked)| {
        *at < top || candidate.rank == Some(1) || candidate.trial.is_default
    };
    ran.filter(is_shown).map(|(_, candidate)| candidate)
}

fn values(trial: &Trial) -> String {
    match trial.is_default {
        true => "the spec's own".to_owned(),
        false => trial.overrides.describe().trim().to_owned(),
    }
}

fn cells(candidate: &Ranked, ranking: &Ranking) -> Vec<String> {
    let rank = candidate.rank.map_or_else(String::new, |rank| rank.to_string());
    let is_tied = candidate.rank == Some(1) && ranking.tied() > 1;
    let mut cells = vec![if is_tied { format!("{rank} =") } else { rank }, values(&candidate.trial)];
    if let Some(measurement) = &candidate.trial.row.measurement {
        let rate = |rate: Option<f64>| rate.map_or_else(|| "—".to_owned(), significant);
        cells.push(status(&candidate.trial.row));
        cells.push(median(measurement));
        cells.extend([rate(measurement.gflops_per_s()), rate(measurement.gbytes_per_s())]);
    }
    let interval = candidate.speedup_interval.filter(|_| !candidate.trial.is_default);
    let interval = interval.map_or_else(String::new, |[low, high]| format!(" ({low:.2} to {high:.2})"));
    cells.push(candidate.speedup.map_or_else(|| "—".to_owned(), |ratio| format!("{ratio:.2}{interval}")));
    if has_rounds(ranking) {
        let round = candidate.trial.rung + 1;
        cells.push(if candidate.trial.is_default { "—".to_owned() } else { round.to_string() });
    }
    cells
}

/// What the table does not say.
fn notes(tuning: &Tuning, ranking: &Ranking, top: usize) -> Vec<String> {
    let count = |class| ranking.of_class(class).count();
    let (ran, skipped) = (count(TrialClass::Ran), count(TrialClass::Skipped));
    let (wrong, failed) = (count(TrialClass::Wrong), count(TrialClass::Failed));
    let mut notes = vec![format!(
        "{} candidates: {ran} ran, {skipped} skipped, {wrong} wrong, {failed} failed",
        ranking.candidates.len()
    )];
    let hidden = ran - shown(ranking, top).count();
    if hidden > 0 {
        notes.push(format!("{hidden} more ran; --top shows more, --json all"));
    }
    if ranking.tied() > 1 {
        notes.push(format!("{} candidates cannot be told from the best (rank 1 =)", ranking.tied()));
    }
    if !tuning.complete {
        notes.push("not complete: the run was ended before all candidates were measured".to_owned());
    }
    if !has_any(ranking) {
        notes.push("no candidate ran".to_owned());
    }
    notes.extend(skipped_by_reason(ranking));
    let bad = ranking.of_class(TrialClass::Wrong).chain(ranking.of_class(TrialClass::Failed));
    notes.extend(bad.take(MAX_FAILURES).map(|candidate| failure(&candidate.trial)));
    if wrong + failed > MAX_FAILURES {
        notes.push(format!("  and {} more", wrong + failed - MAX_FAILURES));
    }
    notes
}

fn failure(trial: &Trial) -> String {
    let what = if trial.class() == TrialClass::Wrong { "wrong" } else { "failed" };
    let repeated = trial.row.command.as_ref();
    let repeated =
        repeated.map_or_else(String::new, |command| format!("; to repeat it: {}", printable(command)));
    format!("  {what}: {}: {}{repeated}", values(trial), reason(trial))
}

fn reason(trial: &Trial) -> String {
    headline(trial.row.reason.as_deref().or(trial.row.error_kind.as_deref()).unwrap_or_default())
}

/// How many candidates were skipped for each reason.
fn skipped_by_reason(ranking: &Ranking) -> Vec<String> {
    let mut reasons: BTreeMap<String, (usize, &Trial)> = BTreeMap::new();
    for candidate in ranking.of_class(TrialClass::Skipped) {
        // Numbers differ from candidate to candidate, the rest is the reason.
        let key = reason(&candidate.trial).replace(|c: char| c.is_ascii_digit(), "");
        reasons.entry(key).or_insert((0, &candidate.trial)).0 += 1;
    }
    let line = |(count, trial): &(usize, &Trial)| {
        let mut line = format!("  skipped: {count} × {}", reason(trial));
        let _ = write!(line, " ({}{})", if *count > 1 { "for example " } else { "" }, values(trial));
        line
    };
    reasons.values().map(line).collect()
}
