//! A thousand candidates; every twentieth misbehaves. All get an answer, and nothing is left behind.

use std::collections::BTreeSet;
use std::process::Command;

use runtime_harness::DeviceLock;
use serde_json::json;

use super::sandbox::{Sandbox, spec};
use super::server::Server;
use super::wait_for;

const CANDIDATES: usize = 1000;
/// Kernels that misbehave, most of them often, and how they end. Those that hang take their whole time limit.
const BAD: [(&str, &str, usize); 8] = [
    ("null_dereference", "crashed", 14),
    ("aborts", "crashed", 8),
    ("corrupts_the_heap", "crashed", 6),
    ("crashes_with_children", "crashed", 6),
    ("exits_with_a_code", "exited", 8),
    ("leaves_a_file", "crashed", 4),
    ("loops", "timeout", 2),
    ("stops_its_group", "timeout", 2),
];

fn shared_memory() -> BTreeSet<String> {
    let entries = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The kernels in the order in which they are submitted: the bad ones among the good ones.
fn entries() -> Vec<(&'static str, &'static str)> {
    let bad: Vec<_> = BAD.iter().flat_map(|(name, kind, count)| vec![(*name, *kind); *count]).collect();
    let distance = CANDIDATES / bad.len();
    let mut bad = (0..bad.len()).map(|at| bad[at * 7 % bad.len()]);
    let entry = |at: usize| match at % distance {
        0 => bad.next().unwrap_or(("right", "ok")),
        _ => ("right", "ok"),
    };
    (0..CANDIDATES).map(entry).collect()
}

#[test]
fn a_thousand_candidates_leave_nothing_though_every_twentieth_misbehaves() {
    let sandbox = Sandbox::new();
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-shared", "-fPIC", "-o", "bad.so", "bad.c"]).current_dir(sandbox.folder.path());
    assert!(compiler.status().unwrap().success());
    let entries = entries();
    for (entry, _) in &entries {
        sandbox.folder.write(&format!("{entry}.toml"), &spec(entry).replace("bad.c", "bad.so"));
    }
    let before = shared_memory();
    let mut command = sandbox.command(&["serve", "--stdio", "--timeout", "2", "--trust"]);
    // The locks are part of what must not be left.
    let mut server = Server::with_command(&sandbox, command.env_remove("RUNTIME_SHARE"));
    let submit = |server: &mut Server<'_>, id: usize, entry: &str| {
        let settings = json!({"budget_s": 0.1});
        let candidate = json!({"spec": format!("{entry}.toml"), "device": "host:0", "settings": settings});
        server.write(json!({"id": id, "candidate": candidate}).to_string());
    };
    submit(&mut server, 0, "right");
    assert_eq!(server.last_reply()["row"]["status"], "right");
    let (processes, descriptors) = (sandbox.processes().len(), server.descriptors());
    for (id, (entry, _)) in entries.iter().enumerate() {
        submit(&mut server, id, entry);
    }
    for (id, (entry, kind)) in entries.iter().enumerate() {
        let reply = server.last_reply();
        assert_eq!(
            (&reply["id"], &reply["row"]["outcome"]["kind"]),
            (&json!(id), &json!(kind)),
            "{entry}: {reply:#}"
        );
    }
    submit(&mut server, CANDIDATES, "right");
    assert_eq!(server.last_reply()["row"]["status"], "right");
    wait_for(|| sandbox.processes().len() <= processes, "the server, a supervisor and a worker");
    wait_for(|| server.descriptors() <= descriptors, "descriptors");
    server.finish();
    // Other programs of this machine may use shared memory meanwhile.
    wait_for(|| shared_memory().is_subset(&before), "shared memory");
    drop(DeviceLock::acquire("host", &mut |_| {}));
}
