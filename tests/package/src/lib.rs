//! A program that ships its kernel in its own executable, compiled by its build script.

#![allow(unsafe_code, reason = "loads the code that the build script compiled")]

use runtime_core::{CommonRuntime, Geometry, Result, read_write};
use runtime_package::{Choice, Package};

static KERNELS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/scale.rtpkg"));

/// The package in the executable.
///
/// # Errors
/// None, unless the executable is damaged.
pub fn package() -> Result<Package> {
    Package::from_bytes(KERNELS)
}

/// Multiplies values by a factor on a device. Returns which code did it.
///
/// # Errors
/// Any error of the device.
pub fn scale(device: &dyn CommonRuntime, values: &mut [f32], factor: f32) -> Result<Choice> {
    // SAFETY: the build script made the package.
    let (module, choice) = unsafe { package()?.load(device, "scale") }?;
    let tensor = device.tensor([values.len()], values)?;
    device.queue()?.call(
        &module.kernel("my_scale_f32")?,
        Geometry::single(),
        (read_write(&tensor), factor),
    )?;
    values.copy_from_slice(&tensor.to_vec::<f32>()?);
    Ok(choice)
}
