//! What programs do that are not meant well: each is `Ok` if it got what it wanted.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};

/// A program in a sandbox.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) run: fn() -> Result<(), String>,
    /// Whether it is refused to ordinary users only.
    pub(crate) is_for_users: bool,
    /// Whether some machines refuse it without a sandbox: by Yama, in containers, by `ulimit`.
    pub(crate) may_be_refused: bool,
}

const fn attack(name: &'static str, run: fn() -> Result<(), String>) -> Attack {
    Attack { name, run, is_for_users: false, may_be_refused: false }
}

const fn of_user(name: &'static str, run: fn() -> Result<(), String>) -> Attack {
    Attack { is_for_users: true, ..attack(name, run) }
}

impl Attack {
    const fn if_the_machine_allows_it(self) -> Self {
        Self { may_be_refused: true, ..self }
    }
}

pub(crate) const ATTACKS: &[Attack] = &[
    attack("reads_a_file_of_another_folder", || read(path("outside", "secret"))),
    attack("reads_it_by_a_symbolic_link", || {
        let link = path("writable", "link");
        let _ = fs::remove_file(&link);
        text(std::os::unix::fs::symlink(path("outside", "secret"), &link))?;
        read(link)
    }),
    attack("reads_it_through_another_process", || {
        let file = path("outside", "secret");
        read(PathBuf::from(format!("/proc/{}/root{}", number("victim"), file.display())))
    }),
    attack("reads_what_the_system_configures", || read(PathBuf::from("/etc/passwd"))),
    attack("writes_a_file_of_another_folder", || write(&path("outside", "secret"))),
    attack("writes_what_it_may_read", || write(&path("readable", "new"))),
    attack("writes_shared_memory", || write_new(Path::new("/dev/shm"))),
    attack("writes_temporary_files_of_all", || write_new(Path::new("/tmp"))),
    attack("connects_to_a_server", || {
        let port = u16::try_from(number("port")).map_err(|error| error.to_string())?;
        text(TcpStream::connect(("127.0.0.1", port)))
    }),
    attack("connects_to_an_abstract_socket", || {
        let address =
            SocketAddr::from_abstract_name(variable("abstract")).map_err(|error| error.to_string())?;
        text(UnixStream::connect_addr(&address))
    }),
    attack("connects_to_a_socket_that_it_may_read", || text(UnixStream::connect(path("readable", "socket")))),
    // SAFETY: no memory is passed.
    attack("signals_a_process", || called(unsafe { libc::kill(number("victim"), libc::SIGKILL) })),
    attack("sees_a_process", || text(fs::metadata(format!("/proc/{}/stat", number("victim"))))),
    attack("traces_a_process", || seize(number("victim"))).if_the_machine_allows_it(),
    attack("traces_its_own_child", || with_child(seize)).if_the_machine_allows_it(),
    attack("reads_the_memory_of_its_own_child", || with_child(read_memory)).if_the_machine_allows_it(),
    attack("attaches_memory_of_system_v", || {
        // SAFETY: the system chooses the address.
        let address = unsafe { libc::shmat(number("segment"), std::ptr::null(), libc::SHM_RDONLY) };
        called(if address.addr() == usize::MAX { -1 } else { 0 })
    }),
    attack("uses_io_uring", || {
        // SAFETY: without parameters the call fails.
        unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, std::ptr::null::<u8>()) };
        lacks_memory()
    })
    .if_the_machine_allows_it(),
    attack("makes_a_name_space", || {
        // SAFETY: a system call without pointers.
        called(unsafe { libc::unshare(libc::CLONE_NEWUSER) })
    }),
    attack("takes_much_memory", || {
        let mut memory: Vec<u8> = Vec::new();
        memory.try_reserve_exact(512 << 20).map_err(|error| error.to_string())?;
        memory.resize(512 << 20, 1);
        std::hint::black_box(&memory);
        Ok(())
    }),
    attack("writes_a_large_file", || {
        // SAFETY: ignores a signal, so that the write fails in its place.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        fill(&path("writable", "large"), 16 << 20)
    }),
    attack("fills_the_disk", || {
        // The scratch folder of a sandbox.
        let scratch = Path::new("/.scratch");
        let folder = if scratch.is_dir() { scratch.to_owned() } else { path("writable", "") };
        (0..60).try_for_each(|number| fill(&folder.join(number.to_string()), 5 << 20))
    }),
    attack("opens_many_files", || {
        let files: io::Result<Vec<fs::File>> = (0..200).map(|_| fs::File::open("/dev/null")).collect();
        text(files)
    }),
    of_user("starts_many_processes", || {
        let children: Vec<i32> = (0..300).map(|_| fork_asleep()).collect();
        let all = children.iter().filter(|child| **child > 0).try_for_each(|child| end(*child));
        all.and_then(|()| called(*children.iter().min().unwrap_or(&-1)))
    })
    .if_the_machine_allows_it(),
];

/// What the superuser's programs may do.
pub(crate) const OF_ROOT: &[Attack] = &[
    of_user("reads_what_only_the_user_may", || read(path("readable", "private"))),
    attack("changes_a_setting_of_the_system", || {
        let setting = "/proc/sys/vm/overcommit_ratio";
        let value = fs::read(setting).unwrap_or_else(|_| b"50".to_vec());
        text(fs::write(setting, value))
    })
    .if_the_machine_allows_it(),
    attack("writes_beside_the_systems_files", || write_new(Path::new("/usr/lib"))).if_the_machine_allows_it(),
    attack("makes_a_device", || {
        let file = std::ffi::CString::new(path("writable", "device").into_os_string().into_encoded_bytes());
        let file = file.map_err(|error| error.to_string())?;
        // SAFETY: the path is terminated and outlives the call.
        called(unsafe { libc::mknod(file.as_ptr(), libc::S_IFCHR | 0o600, libc::makedev(1, 3)) })
    })
    .if_the_machine_allows_it(),
    attack("mounts_a_file_system", || {
        let folder = std::ffi::CString::new(path("writable", "").into_os_string().into_encoded_bytes());
        let (kind, folder) = (c"tmpfs".as_ptr(), folder.map_err(|error| error.to_string())?);
        // SAFETY: the texts are terminated and outlive the call.
        called(unsafe { libc::mount(kind, folder.as_ptr(), kind, 0, std::ptr::null()) })?;
        // SAFETY: the text is terminated and outlives the call.
        called(unsafe { libc::umount(folder.as_ptr()) })
    })
    .if_the_machine_allows_it(),
    attack("sets_the_clock", || {
        let (clock, no_time) = (libc::CLOCK_REALTIME, std::ptr::null::<libc::timespec>());
        // SAFETY: without a time the call fails.
        unsafe { libc::syscall(libc::SYS_clock_settime, clock, no_time) };
        lacks_memory()
    })
    .if_the_machine_allows_it(),
];

/// Leaves a process behind, in a session of its own, which has locked a file; prints its number.
pub(crate) fn leave_daemon() -> Result<(), String> {
    let lock = fs::File::create(path("writable", "lock")).map_err(|error| error.to_string())?;
    text(lock.lock())?;
    let child = fork_asleep();
    // Until then it is in the group of this process, which is ended.
    // SAFETY: a system call without pointers.
    while child > 0 && unsafe { libc::getsid(child) } != child {
        std::thread::yield_now();
    }
    println!("{child}");
    called(child)
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap()
}

fn number(name: &str) -> i32 {
    variable(name).parse().unwrap()
}

fn path(folder: &str, name: &str) -> PathBuf {
    Path::new(&variable(folder)).join(name)
}

fn text<T, E: Display>(result: Result<T, E>) -> Result<(), String> {
    result.map(drop).map_err(|error| error.to_string())
}

fn called(result: libc::c_int) -> Result<(), String> {
    if result < 0 { Err(io::Error::last_os_error().to_string()) } else { Ok(()) }
}

/// Whether a system call has failed for the missing memory alone.
fn lacks_memory() -> Result<(), String> {
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EFAULT) { Ok(()) } else { Err(error.to_string()) }
}

fn read(file: PathBuf) -> Result<(), String> {
    text(fs::read(file))
}

fn write(file: &Path) -> Result<(), String> {
    text(fs::write(file, "overwritten"))
}

/// Writes a new file, and removes it.
fn write_new(folder: &Path) -> Result<(), String> {
    let file = folder.join(format!("runtime-sandbox-test-{}", number("victim")));
    let written = write(&file);
    let _ = fs::remove_file(file);
    written
}

fn fill(file: &Path, bytes: usize) -> Result<(), String> {
    text(fs::File::create(file).and_then(|mut file| file.write_all(&vec![1; bytes])))
}

/// A child that sleeps, in a session of its own; negative if there can be none.
fn fork_asleep() -> i32 {
    // SAFETY: this program has one thread, and the child makes system calls only.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a system call without pointers.
        unsafe { libc::setsid() };
        // SAFETY: closes what the parent's reader waits for.
        let _ = unsafe { libc::syscall(libc::SYS_close_range, 0, 2, 0) };
        // SAFETY: a call without pointers.
        unsafe { libc::sleep(1000) };
        // SAFETY: no code of this process runs afterwards.
        unsafe { libc::_exit(0) };
    }
    child
}

fn with_child(run: impl FnOnce(i32) -> Result<(), String>) -> Result<(), String> {
    let child = fork_asleep();
    called(child)?;
    let result = run(child);
    end(child).and(result)
}

fn end(child: i32) -> Result<(), String> {
    // SAFETY: signals a child.
    called(unsafe { libc::kill(child, libc::SIGKILL) })?;
    // SAFETY: no status is asked for.
    called(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) })
}

fn seize(process: i32) -> Result<(), String> {
    // SAFETY: no memory is passed.
    let result = unsafe { libc::ptrace(libc::PTRACE_SEIZE, process, 0, 0) };
    called(if result < 0 { -1 } else { 0 })
}

/// Reads a byte that every copy of this program has.
fn read_memory(process: i32) -> Result<(), String> {
    static VALUE: u8 = 7;
    let mut copy = 0_u8;
    let local = libc::iovec { iov_base: (&raw mut copy).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: (&raw const VALUE).cast_mut().cast(), iov_len: 1 };
    // SAFETY: one byte is written to a local variable.
    let result = unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
    called(if result < 0 { -1 } else { 0 })
}
