//! A code cache on a disk that is full or read-only: code is compiled and runs, what fits is kept, and one warning says why the rest is
//! not.
//!
//! Each case mounts a disk in a name space of its own. Ignored, with the reason, where the system does not allow that;
//! `RUNTIME_REQUIRE=mount-namespace` makes it a failure.

#![allow(unsafe_code, clippy::unwrap_used, reason = "a test that constructs native code")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use runtime_core::cache::{CacheOptions, CodeCache, PruneOptions};
use runtime_core::code::CodeOrigin;
use runtime_core::{Device, ModuleSource, Options, Runtime, read_write};
use test_process::Messages;

/// What the machine must allow, for `RUNTIME_REQUIRE`.
const REQUIREMENT: &str = "mount-namespace";
/// Names the case that a child process runs.
const CASE: &str = "RUNTIME_TEST_DISK";
/// Where a child process finds its disk.
const DISK: &str = "/disk";
/// No case takes this long.
const DEADLINE: Duration = Duration::from_secs(60);
/// Bytes of code per module; a disk of 256 KB holds few of them.
const CODE_BYTES: usize = 40_000;

/// A disk, and what happens on it.
struct Case {
    name: &'static str,
    /// Options of `mount`.
    disk: &'static str,
    run: fn(&Cached),
}

const CASES: [Case; 3] = [
    Case { name: "a_full_disk_keeps_what_fits", disk: "size=256k,mode=700", run: full },
    Case {
        name: "a_disk_that_fills_up_is_used_again_after_clearing",
        disk: "size=256k,mode=700",
        run: cleared,
    },
    Case { name: "a_read_only_disk_keeps_nothing", disk: "size=256k,mode=700,ro", run: read_only },
];

fn main() -> ExitCode {
    if let Ok(name) = std::env::var(CASE) {
        let case = CASES.into_iter().find(|case| case.name == name).unwrap();
        (case.run)(&Cached::new(Path::new(DISK)));
        return ExitCode::SUCCESS;
    }
    let missing = missing();
    let trials = CASES.map(|case| {
        let missing = missing.clone();
        Trial::ignorable_test(case.name, move || match missing {
            Some(reason) if test_process::required(REQUIREMENT) => Err(Failed::from(reason)),
            Some(reason) => Ok(Completion::ignored_with(reason)),
            None => {
                mounted(case.disk, &std::env::current_exe()?, case.name)?;
                Ok(Completion::Completed)
            }
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

/// Why no disk can be mounted here.
fn missing() -> Option<String> {
    let error = mounted("size=64k", Path::new("/bin/true"), "").err()?;
    let reason = error.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(format!("{REQUIREMENT}: no disk can be mounted in a name space of its own: {reason}"))
}

/// Makes the folder `$1` the root of the file system, with the disk at `/disk`, and runs `$2` as `/program`. A cache trusts no folder
/// below one of another user, and in a name space of one user even `/` belongs to another.
const AS_ROOT: &str = r#"
mount -t tmpfs -o mode=755 tmpfs "$1" && cd "$1" && mkdir disk && mount -t tmpfs -o "$0" tmpfs disk &&
for folder in bin lib lib64 usr proc dev; do
    if [ -L "/$folder" ]; then cp -P "/$folder" .; elif [ -d "/$folder" ]; then mkdir "$folder" && mount --rbind "/$folder" "$folder"; fi || exit
done && touch program && mount --bind "$2" program && exec chroot . /program
"#;

/// Runs a program with a disk that no other process sees.
fn mounted(disk: &str, program: &Path, case: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", AS_ROOT, disk]).arg(folder.path()).arg(program);
    command.env(CASE, case);
    test_process::finish(&mut command, DEADLINE)?.success().map(drop)
}

/// A device whose code goes through a cache on the disk.
struct Cached {
    folder: PathBuf,
    device: Device,
    cache: CodeCache,
    origins: Arc<Mutex<Vec<CodeOrigin>>>,
    messages: Messages,
}

impl Cached {
    fn new(folder: &Path) -> Self {
        let messages = Messages::collect().unwrap();
        let (origins, cache) = (Arc::<Mutex<Vec<_>>>::default(), open_cache(folder));
        let loads = Arc::clone(&origins);
        let runtime = Runtime::builder()
            .discover(false)
            .register(runtime_null::backend())
            .code_cache(cache.clone())
            .on_load(move |load| loads.lock().unwrap().push(load.origin))
            .build();
        let device = runtime.open_with("null", &Options::new().with("compiler", true)).unwrap();
        Self { folder: folder.to_owned(), device, cache, origins, messages }
    }

    /// Loads and runs modules, and returns where their code came from.
    fn load(&self, numbers: std::ops::Range<usize>) -> Vec<CodeOrigin> {
        for number in numbers {
            let code = format!("scale_f32\n#{number:CODE_BYTES$}");
            // SAFETY: the launch passes what the builtin expects.
            let source = unsafe { ModuleSource::native("null", code) };
            let x = self.device.tensor([2], &[1.0f32, 2.0]).unwrap();
            let kernel = self.device.kernel(&source, "scale_f32").unwrap();
            self.device.queue().unwrap().call(&kernel, (1, 1), (read_write(&x), 3.0f32)).unwrap();
            assert_eq!(x.to_vec::<f32>().unwrap(), [3.0, 6.0]);
        }
        self.origins.lock().unwrap().drain(..).collect()
    }

    /// One warning says that the cache cannot be written, and why.
    fn assert_one_warning(&self, reason: &str) {
        let messages = self.messages.list();
        assert!(messages.len() == 1 && messages[0].contains(reason), "{messages:?}");
    }
}

fn open_cache(folder: &Path) -> CodeCache {
    // SAFETY: only this program writes to the folder.
    let options = unsafe { CacheOptions::default().with_folder(folder) };
    CodeCache::with_options(options)
}

/// The number of loads whose code was kept, before the first that was not.
fn kept(origins: &[CodeOrigin]) -> usize {
    let kept = origins.iter().take_while(|origin| **origin == CodeOrigin::Compiled).count();
    assert!(origins[kept..].iter().all(|origin| *origin == CodeOrigin::NotKept), "{origins:?}");
    kept
}

fn full(cached: &Cached) {
    let kept = kept(&cached.load(0..20));
    assert!((1..20).contains(&kept), "{kept} of 20 modules were kept on a disk for about 5");
    cached.assert_one_warning("No space left");
    // Another process finds what was kept, and nothing else.
    let report = open_cache(&cached.folder).verify().unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    assert_eq!(report.intact.entries, kept as u64);
    let again = cached.load(0..kept);
    assert_eq!(again, vec![CodeOrigin::Cache; kept]);
}

fn cleared(cached: &Cached) {
    assert!(kept(&cached.load(0..20)) < 20);
    cached.cache.prune(&PruneOptions::default()).unwrap();
    cached.cache.clear().unwrap();
    assert_eq!(cached.load(30..32), [CodeOrigin::Compiled; 2]);
    assert_eq!(cached.load(30..32), [CodeOrigin::Cache; 2]);
}

fn read_only(cached: &Cached) {
    assert_eq!(cached.load(0..3), [CodeOrigin::NotKept; 3]);
    cached.assert_one_warning("ead-only file system");
    assert_eq!(std::fs::read_dir(&cached.folder).unwrap().count(), 0);
}
