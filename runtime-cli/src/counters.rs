//! `runtime counters`: lists the counters of a device, and why any of them cannot be read.

use clap::Args;
use runtime_core::Result;
use runtime_core::device::CounterInfo;
use runtime_harness::crash_context::CrashContext;
use runtime_harness::describe;
use runtime_harness::release::{self, release};
use serde_json::json;

use crate::arguments::OpenArguments;
use crate::output;
use crate::registry;
use crate::report::by_reason;
use crate::table::{Table, terminal_width};

#[derive(Debug, Args)]
pub(crate) struct CountersArguments {
    /// The device, e.g. `host:0`
    #[arg(long, value_name = "DEVICE")]
    device: String,
    #[command(flatten)]
    open: OpenArguments,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn list(arguments: &CountersArguments) -> Result<()> {
    let runtime = registry::runtime();
    let name = &arguments.device;
    let _context = CrashContext::enter(format!("while the counters of {name} were listed"));
    let device = arguments.open.open(&runtime, name)?;
    let counters = device.counters();
    let info = describe::device(device.info());
    release(device, "the device", name, release::DEADLINE)?;
    let counters = counters?;
    match arguments.json {
        true => output::print_exact(&json(&info, &counters)),
        false => output::print(&table(&counters, terminal_width())),
    }
}

/// One line per counter, and below them each reason with the counters that it is about.
fn table(counters: &[CounterInfo], width: Option<u16>) -> String {
    let mut table = Table::one_line_rows(width, &["counter", "status", "unit", "description"], &[3]);
    for counter in counters {
        let status = if counter.unavailable_reason.is_some() { "unavailable" } else { "available" };
        let unit = counter.unit.clone().unwrap_or_default();
        table.row(vec![counter.name.clone(), status.to_owned(), unit, counter.description.clone()]);
    }
    let named = counters.iter().map(|counter| (&*counter.name, counter.unavailable_reason.as_deref()));
    let reasons = by_reason(named);
    let mut below = Table::within(width, &["not available", "reason"]);
    for (reason, names) in &reasons {
        below.row(vec![some_of(names), (*reason).to_owned()]);
    }
    if reasons.is_empty() { table.to_string() } else { format!("{table}\n{below}") }
}

/// The first names, and how many more there are.
fn some_of(names: &[&str]) -> String {
    const SHOWN: usize = 2;
    match names.len() {
        0..=SHOWN => names.join(", "),
        all => format!("{} and {} more", names[..SHOWN].join(", "), all - SHOWN),
    }
}

fn json(device: &serde_json::Value, counters: &[CounterInfo]) -> String {
    let fields = json!({ "device": device["id"], "counters": counters });
    output::document("runtime.counters", 1, fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_with_the_same_reason_share_a_line() {
        let counter = |name: &str, reason: Option<&str>| CounterInfo {
            name: name.to_owned(),
            description: "a description that is too long for a narrow terminal of forty columns".to_owned(),
            unit: None,
            unavailable_reason: reason.map(str::to_owned),
        };
        let absent = Some("no such unit");
        let all = [counter("a", absent), counter("b", None), counter("c", absent), counter("d", absent)];
        let text = table(&all, Some(60));
        assert!(text.contains("a, c and 1 more") && text.matches("no such unit").count() == 1, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 60) && text.contains('…'), "{text}");
        assert!(!table(&all[1..2], None).contains("reason"));
    }
}
