//! Programs that try to leave their sandbox. Each is run without one first, where it must succeed: otherwise its failure would say
//! nothing about the sandbox.
//!
//! Ignored, with the reason, where the system lacks a part of the sandbox; `RUNTIME_REQUIRE=sandbox` makes that a failure.

#![allow(unsafe_code, clippy::unwrap_used, reason = "programs that attack the system")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "they tell the test how it went")]

mod attacks;

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime_core::backend::{
    Output, Sandbox, SandboxLimits, SandboxPart, SandboxPolicy, missing_sandbox_parts, run_program,
};

use attacks::{ATTACKS, Attack, OF_ROOT, leave_daemon};

/// Names the attack that a child process makes.
const ATTACK: &str = "SANDBOX_TEST_ATTACK";
/// The attack that leaves a process behind.
const DAEMON: &str = "daemon";
/// Names what a child process does on a system without user name spaces.
const LACKING: &str = "lacking";
/// No attack takes this long.
const DEADLINE: Duration = Duration::from_secs(120);
const OUTPUT_BYTES: usize = 1 << 16;
/// A user who owns files of a test, and is not looked up.
const OTHER_USER: u32 = 54_321;
/// What an attack exits with that has failed.
const REFUSED: i32 = 3;

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(ATTACK) {
        if name == LACKING {
            return lacking();
        }
        let attack = ATTACKS.iter().chain(OF_ROOT).find(|attack| attack.name == name);
        return match attack.map_or(leave_daemon as fn() -> _, |attack| attack.run)() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(REFUSED)
            }
        };
    }
    let missing = missing_sandbox_parts();
    let reason = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let reason = (!missing.is_empty()).then(|| format!("sandbox: {reason}"));
    let of_root = if user() == User::Ordinary { &[] } else { OF_ROOT };
    let attacks =
        ATTACKS.iter().chain(of_root).map(|attack| trial(attack.name, reason.as_deref(), || check(attack)));
    let whole = |check: fn() -> Result<(), Failed>| move || check().map(|()| Completion::Completed);
    let others = [
        trial("a_compiler_works_in_it", reason.as_deref(), whole(compiles)),
        trial("paths_may_lead_up_again", reason.as_deref(), whole(upwards)),
        trial("a_program_ends_as_it_would_without_it", reason.as_deref(), whole(endings)),
        trial("what_a_program_leaves_behind_ends_with_it", reason.as_deref(), whole(leftovers)),
        trial("what_the_system_lacks_is_told", reason.as_deref(), without_user_namespaces),
        trial("its_memory_holds_no_copy_of_the_parent", reason.as_deref(), clean_image),
        trial("the_superuser_works_below_another_users_folder", reason.as_deref(), below_another_users),
    ];
    libtest_mimic::run(&Arguments::from_args(), attacks.chain(others).collect()).exit_code()
}

/// Who runs the test.
#[derive(PartialEq, Eq)]
enum User {
    Ordinary,
    Superuser,
    /// The superuser of a container in which there is no other user, or who may not mount what other users cannot reach.
    Limited,
}

fn user() -> User {
    // SAFETY: only reads an ID.
    let is_superuser = unsafe { libc::geteuid() } == 0;
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let is_only_user = map.split_whitespace().last() == Some("1");
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or_default();
    let may_mount = u64::from_str_radix(capabilities.trim(), 16).is_ok_and(|bits| bits & 1 << 21 != 0);
    match is_superuser {
        false => User::Ordinary,
        true if is_only_user || !may_mount => User::Limited,
        true => User::Superuser,
    }
}

fn trial(
    name: &str,
    missing: Option<&str>,
    check: impl FnOnce() -> Result<Completion, Failed> + Send + 'static,
) -> Trial {
    let missing = missing.map(str::to_owned);
    Trial::ignorable_test(name, move || match missing {
        Some(reason) if test_process::required("sandbox") => Err(Failed::from(reason)),
        Some(reason) => Ok(Completion::ignored_with(reason)),
        None => check(),
    })
}

/// What attacks try to reach: folders, a process, servers, shared memory.
struct Target {
    folders: tempfile::TempDir,
    victim: Child,
    tcp: TcpListener,
    abstract_name: String,
    _unix: [UnixListener; 2],
    segment: libc::c_int,
}

impl Target {
    fn new() -> Self {
        let folders = tempfile::tempdir().unwrap();
        for name in ["outside", "readable", "writable"] {
            std::fs::create_dir(folders.path().join(name)).unwrap();
        }
        std::fs::write(folders.path().join("outside/secret"), "secret").unwrap();
        let private = folders.path().join("readable/private");
        std::fs::write(&private, "private").unwrap();
        std::fs::set_permissions(private, Permissions::from_mode(0o600)).unwrap();
        for name in ["", "readable", "writable"] {
            // For a program of another user.
            std::fs::set_permissions(folders.path().join(name), Permissions::from_mode(0o777)).unwrap();
        }
        let victim = Command::new("sleep").arg("1000").spawn().unwrap();
        let abstract_name = format!("runtime-sandbox-test-{}", victim.id());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let unix = UnixListener::bind_addr(&address).unwrap();
        let of_folder = UnixListener::bind(folders.path().join("readable/socket")).unwrap();
        // SAFETY: makes a segment, which is attached nowhere.
        let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, libc::IPC_CREAT | 0o600) };
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { folders, victim, tcp, abstract_name, _unix: [unix, of_folder], segment }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.folders.path().join(name)
    }

    /// This program, which makes an attack.
    fn command(&self, attack: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(ATTACK, attack).current_dir(self.folder("readable"));
        for name in ["outside", "readable", "writable"] {
            command.env(name, self.folder(name));
        }
        command.env("abstract", &self.abstract_name).env("victim", self.victim.id().to_string());
        command.env("port", self.tcp.local_addr().unwrap().port().to_string());
        command.env("segment", self.segment.to_string());
        command
    }

    fn sandbox(&self) -> Sandbox {
        let limits =
            SandboxLimits { memory_bytes: 256 << 20, file_bytes: 8 << 20, files: 64, processes: 100 };
        let program = std::env::current_exe().unwrap();
        let sandbox = Sandbox::new().read(program).read(self.folder("readable"));
        sandbox.write(self.folder("writable")).limits(limits)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        // SAFETY: the segment is this program's.
        unsafe { libc::shmctl(self.segment, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

fn confined(sandbox: &Sandbox, command: &mut Command) -> Output {
    sandbox.run(SandboxPolicy::Required, command, (DEADLINE, OUTPUT_BYTES)).unwrap()
}

/// An attack succeeds without the sandbox, and fails in it. Ignored if the machine is one of those that refuse it anyway.
fn check(attack: &Attack) -> Result<Completion, Failed> {
    if attack.is_for_users && user() == User::Limited {
        return Ok(Completion::ignored_with("the superuser of this container cannot become another user"));
    }
    let target = Target::new();
    let free = run_program(&mut target.command(attack.name), DEADLINE, OUTPUT_BYTES).unwrap();
    if !free.status.success() {
        let reason = format!("fails without a sandbox: {}: {}", free.status, free.text());
        return match attack.may_be_refused {
            true => Ok(Completion::ignored_with(reason)),
            false => Err(reason.into()),
        };
    }
    let mut target = Target::new();
    let mut sandbox = target.sandbox();
    if attack.is_for_users {
        sandbox = sandbox.give_up_root();
    }
    let output = confined(&sandbox, &mut target.command(attack.name));
    if output.status.code() != Some(REFUSED) {
        return Err(format!("not refused: {}: {}", output.status, output.text()).into());
    }
    let survives = target.victim.try_wait().unwrap().is_none();
    let secret = std::fs::read_to_string(target.folder("outside").join("secret")).unwrap();
    if !survives || secret != "secret" {
        return Err("it was refused, and has done it nevertheless".into());
    }
    Ok(Completion::Completed)
}

/// A compiler reads the headers of the system and of its folder, and writes its output.
fn compiles() -> Result<(), Failed> {
    let target = Target::new();
    std::fs::write(target.folder("readable").join("a.h"), "#define VALUE 7\n").unwrap();
    let text = "#include <stdio.h>\n#include <math.h>\n#include \"a.h\"\nint main(void) { printf(\"%d\\n\", VALUE); return sqrt(49) != VALUE; }\n";
    std::fs::write(target.folder("readable").join("a.c"), text).unwrap();
    let program = target.folder("writable").join("a");
    let mut command = Command::new("cc");
    command.current_dir(target.folder("readable")).env("TMPDIR", target.folder("writable"));
    command.args(["-O2", "a.c", "-lm", "-o"]).arg(&program);
    let sandbox = Sandbox::new().read(target.folder("readable")).write(target.folder("writable"));
    let output = confined(&sandbox, &mut command);
    if !output.status.success() {
        return Err(output.text().into());
    }
    let output = confined(&sandbox, Command::new(&program).current_dir(target.folder("writable")));
    if output.text() != "7" { Err(output.text().into()) } else { Ok(()) }
}

/// `beside/../given/text` is read, though nothing of `beside` is there; so is a working folder that is named like this.
fn upwards() -> Result<(), Failed> {
    let home = tempfile::tempdir().unwrap();
    for folder in ["given", "beside"] {
        std::fs::create_dir(home.path().join(folder)).unwrap();
        std::fs::write(home.path().join(folder).join("text"), folder).unwrap();
    }
    let given = home.path().join("beside/../given");
    let mut command = Command::new("cat");
    command
        .env("LC_ALL", "C")
        .arg("text")
        .arg(given.join("text"))
        .arg(home.path().join("beside/text"))
        .current_dir(&given);
    let text = confined(&Sandbox::new().read(&given), &mut command).text();
    match text.starts_with("givengiven") && text.ends_with("beside/text: No such file or directory") {
        true => Ok(()),
        false => Err(text.into()),
    }
}

/// Exit codes and signals are those of the program.
fn endings() -> Result<(), Failed> {
    let end = |script: &str| {
        let mut command = Command::new("/bin/sh");
        confined(&Sandbox::new(), command.args(["-c", script]).current_dir("/")).status
    };
    // It leads its process group, to which it may send signals: those that wait for it are in another one.
    let group = "kill -s 0 -- -$$ && exit 5";
    let ended = [end("exit 7"), end("kill -ABRT $$"), end("kill -KILL $$"), end("kill -TERM $$"), end(group)];
    let expected = [(Some(7), None), (None, Some(6)), (None, Some(9)), (None, Some(15)), (Some(5), None)];
    match ended.map(|status| (status.code(), status.signal())) == expected {
        true => Ok(()),
        false => Err(format!("{ended:?}").into()),
    }
}

/// A process in a session of its own holds a lock until it ends.
fn leftovers() -> Result<(), Failed> {
    let target = Target::new();
    let lock = target.folder("writable").join("lock");
    let is_held = || std::fs::File::open(&lock).unwrap().try_lock().is_err();
    let free = run_program(&mut target.command(DAEMON), DEADLINE, OUTPUT_BYTES).unwrap();
    let id: i32 = free.text().trim().parse().map_err(|_| free.text())?;
    let was_held = is_held();
    // SAFETY: a process that this test has started.
    unsafe { libc::kill(id, libc::SIGKILL) };
    if !was_held {
        return Err("without a sandbox it does not stay".into());
    }
    while is_held() {
        std::thread::yield_now();
    }
    let output = confined(&target.sandbox(), &mut target.command(DAEMON));
    match output.status.success() && !is_held() {
        true => Ok(()),
        false => Err(output.text().into()),
    }
}

/// In a name space whose users may make no others, as an administrator may decide.
/// Ignored where the superuser of a name space may not decide it, as in containers.
fn without_user_namespaces() -> Result<Completion, Failed> {
    let target = Target::new();
    let lacking = target.command(LACKING);
    let forbid = "echo 0 >/proc/sys/user/max_user_namespaces || exit 77; exec \"$0\"";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "sh", "-c", forbid]).arg(lacking.get_program()).current_dir("/");
    command.envs(lacking.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = run_program(&mut command, DEADLINE, OUTPUT_BYTES).unwrap();
    match output.status.code() {
        Some(0) => Ok(Completion::Completed),
        Some(77) => Ok(Completion::ignored_with(output.text())),
        _ => Err(output.text().into()),
    }
}

/// On a system without user name spaces: that is told and nothing else, a sandbox that must be whole starts nothing, and one that need
/// not be keeps to its files nevertheless. The user's other processes, which Linux counts with its own there, do not limit it.
fn lacking() -> ExitCode {
    let missing = missing_sandbox_parts();
    let told = matches!(&missing[..], [part] if part.part == Some(SandboxPart::UserNamespace)
        && part.remedy.contains("user.max_user_namespaces"));
    let secret = Path::new(&std::env::var_os("outside").unwrap()).join("secret");
    let run = |policy| {
        let mut command = Command::new("cat");
        Sandbox::new().run(policy, command.arg(&secret).current_dir("/"), (DEADLINE, OUTPUT_BYTES))
    };
    let processes = |policy| {
        let mut command = Command::new("cat");
        let command = command.arg("/proc/self/limits").current_dir("/");
        let output = Sandbox::new().read("/proc").run(policy, command, (DEADLINE, OUTPUT_BYTES)).unwrap();
        let text = output.text();
        text.lines().find(|line| line.starts_with("Max processes")).map(str::to_owned)
    };
    let all = processes(SandboxPolicy::Off);
    let counts = all.is_none() || processes(SandboxPolicy::BestEffort) != all;
    let refused = run(SandboxPolicy::Required);
    let refused = refused.is_err_and(|error| error.message().contains("user name spaces"));
    let kept = run(SandboxPolicy::BestEffort).is_ok_and(|output| !output.status.success());
    let free = run(SandboxPolicy::Off).is_ok_and(|output| output.status.success());
    if told && refused && kept && free && !counts {
        return ExitCode::SUCCESS;
    }
    eprintln!("told {told}, refused {refused}, kept {kept}, free {free}, counts {counts}: {missing:?}");
    ExitCode::from(1)
}

/// The first process in the sandbox, which is a copy of this one, cannot be looked into, nor be seen. Ignored where a program in a
/// sandbox has no `/proc`, as in a container that hides parts of its own.
fn clean_image() -> Result<Completion, Failed> {
    let target = Target::new();
    let mut shell = Command::new("/bin/sh");
    let files = ["$$/maps", "1/maps", "1/environ", "1/cmdline"];
    let script: String = files.iter().map(|file| format!("cat /proc/{file} | wc -c; ")).collect();
    let output = confined(&target.sandbox(), shell.args(["-c", &script]).current_dir(Path::new("/")));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<u32> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    match numbers[..] {
        [own, 0, 0, 0] if own > 3 => Ok(Completion::Completed),
        [0, 0, 0, 0] => Ok(Completion::ignored_with("the system does not let a sandbox mount /proc")),
        _ => Err(output.text().into()),
    }
}

/// The folder around the given one is closed to all but another user; the given one and its files are not. What the superuser's
/// program cannot open there, since it has no privileges, is told.
fn below_another_users() -> Result<Completion, Failed> {
    if user() != User::Superuser {
        return Ok(Completion::ignored_with("run as a superuser who may mount, where there are other users"));
    }
    let home = tempfile::tempdir().unwrap();
    let (spec, closed) = (home.path().join("spec"), home.path().join("closed"));
    for (folder, mode) in [(&spec, 0o755), (&closed, 0o700)] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("open"), "open\n").unwrap();
        std::fs::write(folder.join("private"), "private\n").unwrap();
        std::fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
        std::fs::set_permissions(folder.join("private"), Permissions::from_mode(0o600)).unwrap();
        for path in [folder.clone(), folder.join("open"), folder.join("private")] {
            std::os::unix::fs::chown(path, Some(OTHER_USER), None).unwrap();
        }
    }
    std::os::unix::fs::chown(home.path(), Some(OTHER_USER), None).unwrap();
    std::fs::set_permissions(home.path(), Permissions::from_mode(0o700)).unwrap();
    let print = |folder: &Path, file: &str| {
        let mut command = Command::new("cat");
        let sandbox = Sandbox::new().read(folder);
        sandbox.run(SandboxPolicy::Required, command.arg(file).current_dir(folder), (DEADLINE, OUTPUT_BYTES))
    };
    let open = print(&spec, "open")?;
    if open.text() != "open" {
        return Err(open.text().into());
    }
    let private = print(&spec, "private")?.text();
    let closed =
        print(&closed, "open").map_or_else(|error| error.message().to_owned(), |output| output.text());
    for text in [private, closed] {
        if !text.contains("superuser") {
            return Err(text.into());
        }
    }
    Ok(Completion::Completed)
}
