//! A pool whose workers are shell scripts: what it does about workers that break the rules.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use runtime_harness::row::Phase;
use runtime_harness::worker::protocol::Reply;
use runtime_harness::{Candidate, Outcome, Pool, PoolOptions, Row, Status};

/// Generous: a loaded machine must not fail a test.
const DEADLINE: Duration = Duration::from_secs(60);

const HELLO: &str = r#"echo "{\"hello\": {\"protocol\": 2, \"version\": \"0\", \"pid\": $$}}""#;
const RUN: &str = r#"id=${line%%,*}; id=${id#*:}; echo "{\"id\": $id, \"phase\": \"run\", \"operation\": \"while it ran\"}""#;

/// A directory with a spec, and a pool whose workers run a script in it.
struct Fixture {
    folder: tempfile::TempDir,
    pool: Pool,
    replies: Receiver<Reply>,
}

impl Fixture {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("k.c"), "void k(void) {}\n").unwrap();
        let spec = "version = 1\n[kernel]\npath = \"k.c\"\nentry = \"k\"\n[eval]\nbudget_s = 0\n";
        std::fs::write(folder.path().join("k.toml"), spec).unwrap();
        let mut options = PoolOptions::new("/bin/sh");
        let script = format!("cd {}\n{script}", folder.path().display());
        options.arguments = vec!["-c".into(), script.into()];
        options.timeout = Duration::from_millis(300);
        options.compile_timeout = Duration::from_secs(5);
        options.start_timeout = Duration::from_secs(5);
        let (sender, replies) = mpsc::channel();
        Self { pool: Pool::new(options, sender), replies, folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn submit(&mut self) {
        let candidate = Candidate::new(self.path().join("k.toml"), "x:0");
        self.pool.submit(1, candidate).unwrap();
    }

    fn row(&self) -> Row {
        loop {
            match self.replies.recv_timeout(DEADLINE).unwrap() {
                Reply::Row { row, .. } => return *row,
                Reply::Phase { .. } | Reply::Device { .. } => {}
                reply => panic!("{reply:?}"),
            }
        }
    }

    fn evaluate(&mut self) -> Row {
        self.submit();
        self.row()
    }

    /// How many workers have written their line to `count`.
    fn count(&self) -> usize {
        std::fs::read_to_string(self.path().join("count")).map_or(0, |text| text.lines().count())
    }
}

#[test]
fn a_worker_that_says_nothing_or_ends_is_an_outcome() {
    let mut fixture = Fixture::new("echo trouble >&2; exit 3");
    let row = fixture.evaluate();
    let expected = Outcome::Exited {
        code: 3,
        operation: Some("while the worker started".to_owned()),
        output: "trouble".to_owned(),
    };
    assert_eq!((row.status, row.outcome), (Status::Failed, expected));
    let mut fixture = Fixture::new("kill -SEGV $$");
    assert!(matches!(fixture.evaluate().outcome, Outcome::Crashed { signal: libc::SIGSEGV, .. }));
    let mut fixture = Fixture::new("sleep 1000");
    let row = fixture.evaluate();
    assert_eq!(row.outcome, Outcome::Timeout { phase: Phase::Prepare });
    assert_eq!(row.reason.as_deref(), Some("the worker was not ready after 5 s"));
}

#[test]
fn a_program_that_is_missing_or_of_another_version_is_named() {
    let (sender, replies) = mpsc::channel();
    let mut fixture = Fixture::new(&HELLO.replace("2,", "1,"));
    let row = fixture.evaluate();
    let Outcome::LaunchFailed { message } = row.outcome else { panic!("{row:?}") };
    assert_eq!(message, "/bin/sh has version 1 of the protocol, expected 2");
    fixture.pool = Pool::new(PoolOptions::new("/missing/runtime"), sender);
    fixture.replies = replies;
    let row = fixture.evaluate();
    assert!(row.reason.as_ref().unwrap().contains("/missing/runtime"), "{row:?}");
}

#[test]
fn a_worker_that_ignores_the_deadline_is_killed_and_replaced() {
    let mut fixture = Fixture::new(&format!(
        "echo >> count; trap '' TERM; {HELLO}; read line; {RUN}; while :; do sleep 0.1; done"
    ));
    for round in 1..3 {
        let row = fixture.evaluate();
        assert_eq!(row.outcome, Outcome::Timeout { phase: Phase::Run });
        assert_eq!(row.reason.as_deref(), Some("timed out after 0.3 s while it ran"));
        assert_eq!(fixture.count(), round);
    }
}

#[test]
fn a_device_that_holds_a_process_is_not_used_again() {
    let ended = r#"echo '{"ended": {"signal": 9, "left": [4711]}}'"#;
    let mut fixture = Fixture::new(&format!("echo >> count; {HELLO}; read line; {RUN}; {ended}"));
    assert!(matches!(fixture.evaluate().outcome, Outcome::Crashed { signal: 9, .. }));
    let row = fixture.evaluate();
    let reason = "x:0 is not used any more: process 4711 cannot be killed";
    assert_eq!(row.outcome, Outcome::Skipped { reason: reason.to_owned() });
    assert_eq!((row.status, row.error_kind.as_deref()), (Status::NotRun, Some("Unavailable")));
    assert_eq!(fixture.count(), 1, "no worker was started for it");
}

#[test]
fn a_process_left_at_a_deadline_makes_its_device_unusable() {
    let ended = r#"echo '{"ended": {"left": [4711]}}'"#;
    let script = format!(
        "trap \"{}; kill \\$!; exit\" TERM; {HELLO}; read line; {RUN}; sleep 1000 & wait",
        ended.replace('"', "\\\"")
    );
    let mut fixture = Fixture::new(&script);
    assert_eq!(fixture.evaluate().outcome, Outcome::Timeout { phase: Phase::Run });
    assert!(matches!(fixture.evaluate().outcome, Outcome::Skipped { reason } if reason.contains("4711")));
}

/// The first worker fails its second candidate; the next one does its work.
#[test]
fn a_crash_in_a_used_worker_is_tried_again_in_a_new_one() {
    let failed = r#"echo '{"id": 77, "error": "stray"}'; echo "{\"id\": $id, \"error\": \"first\"}""#;
    let script = format!(
        "echo >> count; {HELLO}; while read line; do {RUN}; \
         if [ -e used ]; then rm used; kill -SEGV $$; fi; {failed}; echo > used; done"
    );
    let mut fixture = Fixture::new(&script);
    for round in 1..3 {
        fixture.submit();
        let error = loop {
            match fixture.replies.recv_timeout(DEADLINE).unwrap() {
                Reply::Error { error, .. } => break error,
                Reply::Phase { .. } => {}
                reply => panic!("{reply:?}"),
            }
        };
        assert_eq!((error.as_str(), fixture.count()), ("first", round));
    }
}

#[test]
fn dropping_a_pool_ends_a_running_candidate_and_finishing_waits_for_it() {
    let slow = format!("{HELLO}; read line; {RUN}; sleep 1000");
    let mut fixture = Fixture::new(&slow);
    fixture.submit();
    while !matches!(fixture.replies.recv_timeout(DEADLINE).unwrap(), Reply::Phase { .. }) {}
    assert_eq!(fixture.pool.outstanding(), 1);
    let begin = Instant::now();
    drop(fixture.pool);
    assert!(begin.elapsed() < DEADLINE);
    assert!(fixture.replies.try_recv().is_err(), "no row");
    let mut fixture = Fixture::new(&slow);
    fixture.submit();
    fixture.submit();
    fixture.pool.finish();
    let rows = fixture.replies.iter().filter(|reply| matches!(reply, Reply::Row { .. }));
    assert_eq!(rows.count(), 2);
}

#[test]
fn an_invalid_spec_is_refused_at_once() {
    let mut fixture = Fixture::new("exit 1");
    std::fs::write(fixture.path().join("k.toml"), "version = 9").unwrap();
    let candidate = Candidate::new(fixture.path().join("k.toml"), "x:0");
    assert!(fixture.pool.submit(1, candidate).unwrap_err().message().contains("version"));
    assert_eq!(fixture.pool.outstanding(), 0);
}

/// Names of devices come from clients, who may make up any number of them.
#[test]
fn the_number_of_devices_with_workers_is_bounded() {
    let failed = r#"id=${line%%,*}; id=${id#*:}; echo "{\"id\": $id, \"error\": \"no such device\"}""#;
    let script = format!("{HELLO}; while read line; do {failed}; done; echo >> count");
    let mut fixture = Fixture::new(&script);
    let candidate = |fixture: &Fixture, device: usize| {
        Candidate::new(fixture.path().join("k.toml"), format!("x:{device}"))
    };
    for device in 0..70 {
        let candidate = candidate(&fixture, device);
        fixture.pool.submit(device as u64, candidate).unwrap();
        let reply = fixture.replies.recv_timeout(DEADLINE).unwrap();
        assert!(matches!(reply, Reply::Error { id: Some(id), .. } if id == device as u64), "{reply:?}");
    }
    let begin = Instant::now();
    while fixture.count() < 6 {
        assert!(begin.elapsed() < DEADLINE, "workers of idle devices go on");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut fixture = Fixture::new(&format!("{HELLO}; sleep 1000"));
    let mut submit = |device: usize| {
        let candidate = candidate(&fixture, device);
        fixture.pool.submit(device as u64, candidate)
    };
    (0..64).for_each(|device| submit(device).unwrap());
    assert!(submit(64).unwrap_err().message().contains("wait for some of them"));
}
