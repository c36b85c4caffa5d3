//! Events, host tasks, and what is kept for them, on null devices.

#![allow(unsafe_code, reason = "changes the table of a backend, and loads its code")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod events;
mod host_tasks;
mod keep_alive;

use std::sync::Arc;
use std::time::Duration;

use runtime_core::backend::LinkedBackend;
use runtime_core::{CommonRuntime, Event, Kernel, ModuleSource, Options, Queue, Runtime};

/// How long slow work takes.
const BUSY_US: i64 = 200_000;
const LONG: Duration = Duration::from_secs(60);

/// A device with kernels.
struct Scene {
    device: Arc<dyn CommonRuntime>,
    noop: Kernel,
    spin: Kernel,
    fail: Kernel,
    scale: Kernel,
}

impl Scene {
    fn new() -> Self {
        Self::with(&Options::new())
    }

    fn with(options: &Options) -> Self {
        Self::on(runtime_null::backend(), options)
    }

    fn on(backend: LinkedBackend, options: &Options) -> Self {
        let runtime = Runtime::builder().discover(false).register(backend).build();
        let device = runtime.open_with("null:0", options).unwrap();
        // SAFETY: the builtins check their arguments.
        let source = unsafe { ModuleSource::native("null", "noop\nspin\nfail\nscale_f32") };
        let module = device.load(&source).unwrap();
        let kernel = |name| module.kernel(name).unwrap();
        let (noop, spin, fail, scale) = (kernel("noop"), kernel("spin"), kernel("fail"), kernel("scale_f32"));
        Self { device, noop, spin, fail, scale }
    }

    fn queue(&self) -> Queue {
        self.device.queue().unwrap()
    }

    /// Work that ends late, on a queue of its own.
    fn slow(&self) -> Event {
        self.queue().launch(&self.spin, (1, 1), (BUSY_US,)).unwrap()
    }

    fn quick(&self) -> Event {
        self.queue().launch(&self.noop, (1, 1), ()).unwrap()
    }

    fn failing(&self) -> Event {
        self.queue().launch(&self.fail, (1, 1), ()).unwrap()
    }
}
