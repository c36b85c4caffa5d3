//! A backend of one vendor on this crate: its own name, a filter of devices, and what their driver does differently.
//!
//! Here the vendor is PoCL, with as little as an old driver for accelerators has: one thread at a time, small groups, and no
//! memory but buffers. `runtime conformance target/debug/examples/libvendor.so` tests the ways that only such a driver takes.

use runtime_core::backend::{Backend, Log};
use runtime_core::{DeviceInfo, OptionSpec, Options, Result};
use runtime_opencl::{DeviceFilter, OpenCl, OpenClDevice, Partition, Quirks};

/// The vendor's devices.
#[derive(Debug)]
pub struct Vendor(OpenCl);

// SAFETY: everything is made by `OpenCl`, for devices of which the filter and the quirks are true.
#[allow(unsafe_code, reason = "vouches for the backend")]
unsafe impl Backend for Vendor {
    const NAME: &'static str = "vendor";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Device = OpenClDevice;

    unsafe fn open(log: Log) -> Result<Self> {
        let filter = DeviceFilter { platform: Some("Portable".to_owned()), ..DeviceFilter::default() };
        let quirks = Quirks {
            serial: true,
            svm: false,
            usm: false,
            // Not to be copied: PoCL goes on behind a command that failed. It is set so that the ways of such drivers are tested.
            fails_for_good: true,
            group_items: Some(256),
            partition: Partition::Equally(1),
            ..Quirks::default()
        };
        // SAFETY: the system's loader of drivers, and quirks that PoCL bears; the rest is the caller's promise.
        Ok(Self(unsafe { OpenCl::with(filter, quirks, log) }))
    }

    fn options() -> Vec<OptionSpec> {
        OpenCl::options()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        self.0.devices()
    }

    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<OpenClDevice> {
        self.0.open_device(index, sub, options)
    }
}

runtime_core::export_backend!(Vendor);
