//! Runs programs on the devices of this machine.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};
use runtime_core::lowering::Lowering;
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, DeviceInfo, DeviceKind, Error, ErrorKind, Geometry, Module, ModuleSource,
    Options, Placement, Queue, Result, Runtime, Tensor, abi,
};

use crate::batch::{Executor, Failure};
use crate::host_checks;
use crate::program::{Buffer, Outputs, Program, join};
use crate::required;

/// A program that takes longer than this, including compilation, hangs.
const RUN_TIMEOUT: Duration = Duration::from_secs(180);
/// Guard bytes on each side of a tensor.
const GUARD_BYTES: usize = 256;
const GUARD: u8 = 0xa5;

/// A device that accepts WGSL.
#[derive(Debug)]
pub struct Device {
    name: String,
    device: Arc<dyn CommonRuntime>,
    queue: Queue,
    /// Load options.
    options: Options,
}

/// All devices that accept WGSL, and a trial for each other device: ignored, or failed if the device is required.
#[must_use]
pub fn all() -> (Vec<Arc<dyn Executor>>, Vec<Trial>) {
    let runtime = Runtime::builder().with_lowering(runtime_kernel::wgsl()).build();
    let quick =
        Runtime::builder().with_lowering(host_checks::quick_to_compile(runtime_kernel::wgsl())).build();
    let (mut executors, mut absent): (Vec<Arc<dyn Executor>>, Vec<Trial>) = (Vec::new(), Vec::new());
    let mut seen = Vec::new();
    for target in runtime.targets() {
        seen.push(target.name.clone());
        match &target.devices {
            Err(error) => absent.push(self::absent(&target.name, &target.name, error)),
            Ok(devices) => {
                for info in devices.iter().filter(|info| info.id.sub.is_none()) {
                    let opened = Device::open(&runtime, info)
                        .and_then(|device| Ok((device, Device::open(&quick, info)?)));
                    match opened {
                        Ok((device, quick)) => {
                            executors.extend(quick.with_two_variants());
                            executors.push(device.with_options("debug", Options::new().with("debug", true)));
                            if info.kind != DeviceKind::Host {
                                executors.push(quick.with_asserted_proofs());
                            }
                            executors.extend(device.with_items_per_thread());
                            executors.extend(quick.with_group_loops("loops_1", "1"));
                            executors.extend(quick.with_group_loops("loops_4", "4"));
                            executors.extend(device.with_group_loops("optimised_loops_4", "4"));
                            executors.push(Arc::new(device));
                        }
                        Err(error) => absent.push(self::absent(&info.id.to_string(), &target.name, &error)),
                    }
                }
            }
        }
    }
    let expected =
        ["host", "opencl", "vulkan"].into_iter().filter(|target| *target == "host" || required(target));
    for target in expected.filter(|target| !seen.iter().any(|name| name == target)) {
        let error = Error::new(ErrorKind::Unavailable, "the backend is not built: `cargo build --workspace`");
        absent.push(self::absent(target, target, &error));
    }
    if seen.iter().any(|name| name == "host") {
        for (name, opened) in host_variants(&runtime) {
            match opened {
                Ok(executor) => executors.push(executor),
                Err(error) => absent.push(failed_to_open(name, &error)),
            }
        }
    }
    (executors, absent)
}

/// Variants of the host: bounds checks in the module instead of its own; reports of accesses that were wrongly proven in
/// range; work-items in the order of their index.
fn host_variants(runtime: &Runtime) -> [(&'static str, Result<Arc<dyn Executor>>); 3] {
    let guarded = host_with(host_checks::in_module());
    let guarded = guarded.map(|device| Arc::new(Device { name: "guarded".to_owned(), ..device }) as _);
    let asserted = host_with(host_checks::quick_to_compile(runtime_kernel::wgsl()))
        .map(|device| device.with_asserted_proofs());
    [("guarded", guarded), ("asserted", asserted), ("serial", serial_host(runtime))]
}

/// The host with another lowering.
fn host_with(lowering: Arc<dyn Lowering>) -> Result<Device> {
    let runtime = Runtime::builder().with_lowering(lowering).build();
    let host = runtime.devices().into_iter().find(|info| info.kind == DeviceKind::Host);
    let host = host.ok_or_else(|| Error::new(ErrorKind::NotFound, "the host is no longer listed"))?;
    Device::open(&runtime, &host)
}

/// A trial for a variant of an available device that fails to open: a failure.
fn failed_to_open(name: &str, error: &Error) -> Trial {
    let reason = error.to_string();
    Trial::test(format!("{name}::open"), move || Err(Failed::from(reason)))
}

/// A trial for a device that is not tested. Devices need not accept a format of the lowering, except the host, which
/// accepts C.
fn absent(name: &str, target: &str, error: &Error) -> Trial {
    let excused = match error.kind() {
        ErrorKind::Unsupported => target != "host" || !required(target),
        ErrorKind::Unavailable => !required(target),
        _ => false,
    };
    let reason = error.to_string();
    Trial::ignorable_test(format!("{name}::open"), move || {
        if excused { Ok(Completion::ignored_with(reason)) } else { Err(Failed::from(reason)) }
    })
}

/// The host with its work-items in the order of their index.
fn serial_host(runtime: &Runtime) -> Result<Arc<dyn Executor>> {
    let device = runtime.open_with("host", &Options::new().with("serial_items", true))?;
    let queue = device.queue()?;
    Ok(Arc::new(Device { name: "serial".to_owned(), device, queue, options: Options::new() }))
}

impl Device {
    fn open(runtime: &Runtime, info: &DeviceInfo) -> Result<Self> {
        let name = info.id.to_string();
        if !info.accepts(&CodeFormat::WGSL) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("{name} does not accept WGSL, only {}", info.format_names().join(", ")),
            ));
        }
        let device = runtime.open(&name)?;
        let queue = device.queue()?;
        Ok(Self { name, device, queue, options: Options::new() })
    }

    /// The same CPU device with two variants of each entry point, which CPUs do not get by default.
    fn with_two_variants(&self) -> Option<Arc<dyn Executor>> {
        let is_cpu = self.device.info().properties.text("type") == Some("cpu");
        is_cpu.then(|| self.with_options("two", Options::new().with("variants", "2")))
    }

    /// The same device with two variants, where accesses that were wrongly proven in range report an error.
    fn with_asserted_proofs(&self) -> Arc<dyn Executor> {
        self.with_options("asserted", Options::new().with("assert_proofs", true).with("variants", "2"))
    }

    /// The same device where an item of an element-wise kernel does the work of four, which the host does in another way.
    fn with_items_per_thread(&self) -> Option<Arc<dyn Executor>> {
        let options = Options::new().with("items_per_thread", "4");
        (self.device.info().kind != DeviceKind::Host).then(|| self.with_options("coarsened", options))
    }

    /// The same device where `count` work-items run a group in loops, in OpenCL C.
    fn with_group_loops(&self, name: &str, count: &'static str) -> Option<Arc<dyn Executor>> {
        let options = Options::new().with("work_items", count);
        let is_opencl = self.device.info().accepts(&CodeFormat::OPENCL_C);
        is_opencl.then(|| self.with_options(name, options))
    }

    /// The same device with load options.
    ///
    /// # Panics
    /// If the device cannot open another queue.
    fn with_options(&self, suffix: &str, options: Options) -> Arc<dyn Executor> {
        let name = format!("{}/{suffix}", self.name);
        let queue = self.device.queue();
        let queue = queue.unwrap_or_else(|error| panic!("{name}: {error}"));
        Arc::new(Self { name, device: self.device.clone(), queue, options })
    }

    fn run_program(&self, module: &Module, program: &Program) -> Result<Outputs, Failure> {
        let kernel = module.kernel(&program.entry).map_err(failure)?;
        let size = kernel.info().group_size.unwrap_or([1; 3]);
        let tensors: Vec<_> = program
            .buffers
            .iter()
            .map(|buffer| self.tensor(buffer))
            .collect::<Result<_>>()
            .map_err(failure)?;
        let mut args: Vec<_> = (tensors.iter().zip(&program.buffers))
            .map(
                |((_, tensor), buffer)| {
                    if buffer.written { Arg::read_write(tensor) } else { Arg::read(tensor) }
                },
            )
            .collect();
        args.extend(program.scalars.iter().map(|(kind, bits)| Arg::scalar_bits(kind.dtype(), *bits)));
        let launched = self.queue.launch(&kernel, Geometry::new(program.groups, size), &args);
        launched.and_then(|event| event.wait_timeout(RUN_TIMEOUT)).map_err(failure)?;
        (tensors.iter().zip(&program.buffers))
            .map(|((whole, _), buffer)| content(whole, buffer.bytes.len()))
            .collect()
    }

    /// Allocates a tensor between guards; returns the whole allocation and the tensor.
    fn tensor(&self, buffer: &Buffer) -> Result<(Tensor, Tensor)> {
        let size = buffer.kind.bytes();
        let (guard, n) = (GUARD_BYTES / size, buffer.bytes.len() / size);
        let whole = self.device.allocate(buffer.kind.dtype(), &[n + 2 * guard], &Placement::default())?;
        let guards = [GUARD; GUARD_BYTES];
        whole.write_bytes(&[&guards[..], &buffer.bytes, &guards].concat())?;
        let inner = whole.slice(0, guard..guard + n)?;
        Ok((whole, inner))
    }
}

/// The content between the guards, which must be intact.
fn content(whole: &Tensor, bytes: usize) -> Result<Vec<u8>, Failure> {
    let array = whole.to_array().map_err(failure)?;
    let (front, rest) = array.bytes().split_at(GUARD_BYTES);
    let (inner, back) = rest.split_at(bytes);
    for (side, guard) in [("in front of", front), ("behind", back)] {
        if let Some(at) = guard.iter().position(|byte| *byte != GUARD) {
            return Err(Failure::Failed(format!("byte {at} {side} the tensor was written")));
        }
    }
    Ok(inner.to_vec())
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failure(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::Unsupported | ErrorKind::OutOfResources => Failure::Unsupported(error.to_string()),
        _ => Failure::Failed(format!("{error}")),
    }
}

impl Executor for Device {
    fn name(&self) -> &str {
        &self.name
    }

    fn supports(&self, need: &str) -> bool {
        let info = self.device.info();
        let property_contains =
            |key: &str, word: &str| info.properties.texts(key).any(|text| text.contains(word));
        match need {
            "f16" => info.capabilities.has(abi::CAP_F16),
            "f64" => info.capabilities.has(abi::CAP_F64),
            // Optional only in Vulkan.
            "i64" => {
                info.id.target != "vulkan" || info.properties.texts("feature").any(|feature| feature == "i64")
            }
            "subgroups" if self.options.value("work_items").is_some() => false,
            // Emulated where there are none, except on Vulkan.
            "subgroups" => {
                info.id.target != "vulkan" || property_contains("sub_group_operation", "arithmetic")
            }
            // An unknown feature must be supported.
            _ => true,
        }
    }

    fn run(&self, programs: &[&Program]) -> Result<Vec<Result<Outputs, Failure>>, Failure> {
        let mut source = ModuleSource::wgsl(&join(programs));
        for (name, value) in &programs[0].constants {
            source = source.constant(name, value);
        }
        for name in programs.iter().flat_map(|program| &program.by_value) {
            source = source.by_value(name);
        }
        if let Some(kind) = programs[0].element {
            source = source.element(kind.dtype());
        }
        for (key, value) in self.options.iter() {
            source = source.option(key, value.clone());
        }
        let module = self.device.load(&source).map_err(failure)?;
        Ok(programs.iter().map(|program| self.run_program(&module, program)).collect())
    }
}
