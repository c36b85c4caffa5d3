use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use super::*;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

fn command(folder: &Path, script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).current_dir(folder).env("FROM_US", "yes");
    command
}

fn shell(folder: &Path, script: &str) -> Process {
    Process::start(&mut command(folder, script), Stdio::null(), OUTPUT_BYTES).unwrap()
}

/// Whether a process that wrote its number to a file is there, and no zombie.
fn is_running(file: &Path) -> bool {
    let id = std::fs::read_to_string(file).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

fn ends(file: &Path) -> bool {
    let started = Instant::now();
    while is_running(file) && started.elapsed() < LONG {
        std::thread::sleep(MAX_POLL_INTERVAL);
    }
    !is_running(file)
}

#[test]
#[cfg_attr(miri, ignore = "needs processes")]
fn exit_code_and_output_are_captured() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = shell(folder.path(), "echo out $FROM_US; echo err >&2; exit 7");
    assert_eq!(process.wait(LONG).unwrap().code(), Some(7));
    assert_eq!(process.output(), "out yes\nerr");
    let error = process.failure(ErrorKind::Failed, "failed");
    assert!(error.message().starts_with("\"/bin/sh -c echo"), "{error}");
    let output = run_program(&mut command(folder.path(), "cat; echo a; echo b >&2"), LONG, 100).unwrap();
    assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"a\n"[..], &b"b\n"[..]), "its input is empty");
    assert!(output.is_whole && output.status.success() && output.text() == "a\nb");
}

#[test]
#[cfg_attr(miri, ignore = "needs processes")]
fn of_an_endless_output_the_beginning_and_the_end_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo begin; head -c 10000000 /dev/zero; echo end";
    let output = run_program(&mut command(folder.path(), script), LONG, 100).unwrap();
    let text = output.text();
    assert!(!output.is_whole && text.starts_with("begin\n") && text.ends_with("end"), "{text}");
    assert!(text.contains("9999910 bytes are left out") && text.len() < 200, "{text}");
    let mut endless = command(folder.path(), "yes | head -c 100000; echo ready; yes");
    let mut endless = Process::start(&mut endless, Stdio::null(), 100).unwrap();
    endless.wait_ready("ready", LONG).unwrap();
    let error = endless.wait(SHORT).unwrap_err();
    assert!(error.kind() == ErrorKind::Timeout && error.message().contains("left out"), "{error}");
}

#[test]
#[cfg_attr(miri, ignore = "needs processes")]
fn a_program_that_ignores_sigterm_is_killed_at_the_deadline_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "trap '' TERM; echo $$ > id; (sleep 1000 & echo $! > child); echo ready; while :; do sleep 1; done";
    let mut process = shell(folder.path(), script);
    process.wait_ready("ready", LONG).unwrap();
    let error = process.wait(SHORT).unwrap_err();
    assert!(error.kind() == ErrorKind::Timeout && error.message().contains("ready"), "{error}");
    assert!(ends(&folder.path().join("id")) && ends(&folder.path().join("child")));
}

#[test]
#[cfg_attr(miri, ignore = "needs processes")]
fn children_end_with_the_program_and_when_it_is_dropped() {
    for script in ["sleep 1000 & echo $! > id; echo ready", "sleep 1000 & echo $! > id; echo ready; wait"] {
        let folder = tempfile::tempdir().unwrap();
        let mut process = shell(folder.path(), script);
        process.wait_ready("ready", LONG).unwrap();
        drop(process);
        assert!(ends(&folder.path().join("id")), "{script}");
    }
}

/// As a process that is killed does: it closes its connection to the guard, and does nothing else.
#[test]
#[cfg_attr(miri, ignore = "needs processes")]
fn the_group_ends_with_the_process_that_has_started_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = shell(folder.path(), "sleep 1000 & echo $! > id; echo ready; wait");
    process.wait_ready("ready", LONG).unwrap();
    process.group.close_guard();
    assert!(ends(&folder.path().join("id")));
    assert!(!process.wait(LONG).unwrap().success());
}

#[test]
#[cfg_attr(miri, ignore = "needs processes")]
fn a_process_that_left_the_group_delays_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let script = "setsid sleep 1000 & echo $! > id; echo words";
    let output = run_program(&mut command(folder.path(), script), LONG, OUTPUT_BYTES).unwrap();
    assert_eq!(output.text(), "words");
    let id = std::fs::read_to_string(folder.path().join("id")).unwrap();
    assert!(Command::new("kill").arg(id.trim()).status().unwrap().success(), "it was still running");
    let error = run_program(&mut command(folder.path(), "exec setsid sleep 1000"), SHORT, 100).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "the program itself is ended wherever it is");
}

#[test]
#[cfg_attr(miri, ignore = "needs processes")]
fn a_program_that_does_not_get_ready_says_what_it_printed() {
    let folder = tempfile::tempdir().unwrap();
    let error = shell(folder.path(), "sleep 1000").wait_ready("ready", SHORT).unwrap_err();
    assert!(error.kind() == ErrorKind::Timeout && error.message().contains("printed nothing"), "{error}");
    let error = shell(folder.path(), "echo no licence; exit 3").wait_ready("ready", LONG).unwrap_err();
    assert!(error.kind() == ErrorKind::Failed && error.message().contains("no licence"), "{error}");
}

#[test]
#[cfg_attr(miri, ignore = "needs processes")]
#[allow(unsafe_code, reason = "takes the exit status of a child")]
fn a_status_that_was_taken_is_an_error_and_the_group_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = shell(folder.path(), "sleep 1000 & echo $! > id; echo last words; exit 3");
    let child = process.group.child.id().cast_signed();
    // SAFETY: a system call without memory. The child is ours.
    assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
    for _ in 0..2 {
        let error = process.wait(SHORT).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.message().contains("exit status"), "{error}");
        assert!(error.message().contains("last words"), "{error}");
    }
    drop(process);
    assert!(ends(&folder.path().join("id")));
}

#[test]
#[cfg_attr(miri, ignore = "needs processes")]
#[allow(unsafe_code, reason = "makes a descriptor that programs inherit")]
fn a_program_inherits_the_standard_streams_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("file")).unwrap();
    // SAFETY: a system call without pointers.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFD, 0) }, 0);
    // `ls` itself has the folder open.
    let mut list = Command::new("ls");
    let output = run_program(list.arg("/proc/self/fd"), LONG, OUTPUT_BYTES).unwrap();
    assert_eq!(output.text(), "0\n1\n2\n3");
}

#[test]
#[cfg_attr(miri, ignore = "needs processes")]
fn an_input_reaches_the_program_and_is_not_kept_open() {
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "echo hello >&0"]);
    let input = Stdio::from(std::os::fd::OwnedFd::from(theirs));
    let mut process = Process::start(&mut command, input, OUTPUT_BYTES).unwrap();
    assert!(process.wait(LONG).unwrap().success());
    let mut text = String::new();
    ours.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello\n");
}

#[test]
#[cfg_attr(miri, ignore = "needs processes")]
fn programs_are_found_by_name_and_by_path() {
    let folders = || ["relative", "/no/such/folder", "/bin"].map(PathBuf::from);
    assert_eq!(find_program("sh", folders()), Some(PathBuf::from("/bin/sh")));
    assert_eq!(find_program("/bin/sh", []), Some(PathBuf::from("/bin/sh")));
    assert!(find_in_path("sh").is_some_and(|path| path.ends_with("sh")));
    assert_eq!((find_program("no-such-tool", folders()), find_program("/etc/passwd", [])), (None, None));
    let error = run_program(&mut Command::new("/no/such/tool"), LONG, 1).unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.message().contains("/no/such/tool"), "{error}");
}
