//! `cargo xtask test`: everything that can be run, with the test runner's own lines at the end.

use std::process::Command;

use crate::process::{Failure, Outcome, run};
use crate::requirements;
use crate::workspace::{Profile, Workspace};

/// What was run, and how it went.
struct Step {
    name: String,
    outcome: Outcome,
}

pub(crate) fn perform() -> Outcome {
    requirements::install()?;
    let workspace = Workspace::read()?;
    run(&mut workspace.cargo(&["build", "--quiet", "--workspace", "--all-targets"]))?;
    let steps = before_the_tests(&workspace);
    println!("\n{}", summary(&steps));
    let tests = run(&mut workspace.cargo(&["test", "--workspace", "--no-fail-fast"]));
    match steps.into_iter().find_map(|step| step.outcome.err().map(|failure| (step.name, failure))) {
        Some((name, failure)) => Err(Failure::new(format!("{name}: {failure}"))),
        None => tests,
    }
}

/// The examples, the conformance runner, the command: each as a user runs it.
fn before_the_tests(workspace: &Workspace) -> Vec<Step> {
    let mut steps = Vec::new();
    for example in workspace.targets("example") {
        let path = format!("examples/{}", example.name);
        steps.push(step(
            format!("example {}", example.name),
            &mut workspace.executable(Profile::Debug, &path),
        ));
    }
    let mut conformance = workspace.executable(Profile::Debug, "conformance");
    steps.push(step("conformance".to_owned(), conformance.arg("--quiet")));
    for (name, arguments) in COMMAND {
        let mut command = workspace.executable(Profile::Debug, "runtime");
        steps.push(step(format!("runtime {name}"), command.current_dir(&workspace.root).args(*arguments)));
    }
    steps
}

/// A smoke run of the command.
const COMMAND: &[(&str, &[&str])] = &[
    ("devices", &["devices"]),
    ("doctor", &["doctor"]),
    ("run", &["run", "kernels/vector_add.toml", "--device", "host"]),
    (
        "eval",
        &[
            "eval",
            "kernels/native/matmul_small.toml",
            "--device",
            "host",
            "--repeat",
            "3",
            "--min-repeat-ms",
            "1",
        ],
    ),
];

fn step(name: String, command: &mut Command) -> Step {
    Step { name, outcome: run(command) }
}

fn summary(steps: &[Step]) -> String {
    let mut lines = Vec::new();
    for step in steps {
        lines.push(match &step.outcome {
            Ok(()) => format!("ok      {}", step.name),
            Err(failure) => format!("FAILED  {}: {failure}", step.name),
        });
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_shows_what_failed_and_why() {
        let steps = [
            step("good".to_owned(), &mut Command::new("true")),
            step("bad".to_owned(), &mut Command::new("false")),
        ];
        let text = summary(&steps);
        assert!(text.contains("ok      good"), "{text}");
        assert!(text.contains("FAILED  bad: `false` ended with"), "{text}");
    }
}
