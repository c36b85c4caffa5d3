//! What the driver has compiled is kept for the next program, and offered to it; a damaged file is passed over. The stub's
//! cache refuses anything else.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use runtime_core::{ModuleSource, Options, Runtime};
use vulkan_tests::{Driver, again, beside, finish, is_again, lavapipe, missing, on, stub};

const DEADLINE: Duration = Duration::from_secs(60);
/// Set where nothing is to be kept.
const OFF: &str = "VULKAN_TESTS_OFF";
const NOTHING: &str = "@compute @workgroup_size(1) fn nothing() {}";

fn main() -> ExitCode {
    if is_again() {
        return match beside("libruntime_vulkan.so").and_then(|library| work(&library)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => panic!("{reason}"),
        };
    }
    let trials = match lavapipe() {
        Err(reason) => vec![missing("vulkan::cache", "vulkan", reason)],
        Ok(driver) => {
            let again = driver.clone();
            vec![
                Trial::test("compiled_code_is_kept", move || is_kept(&driver)),
                Trial::test("an_option_turns_it_off", move || is_turned_off(&again)),
            ]
        }
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Compiles something.
fn work(library: &Path) -> Result<(), String> {
    let runtime =
        Runtime::builder().discover(false).library(library).lower_with(runtime_kernel::wgsl()).build();
    let options = Options::new().with("pipeline_cache", std::env::var_os(OFF).is_none());
    let device = runtime.open_with("vulkan:0", &options).map_err(|error| error.to_string())?;
    let kernel = device.load(&ModuleSource::wgsl(NOTHING)).and_then(|module| module.kernel("nothing"));
    kernel.map(drop).map_err(|error| error.to_string())
}

/// Runs [`work`] on the stub, whose cache takes what `cache` says, with this folder for what is kept.
fn program(driver: &Driver, folder: &Path, cache: &str, off: bool) -> Result<(), Failed> {
    let mut command = again()?;
    let words = format!("real={},cache={cache}", driver.library);
    on(&mut command, &stub(folder)?.manifest).env("STUB_VULKAN", words).env("XDG_CACHE_HOME", folder);
    if off {
        command.env(OFF, "1");
    }
    let ended = finish(&mut command, DEADLINE)?;
    if ended.status.success() { Ok(()) } else { Err(format!("cache={cache}: {}", ended.text()).into()) }
}

/// The files that were kept.
fn kept(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("runtime/vulkan")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn is_kept(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    program(driver, folder.path(), "empty", false)?;
    let files = kept(folder.path());
    let [file] = files.as_slice() else { return Err(format!("not one file: {files:?}").into()) };
    program(driver, folder.path(), "given", false)?;
    let mut bytes = std::fs::read(file)?;
    bytes.truncate(bytes.len() - 1);
    std::fs::write(file, bytes)?;
    program(driver, folder.path(), "empty", false)?;
    // It was written again.
    program(driver, folder.path(), "given", false)
}

fn is_turned_off(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    program(driver, folder.path(), "empty", true)?;
    let files = kept(folder.path());
    if files.is_empty() { Ok(()) } else { Err(format!("kept all the same: {files:?}").into()) }
}
