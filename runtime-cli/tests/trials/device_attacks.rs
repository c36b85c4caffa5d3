//! The same for code that the worker loads (`tests/attacks/device`): on devices, and portable code on the host. Ignored where there is no
//! such device; `RUNTIME_REQUIRE` makes that a failure.

use std::path::Path;

use libtest_mimic::{Completion, Failed, Trial};
use test_process::required;

use crate::attacks::{Attack, folder};
use crate::sandboxed;

const SPEC: &str = r#"version = 1
[kernel]
path = "{file}"
entry = "k"
{options}
[launch]
groups = 64
{group_size}
[[arg]]
dtype = "u32"
shape = [4096]
init = "random"
range = [1, 1000000]
use = "read"
[[arg]]
name = "y"
dtype = "u32"
shape = [4096]
{use}
[reference]
path = "{folder}/reference.c"
entry = "k"
[eval]
repeat = 3
number = 20
warmup = 3
"#;

/// The backends that take a kind of code.
const TAKERS: [(&str, &[&str]); 2] = [("wgsl", &["host", "opencl", "vulkan"]), ("cl", &["opencl"])];

pub(crate) fn trials() -> Vec<Trial> {
    let files = std::fs::read_dir(folder().join("device")).into_iter().flatten().flatten();
    let mut files: Vec<_> = files.map(|entry| entry.path()).collect();
    files.sort();
    let mut trials = Vec::new();
    for (extension, backends) in TAKERS {
        for path in files.iter().filter(|path| path.extension().is_some_and(|ending| ending == extension)) {
            for backend in backends {
                let attack = Attack::read(path);
                let name = format!("attacks::{backend}::{}_{extension}", attack.name);
                trials.push(sandboxed::trial(name, move || check(&attack, extension, backend)));
            }
        }
    }
    assert!(trials.len() > 15, "{}", trials.len());
    for (name, options) in HONEST {
        let trial = sandboxed::trial(format!("attacks::honest::{name}"), || {
            evaluate_honest(options).map(|()| Completion::Completed)
        });
        trials.push(trial);
    }
    trials
}

/// Ways to time a kernel that adds to what it finds.
const HONEST: [(&str, &[&str]); 5] = [
    ("one_call_per_window", &["--number", "1", "--warmup", "2", "--repeat", "3"]),
    ("without_warm_up", &["--warmup", "0", "--number", "1", "--repeat", "2"]),
    ("without_warm_up_for_an_odd_number", &["--warmup", "0", "--number", "1", "--repeat", "3"]),
    ("flushed", &["--flush-cache", "sample"]),
    ("many_calls", &["--number", "100"]),
];

fn evaluate_honest(options: &[&str]) -> Result<(), Failed> {
    let run = tempfile::tempdir()?;
    std::fs::write(
        run.path().join("add.wgsl"),
        "@group(0) @binding(0) var<storage, read> x: array<f32>;\n\
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;\n\
         @group(0) @binding(2) var<storage, read_write> z: array<f32>;\n\
         @compute @workgroup_size(64) fn k(@builtin(global_invocation_id) id: vec3<u32>) {\n\
         y[id.x] = y[id.x] + x[id.x]; z[id.x] = 2.0 * x[id.x]; }\n",
    )?;
    std::fs::write(
        run.path().join("add.c"),
        "void k(const float *x, float *y, float *z) { for (int i = 0; i < 4096; i++) { y[i] += x[i]; z[i] = 2 * x[i]; } }\n",
    )?;
    let arg = |rest: &str| format!("[[arg]]\ndtype = \"f32\"\nshape = [4096]\n{rest}\n");
    let spec = format!(
        "version = 1\n[kernel]\npath = \"add.wgsl\"\nentry = \"k\"\n[launch]\ngroups = 64\n{}{}{}[reference]\npath = \"add.c\"\nentry = \"k\"\n",
        arg("init = \"random\"\nuse = \"read\""),
        arg("init = \"ones\"\nuse = \"readwrite\""),
        arg("use = \"write\""),
    );
    std::fs::write(run.path().join("spec.toml"), spec)?;
    // A window in eight is compared at random: some of the others must be the last.
    for _ in 0..4 {
        let mut command = sandboxed::command(run.path(), &["host"]);
        command.args(["spec.toml", "--device", "host", "--budget-s", "2"]).args(options);
        let (rows, said) = sandboxed::rows(&mut command, run.path())?;
        let row = rows.into_iter().next().ok_or_else(|| Failed::from(said))?;
        if row["status"] != "right" || row["judged"]["inputs"] != "fresh" {
            return Err(format!("{options:?}: {}: {row}", row["outcome"]).into());
        }
    }
    Ok(())
}

fn check(attack: &Attack, extension: &str, backend: &str) -> Result<Completion, Failed> {
    let run = tempfile::tempdir()?;
    let folder = folder().join("device").display().to_string();
    let (options, group_size, used) = match extension {
        "cl" => (
            format!("options = {{ include = \"{folder}\", build_options = \"-cl-std=CL3.0\" }}"),
            "group_size = 64",
            "use = \"write\"",
        ),
        // Portable code is known to read its output.
        _ => (String::new(), "", "use = \"readwrite\"\ninit = \"zeros\""),
    };
    let file = format!("{}.{extension}", attack.name);
    let elsewhere = tempfile::tempdir()?;
    let secret = elsewhere.path().join("secret.h");
    std::fs::write(&secret, "// A secret.\n")?;
    let code = std::fs::read_to_string(Path::new(&folder).join(&file))?;
    std::fs::write(run.path().join(&file), code.replace("SECRET", &secret.display().to_string()))?;
    let text = SPEC.replace("{folder}", &folder).replace("{file}", &file);
    let text = text.replace("{options}", &options).replace("{group_size}", group_size);
    std::fs::write(run.path().join("spec.toml"), text.replace("{use}", used))?;
    let row = |options: &[&str]| {
        let mut command = sandboxed::command(run.path(), &["host", backend]);
        command.args(["spec.toml", "--device", backend, "--timeout", "60", "--budget-s", "5"]).args(options);
        let (rows, said) = sandboxed::rows(&mut command, run.path())?;
        rows.into_iter().next().ok_or_else(|| Failed::from(said))
    };
    let first = row(&["--trust"])?;
    if first["outcome"]["kind"] == "skipped" && !required(backend) {
        return Ok(Completion::ignored_with(first["reason"].to_string()));
    }
    if first["outcome"]["log"].as_str().is_some_and(|log| log.contains("program scope variable")) {
        return Ok(Completion::ignored_with("PoCL before 4.0 has no variables of the device"));
    }
    attack.check_rows(|options| {
        let row = row(options)?;
        let judged = &row["judged"];
        let is_judged = judged["inputs"] == "fresh" && judged["sandboxed"].is_null();
        match is_judged != options.contains(&"--trust") {
            true => Ok(row),
            false => Err(format!("with {options:?}: {row}").into()),
        }
    })?;
    Ok(Completion::Completed)
}
