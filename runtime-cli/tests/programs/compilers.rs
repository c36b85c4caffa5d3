//! C compilers that print without end, and that hang.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::lures::write_program;

type Case = (&'static str, fn());

/// The first must be first: it looks at the largest child so far.
pub(crate) const CASES: &[Case] = &[
    ("a_compiler_that_prints_300_mb_leaves_the_command_small", prints),
    ("a_compiler_ends_with_a_command_that_is_killed", || ends_with_the_command("-KILL")),
    // Not SIGINT: shells ignore it for background jobs, and children inherit that. The command treats both alike.
    ("a_compiler_ends_with_a_command_that_is_terminated", || ends_with_the_command("-TERM")),
];

const DEADLINE: Duration = Duration::from_secs(60);
/// The command needs some 20 MB.
const MAX_KIB: i64 = 100 << 10;

/// The command that compiles C with a shell script.
fn compile(folder: &Path, script: &str) -> Command {
    std::fs::write(folder.join("k.c"), "void f(void) {}").unwrap();
    write_program(&folder.join("cc"), script);
    let runtime = Path::new(env!("CARGO_BIN_EXE_runtime"));
    let mut command = Command::new(runtime);
    command.args(["compile", "k.c", "--target", "host:native", "-o", "k.rtpkg"]).current_dir(folder);
    command
        .env("CC", folder.join("cc"))
        .env("RUNTIME_BACKENDS", runtime.with_file_name("libruntime_host.so"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn prints() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo first; head -c 300000000 /dev/zero | tr '\\0' x\n\
                  echo; echo 'k.c:1: error: wrong' >&2; exit 1";
    let output = compile(folder.path(), script).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{} bytes", text.len());
    for words in ["first\nxxx", "bytes are left out", "xxx\n", "k.c:1: error: wrong"] {
        assert!(text.contains(words), "{words}, in {} bytes", text.len());
    }
    assert!(text.len() < 3 << 20, "{} bytes", text.len());
    let used = largest_child_kib();
    assert!(used < MAX_KIB, "{used} KiB");
}

/// The most memory of a child of this process that has ended, or of one of its own.
#[allow(unsafe_code, reason = "asks the system")]
fn largest_child_kib() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is writable.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) }, 0);
    // SAFETY: a structure of integers, which was zeroed.
    unsafe { usage.assume_init() }.ru_maxrss
}

/// Neither the compiler, nor a process whose parent has ended, outlives the command.
fn ends_with_the_command(signal: &str) {
    let folder = tempfile::tempdir().unwrap();
    let script = "cd \"$(dirname \"$0\")\"; (sleep 1000 & echo $! > orphan.new)\n\
                  mv orphan.new orphan; echo $$ > id.new; mv id.new id; sleep 1000";
    let mut command = compile(folder.path(), script).spawn().unwrap();
    let ids = ["id", "orphan"].map(|name| {
        poll("the compiler has not started", || {
            let id = std::fs::read_to_string(folder.path().join(name)).ok();
            let ended = command.try_wait().unwrap();
            assert!(id.is_some() || ended.is_none(), "{ended:?}");
            id
        })
    });
    let sent = Command::new("kill").args([signal, &command.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let status = poll(&format!("{signal}: the command goes on"), || command.try_wait().unwrap());
    assert!(!status.success());
    for id in ids {
        poll(&format!("{signal}: process {id} is left"), || (!is_running(id.trim())).then_some(()));
    }
}

/// Waits for a value.
fn poll<T>(failure: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(started.elapsed() < DEADLINE, "{failure}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether there is a process of this number, and no zombie.
fn is_running(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}
