//! A report as one self-contained web page: results, pictures, machine and settings, without scripts or anything from elsewhere.

mod counters;
mod escape;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write;

use runtime_core::backend::counted;

use crate::peak::{Peak, Subject};
use crate::plot;
use crate::report::Report;
use crate::row::Status;
use escape::escaped;

const STYLE: &str = include_str!("style.css");
/// The page loads nothing and runs nothing, whatever a name in it may hold.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The page about a report. `peaks` are those of its devices.
#[must_use]
pub fn page(report: &Report, peaks: &BTreeMap<Subject, Peak>) -> String {
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        escaped(&title(report))
    );
    let _ = writeln!(text, "<h1>Kernel evaluation</h1>");
    for line in head(report) {
        let _ = writeln!(text, "<p class=\"faint\">{}</p>", escaped(&line));
    }
    section(&mut text, "Results", &tables::results(&report.rows));
    section(&mut text, "Notes", &tables::notes(&report.rows));
    section(&mut text, "Counters and energy", &counters::table_of(&report.rows));
    let mut figures = String::new();
    for panel in plot::panels(&report.rows, peaks) {
        let _ = writeln!(
            figures,
            "<figure role=\"img\" aria-label=\"{}\">{}</figure>",
            escaped(&panel.title),
            panel.svg
        );
    }
    section(&mut text, "Pictures", &figures);
    section(&mut text, "Validation", &tables::validation(&report.rows));
    section(&mut text, "Peaks", &tables::peaks(peaks));
    section(&mut text, "Machine", &tables::machine(report));
    section(&mut text, "Settings", &tables::settings(&report.rows));
    text + "</body>\n</html>\n"
}

/// What tells a page from those of other runs in a list of windows.
fn title(report: &Report) -> String {
    let time = report.origin.as_ref().map(|origin| origin.time.clone());
    ["Kernel evaluation".to_owned()]
        .into_iter()
        .chain(time)
        .chain(report.commits())
        .collect::<Vec<_>>()
        .join(", ")
}

/// The summary, and how the report was made.
fn head(report: &Report) -> impl Iterator<Item = String> {
    let commits = report.commits();
    let commits = (!commits.is_empty()).then(|| format!("commit {}", commits.join(", ")));
    let origin = report.origin.as_ref();
    let made = origin
        .map(|origin| format!("made at {} with runtime {}", origin.time_and_host(), report.runtime.text()));
    let command = origin.and_then(|origin| origin.command.clone());
    [Some(summary(report)), made, commits, command].into_iter().flatten()
}

/// A section, unless it is empty.
fn section(text: &mut String, title: &str, content: &str) {
    if !content.is_empty() {
        let _ = writeln!(text, "<h2>{title}</h2>\n{content}");
    }
}

fn summary(report: &Report) -> String {
    let count = |status: Status| report.rows.iter().filter(|row| row.status == status).count();
    let counts = Status::ALL.map(|status| (count(status), status.name().replace('_', " ")));
    let parts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    let incomplete = if report.complete { "" } else { "; rows are missing, because the run was interrupted" };
    format!("{}: {}{incomplete}", counted(report.rows.len(), "row"), parts.join(", "))
}
