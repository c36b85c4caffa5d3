//! Fusers on null devices, with a lowering of the test's own.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cache;
mod cancellation;
mod failures;
mod fusing;
mod kept_plans;
mod list_graphs;
mod lowering;
mod promotion;
mod threads;
mod transfers;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use runtime_core::fusion::{Fuser, FusionOptions};
use runtime_core::{
    CommonRuntime, Kernel, ModuleSource, Options, Queue, Runtime, Tensor, read, read_write, write,
};

use self::lowering::{Fault, Joining, joining};

/// A test that takes longer hangs.
const DEADLINE: Duration = Duration::from_secs(60);

const KERNELS: &str =
    "noop = noop\ncopy = copy_bytes\nadd = add_f32\nscale = scale_f32\nfill = fill_f32\nspin = spin";

/// A device with kernels, and the lowering that loaded them.
struct Scene {
    lowering: Arc<Joining>,
    device: Arc<dyn CommonRuntime>,
    noop: Kernel,
    copy: Kernel,
    add: Kernel,
    scale: Kernel,
    spin: Kernel,
    native: Kernel,
}

impl Scene {
    fn new() -> Self {
        Self::with(&Options::new())
    }

    fn with(options: &Options) -> Self {
        Self::on("null:0", options, true)
    }

    fn on(name: &str, options: &Options, fusion: bool) -> Self {
        let lowering = joining();
        let runtime = Runtime::builder().discover(false).register(runtime_null::backend());
        let runtime = runtime.with_lowering(lowering.clone()).fusion(fusion).build();
        let device = runtime.open_with(name, options).unwrap();
        let module = device.load(&ModuleSource::wgsl(KERNELS)).unwrap();
        // SAFETY: the builtins check their arguments.
        let native =
            device.kernel(unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32").unwrap();
        let kernel = |name| module.kernel(name).unwrap();
        let (noop, copy, add) = (kernel("noop"), kernel("copy"), kernel("add"));
        let (scale, spin) = (kernel("scale"), kernel("spin"));
        Self { lowering, device, noop, copy, add, scale, spin, native }
    }

    fn queue(&self) -> Queue {
        self.device.queue().unwrap()
    }

    fn fuser(&self, queue: &Queue) -> Fuser {
        queue.fuser(&FusionOptions::default()).unwrap()
    }

    fn tensor(&self, values: &[f32]) -> Tensor {
        self.device.tensor([values.len()], values).unwrap()
    }

    fn empty(&self) -> Tensor {
        self.device.empty::<f32>([2]).unwrap()
    }

    fn copy(&self, queue: &Queue, from: &Tensor, to: &Tensor) -> runtime_core::Event {
        queue.launch(&self.copy, (1, 1), (read(from), write(to))).unwrap()
    }

    /// Copies the first tensor to the second one, and that to the third.
    fn copy_through(&self, queue: &Queue, [from, between, to]: [&Tensor; 3]) {
        self.copy(queue, from, between);
        self.copy(queue, between, to);
    }

    fn noop(&self, queue: &Queue, tensor: &Tensor) -> runtime_core::Event {
        queue.launch(&self.noop, (1, 1), (read_write(tensor),)).unwrap()
    }

    fn scale(&self, queue: &Queue, tensor: &Tensor, factor: f32) -> runtime_core::Event {
        queue.launch(&self.scale, (1, 1), (read_write(tensor), factor)).unwrap()
    }

    /// How often the lowering was asked for a plan.
    fn plans(&self) -> usize {
        self.lowering.plans.load(Ordering::Relaxed)
    }

    fn break_lowering(&self, fault: Fault) {
        *self.lowering.fault.lock().unwrap() = fault;
    }
}

/// Runs a test on another thread, and fails if it hangs.
fn in_time(test: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = sender.send(());
    });
    match receiver.recv_timeout(DEADLINE) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the test hangs"),
        Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}
