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
void starts_a_process(const float *x, float *y, float factor, int64_t n) { if (fork() >= 0) scale(x, y, factor, n); }
"#;

const SPEC: &str = r#"version = 1
[kernel]
path = "code.c"
entry = "{entry}"
[[arg]]
dtype = "f32"
shape = [1000]
init = "arange"
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
min_repeat_ms = 1
"#;

const CASES: [(&str, &str); 8] = [
    ("honest", "right"),
    ("once", "wrong"),
    ("trash", "wrong"),
    ("part", "wrong"),
    ("changes_its_input", "failed"),
    ("forges", "failed"),
    ("crashes", "failed"),
    ("starts_a_process", "wrong"),
];

pub(crate) fn trials() -> Vec<Trial> {
    let missing: Vec<String> = missing_sandbox_parts().iter().map(ToString::to_string).collect();
    let trial = |(entry, status): (&'static str, &'static str)| {
        let missing = missing.join("\n");
        Trial::ignorable_test(format!("runners::{entry}"), move || match missing.is_empty() {
            true => check(entry, status).map(|()| Completion::Completed),
            false if required("sandbox") => Err(Failed::from(missing)),
            false => Ok(Completion::ignored_with(missing)),
        })
    };
    CASES.into_iter().map(trial).collect()
}

fn check(entry: &str, status: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("code.c"), CODE)?;
    std::fs::write(folder.path().join("reference.c"), CODE)?;
    let spec = folder.path().join("spec.toml");
    std::fs::write(&spec, SPEC.replace("{entry}", entry))?;
    let row = row(&spec)?;
    if row["status"] != status {
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
