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

/// The kernels have an output, a tensor of counters that a call finds as the one before left it, and an input.
const STATE: &str = r"
#include <stdlib.h>
/* A sum whose parts are counted: the counter must be zero at the beginning, which is the caller's work. */
void counted(const float *x, unsigned *done, float *y, long n) {
    for (long i = 0; i < n; i++)
        if (++*done <= n) y[i] = 2 * x[i];
}
void counted_reference(const float *x, unsigned *done, float *y, long n) {
    for (long i = 0; i < n; i++) y[i] = 2 * x[i];
    *done = n;
}
/* Ends the process unless the counter is zero. */
void strict(const float *x, unsigned *done, float *y, long n) {
    if (*done) abort();
    counted(x, done, y, n);
}
/* Adds to what is there; its counter must be zero. */
void adding(const float *x, unsigned *done, float *y, long n) {
    if (*done) abort();
    for (long i = 0; i < n; i++) y[i] += x[i];
    *done = n;
}
/* Counts on. */
void counting(const float *x, unsigned *done, float *y, long n) {
    for (long i = 0; i < n; i++) y[i] = 2 * x[i];
    *done += n;
}
/* Counts on, but computes for initial counters only. */
void idle(const float *x, unsigned *done, float *y, long n) {
    if (*done < n) counting(x, done, y, n); else *done += n;
}
";

fn state_row(kernel: &str, reference: &str, each_call: &str, arguments: &[&str]) -> (Value, String) {
    let access = if kernel == "adding" { "readwrite" } else { "write" };
    let folder = Folder::new();
    folder.write("state.c", STATE);
    let spec = format!(
        "version = 1\n[kernel]\npath = \"state.c\"\nentry = \"{kernel}\"\n[[arg]]\nname = \"x\"\ndtype = \"f32\"\nshape = [64]\n\
         [[arg]]\nname = \"done\"\ndtype = \"u32\"\nshape = [1]\ninit = \"zeros\"\nuse = \"readwrite\"\n{each_call}\n\
         [[arg]]\nname = \"y\"\ndtype = \"f32\"\nshape = [64]\ninit = \"zeros\"\nuse = \"{access}\"\n\
         [[arg]]\nscalar = \"i64\"\nvalue = 64\n[reference]\npath = \"state.c\"\nentry = \"{reference}\"\n"
    );
    folder.write("state.toml", &spec);
    let options = ["eval", "state.toml", "--repeat", "3", "--number", "5", "--json", "rows.json"];
    let run = folder.runtime(&[&options, &["--device", "host:0"][..], arguments].concat());
    let document: Value = serde_json::from_str(&folder.read("rows.json")).unwrap();
    let row = &document["rows"][0];
    assert_eq!(run.code, i32::from(row["status"] != "right"), "{run:?}");
    (row.clone(), run.stdout)
}

const MODES: [&[&str]; 4] = [&[], &["--isolate"], &["--isolate", "--trust"], &["--interleave"]];

#[test]
fn calls_that_continue_from_others_are_compared_with_those_of_the_reference() {
    for mode in MODES {
        for each_call in ["", "each_call = \"keep\""] {
            let (row, _) = state_row("counting", "counting", each_call, mode);
            assert_eq!(row["status"], "right", "{row}");
        }
        for (kernel, reference) in [("counted", "counted_reference"), ("idle", "counting")] {
            let (row, table) = state_row(kernel, reference, "", mode);
            assert_eq!(row["status"], "wrong", "{row}");
            assert!(row["validation"]["after_calls"].as_u64() > Some(1), "{row}");
            assert!(
                table
                    .contains("earlier ones have left in done; if they need initial contents, say each_call"),
                "{table}"
            );
        }
    }
}

#[test]
fn initial_contents_before_each_call_make_it_right_and_are_told() {
    for mode in MODES {
        for (kernel, reference) in
            [("counted", "counted_reference"), ("strict", "counted_reference"), ("adding", "adding")]
        {
            let (row, table) = state_row(kernel, reference, "each_call = \"initial\"", mode);
            assert_eq!(
                (&row["status"], &row["measurement"]["number"]),
                (&"right".into(), &5.into()),
                "{row}"
            );
            assert_eq!(row["arguments"][1]["is_restored"], true, "{row}");
            assert!(table.contains("initial contents before each call: done"), "{table}");
        }
    }
}
