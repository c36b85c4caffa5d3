//! Signals at random moments: measured rows survive, and nothing else is left behind.
//!
//! `RUNTIME_TEST_INTERRUPTIONS` sets how often each command gets each signal; use 200 for a thorough run. The delays are
//! random with a seed that is printed; set `RUNTIME_TEST_SEED` to reproduce a run.

use std::collections::BTreeSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use super::fixture::{self, Folder, SCALE};

const SIGNALS: [(&str, i32); 5] = [
    ("INT", libc::SIGINT),
    ("TERM", libc::SIGTERM),
    ("HUP", libc::SIGHUP),
    ("PIPE", libc::SIGPIPE),
    ("KILL", libc::SIGKILL),
];
const ROWS: usize = 4;
/// Time in which a command has started.
const STARTUP: Duration = Duration::from_millis(10);

fn rounds() -> usize {
    std::env::var("RUNTIME_TEST_INTERRUPTIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(2)
}

/// `SplitMix64` with a seed that is printed.
struct Random(u64);

impl Random {
    #[expect(clippy::print_stdout, reason = "shown if the test fails")]
    fn new() -> Self {
        let given = std::env::var("RUNTIME_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| RandomState::new().hash_one("seed"));
        println!("RUNTIME_TEST_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (word ^ (word >> 27)) % most
    }
}

/// A directory with inputs, and its own outputs and temporary files.
struct Sandbox {
    folder: Folder,
    /// The files present before anything runs.
    before: BTreeSet<PathBuf>,
}

impl Sandbox {
    fn new() -> Self {
        let folder = Folder::new();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        for row in 0..ROWS {
            folder.write(
                &format!("row{row}.toml"),
                &SCALE.replacen("name = \"scale\"", &format!("name = \"row{row}\""), 1),
            );
        }
        folder.write("kernel.wgsl", KERNEL);
        let before = files(folder.path());
        Self { folder, before }
    }

    /// Writes a compiler that runs two commands, and returns the file that it makes between them.
    fn compiler(&self, name: &str, first: &str, second: &str) -> PathBuf {
        let started = self.folder.path().join("started");
        self.folder.write(name, &format!("#!/bin/sh\n{first}\ntouch '{}'\n{second}\n", started.display()));
        let permissions = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.folder.path().join(name), permissions).unwrap();
        started
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = fixture::interruptible_command(arguments);
        command.current_dir(self.folder.path()).env("TMPDIR", self.folder.path().join("tmp"));
        command.stdin(Stdio::null()).stdout(self.create("stdout")).stderr(self.create("stderr"));
        // Its own process group tells its children from those of other tests.
        command.process_group(0).spawn().unwrap()
    }

    /// Runs a command with a file size limit of `bytes`.
    fn limited(&self, arguments: &[&str], bytes: u64) -> Output {
        let runtime = fixture::command(arguments);
        let mut child = Command::new("prlimit");
        child.arg(format!("--fsize={bytes}")).arg(runtime.get_program()).args(runtime.get_args());
        child.envs(runtime.get_envs().filter_map(|(key, value)| Some((key, value?))));
        child.current_dir(self.folder.path()).env("TMPDIR", self.folder.path().join("tmp")).output().unwrap()
    }

    /// Points the specs to a precompiled library.
    fn use_library(&mut self) {
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-o", "scale.so", "scale.c"])
            .current_dir(self.folder.path())
            .status();
        assert!(compiled.unwrap().success());
        for row in 0..ROWS {
            let name = format!("row{row}.toml");
            let spec = self.folder.read(&name).replacen("path = \"scale.c\"", "path = \"scale.so\"", 1);
            self.folder.write(&name, &spec);
        }
        self.before = files(self.folder.path());
    }

    fn create(&self, name: &str) -> File {
        File::create(self.folder.path().join(name)).unwrap()
    }

    /// New files other than `outputs`.
    fn leftovers(&self, outputs: &[&str]) -> Vec<PathBuf> {
        let outputs: BTreeSet<_> = outputs.iter().chain(&["stdout", "stderr"]).map(PathBuf::from).collect();
        files(self.folder.path())
            .difference(&self.before)
            .filter(|path| !outputs.contains(*path))
            .cloned()
            .collect()
    }

    fn remove(&self, outputs: &[&str]) {
        for output in outputs {
            let _ = std::fs::remove_file(self.folder.path().join(output));
        }
    }
}

const KERNEL: &str = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64) fn k(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x] = id.x; }
";

/// All files and directories below `root`, relative to it.
fn files(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path.clone());
            }
            found.insert(path.strip_prefix(root).unwrap().to_owned());
        }
    }
    found
}

fn signal(child: &Child, signal: i32) {
    let status = Command::new("kill")
        .args([format!("-{signal}"), child.id().to_string()])
        .stderr(Stdio::null())
        .status();
    status.unwrap();
}

fn wait(child: &mut Child) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "the command does not exit");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the process group is empty.
fn wait_for_group(group: u32, what: &str) {
    let begin = Instant::now();
    let running = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let stats = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        let is_ours = |stat: &String| {
            let fields: Vec<&str> =
                stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
            fields.first() != Some(&"Z") && fields.get(2) == Some(&group.to_string().as_str())
        };
        stats.filter(is_ours).collect::<Vec<_>>()
    };
    while !running().is_empty() {
        // A compiler whose parent was killed runs until it finishes.
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}: {:?}", running());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Checks that the reports are complete documents, and that JSON, CSV and table have the same rows.
fn check_reports(sandbox: &Sandbox, what: &str) {
    let read = |name: &str| std::fs::read_to_string(sandbox.folder.path().join(name)).ok();
    let rows = |text: &str| -> usize {
        let document: serde_json::Value =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{what}: {error}\n{text}"));
        let rows = document["rows"].as_array().unwrap();
        assert!(!rows.is_empty() && rows.len() <= ROWS, "{what}");
        assert_eq!(document["complete"], serde_json::json!(rows.len() == ROWS), "{what}");
        let right = |(index, row): (usize, &serde_json::Value)| {
            row["status"] == "right" && row["kernel"]["name"] == format!("row{index}")
        };
        assert!(rows.iter().enumerate().all(right), "{what}: a killed compiler must not give a row\n{text}");
        rows.len()
    };
    let json = read("rows.json").map_or(0, |text| rows(&text));
    let csv = read("rows.csv").map_or(0, |text| {
        assert!(text.ends_with('\n'), "{what}: {text}");
        let columns: BTreeSet<_> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns.len(), 1, "{what}: {text}");
        text.lines().count() - 1
    });
    let table = read("stdout").unwrap().lines().filter(|line| is_row(line)).count();
    // The last row may have been written to only some of the reports.
    assert!(table >= json && json >= csv && table <= csv + 1, "{what}: {table}, {json}, {csv}");
}

/// Whether `line` is a row of the table, not a note below it.
fn is_row(line: &str) -> bool {
    line.starts_with("row") && !line.contains(" on host:0: ")
}

/// The duration of an undisturbed run.
fn duration(sandbox: &Sandbox, arguments: &[&str]) -> Duration {
    let begin = Instant::now();
    let status = wait(&mut sandbox.start(arguments));
    assert!(status.success(), "{arguments:?}: {}", sandbox.folder.read("stderr"));
    begin.elapsed()
}

const EVAL: [&str; 13] = [
    "eval",
    "row0.toml",
    "row1.toml",
    "row2.toml",
    "row3.toml",
    "--repeat",
    "3",
    "--min-repeat-ms",
    "2",
    "--json",
    "rows.json",
    "--csv",
    "rows.csv",
];

const RUN: [&str; 4] = ["run", "row0.toml", "--save", "y=y.npy"];
const LOWER: [&str; 6] = ["lower", "kernel.wgsl", "--to", "c", "--output", "kernel.c"];
const CONFORMANCE: [&str; 6] = ["conformance", "host", "--json", "suite.json", "--", "host:0::tensors"];

#[test]
fn a_signal_at_any_moment_keeps_measured_rows_and_leaves_nothing_else() {
    let mut random = Random::new();
    let commands: [(&[&str], &[&str]); 6] = [
        (&EVAL, &["rows.json", "rows.csv"]),
        (&RUN, &["y.npy"]),
        (&["devices", "--json"], &[]),
        (&["doctor"], &[]),
        (&LOWER, &["kernel.c"]),
        (&CONFORMANCE, &["suite.json"]),
    ];
    for (arguments, outputs) in commands {
        let sandbox = Sandbox::new();
        let longest = duration(&sandbox, arguments);
        sandbox.remove(outputs);
        for (name, number) in SIGNALS {
            for round in 0..rounds() {
                // Every other signal comes while the command starts, which is when it installs its handlers.
                let span = if round % 2 == 0 { longest * 5 / 4 } else { longest.min(STARTUP) };
                let delay = random.below(u64::try_from(span.as_micros()).unwrap());
                let what = format!("{} SIG{name} after {delay} µs, round {round}", arguments[0]);
                let mut child = sandbox.start(arguments);
                std::thread::sleep(Duration::from_micros(delay));
                signal(&child, number);
                let status = wait(&mut child);
                let stderr = sandbox.folder.read("stderr");
                let ended = status.signal() == Some(number);
                assert!(ended || status.success(), "{what}: {status}\n{stderr}");
                if ended && number == libc::SIGPIPE {
                    // SIGPIPE is ignored from `main` on, so only program loading was interrupted.
                    assert_eq!((sandbox.folder.read("stdout"), stderr.clone()), Default::default(), "{what}");
                }
                assert!(!stderr.contains("panicked"), "{what}: {stderr}");
                wait_for_group(child.id(), &what);
                if arguments[0] == "eval" {
                    check_reports(&sandbox, &what);
                }
                // Written at the end, completely or not at all.
                if let Ok(text) = std::fs::read_to_string(sandbox.folder.path().join("suite.json")) {
                    serde_json::from_str::<serde_json::Value>(&text)
                        .unwrap_or_else(|error| panic!("{what}: {error}\n{text}"));
                }
                if number == libc::SIGKILL {
                    // After SIGKILL the next command cleans up.
                    wait(&mut sandbox.start(&["run", "row0.toml"]));
                }
                assert_eq!(sandbox.leftovers(outputs), [""; 0].map(PathBuf::from), "{what}");
                sandbox.remove(outputs);
            }
        }
    }
}

#[test]
fn a_signal_kills_a_compiler_and_what_it_has_started() {
    let sandbox = Sandbox::new();
    // Longer than the group is waited for.
    let started = sandbox.compiler("slow-cc", "sleep 60 &", "wait");
    let mut command = fixture::command(&RUN);
    command.current_dir(sandbox.folder.path()).env("TMPDIR", sandbox.folder.path().join("tmp"));
    command
        .env("CC", sandbox.folder.path().join("slow-cc"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.process_group(0).spawn().unwrap();
    super::isolation::wait_for(|| started.exists(), "the compiler");
    signal(&child, libc::SIGTERM);
    assert_eq!(wait(&mut child).signal(), Some(libc::SIGTERM));
    wait_for_group(child.id(), "a compiler");
}

#[test]
fn a_full_disk_affects_only_the_file_on_it() {
    let mut sandbox = Sandbox::new();
    sandbox.use_library();
    let mut random = Random::new();
    // File size limits, from none to more than enough.
    let limits = (0..rounds()).map(|_| random.below(20_000));
    for limit in [0, 100, 4000, 9000, 20_000, 1_000_000].into_iter().chain(limits) {
        sandbox.remove(&["rows.json", "rows.csv"]);
        let output = sandbox.limited(&[&EVAL[..], &["--no-validate"]].concat(), limit);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let what = format!("limit {limit}: {}\n{stderr}", output.status);
        assert!(output.status.code().is_some(), "{what}");
        assert!(!stderr.contains("panicked"), "{what}");
        let table = String::from_utf8_lossy(&output.stdout);
        assert_eq!(table.lines().filter(|line| is_row(line)).count(), ROWS, "{what}\n{table}");
        for name in ["rows.json", "rows.csv"] {
            let path = sandbox.folder.path().join(name);
            if let Ok(text) = std::fs::read_to_string(&path)
                && name.ends_with("json")
            {
                serde_json::from_str::<serde_json::Value>(&text).unwrap();
            }
            let complaints = stderr.matches(&format!("cannot write {}", path.display())).count();
            assert!(complaints <= 1, "{what}");
        }
        if limit == 4000 {
            assert_eq!(output.status.code(), Some(2), "{what}");
            assert!(stderr.contains("rows.json"), "{what}");
        }
        assert_eq!(sandbox.leftovers(&["rows.json", "rows.csv"]), [""; 0].map(PathBuf::from), "{what}");
    }
}

#[test]
fn an_output_that_does_not_fit_is_named_and_not_created() {
    let mut sandbox = Sandbox::new();
    sandbox.use_library();
    // Without a reference no compiler runs, which the limit would also affect.
    let run = [&RUN[..], &["--no-validate"]].concat();
    for (arguments, output) in [(&run[..], "y.npy"), (&LOWER, "kernel.c"), (&CONFORMANCE, "suite.json")] {
        for limit in [0, 60] {
            let run = sandbox.limited(arguments, limit);
            let stderr = String::from_utf8_lossy(&run.stderr);
            assert_eq!(run.status.code(), Some(2), "{arguments:?}, {limit} bytes: {stderr}");
            assert!(stderr.contains(output) && !stderr.contains("panicked"), "{limit} bytes: {stderr}");
            assert_eq!(sandbox.leftovers(&[]), [""; 0].map(PathBuf::from), "{arguments:?}, {limit} bytes");
        }
    }
}

#[test]
fn a_full_device_is_reported_once() {
    let sandbox = Sandbox::new();
    let mut arguments = EVAL.to_vec();
    *arguments.iter_mut().find(|word| **word == "rows.json").unwrap() = "/dev/full";
    let mut child = sandbox.start(&arguments);
    assert_eq!(wait(&mut child).code(), Some(2));
    let stderr = sandbox.folder.read("stderr");
    assert_eq!(stderr.matches("cannot write /dev/full").count(), 1, "{stderr}");
    let (table, csv) = (sandbox.folder.read("stdout"), sandbox.folder.read("rows.csv"));
    // Notes of a busy machine are below the table.
    let lines = table.lines().take_while(|line| !line.is_empty()).count();
    assert_eq!((lines, csv.lines().count()), (ROWS + 1, ROWS + 1), "{table}\n{csv}");
}

#[test]
fn json_on_standard_output_is_valid_after_an_interrupt() {
    let sandbox = Sandbox::new();
    let mut child = fixture::command(&[
        "eval",
        "row0.toml",
        "row1.toml",
        "--budget-s",
        "60",
        "--repeat",
        "1000000",
        "--min-repeat-ms",
        "50",
        "--json",
        "-",
    ]);
    child.current_dir(sandbox.folder.path()).env("TMPDIR", sandbox.folder.path().join("tmp"));
    let started = sandbox.compiler("noted-cc", "", "exec cc \"$@\"");
    child.env("CC", sandbox.folder.path().join("noted-cc"));
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    super::isolation::wait_for(|| started.exists(), "the compiler");
    // Not SIGINT: shells ignore it for background jobs, and children inherit that.
    signal(&child, libc::SIGTERM);
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGTERM));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["complete"], serde_json::json!(false));
}

#[test]
fn a_closed_pipe_ends_the_command() {
    let sandbox = Sandbox::new();
    let mut child = fixture::command(&EVAL[..9]);
    let mut child = child
        .current_dir(sandbox.folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), ""));
}
