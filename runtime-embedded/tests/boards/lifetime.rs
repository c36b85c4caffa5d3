//! What a process leaves behind: nothing.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use runtime_core::{Arg, DType, ErrorKind, Result};
use test_process::is_complete;

use crate::{Board, CODE, Case, DEADLINE, Link, wait_until};

pub(crate) const CASES: &[Case] = &[
    ("flashes_leak_nothing", flashes_leak_nothing),
    ("four_targets_run_at_once", four_targets_run_at_once),
    ("a_killed_process_leaves_no_emulator", a_killed_process_leaves_no_emulator),
    ("a_dead_emulator_is_reported_and_replaced", a_dead_emulator_is_reported_and_replaced),
    ("an_emulator_that_has_ended_is_replaced", an_emulator_that_has_ended_is_replaced),
    ("a_target_that_stops_answering_is_replaced", a_target_that_stops_answering_is_replaced),
];

/// Makes this program flash a board and wait to be killed.
const HOLD_VARIABLE: &str = "RUNTIME_EMBEDDED_TEST_HOLD";

fn flash_and_run(board: &Board, a: i32) {
    let x = board.embedded().tensor_from_seed(DType::I32, &[1], 1).unwrap();
    board.flash(CODE, &[Arg::read_write(&x), Arg::scalar(0i32)]).unwrap();
    let before = board.embedded().read(0).unwrap().as_slice::<i32>().unwrap()[0];
    board.flash(CODE, &[Arg::read_write(&x), Arg::scalar(a)]).unwrap();
    board.embedded().run(DEADLINE).unwrap();
    assert_eq!(board.embedded().read(0).unwrap().as_slice::<i32>().unwrap()[0], before + a);
}

/// The emulators of a process.
fn emulators(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let children = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    let processes: Vec<u32> = children
        .flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    let is_emulator =
        |id: &u32| fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.starts_with("qemu"));
    processes.into_iter().filter(is_emulator).collect()
}

/// Whether a process is gone, or a zombie.
pub(crate) fn has_ended(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

/// Runs in a process of its own, where no other test opens files.
pub(crate) fn flashes_leak_nothing(board: &Board) {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = command(board, "flash");
    let output = child.env("TMPDIR", temporary.path()).spawn().unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn count_flashes(board: &Board) {
    let resources = || {
        let files = crate::images::files_below(&std::env::temp_dir()).len();
        (fs::read_dir("/proc/self/fd").unwrap().count(), emulators(std::process::id()).len(), files)
    };
    flash_and_run(board, 0);
    let before = resources();
    // Two flashes each. Over a UART, the firmware starts again for each, which takes an emulator a second.
    let (flashes, others) = if board.link == Link::Uart && !is_complete() { (4, 2) } else { (100, 5) };
    for a in 0..flashes {
        flash_and_run(board, a);
    }
    // Threads that read what a program prints close their pipes a moment after it has ended.
    let settle = |when: &str| {
        wait_until(&format!("open files, emulators and files are as before {when}"), || {
            resources() == before
        });
    };
    settle("the flashes");
    for _ in 0..others {
        flash_and_run(&board.another(), 1);
    }
    settle("other targets were opened and closed");
}

fn four_targets_run_at_once(board: &Board) {
    thread::scope(|scope| {
        for a in 0..4 {
            scope.spawn(move || flash_and_run(&board.another(), a));
        }
    });
}

/// Runs this program as a child that does `what`, and checks its exit code.
fn succeeds(board: &Board, what: &str) {
    let output = command(board, what).spawn().unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// This program as a child that does `what`.
pub(crate) fn command(board: &Board, what: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .env(HOLD_VARIABLE, format!("{} {:?} {what}", board.name, board.link))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn a_killed_process_leaves_no_emulator(board: &Board) {
    let mut child = command(board, "wait").spawn().unwrap();
    let mut ready = [0; 5];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let emulators = emulators(child.id());
    assert_eq!(emulators.len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the emulator ends with its parent", || emulators.iter().all(|id| has_ended(*id)));
}

pub(crate) fn a_dead_emulator_is_reported_and_replaced(board: &Board) {
    succeeds(board, "die");
}

pub(crate) fn an_emulator_that_has_ended_is_replaced(board: &Board) {
    succeeds(board, "end");
}

fn signal_emulator(signal: &str) {
    for id in emulators(std::process::id()) {
        Command::new("kill").args([signal, &id.to_string()]).status().unwrap();
    }
}

fn a_target_that_stops_answering_is_replaced(board: &Board) {
    // Each step costs the client's deadline of some seconds, and no step depends on the board.
    if board.name == crate::BOARDS[0] {
        succeeds(board, "stop");
    }
}

fn stop_emulator(board: &Board) {
    let x = board.embedded().tensor_from_seed(DType::I32, &[1], 1).unwrap();
    let args = [Arg::read_write(&x), Arg::scalar(0i32)];
    let steps: [(&str, &dyn Fn() -> Result<()>); 3] = [
        ("flash", &|| board.flash(CODE, &args)),
        ("run", &|| board.embedded().run(Duration::from_millis(100)).map(drop)),
        ("read", &|| board.embedded().read(0).map(drop)),
    ];
    for (name, step) in steps {
        flash_and_run(board, 1);
        signal_emulator("-STOP");
        let error = step().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{name}: {error}");
        signal_emulator("-CONT");
        // A late reply must not be taken for that of the next request. After a failed read, that is the next flash.
        assert!(name == "read" || board.embedded().run(DEADLINE).is_err(), "{name}");
    }
    flash_and_run(board, 2);
}

fn kill_emulator(board: &Board) {
    flash_and_run(board, 1);
    signal_emulator("-KILL");
    let error = board.embedded().run(DEADLINE).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.to_string().contains("closed"), "{error}");
    flash_and_run(board, 2);
}

fn end_emulator(board: &Board) {
    flash_and_run(board, 1);
    let ended = emulators(std::process::id());
    signal_emulator("-KILL");
    // The first thread may be a zombie before the others have ended.
    let is_single = |id: u32| fs::read_dir(format!("/proc/{id}/task")).is_ok_and(|tasks| tasks.count() == 1);
    wait_until("the emulator ends", || ended.iter().all(|id| has_ended(*id) && is_single(*id)));
    flash_and_run(board, 2);
}

pub(crate) fn is_child() -> bool {
    std::env::var_os(HOLD_VARIABLE).is_some()
}

pub(crate) fn child() -> ExitCode {
    let wanted = std::env::var(HOLD_VARIABLE).unwrap();
    let [name, link, what] = wanted.split(' ').collect::<Vec<_>>()[..] else { panic!("{wanted}") };
    let link = if link == "Uart" { Link::Uart } else { Link::Debugger };
    let mut names = crate::BOARDS.into_iter().chain([crate::attached::SLOW]);
    let board = Board::open(names.find(|board| *board == name).unwrap(), link).unwrap();
    match what {
        "flash" => count_flashes(&board),
        "stop" => stop_emulator(&board),
        "end" => end_emulator(&board),
        "die" => kill_emulator(&board),
        "images" => crate::images::flash_twice(&board),
        _ => {
            flash_and_run(&board, 1);
            let mut output = std::io::stdout();
            output.write_all(b"ready").and_then(|()| output.flush()).unwrap();
            let _ = std::io::stdin().read(&mut [0]);
        }
    }
    ExitCode::SUCCESS
}
