//! Boards without an emulator of their own. QEMU stands in for them: its stub for the server of a debug probe, its serial port for
//! that of a board. Board files of the test describe them.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use runtime_core::{Arg, ErrorKind, HostArray, Result, Tensor};

use crate::refusals::{ENTRY, elf, prebuilt};
use crate::{Board, CODE, DEADLINE, Link, lifetime, wait_until};

/// The emulated board that stands in for the others.
const STAND_IN: &str = "riscv64-virt";
/// A board whose compiler does not end.
pub(crate) const SLOW: &str = "slow";
const MACHINE: [&str; 9] =
    ["-machine", "virt", "-m", "16M", "-bios", "none", "-display", "none", "-no-user-config"];

/// A folder with board files and what they refer to.
pub(crate) struct Bench {
    folder: Arc<tempfile::TempDir>,
    /// Ports of the servers.
    ports: [u16; 2],
}

impl Bench {
    /// Writes the board files, before the first board is opened.
    pub(crate) fn new() -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let ports = free_ports();
        let bench = Self { folder, ports };
        let machine = MACHINE.map(|word| format!("\"{word}\"")).join(", ");
        let gdb = format!("\"-serial\", \"none\", \"-gdb\", \"tcp:127.0.0.1:{}\"", ports[0]);
        bench.describe(
            "served",
            &format!(
                "[server]\naddress = \"127.0.0.1:{}\"\nreset = \"stop\"\n\
                 command = [\"qemu-system-riscv64\", {machine}, {gdb}]",
                ports[0]
            ),
        );
        bench.describe("attached", &format!("[server]\naddress = \"127.0.0.1:{}\"", ports[1]));
        // A slow line has long deadlines, which a busy machine needs.
        let uart = |port: &str, rest: &str| {
            format!(
                "[uart]\ndriver = \"ns16550\"\naddress = 0x1000_0000\nport = \"{port}\"\nbaud = 4800\n{rest}"
            )
        };
        let socket = bench.path("line").display().to_string();
        bench.describe("line", &uart(&format!("unix:{socket}"), ""));
        let pipe = bench.path("pipe").display().to_string();
        let script = bench.script();
        let commands = format!(
            "flash = [\"sh\", \"{script}\", \"{{elf}}\"]\nreset = [\"sh\", \"{script}\", \"{{elf}}\"]"
        );
        bench.describe("piped", &uart(&format!("pipe:{pipe}"), &commands));
        bench.describe_driven();
        bench.describe_unprotected();
        bench.describe_slow();
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var("RUNTIME_EMBEDDED_BOARDS", bench.folder.path()) };
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn describe(&self, name: &str, tables: &str) {
        let source = include_str!("../../src/boards/riscv64-virt.toml").replace(STAND_IN, name);
        let (common, _) = source.split_once("[uart]").unwrap();
        let link = if tables.starts_with("[uart]") { "uart" } else { "debugger" };
        let text = format!("link = \"{link}\"\n{common}\n{tables}\n");
        std::fs::write(self.path(&format!("{name}.toml")), text).unwrap();
    }

    /// The emulated board with a driver of its own, which includes a header of a folder in the board's flags.
    fn describe_driven(&self) {
        let driver = include_str!("../../firmware/uart_ns16550.c");
        std::fs::write(self.path("own.c"), format!("#include \"own.h\"\n{driver}")).unwrap();
        std::fs::write(self.path("own.h"), "").unwrap();
        let text = include_str!("../../src/boards/riscv64-virt.toml")
            .replace(STAND_IN, "driven")
            .replace("\"ns16550\"", "\"own.c\"")
            .replace("flags = [", &format!("flags = [\"-I{}\", ", self.folder.path().display()));
        std::fs::write(self.path("driven.toml"), text).unwrap();
    }

    /// The emulated board without physical memory protection.
    fn describe_unprotected(&self) {
        let text = include_str!("../../src/boards/riscv64-virt.toml")
            .replace(STAND_IN, "unprotected")
            .replace("\"rv64\"", "\"rv64,pmp=false\"");
        std::fs::write(self.path("unprotected.toml"), text).unwrap();
    }

    /// A board whose compiler does not end.
    fn describe_slow(&self) {
        let compiler = self.path("slow-gcc");
        let id = self.path("compiler").display().to_string();
        std::fs::write(
            &compiler,
            format!("#!/bin/sh\necho $$ > {id}.new; mv {id}.new {id}; exec sleep 1000\n"),
        )
        .unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&compiler, mode).unwrap();
        let prefix = self.path("slow-").display().to_string();
        let text = include_str!("../../src/boards/riscv64-virt.toml")
            .replace(STAND_IN, SLOW)
            .replace("riscv64-unknown-elf-\"", &format!("{prefix}\""));
        std::fs::write(self.path("slow.toml"), text).unwrap();
    }

    /// A script that flashes an image: it starts an emulator, in place of the last one, at the ends of the pipes, which it can
    /// lock, as tools for serial ports do.
    fn script(&self) -> String {
        let (pipe, id, path) = (self.path("pipe"), self.path("id"), self.path("flash.sh"));
        for end in ["in", "out"] {
            let made = Command::new("mkfifo").arg(pipe.with_extension(end)).status().unwrap();
            assert!(made.success());
        }
        let text = format!(
            "flock -n {pipe}.in true && flock -n {pipe}.out true || exit 1\n\
             [ ! -e {id} ] || {{ kill -9 $(cat {id}); rm {id}; }}\n\
             qemu-system-riscv64 {machine} -monitor none -serial pipe:{pipe} -pidfile {id} -daemonize -kernel $1\n",
            machine = MACHINE.join(" "),
            id = id.display(),
            pipe = pipe.display()
        );
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

/// Two ports where nothing listens. Linux gives none of this range to programs that ask for any port, so they stay free.
fn free_ports() -> [u16; 2] {
    let first = 20_000 + u16::try_from(std::process::id() % 5000).unwrap() * 2;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let mut free = (first..32_000).chain(20_000..first).filter(is_free);
    [(); 2].map(|()| free.next().unwrap())
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Ok(id) = std::fs::read_to_string(self.path("id")) {
            let _ = Command::new("kill").args(["-9", id.trim()]).status();
        }
    }
}

/// A QEMU that a test has started.
struct Machine(Child);

impl Machine {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new("qemu-system-riscv64");
        command.args(MACHINE).args(["-monitor", "none"]).args(arguments);
        Self(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn signal(&self, signal: &str) {
        Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

pub(crate) fn trials(bench: &Bench) -> Vec<Trial> {
    if Board::open(STAND_IN, Link::Debugger).is_err_and(|error| error.kind() == ErrorKind::Unavailable) {
        return Vec::new();
    }
    let [served, attached] = bench.ports;
    let [folder, driven, slow] = [(); 3].map(|()| Arc::clone(&bench.folder));
    vec![
        Trial::test("served::a_server_is_started_and_replaced", move || {
            a_server_is_started_and_replaced(served);
            Ok(())
        }),
        Trial::test("attached::a_running_server_is_used", move || {
            a_running_server_is_used(attached);
            Ok(())
        }),
        Trial::test("line::a_board_that_runs_its_image_is_used", move || {
            a_board_that_runs_its_image_is_used(folder.path());
            Ok(())
        }),
        Trial::test("driven::a_changed_driver_is_compiled", move || {
            a_changed_driver_is_compiled(driven.path());
            Ok(())
        }),
        Trial::test("unprotected::a_processor_needs_no_memory_protection", || {
            a_processor_needs_no_memory_protection();
            Ok(())
        }),
        Trial::test("slow::a_killed_process_leaves_no_compiler", move || {
            a_killed_process_leaves_no_compiler(slow.path());
            Ok(())
        }),
        Trial::test("piped::a_board_is_flashed_and_reset_by_commands", || {
            a_board_is_flashed_and_reset_by_commands();
            Ok(())
        }),
    ]
}

fn number(board: &Board, value: i32) -> Tensor {
    board.embedded().tensor_from_array(HostArray::from_slice(&[1], &[value]).unwrap()).unwrap()
}

/// Adds two numbers on the target.
fn add(board: &Board, flash: impl FnOnce(&[Arg<'_>]) -> Result<()>) -> Result<i32> {
    let x = number(board, 40);
    flash(&[Arg::read_write(&x), Arg::scalar(2i32)])?;
    board.embedded().run(DEADLINE)?;
    Ok(board.embedded().read(0)?.as_slice::<i32>().unwrap()[0])
}

fn hang(board: &Board) {
    let x = number(board, 1);
    board.flash("void f(int *x) { while (*(volatile int *)x) {} }", &[Arg::read_write(&x)]).unwrap();
    let error = board.embedded().run(Duration::from_millis(300)).unwrap_err();
    assert!(error.kind() == ErrorKind::Timeout && error.to_string().contains("still running"), "{error}");
}

fn a_server_is_started_and_replaced(port: u16) {
    let board = Board::open("served", Link::Debugger).unwrap();
    let other = Machine::start(&["-serial", "none", "-gdb", &format!("tcp:127.0.0.1:{port}")]);
    wait_until("QEMU listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let error = add(&board, |args| board.flash(CODE, args)).unwrap_err();
    assert!(error.kind() == ErrorKind::Unavailable && error.to_string().contains("already"), "{error}");
    drop(other);
    assert_eq!(add(&board, |args| board.flash(CODE, args)).unwrap(), 42);
    hang(&board);
    assert_eq!(add(&board, |args| board.flash(CODE, args)).unwrap(), 42);
}

fn a_running_server_is_used(port: u16) {
    let board = Board::open("attached", Link::Debugger).unwrap();
    let error = add(&board, |args| board.flash(CODE, args)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unavailable && error.to_string().contains("server.command"),
        "{error}"
    );
    let gdb = format!("tcp:127.0.0.1:{port}");
    let machine = Machine::start(&["-serial", "none", "-gdb", &gdb]);
    let until = Instant::now() + DEADLINE;
    let result = loop {
        match add(&board, |args| board.flash(CODE, args)) {
            Err(error) if error.kind() == ErrorKind::Unavailable && Instant::now() < until => {}
            result => break result,
        }
    };
    assert_eq!(result.unwrap(), 42);
    hang(&board);
    assert_eq!(add(&board, |args| board.flash(CODE, args)).unwrap(), 42);
    drop(machine);
    let error = add(&board, |args| board.flash(CODE, args)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Unavailable), "{error}");
}

/// Whether a process listens on a Unix socket. It exists a moment earlier, and then refuses connections.
fn listens(socket: &Path) -> bool {
    const LISTENING: &str = "00010000";
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
    let path = socket.to_str().unwrap();
    sockets.lines().any(|line| line.ends_with(path) && line.split_whitespace().nth(3) == Some(LISTENING))
}

fn a_board_that_runs_its_image_is_used(folder: &Path) {
    let image = prebuilt(STAND_IN, ENTRY, Link::Uart);
    let (file, socket) = (folder.join("line.elf"), folder.join("line"));
    std::fs::write(&file, &image).unwrap();
    let serial = format!("unix:{},server=on,wait=off", socket.display());
    let machine = Machine::start(&["-serial", &serial, "-kernel", &file.display().to_string()]);
    wait_until("QEMU listens", || listens(&socket));
    let board = Board::open("line", Link::Uart).unwrap();
    let image = elf(image);
    assert_eq!(add(&board, |args| board.embedded().flash(&image, args)).unwrap(), 42);
    let error = add(&board, |args| board.flash(CODE, args)).unwrap_err();
    assert!(
        error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("runs another image"),
        "{error}"
    );
    assert_eq!(add(&board, |args| board.embedded().flash(&image, args)).unwrap(), 42);
    machine.signal("-STOP");
    let error = board.embedded().run(Duration::from_millis(100)).unwrap_err();
    assert!(error.kind() == ErrorKind::Timeout && error.to_string().contains("reset button"), "{error}");
    machine.signal("-CONT");
    assert_eq!(add(&board, |args| board.embedded().flash(&image, args)).unwrap(), 42);
}

fn a_board_is_flashed_and_reset_by_commands() {
    let board = Board::open("piped", Link::Uart).unwrap();
    assert_eq!(add(&board, |args| board.flash(CODE, args)).unwrap(), 42);
    hang(&board);
    assert_eq!(add(&board, |args| board.flash(CODE, args)).unwrap(), 42);
}

fn a_processor_needs_no_memory_protection() {
    let board = Board::open("unprotected", Link::Debugger).unwrap();
    assert_eq!(add(&board, |args| board.flash(CODE, args)).unwrap(), 42);
}

fn a_changed_driver_is_compiled(folder: &Path) {
    let board = Board::open("driven", Link::Uart).unwrap();
    assert_eq!(add(&board, |args| board.flash(CODE, args)).unwrap(), 42);
    for file in ["own.c", "own.h"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        std::fs::write(folder.join(file), format!("#error changed {file}\n{text}")).unwrap();
        let error = add(&board, |args| board.flash(CODE, args)).unwrap_err();
        assert!(
            error.kind() == ErrorKind::CompileFailed && error.to_string().contains("changed own"),
            "{error}"
        );
        // Another kernel, which has no image yet.
        let other = format!("/* {file} */ {CODE}");
        assert!(add(&board, |args| board.flash(&other, args)).is_err());
        std::fs::write(folder.join(file), text).unwrap();
        assert_eq!(add(&board, |args| board.flash(CODE, args)).unwrap(), 42);
    }
    // A kernel may include headers of these folders as well.
    let code = "#include <value.h>\nvoid f(int *x, int a) { x[0] += a + VALUE; }";
    for value in [1, 2] {
        std::fs::write(folder.join("value.h"), format!("#define VALUE {value}\n")).unwrap();
        assert_eq!(add(&board, |args| board.flash(code, args)).unwrap(), 42 + value);
    }
}

fn a_killed_process_leaves_no_compiler(folder: &Path) {
    let mut child = lifetime::command(&Board::open(SLOW, Link::Debugger).unwrap(), "wait").spawn().unwrap();
    let file = folder.join("compiler");
    wait_until("the compiler starts", || file.exists());
    let id = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    child.kill().and_then(|()| child.wait()).unwrap();
    wait_until("the compiler ends with its parent", || lifetime::has_ended(id));
}
