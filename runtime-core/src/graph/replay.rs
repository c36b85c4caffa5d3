//! Replays: a graph as one submission, or node by node.

#![allow(unsafe_code, reason = "calls the functions of a backend's table")]

use std::sync::Arc;

use smallvec::SmallVec;

use crate::abi::Handle;
use crate::code::owned_arg::OwnedArg;
use crate::graph::executable::{ExecutableGraph, LastReplay};
use crate::graph::native::NativeGraph;
use crate::graph::node::{Node, Operation};
use crate::queue::submit::{AccessSet, QueueWaits, SubmitFlags};
use crate::timeline::event::Event;
use crate::{Error, Queue, Result};

impl Queue {
    /// Submits a whole graph: with one ticket if the graph is native, otherwise with one per node, and the
    /// event of the last. An empty graph submits nothing, and returns the event of the work before it. A replay runs after the
    /// one before it, whichever queue that is on; if that one failed, this one runs unless it reads what it should have written.
    ///
    /// ```
    /// # use runtime_core::{ModuleSource, QueueOptions, Runtime};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let spin = device.kernel(&unsafe { ModuleSource::native("null", "spin") }, "spin")?;
    /// let queue = device.open_queue(&QueueOptions { timestamps: true, ..QueueOptions::default() })?;
    /// let graph = queue.record(|recorder| {
    ///     recorder.launch(&spin, (1, 1), (2000i64,))?; // takes 2 ms
    ///     recorder.launch(&spin, (1, 1), (2000i64,))
    /// })?;
    /// let executable = queue.instantiate(&graph)?;
    /// let event = queue.timed(|queue| queue.replay(&executable))?;
    /// event.wait()?;
    /// let times = event.times()?; // from the start of the first node to the end of the last
    /// assert!(times.end_ns - times.start_ns >= 4_000_000);
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a graph of another device; otherwise as [`Queue::launch`].
    pub fn replay(&self, graph: &ExecutableGraph) -> Result<Event> {
        self.check_not_recording("replay")?;
        if let Some(real) = self.real_queue() {
            return real.replay(graph);
        }
        if !Arc::ptr_eq(&graph.device, &self.device) {
            return Err(self.annotate(
                Error::invalid(format!("the graph was instantiated on {}", graph.device.name)),
                "replay",
            ));
        }
        let mut last = graph.last_replay.lock();
        let after = self.order_after(last.as_ref()).map_err(|error| self.annotate(error, "replay"))?;
        match &graph.native {
            Some(native) => self.replay_native((graph, native.handle()), after, &mut last),
            None => self.replay_nodes(&graph.nodes, after, &mut last),
        }
    }

    /// Makes later submissions wait for a replay on another queue. Returns the ticket of one on this queue, or 0.
    fn order_after(&self, last: Option<&LastReplay>) -> Result<u64> {
        let Some((timeline, ticket)) = last.and_then(|last| Some((last.timeline.upgrade()?, last.ticket)))
        else {
            return Ok(0);
        };
        if Arc::ptr_eq(&timeline, &self.timeline) {
            return Ok(ticket);
        }
        self.wait_for_ticket(&timeline, ticket, false).map(|()| 0)
    }

    fn replay_native(
        &self,
        (graph, native): (&ExecutableGraph, Handle),
        after: u64,
        last: &mut Option<LastReplay>,
    ) -> Result<Event> {
        let mut uses = AccessSet::default();
        for (tensor, access) in &graph.buffer_uses {
            tensor
                .buffer("replay")
                .and_then(|buffer| uses.add(buffer, *access))
                .map_err(|error| self.annotate(error, "replay"))?;
        }
        let replay = self.device.calls.graph.replay;
        let flags = SubmitFlags { watched: true, after, ..SubmitFlags::default() };
        let submitted = self.submit(&uses, flags, |_, queue, info| {
            // SAFETY: the queue is open, and the graph is borrowed, so it exists.
            unsafe { replay(queue, info, native) }
        });
        let submitted = submitted.map_err(|error| self.annotate(error, "replay"))?;
        *last = Some(LastReplay { timeline: Arc::downgrade(&self.timeline), ticket: submitted.ticket() });
        Ok(Event::new(&self.timeline, submitted.ticket()))
    }

    /// Submits a graph that stands for what a virtual queue listed, after all work of this queue and after `waits`; returns its
    /// ticket. Its accesses are recorded already. No other replay of it may be submitted meanwhile.
    ///
    /// # Errors
    /// As [`Queue::submit`].
    pub(crate) fn replay_listed(
        &self,
        graph: &NativeGraph,
        waits: &QueueWaits,
        watched: bool,
    ) -> Result<u64> {
        let (replay, native) = (self.device.calls.graph.replay, graph.handle());
        self.submit_listed_as(waits, watched, |_, queue, info| {
            // SAFETY: the queue is open, and the graph is borrowed, so it exists.
            unsafe { replay(queue, info, native) }
        })
    }

    fn replay_nodes(&self, nodes: &[Node], after: u64, last: &mut Option<LastReplay>) -> Result<Event> {
        let mut tickets = SmallVec::<[u64; 16]>::with_capacity(nodes.len());
        let mut event: Option<Event> = None;
        for node in nodes {
            // An event that exists makes the next submission signal it.
            drop(event.take());
            let needed = node.dependencies.iter().filter_map(|&needed| tickets.get(needed as usize));
            let replayed = self.replay_node(&node.operation, needed.copied().max().unwrap_or(after))?;
            tickets.push(replayed.ticket());
            *last = Some(LastReplay { timeline: Arc::downgrade(&self.timeline), ticket: replayed.ticket() });
            event = Some(replayed);
        }
        Ok(event.unwrap_or_else(|| Event::new(&self.timeline, self.timeline.watch_last())))
    }

    /// Submits a node that runs after the ticket `after`, besides what it shares tensors with.
    fn replay_node(&self, operation: &Operation, after: u64) -> Result<Event> {
        match operation {
            Operation::Launch { kernel, config, args } => {
                let args: SmallVec<[_; 16]> = args.iter().map(OwnedArg::borrow).collect();
                self.launch_after(kernel, config, &args, after)
            }
            Operation::Copy { destination, source } => self.copy_after(destination, source, after),
            Operation::Fill { tensor, pattern } => self.fill_after(tensor, pattern, after),
        }
    }
}
