//! Simulators behind the offload library, which reads the choice from the environment, once per process.

use runtime_core::{Error, Result};

use crate::config::{MppaConfig, Platform};
use crate::environment::Environment;

/// Makes the library run on a simulator.
const MODE: &str = "MPPA_RPROC_PLATFORM_MODE";
const SIMULATOR: &str = "sim";

/// Refuses a simulator unless the process was started for one.
///
/// # Errors
/// `Unsupported`, with the variables to set and the command that starts the simulator.
pub(crate) fn check_platform(platform: Platform, config: &MppaConfig, process: &Environment) -> Result<()> {
    let arch = config.arch().name();
    let folder = config.work_dir.as_ref().map_or("WORK_DIR".into(), |folder| folder.display().to_string());
    let folder = format!("{folder}/mymppa");
    let simulator = match platform {
        Platform::Hardware => return Ok(()),
        Platform::Iss => format!(
            "kvx-cluster --disable-cache --march={arch} --no-load-elf --sim-server=SOCKET --mmap --mppa-wdir={folder}"
        ),
        Platform::Qemu => format!("kvx-qemu-offload-bridge --arch {arch} --work-dir {folder}"),
    };
    if process.text(MODE) == Some(SIMULATOR) {
        return Ok(());
    }
    let firmware = &config.firmware;
    Err(Error::unsupported(format!(
        "option \"platform\" is \"{}\", but Kalray's offload library reads its platform from the environment, once per process, and \
         this process was started for boards; before the program starts, run `{simulator}`, and set {MODE}={SIMULATOR}, \
         MPPA_RPROC_SIM_PATH={folder}, OMP_MPPA_FIRMWARE_NAME={firmware} and MLIR_MPPA_FIRMWARE_NAME={firmware}",
        platform.name()
    )))
}

#[cfg(test)]
mod tests {
    use runtime_core::{ErrorKind, Options};

    use super::*;

    #[test]
    fn a_simulator_is_refused_with_the_variables_to_set() {
        let config =
            MppaConfig::resolve(&Environment::default(), &Options::new().with("work_dir", "/w")).unwrap();
        let boards = Environment::default();
        for (platform, tool) in [
            (Platform::Iss, "kvx-cluster --disable-cache --march=kv3-2"),
            (Platform::Qemu, "kvx-qemu-offload-bridge --arch kv3-2 --work-dir /w/mymppa"),
        ] {
            let error = check_platform(platform, &config, &boards).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            for words in [
                tool,
                "MPPA_RPROC_PLATFORM_MODE=sim",
                "MPPA_RPROC_SIM_PATH=/w/mymppa",
                "OMP_MPPA_FIRMWARE_NAME=ocl_fw_l1.elf",
                "MLIR_MPPA_FIRMWARE_NAME=ocl_fw_l1.elf",
            ] {
                assert!(error.message().contains(words), "{words}: {error}");
            }
            check_platform(platform, &config, &[(MODE, SIMULATOR)].into_iter().collect()).unwrap();
        }
        check_platform(Platform::Hardware, &config, &boards).unwrap();
    }
}
