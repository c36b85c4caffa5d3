//! What is left when the command, a server or a worker ends.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::sandbox::{Sandbox, spec};
use super::server::Server;
use super::wait_for;

#[test]
fn nothing_outlives_a_killed_parent() {
    let sandbox = Sandbox::new();
    let begun = |entry: &str| sandbox.folder.path().join(format!("{entry}-begun"));
    // What a kernel does before it says that it has begun, and afterwards.
    let kernels = [
        ("right", "right(x);", ""),
        ("forks_a_daemon", "forks_a_daemon(x);", ""),
        ("loops", "", "loops(x);"),
        ("stops", "", "stops(x);"),
        ("stops_its_group", "", "stops_its_group(x);"),
    ];
    let mut code = sandbox.folder.read("bad.c");
    for (entry, before, after) in kernels {
        let says = format!("close(open(\"{}\", O_CREAT | O_WRONLY, 0600));", begun(entry).display());
        code.push_str(&format!("void says_and_{entry}(float *x) {{ {before} {says} {after} }}\n"));
    }
    sandbox.folder.write("bad.c", &code);
    for (entry, ..) in kernels {
        // In a worker, where a kernel can write files, and in a runner.
        let mut server =
            Server::with_command(&sandbox, &mut sandbox.command(&["serve", "--stdio", "--trust"]));
        server.submit(1, &format!("says_and_{entry}"));
        wait_for(|| begun(entry).exists(), entry);
        assert!(sandbox.processes().len() >= 3, "{entry}");
        server.kill();
        sandbox.wait_for_processes(&BTreeSet::new(), entry);
        let mut server = Server::start(&sandbox);
        server.submit(1, entry);
        while server.next()["phase"] != "run" {}
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

/// The supervisor can be used by itself: it says how its worker ended.
#[test]
fn a_worker_reports_its_end_and_ends_with_its_input() {
    let sandbox = Sandbox::new();
    sandbox.folder.write("exits.toml", &spec("exits"));
    let run = |requests: &str, file: &Path| {
        std::fs::write(file, requests).unwrap();
        let input = std::fs::File::open(file).unwrap();
        let output = sandbox.command(&["worker", "--sandbox", "off"]).stdin(input).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let file = sandbox.folder.path().join("requests");
    let lines = run("", &file);
    assert_eq!(lines[0]["hello"]["protocol"], 2);
    assert_eq!(lines[1], json!({"ended": {"code": 0}}));
    let lines = run(r#"{"id": 3, "candidate": {"spec": "exits.toml", "device": "host:0"}}"#, &file);
    assert_eq!(lines.last().unwrap(), &json!({"ended": {"code": 0}}));
    assert!(lines.iter().all(|line| line.get("row").is_none()), "{lines:?}");
    sandbox.wait_for_processes(&BTreeSet::new(), "worker");
    assert_eq!(sandbox.temporary_files(), 0);
}
