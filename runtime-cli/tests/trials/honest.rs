//! Honest kernels (`tests/attacks/variants.h`) of many kinds, sizes and compiler flags: none is called anything but right. A sample of
//! them, and a thousand with `cargo xtask test --all`. Ignored where the system lacks a part of the sandbox. Build the workspace first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use libtest_mimic::{Completion, Failed, Trial};
use serde_json::Value;
use test_process::{is_complete, sample};

use crate::sandboxed;

const STYLES: [&str; 11] = [
    "scale",
    "threads",
    "divides",
    "branches",
    "stencil",
    "gathers",
    "table",
    "allocates",
    "accumulates",
    "counts",
    "flips",
];
const SIZES: [usize; 6] = [1, 100, 3_000, 40_000, 500_000, 4_000_000];
const FLAGS: [&str; 3] = ["-O1", "-O2", "-O3 -march=native"];
const NUMBERS: [u32; 6] = [1, 2, 7, 8, 20, 100];

const SPEC: &str = r#"version = 1
name = "{name}"
[kernel]
path = "k.c"
entry = "k"
options = { flags = "{flags} -fopenmp -I{headers} -DSTYLE=k_{style}", libraries = "m" }
[[arg]]
dtype = "f32"
shape = [{size}]
init = "random"
use = "read"
[[arg]]
dtype = "f32"
shape = [{size}]
use = "write"
[[arg]]
dtype = "f32"
shape = [64]
init = "zeros"
use = "readwrite"
[[arg]]
scalar = "f32"
value = 1.5
[[arg]]
scalar = "i64"
value = {size}
[reference]
path = "k.c"
entry = "k"
options = { flags = "-I{headers} -DSTYLE=k_{style}", libraries = "m" }
[eval]
repeat = 3
number = {number}
warmup = 1
budget_s = 2
"#;

pub(crate) fn trials() -> Vec<Trial> {
    vec![sandboxed::trial("honest::variants_are_right".to_owned(), || {
        check().map(|()| Completion::Completed)
    })]
}

/// The specs of all kernels, with their names.
fn specs() -> Vec<(String, String)> {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/attacks").canonicalize().unwrap();
    let mut specs = Vec::new();
    for style in STYLES {
        for size in SIZES {
            for (flags, level) in FLAGS.iter().zip(1..) {
                for number in NUMBERS {
                    let name = format!("{style}-{size}-O{level}-{number}");
                    let text = SPEC.replace("{headers}", headers.to_str().unwrap()).replace("{style}", style);
                    let text = text.replace("{size}", &size.to_string()).replace("{flags}", flags);
                    specs.push((
                        name.clone(),
                        text.replace("{number}", &number.to_string()).replace("{name}", &name),
                    ));
                }
            }
        }
    }
    specs
}

fn check() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    std::fs::write(
        folder.path().join("k.c"),
        "#include \"variants.h\"\nvoid k(ARGUMENTS) { STYLE(x, y, state, factor, n); }\n",
    )?;
    let specs = specs();
    let chosen = sample("honest", &specs, 40);
    let mut names = Vec::new();
    for (name, text) in chosen {
        names.push(format!("{name}.toml"));
        std::fs::write(folder.path().join(names.last().unwrap()), text)?;
    }
    let mut bad = bad_rows(folder.path(), &names)?;
    // A thousand on a busy machine may give one false alarm, which another run does not repeat.
    if is_complete() && bad.len() == 1 {
        bad = bad_rows(folder.path(), &[format!("{}.toml", bad[0]["kernel"]["name"].as_str().unwrap())])?;
    }
    match bad.first() {
        Some(row) => {
            Err(format!("{} of {}: {}: {}", bad.len(), names.len(), row["kernel"]["name"], row["reason"])
                .into())
        }
        None => Ok(()),
    }
}

fn bad_rows(folder: &Path, specs: &[String]) -> Result<Vec<Value>, Failed> {
    let mut command = sandboxed::command(folder, &["host"]);
    command.args(specs).args(["--device", "host:0", "--sandbox", "required"]);
    let (rows, _) = sandboxed::rows(&mut command, folder)?;
    Ok(rows.into_iter().filter(|row| row["status"] != "right").collect())
}
