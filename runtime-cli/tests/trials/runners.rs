//! Candidates in runners, with `RUNTIME_RUNNER=1`: honest ones get their row, those that cheat do not. Ignored where the system
//! lacks a part of the sandbox; `RUNTIME_REQUIRE=sandbox` makes that a failure. Build the workspace first.

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Completion, Failed, Trial};
use runtime_core::backend::missing_sandbox_parts;
use serde_json::Value;
use test_process::required;

/// Each has the arguments of `scale`.
const CODE: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>
static int calls;
static void scale(const float *x, float *y, float factor, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = factor * x[i]; }
void honest(const float *x, float *y, float factor, int64_t n) { scale(x, y, factor, n); }
void once(const float *x, float *y, float factor, int64_t n) { if (calls++ == 0) scale(x, y, factor, n); }
void trash(const float *x, float *y, float factor, int64_t n) {
    scale(x, y, factor, n);
    if (calls++) for (int64_t i = 0; i < n; i++) y[i] = -7;
}
void part(const float *x, float *y, float factor, int64_t n) { scale(x, y, factor, calls++ < 2 ? n : n / 16); }
void changes_its_input(const float *x, float *y, float factor, int64_t n) {
    scale(x, y, factor, n);
    if (calls++) for (int64_t i = 0; i < n; i++) ((float *)x)[i] = y[i] = 0;
}
void forges(const float *x, float *y, float factor, int64_t n) {
    for (int descriptor = 3; descriptor < 64; descriptor++) dprintf(descriptor, "{\"Done\":2}\n");
}
void crashes(const float *x, float *y, float factor, int64_t n) { if (calls++) abort(); scale(x, y, factor, n); }
/* The honest ones of these take some 10 ms. */
static void slow(const float *x, float *y, float factor, int64_t n) {
    for (volatile int i = 0; i < 20000000; i++);
    scale(x, y, factor, n);
}
void honest_and_slow(const float *x, float *y, float factor, int64_t n) { slow(x, y, factor, n); }
void trusts_pointers(const float *x, float *y, float factor, int64_t n) {
    static const float *last;
    if (x != last) slow(x, y, factor, n);
    last = x;
}
void trusts_a_probe(const float *x, float *y, float factor, int64_t n) {
    static float probes[3], outputs[3][1000];
    static int next;
    for (int i = 0; i < 3; i++) {
        if (probes[i] == x[7]) { memcpy(y, outputs[i], sizeof outputs[i]); return; }
    }
    slow(x, y, factor, n);
    probes[next] = x[7];
    memcpy(outputs[next], y, sizeof outputs[next]);
    next = (next + 1) % 3;
}
void trusts_its_output(const float *x, float *y, float factor, int64_t n) {
    if (y[0] != factor * x[0] || y[n - 1] != factor * x[n - 1]) slow(x, y, factor, n);
}
/* What it would know of the spec's inputs, it learns from the first call. */
void knows_the_inputs(const float *x, float *y, float factor, int64_t n) {
    static float output[1000];
    if (!calls++) { slow(x, y, factor, n); memcpy(output, y, sizeof output); }
    memcpy(y, output, sizeof output);
}
void knows_the_inputs_and_can_compute(const float *x, float *y, float factor, int64_t n) {
    static float first, output[1000];
    if (!calls++) { slow(x, y, factor, n); first = x[0]; memcpy(output, y, sizeof output); }
    if (x[0] == first) memcpy(y, output, sizeof output); else slow(x, y, factor, n);
}
void writes_beside(const float *x, float *y, float factor, int64_t n) { scale(x, y, factor, n); y[n + 1] = 1; }
struct work { const float *x; float *y, factor; int64_t n; };
static void *later(void *argument) {
    struct work *work = argument;
    slow(work->x, work->y, work->factor, work->n);
    return 0;
}
void computes_behind_the_clock(const float *x, float *y, float factor, int64_t n) {
    static struct work work;
    work = (struct work){x, y, factor, n};
    pthread_t thread;
    if (!pthread_create(&thread, 0, later, &work)) pthread_detach(thread);
}
void exits(const float *x, float *y, float factor, int64_t n) { scale(x, y, factor, n); if (calls++) exit(0); }
void starts_a_process(const float *x, float *y, float factor, int64_t n) { if (fork() >= 0) scale(x, y, factor, n); }
"#;

const SPEC: &str = r#"version = 1
[kernel]
path = "code.c"
entry = "{entry}"
[[arg]]
dtype = "f32"
shape = [1000]
init = "random"
use = "read"
[[arg]]
name = "y"
dtype = "f32"
shape = [1000]
use = "write"
[[arg]]
scalar = "f32"
value = 2.5
[[arg]]
scalar = "i64"
value = 1000
[reference]
path = "reference.c"
entry = "honest"
[eval]
repeat = 3
number = 20
"#;

/// The kinds of their outcomes.
const CASES: [(&str, &str); 17] = [
    ("honest", "ok"),
    ("once", "wrong_result"),
    ("trash", "wrong_result"),
    ("part", "wrong_result"),
    ("changes_its_input", "launch_failed"),
    ("forges", "launch_failed"),
    ("crashes", "crashed"),
    ("exits", "exited"),
    ("starts_a_process", "wrong_result"),
    ("honest_and_slow", "ok"),
    ("trusts_pointers", "inconsistent"),
    ("trusts_a_probe", "inconsistent"),
    ("trusts_its_output", "inconsistent"),
    ("knows_the_inputs", "wrong_result"),
    ("knows_the_inputs_and_can_compute", "inconsistent"),
    ("writes_beside", "launch_failed"),
    ("computes_behind_the_clock", "wrong_result"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let missing: Vec<String> = missing_sandbox_parts().iter().map(ToString::to_string).collect();
    let trial = |(entry, kind): (&'static str, &'static str)| {
        let missing = missing.join("\n");
        Trial::ignorable_test(format!("runners::{entry}"), move || match missing.is_empty() {
            true => check(entry, kind).map(|()| Completion::Completed),
            false if required("sandbox") => Err(Failed::from(missing)),
            false => Ok(Completion::ignored_with(missing)),
        })
    };
    CASES.into_iter().map(trial).collect()
}

fn check(entry: &str, kind: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("code.c"), CODE)?;
    std::fs::write(folder.path().join("reference.c"), CODE)?;
    let spec = folder.path().join("spec.toml");
    std::fs::write(&spec, SPEC.replace("{entry}", entry))?;
    let row = row(&spec)?;
    if row["outcome"]["kind"] != kind {
        return Err(format!("{row}").into());
    }
    Ok(())
}

fn row(spec: &Path) -> Result<Value, Failed> {
    let rows = spec.with_extension("json");
    let runtime = Path::new(env!("CARGO_BIN_EXE_runtime"));
    let library = format!("{}runtime_host{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let mut command = Command::new(runtime);
    command
        .arg("eval")
        .arg(spec)
        .args(["--device", "host:0", "--isolate", "--sandbox", "required", "--json"])
        .arg(&rows);
    command.env("RUNTIME_BACKENDS", runtime.with_file_name(library)).env("RUNTIME_SHARE", "1");
    let output = command.env("RUNTIME_CACHE", "off").env("RUNTIME_RUNNER", "1").output()?;
    let said = || {
        format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&rows).map_err(|_| said())?)?;
    Ok(document["rows"][0].clone())
}
