//! Queues that record: what is passed to them becomes the nodes of a graph.

use std::fmt;
use std::sync::Arc;

use crate::queue::Detour;
use crate::timeline::event::Event;
use crate::{Arg, Error, Kernel, LaunchConfig, Queue, Result, Tensor};

/// What records. `graph` implements it once; it is a trait because `graph` lies above `queue`.
pub(crate) trait Record: fmt::Debug + Send + Sync {
    /// Records a launch; its event can only be waited for by later nodes.
    ///
    /// # Errors
    /// What cannot be recorded, by name.
    fn launch(&self, kernel: &Kernel, config: &LaunchConfig, args: &[Arg<'_>]) -> Result<Event>;

    /// Records a copy.
    ///
    /// # Errors
    /// As [`Record::launch`].
    fn copy(&self, destination: &Tensor, source: &Tensor) -> Result<Event>;

    /// Records a fill.
    ///
    /// # Errors
    /// As [`Record::launch`].
    fn fill(&self, tensor: &Tensor, pattern: &[u8]) -> Result<Event>;

    /// Makes later nodes depend on the node of an event.
    ///
    /// # Errors
    /// `InvalidArgument` for an event of anything else.
    fn wait_for(&self, event: &Event) -> Result<()>;

    /// An event that ends once all nodes so far have run.
    fn all(&self) -> Event;
}

impl Queue {
    /// Opens a queue whose work is recorded.
    pub(crate) fn open_recording(&self, record: Arc<dyn Record>) -> Self {
        self.timeline.add_handle();
        let mut queue = Self::new(self.timeline.clone(), self.device.clone());
        queue.detour = Some(Box::new(Detour::Record(record)));
        queue
    }

    /// What records the work of this queue.
    #[inline]
    pub(crate) fn recorder(&self) -> Option<&dyn Record> {
        match self.detour.as_deref() {
            Some(Detour::Record(record)) => Some(&**record),
            _ => None,
        }
    }

    /// Refuses what cannot be recorded.
    ///
    /// # Errors
    /// `Unsupported` on a queue that records.
    #[inline]
    pub(crate) fn check_not_recording(&self, operation: &str) -> Result<()> {
        match self.recorder() {
            None => Ok(()),
            Some(_) => Err(self.annotate(cannot_be_recorded(operation), operation)),
        }
    }
}

#[cold]
fn cannot_be_recorded(operation: &str) -> Error {
    let remedy = match operation {
        "fuser" => "record the launches, then fuse the graph (`Graph::fuse`)",
        "replay" => "record the nodes of its graph (`Recorder::add_graph`)",
        _ => "do it on a queue that submits, before or after the replay",
    };
    Error::unsupported(format!(
        "`{operation}` cannot be recorded, unlike launches, copies, fills and uploads; {remedy}"
    ))
}
