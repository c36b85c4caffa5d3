//! `cargo xtask fuzz [SECONDS [TARGET…]]`: every fuzz target of `tests/fuzz` for that long, from the seeds that are kept there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Nightly, install};
use crate::process::{Failure, Outcome, is_installed, output, run};
use crate::workspace::Workspace;

/// How long each target runs.
const SECONDS: u64 = 60;
/// The package, outside the workspace.
const FOLDER: &str = "tests/fuzz";
/// One input that takes longer hangs.
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
    let folder = workspace.harden("fuzz");
    // All before the first one runs: one state of the tree is attacked.
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

fn parse(seconds: &str) -> Outcome<u64> {
    seconds.parse().map_err(|_| {
        Failure::new(format!("`{seconds}` is no number of seconds: cargo xtask fuzz [SECONDS [TARGET…]]"))
    })
}

/// The targets that were asked for; all of them where none was.
fn select<'a>(listed: &'a str, chosen: &'a [String]) -> Outcome<Vec<&'a str>> {
    let all: Vec<_> = listed.split_whitespace().collect();
    if chosen.is_empty() {
        return Ok(all);
    }
    match chosen.iter().find(|name| !all.contains(&name.as_str())) {
        Some(name) => Err(Failure::new(format!("there is no fuzz target `{name}`, only {}", all.join(", ")))),
        None => Ok(chosen.iter().map(String::as_str).collect()),
    }
}

/// One target's run.
struct FuzzRun<'a> {
    target: &'a str,
    seconds: u64,
    /// Folder of the seeds that are kept, a folder per target.
    seeds: PathBuf,
    /// Where the corpus, the findings and the logs go.
    folder: &'a Path,
}

impl FuzzRun<'_> {
    /// Runs the target, and tells how many inputs it was given.
    fn run(&self, built: &Path) -> Outcome<u64> {
        let log = self.create_folder("logs")?.join("log");
        let mut command = Command::new(built.join(self.target));
        // What is found goes to the first directory; the seeds stay as they are.
        command.arg(self.create_folder("corpus")?).arg(self.seeds.join(self.target));
        command.arg(format!("-artifact_prefix={}/", self.create_folder("artifacts")?.display()));
        command.arg(format!("-max_total_time={}", self.seconds)).arg(format!("-timeout={TIMEOUT_SECONDS}"));
        // Objects that a table without `close` leaves behind count too.
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

/// How many inputs the fuzzer says that it ran.
fn executed_units(log: &str) -> Option<u64> {
    log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok())
}

/// The last lines, where a finding is described.
fn last_lines(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_chosen_by_name() {
        assert_eq!(select("npy\ntable\n", &[]).unwrap(), ["npy", "table"]);
        assert_eq!(select("npy\ntable\n", &["table".to_owned()]).unwrap(), ["table"]);
        let failure = select("npy\ntable\n", &["tables".to_owned()]).unwrap_err();
        assert_eq!(failure.to_string(), "there is no fuzz target `tables`, only npy, table");
        assert!(parse("long").unwrap_err().to_string().starts_with("`long` is no number of seconds"));
    }

    #[test]
    fn the_count_is_what_the_fuzzer_says_at_its_end() {
        assert_eq!(executed_units("#12 DONE\nstat::number_of_executed_units: 21\n"), Some(21));
        assert_eq!(executed_units("==1== ERROR: AddressSanitizer"), None);
        assert_eq!(last_lines(&"line\n".repeat(100)).lines().count(), 60);
    }
}
