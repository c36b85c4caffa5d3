//! Kernels that want a better verdict than they deserve (`tests/attacks`): none gets it, and where nothing defends, each does. Ignored
//! where the system lacks a part of the sandbox; `RUNTIME_REQUIRE=sandbox` makes that a failure. Build the workspace first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Completion, Failed, Trial};
use serde_json::Value;

use crate::sandboxed;

const SPEC: &str = r#"version = 1
[kernel]
path = "{attacks}/{name}.c"
entry = "k"
options = { flags = "-I{folder}" }
[[arg]]
dtype = "f32"
shape = [1000]
init = "random"
use = "read"
[[arg]]
name = "y"
dtype = "f32"
shape = [1000]
use = "write"
[[arg]]
scalar = "f32"
value = 2.5
[[arg]]
name = "n"
scalar = "i64"
value = 1000
[reference]
path = "{attacks}/honest.c"
entry = "k"
[eval]
repeat = 3
number = 10
warmup = 3
"#;

/// What the first lines of an attack say.
#[derive(Clone, Debug)]
pub(crate) struct Attack {
    pub(crate) name: String,
    pub(crate) ends: Expectation,
    /// Options with which it succeeds, and how; `None` if it cannot.
    pub(crate) accepted: Option<(Vec<String>, Expectation)>,
    /// Whether it is for this processor.
    runs_here: bool,
}

/// A kind of outcome, and what the median, in milliseconds, or the largest error, in ulp, is at least or at most.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    kind: String,
    bound: Option<Bound>,
}

#[derive(Clone, Debug)]
struct Bound {
    is_least: bool,
    value: f64,
    unit: String,
}

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |attack: Attack| {
        sandboxed::trial(format!("attacks::{}", attack.name), move || match attack.runs_here {
            true => attack.check().map(|()| Completion::Completed),
            false => Ok(Completion::ignored_with("it is for another processor")),
        })
    };
    let repeated =
        sandboxed::trial("attacks::a_rejected_row_names_the_command_that_repeats_it".to_owned(), || {
            repeat_a_rejected_row().map(|()| Completion::Completed)
        });
    let last =
        sandboxed::trial("attacks::the_last_window_that_is_timed_is_compared_in_full".to_owned(), || {
            compare_the_last_window().map(|()| Completion::Completed)
        });
    attacks().into_iter().map(trial).chain([repeated, last]).collect()
}

/// Of a large output, other windows are compared at random: one wrong element is found with luck. These are two first calls, three of the
/// warm-up, and three windows.
fn compare_the_last_window() -> Result<(), Failed> {
    let run = Run::new("wrong_at_last", "60")?;
    let spec = run.0.path().join("spec.toml");
    let text = std::fs::read_to_string(&spec)?.replace("1000", "1000000");
    std::fs::write(&spec, text.replace("number = 10", "number = 5"))?;
    Expectation::parse("wrong_result").check(&run.row(&["--sandbox", "required"])?)
}

fn repeat_a_rejected_row() -> Result<(), Failed> {
    let run = Run::new("knows_the_inputs", "20")?;
    let spec = "it's a spec.toml";
    std::fs::rename(run.0.path().join("spec.toml"), run.0.path().join(spec))?;
    let mut command = sandboxed::command(run.0.path(), &["host"]);
    command.args([spec, "--device", "host:0", "--set", "n=1000", "--sandbox", "required"]);
    let (rows, said) = sandboxed::rows(&mut command, run.0.path())?;
    let first = rows.first().ok_or_else(|| Failed::from(said.clone()))?;
    let told = first["command"].as_str().and_then(|command| command.strip_prefix("runtime "));
    let told = told.ok_or_else(|| Failed::from(first.to_string()))?;
    assert!(said.contains(&format!("to repeat it: runtime {told}")), "{said}");
    let found = &first["judged"]["found"];
    assert!(found["check"] == "single_call" && found["window"].as_u64() > Some(2), "{first}");
    let reason = format!("found in window {}, a single call", found["window"]);
    assert!(first["reason"].as_str().is_some_and(|text| text.contains(&reason)), "{first}");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("'{}' {told} \"$0\" \"$1\"", env!("CARGO_BIN_EXE_runtime"))]);
    shell.current_dir(run.0.path()).envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let (rows, said) = sandboxed::rows(&mut shell, run.0.path())?;
    let second = rows.first().ok_or_else(|| Failed::from(said))?;
    for field in ["argument", "worst_index", "actual", "expected", "wrong"] {
        let [first, second] = [first, second].map(|row| &row["outcome"][field]);
        assert!(!first.is_null() && first == second, "{field}: {first} and {second}");
    }
    assert_eq!(second["command"], first["command"]);
    Ok(())
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/attacks").canonicalize().unwrap()
}

fn attacks() -> Vec<Attack> {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let code = files.filter(|path| path.extension().is_some_and(|extension| extension == "c"));
    let mut attacks: Vec<Attack> = code.map(|path| Attack::read(&path)).collect();
    attacks.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(attacks.len() > 30, "{attacks:?}");
    attacks
}

impl Attack {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let line = |begin: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(begin));
            found
                .unwrap_or_else(|| panic!("{}: no line \"{begin}\"", path.display()))
                .trim_end_matches('.')
                .to_owned()
        };
        assert!(line("// Surface: ").contains("Severity: "), "{}", path.display());
        let accepted = line("// Accepted with: ");
        let accepted = (accepted != "nothing").then(|| {
            let (options, bound) = accepted
                .split_once(", ")
                .map_or((&*accepted, None), |(options, bound)| (options, Some(bound)));
            let ends = bound.map_or("ok".to_owned(), |bound| format!("ok, {bound}"));
            (options.split(' ').map(str::to_owned).collect(), Expectation::parse(&ends))
        });
        Self {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            ends: Expectation::parse(&line("// Ends as: ")),
            accepted,
            runs_here: cfg!(target_arch = "x86_64") || !text.contains("// Processor: x86-64"),
        }
    }

    fn check(&self) -> Result<(), Failed> {
        // A busy machine may need long for what ends by itself.
        let run = Run::new(&self.name, if self.ends.kind == "timeout" { "5" } else { "60" })?;
        self.check_rows(|options| run.row(options))
    }

    /// Checks how it ends, and that it is accepted where nothing defends: `row` evaluates it with options.
    pub(crate) fn check_rows(&self, row: impl Fn(&[&str]) -> Result<Value, Failed>) -> Result<(), Failed> {
        self.ends.check(&row(&["--sandbox", "required"])?)?;
        match &self.accepted {
            Some((options, expectation)) => {
                let options: Vec<&str> = options.iter().map(String::as_str).collect();
                expectation.check(&row(&options)?).map_err(|failed| {
                    Failed::from(format!("with {options:?}: {}", failed.message().unwrap_or_default()))
                })
            }
            None => Ok(()),
        }
    }
}

impl Expectation {
    /// `KIND`, or `KIND, in at least 2 ms`, or `KIND, with at most 4 ulp`.
    fn parse(text: &str) -> Self {
        let mut words = text.split(' ');
        let kind = words.next().unwrap().trim_end_matches(',').to_owned();
        let bound = words.collect::<Vec<_>>();
        let bound = (!bound.is_empty()).then(|| match bound[..] {
            ["in" | "with", "at", which, value, unit] => {
                Bound { is_least: which == "least", value: value.parse().unwrap(), unit: unit.to_owned() }
            }
            _ => panic!("{text}"),
        });
        Self { kind, bound }
    }

    fn check(&self, row: &Value) -> Result<(), Failed> {
        let holds = self.bound.as_ref().is_none_or(|Bound { is_least, value, unit }| {
            let found = match &**unit {
                "ulp" => row["validation"]["max_ulp"].as_f64(),
                _ => row["measurement"]["statistics"]["median_ns"].as_f64().map(|time| time / 1e6),
            };
            found.is_some_and(|found| if *is_least { found >= *value } else { found <= *value })
        });
        match row["outcome"]["kind"] == self.kind && holds {
            true => Ok(()),
            false => Err(format!("{self:?}: {}: {row}", row["outcome"]).into()),
        }
    }
}

/// A folder with the spec of an attack, and the timeout in seconds.
struct Run(tempfile::TempDir, &'static str);

impl Run {
    fn new(name: &str, timeout_s: &'static str) -> Result<Self, Failed> {
        let run = Self(tempfile::tempdir()?, timeout_s);
        if name == "forges_its_row" {
            run.write_spec("honest")?;
            let mut row = run.row(&["--trust"])?;
            for time in ["min_ns", "median_ns", "mean_ns", "max_ns"] {
                row["measurement"]["statistics"][time] = 1.0.into();
            }
            let text = Value::from(row.to_string());
            std::fs::write(run.0.path().join("row.h"), format!("#define ROW {text}\n"))?;
        }
        run.write_spec(name)?;
        Ok(run)
    }

    fn write_spec(&self, name: &str) -> std::io::Result<()> {
        let text = SPEC.replace("{attacks}", &folder().display().to_string());
        let text = text.replace("{folder}", &self.0.path().display().to_string()).replace("{name}", name);
        let code = std::fs::read_to_string(folder().join(format!("{name}.c")))?;
        let tolerance = code.lines().find_map(|line| line.strip_prefix("// Tolerance: "));
        let text = match tolerance {
            Some(rtol) => text.replace("[eval]", &format!("rtol = {}\n[eval]", rtol.trim_end_matches('.'))),
            None => text,
        };
        std::fs::write(self.0.path().join("spec.toml"), text)
    }

    #[allow(unsafe_code, reason = "closes descriptors in the child")]
    fn row(&self, options: &[&str]) -> Result<Value, Failed> {
        let mut command = sandboxed::command(self.0.path(), &["host"]);
        command
            .args(["spec.toml", "--device", "host:0", "--timeout", self.1, "--budget-s", "5"])
            .args(options);
        command.env("RUNTIME_ATTACK_SECRET", "1");
        // Attacks that write to all descriptors must not reach those of whoever runs the tests.
        let close = || {
            // SAFETY: only changes descriptors.
            unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
            Ok(())
        };
        // SAFETY: the function makes a system call only.
        unsafe { command.pre_exec(close) };
        let (rows, said) = sandboxed::rows(&mut command, self.0.path())?;
        rows.into_iter().next().ok_or_else(|| Failed::from(said))
    }
}
