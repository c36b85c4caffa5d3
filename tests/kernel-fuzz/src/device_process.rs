//! Child processes that run cases on a device; they are replaced when they crash or hang.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::case::Case;
use crate::device::Verdict;
use crate::worker::decode;

/// The time limit of a load or a launch.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The crash reason of a process that had to be killed.
pub(crate) const HUNG: &str = "hung";

/// The environment variable with the log file of an external checker.
pub(crate) const CHECKER_LOG: &str = "KERNEL_FUZZ_CHECKER_LOG";

/// A device in a child process.
#[derive(Debug)]
pub struct DeviceProcess {
    /// The name, as in `--devices`.
    pub name: String,
    program: PathBuf,
    file: PathBuf,
    child: Option<Worker>,
    deadline: Duration,
}

#[derive(Debug)]
struct Worker {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

/// The verdicts of the launches, and that of the module if it does not load.
type Launched = (Vec<(usize, Verdict)>, Option<Verdict>);

impl DeviceProcess {
    /// Creates a device whose child processes run `program` and read their cases from `file`.
    #[must_use]
    pub fn new(name: &str, program: PathBuf, file: PathBuf) -> Self {
        Self { name: name.to_owned(), program, file, child: None, deadline: DEADLINE }
    }

    /// Sets the time limit of a load or a launch.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// Runs cases, as one module if possible; returns a verdict for each.
    ///
    /// # Errors
    /// The device is not available.
    pub fn run(&mut self, cases: &[&Case]) -> Result<Vec<Verdict>, String> {
        let mut verdicts: Vec<Option<Verdict>> = vec![None; cases.len()];
        while let Some(first) = verdicts.iter().position(Option::is_none) {
            let pending: Vec<usize> = (first..cases.len()).filter(|at| verdicts[*at].is_none()).collect();
            let module: Vec<_> = pending.iter().map(|at| cases[*at]).collect();
            let (launched, rest) = self.run_module(&Case::join(&module))?;
            for (index, verdict) in launched {
                verdicts[pending[index]] = Some(verdict);
            }
            let Some(rest) = rest else { continue };
            if pending.len() == 1 {
                verdicts[pending[0]] = Some(rest);
            } else {
                // Bisect to find the case that does not load.
                let (front, back) = module.split_at(module.len() / 2);
                let both = [self.run(front)?, self.run(back)?].concat();
                pending.iter().zip(both).for_each(|(at, verdict)| verdicts[*at] = Some(verdict));
            }
        }
        Ok(verdicts.into_iter().flatten().collect())
    }

    /// Runs a module; returns the verdicts of its launches, or that of the module if it does not load.
    fn run_module(&mut self, case: &Case) -> Result<Launched, String> {
        std::fs::write(&self.file, case.to_string()).map_err(|error| error.to_string())?;
        let path = format!("{}\n", self.file.display());
        let deadline = self.deadline;
        let worker = self.worker()?;
        let sent = worker.input.write_all(path.as_bytes()).and_then(|()| worker.input.flush());
        let (mut verdicts, mut running) = (Vec::new(), None);
        let mut whole = None;
        loop {
            let line = match worker.lines.recv_timeout(deadline) {
                Ok(line) if sent.is_ok() => line,
                _ => {
                    let end = self.terminate();
                    match running {
                        Some(index) => verdicts.push((index, end)),
                        None => whole = Some(while_loading(end)),
                    }
                    return Ok((verdicts, whole));
                }
            };
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match word {
                "done" => break,
                "load" => whole = decode(rest),
                "run" => running = rest.parse().ok(),
                "end" => {
                    let rest = rest.split_once(' ').map_or("", |(_, rest)| rest);
                    if let (Some(index), Some(verdict)) = (running.take(), decode(rest)) {
                        let failed = matches!(verdict, Verdict::Failed(_));
                        verdicts.push((index, verdict));
                        if failed {
                            // The device may be unusable now.
                            self.terminate();
                            return Ok((verdicts, None));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok((verdicts, whole))
    }

    /// The command of the child process, with the driver that the name selects.
    fn command(&self) -> Result<Command, String> {
        let mut command = Command::new(&self.program);
        let written = |path: &PathBuf, text: &str| {
            std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
        };
        let log = self.file.with_extension("log");
        let folder = self.file.with_extension("icd");
        let only = |command: &mut Command, library: &str| {
            std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            written(&folder.join("only.icd"), library)?;
            command.env("OCL_ICD_VENDORS", &folder);
            Ok::<_, String>(())
        };
        let mut device = self.name.clone();
        if self.name == "oclgrind" {
            let library = "/usr/lib/oclgrind/liboclgrind-rt-icd.so";
            if !std::path::Path::new(library).is_file() {
                return Err(format!("{library} is missing; on Debian, install oclgrind"));
            }
            only(&mut command, library)?;
            written(&log, "")?;
            command.env("OCLGRIND_DATA_RACES", "1").env("OCLGRIND_LOG", &log).env(CHECKER_LOG, &log);
            "opencl:0".clone_into(&mut device);
        } else if let Some(options) = self.name.strip_prefix("intel") {
            let library = std::env::var("RUNTIME_TEST_INTEL_OPENCL")
                .map_err(|_| "RUNTIME_TEST_INTEL_OPENCL is not set".to_owned())?;
            only(&mut command, &library)?;
            device = format!("opencl:0{options}");
        } else if let Some(options) = self.name.strip_prefix("clang") {
            command.env("CC", portable::tool::clang()?);
            device = format!("host{options}");
        } else if let Some(name) = self.name.strip_suffix("/validated") {
            let settings = self.file.with_extension("settings");
            let text = format!(
                "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n\
                 khronos_validation.log_filename = {}\nkhronos_validation.report_flags = error,warn\n",
                log.display()
            );
            written(&settings, &text)?;
            written(&log, "")?;
            command.env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation");
            command.env("VK_LAYER_SETTINGS_PATH", settings).env(CHECKER_LOG, &log);
            name.clone_into(&mut device);
        }
        // A crashing compiler may leave files in the current folder.
        let left = self.file.with_extension("left");
        std::fs::create_dir_all(&left).map_err(|error| format!("{}: {error}", left.display()))?;
        command.args(["worker", &device]).current_dir(left);
        Ok(command)
    }

    fn worker(&mut self) -> Result<&mut Worker, String> {
        if self.child.is_none() {
            let mut child = self
                .command()?
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|error| format!("{}: {error}", self.program.display()))?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                return Err("the child process has no pipes".to_owned());
            };
            let (sender, lines) = channel();
            std::thread::spawn(move || {
                BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
            });
            match lines.recv_timeout(self.deadline) {
                Ok(line) if line == "ready" => {}
                Ok(line) => return Err(line),
                Err(_) => return Err("the child process did not open the device".to_owned()),
            }
            self.child = Some(Worker { child, input, lines });
        }
        self.child.as_mut().ok_or_else(String::new)
    }

    /// Ends the child process; returns how it ended.
    fn terminate(&mut self) -> Verdict {
        let Some(mut worker) = self.child.take() else { return Verdict::Crashed("no process".to_owned()) };
        // A crashed process is gone within a moment; a hung one is not.
        for _ in 0..50 {
            if let Ok(Some(status)) = worker.child.try_wait() {
                return match status.signal() {
                    Some(signal) => Verdict::Crashed(format!("signal {signal}")),
                    None => Verdict::Crashed(status.to_string()),
                };
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = worker.child.kill();
        let _ = worker.child.wait();
        Verdict::Crashed(HUNG.to_owned())
    }
}

fn while_loading(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Crashed(text) => Verdict::Crashed(format!("{text} while loading")),
        other => other,
    }
}

impl Drop for DeviceProcess {
    fn drop(&mut self) {
        if let Some(mut worker) = self.child.take() {
            drop(worker.input);
            let _ = worker.child.kill();
            let _ = worker.child.wait();
        }
        for extension in ["wgsl", "log", "settings"] {
            let _ = std::fs::remove_file(self.file.with_extension(extension));
        }
        for extension in ["icd", "left"] {
            let _ = std::fs::remove_dir_all(self.file.with_extension(extension));
        }
    }
}
