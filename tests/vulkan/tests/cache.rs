//! The pipeline cache: compiled code is saved for the next process, and loaded by it; a damaged file is ignored, and a place
//! where nothing can be saved does no harm. The stub's cache rejects any other data.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use runtime_core::{ModuleSource, Options, Runtime};
use vulkan_tests::{
    Driver, built_file, finish, install_stub, is_child, lavapipe, missing, respawn, use_driver,
};

const DEADLINE: Duration = Duration::from_secs(60);
/// Set to turn the cache off.
const OFF: &str = "VULKAN_TESTS_OFF";
const NOTHING: &str = "@compute @workgroup_size(1) fn nothing() {}";

type Case = fn(&Driver) -> Result<(), Failed>;

const CASES: [(&str, Case); 6] = [
    ("compiled_code_is_saved_and_loaded", is_saved),
    ("a_damaged_file_is_replaced", is_replaced),
    ("failure_to_save_does_no_harm", is_not_saved),
    ("several_processes_may_write_at_once", is_written_concurrently),
    ("leftovers_of_killed_writers_are_removed", leftovers_are_removed),
    ("an_option_turns_the_cache_off", is_turned_off),
];

fn main() -> ExitCode {
    if is_child() {
        return match built_file("libruntime_vulkan.so").and_then(|library| compile(&library)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => panic!("{reason}"),
        };
    }
    let trials = match lavapipe() {
        Err(reason) => vec![missing("vulkan::cache", "vulkan", reason)],
        Ok(driver) => CASES
            .into_iter()
            .map(|(name, case)| {
                let driver = driver.clone();
                Trial::test(name, move || case(&driver))
            })
            .collect(),
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Compiles a kernel.
fn compile(library: &Path) -> Result<(), String> {
    let builder = Runtime::builder().discover(false).with_lowering(runtime_kernel::wgsl());
    // SAFETY: the backend of this workspace.
    #[allow(unsafe_code, reason = "loads the backend")]
    let runtime = unsafe { builder.library(library) }.build();
    let options = Options::new().with("pipeline_cache", std::env::var_os(OFF).is_none());
    let device = runtime.open_with("vulkan:0", &options).map_err(|error| error.to_string())?;
    let kernel = device.kernel(ModuleSource::wgsl(NOTHING), "nothing");
    kernel.map(drop).map_err(|error| error.to_string())
}

/// A child process that runs [`compile`] on the stub with this `cache` setting and this cache folder.
fn child(driver: &Driver, folder: &Path, cache: &str) -> Result<Command, Failed> {
    let mut command = respawn()?;
    let settings = format!("real={},cache={cache}", driver.library);
    use_driver(&mut command, &install_stub(folder)?.manifest)
        .env("STUB_VULKAN", settings)
        .env("XDG_CACHE_HOME", folder);
    // Mesa prints the errors of its own cache.
    command.env("MESA_SHADER_CACHE_DISABLE", "true");
    Ok(command)
}

/// Runs a child, which must succeed without output.
fn succeeds_silently(command: &mut Command) -> Result<(), Failed> {
    let ended = finish(command, DEADLINE)?;
    let text = ended.text();
    if ended.status.success() && text.trim().is_empty() { Ok(()) } else { Err(text.into()) }
}

fn run(driver: &Driver, folder: &Path, cache: &str) -> Result<(), Failed> {
    succeeds_silently(&mut child(driver, folder, cache)?)
        .map_err(|failed| format!("cache={cache}: {}", failed.message().unwrap_or_default()).into())
}

/// The cache files.
fn cache_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("runtime/vulkan")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn the_cache_file(folder: &Path) -> Result<PathBuf, Failed> {
    match cache_files(folder).as_slice() {
        [file] => Ok(file.clone()),
        files => Err(format!("not exactly one file: {files:?}").into()),
    }
}

fn is_saved(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    run(driver, folder.path(), "empty")?;
    the_cache_file(folder.path())?;
    run(driver, folder.path(), "saved")
}

/// A damaged or foreign file is ignored and replaced.
fn is_replaced(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    run(driver, folder.path(), "empty")?;
    let file = the_cache_file(folder.path())?;
    let intact = std::fs::read(&file)?;
    let foreign = vec![7; 40 << 20];
    for bytes in [&intact[..intact.len() - 1], &intact[..10], &[], &foreign] {
        std::fs::write(&file, bytes)?;
        run(driver, folder.path(), "empty")?;
        run(driver, folder.path(), "saved")?;
    }
    Ok(())
}

/// Nothing can be saved, for several reasons.
fn is_not_saved(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut no_home = child(driver, folder.path(), "empty")?;
    succeeds_silently(no_home.env_remove("XDG_CACHE_HOME").env_remove("HOME"))?;
    let file = folder.path().join("file");
    std::fs::write(&file, "")?;
    for place in [Path::new("/proc"), &file, Path::new("relative")] {
        succeeds_silently(child(driver, folder.path(), "empty")?.env("XDG_CACHE_HOME", place))?;
    }
    // As on a full disk.
    let mut full = Command::new("sh");
    full.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]);
    let one = child(driver, folder.path(), "empty")?;
    full.arg(one.get_program()).args(one.get_args());
    one.get_envs().for_each(|(name, value)| match value {
        Some(value) => drop(full.env(name, value)),
        None => drop(full.env_remove(name)),
    });
    succeeds_silently(&mut full)?;
    match cache_files(folder.path()).as_slice() {
        [] => {}
        files => return Err(format!("saved anyway: {files:?}").into()),
    }
    run(driver, folder.path(), "empty")?;
    // A folder with the file's name.
    let file = the_cache_file(folder.path())?;
    std::fs::remove_file(&file)?;
    std::fs::create_dir(&file)?;
    run(driver, folder.path(), "empty")?;
    the_cache_file(folder.path()).map(drop)
}

fn is_written_concurrently(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let commands = (0..6).map(|_| child(driver, folder.path(), "any")).collect::<Result<Vec<_>, _>>()?;
    let children = commands.into_iter().map(|mut command| command.spawn());
    let mut children = children.collect::<Result<Vec<_>, _>>()?;
    for child in &mut children {
        let status = child.wait()?;
        if !status.success() {
            return Err(format!("a child failed: {status}").into());
        }
    }
    the_cache_file(folder.path())?;
    run(driver, folder.path(), "saved")
}

fn leftovers_are_removed(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    run(driver, folder.path(), "empty")?;
    let file = the_cache_file(folder.path())?;
    let cache_name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // A writer holds a lock on its temporary file: one of these was killed.
    let unfinished = |digits| file.with_file_name(format!(".{cache_name}.{digits}.tmp"));
    std::fs::write(unfinished("0123456789abcdef"), "half")?;
    let in_progress = std::fs::File::create(unfinished("fedcba9876543210"))?;
    in_progress.lock()?;
    std::fs::remove_file(&file)?;
    run(driver, folder.path(), "empty")?;
    let mut names: Vec<_> =
        cache_files(folder.path()).iter().filter_map(|path| path.file_name().map(PathBuf::from)).collect();
    names.sort();
    let kept = unfinished("fedcba9876543210").file_name().unwrap_or_default().into();
    let expected: [PathBuf; 2] = [kept, cache_name.into()];
    if names == expected { Ok(()) } else { Err(format!("left: {names:?}").into()) }
}

fn is_turned_off(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    succeeds_silently(child(driver, folder.path(), "empty")?.env(OFF, "1"))?;
    let files = cache_files(folder.path());
    if files.is_empty() { Ok(()) } else { Err(format!("saved anyway: {files:?}").into()) }
}
