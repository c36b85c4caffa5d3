//! The example of a client in Python. Ignored without Python; `RUNTIME_REQUIRE=python` makes that a failure. Build the workspace first.

use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::{Completion, Failed, Trial};
use test_process::required;

use crate::sandboxed;

/// What it prints of each candidate at the beginning of a line.
const VERDICTS: [&str; 5] = [
    "loop: right, ",
    "backwards: right, ",
    "too short: wrong: argument 1: 1 of 10000 elements are wrong",
    "no C: failed: ",
    "endless: cancelled while running",
];

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::ignorable_test("python::the_example_prints_verdicts", run)]
}

fn run() -> Result<Completion, Failed> {
    let python = std::env::var_os("RUNTIME_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let version = Command::new(&python).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        let missing = format!("{} is missing", python.display());
        return if required("python") { Err(missing.into()) } else { Ok(Completion::ignored_with(missing)) };
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(package.join("../docs/serve.md"))?;
    if !page.contains(&std::fs::read_to_string(package.join("examples/serve.py"))?) {
        return Err("docs/serve.md has another program than runtime-cli/examples/serve.py".into());
    }
    let folder = tempfile::tempdir()?;
    let serve =
        sandboxed::command_of(&["serve", "--stdio", "--sandbox", "best-effort"], folder.path(), &["host"]);
    let mut client = Command::new(python);
    client.arg(package.join("examples/serve.py"));
    client.arg(serve.get_program()).args(serve.get_args()).current_dir(folder.path());
    client.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = client.output()?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    let is_said = |verdict: &&str| lines.iter().any(|line| line.starts_with(verdict));
    match output.status.success() && VERDICTS.iter().all(is_said) {
        true => Ok(Completion::Completed),
        false => Err(said.into()),
    }
}
