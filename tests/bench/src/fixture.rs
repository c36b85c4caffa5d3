//! A queue, a kernel and its arguments, on a device of this build's backends.

#![allow(unsafe_code, reason = "loads native code")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use runtime_core::dispatch::Dispatcher;
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, Event, Geometry, Kernel, ModuleSource, Queue, Result, Runtime,
    RuntimeBuilder, Tensor,
};

use crate::direct_call::LIBRARY;

/// The null backend's code: an entry point with the name of the compiled kernel.
pub(crate) const NULL_CODE: &str = "touch = noop";

/// A runtime with the backends of this program's build, never those of another profile.
///
/// # Panics
/// If they are missing: run `cargo build`.
#[must_use]
pub fn runtime() -> Runtime {
    builder().build()
}

/// The builder of `runtime`.
///
/// # Panics
/// As `runtime`.
pub fn builder() -> RuntimeBuilder {
    let executable = std::env::current_exe().unwrap_or_default();
    let folder = executable.parent().map(PathBuf::from).unwrap_or_default();
    // In a bundle, and where cargo puts libraries beside the folder of tests and benchmarks.
    let places = [folder.join("../lib/runtime"), folder.join("..")];
    let is_here = |place: &&PathBuf| ["host", "null"].iter().all(|name| place.join(library(name)).is_file());
    let here = places.iter().find(is_here).unwrap_or_else(|| {
        panic!("no host and null backends in {places:?}: run `cargo build --workspace`, with --release for benchmarks")
    });
    // SAFETY: the backends of this workspace.
    unsafe { Runtime::builder().directory(here) }.discover(false)
}

fn library(backend: &str) -> String {
    format!("{}runtime_{backend}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// A queue with a kernel of three tensors and a scalar.
#[derive(Debug)]
pub struct Fixture {
    /// The device.
    pub device: Arc<dyn CommonRuntime>,
    /// Its queue.
    pub queue: Queue,
    /// Reads two tensors and writes one.
    pub kernel: Kernel,
    /// The same kernel, through a dispatcher.
    pub dispatcher: Dispatcher,
    a: Tensor,
    b: Tensor,
    c: Tensor,
}

impl Fixture {
    /// Opens a device and prepares a launch.
    ///
    /// # Errors
    /// Any error of the device.
    pub fn open(runtime: &Runtime, device: &str) -> Result<Self> {
        let device = runtime.open(device)?;
        let kernel = device.kernel(source(&*device), "touch")?;
        Self::on(device, kernel, None)
    }

    /// Another queue with other tensors, except for the first, which is shared: frozen, so that two threads can read it.
    ///
    /// # Errors
    /// Any error of the device.
    pub fn second_queue(&self) -> Result<Self> {
        self.a.freeze()?;
        Self::on(self.device.clone(), self.kernel.clone(), Some(self.a.clone()))
    }

    fn on(device: Arc<dyn CommonRuntime>, kernel: Kernel, first: Option<Tensor>) -> Result<Self> {
        let tensor = || device.tensor([64], &[1.0f32; 64]);
        let (a, b, c) = (first.map_or_else(tensor, Ok)?, tensor()?, tensor()?);
        let queue = device.queue()?;
        let dispatcher = Dispatcher::builder("touch").source(source(&*device));
        let dispatcher = dispatcher.signature("read f32, read f32, write f32, f32").build()?;
        Ok(Self { device, queue, kernel, dispatcher, a, b, c })
    }

    /// Arguments of one launch.
    #[inline]
    #[must_use]
    pub fn arguments(&self, scale: f32) -> [Arg<'_>; 4] {
        [Arg::read(&self.a), Arg::read(&self.b), Arg::write(&self.c), Arg::scalar(scale)]
    }

    /// The tensors: two that are read, and the one that is written.
    #[must_use]
    pub fn tensors(&self) -> [&Tensor; 3] {
        [&self.a, &self.b, &self.c]
    }

    /// Submits a launch.
    ///
    /// # Errors
    /// Any error of the device.
    #[inline]
    pub fn launch(&self, scale: f32) -> Result<Event> {
        self.queue.launch(&self.kernel, Geometry::single(), &self.arguments(scale))
    }

    /// Submits the same launch through the dispatcher.
    ///
    /// # Errors
    /// Any error of the device.
    #[inline]
    pub fn submit(&self, scale: f32) -> Result<Event> {
        self.dispatcher.on(&self.queue).submit(1, &[], &self.arguments(scale))
    }

    /// Launches and waits; runs on this thread if the device supports that.
    ///
    /// # Errors
    /// Any error of the device.
    #[inline]
    pub fn call(&self, scale: f32) -> Result<()> {
        self.queue.call(&self.kernel, Geometry::single(), &self.arguments(scale))
    }

    /// What the last launch wrote.
    ///
    /// # Errors
    /// Any error of the device.
    pub fn result(&self) -> Result<f32> {
        Ok(self.c.to_vec::<f32>()?[0])
    }
}

/// Runs `work` while a kernel keeps the host queue of `fixture` busy.
///
/// # Errors
/// Any error of the device.
pub fn with_busy_queue<T>(fixture: &Fixture, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let kernel = fixture.device.kernel(source(&*fixture.device), "hold")?;
    let released = AtomicI32::new(0);
    let address = Arg::scalar(released.as_ptr() as i64);
    let holding = fixture.queue.launch(&kernel, Geometry::single(), &[address])?;
    let result = work();
    released.store(1, Ordering::Release);
    holding.wait()?;
    result
}

/// The kernels in a format that the device accepts: a compiled library for the host, names for the null device.
fn source(device: &dyn CommonRuntime) -> ModuleSource {
    let (format, code) = match device.as_host() {
        Some(_) => (CodeFormat::SHARED_OBJECT, LIBRARY),
        None => (CodeFormat::from("null"), NULL_CODE.as_bytes()),
    };
    // SAFETY: the launches here pass what `kernels/launch.c` declares, and say how each tensor is used.
    unsafe { ModuleSource::native(format, code) }
}
