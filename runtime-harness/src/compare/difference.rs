//! What differs between two rows or reports, apart from the times.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};

use crate::commit::Commit;
use crate::report::Report;
use crate::row::Row;

/// A property that has two values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The property.
    pub what: &'static str,
    /// Its value before; null if unknown.
    pub old: Value,
    /// Its value now; null if unknown.
    pub new: Value,
    /// Whether the two times are not times of the same thing, so that their ratio has no meaning.
    pub forbids_verdict: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => "none".to_owned(),
            other => other.to_string(),
        };
        match is_hash(&self.new) {
            true => write!(f, "the {} changed", self.what)?,
            false => write!(f, "the {} was {}, is {}", self.what, text(&self.old), text(&self.new))?,
        }
        if self.forbids_verdict { f.write_str("; the ratio is not meaningful") } else { Ok(()) }
    }
}

/// Whether a value is a hash, which says nothing to people.
fn is_hash(value: &Value) -> bool {
    const DIGITS: usize = 64;
    value
        .as_str()
        .is_some_and(|text| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Properties with a value each, and whether a difference forbids a verdict.
type Properties = Vec<(&'static str, Value, bool)>;

/// What differs between two rows.
pub(super) fn of_rows(old: &Row, new: &Row) -> Vec<Difference> {
    let is_measured = old.measurement.is_some() && new.measurement.is_some();
    let is_counted = old.counts.is_some() && new.counts.is_some();
    let properties = |row: &Row| {
        let mut properties = identity(row);
        properties.extend(settings(row));
        // Of a row without one, nothing is known that could differ.
        if is_measured {
            properties.extend(measurement(row));
        }
        if is_counted {
            properties.extend(counts(row));
        }
        properties
    };
    [known_differences(of_origin(old), of_origin(new)), differences(properties(old), properties(new))]
        .concat()
}

/// What differs between two reports.
pub(super) fn of_reports(old: &Report, new: &Report) -> Vec<Difference> {
    let properties = |report: &Report| {
        vec![
            ("version of the program", json!(report.runtime.version), false),
            ("operating system", json!(report.runtime.os), false),
            ("architecture", json!(report.runtime.architecture), false),
            ("set of device options", json!(report.device_options), false),
        ]
    };
    // Times and command lines of two reports always differ, if only by the names of files.
    let origin = |report: &Report| {
        let of = report.origin.as_ref();
        let build = Some(report.runtime.build()).filter(|build| !build.is_empty());
        vec![
            ("build of the program", json!(build), false),
            ("host", json!(of.and_then(|origin| origin.host.clone())), false),
            ("sandbox", json!(of.and_then(|origin| origin.sandbox)), false),
        ]
    };
    [differences(properties(old), properties(new)), known_differences(origin(old), origin(new))].concat()
}

/// What differs of what both sides know: older reports lack it.
fn known_differences(old: Properties, new: Properties) -> Vec<Difference> {
    let mut all = differences(old, new);
    all.retain(|difference| !difference.old.is_null() && !difference.new.is_null());
    all
}

/// What was measured, and with what.
fn of_origin(row: &Row) -> Properties {
    let info = row.device_info.as_ref();
    let compiler = info.map_or(Value::Null, |info| info["properties"]["compiler"].clone());
    vec![
        ("commit", json!(row.commit.as_ref().map(Commit::to_string)), false),
        ("code", json!(row.code_sha256), false),
        ("compiler", compiler, false),
        ("choice of inputs", json!(row.judged.as_ref().map(|judged| judged.inputs)), false),
    ]
}

fn differences(old: Properties, new: Properties) -> Vec<Difference> {
    let pairs = old.into_iter().zip(new).filter(|((_, old, _), (_, new, _))| old != new);
    let difference = |((what, old, forbids), (_, new, _)): ((_, Value, bool), (_, Value, _))| {
        // A cost that was added to the spec does not change what is measured.
        let forbids_verdict = forbids && !old.is_null() && !new.is_null();
        Difference { what, old, new, forbids_verdict }
    };
    pairs.map(difference).collect()
}

fn identity(row: &Row) -> Properties {
    let device = |key: &str| row.device_info.as_ref().map_or(Value::Null, |info| info[key].clone());
    vec![
        ("device", device("name"), false),
        ("driver", device("driver_version"), false),
        ("device architecture", device("arch"), false),
        ("kernel format", json!(row.kernel.format), false),
        ("kernel entry", json!(row.kernel.entry), false),
        ("set of kernel options", json!(row.kernel.options), false),
    ]
}

fn settings(row: &Row) -> Properties {
    let settings = &row.settings;
    vec![
        ("setting repeat", json!(settings.repeat), false),
        ("setting until_percent", json!(settings.until_percent), false),
        ("setting number", json!(settings.number), false),
        ("setting min_repeat_ms", json!(settings.min_repeat_ms), false),
        ("setting warmup", json!(settings.warmup), false),
        ("setting warmup_ms", json!(settings.warmup_ms), false),
        ("setting cooldown_ms", json!(settings.cooldown_ms), false),
        ("setting flush_cache", json!(settings.flush_cache), true),
    ]
}

fn measurement(row: &Row) -> Properties {
    let Some(measurement) = &row.measurement else { return Vec::new() };
    vec![
        ("clock", json!(measurement.clock), true),
        ("setting cold", json!(measurement.cold), true),
        ("number of flops per call", json!(measurement.cost.flops), true),
        ("number of bytes per call", json!(measurement.cost.bytes), true),
    ]
}

fn counts(row: &Row) -> Properties {
    let Some(counts) = &row.counts else { return Vec::new() };
    vec![
        ("clock", json!(counts.clock), true),
        ("size of the code", json!(counts.image.map(|image| image.sizes.code_bytes)), false),
        ("size of the stack", json!(counts.stack.map(|stack| stack.used_bytes)), false),
    ]
}
