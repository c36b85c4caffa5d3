//! Kalray MPPA devices: boards, simulators, and a stand-in for tests.
//!
//! **No developer of this crate has an MPPA or its SDK.** It is written from public sources and tested on stand-ins, which are
//! named so; `docs/mppa.md` says what was tested.
//!
//! | device | what it is | how it is reached |
//! | --- | --- | --- |
//! | `mppa:0`, `mppa:1`, … | the chips of all boards, with their clusters as sub-devices (`mppa:0.3`) | Kalray's OpenCL library in the SDK |
//! | `mppa:offload` | the same chips | Kalray's offload library in the SDK |
//! | `mppa:offload-iss`, `mppa:offload-qemu` | simulated chips, in a process with the variables of [`Mppa::process_variables`](Backend::process_variables) | the offload library; `kvx-cluster`, `kvx-qemu-offload-bridge` |
//! | `mppa:jtag` | a board that runs whole programs | `kvx-jtag-runner` |
//! | `mppa:iss`, `mppa:qemu` | simulators that run whole programs | `kvx-mppa` or `kvx-cluster`; `qemu-system-kvx` |
//! | `stand-in (PoCL), not an MPPA` | PoCL with the limits of an MPPA, only if `RUNTIME_MPPA_STAND_IN` is 1 | the system's OpenCL loader |
//!
//! Devices of the platform in the variable `PLATFORM` come first. `docs/mppa.md` has all settings; options at open precede
//! the environment. A setting that Kalray's OpenCL library reads from the environment, once per process, cannot be changed by an
//! option: opening then fails and names the variable.
//!
//! # Whole programs
//!
//! A program is an ELF file for the architecture of the device. It gets its arguments on the command line: scalars as numbers,
//! tensors as paths of files with their contents, which are read back after the run. It runs in a process group that ends with it
//! or at the deadline, and its output is in the error if it fails.
//!
//! # Counters
//!
//! [`counters`] has the names, events and reductions of an MPPA's counters. Devices of the offload library read them, with the help
//! of the program that is measured.
//!
//! # Offload library
//!
//! [`offload`] calls Kalray's offload library. Its devices run functions `void kernel(void *args)` of ELF files, and
//! host-driven modules: shared objects of this machine that use the library themselves.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod board_diag;
mod compiler;
pub mod config;
pub mod counters;
mod device;
mod driver_tree;
mod elf;
mod enumeration;
mod environment;
pub mod offload;
mod opencl;
mod plain_text;
mod process;
mod program;
mod queue;
mod readiness;
mod report;
mod template;
mod tools;
mod transport;
mod work_folder;

#[cfg(test)]
mod fixture;

pub use device::MppaDevice;
pub use elf::Elf;
pub use transport::{ByTransport, MppaBuffer, MppaGraph, MppaKernel, MppaModule, MppaQueue};

use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::backend::{Backend, Level, LinkedBackend, Log, OptionScope, OptionSpec, Source};
use runtime_core::code::CompiledCode;
use runtime_core::{DeviceInfo, Error, ErrorKind, Options, Result};
use runtime_opencl::OpenCl;

use config::{Arch, MppaConfig};
use device::Transport;
use enumeration::{ListedDevice, Machine, Route};
use environment::Environment;
use offload::{BuildLog, Limits, OPEN_CHIPS, OffloadDevice, SimulatorPlan, Wanted};
use program::ProgramDevice;
use readiness::Readiness;
use tools::Tools;

/// The backend's state: the devices of this machine, once they are listed.
#[derive(Debug)]
pub struct Mppa {
    log: Log,
    listed: Mutex<Option<Arc<Listed>>>,
}

/// The devices, and what they were listed from.
#[derive(Debug)]
struct Listed {
    environment: Environment,
    config: MppaConfig,
    kalray: Option<OpenCl>,
    stand_in: Option<OpenCl>,
    devices: Vec<ListedDevice>,
}

impl Listed {
    fn read(environment: Environment, log: Log) -> Result<Self> {
        // `Unavailable`, because other programs use variables such as `PLATFORM` for something else.
        let config = MppaConfig::resolve(&environment, &Options::new())
            .map_err(|error| unavailable(error.message()))?;
        let (kalray, opencl) = match opencl::kalray(&config, log) {
            Ok(kalray) => {
                let devices = kalray.devices();
                (Some(kalray), devices)
            }
            Err(error) => (None, Err(error)),
        };
        let stand_in = config.stand_in.then(|| opencl::stand_in(log));
        let pocl = stand_in.as_ref().map(Backend::devices);
        let tools = Tools::new(config.sdk.as_deref(), &environment);
        let machine =
            Machine { config: &config, environment: &environment, tools: &tools, opencl, pocl, log };
        let devices = machine.list()?;
        Ok(Self { environment, config, kalray, stand_in, devices })
    }

    /// The configuration of a device that is opened with `options`, for the device's architecture unless they name another.
    fn config(&self, device: &ListedDevice, options: &Options) -> Result<MppaConfig> {
        let mut config = MppaConfig::resolve(&self.environment, options)?;
        config.arch = config.arch.or_else(|| Arch::find(device.info.arch.as_deref()?));
        let route = device.route;
        let asked = options.text("platform").filter(|name| !name.is_empty());
        let platform = match route {
            Route::Program(platform) | Route::Simulator(platform) => platform,
            _ => config::Platform::Hardware,
        };
        if asked.is_some_and(|name| name != platform.name()) {
            return Err(Error::invalid(format!(
                "option \"platform\" is \"{}\", but this device is of platform \"{}\"; open a device of the other platform",
                config.platform.name(),
                platform.name()
            )));
        }
        if config.root != self.config.root
            || config.sdk != self.config.sdk && !matches!(route, Route::Program(_))
        {
            return Err(Error::invalid(
                "options \"root\" and \"sdk\" cannot change which devices were listed; set RUNTIME_MPPA_ROOT and \
                 KALRAY_TOOLCHAIN_DIR before the program starts",
            ));
        }
        config.on(platform)
    }

    fn kernels(&self, opencl: Option<&OpenCl>, index: u32, sub: Option<u32>) -> Result<MppaDevice> {
        let opencl = opencl.ok_or_else(|| Error::new(ErrorKind::Internal, "no OpenCL library was loaded"))?;
        opencl.open_device(index, sub, &Options::new()).map(|device| MppaDevice(Transport::OpenCl(device)))
    }

    /// How a chip of the offload library is opened, on the platform of the configuration.
    fn wanted(&self, config: &MppaConfig, position: u32, options: &Options) -> Result<(Wanted, Limits)> {
        let platform = config.platform;
        // A wrong value is refused on boards, too.
        let Readiness { text, timeout } = Readiness::of(options)?;
        let (simulator, ready) = match platform {
            config::Platform::Hardware => (None, None),
            _ => {
                let tools = Tools::new(config.sdk.as_deref(), &self.environment);
                (Some(SimulatorPlan::new(config, &self.environment, &tools, text)?), Some(timeout))
            }
        };
        let firmware = config.offload_firmware(config.arch()).ok_or_else(no_sdk)?;
        Ok((Wanted { platform, position, firmware, simulator }, Limits::new(options, ready)?))
    }

    /// Opens a chip of the offload library, or one of its clusters.
    #[allow(unsafe_code, reason = "vouches for the SDK")]
    fn offload(
        &self,
        config: &MppaConfig,
        (wanted, limits): (Wanted, Limits),
        cluster: Option<u32>,
        log: Log,
    ) -> Result<MppaDevice> {
        let sdk = config.sdk.as_deref().ok_or_else(no_sdk)?;
        let level = if config.build_verbose { Level::Warning } else { Level::Debug };
        let log = BuildLog { log, level };
        // SAFETY: the folder is the SDK, which the user installed.
        let chip = unsafe { OPEN_CHIPS.open(sdk, wanted, limits, log) }?;
        Ok(MppaDevice(Transport::Offload(Box::new(OffloadDevice::new(chip, config.arch(), cluster)))))
    }
}

fn no_sdk() -> Error {
    unavailable("no SDK: KALRAY_TOOLCHAIN_DIR is not set; set it")
}

fn unavailable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unavailable, message)
}

impl Mppa {
    /// The devices, listed once, so that their indices are stable.
    fn listed(&self) -> Result<Arc<Listed>> {
        let mut listed = self.listed.lock();
        if let Some(listed) = &*listed {
            return Ok(Arc::clone(listed));
        }
        let read = Arc::new(Listed::read(Environment::of_process(), self.log)?);
        Ok(Arc::clone(listed.insert(read)))
    }
}

/// The environment of this process, and the configuration that it gives.
fn process_config() -> Result<(Environment, MppaConfig)> {
    let environment = Environment::of_process();
    let config = MppaConfig::resolve(&environment, &Options::new())?;
    Ok((environment, config))
}

// SAFETY: kernels, memory and queues are those of `OpenCl`; whole programs share no memory with this process.
#[allow(unsafe_code, reason = "guarantees that the backend is sound")]
unsafe impl Backend for Mppa {
    const NAME: &'static str = "mppa";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Device = MppaDevice;

    unsafe fn open(log: Log) -> Result<Self> {
        Ok(Self { log, listed: Mutex::default() })
    }

    fn options() -> Vec<OptionSpec> {
        let of_modules = OpenCl::options().into_iter().filter(|spec| spec.scope == OptionScope::Module);
        let ours = config::options().into_iter().chain(program::options()).chain(readiness::options());
        let ours = ours.chain([offload::timeout_option()]).chain(offload::module_options());
        ours.chain(of_modules).collect()
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        let listed = self.listed()?;
        Ok((0u32..).zip(&listed.devices).flat_map(|(index, device)| device.infos(index)).collect())
    }

    fn architecture(&self, architecture: &str) -> Result<DeviceInfo> {
        let (_, config) = process_config()?;
        compiler::architecture(architecture, &config, self.log)
    }

    fn compile_for(&self, architecture: &str, source: &Source<'_>) -> Result<CompiledCode> {
        let (environment, config) = process_config()?;
        compiler::compile_for(architecture, source, (&config, &environment, self.log))
    }

    fn diagnose(&self) -> Result<Options> {
        Ok(report::diagnose(&Environment::of_process()))
    }

    fn process_variables(&self, device: &str, options: &Options) -> Result<Options> {
        offload::simulator_variables(device, &Environment::of_process(), options)
    }

    fn open_device(&self, index: u32, sub: Option<u32>, options: &Options) -> Result<MppaDevice> {
        let listed = self.listed()?;
        let device = listed.devices.get(index as usize).ok_or_else(|| {
            let message =
                format!("no device {index}; valid: 0 to {}", listed.devices.len().saturating_sub(1));
            Error::new(ErrorKind::NotFound, message)
        })?;
        if let Some(reason) = &device.info.unavailable_reason {
            return Err(unavailable(reason));
        }
        let config = listed.config(device, options)?;
        match device.route {
            Route::OpenCl(opencl) => {
                opencl::check_process_wide(&listed.config, &config, options)?;
                listed.kernels(listed.kalray.as_ref(), opencl, sub)
            }
            Route::StandIn(_) if !config.stand_in => {
                Err(unavailable("option \"stand_in\" is false, and this device is a stand-in; open an MPPA"))
            }
            Route::StandIn(pocl) => listed.kernels(listed.stand_in.as_ref(), pocl, sub),
            Route::Offload(_) | Route::Simulator(_) => {
                let position = if let Route::Offload(position) = device.route { position } else { 0 };
                let wanted = listed.wanted(&config, position, options)?;
                listed.offload(&config, wanted, sub, self.log)
            }
            Route::Program(_) => {
                let tools = Tools::new(config.sdk.as_deref(), &listed.environment);
                let device = ProgramDevice::open(config, &tools, options, self.log)?;
                Ok(MppaDevice(Transport::Program(Box::new(device))))
            }
            Route::Nowhere => Err(unavailable("it is only listed")),
        }
    }
}

/// This backend, for a program that links it in and registers it.
#[must_use]
pub const fn backend() -> LinkedBackend {
    LinkedBackend::of::<Mppa>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::FakeRoot;

    #[test]
    fn a_variable_that_means_something_else_only_makes_the_devices_unavailable() {
        let root = FakeRoot::new();
        let error = Listed::read(root.environment(&[("PLATFORM", "linux")]), Log::silent()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("PLATFORM cannot be \"linux\"; valid: hw, iss, qemu"), "{error}");
    }

    #[test]
    fn options_fit_the_device_that_is_opened() {
        let root = FakeRoot::new();
        root.tool("bin/kvx-cluster", "");
        let listed = Listed::read(root.environment(&[]), Log::silent()).unwrap();
        let iss = &listed.devices[0];
        let given = |key: &str, value: &str| listed.config(iss, &Options::new().with(key, value));
        assert_eq!(given("arch", "kv3-1").unwrap().platform, config::Platform::Iss);
        given("platform", "iss").unwrap();
        given("sdk", "/other").unwrap();
        for (key, value, words) in [
            ("platform", "qemu", "of platform \"iss\""),
            ("root", "/other", "RUNTIME_MPPA_ROOT"),
            ("firmware", "x", "ocl_fw_l1.elf"),
        ] {
            let error = given(key, value).unwrap_err();
            assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains(words), "{error}");
        }
        let traced = listed.config(iss, &Options::new().with("trace", true)).unwrap_err();
        assert!(traced.message().contains("needs a board"), "{traced}");
        let on = |route| ListedDevice { route, ..iss.clone() };
        let simulated =
            listed.config(&on(Route::Offload(0)), &Options::new().with("platform", "qemu")).unwrap_err();
        assert!(simulated.message().contains("of platform \"hw\""), "{simulated}");
        assert!(listed.config(&on(Route::OpenCl(0)), &Options::new().with("sdk", "/other")).is_err());
    }

    /// The library takes the simulators' firmware by its name, and the simulator's folder from variables that are set before the program starts.
    #[test]
    fn simulators_behind_the_offload_library_need_the_variables() {
        let root = FakeRoot::new();
        root.write("sdk/include/mppa_offload_host.h", "");
        root.tool("sdk/bin/kvx-cluster", "");
        let sdk = root.path().join("sdk");
        let read = |more: &[(&str, &str)]| {
            let variables = [&[("KALRAY_TOOLCHAIN_DIR", sdk.to_str().unwrap())], more].concat();
            Listed::read(root.environment(&variables), Log::silent()).unwrap()
        };
        let wanted = |listed: &Listed, key: &str, value: &str| {
            let is_simulator = |device: &&ListedDevice| matches!(device.route, Route::Simulator(_));
            let device = listed.devices.iter().find(is_simulator).unwrap();
            let options = Options::new().with(key, value);
            listed.wanted(&listed.config(device, &options)?, 0, &options)
        };
        let boards = read(&[]);
        let error = wanted(&boards, "arch", "kv3-1").unwrap_err();
        assert!(error.message().contains("MPPA_RPROC_PLATFORM_MODE=sim"), "{error}");
        let simulated = read(&[("MPPA_RPROC_PLATFORM_MODE", "sim"), ("MPPA_RPROC_SIM_PATH", "/s/mymppa")]);
        let (plan, _) = wanted(&simulated, "arch", "kv3-1").unwrap();
        assert_eq!((plan.platform, plan.firmware.as_str()), (config::Platform::Iss, "ocl_fw_l1.elf"));
        assert!(format!("{:?}", plan.simulator).contains("--march=kv3-1"), "{plan:?}");
        assert_ne!(plan, wanted(&simulated, "arch", "kv3-2").unwrap().0);
        assert!(wanted(&simulated, "platform", "hw").unwrap_err().message().contains("of platform \"iss\""));
    }
}
