//! A process that loads nothing does not touch the code cache: no folder is made, no file is opened, and nothing is said of a folder
//! that cannot be used.

#![cfg(target_os = "linux")]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "a test that constructs native code and watches a folder"
)]

use std::ffi::CString;
use std::fs::{File, Permissions};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use runtime_core::cache::CodeCache;
use runtime_core::{Device, Geometry, ModuleSource, Options, Runtime, read_write};
use test_process::Messages;

/// Set to the folder of the cache.
const VARIABLE: &str = "RUNTIME_CACHE";

/// Reports whatever happens to files in a folder.
struct Watch(File);

impl Watch {
    fn new(folder: &Path) -> Self {
        // SAFETY: takes flags only.
        let file = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        assert!(file >= 0, "{}", std::io::Error::last_os_error());
        let path = CString::new(folder.as_os_str().as_bytes()).unwrap();
        // SAFETY: an open inotify instance, and a terminated path.
        let watch = unsafe { libc::inotify_add_watch(file, path.as_ptr(), libc::IN_ALL_EVENTS) };
        assert!(watch >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: it was just opened, and nothing else has it.
        Self(unsafe { File::from_raw_fd(file) })
    }

    /// Whether anything happened since the last call.
    fn is_touched(&mut self) -> bool {
        self.0.read(&mut [0; 4096]).is_ok()
    }
}

fn open() -> Device {
    let builder = Runtime::builder().discover(false).register(runtime_null::backend());
    builder.build().open_with("null", &Options::new().with("compiler", true)).unwrap()
}

/// Everything but loading code.
fn use_without_code(device: &Device) {
    let (queue, x) = (device.queue().unwrap(), device.tensor([2], &[1.0f32, 2.0]).unwrap());
    let y = device.empty::<f32>([2]).unwrap();
    queue.copy(&y, &x).unwrap().wait().unwrap();
    queue.launch_noop().unwrap().wait().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert!(device.info().accepts(&"null".into()));
}

fn load(device: &Device) {
    // SAFETY: the launch passes what the builtin expects.
    let source = unsafe { ModuleSource::native("null", "scale_f32") };
    let (kernel, x) =
        (device.kernel(&source, "scale_f32").unwrap(), device.tensor([2], &[1.0f32, 2.0]).unwrap());
    device.queue().unwrap().call(&kernel, Geometry::single(), (read_write(&x), 3.0f32)).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [3.0, 6.0]);
}

fn set_folder(folder: &Path) {
    // SAFETY: the only test of this program; no other thread reads the environment.
    unsafe { std::env::set_var(VARIABLE, folder) };
}

#[test]
fn a_process_that_loads_nothing_does_not_touch_the_cache() {
    let messages = Messages::collect().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let fresh = folder.path().join("fresh");
    set_folder(&fresh);
    use_without_code(&open());
    assert!(!fresh.exists(), "the folder was made");
    assert_eq!(CodeCache::from_environment().path(), Some(&*fresh));
    load(&open());
    assert!(fresh.is_dir(), "what is loaded is kept");

    let mut watch = Watch::new(&fresh);
    use_without_code(&open());
    assert!(!watch.is_touched(), "a cache with entries was looked into");
    load(&open());
    assert!(watch.is_touched(), "the watch sees nothing");

    // Folders that others may write, or that nobody may read, are a warning of the first load, not of the start.
    for mode in [0o777, 0o000] {
        std::fs::set_permissions(&fresh, Permissions::from_mode(mode)).unwrap();
        use_without_code(&open());
        assert_eq!(messages.list(), [""; 0]);
    }
    std::fs::set_permissions(&fresh, Permissions::from_mode(0o777)).unwrap();
    load(&open());
    assert!(messages.list().len() == 1 && messages.list()[0].contains("chmod go-w"), "{:?}", messages.list());
    std::fs::set_permissions(&fresh, Permissions::from_mode(0o700)).unwrap();
}
