//! Times a kernel on a queue with one of the clocks: the [`TimingTarget`] of every real evaluation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::flush::Flusher;
use super::graph_batches::{Call, GraphCache};
use super::measurement::Made;
use super::timing_target::{TimingTarget, Window};
use super::{Clock, EachCall, EvaluationArg, Moment, Observer, Timing, WindowData};
use crate::model::throttle_reasons::ThrottleReasons;
use crate::timeline::open_device::OpenDevice;
use crate::{
    Access, Arg, DeviceInfo, DeviceKind, Error, ErrorKind, Event, HostArray, Kernel, LaunchConfig, Queue,
    Result, Tensor, abi,
};

/// Maximum number of timestamp pairs in flight: the query pools of drivers are limited.
const MAX_PAIRS: usize = 256;

/// Maximum number of calls for which a queue is held: a driver whose own queue is full would block in a submission.
const MAX_HELD: u64 = 256;

/// What to time.
pub(crate) struct BenchInputs<'s, 'a> {
    pub(crate) device: &'s Arc<OpenDevice>,
    pub(crate) queue: &'s Queue,
    pub(crate) subject: Subject<'s, 'a>,
    /// The arguments with their locations; sets of them that windows use in turn.
    pub(crate) sets: Vec<&'s [EvaluationArg<'a>]>,
    /// Told of windows.
    pub(crate) data: Option<&'s mut (dyn WindowData + 'a)>,
    pub(crate) setup: &'s mut Option<Box<dyn FnMut() + Send + 'a>>,
    pub(crate) observer: &'s mut Option<Observer<'a>>,
}

/// How long a GPU that was idle works before its clocks are up: an H200, through Vulkan, for up to 0.2 s, in which it takes 3.3
/// times as long.
const WAKE_TIME: Duration = Duration::from_millis(300);
/// How long after an evaluation its clocks are still up.
const AWAKE_TIME: Duration = Duration::from_millis(500);

/// Submits the work of a call; returns the event of its last launch.
pub(crate) type Submit<'a> = Box<dyn FnMut(&Queue) -> Result<Event> + Send + 'a>;

/// The work of one timed call.
pub(crate) enum Subject<'s, 'a> {
    /// A launch of a kernel.
    Launch { kernel: &'s Kernel, config: LaunchConfig },
    /// Work of the caller.
    Work(&'s mut Submit<'a>),
}

/// A kernel, or other work, on a queue.
pub(crate) struct QueueTarget<'s, 'a> {
    device: &'s OpenDevice,
    queue: &'s Queue,
    subject: Subject<'s, 'a>,
    setup: &'s mut Option<Box<dyn FnMut() + Send + 'a>>,
    observer: &'s mut Option<Observer<'a>>,
    clock: Clock,
    /// The workloads that have run, after which a held queue does not wait for a compiler: the kernel, the no-op kernel.
    has_run: [bool; 2],
    /// Calls run inline on this thread.
    inline: bool,
    has_empty: bool,
    sets: Vec<ArgSet<'s>>,
    /// The set of the next call.
    set: usize,
    data: Option<&'s mut (dyn WindowData + 'a)>,
    /// Windows with data, so far.
    windows: usize,
    flusher: Flusher,
    /// Whether caches are flushed after the data of the next window is written.
    is_flush_due: bool,
    /// Timestamps of individual kernels; a field, so that windows do not allocate.
    timestamps: Vec<(Event, Event)>,
    begin: Instant,
    calls: u64,
}

/// The arguments of calls.
struct ArgSet<'s> {
    args: Vec<Arg<'s>>,
    host_tensors: Vec<HostTensor<'s>>,
    /// The initial contents of the tensors that hold them before each call.
    restored: Vec<(&'s Tensor, HostArray)>,
    graphs: GraphCache,
}

impl<'s> ArgSet<'s> {
    fn new(args: &'s [EvaluationArg<'_>], info: &DeviceInfo) -> Result<Self> {
        let mut host_tensors = Vec::new();
        for (tensor, access) in args.iter().filter_map(|arg| arg.host_tensor(info)) {
            host_tensors.push(HostTensor { tensor, access, host: tensor.to_array()? });
        }
        let mut restored = Vec::new();
        for arg in args.iter().filter(|arg| arg.each_call == EachCall::Initial) {
            if let Some((tensor, _)) = arg.as_tensor() {
                restored.push((tensor, tensor.to_array()?));
            }
        }
        let args = args.iter().map(|arg| arg.arg).collect();
        Ok(Self { args, host_tensors, restored, graphs: GraphCache::default() })
    }

    /// Writes the initial contents that each call needs.
    fn restore(&mut self) -> Result<()> {
        for (tensor, contents) in &self.restored {
            match self.host_tensors.iter_mut().find(|arg| std::ptr::eq(arg.tensor, *tensor)) {
                // The call uploads it.
                Some(arg) => arg.host.bytes_mut().copy_from_slice(contents.bytes()),
                None => tensor.write_array(contents)?,
            }
        }
        Ok(())
    }
}

/// A tensor that each call transfers from or to host memory.
struct HostTensor<'s> {
    tensor: &'s Tensor,
    access: Access,
    /// The copy in host memory.
    host: HostArray,
}

/// The work that a window submits.
#[derive(Clone, Copy)]
enum Workload {
    Kernel,
    Empty,
}

impl<'s, 'a> QueueTarget<'s, 'a> {
    pub(crate) fn new(inputs: BenchInputs<'s, 'a>, timing: &Timing, clock: Clock) -> Result<Self> {
        let BenchInputs { device, queue, subject, sets, data, setup, observer } = inputs;
        let info = &device.info;
        let inline = info.kind == DeviceKind::Host
            && clock == Clock::HostWall
            && matches!(subject, Subject::Launch { .. });
        let sets = sets.into_iter().map(|args| ArgSet::new(args, info)).collect::<Result<_>>()?;
        Ok(Self {
            device,
            queue,
            subject,
            setup,
            observer,
            clock,
            has_run: [false; 2],
            inline,
            // A graph cannot contain no-op kernels.
            has_empty: info.capabilities.has(abi::CAP_NOOP_KERNEL) && clock != Clock::DeviceGraph,
            sets,
            set: 0,
            data,
            windows: 0,
            flusher: Flusher::new(device, timing.flush_cache)?,
            is_flush_due: false,
            timestamps: Vec::with_capacity(if clock == Clock::DeviceKernel { MAX_PAIRS } else { 0 }),
            begin: Instant::now(),
            calls: 0,
        })
    }

    /// How the calls so far were made.
    pub(crate) fn made(&self) -> Made {
        Made { clock: self.clock, calls: self.calls, transfer_bytes: self.transfer_bytes() }
    }

    /// Bytes uploaded and downloaded per call; `None` if there are no transfers.
    fn transfer_bytes(&self) -> Option<(u64, u64)> {
        let host_tensors = &self.sets[self.set].host_tensors;
        let bytes = |moves: fn(Access) -> bool| {
            let moved = host_tensors.iter().filter(|arg| moves(arg.access));
            moved.map(|arg| arg.host.bytes().len() as u64).sum()
        };
        (!host_tensors.is_empty()).then(|| (bytes(Access::reads), bytes(Access::writes)))
    }

    /// Runs the kernel once on the data that are on the device.
    pub(crate) fn call(&mut self) -> Result<()> {
        self.setup();
        self.calls += 1;
        // A validation compares the first set.
        self.set = 0;
        self.call_inline()
    }

    fn call_inline(&mut self) -> Result<()> {
        match &mut self.subject {
            Subject::Launch { kernel, config } => {
                self.queue.call(kernel, *config, &self.sets[self.set].args[..])
            }
            Subject::Work(submit) => submit(self.queue)?.wait(),
        }
    }

    fn submit(&mut self, workload: Workload) -> Result<Event> {
        match (workload, &mut self.subject) {
            (Workload::Kernel, Subject::Launch { kernel, config }) => {
                self.queue.launch(kernel, *config, &self.sets[self.set].args[..])
            }
            (Workload::Kernel, Subject::Work(submit)) => submit(self.queue),
            (Workload::Empty, _) => self.queue.launch_noop(),
        }
    }

    /// Makes `number` calls. Returns the event of the last one, unless all have completed.
    fn submit_calls(&mut self, workload: Workload, number: u64) -> Result<Option<Event>> {
        if self.inline {
            for _ in 0..number {
                match workload {
                    Workload::Kernel => self.call_inline()?,
                    Workload::Empty => self.queue.call_noop()?,
                }
            }
            return Ok(None);
        }
        for _ in 1..number {
            // Keeping an event signals its ticket, which costs a driver call, so keep only the last.
            self.submit(workload)?;
        }
        self.submit(workload).map(Some)
    }

    /// Makes `number` calls with their transfers; returns the time of the transfers in nanoseconds.
    ///
    /// Waits after each step: otherwise the time of a transfer would include its wait for the kernel.
    fn calls_with_transfers(&mut self, number: u64) -> Result<u64> {
        let mut transfer_ns = 0;
        for _ in 0..number {
            let begin = Instant::now();
            for arg in self.sets[self.set].host_tensors.iter().filter(|arg| arg.access.reads()) {
                self.queue.write(arg.tensor, arg.host.bytes())?;
            }
            transfer_ns += nanoseconds(begin.elapsed());
            self.submit(Workload::Kernel)?.wait()?;
            let begin = Instant::now();
            for arg in self.sets[self.set].host_tensors.iter_mut().filter(|arg| arg.access.writes()) {
                self.queue.read(arg.tensor, arg.host.bytes_mut())?;
            }
            transfer_ns += nanoseconds(begin.elapsed());
        }
        Ok(transfer_ns)
    }

    /// Makes the calls of a window; returns the last event, and the time of the transfers.
    fn submit_workload(&mut self, workload: Workload, number: u64) -> Result<(Option<Event>, f64)> {
        match workload {
            Workload::Kernel if !self.sets[self.set].host_tensors.is_empty() => {
                Ok((None, self.calls_with_transfers(number)? as f64))
            }
            _ => Ok((self.submit_calls(workload, number)?, 0.0)),
        }
    }

    async fn time_calls(&mut self, workload: Workload, number: u64) -> Result<Window> {
        match self.clock {
            Clock::HostWall => self.host_wall(workload, number),
            Clock::HostSubmit => self.host_submit(workload, number),
            Clock::DeviceBatch => self.device_batch(workload, number).await,
            Clock::DeviceGraph => self.device_graph(number).await,
            Clock::DeviceHeld => self.device_held(workload, number).await,
            Clock::DeviceKernel => self.device_kernel(workload, number).await,
        }
    }

    fn host_wall(&mut self, workload: Workload, number: u64) -> Result<Window> {
        let begin = Instant::now();
        let (last, transfer_ns) = self.submit_workload(workload, number)?;
        if let Some(last) = last {
            last.wait()?;
        }
        Ok(Window { elapsed_ns: nanoseconds(begin.elapsed()) as f64, transfer_ns })
    }

    fn host_submit(&mut self, workload: Workload, number: u64) -> Result<Window> {
        let begin = Instant::now();
        let last = self.submit_calls(workload, number)?;
        let elapsed_ns = nanoseconds(begin.elapsed()) as f64;
        if let Some(last) = last {
            last.wait()?;
        }
        Ok(Window { elapsed_ns, transfer_ns: 0.0 })
    }

    async fn device_batch(&mut self, workload: Workload, number: u64) -> Result<Window> {
        let begin = self.queue.timestamp()?;
        let (last, transfer_ns) = self.submit_workload(workload, number)?;
        drop(last);
        let mut end = self.queue.timestamp()?;
        (&mut end).await?;
        Ok(Window { elapsed_ns: self.elapsed_between(&begin, &end)?, transfer_ns })
    }

    /// Makes the graphs of a window, which are replayed once.
    fn prepare_graphs(&mut self, number: u64) -> Result<()> {
        let Subject::Launch { kernel, config } = &self.subject else {
            return Err(Error::new(ErrorKind::Internal, "a graph is of launches of one kernel"));
        };
        let ArgSet { args, graphs, .. } = &mut self.sets[self.set];
        let call = Call { queue: self.queue, kernel, config, args };
        self.calls += graphs.prepare(call, number)?;
        Ok(())
    }

    /// Writes the data of a window, and makes the calls that come before its time.
    fn prepare_data(&mut self, number: u64) -> Result<()> {
        let Some(data) = &mut self.data else { return Ok(()) };
        self.windows += 1;
        let before = data.prepare(self.set, number)?;
        for arg in &mut self.sets[self.set].host_tensors {
            arg.host = arg.tensor.to_array()?;
        }
        if std::mem::take(&mut self.is_flush_due) {
            self.flusher.flush(self.queue, self.clock)?;
        }
        for _ in 0..before {
            self.calls += 1;
            self.call_inline()?;
        }
        Ok(())
    }

    async fn device_graph(&mut self, number: u64) -> Result<Window> {
        let begin = self.queue.timestamp()?;
        self.sets[self.set].graphs.submit(self.queue, number)?;
        let mut end = self.queue.timestamp()?;
        (&mut end).await?;
        Ok(Window { elapsed_ns: self.elapsed_between(&begin, &end)?, transfer_ns: 0.0 })
    }

    /// Times the calls in parts, for each of which the queue is held. The first window of a workload is not held. Gives up
    /// holding once a hold did not last.
    async fn device_held(&mut self, workload: Workload, number: u64) -> Result<Window> {
        if !std::mem::replace(&mut self.has_run[workload as usize], true) {
            return self.device_batch(workload, number).await;
        }
        let (mut window, mut left) = (Window::default(), number);
        while left > 0 {
            let calls = left.min(MAX_HELD);
            let held = self.queue.hold()?;
            let begin = self.queue.timestamp()?;
            drop(self.submit_calls(workload, calls)?);
            let mut end = self.queue.timestamp()?;
            if !held.resume()? {
                self.clock = Clock::DeviceBatch;
            }
            (&mut end).await?;
            window.elapsed_ns += self.elapsed_between(&begin, &end)?;
            left -= calls;
        }
        Ok(window)
    }

    async fn device_kernel(&mut self, workload: Workload, number: u64) -> Result<Window> {
        let mut elapsed_ns = 0.0;
        let mut left = number;
        while left > 0 {
            let pairs = left.min(MAX_PAIRS as u64);
            self.timestamps.clear();
            for _ in 0..pairs {
                let begin = self.queue.timestamp()?;
                self.submit(workload)?;
                let end = self.queue.timestamp()?;
                self.timestamps.push((begin, end));
            }
            if let Some((_, last)) = self.timestamps.last_mut() {
                last.await?;
            }
            for (begin, end) in &self.timestamps {
                elapsed_ns += self.elapsed_between(begin, end)?;
            }
            left -= pairs;
        }
        Ok(Window { elapsed_ns, transfer_ns: 0.0 })
    }

    /// Nanoseconds of the device's clock between two completed timestamps.
    fn elapsed_between(&self, begin: &Event, end: &Event) -> Result<f64> {
        let (begin, end) = (self.queue.read_timestamp(begin)?, self.queue.read_timestamp(end)?);
        let elapsed = end.checked_sub(begin).ok_or_else(|| {
            Error::new(
                ErrorKind::Driver,
                format!("the device's clock ran backwards, from {begin} to {end} ns"),
            )
        })?;
        Ok(elapsed as f64)
    }
}

impl Drop for QueueTarget<'_, '_> {
    fn drop(&mut self) {
        *self.device.last_timed.lock() = Some(Instant::now());
    }
}

impl TimingTarget for QueueTarget<'_, '_> {
    fn now_ns(&mut self) -> u64 {
        nanoseconds(self.begin.elapsed())
    }

    fn wake_time(&mut self) -> Duration {
        let is_awake = self.device.last_timed.lock().is_some_and(|last| last.elapsed() < AWAKE_TIME);
        if self.device.info.is_gpu() && !is_awake { WAKE_TIME } else { Duration::ZERO }
    }

    fn setup(&mut self) {
        if let Some(setup) = self.setup {
            setup();
        }
    }

    fn restores_each_call(&self) -> bool {
        self.sets.iter().any(|set| !set.restored.is_empty())
    }

    fn restore(&mut self) -> Result<()> {
        // `WindowData::prepare` writes them.
        if self.data.is_some() { Ok(()) } else { self.sets[self.set].restore() }
    }

    fn observe(&mut self, moment: Moment) {
        if let Some(observer) = self.observer {
            observer(moment);
        }
    }

    fn throttle_reasons(&mut self) -> Option<ThrottleReasons> {
        self.device.throttle_reasons().ok()
    }

    fn flush_cache(&mut self) -> Result<()> {
        if self.data.is_some() {
            self.is_flush_due = true;
            return Ok(());
        }
        self.flusher.flush(self.queue, self.clock)
    }

    fn pause(&mut self, duration: Duration) {
        if !duration.is_zero() {
            std::thread::sleep(duration);
        }
    }

    async fn window(&mut self, number: u64) -> Result<Window> {
        self.set = self.windows % self.sets.len();
        if self.clock == Clock::DeviceGraph {
            self.prepare_graphs(number)?;
        }
        self.prepare_data(number)?;
        self.calls += number;
        let window = self.time_calls(Workload::Kernel, number).await?;
        if let Some(data) = &mut self.data {
            data.check(self.set, number)?;
        }
        Ok(window)
    }

    async fn empty_window(&mut self, number: u64) -> Result<Option<f64>> {
        if !self.has_empty {
            return Ok(None);
        }
        self.time_calls(Workload::Empty, number).await.map(|window| Some(window.elapsed_ns))
    }
}

/// Saturates after 584 years.
fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
