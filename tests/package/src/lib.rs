//! A program that ships its kernel in its own executable, compiled by its build script.

#![allow(unsafe_code, reason = "loads the code that the build script compiled")]

use runtime_core::{CommonRuntime, Error, Geometry, Result, read_write};
use runtime_package::{Choice, Package};

static SCALE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/scale.rtpkg"));
static SQUARE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/square.rtpkg"));

/// A package in the executable, by the name of its kernel.
///
/// # Errors
/// None, unless the executable is damaged.
pub fn package(name: &str) -> Result<Package> {
    Package::from_bytes(if name == "scale" { SCALE } else { SQUARE })
}

/// Multiplies values by a factor on a device. Returns which code did it.
///
/// # Errors
/// Any error of the device.
pub fn scale(device: &dyn CommonRuntime, values: &mut [f32], factor: f32) -> Result<Choice> {
    // SAFETY: the build script made the package.
    let (module, choice) = unsafe { package("scale")?.load(device, "scale") }?;
    let tensor = device.tensor([values.len()], values)?;
    device.queue()?.call(
        &module.kernel("my_scale_f32")?,
        Geometry::single(),
        (read_write(&tensor), factor),
    )?;
    values.copy_from_slice(&tensor.to_vec::<f32>()?);
    Ok(choice)
}

/// Squares values on a device. Returns which code did it.
///
/// # Errors
/// Any error of the device.
pub fn square(device: &dyn CommonRuntime, values: &mut [f32]) -> Result<Choice> {
    // SAFETY: the build script made the package.
    let (module, choice) = unsafe { package("square")?.load(device, "square") }?;
    let tensor = device.tensor([values.len()], values)?;
    let items = u32::try_from(values.len()).map_err(|_| Error::invalid("these are too many values"))?;
    let geometry = Geometry::cover(items, 64);
    device.queue()?.call(&module.kernel("square")?, geometry, (&tensor,))?;
    values.copy_from_slice(&tensor.to_vec::<f32>()?);
    Ok(choice)
}
