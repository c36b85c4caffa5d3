//! A backend that panics in one of its functions: the caller gets an error if there is a status, and nothing else breaks.

use std::time::Duration;

use runtime_core::backend::OptionSpec;
use runtime_core::{
    Access, Arg, CommonRuntime, DType, Error, ErrorKind, Geometry, Kernel, ModuleSource, Options, Queue,
    QueueOptions, Result, Runtime, Tensor,
};

use crate::fixture::{built, load};

/// Longer than any step of these tests takes.
const DEADLINE: Duration = Duration::from_secs(120);

/// Functions without a status: their panics are only logged.
const SILENT: [&str; 7] =
    ["close_device", "close_queue", "close_graph", "close_counters", "free", "unload", "release_kernel"];

/// All errors of a program.
#[derive(Default)]
struct Errors(Vec<Error>);

impl Errors {
    fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.0.push(error)).ok()
    }
}

/// Uses every function of the backend once, even after failures, and returns the errors.
fn exercise(runtime: &Runtime, options: &Options) -> Vec<Error> {
    let mut errors = Errors::default();
    if let Some(device) = errors.keep(runtime.open_with("null:0", options)) {
        let _ = exercise_device(&*device, &mut errors);
        let _ = exercise_queues(&*device, &mut errors);
        if let Some(peer) = errors.keep(runtime.open_with("null:1", options)) {
            let _ = exercise_graph(&*peer, &mut errors);
            let (device, peer) = (device.as_accelerator().unwrap(), peer.as_accelerator().unwrap());
            errors.keep(device.can_access(peer));
        }
    }
    if let Some(device) = errors.keep(runtime.open_with("null:2", options)) {
        let _ = exercise_embedded(&*device, &mut errors);
    }
    errors.0
}

fn exercise_device(device: &dyn CommonRuntime, errors: &mut Errors) -> Option<()> {
    errors.keep(device.memory_usage("device"));
    errors.keep(device.telemetry());
    errors.keep(device.counters());
    if let Some(mut set) = errors.keep(device.counter_set(&["launches"])) {
        errors.keep(set.measure(|| Ok(())));
    }
    errors.keep(device.throttle_reasons());
    errors.keep(device.processes());
    errors.keep(device.compile(&source("noop")));
    errors.keep(device.fits(&source("noop")));
    let module = errors.keep(device.load(&source("noop\nfail\nspin")))?;
    errors.keep(module.symbols());
    let noop = errors.keep(module.kernel("noop"))?;
    errors.keep(noop.occupancy(&Geometry::single(), 0));
    Some(())
}

fn exercise_queues(device: &dyn CommonRuntime, errors: &mut Errors) -> Option<()> {
    let module = errors.keep(device.load(&source("noop\nfail\nspin")))?;
    let kernel = |name: &str| module.kernel(name);
    let (noop, fail, spin) =
        (errors.keep(kernel("noop"))?, errors.keep(kernel("fail"))?, errors.keep(kernel("spin"))?);
    let tensor = errors.keep(device.empty::<f32>([64]))?;
    let other = errors.keep(device.empty::<f32>([64]))?;
    let timestamps = QueueOptions { timestamps: true, ..QueueOptions::default() };
    let queue = errors.keep(device.open_queue(&timestamps))?;
    if let Some(held) = errors.keep(queue.hold()) {
        errors.keep(held.resume());
    }
    transfers(&queue, &tensor, &other, errors);
    exchange(device, &tensor, errors);
    signals(&queue, &noop, &spin, errors);
    let second = errors.keep(device.open_queue(&timestamps))?;
    if let Some(event) = errors.keep(queue.launch(&spin, Geometry::single(), &[Arg::scalar(2000i64)])) {
        errors.keep(second.wait_for(&event));
        errors.keep(second.launch(&noop, Geometry::single(), &[Arg::tensor(&tensor, Access::ReadWrite)]));
    }
    errors.keep(second.wait_idle_timeout(DEADLINE));
    let event = errors.keep(second.launch(&fail, Geometry::single(), &[]))?;
    errors.keep(event.wait_timeout(DEADLINE));
    Some(())
}

#[allow(unsafe_code, reason = "imports a tensor that it exported, and wraps a queue")]
fn exchange(device: &dyn CommonRuntime, tensor: &Tensor, errors: &mut Errors) {
    // SAFETY: the backend `null` takes any handle.
    errors.keep(unsafe { device.queue_from_native(1) });
    let Some(lent) = errors.keep(tensor.to_dlpack()) else { return };
    let managed = lent.into_raw();
    // SAFETY: just exported, and not used elsewhere.
    if errors.keep(unsafe { device.import_dlpack(managed) }).is_none() {
        // SAFETY: after an error it still belongs to this function.
        let deleter = unsafe { (*managed).deleter };
        // SAFETY: called once.
        unsafe { deleter.unwrap()(managed) };
    }
}

fn transfers(queue: &Queue, tensor: &Tensor, other: &Tensor, errors: &mut Errors) {
    let mut bytes = [1; 256];
    errors.keep(queue.write(tensor, &bytes));
    errors.keep(queue.fill(tensor, &[0; 4]));
    errors.keep(queue.copy(other, tensor));
    let columns = |tensor: &Tensor| tensor.reshape(&[8, 8]).and_then(|matrix| matrix.slice(1, 0..3)).unwrap();
    errors.keep(queue.copy(&columns(other), &columns(tensor)));
    errors.keep(queue.read(other, &mut bytes));
    errors.keep(queue.wait_idle_timeout(DEADLINE));
}

fn signals(queue: &Queue, noop: &Kernel, spin: &Kernel, errors: &mut Errors) {
    let held = errors.keep(queue.launch(spin, Geometry::single(), &[Arg::scalar(1000i64)]));
    errors.keep(queue.launch(noop, Geometry::single(), &[]));
    errors.keep(queue.flush());
    errors.keep(queue.launch_noop());
    if let Some(event) = held {
        errors.keep(event.wait_timeout(DEADLINE));
    }
    if let Some(event) = errors.keep(queue.timestamp()) {
        errors.keep(event.wait_timeout(DEADLINE));
        errors.keep(queue.read_timestamp(&event));
    }
    errors.keep(queue.completed());
}

/// On a device with native graphs.
fn exercise_graph(device: &dyn CommonRuntime, errors: &mut Errors) -> Option<()> {
    let module = errors.keep(device.load(&source("scale_f32")))?;
    let kernel = errors.keep(module.kernel("scale_f32"))?;
    let tensor = errors.keep(device.empty::<f32>([64]))?;
    let queue = errors.keep(device.queue())?;
    let args = |scale: f32| [Arg::tensor(&tensor, Access::ReadWrite), Arg::scalar(scale)];
    let graph = errors.keep(queue.record(|recorder| {
        recorder.fill(&tensor, &1.0f32.to_le_bytes())?;
        recorder.launch(&kernel, Geometry::single(), &args(2.0))
    }))?;
    let mut graph = errors.keep(queue.instantiate(&graph))?;
    assert!(graph.is_native(), "null:1 has native graphs");
    errors.keep(graph.update(1, &args(3.0)))?;
    let event = errors.keep(queue.replay(&graph))?;
    errors.keep(event.wait_timeout(DEADLINE))?;
    assert_eq!(errors.keep(tensor.to_vec::<f32>())?, [3.0; 64]);
    Some(())
}

fn exercise_embedded(device: &dyn CommonRuntime, errors: &mut Errors) -> Option<()> {
    let embedded = device.as_embedded().unwrap();
    let tensor = errors.keep(embedded.tensor_from_seed(DType::F32, &[8], 1))?;
    let args = [Arg::tensor(&tensor, Access::ReadWrite), Arg::scalar(2.0f32)];
    errors.keep(embedded.flash(&source("scale_f32"), &args));
    errors.keep(embedded.run(DEADLINE));
    errors.keep(embedded.read(0));
    errors.keep(embedded.registers());
    Some(())
}

fn source(code: &str) -> ModuleSource {
    #[allow(unsafe_code, reason = "loads code")]
    // SAFETY: null code is checked by the backend, and its kernels stay within their arguments.
    unsafe {
        ModuleSource::native("null", code)
    }
}

fn panicking_slots(runtime: &Runtime) -> Vec<String> {
    let mut options: Vec<OptionSpec> = runtime.targets().remove(0).options;
    options.retain(|option| option.key == "panic_in");
    options.remove(0).choices
}

#[test]
fn without_injected_panics_only_the_failing_kernel_fails() {
    let errors = exercise(&load(&built("null")), &Options::new());
    assert!(errors.len() == 1 && errors[0].kind() == ErrorKind::Failed, "{errors:?}");
}

#[test]
fn a_panic_in_any_function_is_only_an_error() {
    let runtime = load(&built("null"));
    let slots = panicking_slots(&runtime);
    for needed in [
        "open_device",
        "allocate",
        "load",
        "symbols",
        "open_queue",
        "launch",
        "signal",
        "poll",
        "wait",
        "failure",
    ] {
        assert!(slots.iter().any(|slot| slot == needed), "{needed}: {slots:?}");
    }
    for slot in slots.iter().filter(|slot| !slot.is_empty()) {
        let errors = exercise(&runtime, &Options::new().with("panic_in", slot.as_str()));
        let reported = errors
            .iter()
            .any(|error| error.kind() == ErrorKind::Internal && error.message().contains("panicked in"));
        assert!(reported || SILENT.contains(&slot.as_str()), "{slot}: {errors:?}");
        assert_eq!(exercise(&runtime, &Options::new()).len(), 1, "a panic in {slot} affected later work");
    }
}
