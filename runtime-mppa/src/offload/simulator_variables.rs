//! The variables that a program needs from its start to reach a simulator behind the offload library.

use runtime_core::{Options, Result};

use super::simulator::SIMULATED;
use super::simulator_folder::own_name;
use crate::config::{MppaConfig, Platform};
use crate::environment::{Environment, SIMULATOR_FIRMWARE, SIMULATOR_FOLDER, SIMULATOR_MODE};
use crate::process::io_error;

/// The variables to start a process with that opens `device` with `options`. None if it is not a simulator behind the offload library
/// (`offload-iss`, `offload-qemu`), or `environment` configures simulators already.
///
/// Each call names another folder for the simulator, below the option `work_dir` or the system's temporary folder.
///
/// # Errors
/// `InvalidArgument` if the configuration is wrong.
pub(crate) fn simulator_variables(
    device: &str,
    environment: &Environment,
    options: &Options,
) -> Result<Options> {
    let is_configured =
        [SIMULATOR_MODE, SIMULATOR_FOLDER].iter().any(|name| environment.text(name).is_some());
    let is_named = |platform: &Platform| device.eq_ignore_ascii_case(&format!("offload-{}", platform.name()));
    let platform = [Platform::Iss, Platform::Qemu].into_iter().find(is_named);
    let Some(platform) = platform.filter(|_| !is_configured) else { return Ok(Options::new()) };
    let config = MppaConfig::resolve(environment, options)?.on(platform)?;
    let parent = config.work_dir.clone().unwrap_or_else(std::env::temp_dir);
    // No other process uses this path.
    let folder = std::path::absolute(parent.join(own_name(platform.name())))
        .map_err(|error| io_error(&parent, error))?;
    let variables =
        Options::new().with(SIMULATOR_MODE, SIMULATED).with(SIMULATOR_FOLDER, folder.display().to_string());
    Ok(SIMULATOR_FIRMWARE
        .iter()
        .fold(variables, |variables, name| variables.with(name, config.firmware.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(device: &str, environment: &[(&str, &str)], options: &Options) -> Vec<(String, String)> {
        let environment = environment.iter().copied().collect();
        let variables = simulator_variables(device, &environment, options).unwrap();
        variables.iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
    }

    #[test]
    fn a_simulator_gets_a_folder_of_its_own_and_the_firmware() {
        let options = Options::new().with("work_dir", "/w").with("firmware", "ocl_fw_l2_d_1m.elf");
        let one = variables("offload-iss", &[], &options);
        let names: Vec<_> = one.iter().map(|(name, _)| name.as_str()).collect();
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
        let other = variables("Offload-QEMU", &[], &Options::new());
        assert!(other[1].1.starts_with('/') && other[1].1.contains("runtime-mppa-qemu-"), "{other:?}");
    }

    #[test]
    fn other_devices_and_processes_for_simulators_get_none() {
        for device in ["offload", "iss", "0", "mppa:offload-iss", ""] {
            assert_eq!(variables(device, &[], &Options::new()), [], "{device}");
        }
        for set in [SIMULATOR_MODE, SIMULATOR_FOLDER] {
            assert_eq!(variables("offload-iss", &[(set, "x")], &Options::new()), [], "{set}");
        }
        let wrong = Options::new().with("trace", true);
        let error = simulator_variables("offload-iss", &Environment::default(), &wrong).unwrap_err();
        assert!(error.message().contains("needs a board"), "{error}");
    }
}
