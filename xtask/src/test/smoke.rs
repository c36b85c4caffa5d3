//! Runs the examples, the conformance runner and the command as a user would.

use std::process::Command;

use crate::process::{Outcome, run as run_command};
use crate::workspace::{Profile, Workspace};

/// A smoke run and its outcome.
pub(super) struct Step {
    name: String,
    pub(super) outcome: Outcome,
}

/// Command lines for the smoke runs of the command.
const COMMAND_LINES: &[(&str, &str)] = &[
    ("devices", "devices"),
    ("doctor", "doctor"),
    ("run", "run kernels/vector_add.toml --device host"),
    ("eval", "eval kernels/native/matmul_small.toml --device host --repeat 3 --min-repeat-ms 1"),
];

pub(super) fn run(workspace: &Workspace) -> Vec<Step> {
    let mut steps = Vec::new();
    for example in workspace.targets("example") {
        let path = format!("examples/{}", example.name);
        let mut program = workspace.executable(Profile::Debug, &path);
        steps.push(step(format!("example {}", example.name), &mut program));
    }
    // One device: the suite's test runs all of them, and fails if a required one is absent.
    let mut conformance = workspace.executable(Profile::Debug, "conformance");
    conformance.args(["--quiet", "--backend", "null:0"]).env("RUNTIME_REQUIRE", "null");
    steps.push(step("conformance".to_owned(), &mut conformance));
    for (name, line) in COMMAND_LINES {
        let mut command = workspace.executable(Profile::Debug, "runtime");
        command.current_dir(&workspace.root).args(line.split(' '));
        steps.push(step(format!("runtime {name}"), &mut command));
    }
    steps
}

fn step(name: String, command: &mut Command) -> Step {
    Step { name, outcome: run_command(command) }
}

pub(super) fn summary(steps: &[Step]) -> String {
    let line = |step: &Step| match &step.outcome {
        Ok(()) => format!("ok      {}", step.name),
        Err(failure) => format!("FAILED  {}: {failure}", step.name),
    };
    steps.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_shows_failures_with_the_reason() {
        let steps = [
            step("good".to_owned(), &mut Command::new("true")),
            step("bad".to_owned(), &mut Command::new("false")),
        ];
        let text = summary(&steps);
        assert!(text.contains("ok      good"), "{text}");
        assert!(text.contains("FAILED  bad: `false` ended with"), "{text}");
    }
}
