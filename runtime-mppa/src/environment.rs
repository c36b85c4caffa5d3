//! The environment variables that configure this backend, read once, so that tests can make their own.

use std::collections::BTreeMap;

use runtime_core::backend::is_privileged;

/// Kalray's folder of tools and libraries (`AccessCore`).
pub(crate) const SDK: &str = "KALRAY_TOOLCHAIN_DIR";
/// Where the device tree and the firmware are, instead of `/`.
pub(crate) const ROOT: &str = "RUNTIME_MPPA_ROOT";
/// Offers the stand-in.
pub(crate) const STAND_IN: &str = "RUNTIME_MPPA_STAND_IN";
/// Where programs are searched for.
pub(crate) const PATH: &str = "PATH";

/// Traces, as Kalray's OpenCL library reads it.
pub(crate) const POCL_TRACE: &str = "POCL_MPPA_TRACE_ENABLE";

/// Where the offload library looks for its simulator.
pub(crate) const SIMULATOR_FOLDER: &str = "MPPA_RPROC_SIM_PATH";

/// All variables that are read.
const VARIABLES: [&str; 15] = [
    SDK,
    ROOT,
    STAND_IN,
    PATH,
    "PLATFORM",
    "RUNTIME_MPPA_ARCH",
    "POCL_MPPA_FIRMWARE_NAME",
    "RUNTIME_MPPA_WORK_DIR",
    "RUNTIME_MPPA_VERBOSE",
    "RUNTIME_MPPA_BUILD_VERBOSE",
    "BENCHMARK",
    "MPPA_TRACE_ENABLE",
    POCL_TRACE,
    "MPPA_TRACE_USE_SYSCALL",
    "CLEAN_WORK_DIR",
];

/// Makes the offload library run on a simulator.
pub(crate) const SIMULATOR_MODE: &str = "MPPA_RPROC_PLATFORM_MODE";
/// The firmware, for parts of the SDK that start one by themselves.
pub(crate) const SIMULATOR_FIRMWARE: [&str; 2] = ["OMP_MPPA_FIRMWARE_NAME", "MLIR_MPPA_FIRMWARE_NAME"];

/// Variables of Kalray's libraries and simulators.
const KALRAY_VARIABLES: [&str; 10] = [
    "MPPA_ENVP",
    "POCL_MPPA_EXTRA_EXEC_MODE",
    "POCL_MPPA_EXTRA_MAX_WORKGROUP_SIZE",
    "POCL_MPPA_EXTRA_BUILD_ARCH",
    "POCL_MPPA_EXTRA_BUILD_CFLAGS",
    "POCL_MPPA_EXTRA_BUILD_LFLAGS",
    SIMULATOR_MODE,
    SIMULATOR_FOLDER,
    SIMULATOR_FIRMWARE[0],
    SIMULATOR_FIRMWARE[1],
];

/// Environment variables and their values. An empty variable counts as unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The variables of this process; none in a process with elevated privileges. What is not UTF-8 in a value is replaced.
    pub(crate) fn of_process() -> Self {
        if is_privileged() {
            return Self::default();
        }
        let names = VARIABLES.iter().chain(&KALRAY_VARIABLES);
        // A value that is not UTF-8 is no valid one of any variable, and an error names it.
        let value = |name: &&'static str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
        names.filter_map(|name| Some((*name, value(name)?))).collect()
    }

    /// The value of a variable.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// The variables that a report shows, with their values. `PATH` says more about the user than about this backend.
    pub(crate) fn reported(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        let names = VARIABLES.into_iter().filter(|name| *name != PATH).chain(KALRAY_VARIABLES);
        names.map(|name| (name, self.0.get(name).map(String::as_str)))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
