//! A vendor's backend built on this crate: a name of its own, a device filter, and the quirks of its driver.
//!
//! Here the vendor is PoCL, with the restrictions of an old accelerator driver: serialised calls, small groups, and no memory but
//! `cl_mem` buffers. `runtime conformance target/debug/examples/libvendor.so` tests the code paths for such drivers.

use runtime_core::backend::{Backend, Log, OptionSpec, Source};
use runtime_core::code::CompiledCode;
use runtime_core::{DeviceInfo, Options, Result};
use runtime_opencl::{DeviceFilter, OpenCl, OpenClDevice, Partition, Quirks};

/// The vendor's devices.
#[derive(Debug)]
pub struct Vendor(OpenCl);

// SAFETY: `OpenCl` does everything, and filter and quirks are true of its devices.
#[allow(unsafe_code, reason = "guarantees that the backend is sound")]
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
            // Do not copy this: PoCL continues after a failed command. It is set to test the code path for drivers that do not.
            fails_for_good: true,
            group_items: Some(256),
            partition: Partition::Equally(1),
            ..Quirks::default()
        };
        // SAFETY: the system's ICD loader, and quirks that are safe with PoCL; the rest is the caller's promise.
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

    fn architecture(&self, architecture: &str) -> Result<DeviceInfo> {
        self.0.architecture(architecture)
    }

    fn compile_for(&self, architecture: &str, source: &Source<'_>) -> Result<CompiledCode> {
        self.0.compile_for(architecture, source)
    }
}

runtime_core::export_backend!(Vendor);
