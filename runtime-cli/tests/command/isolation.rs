//! Kernels that misbehave in worker processes: each gets its own outcome, the next one is right, and nothing is left.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fixture::{self, Folder};

/// Generous: a loaded machine must not fail a test.
const DEADLINE: Duration = Duration::from_secs(120);

const CODE: &str = r#"
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void right(float *x) { for (int i = 0; i < 4; i++) x[i] = i; }
void null_dereference(float *x) { *(volatile int *)0 = 1; }
static int deeper(volatile int *depth) { volatile char frame[4096]; frame[0] = 1; ++*depth; return deeper(depth) + frame[0]; }
void stack_overflow(float *x) { volatile int depth = 0; x[0] = deeper(&depth); }
void aborts(float *x) { puts("to standard output"); fflush(stdout); fputs("last words\n", stderr); abort(); }
void frees_twice(float *x) { void *volatile p = malloc(64); free(p); free(p); right(x); }
void exits(float *x) { exit(0); }
void exits_with_a_code(float *x) { _exit(42); }
void stops(float *x) { raise(SIGSTOP); }
void stops_its_group(float *x) { kill(0, SIGSTOP); }
void loops(float *x) { for (;;) __asm__ volatile(""); }
void forks(float *x) { right(x); if (fork() == 0) { sleep(1000); _exit(0); } }
void forks_and_returns(float *x) { right(x); fork(); }
void forks_a_daemon(float *x) {
    right(x);
    if (fork() == 0) { setsid(); if (fork() == 0) { signal(SIGTERM, SIG_IGN); sleep(1000); } _exit(0); }
}
void crashes_with_children(float *x) { forks(x); forks_a_daemon(x); *(volatile int *)0 = 1; }
void floods(float *x) {
    static char text[1 << 20];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\n';
    for (int i = 0; i < 100; i++) { fwrite(text, 1, sizeof text, stdout); fwrite(text, 1, sizeof text, stderr); }
    right(x);
}
void floods_and_aborts(float *x) { floods(x); fflush(stdout); fputs("the end\n", stderr); abort(); }
void wrong_element(float *x) { right(x); x[2] = 7; }
void wrong_nan(float *x) { right(x); x[1] = NAN; }
void unwritten(float *x) { x[0] = 0; x[1] = 1; x[2] = 2; }
void reads_standard_input(float *x) { right(x); if (getchar() != EOF) x[0] = 9; }
void prints_a_protocol_line(float *x) { right(x); puts("{\"ended\": {\"code\": 0}}"); fflush(stdout); }
void leaves_a_file(float *x) {
    char path[4096];
    snprintf(path, sizeof path, "%s/left-behind", getenv("TMPDIR"));
    close(open(path, O_CREAT | O_WRONLY, 0600));
    abort();
}
"#;

fn spec(entry: &str) -> String {
    format!(
        "version = 1\nname = \"{entry}\"\n[kernel]\npath = \"bad.c\"\nentry = \"{entry}\"\n[[arg]]\nname = \"x\"\n\
         dtype = \"f32\"\nshape = [4]\nuse = \"write\"\n[reference]\npath = \"bad.c\"\nentry = \"right\"\n\
         [eval]\nrepeat = 2\nnumber = 1\nwarmup = 1\nbudget_s = 2\n"
    )
}

/// A directory with kernels, and processes that carry its mark in their environment.
struct Sandbox {
    folder: Folder,
    mark: String,
}

impl Sandbox {
    fn new() -> Self {
        let folder = Folder::new();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        folder.write("bad.c", CODE);
        let mark = format!("RUNTIME_TEST_MARK={}", folder.path().display());
        Self { folder, mark }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = fixture::command(arguments);
        let (key, value) = self.mark.split_once('=').unwrap();
        command.current_dir(self.folder.path()).env("TMPDIR", self.folder.path().join("tmp"));
        command.env(key, value);
        command
    }

    /// The processes that were started by commands of this sandbox and still run.
    fn processes(&self) -> BTreeSet<u32> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let ours = |entry: std::fs::DirEntry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let is_dead = stat.rsplit_once(')')?.1.trim_start().starts_with('Z');
            let is_ours = environment.split(|&byte| byte == 0).any(|line| line == self.mark.as_bytes());
            (is_ours && !is_dead).then_some(id)
        };
        entries.filter_map(ours).collect()
    }

    /// Waits until no process is left but `kept`.
    fn wait_for_processes(&self, kept: &BTreeSet<u32>, what: &str) {
        let begin = Instant::now();
        while !self.processes().is_subset(kept) {
            assert!(begin.elapsed() < DEADLINE, "{what}: {:?} are left", self.processes());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn temporary_files(&self) -> usize {
        std::fs::read_dir(self.folder.path().join("tmp")).unwrap().count()
    }

    /// Evaluates kernels with `--isolate`: their rows.
    fn evaluate(&self, entries: &[&str], options: &[&str]) -> Vec<Value> {
        let files: Vec<String> = entries.iter().map(|entry| format!("{entry}.toml")).collect();
        for (entry, file) in entries.iter().zip(&files) {
            self.folder.write(file, &spec(entry));
        }
        let mut arguments = vec!["eval", "--isolate", "--device", "host:0", "--json", "rows.json"];
        arguments.extend(options);
        arguments.extend(files.iter().map(String::as_str));
        let begin = Instant::now();
        let output = self.command(&arguments).output().unwrap();
        assert!(begin.elapsed() < DEADLINE, "{entries:?}");
        assert!(output.status.code().is_some_and(|code| code < 2), "{entries:?}: {output:?}");
        let document: Value = serde_json::from_str(&self.folder.read("rows.json")).unwrap();
        assert_eq!(document["complete"], true);
        self.wait_for_processes(&BTreeSet::new(), "eval");
        assert_eq!(self.temporary_files(), 0);
        document["rows"].as_array().unwrap().clone()
    }
}

#[test]
fn every_misbehaviour_has_its_own_outcome_and_the_next_kernel_is_right() {
    let sandbox = Sandbox::new();
    let crashed = |signal: i32| json!({"kind": "crashed", "signal": signal});
    let cases = [
        ("null_dereference", "failed", crashed(libc::SIGSEGV)),
        ("stack_overflow", "failed", json!({"kind": "crashed"})),
        (
            "aborts",
            "failed",
            json!({"kind": "crashed", "signal": libc::SIGABRT, "output": "to standard output\nlast words"}),
        ),
        ("frees_twice", "failed", crashed(libc::SIGABRT)),
        ("exits", "failed", json!({"kind": "exited", "code": 0})),
        ("exits_with_a_code", "failed", json!({"kind": "exited", "code": 42})),
        ("forks", "right", json!({"kind": "ok"})),
        ("forks_and_returns", "right", json!({"kind": "ok"})),
        ("forks_a_daemon", "right", json!({"kind": "ok"})),
        ("crashes_with_children", "failed", crashed(libc::SIGSEGV)),
        ("floods", "right", json!({"kind": "ok"})),
        ("floods_and_aborts", "failed", crashed(libc::SIGABRT)),
        (
            "wrong_element",
            "wrong",
            json!({"kind": "wrong_result", "wrong": 1, "worst_index": [2], "actual": "7.0"}),
        ),
        (
            "wrong_nan",
            "wrong",
            json!({"kind": "wrong_result", "wrong": 1, "worst_index": [1], "actual": "NaN"}),
        ),
        ("unwritten", "wrong", json!({"kind": "wrong_result", "unwritten": 1, "worst_index": [3]})),
        ("reads_standard_input", "right", json!({"kind": "ok"})),
        ("prints_a_protocol_line", "right", json!({"kind": "ok"})),
        ("leaves_a_file", "failed", crashed(libc::SIGABRT)),
        ("missing", "failed", json!({"kind": "launch_failed"})),
    ];
    let entries: Vec<&str> = cases.iter().flat_map(|(entry, ..)| [*entry, "right"]).collect();
    let rows = sandbox.evaluate(&entries, &[]);
    for ((entry, status, outcome), rows) in cases.iter().zip(rows.chunks(2)) {
        assert_eq!(rows[0]["kernel"]["name"], *entry);
        assert_eq!(rows[0]["status"], *status, "{entry}: {:#}", rows[0]);
        for (key, value) in outcome.as_object().unwrap() {
            assert_eq!(rows[0]["outcome"][key], *value, "{entry}: {:#}", rows[0]["outcome"]);
        }
        assert_eq!(rows[0]["device_info"]["id"], "host:0", "{entry}");
        assert_eq!(
            (&rows[1]["status"], &rows[1]["outcome"]["kind"]),
            (&json!("right"), &json!("ok")),
            "after {entry}"
        );
        if outcome["kind"] == "crashed" {
            let operation = format!("while \"{entry}\" ran on host:0");
            assert_eq!(rows[0]["outcome"]["operation"], operation, "{entry}");
            assert!(rows[0]["reason"].as_str().unwrap().contains(&operation), "{entry}");
        }
        // A flood of output is bounded.
        assert!(rows[0]["outcome"].to_string().len() < 20_000, "{entry}");
    }
}

#[test]
fn what_never_ends_is_killed_at_its_deadline() {
    let sandbox = Sandbox::new();
    let entries = ["stops", "right", "stops_its_group", "right", "loops", "right"];
    let rows = sandbox.evaluate(&entries, &["--timeout", "1", "--budget-s", "1"]);
    for (entry, row) in entries.iter().zip(&rows) {
        match *entry {
            "right" => assert_eq!(row["status"], "right", "{row:#}"),
            _ => {
                assert_eq!(row["outcome"], json!({"kind": "timeout", "phase": "run"}), "{entry}");
                assert_eq!((&row["status"], &row["error_kind"]), (&json!("failed"), &json!("Timeout")));
                let reason = row["reason"].as_str().unwrap();
                assert_eq!(reason, format!("timed out after 2 s while \"{entry}\" ran on host:0"));
            }
        }
    }
}

#[test]
fn compiling_has_its_own_deadline_and_its_log() {
    let sandbox = Sandbox::new();
    let slow = "#!/bin/sh\nsleep 1000\n";
    sandbox.folder.write("slow-cc", slow);
    let mut permissions = sandbox.folder.path().join("slow-cc").metadata().unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(sandbox.folder.path().join("slow-cc"), permissions).unwrap();
    sandbox.folder.write("broken.c", "void right(float *x) { return 1 +; }\n");
    let options = format!("options = {{ compiler = \"{}/slow-cc\" }}", sandbox.folder.path().display());
    let with = |name: &str, from: &str, to: &str| {
        sandbox.folder.write(name, &spec("right").replacen(from, to, 1));
    };
    with("slow.toml", "entry = \"right\"", &format!("entry = \"right\"\n{options}"));
    with("broken.toml", "bad.c", "broken.c");
    sandbox.folder.write("right.toml", &spec("right"));
    let arguments = ["eval", "--isolate", "--device", "host:0", "--json", "-", "--compile-timeout", "3"];
    let output =
        sandbox.command(&arguments).args(["slow.toml", "broken.toml", "right.toml"]).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows[0]["outcome"], json!({"kind": "timeout", "phase": "compile"}), "{:#}", rows[0]);
    assert_eq!(rows[1]["outcome"]["kind"], "compile_failed", "{:#}", rows[1]);
    assert!(rows[1]["outcome"]["log"].as_str().unwrap().contains("broken.c:1"), "{:#}", rows[1]);
    assert_eq!(rows[2]["status"], "right");
    sandbox.wait_for_processes(&BTreeSet::new(), "eval");
    assert_eq!(sandbox.temporary_files(), 0);
}

#[test]
fn a_lack_of_memory_is_told_apart_from_a_crash() {
    let sandbox = Sandbox::new();
    let large = spec("right").replacen("shape = [4]", "shape = [50000000]", 1);
    sandbox.folder.write("large.toml", &large);
    sandbox.folder.write("right.toml", &spec("right"));
    let arguments = ["eval", "--isolate", "--device", "host:0", "--json", "-", "--memory-limit", "150000000"];
    let output = sandbox.command(&arguments).args(["large.toml", "right.toml"]).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["rows"][0]["outcome"]["kind"], "out_of_memory", "{:#}", document["rows"][0]);
    assert_eq!(document["rows"][1]["status"], "right", "{:#}", document["rows"][1]);
}

#[test]
fn a_wrong_device_or_option_is_an_error_of_the_command() {
    let sandbox = Sandbox::new();
    sandbox.folder.write("right.toml", &spec("right"));
    for (arguments, words) in [
        (&["eval", "--isolate", "--device", "host:9", "right.toml"][..], "no device \"host:9\""),
        (&["eval", "--device", "host:0", "--timeout", "3", "right.toml"], "--timeout needs --isolate"),
    ] {
        let output = sandbox.command(arguments).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
}

/// `runtime serve --stdio`.
struct Server<'s> {
    sandbox: &'s Sandbox,
    child: Child,
    requests: Option<ChildStdin>,
    replies: Receiver<Value>,
}

impl<'s> Server<'s> {
    fn start(sandbox: &'s Sandbox) -> Self {
        let mut command = sandbox.command(&["serve", "--stdio", "--timeout", "60"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, replies) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let reply = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(reply).is_err() {
                    return;
                }
            }
        });
        let requests = child.stdin.take();
        let server = Self { sandbox, child, requests, replies };
        assert_eq!(server.next()["hello"]["protocol"], 1);
        server
    }

    fn next(&self) -> Value {
        self.replies.recv_timeout(DEADLINE).unwrap()
    }

    fn write(&mut self, line: &str) {
        writeln!(self.requests.as_mut().unwrap(), "{line}").unwrap();
    }

    fn submit(&mut self, id: u64, entry: &str) {
        let file = format!("{entry}.toml");
        // The worker may be reading it for an earlier request.
        if !self.sandbox.folder.path().join(&file).exists() {
            self.sandbox.folder.write(&file, &spec(entry));
        }
        self.write(&json!({"id": id, "candidate": {"spec": file, "device": "host:0"}}).to_string());
    }

    /// The next row or error.
    fn last_reply(&self) -> Value {
        loop {
            let reply = self.next();
            if reply.get("phase").is_none() && reply.get("device").is_none() {
                return reply;
            }
        }
    }

    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the requests and waits until it ends.
    fn finish(mut self) {
        drop(self.requests.take());
        assert!(self.child.wait().unwrap().success());
        self.sandbox.wait_for_processes(&BTreeSet::new(), "serve");
        assert_eq!(self.sandbox.temporary_files(), 0);
    }
}

#[test]
fn a_server_answers_every_request_and_survives_all_of_them() {
    let sandbox = Sandbox::new();
    let mut server = Server::start(&sandbox);
    for (line, words) in [
        ("{", "not a valid request"),
        ("[1]", "not a valid request"),
        (r#"{"id": 5}"#, "missing field `candidate`"),
        (r#"{"id": 5, "candidate": {"spec": "none.toml", "device": "host:0"}}"#, "none.toml"),
        (r#"{"id": 5, "candidate": {"spec": "scale.toml", "device": "host:77"}}"#, "no device \"host:77\""),
        (
            r#"{"id": 5, "candidate": {"spec": "scale.toml", "device": "host:0", "settings": {"clock": "sundial"}}}"#,
            "sundial",
        ),
        (
            r#"{"id": 5, "candidate": {"spec": "scale.toml", "device": "host:0", "overrides": {"values": {"q": 1}}}}"#,
            "q",
        ),
    ] {
        server.write(line);
        let reply = server.last_reply();
        assert!(reply["error"].as_str().is_some_and(|error| error.contains(words)), "{line}: {reply}");
        assert_eq!(reply["id"], if line.contains("id") { json!(5) } else { Value::Null });
    }
    for id in 0..3 {
        server.submit(id, "right");
    }
    for id in 0..3 {
        let reply = server.last_reply();
        assert_eq!((&reply["id"], &reply["row"]["status"]), (&json!(id), &json!("right")), "{reply}");
    }
    server.finish();
}

#[test]
fn crashes_leave_no_process_file_or_descriptor() {
    let sandbox = Sandbox::new();
    let mut server = Server::start(&sandbox);
    server.submit(0, "right");
    assert_eq!(server.last_reply()["row"]["status"], "right");
    let (processes, descriptors) = (sandbox.processes().len(), server.descriptors());
    for entry in ["forks", "forks_a_daemon"] {
        server.submit(0, entry);
        assert_eq!(server.last_reply()["row"]["status"], "right");
        assert!(
            sandbox.processes().len() <= processes,
            "{entry}: the worker goes on, its kernel's children do not"
        );
    }
    for id in 1..21 {
        let is_bad = id % 2 == 1;
        server.submit(id, if is_bad { "crashes_with_children" } else { "right" });
        let row = server.last_reply()["row"].clone();
        assert_eq!(row["status"], if is_bad { "failed" } else { "right" }, "{row:#}");
    }
    wait_for(|| sandbox.processes().len() <= processes, "the server, a supervisor and a worker");
    assert_eq!(server.descriptors(), descriptors);
    server.finish();
}

#[test]
fn nothing_outlives_a_killed_parent() {
    let sandbox = Sandbox::new();
    for entry in ["right", "forks_a_daemon", "loops", "stops", "stops_its_group"] {
        let mut server = Server::start(&sandbox);
        server.submit(1, entry);
        while server.next()["phase"] != "run" {}
        // Long enough for the kernel to have begun what it does.
        std::thread::sleep(Duration::from_millis(200));
        assert!(sandbox.processes().len() >= 3, "{entry}");
        server.kill();
        sandbox.wait_for_processes(&BTreeSet::new(), entry);
    }
    // What a killed command has left is removed by the next one.
    assert_eq!(sandbox.evaluate(&["right"], &[])[0]["status"], "right");
}

#[test]
fn a_signal_ends_an_isolated_run_with_its_rows_and_without_its_workers() {
    let sandbox = Sandbox::new();
    sandbox.folder.write("right.toml", &spec("right"));
    sandbox.folder.write("loops.toml", &spec("loops"));
    // Not SIGHUP or SIGINT: `nohup` and shells ignore them for background jobs, and children inherit that.
    for (name, kept) in [("TERM", true), ("KILL", false)] {
        let arguments =
            ["eval", "--isolate", "--device", "host:0", "--json", "rows.json", "right.toml", "loops.toml"];
        let mut child =
            sandbox.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let rows = sandbox.folder.path().join("rows.json");
        wait_for(|| rows.exists(), name);
        let id = child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
        child.wait().unwrap();
        sandbox.wait_for_processes(&BTreeSet::new(), name);
        let document: Value = serde_json::from_str(&sandbox.folder.read("rows.json")).unwrap();
        assert_eq!(
            (document["rows"].as_array().unwrap().len(), &document["complete"]),
            (1, &json!(false)),
            "{name}"
        );
        assert_eq!(sandbox.temporary_files() == 0, kept, "{name}: a killed command cannot remove its files");
        std::fs::remove_file(rows).unwrap();
    }
}

#[test]
fn a_server_whose_output_nobody_reads_ends() {
    let sandbox = Sandbox::new();
    sandbox.folder.write("loops.toml", &spec("loops"));
    let request = json!({"id": 1, "candidate": {"spec": "loops.toml", "device": "host:0"}});
    for has_more_requests in [true, false] {
        let mut command = sandbox.command(&["serve", "--stdio", "--timeout", "1000"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut requests = child.stdin.take();
        writeln!(requests.as_mut().unwrap(), "{request}").unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("\"phase\":\"run\"")));
        requests = requests.filter(|_| has_more_requests);
        drop(lines);
        wait_for(|| child.try_wait().unwrap().is_some(), "serve");
        sandbox.wait_for_processes(&BTreeSet::new(), "serve");
        drop(requests);
    }
}

fn wait_for(mut condition: impl FnMut() -> bool, what: &str) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < DEADLINE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The supervisor can be used by itself: it says how its worker ended.
#[test]
fn a_worker_reports_its_end_and_ends_with_its_input() {
    let sandbox = Sandbox::new();
    sandbox.folder.write("exits.toml", &spec("exits"));
    let run = |requests: &str, file: &Path| {
        std::fs::write(file, requests).unwrap();
        let input = std::fs::File::open(file).unwrap();
        let output = sandbox.command(&["worker"]).stdin(input).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let file = sandbox.folder.path().join("requests");
    let lines = run("", &file);
    assert_eq!(lines[0]["hello"]["protocol"], 1);
    assert_eq!(lines[1], json!({"ended": {"code": 0}}));
    let lines = run(r#"{"id": 3, "candidate": {"spec": "exits.toml", "device": "host:0"}}"#, &file);
    assert_eq!(lines.last().unwrap(), &json!({"ended": {"code": 0}}));
    assert!(lines.iter().all(|line| line.get("row").is_none()), "{lines:?}");
    sandbox.wait_for_processes(&BTreeSet::new(), "worker");
    assert_eq!(sandbox.temporary_files(), 0);
}
