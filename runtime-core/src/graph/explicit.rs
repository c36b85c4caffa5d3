//! Graphs built node by node, with explicit edges.

use std::ops::Range;

use crate::code::argument_tuples::Arguments;
use crate::graph::check_recorded_on;
use crate::graph::node::{NodeList, Operation};
use crate::{Error, Graph, Kernel, LaunchConfig, Queue, Result, Tensor};

/// Nodes with explicit edges. `after` has the indices of earlier nodes that the new one runs after, besides those
/// that use its tensors. Every method checks its node like the method of [`Recorder`](crate::graph::Recorder) with the same
/// purpose; a refused node leaves the graph as it was.
///
/// ```
/// # use runtime_core::{Graph, ModuleSource, Runtime, read, write};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let copy = device.kernel(&unsafe { ModuleSource::native("null", "copy_bytes") }, "copy_bytes")?;
/// # let [x, y, z] = [1.0f32, 2.0, 3.0].map(|value| device.tensor([1], &[value]).unwrap());
/// # let queue = device.queue()?;
/// let mut graph = Graph::new(&queue);
/// let first = graph.add_fill(&x, &5.0f32.to_le_bytes(), &[])?;
/// let second = graph.add_launch(&copy, (1, 1), (read(&y), write(&z)), &[first])?; // they share no tensor
/// let third = graph.add_copy(&y, &x, &[])?;
/// assert_eq!(graph.dependencies(second), Some(&[0][..])); // the explicit edge
/// assert_eq!(graph.dependencies(third), Some(&[0, 1][..])); // it reads x, and overwrites y
///
/// let mut twice = Graph::new(&queue);
/// let inner = twice.add_graph(&graph, &[])?; // nodes 0..3
/// twice.add_graph(&graph, &[inner.end - 1])?;
/// queue.replay(&queue.instantiate(&twice)?)?.wait()?;
/// assert_eq!(z.to_vec::<f32>()?, [5.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
impl Graph {
    /// Creates an empty graph for the device of a queue.
    #[must_use]
    pub fn new(queue: &Queue) -> Self {
        Self { nodes: NodeList::default(), device: queue.device.clone() }
    }

    /// Adds a launch; returns its index.
    ///
    /// # Errors
    /// As [`Recorder::launch`](crate::graph::Recorder::launch); `InvalidArgument` if `after` has an index that is not of an
    /// earlier node.
    pub fn add_launch<'a>(
        &mut self,
        kernel: &Kernel,
        config: impl Into<LaunchConfig>,
        args: impl Arguments<'a>,
        after: &[usize],
    ) -> Result<usize> {
        let config = config.into();
        let operation =
            args.with(Some(kernel), |args| Operation::launch(&self.device, kernel, &config, args));
        self.add("add_launch", operation?, after)
    }

    /// Adds a copy; returns its index.
    ///
    /// # Errors
    /// As [`Recorder::copy`](crate::graph::Recorder::copy); `InvalidArgument` if `after` has an index that is not of an
    /// earlier node.
    pub fn add_copy(&mut self, destination: &Tensor, source: &Tensor, after: &[usize]) -> Result<usize> {
        self.add("add_copy", Operation::copy(&self.device, destination, source)?, after)
    }

    /// Adds a fill; returns its index.
    ///
    /// # Errors
    /// As [`Recorder::fill`](crate::graph::Recorder::fill); `InvalidArgument` if `after` has an index that is not of an
    /// earlier node.
    pub fn add_fill(&mut self, tensor: &Tensor, pattern: &[u8], after: &[usize]) -> Result<usize> {
        self.add("add_fill", Operation::fill(&self.device, tensor, pattern)?, after)
    }

    /// Adds copies of all nodes of another graph, with the dependencies between them; returns their indices. The nodes
    /// that depend on no other of them run after those in `after`.
    ///
    /// # Errors
    /// `InvalidArgument` for a graph of another device, one that writes a tensor that was frozen meanwhile, or an index
    /// in `after` that is not of an earlier node. Nothing is added then.
    pub fn add_graph(&mut self, graph: &Self, after: &[usize]) -> Result<Range<usize>> {
        check_recorded_on(graph, &self.device)
            .and_then(|()| self.nodes.extend(&graph.nodes.list, after))
            .map_err(|error| self.annotate(error, "add_graph"))
    }

    pub(super) fn add(&mut self, name: &str, operation: Operation, after: &[usize]) -> Result<usize> {
        let pushed = self.nodes.push(operation, after);
        pushed.map(|index| index as usize).map_err(|error| self.annotate(error, name))
    }

    fn annotate(&self, error: Error, operation: &str) -> Error {
        error.in_operation(operation).on_device(&self.device.name)
    }
}
