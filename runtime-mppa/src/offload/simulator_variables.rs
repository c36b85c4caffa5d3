//! The variables that a program needs from its start to reach a simulator behind the offload library.

use std::path::PathBuf;

use runtime_core::Options;

use super::simulator_folder::own_name;
use crate::config::{MppaConfig, Platform};
use crate::environment::{Environment, SIMULATOR_FIRMWARE, SIMULATOR_FOLDER, SIMULATOR_MODE};

/// The variables to start a process with that opens `device` with `options`. None if it is not a simulator behind the offload library
/// (`mppa:offload-iss`, `mppa:offload-qemu`), `environment` configures simulators already, or the configuration is wrong, which
/// opening the device reports.
///
/// Each call names another folder for the simulator, below the option `work_dir` or the system's temporary folder.
#[must_use]
pub fn simulator_variables(
    device: &str,
    environment: &Environment,
    options: &Options,
) -> Vec<(&'static str, String)> {
    let is_configured =
        [SIMULATOR_MODE, SIMULATOR_FOLDER].iter().any(|name| environment.text(name).is_some());
    let config = platform(device).filter(|_| !is_configured).and_then(|platform| {
        let config = MppaConfig::resolve(environment, options).ok()?;
        config.on(platform).ok()
    });
    let folder = config.as_ref().and_then(|config| new_folder(config)?.to_str().map(str::to_owned));
    let (Some(config), Some(folder)) = (config, folder) else { return Vec::new() };
    let firmware = SIMULATOR_FIRMWARE.map(|name| (name, config.firmware.clone()));
    let mode = (SIMULATOR_MODE, super::simulator::SIMULATED.to_owned());
    [mode, (SIMULATOR_FOLDER, folder)].into_iter().chain(firmware).collect()
}

/// The platform of a simulator with this device string.
fn platform(device: &str) -> Option<Platform> {
    let name = device.strip_prefix("mppa:")?;
    let is_named = |platform: &Platform| name.eq_ignore_ascii_case(&format!("offload-{}", platform.name()));
    [Platform::Iss, Platform::Qemu].into_iter().find(is_named)
}

/// A path that no other process uses.
fn new_folder(config: &MppaConfig) -> Option<PathBuf> {
    let parent = config.work_dir.clone().unwrap_or_else(std::env::temp_dir);
    std::path::absolute(parent.join(own_name(config.platform.name()))).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn variables(
        device: &str,
        environment: &[(&str, &str)],
        options: &Options,
    ) -> Vec<(&'static str, String)> {
        let environment = environment.iter().copied().collect();
        simulator_variables(device, &environment, options)
    }

    #[test]
    fn a_simulator_gets_a_folder_of_its_own_and_the_firmware() {
        let options = Options::new().with("work_dir", "/w").with("firmware", "ocl_fw_l2_d_1m.elf");
        let one = variables("mppa:offload-iss", &[], &options);
        let names: Vec<_> = one.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            names,
            [
                "MPPA_RPROC_PLATFORM_MODE",
                "MPPA_RPROC_SIM_PATH",
                "OMP_MPPA_FIRMWARE_NAME",
                "MLIR_MPPA_FIRMWARE_NAME"
            ]
        );
        assert_eq!(one[0].1, "sim");
        assert!(one[1].1.starts_with("/w/runtime-mppa-iss-"), "{one:?}");
        assert_eq!([&*one[2].1, &*one[3].1], ["ocl_fw_l2_d_1m.elf"; 2]);
        let other = variables("mppa:Offload-QEMU", &[], &Options::new());
        assert!(
            Path::new(&other[1].1).is_absolute() && other[1].1.contains("runtime-mppa-qemu-"),
            "{other:?}"
        );
    }

    #[test]
    fn other_devices_and_processes_for_simulators_get_none() {
        for device in ["mppa:offload", "mppa:iss", "mppa", "mppa:0", "opencl:offload-iss", ""] {
            assert_eq!(variables(device, &[], &Options::new()), [], "{device}");
        }
        for set in [SIMULATOR_MODE, SIMULATOR_FOLDER] {
            assert_eq!(variables("mppa:offload-iss", &[(set, "x")], &Options::new()), [], "{set}");
        }
        let wrong = Options::new().with("trace", true);
        assert_eq!(
            variables("mppa:offload-iss", &[], &wrong),
            [],
            "opening it says that simulators record no traces"
        );
    }
}
