//! What protocol 2 adds: candidates without files, requirements, cancelling.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::sandbox::Sandbox;
use super::server::Server;

const SCALE: &str = "void k(const float *x, float *y) { for (int i = 0; i < 4; i++) y[i] = 2 * x[i]; }";

/// A candidate with this code, which is right if it doubles.
pub(super) fn doubling(code: &str) -> Value {
    json!({
        "spec": {
            "version": 1,
            "kernel": {"code": code, "format": "c", "entry": "k"},
            "arg": [
                {"name": "x", "dtype": "f32", "shape": [4], "init": "random"},
                {"name": "y", "dtype": "f32", "shape": [4], "use": "write"},
            ],
            "reference": {"code": SCALE, "format": "c", "entry": "k"},
            "eval": {"repeat": 2, "number": 1, "warmup": 1, "budget_s": 2},
        },
        "device": "host:0",
    })
}

fn request(id: u64, candidate: &Value) -> String {
    json!({"id": id, "candidate": candidate}).to_string()
}

/// The row of a candidate, or the error.
fn answer(server: &mut Server<'_>, candidate: &Value) -> Value {
    server.write(request(1, candidate));
    let mut reply = server.last_reply();
    assert_eq!(reply["id"], 1, "{reply}");
    if reply["row"].is_null() { reply } else { reply["row"].take() }
}

fn reason(answer: &Value) -> &str {
    answer["reason"].as_str().or(answer["error"].as_str()).unwrap_or_default()
}

#[test]
fn a_candidate_needs_no_file() {
    let sandbox = Sandbox::new();
    sandbox.folder.write("header.h", "");
    let mut server = Server::start(&sandbox);
    let row = answer(&mut server, &doubling(SCALE));
    assert_eq!((&row["status"], &row["spec"]), (&json!("right"), &json!("candidate.spec")), "{row:#}");
    assert_eq!((&row["kernel"]["name"], &row["command"]), (&json!("k"), &Value::Null));
    for (code, status, words) in [
        (&*SCALE.replace("2 *", "3 *"), "wrong", "elements are wrong"),
        (SCALE, "right", ""),
        (&format!("#include \"header.h\"\n{SCALE}"), "failed", "header.h"),
        (&format!("#include <math.h>\n{SCALE}"), "right", ""),
        ("void k(const float *x, float *y) { *(volatile int *)0 = 1; }", "failed", "SIGSEGV"),
    ] {
        let row = answer(&mut server, &doubling(code));
        assert_eq!(row["status"], status, "{row:#}");
        assert!(reason(&row).contains(words), "{row:#}");
    }
    // The same arguments with another reference: what is expected of the one candidate is not expected of the other.
    let mut other = doubling(SCALE);
    other["spec"]["arg"][0]["init"] = json!("arange");
    assert_eq!(answer(&mut server, &other)["status"], "right");
    other["spec"]["reference"]["code"] = json!(SCALE.replace("2 *", "3 *"));
    assert_eq!(answer(&mut server, &other)["status"], "wrong");
    let mut invalid = doubling(SCALE);
    invalid["spec"]["arg"][1]["shape"] = json!(["m"]);
    let refused = answer(&mut server, &invalid);
    assert!(
        reason(&refused).contains("candidate.spec.arg[1].shape[0]: shape in [[arg]]: unknown name"),
        "{refused}"
    );
    server.finish();
}

#[test]
fn expected_tensors_are_files() {
    let sandbox = Sandbox::new();
    let mut server = Server::start(&sandbox);
    for (expected, status) in [([0_f32, 2.0, 4.0, 6.0], "right"), ([0.0, 2.0, 4.0, 7.0], "wrong")] {
        let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        npy.extend(format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}").bytes());
        npy.extend(expected.iter().flat_map(|value| value.to_le_bytes()));
        let file = sandbox.folder.path().join("y.npy");
        std::fs::write(&file, npy).unwrap();
        let mut candidate = doubling(SCALE);
        candidate["spec"]["arg"][0]["init"] = json!("arange");
        candidate["spec"]["reference"] = json!({"outputs": ["file:y.npy"]});
        let row = answer(&mut server, &candidate);
        assert_eq!(row["status"], status, "{row:#}");
    }
    server.finish();
}

#[test]
fn what_a_candidate_requires_it_gets_or_is_refused() {
    let sandbox = Sandbox::new();
    let with = |required: &[&str], change: &dyn Fn(&mut Value)| {
        let mut candidate = doubling(SCALE);
        change(&mut candidate);
        candidate["require"] = json!(required);
        candidate
    };
    let nothing = |_: &mut Value| {};
    let fixed = |candidate: &mut Value| candidate["spec"]["arg"][0]["init"] = json!("ones");
    let counted = |candidate: &mut Value| candidate["settings"] = json!({"counters": ["page-faults"]});
    let mut server = Server::start(&sandbox);
    let row = answer(&mut server, &with(&["fresh"], &nothing));
    assert_eq!((&row["status"], &row["judged"]["inputs"]), (&json!("right"), &json!("fresh")), "{row:#}");
    let row = answer(&mut server, &with(&["fresh"], &fixed));
    assert_eq!(row["status"], "not_run", "{row:#}");
    assert!(reason(&row).contains("\"fresh\" in `require`"), "{row:#}");
    assert_eq!(answer(&mut server, &with(&[], &fixed))["status"], "right", "the next one requires nothing");
    let is_whole = row_is_sandboxed(&answer(&mut server, &doubling(SCALE)));
    let row = answer(&mut server, &with(&["sandbox", "fresh"], &nothing));
    assert_eq!(row["status"], if is_whole { "right" } else { "not_run" }, "{row:#}");
    let row = answer(&mut server, &with(&["sandbox"], &counted));
    assert_eq!(row["status"], "not_run", "{row:#}");
    assert!(reason(&row).contains("require"), "{row:#}");
    let chained = with(&["fresh"], &|candidate| candidate["chain"] = json!({"specs": []}));
    assert!(reason(&answer(&mut server, &chained)).contains("candidate.require"));
    assert!(
        reason(&answer(&mut server, &with(&["luck"], &nothing))).contains("expected `fresh` or `sandbox`")
    );
    server.finish();

    let mut server = Server::with_command(&sandbox, &mut sandbox.command(&["serve", "--stdio", "--trust"]));
    for required in ["fresh", "sandbox"] {
        let row = answer(&mut server, &with(&[required], &nothing));
        assert_eq!(row["status"], "not_run", "{row:#}");
        assert!(reason(&row).contains("--trust"), "{row:#}");
    }
    assert_eq!(answer(&mut server, &doubling(SCALE))["status"], "right");
    server.finish();
}

fn row_is_sandboxed(row: &Value) -> bool {
    row["judged"]["sandboxed"] == true
}

#[test]
fn requests_are_cancelled_while_they_wait_and_while_they_run() {
    let sandbox = Sandbox::new();
    let command = &mut sandbox.command(&["serve", "--stdio", "--timeout", "1000"]);
    let mut server = Server::with_command(&sandbox, command);
    server.submit(1, "loops");
    for id in [2, 3, 2] {
        server.submit(id, "right");
    }
    while server.next()["phase"] != "run" {}
    server.write(r#"{"cancel": 2}"#);
    for _ in 0..2 {
        assert_eq!(server.next(), json!({"id": 2, "cancelled": "pending"}));
    }
    server.write(r#"{"cancel": 1}"#);
    assert_eq!(server.last_reply(), json!({"id": 1, "cancelled": "running"}));
    let reply = server.last_reply();
    assert_eq!((&reply["id"], &reply["row"]["status"]), (&json!(3), &json!("right")), "{reply}");
    for id in [1, 3, 9] {
        server.write(json!({"cancel": id}).to_string());
        let reply = server.next();
        assert_eq!(reply["id"], Value::Null, "it is about no request");
        assert!(reason(&reply).contains(&format!("no request {id} to cancel")), "{reply}");
    }
    server.finish();
    sandbox.wait_for_processes(&BTreeSet::new(), "serve");
}
