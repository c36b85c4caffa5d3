//! How many registers a kernel may use, on devices that let a program choose.
//!
//! Intel's GPUs split the register file of a thread in two ways: 128 registers and more threads, or 256 and fewer.

use runtime_core::backend::OptionSpec;
use runtime_core::{Error, Options, Result};

use crate::device_caps::DeviceCaps;

/// The values of the option, and the compiler option of each.
const MODES: [(&str, Option<&str>); 4] = [
    ("default", None),
    ("128", Some("-cl-intel-128-GRF-per-thread")),
    ("256", Some("-cl-intel-256-GRF-per-thread")),
    ("auto", Some("-cl-intel-enable-auto-large-GRF-mode")),
];

/// The load option.
pub(crate) fn option() -> OptionSpec {
    OptionSpec::module(
        "registers",
        "default",
        "Registers per work-item on Intel's GPUs: 128, 256, or auto, which lets the driver choose. Other devices have only default.",
    )
    .choices(&MODES.map(|(mode, _)| mode))
}

/// The compiler option for the registers that `options` ask for.
///
/// # Errors
/// `InvalidArgument` on a device that has one mode only.
pub(crate) fn flag(caps: &DeviceCaps, options: &Options) -> Result<Option<&'static str>> {
    match named(options)? {
        Some(_) if !caps.has_register_modes => Err(Error::invalid(
            "option \"registers\": this device has one mode only; use \"default\", or an Intel GPU for 128, 256 and auto",
        )),
        flag => Ok(flag),
    }
}

/// As [`flag`], whatever the device.
///
/// # Errors
/// `InvalidArgument`, which lists the modes.
pub(crate) fn named(options: &Options) -> Result<Option<&'static str>> {
    let Some(given) = options.value("registers").map(ToString::to_string) else { return Ok(None) };
    MODES.iter().find(|(mode, _)| *mode == given).map(|(_, flag)| *flag).ok_or_else(|| {
        let modes = MODES.map(|(mode, _)| mode);
        Error::invalid(format!(
            "option \"registers\" cannot be \"{given}\"; it is one of {}",
            modes.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_has_its_compiler_option() {
        let named = |mode: &str| named(&Options::new().with("registers", mode));
        assert_eq!(named("default").unwrap(), None);
        assert_eq!(named("256").unwrap(), Some("-cl-intel-256-GRF-per-thread"));
        assert_eq!(named("auto").unwrap(), Some("-cl-intel-enable-auto-large-GRF-mode"));
        assert!(named("512").unwrap_err().message().contains("default, 128, 256, auto"));
        assert_eq!(named("128").unwrap(), Some("-cl-intel-128-GRF-per-thread"));
        assert_eq!(super::named(&Options::new().with("registers", 128)).unwrap(), named("128").unwrap());
    }
}
