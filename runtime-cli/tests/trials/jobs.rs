//! Jobs of all kinds in runners: tensors with strides, cold calls, flushed caches, packages. Honest ones are right, others are not, and
//! what does not run in a runner says so. Ignored where the system lacks a part of the sandbox. Build the workspace first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Completion, Failed, Trial};
use serde_json::Value;
use tempfile::TempDir;

use crate::sandboxed;

const SPEC: &str = r#"version = 1
[kernel]
path = "{code}"
entry = "{entry}"
[[arg]]
name = "x"
dtype = "f32"
shape = [50, 20]
{layout}
init = "random"
use = "read"
[[arg]]
name = "y"
dtype = "f32"
shape = [50, 20]
{layout}
use = "write"
[reference]
path = "k.c"
entry = "honest"
[eval]
repeat = 3
number = 10
warmup = 3
"#;

/// Each computes y = 2 * x, of 50 rows, or pretends to.
const CODE: &str = "
#ifdef STRIDED
#define AT(i) (3 + 45 * ((i) / 20) + 2 * ((i) % 20))
#else
#define AT(i) (i)
#endif
static int calls;
static void scale(const float *x, float *y) {
    for (int i = 0; i < 1000; i++) y[AT(i) - AT(0)] = 2 * x[AT(i) - AT(0)];
}
void honest(const float *x, float *y) { scale(x, y); }
void once(const float *x, float *y) { if (!calls++) scale(x, y); }
void beside(const float *x, float *y) { scale(x, y); y[AT(20) - AT(0) - 1] = 1; }
void trash(float *x, float *y) { scale(x, y); if (calls++ > 5) x[AT(7) - AT(0)] = 1; }";

const STRIDED: &str = "strides = [45, 2]\noffset = 3";

type Case = (&'static str, fn() -> Result<(), Failed>);

const CASES: [Case; 4] = [
    ("tensors_with_strides", tensors_with_strides),
    ("cold_calls_and_flushed_caches", cold_calls_and_flushed_caches),
    ("packages", packages),
    ("code_that_is_believed_says_so", code_that_is_believed_says_so),
];

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |(name, case): Case| {
        sandboxed::trial(format!("jobs::{name}"), move || case().map(|()| Completion::Completed))
    };
    CASES.into_iter().map(trial).collect()
}

fn folder(is_strided: bool) -> Result<TempDir, Failed> {
    let folder = tempfile::tempdir()?;
    let define = if is_strided { "#define STRIDED\n" } else { "" };
    std::fs::write(folder.path().join("k.c"), define.to_owned() + CODE)?;
    Ok(folder)
}

/// The row of an entry point, and what the command said.
fn row(
    folder: &Path,
    (code, entry): (&str, &str),
    layout: &str,
    options: &[&str],
) -> Result<(Value, String), Failed> {
    let spec = SPEC.replace("{code}", code).replace("{entry}", entry).replace("{layout}", layout);
    std::fs::write(folder.join("spec.toml"), spec)?;
    let mut command = sandboxed::command(folder, &["host"]);
    command.args(["spec.toml", "--device", "host:0", "--sandbox", "required"]).args(options);
    let (rows, said) = sandboxed::rows(&mut command, folder)?;
    let row = rows.into_iter().next().ok_or_else(|| Failed::from(said.clone()))?;
    Ok((row, said))
}

/// Whether it has this outcome, in a runner.
fn check(row: &Value, kind: &str) -> Result<(), Failed> {
    match row["outcome"]["kind"] == kind && !row["judged"].is_null() {
        true => Ok(()),
        false => Err(format!("{kind}: {row}").into()),
    }
}

fn tensors_with_strides() -> Result<(), Failed> {
    let folder = folder(true)?;
    for (entry, kind) in [("honest", "ok"), ("once", "wrong_result")] {
        check(&row(folder.path(), ("k.c", entry), STRIDED, &[])?.0, kind)?;
    }
    for (entry, word) in [("beside", "beside its tensors"), ("trash", "changed element 7 of argument 0")] {
        let (row, _) = row(folder.path(), ("k.c", entry), STRIDED, &[])?;
        check(&row, "launch_failed")?;
        assert!(row["reason"].as_str().unwrap().contains(word), "{row}");
    }
    Ok(())
}

fn cold_calls_and_flushed_caches() -> Result<(), Failed> {
    let folder = folder(false)?;
    for options in [&["--warmup", "0"][..], &["--flush-cache", "sample"], &["--cold", "--number", "3"]] {
        for (entry, kind) in [("honest", "ok"), ("once", "wrong_result")] {
            let (row, _) = row(folder.path(), ("k.c", entry), "", options)?;
            check(&row, kind).map_err(|failed| format!("{options:?}: {:?}", failed.message()))?;
            assert_eq!(row["measurement"]["cold"], options[0] == "--warmup", "{row}");
        }
    }
    Ok(())
}

fn packages() -> Result<(), Failed> {
    let folder = folder(false)?;
    let eval = sandboxed::command(folder.path(), &["host"]);
    let mut compile = Command::new(env!("CARGO_BIN_EXE_runtime"));
    compile.args(["compile", "k.c", "--target", "host:native", "-o", "k.rtpkg"]).current_dir(folder.path());
    compile.envs(eval.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = compile.output()?;
    assert!(output.status.success(), "{output:?}");
    for (entry, kind) in [("honest", "ok"), ("once", "wrong_result")] {
        let (row, _) = row(folder.path(), ("k.rtpkg", entry), "", &[])?;
        check(&row, kind)?;
        assert_eq!(row["package"]["target"], "host:native", "{row}");
    }
    Ok(())
}

/// Counters are read in the process of the kernel.
fn code_that_is_believed_says_so() -> Result<(), Failed> {
    let folder = folder(false)?;
    let (row, said) = row(folder.path(), ("k.c", "honest"), "", &["--energy"])?;
    assert!(row["judged"].is_null() && row["believed"] == "energy is measured", "{row}");
    assert!(row["advice"].to_string().contains("which believes it: energy is measured"), "{row}");
    assert!(said.contains("right (exact, believed)"), "{said}");
    Ok(())
}
