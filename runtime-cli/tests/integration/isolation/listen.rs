//! `runtime serve --listen`: several clients of one server.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::sandbox::{Sandbox, spec};
use super::{DEADLINE, wait_for};

/// A server on the socket `socket`, in the folder of a sandbox.
struct Listening<'s> {
    sandbox: &'s Sandbox,
    child: Child,
}

impl<'s> Listening<'s> {
    fn start(sandbox: &'s Sandbox) -> Self {
        for entry in ["right", "loops"] {
            sandbox.folder.write(&format!("{entry}.toml"), &spec(entry));
        }
        let mut command = sandbox.command(&["serve", "--listen", "socket", "--timeout", "1000"]);
        let child = command.stdin(Stdio::null()).spawn().unwrap();
        let server = Self { sandbox, child };
        wait_for(|| UnixStream::connect(server.path()).is_ok(), "the socket");
        server
    }

    fn path(&self) -> PathBuf {
        self.sandbox.folder.path().join("socket")
    }

    fn connect(&self) -> Client {
        let stream = UnixStream::connect(self.path()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut client = Client { lines: BufReader::new(stream) };
        assert_eq!(client.next()["hello"]["protocols"], json!([1, 2]));
        client
    }

    /// Ends it with a signal.
    fn finish(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap();
        self.sandbox.wait_for_processes(&BTreeSet::new(), "serve");
        assert!(!self.path().exists());
        assert_eq!(self.sandbox.temporary_files(), 0);
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        // A test that fails leaves no server.
        let _ = self.child.kill();
    }
}

struct Client {
    lines: BufReader<UnixStream>,
}

impl Client {
    fn write(&mut self, line: &Value) {
        writeln!(self.lines.get_mut(), "{line}").unwrap();
    }

    fn submit(&mut self, id: u64, entry: &str) {
        self.write(&json!({"id": id, "candidate": {"spec": format!("{entry}.toml"), "device": "host:0"}}));
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The next last reply.
    fn last_reply(&mut self) -> Value {
        loop {
            let reply = self.next();
            if reply.get("phase").is_none() && reply.get("device").is_none() {
                return reply;
            }
        }
    }

    fn wait_until_it_runs(&mut self) {
        while self.next()["phase"] != "run" {}
    }
}

fn ids(replies: &[Value]) -> Vec<(u64, &str)> {
    let described =
        |reply: &Value| reply["row"]["status"].as_str().or(reply["cancelled"].as_str()).map(str::len);
    assert!(replies.iter().all(|reply| described(reply).is_some()), "{replies:?}");
    let kind = |reply: &'_ Value| if reply["row"].is_null() { "cancelled" } else { "row" };
    replies.iter().map(|reply| (reply["id"].as_u64().unwrap(), kind(reply))).collect()
}

#[test]
fn clients_take_turns_and_one_that_goes_away_takes_its_requests_with_it() {
    let sandbox = Sandbox::new();
    let server = Listening::start(&sandbox);
    let (mut one, mut two) = (server.connect(), server.connect());
    one.submit(1, "loops");
    one.wait_until_it_runs();
    for id in 2..5 {
        one.submit(id, "right");
    }
    // Its answer says that the requests before it were read.
    one.write(&json!({"cancel": 99}));
    assert!(one.next()["error"].is_string());
    two.submit(1, "loops");
    two.write(&json!({"cancel": 99}));
    assert!(two.next()["error"].is_string());
    one.write(&json!({"cancel": 1}));
    two.wait_until_it_runs();
    for id in [3, 4] {
        one.write(&json!({"cancel": id}));
    }
    let replies: Vec<Value> = (0..4).map(|_| one.last_reply()).collect();
    assert_eq!(
        ids(&replies),
        [(1, "cancelled"), (2, "row"), (3, "cancelled"), (4, "cancelled")],
        "one of it, one of the other"
    );
    assert_eq!(replies[2]["cancelled"], "pending");
    // Its endless kernel would keep the device for 1000 s.
    two.submit(2, "loops");
    drop(two);
    one.submit(5, "right");
    assert_eq!(one.last_reply()["row"]["status"], "right");
    server.finish();
}

#[test]
fn a_client_that_sends_no_more_gets_its_rows() {
    let sandbox = Sandbox::new();
    let server = Listening::start(&sandbox);
    let mut client = server.connect();
    client.submit(1, "right");
    client.submit(2, "right");
    // Cut in the middle.
    client.lines.get_mut().write_all(b"{\"id\": 3, \"candidate\": {").unwrap();
    client.lines.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    let mut replies: Vec<Value> = (0..3).map(|_| client.last_reply()).collect();
    replies.retain(|reply| reply["error"].is_null());
    assert_eq!(ids(&replies), [(1, "row"), (2, "row")]);
    assert_eq!(client.lines.read_line(&mut String::new()).unwrap(), 0, "the server closes the connection");
    server.finish();
}

/// What a command says that does not start.
fn refused(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let finished = test_process::finish(&mut sandbox.command(arguments), DEADLINE).unwrap();
    assert!(!finished.status.success());
    finished.stderr
}

#[test]
fn a_socket_belongs_to_one_user_and_one_server() {
    let sandbox = Sandbox::new();
    drop(UnixListener::bind(sandbox.folder.path().join("socket")).unwrap());
    let server = Listening::start(&sandbox);
    assert_eq!(server.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    sandbox.folder.write("file", "kept");
    for (path, words) in
        [("socket", "running server"), ("file", "is no socket"), ("none/socket", "cannot listen at")]
    {
        let refused = refused(&sandbox, &["serve", "--listen", path]);
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!(sandbox.folder.read("file"), "kept");
    assert!(refused(&sandbox, &["serve", "--stdio", "--listen", "socket"]).contains("cannot be used with"));
    server.finish();
}

#[test]
fn the_number_of_clients_is_bounded() {
    let sandbox = Sandbox::new();
    let server = Listening::start(&sandbox);
    let mut clients = Vec::new();
    let refused = loop {
        let mut client = Client { lines: BufReader::new(UnixStream::connect(server.path()).unwrap()) };
        let reply = client.next();
        match reply["error"].as_str() {
            Some(error) => break error.to_owned(),
            None => clients.push(client),
        }
    };
    // The connection that has found the socket may still count.
    assert!((63..65).contains(&clients.len()) && refused.contains("64 clients"), "{refused}");
    clients.truncate(1);
    wait_for(
        || {
            let mut client = Client { lines: BufReader::new(UnixStream::connect(server.path()).unwrap()) };
            !client.next()["hello"].is_null()
        },
        "a free place",
    );
    clients[0].submit(1, "right");
    assert_eq!(clients[0].last_reply()["row"]["status"], "right");
    server.finish();
}
