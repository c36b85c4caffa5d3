//! `cargo xtask test`: builds everything, runs the examples and the command, then all tests.

use std::process::Command;

use crate::process::{Failure, Outcome, run, run_and_keep};
use crate::requirements;
use crate::workspace::{Profile, Workspace};

/// A smoke run and its outcome.
struct Step {
    name: String,
    outcome: Outcome,
}

pub(crate) fn run_tests() -> Outcome {
    requirements::install()?;
    let workspace = Workspace::read()?;
    run(&mut workspace.cargo(&["build", "--quiet", "--workspace", "--all-targets"]))?;
    let steps = smoke_runs(&workspace);
    println!("\n{}", summary(&steps));
    // Repeated at the end: the failures are thousands of lines further up.
    let tests =
        run_and_keep(&mut workspace.cargo(&["test", "--workspace", "--no-fail-fast"]), failure_lines());
    match steps.into_iter().find_map(|step| step.outcome.err().map(|failure| (step.name, failure))) {
        Some((name, failure)) => Err(Failure::new(format!("{name}: {failure}"))),
        None => tests,
    }
}

/// Selects the lines of a test runner that name a failed test, and the first lines of its output.
fn failure_lines() -> impl FnMut(&str) -> bool {
    const LINES_OF_EACH: usize = 24;
    let mut left = 0;
    move |line| {
        if line.starts_with("---- ") {
            left = LINES_OF_EACH;
        } else if line.starts_with("failures:") || line.starts_with("test result:") {
            left = 0;
        }
        let is_chosen = left > 0 || (line.starts_with("test ") && line.ends_with("FAILED"));
        left = left.saturating_sub(1);
        is_chosen
    }
}

/// Runs the examples, the conformance runner and the command as a user would.
fn smoke_runs(workspace: &Workspace) -> Vec<Step> {
    let mut steps = Vec::new();
    for example in workspace.targets("example") {
        let path = format!("examples/{}", example.name);
        steps.push(step(
            format!("example {}", example.name),
            &mut workspace.executable(Profile::Debug, &path),
        ));
    }
    // One device: the suite's test runs all of them, and fails if a required one is absent.
    let mut conformance = workspace.executable(Profile::Debug, "conformance");
    conformance.args(["--quiet", "--backend", "null:0"]).env("RUNTIME_REQUIRE", "null");
    steps.push(step("conformance".to_owned(), &mut conformance));
    for (name, arguments) in COMMAND_LINES {
        let mut command = workspace.executable(Profile::Debug, "runtime");
        steps.push(step(format!("runtime {name}"), command.current_dir(&workspace.root).args(*arguments)));
    }
    steps
}

/// Command lines for the smoke runs of the command.
const COMMAND_LINES: &[(&str, &[&str])] = &[
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
    fn a_failed_test_is_named_with_its_output() {
        let lines =
            ["test a ... ok", "test b ... FAILED", "", "failures:", "", "---- b ----", "b is wrong", ""];
        let ends = ["failures:", "    b", "", "test result: FAILED. 1 passed; 1 failed"];
        let mut choose = failure_lines();
        let chosen: Vec<_> = lines.iter().chain(&ends).filter(|line| choose(line)).collect();
        assert_eq!(chosen, [&"test b ... FAILED", &"---- b ----", &"b is wrong", &""]);
        choose("---- c ----");
        assert_eq!((0..100).filter(|_| choose("words")).count(), 23);
    }

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
