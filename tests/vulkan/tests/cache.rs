//! What the driver has compiled is kept for the next program, and offered to it; a damaged file is passed over, and nobody is
//! the worse for a place where nothing can be kept. The stub's cache refuses anything else.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime};

use libtest_mimic::{Arguments, Failed, Trial};
use runtime_core::{ModuleSource, Options, Runtime};
use vulkan_tests::{Driver, again, beside, finish, is_again, lavapipe, missing, on, stub};

const DEADLINE: Duration = Duration::from_secs(60);
/// Set where nothing is to be kept.
const OFF: &str = "VULKAN_TESTS_OFF";
const NOTHING: &str = "@compute @workgroup_size(1) fn nothing() {}";

type Case = fn(&Driver) -> Result<(), Failed>;

const CASES: [(&str, Case); 6] = [
    ("compiled_code_is_kept", is_kept),
    ("a_file_that_is_not_whole_is_written_again", is_written_again),
    ("nobody_minds_what_cannot_be_kept", is_not_kept),
    ("several_may_write_at_once", may_be_written_by_several),
    ("what_killed_writers_left_goes", leftovers_go),
    ("an_option_turns_it_off", is_turned_off),
];

fn main() -> ExitCode {
    if is_again() {
        return match beside("libruntime_vulkan.so").and_then(|library| work(&library)) {
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

/// Compiles something.
fn work(library: &Path) -> Result<(), String> {
    let builder = Runtime::builder().discover(false).lower_with(runtime_kernel::wgsl());
    // SAFETY: the backend of this workspace.
    #[allow(unsafe_code, reason = "loads the backend")]
    let runtime = unsafe { builder.library(library) }.build();
    let options = Options::new().with("pipeline_cache", std::env::var_os(OFF).is_none());
    let device = runtime.open_with("vulkan:0", &options).map_err(|error| error.to_string())?;
    let kernel = device.load(&ModuleSource::wgsl(NOTHING)).and_then(|module| module.kernel("nothing"));
    kernel.map(drop).map_err(|error| error.to_string())
}

/// A program that does [`work`] on the stub, whose cache takes what `cache` says, with this folder for what is kept.
fn program(driver: &Driver, folder: &Path, cache: &str) -> Result<Command, Failed> {
    let mut command = again()?;
    let words = format!("real={},cache={cache}", driver.library);
    on(&mut command, &stub(folder)?.manifest).env("STUB_VULKAN", words).env("XDG_CACHE_HOME", folder);
    // Mesa has a cache of its own, and prints what is wrong with it.
    command.env("MESA_SHADER_CACHE_DISABLE", "true");
    Ok(command)
}

/// Runs a program, which must end well and have nothing to say.
fn ends_well(command: &mut Command) -> Result<(), Failed> {
    let ended = finish(command, DEADLINE)?;
    let text = ended.text();
    if ended.status.success() && text.trim().is_empty() { Ok(()) } else { Err(text.into()) }
}

fn run(driver: &Driver, folder: &Path, cache: &str) -> Result<(), Failed> {
    ends_well(&mut program(driver, folder, cache)?)
        .map_err(|failed| format!("cache={cache}: {}", failed.message().unwrap_or_default()).into())
}

/// The files that were kept.
fn kept(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("runtime/vulkan")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn the_file(folder: &Path) -> Result<PathBuf, Failed> {
    match kept(folder).as_slice() {
        [file] => Ok(file.clone()),
        files => Err(format!("not one file: {files:?}").into()),
    }
}

fn is_kept(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    run(driver, folder.path(), "empty")?;
    the_file(folder.path())?;
    run(driver, folder.path(), "given")
}

/// What is not whole, or nobody's, is passed over and written again.
fn is_written_again(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    run(driver, folder.path(), "empty")?;
    let file = the_file(folder.path())?;
    let whole = std::fs::read(&file)?;
    let foreign = vec![7; 40 << 20];
    for bytes in [&whole[..whole.len() - 1], &whole[..10], &[], &foreign] {
        std::fs::write(&file, bytes)?;
        run(driver, folder.path(), "empty")?;
        run(driver, folder.path(), "given")?;
    }
    Ok(())
}

/// Nothing can be kept, for one reason or another, and nobody is the worse for it.
fn is_not_kept(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut no_home = program(driver, folder.path(), "empty")?;
    ends_well(no_home.env_remove("XDG_CACHE_HOME").env_remove("HOME"))?;
    let file = folder.path().join("file");
    std::fs::write(&file, "")?;
    for place in [Path::new("/proc"), &file, Path::new("relative")] {
        ends_well(program(driver, folder.path(), "empty")?.env("XDG_CACHE_HOME", place))?;
    }
    // As on a full disk.
    let mut full = Command::new("sh");
    full.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]);
    let one = program(driver, folder.path(), "empty")?;
    full.arg(one.get_program()).args(one.get_args());
    one.get_envs().for_each(|(name, value)| match value {
        Some(value) => drop(full.env(name, value)),
        None => drop(full.env_remove(name)),
    });
    ends_well(&mut full)?;
    match kept(folder.path()).as_slice() {
        [] => {}
        files => return Err(format!("kept all the same: {files:?}").into()),
    }
    run(driver, folder.path(), "empty")?;
    // A folder has the file's name.
    let file = the_file(folder.path())?;
    std::fs::remove_file(&file)?;
    std::fs::create_dir(&file)?;
    run(driver, folder.path(), "empty")?;
    the_file(folder.path()).map(drop)
}

fn may_be_written_by_several(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let programs = (0..6).map(|_| program(driver, folder.path(), "any")).collect::<Result<Vec<_>, _>>()?;
    let children = programs.into_iter().map(|mut program| program.spawn());
    let mut children = children.collect::<Result<Vec<_>, _>>()?;
    for child in &mut children {
        let status = child.wait()?;
        if !status.success() {
            return Err(format!("one of several: {status}").into());
        }
    }
    the_file(folder.path())?;
    run(driver, folder.path(), "given")
}

fn leftovers_go(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    run(driver, folder.path(), "empty")?;
    let file = the_file(folder.path())?;
    for (name, minutes) in [(".new-old", 90), (".new-young", 30)] {
        let left = std::fs::File::create(file.with_file_name(name))?;
        left.set_modified(SystemTime::now() - Duration::from_secs(60 * minutes))?;
    }
    std::fs::remove_file(&file)?;
    run(driver, folder.path(), "empty")?;
    let mut names: Vec<_> =
        kept(folder.path()).iter().filter_map(|path| path.file_name().map(PathBuf::from)).collect();
    names.sort();
    let expected: [PathBuf; 2] = [".new-young".into(), file.file_name().unwrap_or_default().into()];
    if names == expected { Ok(()) } else { Err(format!("left: {names:?}").into()) }
}

fn is_turned_off(driver: &Driver) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    ends_well(program(driver, folder.path(), "empty")?.env(OFF, "1"))?;
    let files = kept(folder.path());
    if files.is_empty() { Ok(()) } else { Err(format!("kept all the same: {files:?}").into()) }
}
