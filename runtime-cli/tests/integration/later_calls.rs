//! Kernels that are right in their first call, and wrong and fast in those that are timed.

use serde_json::Value;

use super::fixture::{Folder, SCALE};

/// Each has the arguments of `scale`.
const CODE: &str = r"
#include <string.h>
static int calls;
static void scale(const float *x, float *y, float factor, long n) { for (long i = 0; i < n; i++) y[i] = factor * x[i]; }
void honest(const float *x, float *y, float factor, long n) { scale(x, y, factor, n); }
void once(const float *x, float *y, float factor, long n) { if (calls++ == 0) scale(x, y, factor, n); }
void trash(const float *x, float *y, float factor, long n) {
    scale(x, y, factor, n);
    if (calls++) for (long i = 0; i < n; i++) y[i] = -7;
}
void part(const float *x, float *y, float factor, long n) { scale(x, y, factor, calls++ < 2 ? n : n / 16); }
/* A mistake: the counter of a sum in one pass is not set back. */
void counter(const float *x, float *y, float factor, long n) {
    for (long i = 0; i < n; i++) if (++calls <= n) y[i] = factor * x[i];
}
";

fn row(entry: &str, arguments: &[&str]) -> (Value, String) {
    let folder = Folder::new();
    folder.write("later.c", CODE);
    let spec = SCALE.replacen("scale.c", "later.c", 1).replacen(
        "entry = \"scale\"",
        &format!("entry = \"{entry}\""),
        1,
    );
    folder.write("later.toml", &spec);
    let options = ["eval", "later.toml", "--repeat", "3", "--json", "rows.json"];
    let run = folder.runtime(&[&options, arguments].concat());
    assert_eq!(run.code, i32::from(entry != "honest"), "{run:?}");
    let document: Value = serde_json::from_str(&folder.read("rows.json")).unwrap();
    (document["rows"][0].clone(), run.stdout)
}

#[test]
fn a_kernel_that_is_right_in_its_first_call_only_is_wrong() {
    for arguments in [&["--device", "host:0"][..], &["--device", "host:0", "--isolate"]] {
        for entry in ["once", "trash", "part", "counter"] {
            let (row, table) = row(entry, arguments);
            assert_eq!(
                (&row["status"], &row["outcome"]["kind"]),
                (&"wrong".into(), &"wrong_result".into()),
                "{row}"
            );
            let calls = row["validation"]["after_calls"].as_u64().unwrap();
            assert!(calls > 0 && table.contains(&format!("wrong (after {calls} calls)")), "{table}");
        }
        let (row, _) = row("honest", arguments);
        assert!(row["status"] == "right" && row["validation"].get("after_calls").is_none(), "{row}");
    }
}

#[test]
fn kernels_that_take_turns_are_checked_as_well() {
    let (row, _) = row("once", &["--device", "host:0", "--interleave"]);
    assert_eq!(row["status"], "wrong", "{row}");
}
