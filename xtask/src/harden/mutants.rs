//! `cargo xtask mutants [--in-place] [--shard K/N] [MODULE…]`: mutation testing with cargo-mutants. A mutant that no test
//! catches shows a missing test; `.cargo/mutants.toml` lists equivalent mutants.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::install;
use crate::process::{Failure, Outcome, is_installed, output, run, run_for_code};
use crate::workspace::Workspace;

/// Minimum percentage of viable mutants that the tests must catch.
const CAUGHT_PERCENT: usize = 95;
/// A test run that takes this many times the baseline counts as a hang, and the mutant as caught.
const TIMEOUT_FACTOR: u64 = 5;
/// Exit codes of a completed `cargo mutants`: all caught, some missed, some timed out.
const COMPLETED_CODES: [i32; 3] = [0, 2, 3];

/// A module and the tests that cover it.
#[derive(Debug)]
struct Module {
    name: &'static str,
    package: &'static str,
    files: &'static [&'static str],
    /// The fastest tests first; later ones run on the mutants that the earlier ones missed.
    runs: &'static [Run],
}

/// A package, and the arguments of `cargo test`.
type Run = (&'static str, &'static [&'static str]);

/// Core's unit and integration tests; then the conformance suite on the null backend.
const CORE: &[Run] = &[
    ("runtime-core", &["--lib"]),
    (
        "runtime-core",
        &[
            "--test=integration",
            "--",
            "under_miri::",
            "views::",
            "wrong_answers::",
            "closing::",
            "queues_under_faults::",
        ],
    ),
    ("runtime-core", &["--test=integration", "--", "drop_orders::"]),
    ("runtime-null", &[]),
];
/// The unit tests of the lowering; then kernels from the WGSL specification on the devices of this machine.
const LOWERING: &[Run] = &[
    (
        "runtime-kernel",
        &[
            "--lib",
            "--",
            "bounds_checks",
            "proof::polynomial",
            "proof::trip_count",
            "proof::unrolling",
            "c::tests",
        ],
    ),
    ("runtime-kernel", &["--lib", "--test=integration"]),
    ("runtime-portable-tests", &["--test=trials", "--", "semantics::vulkan:0"]),
    ("runtime-portable-tests", &["--test=trials", "--", "semantics::"]),
    ("runtime-portable-tests", &["--test=trials", "--", "reports::"]),
    ("runtime-portable-tests", &["--test=trials", "--", "properties::"]),
];
/// The unit tests of what reads and edits texts; then those of the lowering, and kernels on the devices of this machine.
const TEXTS: &[Run] = &[
    ("runtime-kernel", &["--lib", "--", "parse::"]),
    ("runtime-kernel", &["--lib", "--test=integration"]),
    ("runtime-portable-tests", &["--test=trials", "--", "semantics::vulkan:0::"]),
    ("runtime-portable-tests", &["--test=trials", "--", "rejected::"]),
];

const MODULES: [Module; 11] = [
    Module {
        name: "hazards",
        package: "runtime-core",
        files: &["runtime-core/src/timeline/hazards.rs"],
        runs: CORE,
    },
    Module {
        name: "timeline",
        package: "runtime-core",
        files: &[
            "runtime-core/src/timeline/mod.rs",
            "runtime-core/src/timeline/edges.rs",
            "runtime-core/src/timeline/wait.rs",
        ],
        runs: CORE,
    },
    Module {
        name: "submit",
        package: "runtime-core",
        files: &["runtime-core/src/queue/submit.rs"],
        runs: CORE,
    },
    Module {
        name: "negotiate",
        package: "runtime-core",
        files: &["runtime-core/src/plugin/negotiate.rs"],
        runs: &[("runtime-core", &["--lib"]), ("runtime-abi-tests", &[])],
    },
    Module {
        name: "statistics",
        package: "runtime-core",
        files: &["runtime-core/src/evaluate/statistics.rs"],
        runs: &[("runtime-core", &["--lib"]), ("runtime-core", &["--test=integration", "--", "evaluate::"])],
    },
    Module {
        name: "identity",
        package: "runtime-host",
        files: &["runtime-host/src/identity/**"],
        runs: &[("runtime-host", &["--lib"])],
    },
    Module {
        name: "proof",
        package: "runtime-kernel",
        files: &["runtime-kernel/src/analysis/proof/**"],
        runs: LOWERING,
    },
    Module {
        name: "bounds_checks",
        package: "runtime-kernel",
        files: &["runtime-kernel/src/transform/bounds_checks/**"],
        runs: LOWERING,
    },
    Module {
        name: "verify",
        package: "runtime-kernel",
        files: &["runtime-kernel/src/print/c/host/verify/**"],
        runs: &[("runtime-kernel", &["--lib", "--test=integration"])],
    },
    Module {
        name: "constants",
        package: "runtime-kernel",
        files: &["runtime-kernel/src/parse/constants/**"],
        runs: TEXTS,
    },
    Module {
        name: "texts",
        package: "runtime-kernel",
        files: &[
            "runtime-kernel/src/parse/let_values.rs",
            "runtime-kernel/src/parse/merged_types.rs",
            "runtime-kernel/src/parse/negations.rs",
            "runtime-kernel/src/parse/nested_alignments.rs",
            "runtime-kernel/src/parse/pointer_aliases.rs",
            "runtime-kernel/src/parse/rules/**",
        ],
        runs: TEXTS,
    },
];

/// The parsed command line.
#[derive(Debug)]
struct Request<'a> {
    modules: Vec<&'a Module>,
    /// Options passed to every run of `cargo mutants`.
    options: Vec<&'a str>,
    /// Whether only a shard of the mutants is tested.
    is_sharded: bool,
}

/// Tests the mutants of the named modules, or of all of them. Resumes an interrupted run.
pub(crate) fn mutants(arguments: &[String]) -> Outcome {
    let request = Request::parse(arguments)?;
    let workspace = Workspace::read()?;
    if !is_installed("cargo-mutants") {
        install(&mut workspace.cargo(&["install", "--quiet", "--locked", "cargo-mutants"]))?;
    }
    let mut below_limit = Vec::new();
    println!("{:<12}{:>8}{:>8}{:>8}{:>8}{:>10}", "module", "mutants", "caught", "missed", "hang", "caught %");
    for module in &request.modules {
        let folder = workspace.harden_dir("mutants").join(module.name);
        fs::create_dir_all(&folder)?;
        // Outcomes that an interrupted run left behind.
        if mutants_out(&folder).is_dir() {
            MutantCounts::record(&folder)?;
        }
        module.run_all(&workspace, &folder, &request.options)?;
        let counts = MutantCounts::read(&folder, &module.mutants_listed(&workspace)?)?;
        println!("{:<12}{counts}", module.name);
        counts.missed.iter().for_each(|missed| println!("  missed: {missed}"));
        if counts.percent() < CAUGHT_PERCENT {
            below_limit.push(format!("{} {}%", module.name, counts.percent()));
        }
    }
    if request.is_sharded {
        println!("only a shard of the mutants was tested");
    }
    if below_limit.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "fewer than {CAUGHT_PERCENT}% of the mutants are caught: {}",
        below_limit.join(", ")
    )))
}

impl<'a> Request<'a> {
    fn parse(arguments: &'a [String]) -> Outcome<Self> {
        let mut request = Self { modules: Vec::new(), options: Vec::new(), is_sharded: false };
        let mut rest = arguments.iter().map(String::as_str);
        while let Some(word) = rest.next() {
            match word {
                "--in-place" => request.options.push(word),
                "--shard" => {
                    let part = rest.next().ok_or_else(|| Failure::new("--shard takes K/N, e.g. 0/4"))?;
                    request.options.extend([word, part]);
                    request.is_sharded = true;
                }
                name => request.modules.push(find(name)?),
            }
        }
        if request.modules.is_empty() {
            request.modules = MODULES.iter().collect();
        }
        Ok(request)
    }
}

fn find(name: &str) -> Outcome<&'static Module> {
    let names = || MODULES.iter().map(|module| module.name).collect::<Vec<_>>().join(", ");
    let found = MODULES.iter().find(|module| module.name == name);
    found.ok_or_else(|| Failure::new(format!("there is no module `{name}`; the modules are {}", names())))
}

impl Module {
    fn mutants(&self, workspace: &Workspace, options: &[&str]) -> Command {
        let mut cargo = workspace.cargo(&["mutants", "--package", self.package]);
        cargo.args(self.files.iter().flat_map(|file| ["--file", file])).args(options);
        cargo
    }

    /// All mutants of the current source; earlier runs may have tested others.
    fn mutants_listed(&self, workspace: &Workspace) -> Outcome<BTreeSet<String>> {
        let list = output(&mut self.mutants(workspace, &["--list", "--colors=never"]))?;
        Ok(list.lines().map(str::to_owned).collect())
    }

    /// Runs the first tests against every mutant, the next ones against the survivors.
    fn run_all(&self, workspace: &Workspace, folder: &Path, options: &[&str]) -> Outcome {
        self.runs.iter().try_for_each(|run| self.run_tests(workspace, folder, options, *run))
    }

    fn run_tests(
        &self,
        workspace: &Workspace,
        folder: &Path,
        options: &[&str],
        (package, tests): Run,
    ) -> Outcome {
        let mut cargo = self.mutants(workspace, &["--iterate", "--cap-lints=true", "--colors=never"]);
        cargo.args(["--test-package", package]);
        cargo.arg("--output").arg(folder).args(options);
        let (targets, filters) =
            tests.split_at(tests.iter().position(|word| *word == "--").unwrap_or(tests.len()));
        // As cargo arguments, the targets also limit what is built; that works for the mutated package only.
        if package == self.package {
            cargo.args(["--timeout-multiplier", &TIMEOUT_FACTOR.to_string()]);
            cargo.args(targets.iter().map(|target| format!("--cargo-arg={target}"))).arg("--").args(filters);
        } else {
            // cargo-mutants' own baseline would look for the targets in the mutated package.
            let began = Instant::now();
            run_baseline(workspace, package, tests)?;
            let seconds = 60 + TIMEOUT_FACTOR * began.elapsed().as_secs();
            cargo.args(["--baseline=skip", "--timeout", &seconds.to_string(), "--"]).args(tests);
        }
        // Backtraces of expected panics take longer than the tests themselves.
        cargo.env("RUST_BACKTRACE", "0").env(RUN_NULL_SUITE, "1");
        check_completed(&mut cargo)?;
        MutantCounts::record(folder)
    }
}

/// Runs the tests on unchanged code: if they fail there, every mutant would count as caught. Builds the backends first,
/// which device tests load.
fn run_baseline(workspace: &Workspace, package: &str, tests: &[&str]) -> Outcome {
    let backends = workspace.device_backends();
    let packages = backends.iter().flat_map(|backend| ["--package", &backend.package]);
    run(workspace.cargo(&["build", "--quiet"]).args(packages))?;
    run(workspace.cargo(&["test", "--quiet", "--package", package]).args(tests).env(RUN_NULL_SUITE, "1"))
}

/// Makes the tests of the null backend run the conformance suite.
const RUN_NULL_SUITE: &str = "RUNTIME_NULL_SUITE";

fn check_completed(cargo: &mut Command) -> Outcome {
    let code = run_for_code(cargo)?;
    if code.is_some_and(|code| COMPLETED_CODES.contains(&code)) {
        return Ok(());
    }
    Err(Failure::new(format!("cargo-mutants ended with {code:?}; its own log is in target/harden/mutants")))
}

/// The outcomes of a module's mutants over all runs.
#[derive(Debug, Default, PartialEq, Eq)]
struct MutantCounts {
    caught: usize,
    hanging: usize,
    missed: Vec<String>,
}

/// The lists that `cargo mutants` writes for one run, one file per outcome.
const OUTCOMES: [&str; 4] = ["caught", "timeout", "missed", "unviable"];
/// The outcome of every mutant over all runs.
const OUTCOME_FILE: &str = "fates.txt";

impl MutantCounts {
    /// Adds the outcomes of the last run to the recorded ones.
    fn record(folder: &Path) -> Outcome {
        let mut outcomes = read_outcomes(&folder.join(OUTCOME_FILE));
        for outcome in OUTCOMES {
            let lines = fs::read_to_string(mutants_out(folder).join(outcome).with_extension("txt"))
                .unwrap_or_default();
            outcomes.extend(lines.lines().map(|line| (line.to_owned(), outcome.to_owned())));
        }
        // `--iterate` skips caught mutants but would test those that timed out again.
        let hanging = outcomes.iter().filter(|(_, outcome)| *outcome == "timeout");
        let hanging: String = hanging.map(|(change, _)| format!("{change}\n")).collect();
        let mut caught =
            fs::OpenOptions::new().create(true).append(true).open(mutants_out(folder).join("caught.txt"))?;
        caught.write_all(hanging.as_bytes())?;
        let text: String = outcomes.iter().map(|(change, outcome)| format!("{outcome} {change}\n")).collect();
        Ok(fs::write(folder.join(OUTCOME_FILE), text)?)
    }

    /// The outcomes of the given mutants.
    fn read(folder: &Path, changes: &BTreeSet<String>) -> Outcome<Self> {
        let mut outcomes = read_outcomes(&folder.join(OUTCOME_FILE));
        outcomes.retain(|change, _| changes.contains(change));
        if outcomes.is_empty() {
            return Err(Failure::new(format!("no mutant was tested: see {}", mutants_out(folder).display())));
        }
        Ok(Self::of(&outcomes))
    }

    fn of(outcomes: &BTreeMap<String, String>) -> Self {
        let count = |wanted: &str| outcomes.values().filter(|outcome| *outcome == wanted).count();
        let missed =
            outcomes.iter().filter(|(_, outcome)| *outcome == "missed").map(|(change, _)| change.clone());
        Self { caught: count("caught"), hanging: count("timeout"), missed: missed.collect() }
    }

    /// The percentage of mutants caught; a hang counts as caught.
    fn percent(&self) -> usize {
        let caught = self.caught + self.hanging;
        100 * caught / (caught + self.missed.len()).max(1)
    }
}

impl std::fmt::Display for MutantCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (caught, hanging, missed) = (self.caught, self.hanging, self.missed.len());
        let all = caught + hanging + missed;
        write!(f, "{all:>8}{caught:>8}{missed:>8}{hanging:>8}{:>10}", self.percent())
    }
}

/// The output directory of `cargo mutants`.
fn mutants_out(folder: &Path) -> PathBuf {
    folder.join("mutants.out")
}

/// Reads the recorded outcome of each mutant.
fn read_outcomes(file: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line =
        |line: &str| line.split_once(' ').map(|(outcome, change)| (change.to_owned(), outcome.to_owned()));
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_shards_are_selected() {
        let words = ["--shard", "0/4", "identity"].map(str::to_owned);
        let request = Request::parse(&words).unwrap();
        assert_eq!(request.modules.iter().map(|module| module.name).collect::<Vec<_>>(), ["identity"]);
        assert!(request.is_sharded && request.options == ["--shard", "0/4"]);
        assert_eq!(Request::parse(&[]).unwrap().modules.len(), MODULES.len());
        let failure = Request::parse(&["hazard".to_owned()]).unwrap_err().to_string();
        assert!(
            failure.starts_with("there is no module `hazard`; the modules are hazards, timeline"),
            "{failure}"
        );
    }

    #[test]
    fn the_last_outcome_of_a_mutant_counts() {
        let folder = std::env::temp_dir().join(format!("xtask-mutants-{}", std::process::id()));
        let list = |outcome: &str, changes: &str| {
            fs::create_dir_all(mutants_out(&folder)).unwrap();
            fs::write(mutants_out(&folder).join(outcome).with_extension("txt"), changes).unwrap();
        };
        list("missed", "a.rs:1: x\na.rs:2: y\n");
        list("caught", "a.rs:3: z\n");
        MutantCounts::record(&folder).unwrap();
        let changes = ["a.rs:1: x", "a.rs:2: y", "a.rs:3: z"].map(str::to_owned).into();
        let first = MutantCounts::read(&folder, &changes).unwrap();
        fs::remove_dir_all(mutants_out(&folder)).unwrap();
        list("caught", "a.rs:1: x\n");
        MutantCounts::record(&folder).unwrap();
        let second = MutantCounts::read(&folder, &changes).unwrap();
        let third = MutantCounts::read(&folder, &["a.rs:3: z".to_owned()].into()).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((first.caught, first.missed.len(), first.percent()), (1, 2, 33));
        assert_eq!((third.caught, third.missed.len()), (1, 0), "mutants that no longer exist do not count");
        assert_eq!(second, MutantCounts { caught: 2, hanging: 0, missed: vec!["a.rs:2: y".to_owned()] });
    }
}
