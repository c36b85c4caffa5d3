//! In-order queues. Work runs on the queue's own thread, because the library's calls wait.

#![allow(unsafe_code, reason = "runs kernels, and copies from and to memory that core keeps")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use runtime_core::abi::{Progress, SubmitInfo};
use runtime_core::backend::{
    FillPattern, HostBytes, HostBytesMut, Launch, NoGraph, Queue, catch_panic, check_range,
};
use runtime_core::{Error, ErrorKind, Result};

use super::arguments;
use super::command::Command;
use super::host_arguments::HostArguments;
use super::kernel::{OffloadKernel, Runs};
use super::memory::{OffloadBuffer, pieces};
use super::open_chip::OpenChip;

/// How long the queue of a lost device waits for work that sees the loss, so that the device can be opened again at once.
const GRACE: Duration = Duration::from_millis(100);

/// Work of a ticket. It gets the command block of the queue.
type Work = Box<dyn FnOnce(&mut Command) -> Result<()> + Send>;

/// An in-order queue of a chip.
#[derive(Debug)]
pub struct OffloadQueue {
    shared: Arc<Shared>,
    chip: Arc<OpenChip>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Work arrived, or a ticket ended.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(u64, Work)>,
    submitted: u64,
    completed: u64,
    first_failed: u64,
    failure: Option<Error>,
    closed: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("submitted", &self.submitted)
            .field("completed", &self.completed)
            .finish_non_exhaustive()
    }
}

impl OffloadQueue {
    pub(super) fn new(chip: &Arc<OpenChip>) -> Self {
        Self { shared: Arc::default(), chip: Arc::clone(chip), worker: Mutex::default() }
    }

    fn submit(
        &self,
        submit: SubmitInfo,
        work: impl FnOnce(&mut Command) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.start()?;
        let mut state = self.shared.state.lock();
        state.waiting.push_back((submit.ticket, Box::new(work)));
        state.submitted = submit.ticket;
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Starts the thread when it is first needed.
    fn start(&self) -> Result<()> {
        let mut worker = self.worker.lock();
        if worker.is_some() {
            return Ok(());
        }
        let (shared, command) = (Arc::clone(&self.shared), Command::new(&self.chip.chip));
        let thread = std::thread::Builder::new().name("mppa-queue".to_owned());
        let handle = thread.spawn(move || shared.run(command)).map_err(|error| {
            let message = format!("cannot start the queue's thread: {error}; close other queues");
            Error::new(ErrorKind::OutOfResources, message)
        })?;
        *worker = Some(handle);
        Ok(())
    }
}

impl Shared {
    /// Runs work until the queue is closed and all of it has ended.
    fn run(&self, mut command: Command) {
        while let Some((ticket, work)) = self.next() {
            let failed = self.state.lock().first_failed != 0;
            let run = || if failed { Ok(()) } else { work(&mut command) };
            self.end(ticket, catch_panic("mppa-queue", run).flatten());
        }
    }

    fn next(&self) -> Option<(u64, Work)> {
        let mut state = self.state.lock();
        loop {
            if let Some(next) = state.waiting.pop_front() {
                return Some(next);
            }
            if state.closed {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }

    fn end(&self, ticket: u64, outcome: Result<()>) {
        let mut state = self.state.lock();
        state.completed = ticket;
        if let Err(error) = outcome {
            state.first_failed = ticket;
            state.failure = Some(error);
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl Queue for OffloadQueue {
    type Buffer = OffloadBuffer;
    type Kernel = OffloadKernel;
    type Graph = NoGraph<OffloadBuffer>;

    fn launch(
        &self,
        submit: SubmitInfo,
        kernel: &OffloadKernel,
        launch: &Launch<'_, OffloadBuffer>,
    ) -> Result<()> {
        let OffloadKernel { code, name, runs } = kernel.clone();
        let is_empty = launch.groups().contains(&0);
        let run: Work = match runs {
            Runs::OnClusters(clusters) => {
                let arguments = arguments::pack(launch.args())?;
                Box::new(move |command| {
                    // SAFETY: core passes the arguments of the launch, and keeps their buffers until the ticket ends.
                    unsafe { code.chip.modules.execute((code.number, &name), clusters, command, &arguments) }
                })
            }
            Runs::InThisProcess => {
                let arguments = HostArguments::new(launch.args())?;
                Box::new(move |_| {
                    // SAFETY: core passes the arguments of the launch, and keeps their buffers until the ticket ends.
                    unsafe { code.chip.modules.call((code.number, &name), &arguments) }
                })
            }
        };
        self.submit(submit, move |command| if is_empty { Ok(()) } else { run(command) })
    }

    fn write(
        &self,
        submit: SubmitInfo,
        destination: &OffloadBuffer,
        offset: u64,
        source: HostBytes,
    ) -> Result<()> {
        check_range("write", offset, source.len() as u64, destination.0.bytes())?;
        let memory = Arc::clone(&destination.0);
        self.submit(submit, move |_| {
            // SAFETY: core keeps the source until the ticket ends or the device is lost.
            unsafe { memory.write_lent(offset, source.as_ptr(), source.len() as u64) }
        })
    }

    fn read(
        &self,
        submit: SubmitInfo,
        source: &OffloadBuffer,
        offset: u64,
        destination: HostBytesMut,
    ) -> Result<()> {
        check_range("read", offset, destination.len() as u64, source.0.bytes())?;
        let memory = Arc::clone(&source.0);
        self.submit(submit, move |_| {
            // SAFETY: core keeps the destination until the ticket ends or the device is lost.
            unsafe { memory.read_lent(offset, destination.as_ptr(), destination.len() as u64) }
        })
    }

    fn copy(
        &self,
        submit: SubmitInfo,
        (to, to_offset): (&OffloadBuffer, u64),
        (from, from_offset): (&OffloadBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        check_range("copy: destination", to_offset, bytes, to.0.bytes())?;
        check_range("copy: source", from_offset, bytes, from.0.bytes())?;
        let (to, from) = (Arc::clone(&to.0), Arc::clone(&from.0));
        self.submit(submit, move |_| {
            pieces(bytes, |done, piece| {
                let piece = from.read(from_offset + done, piece)?;
                to.write(to_offset + done, piece)
            })
        })
    }

    fn fill(
        &self,
        submit: SubmitInfo,
        (to, offset): (&OffloadBuffer, u64),
        bytes: u64,
        pattern: FillPattern,
    ) -> Result<()> {
        check_range("fill", offset, bytes, to.0.bytes())?;
        let memory = Arc::clone(&to.0);
        self.submit(submit, move |_| {
            let pattern = pattern.repeated();
            pieces(bytes, |done, mut piece| {
                // A piece is a multiple of the pattern, except the last one.
                piece.iter_mut().zip(pattern.iter().cycle()).for_each(|(byte, value)| *byte = *value);
                memory.write(offset + done, piece)
            })
        })
    }

    fn poll(&self) -> Result<Progress> {
        let state = self.shared.state.lock();
        if state.completed < state.submitted {
            self.chip.chip.check_running()?;
        }
        Ok(Progress { completed: state.completed, first_failed: state.first_failed })
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        let mut state = self.shared.state.lock();
        self.shared.changed.wait_while_for(&mut state, |state| state.completed < ticket, slice);
        Ok(())
    }

    fn failure(&self) -> Option<Error> {
        self.shared.state.lock().failure.clone()
    }
}

impl Drop for OffloadQueue {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        self.shared.changed.notify_all();
        self.shared.changed.wait_while_for(&mut state, |state| state.completed < state.submitted, GRACE);
        let idle = state.completed == state.submitted;
        drop(state);
        // With work in flight the device is lost; the thread ends when the library returns.
        if let Some(worker) = self.worker.lock().take().filter(|_| idle) {
            // The worker catches every panic, so the result carries no information.
            let _ = worker.join();
        }
    }
}
