//! Simulators behind the offload library.
//!
//! The library reads its platform and the simulator's folder from the environment, once per process. The backend cannot set variables
//! of its host process, because other threads may read them at that moment. So they are set before the program starts
//! (`simulator_variables`), and the backend starts the simulator in the folder that they name: one at a
//! time in each process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use runtime_core::backend::{Level, Log, Process};
use runtime_core::{Error, ErrorKind, Result};

use super::simulator_folder::SimulatorFolder;
use crate::config::{MppaConfig, Platform};
use crate::environment::{
    Environment, SIMULATOR_FIRMWARE as FIRMWARE, SIMULATOR_FOLDER, SIMULATOR_MODE as MODE,
};
use crate::process;
use crate::tools::Tools;
use crate::unavailable;

/// The value of `MODE` for simulators.
pub(super) const SIMULATED: &str = "sim";
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// A simulator that makes files, but no socket, is ready when it has made no more for this long.
const SETTLED: Duration = Duration::from_secs(1);

/// The tool that simulates a platform behind the library; `None` for boards.
pub(crate) const fn tool(platform: Platform) -> Option<&'static str> {
    match platform {
        Platform::Hardware => None,
        Platform::Iss => Some("kvx-cluster"),
        Platform::Qemu => Some("kvx-qemu-offload-bridge"),
    }
}

/// Why the library cannot reach a platform in this process, with the variables to set or unset.
pub(crate) fn obstacle(platform: Platform, config: &MppaConfig, process: &Environment) -> Option<String> {
    let is_simulated = process.text(MODE) == Some(SIMULATED);
    if platform == Platform::Hardware {
        return is_simulated.then(|| {
            format!("{MODE}={SIMULATED} makes Kalray's offload library run on a simulator; unset it before the program starts")
        });
    }
    let path = process.text(SIMULATOR_FOLDER).filter(|path| Path::new(path).is_absolute());
    let firmware = &config.firmware;
    let differs = |name: &&str| process.text(name).is_some_and(|value| value != firmware);
    if is_simulated && path.is_some() && !FIRMWARE.iter().any(differs) {
        return None;
    }
    let [first, second] = FIRMWARE;
    let folder = config.work_dir.as_ref().map_or("/FOLDER".into(), |folder| folder.display().to_string());
    let set: Vec<_> =
        [MODE, SIMULATOR_FOLDER].into_iter().filter(|name| process.text(name).is_some()).collect();
    let unset =
        if set.is_empty() { String::new() } else { format!("unset {} first, then ", set.join(" and ")) };
    Some(format!(
        "Kalray's offload library reads its platform from the environment, once per process; before the program starts, set \
         {MODE}={SIMULATED}, {SIMULATOR_FOLDER}={folder}/mymppa (an absolute path, another one in each process), {first}={firmware} and \
         {second}={firmware}; this backend then starts the simulator \
         ({unset}`runtime eval --device mppa:offload-{}` does all of this)",
        platform.name()
    ))
}

/// How a simulator is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SimulatorPlan {
    command: Vec<String>,
    variables: Vec<(&'static str, String)>,
    folder: PathBuf,
    removes_folder: bool,
    /// What the simulator prints when it is ready, if that is known.
    ready: Option<String>,
}

impl SimulatorPlan {
    /// The plan for the platform of a configuration.
    ///
    /// # Errors
    /// `Unavailable` if this process is not set up for it, or its tool is not installed; `InvalidArgument` for a board.
    pub(crate) fn new(
        config: &MppaConfig,
        process: &Environment,
        tools: &Tools,
        ready: Option<String>,
    ) -> Result<Self> {
        if let Some(reason) = obstacle(config.platform, config, process) {
            return Err(unavailable(reason));
        }
        let name = tool(config.platform).ok_or_else(|| Error::invalid("a board needs no simulator"))?;
        let missing = || unavailable(format!("{name} is not installed; install AccessCore"));
        let program = tools.find(name).ok_or_else(missing)?.display().to_string();
        let folder = process.text(SIMULATOR_FOLDER).unwrap_or_default().to_owned();
        let arch = config.arch().name();
        let arguments = match config.platform {
            Platform::Qemu => ["--arch", arch, "--work-dir", &folder].map(str::to_owned).to_vec(),
            _ => [
                "--disable-cache",
                &format!("--march={arch}"),
                "--no-load-elf",
                "--sim-server=SOCKET",
                "--mmap",
                &format!("--mppa-wdir={folder}"),
            ]
            .map(str::to_owned)
            .to_vec(),
        };
        Ok(Self {
            command: std::iter::once(program).chain(arguments).collect(),
            variables: config.variables(),
            folder: PathBuf::from(folder),
            removes_folder: config.clean_work_dir,
            ready,
        })
    }
}

/// A running simulator. On drop, and when this process ends in any way, it ends with the processes that it started.
#[derive(Debug)]
pub(super) struct Simulator {
    process: Mutex<Process>,
    /// Removed last.
    folder: SimulatorFolder,
}

impl Simulator {
    /// Starts a simulator, and waits until it is ready, for at most `timeout`.
    ///
    /// # Errors
    /// `Timeout` or `Failed` with its output if it does not get ready; `Unavailable` if it cannot be run, or another one uses its
    /// folder; as [`SimulatorFolder::create`].
    pub(super) fn start(plan: &SimulatorPlan, timeout: Duration, log: Log) -> Result<Self> {
        let folder = SimulatorFolder::create(&plan.folder, plan.removes_folder)?;
        if plan.removes_folder {
            SimulatorFolder::remove_abandoned(&plan.folder);
        }
        log.write(Level::Info, "mppa", &format!("starting {}", plan.command.join(" ")));
        let process = process::start(&plan.command, folder.path(), &plan.variables)?;
        // From here on, an error ends it in the order of the fields.
        let mut simulator = Self { process: Mutex::new(process), folder };
        let process = simulator.process.get_mut();
        match &plan.ready {
            Some(text) => process.wait_ready(text, timeout)?,
            None => wait_for_files(process, &simulator.folder, timeout)?,
        }
        simulator.record_files()?;
        Ok(simulator)
    }

    /// Records the files in its folder as its own, so that they can be removed after this process was killed.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn record_files(&self) -> Result<()> {
        self.folder.record()
    }

    /// Ends it, and returns an error about it, with its output.
    pub(super) fn end(&self, kind: ErrorKind, what: &str) -> Error {
        let mut process = self.process.lock();
        let error = process.failure(kind, what);
        process.end();
        error
    }

    /// Checks that the simulator still runs.
    ///
    /// # Errors
    /// `DeviceLost`, with its output.
    pub(super) fn check(&self) -> Result<()> {
        let mut process = self.process.lock();
        match process.status() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                Err(process.failure(ErrorKind::DeviceLost, &format!("ended ({status}) while it was used")))
            }
            Err(error) => Err(Error::new(ErrorKind::DeviceLost, error.message().to_owned())),
        }
    }
}

/// The error of a simulator that has ended before it was ready; `None` while it runs.
fn ended_early(process: &mut Process) -> Result<Option<Error>> {
    let status = process.status()?;
    Ok(status
        .map(|status| process.failure(ErrorKind::Failed, &format!("ended ({status}) before it was ready"))))
}

/// Waits until the folder of a simulator has a socket, or has files and no new ones appear.
fn wait_for_files(process: &mut Process, folder: &SimulatorFolder, deadline: Duration) -> Result<()> {
    let started = Instant::now();
    let (mut known, mut changed) = (0, started);
    loop {
        if let Some(error) = ended_early(process)? {
            return Err(error);
        }
        let (files, has_socket) = folder.contents();
        if files != known {
            (known, changed) = (files, Instant::now());
        }
        if has_socket || (files > 0 && changed.elapsed() >= SETTLED) {
            return Ok(());
        }
        if started.elapsed() >= deadline {
            let what = format!(
                "made no socket in {} within {deadline:?} and was ended; if it signals readiness differently, set option \"ready\" \
                 to text that it prints when it is ready",
                folder.path().display()
            );
            return Err(process.failure(ErrorKind::Timeout, &what));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use runtime_core::Options;

    use super::*;
    use crate::fixture::FakeRoot;

    fn variables(path: &str) -> Environment {
        [(MODE, SIMULATED), (SIMULATOR_FOLDER, path)].into_iter().collect()
    }

    fn config(platform: &str) -> MppaConfig {
        let options = Options::new().with("platform", platform).with("arch", "kv3-1");
        MppaConfig::resolve(&Environment::default(), &options).unwrap()
    }

    #[test]
    fn a_process_for_boards_is_told_the_variables_of_simulators() {
        let boards = Environment::default();
        let config = MppaConfig { work_dir: Some("/w".into()), ..config("iss") };
        let reason = obstacle(Platform::Iss, &config, &boards).unwrap();
        for words in [
            "MPPA_RPROC_PLATFORM_MODE=sim",
            "MPPA_RPROC_SIM_PATH=/w/mymppa",
            "OMP_MPPA_FIRMWARE_NAME=ocl_fw_l1.elf",
            "MLIR_MPPA_FIRMWARE_NAME=ocl_fw_l1.elf",
        ] {
            assert!(reason.contains(words), "{words}: {reason}");
        }
        assert!(!reason.contains("unset"), "{reason}");
        let reason = obstacle(Platform::Qemu, &config, &variables("relative")).unwrap();
        assert!(reason.contains("unset MPPA_RPROC_PLATFORM_MODE and MPPA_RPROC_SIM_PATH first"), "{reason}");
        let other =
            [(MODE, SIMULATED), (SIMULATOR_FOLDER, "/s"), (FIRMWARE[1], "x.elf")].into_iter().collect();
        assert!(obstacle(Platform::Qemu, &config, &other).is_some(), "another firmware");
        assert_eq!(obstacle(Platform::Qemu, &config, &variables("/s")), None);
        assert_eq!(obstacle(Platform::Hardware, &config, &boards), None);
        let reason = obstacle(Platform::Hardware, &config, &variables("/s")).unwrap();
        assert!(reason.contains("unset it"), "{reason}");
    }

    #[test]
    fn the_commands_are_those_of_the_tools_for_the_architecture() {
        let root = FakeRoot::new();
        let tools = Tools::new(None, &root.environment(&[]));
        let plan = |platform| SimulatorPlan::new(&config(platform), &variables("/s"), &tools, None);
        assert_eq!(plan("iss").unwrap_err().kind(), ErrorKind::Unavailable);
        for (platform, expected) in [
            ("iss", "--disable-cache --march=kv3-1 --no-load-elf --sim-server=SOCKET --mmap --mppa-wdir=/s"),
            ("qemu", "--arch kv3-1 --work-dir /s"),
        ] {
            let name = tool(config(platform).platform).unwrap();
            let program = root.tool(&format!("bin/{name}"), "");
            let words = plan(platform).unwrap().command;
            assert_eq!(
                (words[0].as_str(), words[1..].join(" ").as_str()),
                (program.to_str().unwrap(), expected)
            );
        }
    }
}
