//! `runtime serve --stdio`, which answers whatever it is asked.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

use serde_json::{Value, json};

use super::sandbox::{Sandbox, spec};
use super::{DEADLINE, wait_for};

/// `runtime serve --stdio`.
pub(super) struct Server<'s> {
    sandbox: &'s Sandbox,
    child: Child,
    requests: Option<ChildStdin>,
    replies: Receiver<Value>,
}

impl<'s> Server<'s> {
    pub(super) fn start(sandbox: &'s Sandbox) -> Self {
        Self::with_command(sandbox, &mut sandbox.command(&["serve", "--stdio", "--timeout", "60"]))
    }

    pub(super) fn with_command(sandbox: &'s Sandbox, command: &mut Command) -> Self {
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
        assert_eq!(server.next()["hello"]["protocol"], 2);
        server
    }

    pub(super) fn next(&self) -> Value {
        self.replies.recv_timeout(DEADLINE).unwrap()
    }

    pub(super) fn write(&mut self, line: impl AsRef<[u8]>) {
        let requests = self.requests.as_mut().unwrap();
        requests.write_all(line.as_ref()).and_then(|()| requests.write_all(b"\n")).unwrap();
    }

    pub(super) fn submit(&mut self, id: u64, entry: &str) {
        let file = format!("{entry}.toml");
        // The worker may be reading it for an earlier request.
        if !self.sandbox.folder.path().join(&file).exists() {
            self.sandbox.folder.write(&file, &spec(entry));
        }
        self.write(json!({"id": id, "candidate": {"spec": file, "device": "host:0"}}).to_string());
    }

    /// The next row or error.
    pub(super) fn last_reply(&self) -> Value {
        loop {
            let reply = self.next();
            if reply.get("phase").is_none() && reply.get("device").is_none() {
                return reply;
            }
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the requests and waits until it ends.
    pub(super) fn finish(mut self) {
        drop(self.requests.take());
        assert!(self.child.wait().unwrap().success());
        self.sandbox.wait_for_processes(&BTreeSet::new(), "serve");
        assert_eq!(self.sandbox.temporary_files(), 0);
    }
}

/// Requests that are refused, and words of the reply.
const REFUSED: &[(&str, &str)] = &[
    (
        r#"{"id": 5, "candidate": {"spec": "fifo.toml", "device": "host:0"}}"#,
        "fifo.toml: it is not a regular file",
    ),
    (
        r#"{"id": 5, "candidate": {"spec": "/dev/zero", "device": "host:0"}}"#,
        "zero: it is not a regular file",
    ),
    (
        r#"{"id": 5, "candidate": {"spec": "scale.toml", "device": "host:0", "settings": {"budget_s": 1e308}}}"#,
        "settings.budget_s must be a number from 0 to 86400, got 1e308",
    ),
    (
        r#"{"id": 5, "candidate": {"spec": "scale.toml", "device": "host:0", "settings": {"cooldown_ms": -1}}}"#,
        "settings.cooldown_ms must be a number from 0",
    ),
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
];

#[test]
fn a_server_answers_every_request_and_survives_all_of_them() {
    let sandbox = Sandbox::new();
    let mut server = Server::start(&sandbox);
    server.submit(9, "right");
    assert_eq!(server.last_reply()["row"]["status"], "right");
    for line in [&b"\xff?"[..], b"{\"id\": 1, \"\xff\": 2}", &vec![b'['; 17 << 20], &[b' '; 5], b"\0"] {
        server.write(line);
        if line[0] != b' ' {
            let reply = server.last_reply();
            assert!(
                reply["error"].as_str().is_some_and(|error| error.contains("not a valid request")),
                "{reply}"
            );
            assert_eq!(reply["id"], Value::Null);
        }
    }
    let made = Command::new("mkfifo").arg(sandbox.folder.path().join("fifo.toml")).status();
    assert!(made.unwrap().success());
    for (line, words) in REFUSED {
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
