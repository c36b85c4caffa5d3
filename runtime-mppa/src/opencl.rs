//! Kalray's OpenCL library, a fork of PoCL, and PoCL itself as its stand-in.

use runtime_core::backend::Log;
use runtime_core::{Error, Options, Result};
use runtime_opencl::{DeviceFilter, OpenCl, Partition, Quirks};

use crate::config::MppaConfig;
use crate::enumeration;

const PLATFORM: &str = "Portable Computing Language";
const VENDOR: &str = "KALRAY";
const DEVICE: &str = "MPPA";
/// `CL_DEVICE_TYPE_CPU` and `CL_DEVICE_TYPE_ACCELERATOR`.
const CPU: u64 = 1 << 1;
const ACCELERATOR: u64 = 1 << 3;
/// Options at open that the library reads from the environment, once per process.
const PROCESS_WIDE: [&str; 3] = ["firmware", "trace", "benchmark"];

/// Work-items of a group: the processing elements of a cluster.
pub(crate) const GROUP_ITEMS: u32 = 16;

/// What an MPPA's OpenCL does differently.
fn quirks() -> Quirks {
    Quirks {
        // The driver is not thread-safe.
        serial: true,
        // OpenCL 1.2.
        svm: false,
        usm: false,
        group_items: Some(GROUP_ITEMS),
        // The clusters.
        partition: Partition::Equally(1),
        ..Quirks::default()
    }
}

/// The devices of Kalray's library.
///
/// # Errors
/// `Unavailable` without the SDK.
#[allow(unsafe_code, reason = "names a library to load")]
pub(crate) fn kalray(config: &MppaConfig, log: Log) -> Result<OpenCl> {
    let filter = DeviceFilter {
        library: Some(enumeration::library(config)?),
        platform: Some(PLATFORM.to_owned()),
        vendor: Some(VENDOR.to_owned()),
        device: Some(DEVICE.to_owned()),
        types: ACCELERATOR,
    };
    // SAFETY: the library is the SDK's OpenCL, which the user installed, and the quirks only forgo features; core, which calls
    // this backend, upholds the rest of the contract.
    Ok(unsafe { OpenCl::with(filter, quirks(), log) })
}

/// PoCL with the limits of an MPPA.
#[allow(unsafe_code, reason = "names a library to load")]
pub(crate) fn stand_in(log: Log) -> OpenCl {
    let filter = DeviceFilter { platform: Some(PLATFORM.to_owned()), types: CPU, ..DeviceFilter::default() };
    // SAFETY: it loads the system's ICD loader, and the quirks only forgo features; core, which calls this backend, upholds the
    // rest of the contract.
    unsafe { OpenCl::with(filter, quirks(), log) }
}

/// Refuses options that need other variables than the process has: the library reads them once.
///
/// # Errors
/// `Unsupported`, which names the variable to set.
pub(crate) fn check_process_wide(process: &MppaConfig, wanted: &MppaConfig, options: &Options) -> Result<()> {
    let has = process.opencl_variables();
    let differs = wanted.opencl_variables().into_iter().zip(&has).find(|(wanted, has)| wanted != *has);
    let given = PROCESS_WIDE.iter().find(|key| options.value(key).is_some());
    match (differs, given) {
        (Some(((variable, value), (_, has))), Some(key)) => Err(Error::unsupported(format!(
            "option \"{key}\" needs {variable}={value}, but this process has {has}, and Kalray's OpenCL library reads its environment \
             once; set the variable before the program starts, or use a process for each configuration"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime_core::ErrorKind;

    fn config(variables: &[(&str, &str)], options: &Options) -> MppaConfig {
        MppaConfig::resolve(&variables.iter().copied().collect(), options).unwrap()
    }

    #[test]
    fn options_that_the_library_cannot_take_any_more_are_refused() {
        let process = config(&[], &Options::new());
        let l2 = "ocl_fw_l2_d_1m.elf";
        for (key, value, words) in [
            ("firmware", runtime_core::OptionValue::from(l2), "POCL_MPPA_FIRMWARE_NAME=ocl_fw_l2_d_1m.elf"),
            ("trace", true.into(), "POCL_MPPA_TRACE_ENABLE=1"),
            ("benchmark", true.into(), "POCL_MPPA_TRACE_ENABLE=1"),
        ] {
            let options = Options::new().with(key, value);
            let error = check_process_wide(&process, &config(&[], &options), &options).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.message().contains(words) && error.message().contains(key), "{error}");
        }
        let options = Options::new().with("firmware", l2);
        let same = config(&[("POCL_MPPA_FIRMWARE_NAME", l2)], &Options::new());
        check_process_wide(&same, &config(&[], &options), &options).unwrap();
    }

    #[test]
    fn groups_have_at_most_sixteen_items_and_calls_one_owner() {
        let quirks = quirks();
        assert!(quirks.serial && !quirks.svm && !quirks.usm);
        assert_eq!(quirks.group_items, Some(16));
    }
}
