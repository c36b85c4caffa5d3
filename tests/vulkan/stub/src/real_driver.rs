//! The driver that calls are forwarded to.

use std::ffi::c_char;
use std::sync::OnceLock;

use ash::vk;
use libloading::Library;

use crate::{Function, settings};

type Negotiate = unsafe extern "system" fn(*mut u32) -> vk::Result;
type GetProcAddr = unsafe extern "system" fn(vk::Instance, *const c_char) -> Function;

/// The functions that the loader looks up by name.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) negotiate: Negotiate,
    pub(crate) instance_function: GetProcAddr,
    pub(crate) physical_device_function: GetProcAddr,
    _library: Library,
}

/// The driver; `None` if it cannot be loaded.
pub(crate) fn driver() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER.get_or_init(open).as_ref()
}

fn open() -> Option<Driver> {
    let path = settings::value("real")?;
    // SAFETY: a driver may be loaded at any time.
    let library = unsafe { Library::new(path) }.ok()?;
    // SAFETY: the loader-driver interface defines these functions' types.
    let negotiate =
        *unsafe { library.get::<Negotiate>(b"vk_icdNegotiateLoaderICDInterfaceVersion\0") }.ok()?;
    // SAFETY: as above.
    let instance_function = *unsafe { library.get::<GetProcAddr>(b"vk_icdGetInstanceProcAddr\0") }.ok()?;
    // SAFETY: as above.
    let physical_device_function =
        *unsafe { library.get::<GetProcAddr>(b"vk_icdGetPhysicalDeviceProcAddr\0") }.ok()?;
    Some(Driver { negotiate, instance_function, physical_device_function, _library: library })
}
