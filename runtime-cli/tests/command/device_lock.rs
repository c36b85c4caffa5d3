//! One process at a time times kernels on a device, and the others say for whom they wait.

use std::process::{Child, Output, Stdio};
use std::sync::Mutex;

use runtime_harness::DeviceLock;

use super::fixture::{self, Folder};

/// These tests hold the lock of this machine's processors.
static TURN: Mutex<()> = Mutex::new(());

const CODE: &str = r#"
#include <stdio.h>
#include <time.h>
#include <unistd.h>
void slow(float *x) {
    FILE *log = fopen("log", "a");
    fprintf(log, "%d\n", (int)getpid());
    fclose(log);
    struct timespec pause = {0, 200000000};
    nanosleep(&pause, 0);
    x[0] = 1;
}
"#;

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

/// The standard error of a process that has succeeded.
fn stderr(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn two_evaluations_of_a_device_take_turns_and_one_says_for_whom_it_waits() {
    let _turn = TURN.lock();
    let folder = folder();
    let commands = [
        &["eval", "slow.toml", "--device", "host:0"][..],
        &["eval", "--isolate", "slow.toml", "--device", "host:0"],
    ];
    let children = commands.map(|arguments| start(&folder, arguments, None));
    let processes = children.each_ref().map(Child::id);
    let outputs = children.map(|child| stderr(&child.wait_with_output().unwrap()));
    let log = folder.read("log");
    let mut turns: Vec<&str> = log.lines().collect();
    assert!(turns.len() >= 8, "each is called to warm up and for three samples: {log}");
    turns.dedup();
    assert_eq!(turns.len(), 2, "one after the other: {log}");
    let says = |waiting: usize| {
        let (text, holder) = (&outputs[waiting], processes[1 - waiting]);
        text.contains(&format!("waiting while host:0 is in use by process {holder} (runtime eval "))
    };
    assert!(says(0) || says(1), "{outputs:?}");
}

#[test]
fn a_shared_device_is_not_waited_for() {
    let _turn = TURN.lock();
    let folder = folder();
    let lock = DeviceLock::acquire("host", &mut |_| {});
    for isolate in [&[][..], &["--isolate"]] {
        let plain = [&["eval", "slow.toml", "--device", "host:0"][..], isolate].concat();
        for (arguments, variable) in [([&plain[..], &["--share"]].concat(), None), (plain.clone(), Some("1"))]
        {
            let text = stderr(&start(&folder, &arguments, variable).wait_with_output().unwrap());
            assert!(!text.contains("waiting"), "{text}");
        }
        // Any other value is no wish to share.
        let mut child = start(&folder, &plain, Some("0"));
        let begun = |child: &mut Child| std::io::BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut begun(&mut child), &mut line).unwrap();
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
    folder.write("broken.c", "void slow(float *x) { not C }");
    folder.write("broken.toml", &SPEC.replace("slow.c", "broken.c"));
    let child = start(&folder, &["eval", "broken.toml", "--device", "host:0"], None);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let child = start(&folder, &["run", "slow.toml", "--device", "host:0"], None);
    assert!(child.wait_with_output().unwrap().status.success(), "`run` times nothing");
    drop(lock);
}
