//! The offload library's shim against a fake SDK: the order of calls, the two addresses of memory, and the failure of every call at
//! every position. It proves our control flow; the real library has never been seen.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "calls the fake library, and runs kernels")]

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mppa::{FakeLibrary, FakeSdk};
use runtime_core::{ErrorKind, Result};
use runtime_mppa::Elf;
use runtime_mppa::config::Arch;
use runtime_mppa::offload::{Chip, Code, Command, LoadedModules, Memory, Module, Shim, Space};

const FIRMWARE: &str = "kalray/fw.elf";
const BOARD: u32 = 2;

/// The fake library, one for the process, as the real one is.
struct Fake {
    library: FakeLibrary,
    shim: Arc<Shim>,
    program: Vec<u8>,
    _sdk: FakeSdk,
}

impl Fake {
    fn program(&self) -> Elf {
        Elf::new(self.program.clone(), Arch::Kv32).unwrap()
    }
}

/// The fake, for one test at a time.
fn fake() -> (MutexGuard<'static, ()>, &'static Fake) {
    static FAKE: OnceLock<Fake> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    (turn, FAKE.get_or_init(build))
}

fn build() -> Fake {
    let sdk = FakeSdk::new(1);
    std::fs::create_dir(sdk.path().join("shim")).unwrap();
    // SAFETY: the fake is made of what the header declares.
    let shim = unsafe { Shim::build(sdk.path(), &sdk.path().join("shim")) }.unwrap();
    let library = FakeLibrary::of(sdk.path());
    Fake { library, shim, program: sdk.program(), _sdk: sdk }
}

/// The arguments of the fake's kernel `twice`: an address and a size.
fn arguments(memory: &Memory, bytes: u64) -> Vec<u8> {
    [memory.kernel_address().to_ne_bytes(), bytes.to_ne_bytes()].concat()
}

/// Doubles bytes in the chip's memory and in a cluster's, on every cluster.
fn use_everything(fake: &Fake) -> Result<Vec<u8>> {
    let chip = Chip::of_board(&fake.shim, BOARD, FIRMWARE)?;
    let shared = Memory::allocate(&chip, Space::Chip, 4)?;
    let local = Memory::allocate(&chip, Space::Cluster(3), 4)?;
    let module = Module::load(&chip, &fake.program())?;
    let twice = module.symbol("twice")?;
    let mut command = Command::new(&chip);
    shared.write(0, vec![1, 2, 3, 4])?;
    local.write(1, vec![5, 6, 7])?;
    for cluster in 0..5u32 {
        let memory = if cluster == 3 { &local } else { &shared };
        // SAFETY: the fake's kernel takes an address and a size.
        unsafe { command.run(twice, &arguments(memory, 4), cluster) }?;
    }
    Ok([shared.read(0, vec![0; 3])?, local.read(1, vec![0; 3])?].concat())
}

#[test]
fn everything_is_called_in_order_and_with_the_right_addresses() {
    let (_turn, fake) = fake();
    fake.library.reset(0);
    assert_eq!(use_everything(fake).unwrap(), [16, 32, 48, 10, 12, 14]);
    let log = fake.library.log();
    assert!(!log.contains("WRONG"), "{log}");
    assert_eq!(fake.library.number("fake_live"), 0, "everything was destroyed: {log}");
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines[..2], ["create 2 kalray/fw.elf", "get_accelerator"]);
    assert_eq!(lines[2..7], ["get_sysqueue"; 5]);
    // Two blocks, and a module with memory of its own while it is loaded.
    assert_eq!(lines[7..13], ["alloc", "alloc", "alloc", "load", "free", "symbol"]);
    // The command and its arguments are one block, which later launches use again.
    let commands = ["write", "write", "alloc", "write", "exec 0", "write", "exec 1", "write", "exec 2"];
    assert_eq!(lines[13..22], commands);
    assert_eq!(lines[lines.len() - 5..], ["free", "unload", "free", "free", "destroy"]);
}

#[test]
fn every_call_may_fail_at_every_position() {
    let (_turn, fake) = fake();
    fake.library.reset(0);
    use_everything(fake).unwrap();
    let names: Vec<_> = fake.library.log().lines().map(str::to_owned).collect();
    for (position, name) in (1..).zip(&names) {
        fake.library.reset(position);
        let outcome = use_everything(fake);
        let log = fake.library.log();
        assert!(!log.contains("WRONG"), "{name} in call {position}: {log}");
        assert_eq!(fake.library.number("fake_live"), 0, "{name} in call {position}: {log}");
        // The results of calls that release something are not waited for.
        let releases = ["free", "unload", "destroy"].contains(&name.as_str());
        assert_eq!(outcome.is_ok(), releases, "{name} in call {position}");
        if let Err(error) = outcome {
            let kind = match name.split(' ').next().unwrap() {
                "alloc" => ErrorKind::OutOfMemory,
                "symbol" => ErrorKind::NotFound,
                "exec" => ErrorKind::Failed,
                _ => ErrorKind::Driver,
            };
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
    fake.library.reset(0);
    assert!(use_everything(fake).is_ok(), "the chip still works");
}

/// The ancestor asserted that no eleventh module is loaded.
#[test]
fn the_eleventh_module_replaces_the_least_recently_used() {
    let (_turn, fake) = fake();
    fake.library.reset(0);
    let chip = Chip::of_board(&fake.shim, BOARD, FIRMWARE).unwrap();
    let data = Memory::allocate(&chip, Space::Chip, 1).unwrap();
    let modules = LoadedModules::new(&chip);
    let mut command = Command::new(&chip);
    // SAFETY: the fake's kernel takes an address and a size.
    let mut run =
        |module| unsafe { modules.execute((module, "twice"), [0], &mut command, &arguments(&data, 1)) };
    let mut expect = |module: usize, loads: &[&str]| {
        fake.library.reset(0);
        data.write(0, vec![21]).unwrap();
        run(module).unwrap();
        let result = data.read(0, vec![0]).unwrap();
        let log = fake.library.log();
        let given: Vec<_> = log.lines().filter(|line| ["load", "unload"].contains(line)).collect();
        assert_eq!((&result[..], &given[..]), (&[42][..], loads), "module {module}: {log}");
        assert!(!log.contains("WRONG"), "{log}");
    };
    for number in 0..11 {
        assert_eq!(modules.add(Code::Elf(fake.program())).unwrap(), number);
    }
    (0..10).for_each(|module| expect(module, &["load"]));
    (0..10).for_each(|module| expect(module, &[]));
    expect(0, &[]);
    expect(10, &["unload", "load"]);
    expect(0, &[]);
    expect(1, &["unload", "load"]);
    assert!(run(11).unwrap_err().message().contains("no module 11: 11 were added"));
    fake.library.reset(0);
    modules.remove(1);
    assert_eq!(fake.library.log(), "unload\n");
    assert!(run(1).is_err());
    drop((modules, command, data, chip));
    assert_eq!(fake.library.number("fake_live"), 0);
}

/// A module that cannot be loaded takes no other's place for good.
#[test]
fn a_module_that_fails_to_load_can_be_loaded_later() {
    let (_turn, fake) = fake();
    fake.library.reset(0);
    let chip = Chip::of_board(&fake.shim, BOARD, FIRMWARE).unwrap();
    let modules = LoadedModules::new(&chip);
    modules.add(Code::Elf(fake.program())).unwrap();
    let mut command = Command::new(&chip);
    // SAFETY: the fake's kernel takes nothing.
    let mut run = || unsafe { modules.execute((0, "noop"), [0], &mut command, &[]) };
    // Memory for the code, and the load.
    for call in [1, 2] {
        fake.library.reset(call);
        assert!(run().is_err());
    }
    fake.library.reset(0);
    run().unwrap();
    assert!(!fake.library.log().contains("WRONG"), "{}", fake.library.log());
}

#[test]
fn wrong_arguments_do_not_reach_the_library() {
    let (_turn, fake) = fake();
    fake.library.reset(0);
    let chip = Chip::of_board(&fake.shim, BOARD, FIRMWARE).unwrap();
    let memory = Memory::allocate(&chip, Space::Chip, 4).unwrap();
    let before = fake.library.number("fake_calls");
    assert_eq!(memory.write(1, vec![0; 4]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(memory.read(u64::MAX, vec![0]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let error = Memory::allocate(&chip, Space::Cluster(5), 4).unwrap_err();
    assert!(error.message().contains("valid: 0 to 4"), "{error}");
    let error = Elf::new(fake.program.clone(), Arch::Kv31).unwrap_err();
    assert!(error.message().contains("for kv3-2, the device is kv3-1"), "{error}");
    assert!(Chip::of_board(&fake.shim, BOARD, "a\0b").is_err());
    assert_eq!(fake.library.number("fake_calls"), before);
}

/// Neither waits for the kernel: it holds the chip until this test lets it end.
#[test]
fn memory_and_modules_are_dropped_while_a_kernel_runs() {
    let (_turn, fake) = fake();
    fake.library.reset(0);
    let chip = Chip::of_board(&fake.shim, BOARD, FIRMWARE).unwrap();
    let (flag, other) = [4, 8].map(|bytes| Memory::allocate(&chip, Space::Chip, bytes).unwrap()).into();
    flag.write(0, vec![0; 4]).unwrap();
    let modules = LoadedModules::new(&chip);
    (0..2).for_each(|number| assert_eq!(modules.add(Code::Elf(fake.program())).unwrap(), number));
    modules.prepare(1).unwrap();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let mut command = Command::new(&chip);
            // SAFETY: the fake's kernel takes the address of a number.
            unsafe { modules.execute((0, "hold"), [0], &mut command, &flag.kernel_address().to_ne_bytes()) }
        });
        assert!(mppa::becomes(|| fake.library.log().contains("exec 0")));
        modules.remove(1);
        drop(other);
        let log = fake.library.log();
        assert!(log.ends_with("exec 0\n"), "they waited for the kernel: {log}");
        let number =
            std::ptr::with_exposed_provenance_mut::<i32>(usize::try_from(flag.kernel_address()).unwrap());
        // SAFETY: the fake's memory is this process's, and the kernel only reads the number.
        unsafe { number.write_volatile(1) };
        run.join().unwrap().unwrap();
    });
    drop((modules, flag, chip));
    assert_eq!(fake.library.number("fake_live"), 0, "{}", fake.library.log());
    assert!(!fake.library.log().contains("WRONG"), "{}", fake.library.log());
}

/// Addresses that no block has, or no function.
#[test]
fn addresses_that_cannot_be_right_are_refused() {
    const NONE: u64 = u64::MAX;
    let (_turn, fake) = fake();
    fake.library.reset(0);
    let chip = Chip::of_board(&fake.shim, BOARD, FIRMWARE).unwrap();
    let module = Module::load(&chip, &fake.program()).unwrap();
    for (virt, phys) in [(0, NONE), (65, NONE), (NONE - 63, NONE), (NONE, NONE - 2)] {
        fake.library.set_addresses(virt, phys);
        let error = Memory::allocate(&chip, Space::Chip, 100).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Driver && error.message().contains("no block of memory"),
            "{error}"
        );
    }
    fake.library.set_addresses(0, NONE);
    assert_eq!(module.symbol("twice").unwrap_err().kind(), ErrorKind::NotFound);
    fake.library.set_addresses(NONE, NONE);
    assert!(module.symbol("twice").is_ok());
    assert!(!fake.library.log().contains("WRONG"), "{}", fake.library.log());
    // Those blocks are not freed, and the next test counts what is alive.
    fake.library.forget_blocks();
}

#[test]
fn an_sdk_that_is_missing_or_different_says_so() {
    let folder = tempfile::tempdir().unwrap();
    // SAFETY: nothing is loaded, here and below.
    let build = || unsafe { Shim::build(folder.path(), folder.path()) };
    let error = build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("mppa_offload_host.h"), "{error}");
    std::fs::create_dir(folder.path().join("include")).unwrap();
    std::fs::write(folder.path().join("include/mppa_offload_host.h"), "").unwrap();
    let error = build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CompileFailed);
    assert!(error.message().contains("mppa_offload_host_context_t"), "the compiler's output: {error}");
}
