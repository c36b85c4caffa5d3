//! The comparison of two reports as text: what differs, the table, and notes.

use std::fmt::Write;

use runtime_harness::Status;
use runtime_harness::compare::{Comparison, Difference, ReportComparison, Side, Verdict};
use runtime_harness::printable::printable;

use crate::report::{count, duration, significant};
use crate::table::Table;

/// A comparison; rows that are in one report only are listed if `lists_unmatched`.
pub(crate) fn comparison_text(
    old: &str,
    new: &str,
    comparison: &ReportComparison,
    lists_unmatched: bool,
) -> String {
    let mut table = Table::new(&["kernel", "device", "before", "now", "ratio (99% interval)", "verdict"]);
    for row in &comparison.rows {
        table.row(vec![
            row.key.kernel.clone(),
            row.key.device.clone(),
            median(&row.old),
            median(&row.new),
            ratio(row),
            verdict(row).to_owned(),
        ]);
    }
    let unmatched = if lists_unmatched { unmatched(old, new, comparison) } else { String::new() };
    paragraphs(&[differences(comparison, ""), table.to_string(), notes(comparison, ""), unmatched])
}

/// The paragraphs that are not empty, with a blank line between them.
pub(super) fn paragraphs(all: &[String]) -> String {
    let present: Vec<&str> = all.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    present.join("\n")
}

/// The median of a side: a time, or a count.
pub(super) fn median(side: &Side) -> String {
    let count = side.median_count.map(count);
    side.median_ns.map(duration).or(count).unwrap_or_else(|| "—".to_owned())
}

fn ratio(row: &Comparison) -> String {
    let ratio = row.ratio.map_or_else(|| "—".to_owned(), significant);
    let interval = row.interval.map(|[low, high]| format!(" ({}–{})", significant(low), significant(high)));
    ratio + &interval.unwrap_or_default()
}

/// The verdict, or why there is none, in two words at most.
pub(super) const fn verdict(row: &Comparison) -> &'static str {
    match (row.new.status, row.regression) {
        (Status::Wrong, true) => "wrong now",
        (Status::Inconsistent, true) => "inconsistent now",
        (Status::Impossible, true) => "impossible now",
        (Status::Failed, true) => "failed now",
        (Status::Wrong, false) => "still wrong",
        (Status::Inconsistent, false) => "still inconsistent",
        (Status::Impossible, false) => "still impossible",
        (Status::Failed, false) => "still failed",
        (Status::NotRun, _) => "not run",
        // Counts are fewer or more, not faster or slower.
        _ if row.new.is_count() && matches!(row.verdict, Verdict::Faster) => "fewer",
        _ if row.new.is_count() && matches!(row.verdict, Verdict::Slower) => "more",
        _ => row.verdict.text(),
    }
}

/// What differs, each difference once; every line begins with `prefix`.
pub(super) fn differences(comparison: &ReportComparison, prefix: &str) -> String {
    let mut found: Vec<(String, Vec<&Comparison>)> =
        comparison.differences.iter().map(|difference| (difference.to_string(), Vec::new())).collect();
    let report_wide = found.len();
    for row in &comparison.rows {
        for difference in row.differences.iter().map(Difference::to_string) {
            match found[report_wide..].iter_mut().find(|(known, _)| *known == difference) {
                Some((_, rows)) => rows.push(row),
                None => found.push((difference, vec![row])),
            }
        }
    }
    let mut text = String::new();
    for (difference, rows) in &found {
        let is_everywhere = rows.is_empty() || rows.len() == comparison.rows.len();
        let place = if is_everywhere { String::new() } else { format!(" ({})", names(rows)) };
        let _ = writeln!(text, "{prefix}differs: {difference}{place}");
    }
    text
}

fn names(rows: &[&Comparison]) -> String {
    const MOST: usize = 3;
    let shown: Vec<String> = rows.iter().take(MOST).map(|row| row.key.to_string()).collect();
    let more = rows.len().saturating_sub(MOST);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    shown.join(", ") + &more
}

/// Why rows have no verdict, and what to do about it.
pub(super) fn notes(comparison: &ReportComparison, prefix: &str) -> String {
    let mut text = String::new();
    for row in &comparison.rows {
        if let (Verdict::CannotTell, Some(reason)) = (row.verdict, &row.reason) {
            let _ = writeln!(text, "{prefix}{}: {}", row.key, printable(reason));
            for advice in &row.advice {
                let _ = writeln!(text, "  {prefix}{}", printable(advice));
            }
        }
    }
    text
}

/// The rows that are in one report only.
pub(super) fn unmatched(old: &str, new: &str, comparison: &ReportComparison) -> String {
    let mut text = String::new();
    for (file, rows) in [(old, &comparison.only_old), (new, &comparison.only_new)] {
        for row in rows {
            let _ = writeln!(text, "only in {file}: {row}");
        }
    }
    text
}
