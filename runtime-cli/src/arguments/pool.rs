//! Options of commands that have worker processes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Duration;

use clap::Args;
use runtime_core::backend::{MissingPart, SandboxPolicy, missing_sandbox_parts};
use runtime_core::{Error, ErrorKind, Options, Result};
use runtime_harness::origin::SandboxState;
use runtime_harness::pool::LaunchTemplate;
use runtime_harness::worker::Trust;
use runtime_harness::worker::protocol::Reply;
use runtime_harness::{Pool, PoolOptions};

use super::parse_seconds;
use crate::simulator_process::device_variables;
use crate::{interrupt, output};

/// How long a launched worker may take to start by default: a scheduler may have to wait for a machine.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(300);

/// Options of worker processes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Isolation")]
pub(crate) struct PoolArguments {
    /// How long may pass without calls of a kernel returning [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,
    /// Time limit for preparing a kernel's data and loading its code [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    compile_timeout: Option<Duration>,
    /// Limit for the memory of a worker, e.g. `4G` (binary units: K, M, G)
    #[arg(long, value_name = "BYTES", value_parser = parse_memory_limit)]
    memory_limit: Option<u64>,
    /// Command that starts a worker, e.g. `srun --gres=gpu:1 {worker}` or `ssh host {worker}`
    #[arg(long, value_name = "TEMPLATE")]
    launch: Option<LaunchTemplate>,
    /// How many workers share the kernels of a device, each started by --launch [default: 1]
    #[arg(long, value_name = "COUNT", requires = "launch", value_parser = clap::value_parser!(u16).range(1..))]
    workers: Option<u16>,
    /// Time limit for starting a worker [default: 60, with --launch 300]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    start_timeout: Option<Duration>,
    #[command(flatten)]
    trust: TrustArguments,
    /// Sandbox of kernels and their compilers: `required`, `best-effort` (with what the system has) or `off` [default: required, in eval
    /// and fuse best-effort; `RUNTIME_SANDBOX` can make it stricter]
    #[arg(long, value_name = "POLICY")]
    sandbox: Option<SandboxPolicy>,
    #[command(flatten)]
    pub(crate) share: ShareArguments,
}

/// Whether native code of the host is believed, and what it is judged by: of commands, and of the workers that they start.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct TrustArguments {
    /// The kernels are your own: run native code of the host in the worker that makes its row, instead of a runner
    #[arg(long)]
    trust: bool,
    /// Seed of the inputs that native code of the host has never seen, to repeat a rejected row [default: a secret one]
    #[arg(long, value_name = "SEED", conflicts_with = "trust")]
    input_seed: Option<u64>,
    /// Refuse kernels that cannot be called with inputs that they have never seen
    #[arg(long, conflicts_with = "trust")]
    fresh_inputs: bool,
}

impl TrustArguments {
    fn given(self) -> [(bool, &'static str); 3] {
        [
            (self.trust, "--trust"),
            (self.input_seed.is_some(), "--input-seed"),
            (self.fresh_inputs, "--fresh-inputs"),
        ]
    }

    /// The same arguments for a worker.
    fn words(self) -> impl Iterator<Item = OsString> {
        let given = self.given().into_iter().filter(|(is_given, _)| *is_given);
        given.flat_map(move |(_, option)| {
            let value =
                self.input_seed.filter(|_| option == "--input-seed").map(|seed| seed.to_string().into());
            std::iter::once(option.into()).chain(value)
        })
    }

    /// What they say.
    pub(crate) const fn trust(self) -> Trust {
        match self.trust {
            true => Trust::Full,
            false => Trust::None { input_seed: self.input_seed, needs_fresh_inputs: self.fresh_inputs },
        }
    }
}

/// Whether to wait for other processes.
#[derive(Debug, Args)]
pub(crate) struct ShareArguments {
    /// Time kernels while other processes time theirs on the same device, instead of taking turns
    #[arg(long, help_heading = "Timing")]
    share: bool,
}

impl ShareArguments {
    /// Whether devices are shared, by the option or by `RUNTIME_SHARE=1`.
    pub(crate) fn is_shared(&self) -> bool {
        self.share || std::env::var_os("RUNTIME_SHARE").is_some_and(|value| value == "1")
    }
}

impl PoolArguments {
    /// An option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.timeout.is_some(), "--timeout"),
            (self.compile_timeout.is_some(), "--compile-timeout"),
            (self.memory_limit.is_some(), "--memory-limit"),
            (self.launch.is_some(), "--launch"),
            (self.start_timeout.is_some(), "--start-timeout"),
            (self.sandbox.is_some(), "--sandbox"),
        ];
        given.into_iter().chain(self.trust.given()).find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }

    /// Checks that the devices of workers on other machines are named.
    ///
    /// # Errors
    /// `InvalidArgument` if they are not.
    pub(crate) fn check(&self, devices: &[String]) -> Result<()> {
        match self.launch.is_some() && devices.is_empty() {
            true => Err(Error::invalid(
                "--launch needs --device: the devices of another machine are not known here",
            )),
            false => Ok(()),
        }
    }

    /// How many candidates of a device are evaluated at once.
    pub(crate) fn workers(&self) -> usize {
        self.workers.map_or(1, usize::from)
    }

    /// A pool for code that the user has chosen, whose workers end when a signal ends this program.
    ///
    /// # Errors
    /// Those of [`options`](Self::options).
    pub(crate) fn pool(
        &self,
        (devices, options): (&[String], &Options),
        sandbox: SandboxPolicy,
        replies: Sender<Reply>,
    ) -> Result<Pool> {
        let pool = Pool::new(self.options_for(devices, options, sandbox)?, replies);
        interrupt::stop_workers(pool.stopper());
        Ok(pool)
    }

    /// As [`options`](Self::options), with the variables that workers of these devices need.
    ///
    /// # Errors
    /// As [`options`](Self::options).
    pub(crate) fn options_for(
        &self,
        devices: &[String],
        options: &Options,
        sandbox: SandboxPolicy,
    ) -> Result<PoolOptions> {
        // Launched workers are on other machines, and those of one device would share a simulator's folder.
        let devices = if self.launch.is_some() { &[] } else { devices };
        let device_variables = device_variables(devices, options);
        Ok(PoolOptions { device_variables, ..self.options(sandbox)? })
    }

    /// The sandbox of workers: at least this one, unless another one was asked for.
    ///
    /// # Errors
    /// `Unavailable` if this system lacks a part of a sandbox that is required; `InvalidArgument` for the variable of the sandbox.
    pub(crate) fn sandbox(&self, of_command: SandboxPolicy) -> Result<SandboxPolicy> {
        let sandbox = wanted_sandbox(self.sandbox, of_command, SandboxPolicy::of_process()?);
        if self.launch.is_none() { sandbox_here(sandbox, &missing_sandbox_parts) } else { Ok(sandbox) }
    }

    /// How much of it workers have; `None` if that depends on other machines.
    pub(crate) fn sandbox_state(&self, sandbox: SandboxPolicy) -> Option<SandboxState> {
        let is_known = self.launch.is_none() || sandbox != SandboxPolicy::BestEffort;
        is_known.then(|| SandboxState::of(sandbox))
    }

    /// A pool of workers that are this program, with this [`sandbox`](Self::sandbox).
    ///
    /// # Errors
    /// `Io` if this program is not found.
    pub(crate) fn options(&self, sandbox: SandboxPolicy) -> Result<PoolOptions> {
        let mut options = PoolOptions::new(this_program()?);
        options.arguments.extend(["--sandbox".into(), sandbox.name().into()]);
        options.launch.clone_from(&self.launch);
        options.workers = self.workers();
        if self.launch.is_some() {
            options.start_timeout = LAUNCH_TIMEOUT;
        }
        options.start_timeout = self.start_timeout.unwrap_or(options.start_timeout);
        if self.share.is_shared() {
            options.arguments.push("--share".into());
        }
        if let Some(timeout) = self.timeout {
            options.timeout = timeout;
            options.arguments.extend(["--timeout".into(), timeout.as_secs_f64().to_string().into()]);
        }
        options.compile_timeout = self.compile_timeout.unwrap_or(options.compile_timeout);
        options.arguments.extend(self.trust.words());
        if let Some(bytes) = self.memory_limit {
            options.arguments.extend(["--memory-limit".into(), bytes.to_string().into()]);
        }
        Ok(options)
    }
}

/// The sandbox that is wanted: the one that was asked for, or the stricter one of the command's and that of this process.
fn wanted_sandbox(
    asked_for: Option<SandboxPolicy>,
    of_command: SandboxPolicy,
    of_process: SandboxPolicy,
) -> SandboxPolicy {
    asked_for.unwrap_or_else(|| of_command.max(of_process))
}

/// The sandbox of workers on this system, which says what it lacks: where it lacks nothing, none of them goes on without a part.
///
/// # Errors
/// `Unavailable`, with the remedy, if a part is missing and required, and if it cannot be found out what is missing.
fn sandbox_here(policy: SandboxPolicy, missing: &dyn Fn() -> Vec<MissingPart>) -> Result<SandboxPolicy> {
    if policy == SandboxPolicy::Off {
        return Ok(policy);
    }
    let missing = missing();
    let told = || missing.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let refused = |message: &str| Err(Error::new(ErrorKind::Unavailable, format!("{message}: {}", told())));
    if missing.is_empty() {
        return Ok(SandboxPolicy::Required);
    }
    if missing.iter().any(|missing| missing.part.is_none()) {
        return refused("no program can be started in a sandbox (--sandbox off goes on without one)");
    }
    if policy == SandboxPolicy::Required {
        return refused(
            "this system lacks a part of the sandbox for code of others (--sandbox best-effort goes on without it)",
        );
    }
    for part in missing {
        output::print_stderr(&format!("warning: kernels and their compilers run without {part}"));
    }
    Ok(policy)
}

/// The least that a worker needs to load backends and drivers.
const MIN_MEMORY_BYTES: u64 = 64 << 20;

/// Parses a number of bytes with an optional binary unit.
fn parse_memory_limit(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    match bytes {
        None => Err("expected a number of bytes, e.g. 4000000000, 500M or 4G".to_owned()),
        Some(bytes) if bytes < MIN_MEMORY_BYTES => Err("a worker needs at least 64M".to_owned()),
        Some(bytes) => Ok(bytes),
    }
}

/// The path of this program.
///
/// # Errors
/// `Io`.
pub(crate) fn this_program() -> Result<PathBuf> {
    std::env::current_exe()
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot find this program: {error}")))
}

#[cfg(test)]
mod tests {
    use runtime_core::backend::SandboxPart;

    use super::*;

    #[test]
    fn a_variable_makes_the_sandbox_stricter_only() {
        use SandboxPolicy::{BestEffort, Off, Required};
        assert_eq!(wanted_sandbox(None, BestEffort, Required), Required);
        assert_eq!(wanted_sandbox(None, BestEffort, Off), BestEffort);
        assert_eq!(wanted_sandbox(None, Required, BestEffort), Required);
        assert_eq!(wanted_sandbox(Some(Off), Required, Required), Off);
    }

    #[test]
    fn workers_have_the_sandbox_that_was_found_here() {
        use SandboxPolicy::{BestEffort, Off, Required};
        let lacks = |part| move || vec![MissingPart { part, cause: "cause".to_owned(), remedy: "remedy" }];
        let (whole, without, unknown) = (Vec::new, lacks(Some(SandboxPart::Landlock)), lacks(None));
        for (policy, found) in [(Off, Off), (BestEffort, Required), (Required, Required)] {
            assert_eq!(sandbox_here(policy, &whole).unwrap(), found);
        }
        assert_eq!(sandbox_here(BestEffort, &without).unwrap(), BestEffort);
        let refused = sandbox_here(Required, &without).unwrap_err();
        assert!(
            refused.message().contains("Landlock") && refused.message().contains("best-effort"),
            "{refused}"
        );
        let refused = sandbox_here(BestEffort, &unknown).unwrap_err();
        assert!(
            refused.message().contains("cause") && refused.message().contains("--sandbox off"),
            "{refused}"
        );
        assert_eq!(sandbox_here(Off, &unknown).unwrap(), Off);
    }

    #[test]
    fn memory_limits_have_binary_units() {
        for (text, bytes) in
            [("64M", 64 << 20), ("4g", 4 << 30), ("70000K", 70000 << 10), ("99999999", 99_999_999)]
        {
            assert_eq!(parse_memory_limit(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "4T", "-1", "1.5G", "99999999999G", "ü"] {
            assert!(parse_memory_limit(text).unwrap_err().contains("500M"), "{text}");
        }
        assert_eq!(parse_memory_limit("63M"), Err("a worker needs at least 64M".to_owned()));
    }
}
