//! Several processes: they run this test binary with the ignored test `child`, and `CHILD` says what it does.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::super::eviction;
use super::super::usage::Usage;
use super::*;

const CHILD: &str = "RUNTIME_CACHE_TEST_CHILD";
const FOLDER: &str = "RUNTIME_CACHE_TEST_FOLDER";
/// No test waits longer for a child.
const PATIENCE: Duration = Duration::from_secs(120);

/// The arguments of this binary as a child.
const CHILD_ARGUMENTS: [&str; 5] =
    ["--exact", "cache::tests::processes::child", "--ignored", "--nocapture", "--test-threads=1"];

/// Starts this binary as a child that does `what` with the cache in `folder`.
fn start(what: &str, folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(CHILD_ARGUMENTS);
    spawn(command, what, folder)
}

fn spawn(mut command: Command, what: &str, folder: &Path) -> Child {
    command.env(CHILD, what).env(FOLDER, folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
}

fn finish(mut child: Child) {
    let begin = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return assert!(status.success(), "{status}"),
            None if begin.elapsed() > PATIENCE => {
                child.kill().unwrap();
                panic!("a child hangs");
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

fn wait_for(path: &Path) {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < PATIENCE, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn append(path: &Path, text: &str) {
    std::fs::File::options()
        .append(true)
        .create(true)
        .open(path)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}

fn lines(path: &Path) -> usize {
    std::fs::read_to_string(path).unwrap_or_default().lines().count()
}

/// What a child does; the other tests start it.
#[test]
#[ignore = "a part of the other tests of this file, which start it"]
fn child() {
    let (Ok(what), Ok(folder)) = (std::env::var(CHILD), std::env::var(FOLDER)) else { return };
    let (folder, beside) = (PathBuf::from(&folder), PathBuf::from(format!("{folder}.log")));
    let options = CacheOptions { folder: Some(folder), ..CacheOptions::default() };
    match what.as_str() {
        "write forever" => write_forever(options),
        "want 8 keys" => {
            let cache = CodeCache::with_options(options);
            for number in 0..8 {
                let compile = || {
                    append(&beside, &format!("{number}\n"));
                    std::thread::sleep(Duration::from_millis(30));
                    Ok(code(number))
                };
                assert_eq!(*cache.get(&key(number), compile).unwrap().0, code(number));
            }
        }
        "hold" => {
            let hold = || {
                append(&beside, "held\n");
                std::thread::sleep(PATIENCE);
                Ok(code(1))
            };
            drop(CodeCache::with_options(options).get(&key(1), hold));
        }
        "hold and fork" => hold_and_fork(options, &beside),
        "fail to write" => fail_to_write(options, &beside),
        bounded => {
            let start: u32 = bounded.parse().unwrap();
            let cache = CodeCache::with_options(CacheOptions { max_entries: 50, ..options });
            for number in start..start + 60 {
                drop(cache.get(&key(number), || Ok(code(number))).unwrap());
            }
        }
    }
}

/// Forks while it compiles, and is killed. Its child lives on until it finds a file.
fn hold_and_fork(options: CacheOptions, log: &Path) {
    let cache = CodeCache::with_options(options);
    let compile = || {
        if fork() {
            append(log, "held\n");
            std::thread::sleep(PATIENCE);
            return Ok(code(1));
        }
        // Only this thread exists here; the key is in flight, and its lock is the parent's.
        let outcomes = [1, 2].map(|number| cache.get(&key(number), || Ok(code(number))).unwrap().1);
        append(log, if outcomes == [CacheOutcome::Uncached; 2] { "forked\n" } else { "wrong outcome\n" });
        let (begin, end) = (Instant::now(), log.with_extension("end"));
        while !end.exists() && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        append(log, "ended\n");
        exit_now()
    };
    drop(cache.get(&key(1), compile));
}

#[expect(unsafe_code, reason = "the behaviour after a fork is what is tested")]
fn fork() -> bool {
    // SAFETY: the child runs only on the thread that forked; the C library prepares its allocator for that.
    unsafe { libc::fork() != 0 }
}

#[expect(unsafe_code, reason = "a forked child must not run the exit handlers of its parent")]
fn exit_now() -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) }
}

/// Stores files that are too large, and expects that code is only used from then on.
fn fail_to_write(options: CacheOptions, log: &Path) {
    let cache = CodeCache::with_options(options);
    let large = |number| CachedCode { code: vec![7; 40_000], ..code(number) };
    let outcomes: Vec<_> = (0..20)
        .map(|number| {
            let (found, outcome) = cache.get(&key(number), || Ok(large(number))).unwrap();
            assert_eq!(*found, large(number));
            append(log, &format!("{outcome:?}\n"));
            outcome
        })
        .collect();
    assert!(outcomes.contains(&CacheOutcome::Uncached));
    assert!(cache.verify().unwrap().damaged.is_empty());
}

/// Writes, replaces and removes entries until it is killed.
fn write_forever(options: CacheOptions) {
    let mut options = CacheOptions { max_entries: 40, ..options };
    for round in 0_u32.. {
        options.recompile = round % 2 == 1;
        let cache = CodeCache::with_options(options.clone());
        for number in 0..60 {
            drop(cache.get(&key(number), || Ok(code(number))).unwrap());
            if number % 7 == 0 {
                cache.remove(&key(number));
            }
        }
    }
}

/// All entries are intact and right, nothing else is left, and the cache works.
fn check_intact(fixture: &Fixture) {
    let cache = fixture.cache();
    let report = cache.verify().unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    let own = ["lock", "usage"].map(|name| fixture.path().join(name));
    let others = files_below(fixture.path()).into_iter().filter(|file| !own.contains(file)).count();
    assert_eq!(others as u64, report.intact.entries, "nothing but entries is left");
    if let Some(usage) = Usage::read(fixture.path()) {
        assert!(usage.entries >= report.intact.entries, "{usage:?} but {:?}", report.intact);
    }
}

#[test]
fn writers_that_are_killed_leave_only_whole_entries() {
    const KILLS: u64 = 500;
    let fixture = Fixture::new();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for kill in 0..KILLS {
        let mut child = start("write forever", fixture.path());
        if kill == 0 {
            wait_for(&fixture.path().join("usage"));
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_micros((random >> 33) % 30_000));
        child.kill().unwrap();
        child.wait().unwrap();
        if kill % 10 == 9 {
            check_intact(&fixture);
        }
    }
    let before = fixture.compiled();
    for number in 0..60 {
        fixture.get(&fixture.cache(), number);
    }
    assert!(fixture.compiled() > before);
    assert!(eviction::scan(fixture.path(), false).len() > 10, "the children wrote something");
}

#[test]
fn of_32_processes_one_compiles_each_key() {
    let fixture = Fixture::new();
    let children: Vec<_> = (0..32).map(|_| start("want 8 keys", fixture.path())).collect();
    children.into_iter().for_each(finish);
    let log = PathBuf::from(format!("{}.log", fixture.path().display()));
    let compiled = lines(&log);
    std::fs::remove_file(log).unwrap();
    assert_eq!(compiled, 8);
    check_intact(&fixture);
}

#[test]
fn bounds_hold_for_several_writers() {
    let fixture = Fixture::new();
    let children: Vec<_> = (0..8).map(|at| start(&(at * 40).to_string(), fixture.path())).collect();
    children.into_iter().for_each(finish);
    let usage = fixture.cache().usage().unwrap();
    assert!((45..=50).contains(&usage.entries), "{usage:?}");
    assert_eq!(CacheUsage::from(Usage::read(fixture.path()).unwrap()), usage);
    check_intact(&fixture);
}

/// Starts a child that holds the lock of a key. Returns it and its log.
fn start_holder(fixture: &Fixture) -> (Child, PathBuf) {
    let child = start("hold", fixture.path());
    let log = PathBuf::from(format!("{}.log", fixture.path().display()));
    wait_for(&log);
    (child, log)
}

#[test]
fn a_killed_process_holds_no_lock() {
    let fixture = Fixture::new();
    let (mut child, log) = start_holder(&fixture);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| fixture.get(&fixture.cache(), 1));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished(), "it waits for the child");
        child.kill().unwrap();
        child.wait().unwrap();
        let begin = Instant::now();
        assert_eq!(waiting.join().unwrap(), CacheOutcome::Miss);
        assert!(begin.elapsed() < Duration::from_secs(30), "and not for the deadline");
    });
    std::fs::remove_file(log).unwrap();
}

#[test]
fn a_stopped_process_is_not_waited_for() {
    let fixture = Fixture::new();
    let (mut child, log) = start_holder(&fixture);
    let signal = |name: &str| {
        let status = Command::new("kill").args([name, &child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()));
    };
    signal("-STOP");
    let timeout = Duration::from_millis(100);
    let cache = CodeCache::with_options(CacheOptions { lock_timeout: timeout, ..fixture.options() });
    let begin = Instant::now();
    assert_eq!(fixture.get(&cache, 2), CacheOutcome::Miss, "another key is free");
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Miss);
    assert!(begin.elapsed() >= timeout);
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Hit);
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(log).unwrap();
}

#[test]
fn a_forked_child_holds_no_lock_and_waits_for_none() {
    let fixture = Fixture::new();
    let mut parent = start("hold and fork", fixture.path());
    let log = PathBuf::from(format!("{}.log", fixture.path().display()));
    let begin = Instant::now();
    while lines(&log) < 2 {
        assert!(begin.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(1));
    }
    parent.kill().unwrap();
    parent.wait().unwrap();
    let begin = Instant::now();
    assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Miss);
    assert!(begin.elapsed() < Duration::from_secs(30), "the lock went with the parent");
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("forked") && !text.contains("ended"), "the child lives: {text}");
    std::fs::write(log.with_extension("end"), "").unwrap();
    while lines(&log) < 3 {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::fs::remove_file(log.with_extension("end")).unwrap();
    std::fs::remove_file(log).unwrap();
}

/// The outcomes that a child logged.
fn outcomes(folder: &Path) -> String {
    let log = PathBuf::from(format!("{}.log", folder.display()));
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(log).unwrap();
    text
}

#[test]
fn a_file_that_cannot_be_written_completely_leaves_nothing() {
    let fixture = Fixture::new();
    let mut command = Command::new("sh");
    // The entries have 40 KB; a file of the shell's unit, 512 or 1024 bytes, is enough for the others.
    command.args(["-c", "trap '' XFSZ; ulimit -f 20; exec \"$0\" \"$@\""]);
    command.arg(std::env::current_exe().unwrap()).args(CHILD_ARGUMENTS);
    finish(spawn(command, "fail to write", fixture.path()));
    assert_eq!(outcomes(fixture.path()), "Uncached\n".repeat(20));
    check_intact(&fixture);
    assert_eq!(fixture.cache().usage().unwrap().entries, 0);
    assert_eq!(
        [1, 1].map(|number| fixture.get(&fixture.cache(), number)),
        [CacheOutcome::Miss, CacheOutcome::Hit]
    );
}
