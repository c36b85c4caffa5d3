//! One process at a time times kernels on a device, and the others say for whom they wait.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use runtime_harness::DeviceLock;

use super::fixture::{self, Folder};

/// These tests hold the lock of this machine's processors.
static TURN: Mutex<()> = Mutex::new(());

/// Each call waits until the file `go` exists, at most a minute: in a test that fails.
const CODE: &str = r#"
#include <stdio.h>
#include <time.h>
#include <unistd.h>
void slow(float *x) {
    FILE *log = fopen("log", "a");
    fprintf(log, "%d\n", (int)getpid());
    fclose(log);
    struct timespec pause = {0, 10000000};
    for (int i = 0; i < 6000 && access("go", F_OK) != 0; i++)
        nanosleep(&pause, 0);
    x[0] = 1;
}
"#;

/// How long a process may take to start and to reach its kernel.
const START: Duration = Duration::from_secs(50);

const SPEC: &str = r#"version = 1
name = "slow"
[kernel]
path = "slow.c"
entry = "slow"
[[arg]]
dtype = "f32"
shape = [1]
use = "write"
[eval]
repeat = 3
number = 1
warmup = 1
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("slow.c", CODE);
    folder.write("slow.toml", SPEC);
    folder
}

fn start(folder: &Folder, arguments: &[&str], share: Option<&str>) -> Child {
    let mut command = fixture::command(arguments);
    command.current_dir(folder.path()).env_remove("RUNTIME_SHARE");
    command.envs(share.map(|value| ("RUNTIME_SHARE", value)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends the lines of a process's standard error as they come, with its index.
fn read_lines(child: &mut Child, index: usize, lines: &Sender<(usize, String)>) -> JoinHandle<()> {
    let (stderr, lines) = (child.stderr.take().unwrap(), lines.clone());
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let _ = lines.send((index, line));
        }
    })
}

/// The exit code of a process that must not wait for the device, which it would do for ever.
fn code_without_waiting(mut child: Child) -> Option<i32> {
    let mut text = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok) {
        text = text + &line + "\n";
        if line.starts_with("waiting ") {
            child.kill().unwrap();
            break;
        }
    }
    let status = child.wait().unwrap();
    assert!(!text.contains("waiting "), "{text}");
    status.code()
}

#[test]
fn two_evaluations_of_a_device_take_turns_and_one_says_for_whom_it_waits() {
    let _turn = TURN.lock();
    let folder = folder();
    let commands = [
        &["eval", "slow.toml", "--device", "host:0"][..],
        &["eval", "--isolate", "--trust", "slow.toml", "--device", "host:0"],
    ];
    let mut children = commands.map(|arguments| start(&folder, arguments, None));
    let (send, lines) = mpsc::channel();
    let readers: Vec<_> =
        (0..).zip(&mut children).map(|(index, child)| read_lines(child, index, &send)).collect();
    // The kernel that runs goes on only when the other process has said for whom it waits. Both may wait for others before.
    let processes = children.each_ref().map(Child::id);
    let waits = |(index, line): &(usize, String)| {
        let holder = processes[1 - index];
        line.starts_with(&format!("waiting while host:0 is in use by process {holder} (runtime eval "))
    };
    let waiting = std::iter::from_fn(|| lines.recv_timeout(START).ok()).find(waits);
    folder.write("go", "");
    for child in &mut children {
        assert!(child.wait().unwrap().success(), "{waiting:?}");
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    assert!(waiting.is_some(), "one of them says for whom it waits");
    let log = folder.read("log");
    let mut turns: Vec<&str> = log.lines().collect();
    assert!(turns.len() >= 8, "each is called to warm up and for three samples: {log}");
    turns.dedup();
    assert_eq!(turns.len(), 2, "one after the other: {log}");
}

#[test]
fn a_shared_device_is_not_waited_for() {
    let _turn = TURN.lock();
    let folder = folder();
    folder.write("go", "");
    let lock = DeviceLock::acquire("host", &mut |_| {});
    for isolate in [&[][..], &["--isolate", "--trust"]] {
        let plain = [&["eval", "slow.toml", "--device", "host:0"][..], isolate].concat();
        for (arguments, variable) in [([&plain[..], &["--share"]].concat(), None), (plain.clone(), Some("1"))]
        {
            assert_eq!(code_without_waiting(start(&folder, &arguments, variable)), Some(0), "{arguments:?}");
        }
        // Any other value is no wish to share.
        let mut child = start(&folder, &plain, Some("0"));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.find(|line| !fixture::is_warning_of_sandbox(line)).unwrap();
        let holder = std::process::id();
        assert!(line.starts_with(&format!("waiting while host:0 is in use by process {holder} (")), "{line}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    drop(lock);
}

/// Simulated devices have no lock, nor has a kernel that is compiled.
#[test]
fn what_is_not_timed_on_the_processors_does_not_wait() {
    let _turn = TURN.lock();
    let folder = folder();
    let lock = DeviceLock::acquire("host", &mut |_| {});
    folder.write("go", "");
    folder.write("broken.c", "void slow(float *x) { not C }");
    folder.write("broken.toml", &SPEC.replace("slow.c", "broken.c"));
    let child = start(&folder, &["eval", "broken.toml", "--device", "host:0"], None);
    assert_eq!(code_without_waiting(child), Some(1));
    let child = start(&folder, &["run", "slow.toml", "--device", "host:0"], None);
    assert_eq!(code_without_waiting(child), Some(0), "`run` times nothing");
    drop(lock);
}
