//! The output of `runtime cache` as text.

use runtime_core::cache::{CacheEntryInfo, CacheUsage, VerifyReport};

use crate::devices::memory_size;
use crate::table::Table;

/// How much of a name is shown, which is enough to find its file.
const NAME_CHARACTERS: usize = 12;

/// One line per entry, and their sum.
pub(super) fn list(entries: &[CacheEntryInfo], width: Option<u16>) -> String {
    let header = ["last used", "size", "format", "arch", "kernels", "name"];
    let mut table = Table::one_line_rows(width, &header, &[3, 4]);
    for entry in entries {
        let arch = entry.key.iter().find(|(name, _)| name == "arch").map(|(_, value)| value.as_slice());
        table.row(vec![
            humantime::format_rfc3339_seconds(entry.last_used).to_string(),
            memory_size(entry.bytes),
            entry.format.as_deref().map_or_else(|| "damaged".to_owned(), shown),
            shown(&String::from_utf8_lossy(arch.unwrap_or_default())),
            shown(&entry.kernels.join(", ")),
            entry.name.chars().take(NAME_CHARACTERS).collect(),
        ]);
    }
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    let sum = amount_of(bytes, entries.len() as u64);
    if entries.is_empty() { format!("{sum}\n") } else { format!("{table}\n{sum}\n") }
}

/// The result of a check.
pub(super) fn verified(report: &VerifyReport) -> String {
    let damaged = report.damaged.iter().map(|entry| format!("damaged: {}: {}\n", entry.name, entry.reason));
    let count = match report.damaged.len() {
        0 => String::new(),
        count => format!("; {count} damaged"),
    };
    format!("{}intact: {}{count}\n", damaged.collect::<String>(), amount(report.intact))
}

/// A number of entries with their size.
pub(super) fn amount(usage: CacheUsage) -> String {
    amount_of(usage.bytes, usage.entries)
}

fn amount_of(bytes: u64, entries: u64) -> String {
    match entries {
        0 => "no entries".to_owned(),
        1 => format!("1 entry, {}", memory_size(bytes)),
        count => format!("{count} entries, {}", memory_size(bytes)),
    }
}

/// Text of a file, without characters that would control a terminal.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
