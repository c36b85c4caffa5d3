//! The graph behind a recording, and the events of its nodes.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::graph::node::{NodeList, Operation};
use crate::queue::recording::Record;
use crate::timeline::event::Event;
use crate::timeline::event::signal::Signal;
use crate::timeline::open_device::OpenDevice;
use crate::{Arg, Error, ErrorKind, Graph, Kernel, LaunchConfig, Result, Tensor};

/// A graph that grows by what a recorder or its queue is given.
#[derive(Debug)]
pub(crate) struct RecordingQueue(Mutex<Recorded>);

#[derive(Debug)]
struct Recorded {
    graph: Graph,
    /// Nodes that later ones depend on, whatever tensors they share.
    after: Vec<usize>,
    /// The events of nodes that still exist.
    events: Vec<(Weak<Signal>, usize)>,
}

impl RecordingQueue {
    pub(super) const fn new(graph: Graph) -> Self {
        Self(Mutex::new(Recorded { graph, after: Vec::new(), events: Vec::new() }))
    }

    /// Adds a node; returns its index.
    ///
    /// # Errors
    /// Those of `operation`; a write to a frozen tensor.
    pub(super) fn add(
        &self,
        name: &str,
        operation: impl FnOnce(&Arc<OpenDevice>) -> Result<Operation>,
    ) -> Result<usize> {
        let mut recorded = self.0.lock();
        let Recorded { graph, after, .. } = &mut *recorded;
        let operation = operation(&graph.device)?;
        graph.add(name, operation, after)
    }

    /// Adds the nodes of another graph.
    ///
    /// # Errors
    /// As [`Graph::add_graph`].
    pub(super) fn add_graph(&self, graph: &Graph) -> Result<Range<usize>> {
        let mut recorded = self.0.lock();
        let Recorded { graph: own, after, .. } = &mut *recorded;
        own.add_graph(graph, after)
    }

    /// The graph, at the end of the recording.
    pub(super) fn take(&self) -> Graph {
        let mut recorded = self.0.lock();
        let device = recorded.graph.device.clone();
        std::mem::replace(&mut recorded.graph, Graph { nodes: NodeList::default(), device })
    }

    /// Makes later nodes depend on the node of an event; false for an event of other work.
    fn depend_on(&self, event: &Event) -> bool {
        let mut recorded = self.0.lock();
        let own = |(signal, _): &&(Weak<Signal>, usize)| {
            event.signal().is_some_and(|given| std::ptr::eq(signal.as_ptr(), Arc::as_ptr(given)))
        };
        let node = recorded.events.iter().find(own).map(|(_, node)| *node);
        recorded.after.extend(node);
        node.is_some()
    }

    /// The event of a node. It is an error for whoever waits for it.
    fn event(&self, node: usize) -> Event {
        let message = "recorded work has not been submitted; wait for the event of a replay";
        let signal = Signal::failed(Error::new(ErrorKind::Unsupported, message));
        let mut recorded = self.0.lock();
        recorded.events.retain(|(signal, _)| signal.strong_count() > 0);
        recorded.events.push((Arc::downgrade(&signal), node));
        Event::of_signal(signal)
    }
}

impl Record for RecordingQueue {
    fn launch(&self, kernel: &Kernel, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<Event> {
        if config.is_empty() {
            // Nothing to replay, and nothing to wait for.
            return Ok(Event::completed());
        }
        let node = self.add("launch", |device| Operation::launch(device, kernel, config, args))?;
        Ok(self.event(node))
    }

    fn copy(&self, destination: &Tensor, source: &Tensor) -> Result<Event> {
        let node = self.add("copy", |device| Operation::copy(device, destination, source))?;
        Ok(self.event(node))
    }

    fn fill(&self, tensor: &Tensor, pattern: &[u8]) -> Result<Event> {
        let node = self.add("fill", |device| Operation::fill(device, tensor, pattern))?;
        Ok(self.event(node))
    }

    fn wait_for(&self, event: &Event) -> Result<()> {
        if let Some(parts) = event.all_of() {
            return parts.iter().try_for_each(|part| self.wait_for(part));
        }
        if self.depend_on(event) || event.is_done()? {
            return Ok(());
        }
        Err(Error::invalid(
            "a recording waits for its own events only; make the queue wait before the replay",
        ))
    }

    fn all(&self) -> Event {
        let nodes = {
            let recorded = self.0.lock();
            let list = &recorded.graph.nodes.list;
            let needed: HashSet<_> =
                list.iter().flat_map(|node| &node.dependencies).map(|&node| node as usize).collect();
            (0..list.len()).filter(|node| !needed.contains(node)).collect::<Vec<_>>()
        };
        let events: Vec<_> = nodes.into_iter().map(|node| self.event(node)).collect();
        Event::all(&events.iter().collect::<Vec<_>>())
    }
}
