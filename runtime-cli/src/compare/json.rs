//! The comparison as JSON. `docs/output.md` documents it.

use runtime_harness::compare::{CompareOptions, SCHEMA, VERSION};
use serde_json::{Value, json};

use super::Compared;
use crate::output;

/// The document about all files.
pub(super) fn document(old: &str, old_complete: bool, options: &CompareOptions, all: &[Compared]) -> String {
    let comparisons: Vec<Value> = all.iter().map(comparison).collect();
    let fields = json!({
        "threshold": options.threshold,
        "confidence": options.confidence,
        "old": { "file": old, "complete": old_complete },
        "comparisons": comparisons,
        "regression": all.iter().any(|one| one.comparison.has_regression()),
    });
    output::document(SCHEMA, VERSION, fields)
}

fn comparison(one: &Compared) -> Value {
    json!({
        "new": { "file": one.file, "complete": one.complete },
        "differences": one.comparison.differences,
        "rows": one.comparison.rows,
        "only_old": one.comparison.only_old,
        "only_new": one.comparison.only_new,
        "regression": one.comparison.has_regression(),
    })
}
