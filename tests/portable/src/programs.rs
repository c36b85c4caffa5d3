//! All programs of this crate, by topic.

use crate::program::Program;
use crate::{annotated, table};

const TABLES: &[(&str, &str)] = &[("integer", include_str!("../table/integer.txt"))];

const ANNOTATED: &[(&str, &str)] = &[("control_flow", include_str!("../programs/control_flow.wgsl"))];

/// The programs of each table and file.
#[must_use]
pub fn all() -> Vec<(&'static str, Vec<Program>)> {
    let tables = TABLES.iter().map(|(topic, text)| (*topic, table::parse(topic, text)));
    tables.chain(ANNOTATED.iter().map(|(topic, text)| (*topic, annotated::parse(text)))).collect()
}
