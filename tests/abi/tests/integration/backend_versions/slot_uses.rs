//! Uses every function of the tables through core's API.

use std::time::Duration;

use runtime_core::backend::LoadOutcome;
use runtime_core::code::Fit;
use runtime_core::device::CounterSet;
use runtime_core::{
    Arg, CommonRuntime, Element, Error, ErrorKind, Event, Geometry, HostArray, Kernel, ModuleSource, Options,
    Queue, Result, Runtime, Tensor,
};

/// The result of a use when the function is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfMissing {
    /// `Unsupported`, and the error names the function.
    Unsupported,
    /// Core works without it.
    Emulated,
}
use IfMissing::{Emulated, Unsupported};

/// A use of one function.
pub(crate) struct SlotUse {
    /// `Table.function`.
    pub(crate) slot: &'static str,
    pub(crate) if_missing: IfMissing,
    /// Whether the use needs no later function of the same table.
    pub(crate) can_be_truncated: bool,
    pub(crate) run: fn(&Runtime) -> Result<()>,
}

const fn truncatable(slot: &'static str, if_missing: IfMissing, run: fn(&Runtime) -> Result<()>) -> SlotUse {
    SlotUse { slot, if_missing, can_be_truncated: true, run }
}

const fn nullable(slot: &'static str, if_missing: IfMissing, run: fn(&Runtime) -> Result<()>) -> SlotUse {
    SlotUse { slot, if_missing, can_be_truncated: false, run }
}

/// All uses.
pub(crate) const SLOT_USES: &[SlotUse] = &[
    nullable("InstanceTable.options", Emulated, everything),
    truncatable("InstanceTable.open", Unsupported, loads),
    nullable("InstanceTable.close", Emulated, everything),
    truncatable("InstanceTable.devices", Unsupported, |runtime| {
        runtime.targets()[0].devices.clone().map(drop)
    }),
    truncatable("InstanceTable.open_device", Unsupported, |runtime| runtime.open("null").map(drop)),
    nullable("DeviceTable.close", Emulated, everything),
    truncatable("DeviceTable.memory_usage", Unsupported, |runtime| {
        runtime.open("null")?.memory_usage("device").map(drop)
    }),
    truncatable("DeviceTable.peer_access", Unsupported, peers),
    truncatable("DeviceTable.telemetry", Unsupported, |runtime| runtime.open("null")?.telemetry().map(drop)),
    truncatable("DeviceTable.throttle_reasons", Unsupported, |runtime| {
        runtime.open("null")?.throttle_reasons().map(drop)
    }),
    truncatable("DeviceTable.processes", Unsupported, |runtime| runtime.open("null")?.processes().map(drop)),
    truncatable("MemoryTable.allocate", Unsupported, |runtime| tensor(&*runtime.open("null")?).map(drop)),
    truncatable("MemoryTable.free", Emulated, everything),
    truncatable("MemoryTable.import_host", Unsupported, imports),
    truncatable("MemoryTable.import_device_memory", Unsupported, adopts),
    truncatable("ModuleTable.load", Unsupported, |runtime| module(&*runtime.open("null")?).map(drop)),
    nullable("ModuleTable.unload", Emulated, everything),
    truncatable("ModuleTable.symbols", Unsupported, |runtime| {
        module(&*runtime.open("null")?)?.symbols().map(drop)
    }),
    truncatable("ModuleTable.kernel", Unsupported, |runtime| {
        kernel(&*runtime.open("null")?, "noop").map(drop)
    }),
    truncatable("ModuleTable.release_kernel", Emulated, everything),
    truncatable("ModuleTable.kernel_info", Emulated, everything),
    truncatable("ModuleTable.occupancy", Unsupported, |runtime| {
        kernel(&*runtime.open("null")?, "noop")?.occupancy(&Geometry::new(1, 64), 0).map(drop)
    }),
    truncatable("InstanceTable.architecture", Unsupported, |runtime| runtime.architecture("null").map(drop)),
    truncatable("InstanceTable.compile_for", Unsupported, |runtime| {
        runtime.compile("null", &two_kernels()).map(drop)
    }),
    truncatable("InstanceTable.diagnose", Unsupported, |runtime| runtime.diagnose("null").map(drop)),
    truncatable("InstanceTable.process_variables", Emulated, |runtime| {
        runtime.process_variables("null", &Options::new()).map(drop)
    }),
    truncatable("ModuleTable.compiler_identity", Emulated, |runtime| {
        let device = runtime.open_with("null", &Options::new().with("compiler", true))?;
        module(&*device)?.kernel("noop").map(drop)
    }),
    truncatable("ModuleTable.compile", Unsupported, compiles),
    truncatable("ModuleTable.compiled_code", Unsupported, compiles),
    truncatable("ModuleTable.release_compiled", Emulated, compiles),
    truncatable("ModuleTable.fits", Unsupported, |runtime| {
        match runtime.open("null")?.fits(&two_kernels())? {
            Fit::Recompile => Ok(()),
            other => Err(Error::invalid(format!("wrong fit {other:?}"))),
        }
    }),
    truncatable("QueueTable.open", Unsupported, |runtime| queue(&*runtime.open("null")?).map(drop)),
    nullable("QueueTable.close", Emulated, everything),
    truncatable("QueueTable.launch", Unsupported, |runtime| {
        launch(&*runtime.open("null")?, "noop", &[]).map(drop)
    }),
    nullable("QueueTable.try_begin_inline", Emulated, calls_inline),
    nullable("QueueTable.run_inline", Unsupported, calls_inline),
    truncatable("QueueTable.write", Unsupported, |runtime| {
        let device = runtime.open("null")?;
        queue(&*device)?.write(&tensor(&*device)?, &[0; 16])
    }),
    truncatable("QueueTable.read", Unsupported, |runtime| {
        let device = runtime.open("null")?;
        queue(&*device)?.read(&tensor(&*device)?, &mut [0; 16])
    }),
    nullable("QueueTable.copy", Emulated, copies),
    truncatable("QueueTable.fill", Unsupported, |runtime| fill(&*runtime.open("null")?).map(drop)),
    truncatable("QueueTable.noop", Unsupported, |runtime| {
        queue(&*runtime.open("null")?)?.launch_noop().map(drop)
    }),
    truncatable("QueueTable.timestamp", Unsupported, |runtime| {
        queue(&*runtime.open("null")?)?.timestamp().map(drop)
    }),
    truncatable("QueueTable.read_timestamp", Unsupported, |runtime| {
        let queue = queue(&*runtime.open("null")?)?;
        // The null device runs work at submission if it can.
        queue.read_timestamp(&queue.timestamp()?).map(drop)
    }),
    truncatable("QueueTable.signal", Unsupported, |runtime| fill(&*runtime.open("null")?)?.1.wait()),
    truncatable("QueueTable.flush", Unsupported, |runtime| fill(&*runtime.open("null")?)?.1.wait()),
    truncatable("QueueTable.poll", Unsupported, |runtime| fill(&*runtime.open("null")?)?.1.wait()),
    truncatable("QueueTable.wait", Unsupported, |runtime| spin(&*runtime.open("null")?)?.1.wait()),
    truncatable("QueueTable.wait_for", Emulated, |runtime| {
        let device = runtime.open("null")?;
        let ((_busy, event), other) = (spin(&*device)?, queue(&*device)?);
        other.wait_for(&event)?;
        let empty = other.launch_noop()?;
        empty.wait()?;
        if event.is_done()? { Ok(()) } else { Err(Error::invalid("it did not wait")) }
    }),
    truncatable("QueueTable.failure", Unsupported, |runtime| {
        match launch(&*runtime.open("null")?, "fail", &[])?.1.wait() {
            Err(error) if error.kind() == ErrorKind::Failed => Ok(()),
            Err(error) => Err(error),
            Ok(()) => Err(Error::invalid("`fail` did not fail")),
        }
    }),
    truncatable("QueueTable.copy_2d", Emulated, copies_rows),
    truncatable("QueueTable.wait_blocking", Emulated, |runtime| spin(&*runtime.open("null")?)?.1.wait()),
    truncatable("QueueTable.hold", Unsupported, holds),
    truncatable("QueueTable.resume", Unsupported, holds),
    truncatable("GraphTable.instantiate", Emulated, |runtime| {
        graph(runtime, |queue, graph| queue.replay(graph)?.wait())
    }),
    truncatable("GraphTable.update", Emulated, |runtime| graph(runtime, |_, graph| graph.update(0, &[]))),
    truncatable("GraphTable.replay", Unsupported, |runtime| {
        graph(runtime, |queue, graph| queue.replay(graph)?.wait())
    }),
    truncatable("GraphTable.close", Emulated, |runtime| {
        graph(runtime, |queue, graph| queue.replay(graph)?.wait())
    }),
    truncatable("EmbeddedTable.flash", Unsupported, |runtime| embedded(runtime, 1)),
    truncatable("EmbeddedTable.run", Unsupported, |runtime| embedded(runtime, 2)),
    truncatable("EmbeddedTable.read", Unsupported, |runtime| embedded(runtime, 3)),
    truncatable("EmbeddedTable.inspect", Unsupported, |runtime| embedded(runtime, 4)),
    truncatable("CounterTable.list", Unsupported, |runtime| runtime.open("null")?.counters().map(drop)),
    truncatable("CounterTable.open", Unsupported, |runtime| counter_set(runtime).map(drop)),
    truncatable("CounterTable.info", Unsupported, |runtime| counter_set(runtime).map(drop)),
    truncatable("CounterTable.begin", Unsupported, |runtime| counter_set(runtime)?.begin()),
    truncatable("CounterTable.end", Unsupported, counts),
    truncatable("CounterTable.read", Unsupported, counts),
    truncatable("CounterTable.close", Emulated, counts),
    truncatable("NativeTable.device", Emulated, |runtime| runtime.open("null")?.native().map(drop)),
    truncatable("NativeTable.buffer", Emulated, |runtime| {
        tensor(&*runtime.open("null")?)?.native().map(drop)
    }),
    truncatable("NativeTable.submit", Emulated, |runtime| {
        let device = runtime.open("null")?;
        // SAFETY: it does nothing.
        unsafe { queue(&*device)?.native((&tensor(&*device)?,), |_| Ok(())) }?.wait()
    }),
    truncatable("NativeTable.open_queue", Unsupported, |runtime| {
        let device = runtime.open("null")?;
        // SAFETY: the backend `null` takes any handle.
        unsafe { device.queue_from_native(1) }?.fill(&tensor(&*device)?, &[0]).map(drop)
    }),
];

fn holds(runtime: &Runtime) -> Result<()> {
    let device = runtime.open("null")?;
    let queue = queue(&*device)?;
    let held = queue.hold()?;
    let empty = queue.launch_noop()?;
    held.resume()?;
    empty.wait()
}

fn loads(runtime: &Runtime) -> Result<()> {
    match runtime.load_report().iter().find(|line| line.outcome == LoadOutcome::Failed) {
        Some(line) => Err(Error::new(ErrorKind::Unsupported, line.reason.clone())),
        None => Ok(()),
    }
}

fn tensor(device: &dyn CommonRuntime) -> Result<Tensor> {
    device.empty::<f32>([4])
}

fn module(device: &dyn CommonRuntime) -> Result<runtime_core::Module> {
    // SAFETY: every use passes the arguments that the builtins expect.
    device.load(&unsafe { ModuleSource::native("null", "noop\nspin\nfail\nscale_f32\nfill_f32") })
}

fn two_kernels() -> ModuleSource {
    // SAFETY: nothing is launched.
    unsafe { ModuleSource::native("null", "noop\nadd = add_f32") }
}

fn compiles(runtime: &Runtime) -> Result<()> {
    let compiled = runtime.open("null")?.compile(&two_kernels())?.native;
    match (compiled.format.as_str(), &*compiled.code, compiled.kernels.len()) {
        ("null-binary", b"null binary 1\nnoop=noop\nadd=add_f32\n", 2) => Ok(()),
        other => Err(Error::invalid(format!("wrong code {other:?}"))),
    }
}

fn kernel(device: &dyn CommonRuntime, name: &str) -> Result<Kernel> {
    module(device)?.kernel(name)
}

fn queue(device: &dyn CommonRuntime) -> Result<Queue> {
    device.queue()
}

fn launch(device: &dyn CommonRuntime, name: &str, args: &[Arg<'_>]) -> Result<(Queue, Event)> {
    let queue = queue(device)?;
    let event = queue.launch(&kernel(device, name)?, Geometry::single(), args)?;
    Ok((queue, event))
}

fn spin(device: &dyn CommonRuntime) -> Result<(Queue, Event)> {
    launch(device, "spin", &[Arg::scalar(20_000i64)])
}

fn fill(device: &dyn CommonRuntime) -> Result<(Queue, Event)> {
    let queue = queue(device)?;
    let event = queue.fill(&tensor(device)?, &[7])?;
    Ok((queue, event))
}

/// What an ordinary program does: list devices, compute a result, drop everything.
fn everything(runtime: &Runtime) -> Result<()> {
    let device = runtime.open("null")?;
    let x = device.tensor([3], &[1.0f32, 2.0, 3.0])?;
    launch(&*device, "scale_f32", &[Arg::read_write(&x), Arg::scalar(2.0f32)])?.1.wait()?;
    match &*x.to_vec::<f32>()? {
        [2.0, 4.0, 6.0] => Ok(()),
        other => Err(Error::invalid(format!("wrong result {other:?}"))),
    }
}

fn peers(runtime: &Runtime) -> Result<()> {
    let (a, b) = (runtime.open("null:0")?, runtime.open("null:1")?);
    let (a, b) = (a.as_accelerator().unwrap(), b.as_accelerator().unwrap());
    if a.can_access(b)? { Ok(()) } else { Err(Error::invalid("no access")) }
}

fn imports(runtime: &Runtime) -> Result<()> {
    let device = runtime.open("host")?;
    let mut data = [1.0f32; 4];
    // SAFETY: `data` outlives the tensor.
    unsafe { device.as_host().unwrap().import(data.as_mut_ptr().cast(), f32::DTYPE, &[4]) }.map(drop)
}

fn adopts(runtime: &Runtime) -> Result<()> {
    let device = runtime.open("null")?;
    let managed = device.tensor([2], &[1.0f32, 2.0])?.to_dlpack()?.into_raw();
    // SAFETY: just exported, and not consumed elsewhere.
    let adopted = unsafe { device.import_dlpack(managed) };
    if adopted.is_err() {
        // SAFETY: after an error, it still belongs to this function.
        let deleter = unsafe { (*managed).deleter };
        // SAFETY: as above; it is not used again.
        unsafe { deleter.unwrap()(managed) };
    }
    match &*adopted?.to_vec::<f32>()? {
        [1.0, 2.0] => Ok(()),
        other => Err(Error::invalid(format!("wrong content {other:?}"))),
    }
}

fn calls_inline(runtime: &Runtime) -> Result<()> {
    let device = runtime.open("host")?;
    // SAFETY: the builtin accesses no memory.
    let module = device.load(&unsafe { ModuleSource::native("c", "void noop(void) {}") })?;
    queue(&*device)?.call(&module.kernel("noop")?, Geometry::single(), &[])
}

fn copies(runtime: &Runtime) -> Result<()> {
    let device = runtime.open("null")?;
    let (from, to) = (device.tensor([4], &[5.0f32; 4])?, tensor(&*device)?);
    queue(&*device)?.copy(&to, &from)?.wait()?;
    match &*to.to_vec::<f32>()? {
        [5.0, 5.0, 5.0, 5.0] => Ok(()),
        other => Err(Error::invalid(format!("wrong copy {other:?}"))),
    }
}

fn copies_rows(runtime: &Runtime) -> Result<()> {
    let device = runtime.open("null")?;
    let from = device.tensor([2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?.slice(1, 1..3)?;
    let to = tensor(&*device)?.reshape(&[2, 2])?;
    queue(&*device)?.copy(&to, &from)?.wait()?;
    match &*to.to_vec::<f32>()? {
        [2.0, 3.0, 5.0, 6.0] => Ok(()),
        other => Err(Error::invalid(format!("wrong copy {other:?}"))),
    }
}

fn graph(
    runtime: &Runtime,
    then: fn(&Queue, &mut runtime_core::ExecutableGraph) -> Result<()>,
) -> Result<()> {
    let device = runtime.open("null:1")?;
    let (queue, noop) = (queue(&*device)?, kernel(&*device, "noop")?);
    let recorded = queue.record(|recorder| recorder.launch(&noop, Geometry::single(), &[]))?;
    then(&queue, &mut queue.instantiate(&recorded)?)
}

fn counter_set(runtime: &Runtime) -> Result<CounterSet> {
    runtime.open("null")?.counter_set(&["launches"])
}

fn counts(runtime: &Runtime) -> Result<()> {
    let readings = counter_set(runtime)?.measure(|| Ok(()))?;
    match readings[..] {
        [Some(reading)] if reading.value == 0.0 => Ok(()),
        _ => Err(Error::invalid(format!("wrong counts {readings:?}"))),
    }
}

fn embedded(runtime: &Runtime, steps: u32) -> Result<()> {
    let opened = runtime.open("null:2")?;
    let device = opened.as_embedded().unwrap();
    let x = device.tensor_from_array(HostArray::from_slice(&[2], &[1.0f32, 2.0])?)?;
    // SAFETY: the builtin takes a tensor and a scalar.
    let image = unsafe { ModuleSource::native("null", "scale_f32") };
    device.flash(&image, &[Arg::read_write(&x), Arg::scalar(3.0f32)])?;
    if steps > 1 {
        device.run(Duration::from_secs(10))?;
    }
    if steps > 2 && device.read(0)?.as_slice::<f32>()? != [3.0, 6.0] {
        return Err(Error::invalid("wrong result"));
    }
    if steps > 3 && device.registers()?.is_empty() {
        return Err(Error::invalid("no registers"));
    }
    Ok(())
}
