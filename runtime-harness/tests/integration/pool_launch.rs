//! A pool whose workers are started by launchers: shell scripts that print, die, hang, or are killed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use runtime_harness::row::Phase;
use runtime_harness::worker::protocol::Reply;
use runtime_harness::{Candidate, Outcome, Pool, PoolOptions, Row};

/// Generous: a loaded machine must not fail a test.
const DEADLINE: Duration = Duration::from_secs(60);

/// The beginning of a worker: it reads candidates, and gives each an error as its reply, which is the shortest.
const HELLO: &str = r#"echo "{\"hello\": {\"protocol\": 2, \"version\": \"0\", \"pid\": $$}}""#;
const READ: &str = r#"read line || exit 0; id=${line%%,*}; id=${id#*:}; echo "{\"id\": $id, \"phase\": \"run\", \"operation\": \"while it ran\"}""#;
const ANSWER: &str = r#"echo "{\"id\": $id, \"error\": \"answered by $$\"}""#;

/// A directory with a spec, and a pool with a launcher in it.
struct Fixture {
    folder: tempfile::TempDir,
    pool: Pool,
    replies: Receiver<Reply>,
}

impl Fixture {
    /// `script` runs in the directory, instead of a worker, with the worker's command as its parameters.
    fn new(script: &str, workers: usize) -> Self {
        Self::with_timeout(script, workers, DEADLINE)
    }

    /// The same, for a worker that does not answer.
    fn impatient(script: &str) -> Self {
        Self::with_timeout(script, 1, Duration::from_millis(300))
    }

    fn with_timeout(script: &str, workers: usize, timeout: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("k.c"), "void k(void) {}\n").unwrap();
        let spec = "version = 1\n[kernel]\npath = \"k.c\"\nentry = \"k\"\n[eval]\nbudget_s = 0\n";
        std::fs::write(folder.path().join("k.toml"), spec).unwrap();
        let script = format!("cd {}\n{script}", folder.path().display());
        std::fs::write(folder.path().join("launcher"), script).unwrap();
        let launcher = folder.path().join("launcher");
        Self::with_template(&format!("sh {} {{worker}}", launcher.display()), workers, folder, timeout)
    }

    fn with_template(template: &str, workers: usize, folder: tempfile::TempDir, timeout: Duration) -> Self {
        let options = PoolOptions {
            launch: Some(template.parse().unwrap()),
            workers,
            timeout,
            start_timeout: Duration::from_secs(3),
            ..PoolOptions::new("/there/runtime")
        };
        let (sender, replies) = mpsc::channel();
        Self { pool: Pool::new(options, sender), replies, folder }
    }

    fn submit(&mut self, id: u64) {
        let candidate = Candidate::new(self.folder.path().join("k.toml"), "x:0");
        self.pool.submit(id, candidate).unwrap();
    }

    /// The next last reply.
    fn last_reply(&self) -> Reply {
        loop {
            let reply = self.replies.recv_timeout(DEADLINE).unwrap();
            if reply.is_final() {
                return reply;
            }
        }
    }

    fn evaluate(&mut self) -> Row {
        self.submit(1);
        match self.last_reply() {
            Reply::Row { row, .. } => *row,
            reply => panic!("{reply:?}"),
        }
    }

    fn evaluates(&mut self) -> bool {
        self.submit(1);
        matches!(self.last_reply(), Reply::Error { error, .. } if error.starts_with("answered"))
    }

    /// How many launchers have written a line to `count`.
    fn count(&self) -> usize {
        std::fs::read_to_string(self.folder.path().join("count")).map_or(0, |text| text.lines().count())
    }
}

#[test]
fn what_a_launcher_prints_before_its_worker_is_ignored() {
    let banner =
        r#"printf 'Welcome\n\377\376 to the \303\n{"error": "motd"}\n{"id": 1, "error": "motd"}\n[1]\n'"#;
    let mut fixture = Fixture::new(&format!("{banner}; {HELLO}; while :; do {READ}; {ANSWER}; done"), 1);
    for _ in 0..3 {
        assert!(fixture.evaluates());
    }
}

#[test]
fn a_launcher_gets_the_workers_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words");
    let template =
        format!("sh -c 'echo \"$0\" \"$@\" {{arguments}} > {}; exit 7' a {{worker}}", file.display());
    let mut fixture = Fixture::new("", 1);
    let other = std::mem::replace(&mut fixture.folder, tempfile::tempdir().unwrap());
    let mut fixture = Fixture::with_template(&template, 1, other, DEADLINE);
    assert!(matches!(fixture.evaluate().outcome, Outcome::Exited { code: 7, .. }));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "a /there/runtime worker worker\n");
}

#[test]
fn a_launcher_that_is_missing_dies_or_hangs_is_an_outcome() {
    let mut fixture = Fixture::new("", 1);
    let folder = std::mem::replace(&mut fixture.folder, tempfile::tempdir().unwrap());
    let mut fixture = Fixture::with_template("/missing/srun {worker}", 1, folder, DEADLINE);
    let row = fixture.evaluate();
    assert!(row.reason.unwrap().contains("/missing/srun"), "the launcher is named, not the worker");

    let mut fixture = Fixture::new("echo >> count; echo no such host >&2; exit 255", 1);
    let row = fixture.evaluate();
    let expected = Outcome::Exited {
        code: 255,
        operation: Some("while the worker started".to_owned()),
        output: "no such host".to_owned(),
    };
    assert_eq!((row.outcome, fixture.count()), (expected, 2), "it is tried twice");

    let mut fixture = Fixture::new("trap '' TERM; while :; do sleep 0.1; done", 1);
    let row = fixture.evaluate();
    assert_eq!(row.outcome, Outcome::Timeout { phase: Phase::Prepare });
    assert_eq!(row.reason.as_deref(), Some("the worker was not ready after 3 s"));
}

#[test]
fn a_worker_that_dies_from_outside_costs_its_candidate_a_second_try() {
    // The first launcher is killed while its candidate runs, the second one answers.
    let script = format!(
        "echo >> count; {HELLO}; {READ}; [ -e died ] || {{ echo > died; kill -KILL $$; }}; {ANSWER}; read line"
    );
    let mut fixture = Fixture::new(&script, 1);
    assert!(fixture.evaluates());
    assert_eq!(fixture.count(), 2);
    // A supervisor that was told to end says so.
    let told = script.replace("kill -KILL $$", r#"echo '{"ended": {}}'; exit 0"#);
    let mut fixture = Fixture::new(&told, 1);
    assert!(fixture.evaluates());
    assert_eq!(fixture.count(), 2);
}

#[test]
fn the_second_death_is_the_outcome_and_a_crash_is_the_first_time() {
    let mut fixture = Fixture::new(&format!("echo >> count; {HELLO}; {READ}; kill -KILL $$"), 1);
    let row = fixture.evaluate();
    let Outcome::Crashed { signal: libc::SIGKILL, operation, .. } = row.outcome else { panic!("{row:?}") };
    assert_eq!((operation.as_deref(), fixture.count()), (Some("while it ran"), 2));
    let crash = r#"echo '{"ended": {"signal": 11}}'"#;
    let mut fixture = Fixture::new(&format!("echo >> count; {HELLO}; {READ}; {crash}"), 1);
    let row = fixture.evaluate();
    assert!(matches!(row.outcome, Outcome::Crashed { signal: libc::SIGSEGV, .. }), "{row:?}");
    assert_eq!(fixture.count(), 1);
}

#[test]
fn a_launched_workers_process_number_is_not_used_here() {
    // A process of this machine that has the number of the worker on another one, and leads its group.
    let mut bystander = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
    let hello = HELLO.replace("$$", &bystander.id().to_string());
    for script in [
        format!("{hello}; {READ}; kill -KILL $$"),
        format!("trap '' TERM; {hello}; {READ}; while :; do sleep 0.1; done"),
    ] {
        let mut fixture = Fixture::impatient(&script);
        fixture.evaluate();
        drop(fixture.pool);
        assert!(bystander.try_wait().unwrap().is_none(), "it runs");
    }
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

/// At a deadline a worker behind a launcher sees the end of its input, which reaches other machines.
#[test]
fn a_launched_worker_is_ended_by_the_end_of_its_input() {
    let script = format!("{HELLO}; {READ}; cat > /dev/null; echo > ended; echo '{{\"ended\": {{}}}}'");
    let mut fixture = Fixture::impatient(&script);
    assert_eq!(fixture.evaluate().outcome, Outcome::Timeout { phase: Phase::Run });
    assert!(fixture.folder.path().join("ended").exists());
}

#[test]
fn workers_share_the_candidates_of_a_device() {
    // A candidate is answered when as many as there are workers have begun.
    let script = format!(
        "echo >> count; {HELLO}; while :; do {READ}; echo >> begun; \
         while [ $(wc -l < begun) -lt 3 ]; do sleep 0.01; done; {ANSWER}; done"
    );
    let mut fixture = Fixture::new(&script, 3);
    for id in 0..12 {
        fixture.submit(id);
    }
    let mut ids: Vec<u64> = (0..12).map(|_| fixture.last_reply().id().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..12).collect::<Vec<_>>());
    assert_eq!(fixture.count(), 3);
    fixture.pool.finish();
}

#[test]
fn a_worker_that_does_not_start_costs_no_candidate_while_others_work() {
    // The first launcher fails, the second one waits for ever, the third one works.
    let script = format!(
        "mkdir first 2> /dev/null && {{ echo no machine >&2; exit 1; }}; \
         mkdir again 2> /dev/null && {{ echo no machine >&2; exit 1; }}; \
         mkdir second 2> /dev/null && exec sleep 1000; {HELLO}; while :; do {READ}; {ANSWER}; done"
    );
    let mut fixture = Fixture::new(&script, 3);
    for id in 0..20 {
        fixture.submit(id);
    }
    for _ in 0..20 {
        assert!(matches!(fixture.last_reply(), Reply::Error { .. }));
    }
    let begin = Instant::now();
    fixture.pool.finish();
    assert!(begin.elapsed() < DEADLINE, "the worker that never starts is not waited for");
}

#[test]
fn a_pool_is_stopped_from_another_thread() {
    let mut fixture = Fixture::new(&format!("{HELLO}; {READ}; cat > /dev/null; echo > ended"), 2);
    fixture.submit(1);
    while !matches!(fixture.replies.recv_timeout(DEADLINE).unwrap(), Reply::Phase { .. }) {}
    assert!(fixture.pool.stopper().stop(DEADLINE));
    assert!(fixture.folder.path().join("ended").exists());
}
