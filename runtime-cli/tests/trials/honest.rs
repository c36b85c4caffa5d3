//! Honest kernels (`tests/attacks/variants.h`) of many kinds, sizes and compiler flags: none is called anything but right. A sample of
//! them, and a thousand with `cargo xtask test --all`. Ignored where the system lacks a part of the sandbox. Build the workspace first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use libtest_mimic::{Completion, Failed, Trial};
use runtime_core::backend::missing_sandbox_parts;
use serde_json::Value;
use test_process::{is_complete, required, sample};

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
    let missing: Vec<String> = missing_sandbox_parts().iter().map(ToString::to_string).collect();
    let missing = missing.join("\n");
    vec![Trial::ignorable_test("honest::variants_are_right", move || match missing.is_empty() {
        true => check().map(|()| Completion::Completed),
        false if required("sandbox") => Err(Failed::from(missing)),
        false => Ok(Completion::ignored_with(missing)),
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
    let bad: Vec<Value> =
        rows(folder.path(), &names)?.into_iter().filter(|row| row["status"] != "right").collect();
    // A thousand on a busy machine may give one false alarm, which another run does not repeat.
    let again: Vec<String> =
        bad.iter().map(|row| format!("{}.toml", row["kernel"]["name"].as_str().unwrap())).collect();
    let most = usize::from(is_complete());
    let bad = match again.len() <= most && !again.is_empty() {
        true => rows(folder.path(), &again)?.into_iter().filter(|row| row["status"] != "right").collect(),
        false => bad,
    };
    match bad.first() {
        Some(row) => {
            Err(format!("{} of {}: {}: {}", bad.len(), names.len(), row["kernel"]["name"], row["reason"])
                .into())
        }
        None => Ok(()),
    }
}

fn rows(folder: &Path, specs: &[String]) -> Result<Vec<Value>, Failed> {
    let runtime = Path::new(env!("CARGO_BIN_EXE_runtime"));
    let library = format!("{}runtime_host{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let mut command = Command::new(runtime);
    command.arg("eval").args(specs).args([
        "--device",
        "host:0",
        "--isolate",
        "--sandbox",
        "required",
        "--json",
        "rows.json",
    ]);
    command.current_dir(folder).env("RUNTIME_BACKENDS", runtime.with_file_name(library));
    let output = command.env("RUNTIME_CACHE", "off").env("RUNTIME_SHARE", "1").output()?;
    let text = std::fs::read_to_string(folder.join("rows.json")).map_err(|_| format!("{output:?}"))?;
    let mut document: Value = serde_json::from_str(&text)?;
    Ok(document["rows"].as_array_mut().map(std::mem::take).unwrap_or_default())
}
