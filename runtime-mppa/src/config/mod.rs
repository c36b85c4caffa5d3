//! How MPPA devices are used: defaults, the environment, and the options at open, in ascending precedence.

mod settings;

use std::path::{Path, PathBuf};

use runtime_core::backend::OptionSpec;
use runtime_core::{Error, Options, Result};

use crate::environment::{self, Environment};
use settings::{choice, flag, path};

/// Where kernels run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Platform {
    /// A board.
    #[default]
    Hardware,
    /// Kalray's instruction-set simulator.
    Iss,
    /// QEMU.
    Qemu,
}

impl Platform {
    /// All platforms with their names, in order.
    pub(crate) const NAMES: [(&'static str, Self); 3] =
        [("hw", Self::Hardware), ("iss", Self::Iss), ("qemu", Self::Qemu)];

    /// Its name in options and variables.
    pub(crate) const fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

/// The architecture of the processing elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arch {
    /// Coolidge, first version.
    Kv31,
    /// Coolidge, second version.
    #[default]
    Kv32,
}

impl Arch {
    /// All architectures with their names, in order.
    pub const NAMES: [(&'static str, Self); 2] = [("kv3-1", Self::Kv31), ("kv3-2", Self::Kv32)];

    /// Its name, as tools take it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }

    /// The architecture that a text contains, such as a board's description.
    pub(crate) fn find(text: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(name, _)| text.contains(name)).map(|(_, arch)| arch)
    }

    /// Local memory of a cluster in bytes.
    #[must_use]
    pub const fn local_memory_bytes(self) -> u64 {
        match self {
            Self::Kv31 => 4 << 20,
            Self::Kv32 => 8 << 20,
        }
    }

    /// The folder of its firmware below that of all architectures.
    const fn firmware_folder(self) -> &'static str {
        match self {
            Self::Kv31 => "",
            Self::Kv32 => "kv3-2",
        }
    }
}

/// Traces, for whole programs and everything else that is not OpenCL.
const TRACE: &str = "MPPA_TRACE_ENABLE";

/// The firmware files of Kalray's OpenCL: without and with an L2 cache.
const FIRMWARE: [&str; 2] = ["ocl_fw_l1.elf", "ocl_fw_l2_d_1m.elf"];

/// How a device is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MppaConfig {
    /// Where kernels run.
    pub(crate) platform: Platform,
    /// The architecture that was asked for; `None`: that of the board, or of [`Arch::default`] on simulators.
    pub(crate) arch: Option<Arch>,
    /// File name of the firmware, or the absolute path of another one.
    pub(crate) firmware: String,
    /// The folder for files of the run; `None`: a private one.
    pub(crate) work_dir: Option<PathBuf>,
    /// Log what is run.
    pub(crate) verbose: bool,
    /// Log what compilers print.
    pub(crate) build_verbose: bool,
    /// Run for a benchmark: traces are on.
    pub(crate) benchmark: bool,
    /// Record traces; boards only.
    pub(crate) trace: bool,
    /// Record traces through system calls.
    pub(crate) trace_use_syscall: bool,
    /// Remove a private work folder when the device is closed.
    pub(crate) clean_work_dir: bool,
    /// Kalray's folder of tools and libraries.
    pub(crate) sdk: Option<PathBuf>,
    /// The folder that has `mppa/` and `lib/firmware/`.
    pub(crate) root: PathBuf,
    /// PoCL is offered in place of an MPPA, for tests.
    pub(crate) stand_in: bool,
}

impl MppaConfig {
    /// Reads the configuration from `options`, else from `environment`, else takes the defaults.
    ///
    /// # Errors
    /// `InvalidArgument`, which names the option or the variable and the valid values.
    pub(crate) fn resolve(environment: &Environment, options: &Options) -> Result<Self> {
        let source = settings::Source { environment, options };
        let benchmark = flag(source, "benchmark", "BENCHMARK", false)?;
        let trace = match environment.text(TRACE) {
            Some(_) => TRACE,
            None => environment::POCL_TRACE,
        };
        let arch = choice(source, "arch", "RUNTIME_MPPA_ARCH", &Arch::NAMES)?;
        let config = Self {
            platform: choice(source, "platform", "PLATFORM", &Platform::NAMES)?.unwrap_or_default(),
            arch,
            firmware: firmware(source)?,
            work_dir: path(source, "work_dir", "RUNTIME_MPPA_WORK_DIR")?,
            verbose: flag(source, "verbose", "RUNTIME_MPPA_VERBOSE", false)?,
            build_verbose: flag(source, "build_verbose", "RUNTIME_MPPA_BUILD_VERBOSE", false)?,
            benchmark,
            trace: flag(source, "trace", trace, false)? || benchmark,
            trace_use_syscall: flag(source, "trace_use_syscall", "MPPA_TRACE_USE_SYSCALL", true)?,
            clean_work_dir: flag(source, "clean_work_dir", "CLEAN_WORK_DIR", true)?,
            sdk: path(source, "sdk", environment::SDK)?,
            root: path(source, "root", environment::ROOT)?.unwrap_or_else(|| PathBuf::from("/")),
            stand_in: flag(source, "stand_in", environment::STAND_IN, false)?,
        };
        config.check_traces()?;
        Ok(config)
    }

    fn check_traces(&self) -> Result<()> {
        if !self.trace || self.platform == Platform::Hardware {
            return Ok(());
        }
        let (what, variable) = if self.benchmark { ("benchmark", "BENCHMARK") } else { ("trace", TRACE) };
        Err(Error::invalid(format!(
            "option \"{what}\" (or {variable}) needs a board: the platform \"{}\" records no traces; use platform \"hw\", or turn \
             it off",
            self.platform.name()
        )))
    }

    /// The same for another platform.
    ///
    /// # Errors
    /// `InvalidArgument` if that platform does not support what was asked for.
    pub(crate) fn on(&self, platform: Platform) -> Result<Self> {
        let config = Self { platform, ..self.clone() };
        config.check_traces().map(|()| config)
    }

    /// The architecture that code is compiled for, on a device without one of its own.
    pub(crate) fn arch(&self) -> Arch {
        self.arch.unwrap_or_default()
    }

    /// The path of the firmware for this architecture; `None` if its folder is unknown because there is no SDK.
    pub(crate) fn firmware_path(&self, arch: Arch) -> Option<PathBuf> {
        if Path::new(&self.firmware).is_absolute() {
            return Some(PathBuf::from(&self.firmware));
        }
        let folder = match self.platform {
            Platform::Hardware => self.root.join("lib/firmware/kalray/opencl"),
            Platform::Iss | Platform::Qemu => self.sdk.as_ref()?.join("share/pocl/linux_pcie"),
        };
        Some(folder.join(arch.firmware_folder()).join(&self.firmware))
    }

    /// The firmware as the offload library takes it: on boards its name below the folder of all firmware, on simulators the
    /// configured name.
    pub(crate) fn offload_firmware(&self, arch: Arch) -> Option<String> {
        if self.platform != Platform::Hardware {
            return Some(self.firmware.clone());
        }
        let path = self.firmware_path(arch)?;
        let firmware = self.root.join("lib/firmware");
        let name = path.strip_prefix(&firmware).unwrap_or(&path);
        name.to_str().map(str::to_owned)
    }

    /// Kalray's OpenCL library.
    pub(crate) fn opencl_library(&self) -> Option<PathBuf> {
        self.sdk.as_ref().map(|sdk| sdk.join("lib/libOpenCL.so"))
    }

    /// The folder that collects the traces of whole programs; `None` if none are recorded, or no folder was asked for.
    pub(crate) fn trace_folder(&self) -> Option<PathBuf> {
        self.work_dir.as_ref().filter(|_| self.trace).map(|folder| folder.join("traces"))
    }

    /// The variables that a program on an MPPA, or its simulator, is started with.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![("PLATFORM", self.platform.name().to_owned())];
        if self.trace {
            let through_calls = if self.trace_use_syscall { " MPPA_TRACE_USE_SYSCALL=1" } else { "" };
            variables.push((TRACE, "1".to_owned()));
            variables.push(("MPPA_ENVP", format!("MPPA_TRACE_ENABLE_META=1{through_calls}")));
        }
        variables
    }

    /// The variables that Kalray's OpenCL library reads, once per process.
    pub(crate) fn opencl_variables(&self) -> [(&'static str, String); 2] {
        let trace = if self.trace { "1" } else { "0" };
        [("POCL_MPPA_FIRMWARE_NAME", self.firmware.clone()), ("POCL_MPPA_TRACE_ENABLE", trace.to_owned())]
    }
}

fn firmware(source: settings::Source<'_>) -> Result<String> {
    let Some((text, from)) = source.text("firmware", "POCL_MPPA_FIRMWARE_NAME")? else {
        return Ok(FIRMWARE[0].to_owned());
    };
    if FIRMWARE.contains(&text) || Path::new(text).is_absolute() {
        return Ok(text.to_owned());
    }
    Err(Error::invalid(format!(
        "{from} cannot be \"{text}\"; valid: {}, or the absolute path of another firmware",
        FIRMWARE.join(", ")
    )))
}

/// The options at open.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::device("platform", "", "Where kernels run; by default, where the opened device is.")
            .choices(&["", "hw", "iss", "qemu"]),
        OptionSpec::device("arch", "", "Architecture; by default that of the board, or kv3-2 on simulators.")
            .choices(&["", "kv3-1", "kv3-2"]),
        OptionSpec::device_code(
            "firmware",
            FIRMWARE[0],
            "Firmware: ocl_fw_l1.elf (L2 cache off), ocl_fw_l2_d_1m.elf (on), or an absolute path.",
        ),
        OptionSpec::device_code(
            "work_dir",
            "",
            "Folder for files of the run, an absolute path; by default a private one.",
        ),
        OptionSpec::device("verbose", false, "Log the commands that are run."),
        OptionSpec::device(
            "build_verbose",
            false,
            "Log what the compiler of the offload library's shim prints.",
        ),
        OptionSpec::device("benchmark", false, "Run for a benchmark: turns traces on."),
        OptionSpec::device("trace", false, "Record traces; boards only."),
        OptionSpec::device("trace_use_syscall", true, "Record traces through system calls."),
        OptionSpec::device("clean_work_dir", true, "Remove a private work folder when the device is closed."),
        OptionSpec::device_code(
            "sdk",
            "",
            "Kalray's toolchain, an absolute path; by default KALRAY_TOOLCHAIN_DIR.",
        ),
        OptionSpec::device_code("root", "/", "Folder that has the driver's tree (mppa/) and lib/firmware/."),
        OptionSpec::device(
            "stand_in",
            false,
            "false refuses to open a stand-in, whatever the environment says.",
        ),
    ]
}

#[cfg(test)]
mod tests;
