//! The fixture of a case: an opened device, and shorthands for queues, kernels, launches and tensors.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use runtime_core::code::ArgKind;
use runtime_core::graph::Recorder;
use runtime_core::{
    Arg, CommonRuntime, Element, Error, ErrorKind, Event, Geometry, Kernel, Module, Placement, Queue, Result,
    Tensor, abi,
};

use crate::case::{Failure, Verdict};
use crate::kernels::{FormatKernels, KernelProvider};

/// Work-items per group, on devices with groups of this size.
const GROUP_SIZE: u32 = 64;
/// How long [`Fixture::delay`] keeps a queue busy.
const DELAY_US: i64 = 5000;
/// The largest count of the portable `spin`: a driver may end loops after 65535 iterations.
const MAX_SPIN_COUNT: u32 = 60_000 * GROUP_SIZE * 64;
/// Fractional bits of the spin speed.
const SPEED_BITS: u32 = 10;
/// Kernels without a trailing element count.
const KERNELS_WITHOUT_COUNT: [&str; 7] = ["noop", "spin", "hold", "fail", "sum9", "sum20", "sum_record"];

/// An opened device, and the suite's kernels on it, loaded on first use.
#[derive(Debug)]
pub(crate) struct Fixture {
    device: Arc<dyn CommonRuntime>,
    kernel_provider: KernelProvider,
    module: OnceLock<Result<Module>>,
    /// Kernels are kept, because dropping one polls every queue of the device, and some cases count polls.
    kernel_cache: Mutex<HashMap<String, Kernel>>,
    /// Counts per microsecond of the portable `spin`, times 2^`SPEED_BITS`; measured on first use.
    spin_speed: Mutex<Option<u64>>,
}

impl Fixture {
    pub(crate) fn new(device: Arc<dyn CommonRuntime>, kernel_provider: KernelProvider) -> Self {
        let (module, kernel_cache, spin_speed) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Self { device, kernel_provider, module, kernel_cache, spin_speed }
    }

    /// The device.
    pub(crate) fn device(&self) -> &dyn CommonRuntime {
        &*self.device
    }

    /// The suite's kernels in a format of the device.
    ///
    /// # Errors
    /// `Unsupported` when the suite has none.
    pub(crate) fn kernels(&self) -> Result<&'static FormatKernels, Failure> {
        let info = self.device.info();
        self.kernel_provider.choose(info).ok_or_else(|| {
            Failure::Unsupported(format!(
                "the suite has no kernels in a format of the device ({})",
                info.format_names().join(", ")
            ))
        })
    }

    /// Why the device cannot run a kernel of the suite; `None` when it can.
    pub(crate) fn missing_kernel(&self, name: &str) -> Option<String> {
        match self.kernels() {
            Err(failure) => Some(failure.to_string()),
            Ok(kernels) => {
                let is_there = kernels.has(name).unwrap_or_else(|| self.module_has(name));
                (!is_there).then(|| kernels.lacks(name))
            }
        }
    }

    /// Whether the loaded module has a kernel. If it fails to load, `true`: the cases then fail with the load error.
    fn module_has(&self, name: &str) -> bool {
        let lacks = |failure| matches!(failure, Failure::Error(error) if error.kind() == ErrorKind::NotFound);
        self.module().is_err() || !self.kernel(name).is_err_and(lacks)
    }

    /// Why the suite has no program of this kernel for an embedded device; `None` when it has one.
    pub(crate) fn missing_program(&self, name: &str) -> Option<String> {
        match self.kernels() {
            Err(failure) => Some(failure.to_string()),
            Ok(kernels) => kernels.program(name).is_none().then(|| kernels.lacks(name)),
        }
    }

    /// The suite's kernels, loaded once.
    pub(crate) fn module(&self) -> Result<&Module, Failure> {
        let kernels = self.kernels()?;
        let source = || match self.group_size() {
            GROUP_SIZE => kernels.source(),
            smaller => kernels.source_for([smaller, 1, 1]),
        };
        let loaded = self.module.get_or_init(|| self.device.load(&source()));
        loaded.as_ref().map_err(|error| match error.kind() {
            // A missing compiler is not a failure of the backend.
            ErrorKind::Unavailable => Failure::Unsupported(error.to_string()),
            _ => Failure::from(error.clone()),
        })
    }

    /// A kernel of the suite.
    pub(crate) fn kernel(&self, name: &str) -> Result<Kernel, Failure> {
        let mut cache = self.kernel_cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = cache.get(name) {
            return Ok(kernel.clone());
        }
        let kernel = self.module()?.kernel(name)?;
        cache.insert(name.to_owned(), kernel.clone());
        Ok(kernel)
    }

    /// A kernel of the suite for this group size, or for the default size if the device does not support it.
    pub(crate) fn kernel_for_group_size(&self, name: &str, size: [u32; 3]) -> Result<Kernel, Failure> {
        let (kernels, limits) = (self.kernels()?, &self.device.info().limits);
        let items = size.iter().try_fold(1u32, |items, &n| items.checked_mul(n)).unwrap_or(u32::MAX);
        let fits = items != 0
            && items <= limits.group_items
            && (0..3).all(|axis| size[axis] <= limits.group_size[axis]);
        if !kernels.portable || !fits {
            return self.kernel(name);
        }
        let key = format!("{name} {size:?}");
        let mut cache = self.kernel_cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = cache.get(&key) {
            return Ok(kernel.clone());
        }
        let kernel = self.device.kernel(kernels.source_for(size), name)?;
        cache.insert(key, kernel.clone());
        Ok(kernel)
    }

    /// A new queue.
    pub(crate) fn queue(&self) -> Result<Queue> {
        self.device.queue()
    }

    /// Several new queues.
    pub(crate) fn queues<const N: usize>(&self) -> Result<[Queue; N]> {
        let queues = (0..N).map(|_| self.queue()).collect::<Result<Vec<_>>>()?;
        queues.try_into().map_err(|_| Error::new(ErrorKind::Internal, "wrong number of queues"))
    }

    /// Launches a kernel of the suite on `items` elements, with a trailing element count if the format has one.
    pub(crate) fn launch<T: LaunchTarget>(
        &self,
        target: &T,
        name: &str,
        args: &[Arg<'_>],
        items: usize,
    ) -> Result<T::Launched, Failure> {
        Ok(self.try_launch(target, name, args, items)??)
    }

    /// Like [`Fixture::launch`], but returns the result of the launch itself, for cases that check it.
    pub(crate) fn try_launch<T: LaunchTarget>(
        &self,
        target: &T,
        name: &str,
        args: &[Arg<'_>],
        items: usize,
    ) -> Result<Result<T::Launched>, Failure> {
        let args = self.args(name, args, items)?;
        let launched = target.launch_on(&self.kernel(name)?, self.geometry(items), &args);
        Ok(launched.inspect(|_| self.kernel_provider.launched()))
    }

    /// Like [`Fixture::launch`], but waits for completion.
    pub(crate) fn call(&self, queue: &Queue, name: &str, args: &[Arg<'_>], items: usize) -> Verdict {
        queue.call(&self.kernel(name)?, self.geometry(items), &self.args(name, args, items)?)?;
        self.kernel_provider.launched();
        Ok(())
    }

    /// Adapts the arguments of a kernel of the suite to the format of the device.
    pub(crate) fn args<'a>(
        &self,
        name: &str,
        args: &[Arg<'a>],
        items: usize,
    ) -> Result<Vec<Arg<'a>>, Failure> {
        let mut args = args.to_vec();
        let kernels = self.kernels()?;
        if kernels.portable {
            args.sort_by_key(|arg| arg.kind() != ArgKind::Tensor);
            if name == "spin" {
                let microseconds = args.iter().filter_map(Arg::bits);
                return microseconds
                    .map(|microseconds| Ok(Arg::scalar(self.spin_count(microseconds)?)))
                    .collect();
            }
        }
        if kernels.takes_count
            && !KERNELS_WITHOUT_COUNT.contains(&name)
            && self.has_more_params(name, args.len())?
        {
            args.push(Arg::scalar(i64::try_from(items).unwrap_or(i64::MAX)));
        }
        Ok(args)
    }

    /// Whether a kernel has more parameters than `given`; assumed if its signature is unknown.
    fn has_more_params(&self, name: &str, given: usize) -> Result<bool, Failure> {
        let kernel = self.kernel(name)?;
        Ok(kernel.info().params.as_ref().is_none_or(|params| params.len() > given))
    }

    /// The count at which the portable `spin` ends after so many microseconds, or the largest one allowed.
    fn spin_count(&self, microseconds: u64) -> Result<u32, Failure> {
        let mut speed = self.spin_speed.lock().unwrap_or_else(PoisonError::into_inner);
        let speed = match *speed {
            Some(speed) => speed,
            None => *speed.insert(self.measure_spin_speed()?),
        };
        let count = microseconds.saturating_mul(speed) >> SPEED_BITS;
        Ok(u32::try_from(count).unwrap_or(u32::MAX).min(MAX_SPIN_COUNT))
    }

    /// Measures the spin speed with launches of a few milliseconds; takes the fastest of three, because the machine may
    /// be busy.
    fn measure_spin_speed(&self) -> Result<u64, Failure> {
        let (queue, kernel) = (self.queue()?, self.kernel("spin")?);
        let time = |count: u32| -> Result<u64> {
            let begin = Instant::now();
            queue.call(&kernel, self.geometry(1), &[Arg::scalar(count)])?;
            Ok(u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX).max(1))
        };
        let mut count = 1u32 << 16;
        // The first call may include compilation.
        time(count)?;
        loop {
            let best = time(count)?.min(time(count)?).min(time(count)?);
            if best >= 2000 {
                return Ok((u64::from(count) << SPEED_BITS) / best);
            }
            if count > MAX_SPIN_COUNT / 2 {
                let reason =
                    format!("counting to {count} takes {best} µs: the compiler removed the loop of `spin`");
                return Err(Failure::Unsupported(reason));
            }
            count *= 2;
        }
    }

    /// Keeps a queue busy for a few milliseconds, to expose work that does not wait for it.
    pub(crate) fn delay(&self, target: &impl LaunchTarget) -> Verdict {
        self.launch(target, "spin", &[Arg::scalar(DELAY_US)], 1).map(drop)
    }

    /// Launches a failing kernel that declares a read of one tensor and a write of another.
    pub(crate) fn fail<T: LaunchTarget>(
        &self,
        target: &T,
        reads: &Tensor,
        writes: &Tensor,
    ) -> Result<T::Launched, Failure> {
        self.launch(target, "fail", &[Arg::read(reads), Arg::write(writes)], 1)
    }

    /// Submits `out = value`.
    pub(crate) fn fill<T: LaunchTarget>(
        &self,
        target: &T,
        out: &Tensor,
        value: f32,
    ) -> Result<T::Launched, Failure> {
        self.launch(target, "fill_f32", &[Arg::write(out), Arg::scalar(value)], out.len())
    }

    /// Submits `to = from`.
    pub(crate) fn copy<T: LaunchTarget>(
        &self,
        target: &T,
        from: &Tensor,
        to: &Tensor,
    ) -> Result<T::Launched, Failure> {
        self.launch(target, "copy_f32", &[Arg::read(from), Arg::write(to)], to.len())
    }

    /// Submits `x = factor x`.
    pub(crate) fn scale<T: LaunchTarget>(
        &self,
        target: &T,
        x: &Tensor,
        factor: f32,
    ) -> Result<T::Launched, Failure> {
        self.launch(target, "scale_f32", &[Arg::read_write(x), Arg::scalar(factor)], x.len())
    }

    /// Work-items per group: fewer than usual on devices with small groups.
    fn group_size(&self) -> u32 {
        let limits = &self.device.info().limits;
        GROUP_SIZE.min(limits.group_items).min(limits.group_size[0])
    }

    /// A geometry that covers `items` elements; a single call if the device or the code format has no groups.
    pub(crate) fn geometry(&self, items: usize) -> Geometry {
        let grouped = self.kernels().is_ok_and(|kernels| kernels.grouped);
        if !grouped || !self.device.info().capabilities.has(abi::CAP_GROUPS) {
            return Geometry::single();
        }
        Geometry::cover(u32::try_from(items.max(1)).unwrap_or(u32::MAX), self.group_size())
    }

    /// A one-dimensional tensor with these elements.
    pub(crate) fn tensor<T: Element>(&self, data: &[T]) -> Result<Tensor> {
        self.device().tensor([data.len()], data)
    }

    /// A tensor of `n` elements, all of them `value`.
    pub(crate) fn full(&self, n: usize, value: f32) -> Result<Tensor> {
        self.tensor(&vec![value; n])
    }

    /// A tensor of `n` elements with undefined contents.
    pub(crate) fn uninitialized<T: Element>(&self, n: usize) -> Result<Tensor> {
        self.device.allocate(T::DTYPE, &[n], &Placement::default())
    }

    /// The first memory space that is both host-visible and kernel-visible.
    pub(crate) fn host_visible_placement(&self) -> Option<Placement> {
        let space =
            self.device.info().spaces.iter().find(|space| space.host_visible && space.kernel_visible)?;
        Some(Placement::space(&space.name))
    }

    /// A tensor of `n` elements, all of them `value`, in host-visible memory.
    pub(crate) fn host_visible_tensor(&self, n: usize, value: f32) -> Result<Tensor, Failure> {
        let placement = self
            .host_visible_placement()
            .ok_or_else(|| Failure::Unsupported("no host-visible memory".to_owned()))?;
        let tensor = self.device.allocate(f32::DTYPE, &[n], &placement)?;
        tensor.write(&vec![value; n])?;
        Ok(tensor)
    }
}

/// What a kernel is launched on: a queue, or the recorder of a graph.
pub(crate) trait LaunchTarget {
    /// The event on a queue, the number of the node in a graph.
    type Launched;

    /// Launches a kernel.
    fn launch_on(&self, kernel: &Kernel, geometry: Geometry, args: &[Arg<'_>]) -> Result<Self::Launched>;
}

impl LaunchTarget for Queue {
    type Launched = Event;

    fn launch_on(&self, kernel: &Kernel, geometry: Geometry, args: &[Arg<'_>]) -> Result<Event> {
        self.launch(kernel, geometry, args)
    }
}

impl LaunchTarget for Recorder {
    type Launched = usize;

    fn launch_on(&self, kernel: &Kernel, geometry: Geometry, args: &[Arg<'_>]) -> Result<usize> {
        self.launch(kernel, geometry, args)
    }
}
