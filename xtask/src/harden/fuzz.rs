//! `cargo xtask fuzz [SECONDS [TARGET…]]`: runs each fuzz target of `tests/fuzz` from its stored seeds.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Nightly, install};
use crate::process::{Failure, Outcome, is_installed, output, run};
use crate::workspace::Workspace;

/// How long each target runs by default.
const SECONDS: u64 = 60;
/// The package, which is outside the workspace.
const FOLDER: &str = "tests/fuzz";
/// An input that takes longer counts as a hang.
const TIMEOUT_SECONDS: u64 = 60;

pub(crate) fn fuzz(arguments: &[String]) -> Outcome {
    let (seconds, chosen) = match arguments {
        [] => (SECONDS, arguments),
        [seconds, chosen @ ..] => (parse(seconds)?, chosen),
    };
    let nightly = Nightly::with(&[])?;
    let workspace = Workspace::read()?;
    if !is_installed("cargo-fuzz") {
        install(&mut workspace.cargo(&["install", "--quiet", "--locked", "--debug", "cargo-fuzz"]))?;
    }
    let folder = workspace.harden_dir("fuzz");
    // Build all targets first, so that all of them run the same state of the tree.
    let mut build = nightly.cargo(&workspace);
    run(build.args(["fuzz", "build", "--fuzz-dir", FOLDER, "--target-dir"]).arg(&folder))?;
    let built = folder.join(nightly.host()?).join("release");
    let listed = output(nightly.cargo(&workspace).args(["fuzz", "list", "--fuzz-dir", FOLDER]))?;
    let mut failed = Vec::new();
    for target in select(&listed, chosen)? {
        let fuzz_run =
            FuzzRun { target, seconds, seeds: workspace.root.join(FOLDER).join("seeds"), folder: &folder };
        match fuzz_run.run(&built) {
            Ok(runs) => println!("ok      {target}: {runs} runs in {seconds} s"),
            Err(failure) => failed.push(format!("{target}: {failure}")),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(failed.join("; "))) }
}

/// Compiles the targets, which no other check does: they are outside the workspace.
pub(crate) fn check_targets(workspace: &Workspace) -> Outcome {
    let manifest = Path::new(FOLDER).join("Cargo.toml");
    let mut check = workspace.cargo(&["check", "--quiet", "--locked", "--manifest-path"]);
    check.arg(manifest).arg("--target-dir").arg(workspace.harden_dir("fuzz-check"));
    // With a library given, `libfuzzer-sys` builds none, which would need a C++ compiler. Nothing is linked.
    run(check.env("CUSTOM_LIBFUZZER_PATH", "/dev/null").env("RUSTFLAGS", "--cfg fuzzing --deny warnings"))
}

fn parse(seconds: &str) -> Outcome<u64> {
    seconds.parse().map_err(|_| {
        Failure::new(format!("`{seconds}` is not a number of seconds: cargo xtask fuzz [SECONDS [TARGET…]]"))
    })
}

/// The targets named, or all of them.
fn select<'a>(listed: &'a str, chosen: &'a [String]) -> Outcome<Vec<&'a str>> {
    let all: Vec<_> = listed.split_whitespace().collect();
    if chosen.is_empty() {
        return Ok(all);
    }
    match chosen.iter().find(|name| !all.contains(&name.as_str())) {
        Some(name) => {
            Err(Failure::new(format!("there is no fuzz target `{name}`; the targets are {}", all.join(", "))))
        }
        None => Ok(chosen.iter().map(String::as_str).collect()),
    }
}

/// A run of one target.
struct FuzzRun<'a> {
    target: &'a str,
    seconds: u64,
    /// Directory of the stored seeds, one subdirectory per target.
    seeds: PathBuf,
    /// Directory for the corpus, the artifacts and the logs.
    folder: &'a Path,
}

impl FuzzRun<'_> {
    /// Runs the target and returns the number of inputs it executed.
    fn run(&self, built: &Path) -> Outcome<u64> {
        let log = self.create_folder("logs")?.join("log");
        let mut command = Command::new(built.join(self.target));
        // libFuzzer adds new inputs to the first directory only, so the seeds stay unchanged.
        command.arg(self.create_folder("corpus")?).arg(self.seeds.join(self.target));
        command.arg(format!("-artifact_prefix={}/", self.create_folder("artifacts")?.display()));
        command.arg(format!("-max_total_time={}", self.seconds)).arg(format!("-timeout={TIMEOUT_SECONDS}"));
        // The memory limit allows for objects that a table without `close` leaks.
        command.args(["-max_len=4096", "-rss_limit_mb=4096", "-print_final_stats=1"]);
        let outcome = run(command.stderr(File::create(&log)?));
        let text = fs::read_to_string(&log).unwrap_or_default();
        outcome.map_err(|failure| Failure::new(format!("{failure}\n{}", last_lines(&text))))?;
        executed_units(&text).ok_or_else(|| Failure::new(format!("{} has no count of runs", log.display())))
    }

    fn create_folder(&self, part: &str) -> Outcome<PathBuf> {
        let folder = self.folder.join(part).join(self.target);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

/// The number of inputs executed, from libFuzzer's statistics.
fn executed_units(log: &str) -> Option<u64> {
    log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok())
}

/// The last lines of the log, which describe a finding.
fn last_lines(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_selected_by_name() {
        assert_eq!(select("npy\ntable\n", &[]).unwrap(), ["npy", "table"]);
        assert_eq!(select("npy\ntable\n", &["table".to_owned()]).unwrap(), ["table"]);
        let failure = select("npy\ntable\n", &["tables".to_owned()]).unwrap_err();
        assert_eq!(failure.to_string(), "there is no fuzz target `tables`; the targets are npy, table");
        assert!(parse("long").unwrap_err().to_string().starts_with("`long` is not a number of seconds"));
    }

    #[test]
    fn the_count_is_read_from_the_final_statistics() {
        assert_eq!(executed_units("#12 DONE\nstat::number_of_executed_units: 21\n"), Some(21));
        assert_eq!(executed_units("==1== ERROR: AddressSanitizer"), None);
        assert_eq!(last_lines(&"line\n".repeat(100)).lines().count(), 60);
    }
}
