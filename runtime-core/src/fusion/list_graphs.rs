//! Lists that a queue completes again and again, as executable graphs whose arguments are updated.
//!
//! The nodes of a graph follow each other, as submissions to a queue do, so that it is right whatever the arguments are. A graph
//! keeps no tensors: a node whose arguments have changed is updated before each replay. It never overlaps itself, since it
//! belongs to one queue, which is in order.

use std::hash::{Hash, Hasher};

use parking_lot::Mutex;
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::abi;
use crate::code::arg::ArgValue;
use crate::code::owned_arg::OwnedArg;
use crate::fusion::recently_used::RecentlyUsed;
use crate::graph::native::NativeGraph;
use crate::graph::node::{Node, Operation};
use crate::queue::fusion_list::{Entry, Step};
use crate::queue::submit::QueueWaits;
use crate::tensor::TensorIdentity;
use crate::{Access, Arg, DType, Error, ErrorKind, Kernel, LaunchConfig, Queue, Result};

/// The maximum number of lists kept per queue; the least recently completed one is evicted first.
const LIMIT: usize = 32;

/// The lists that a queue has completed.
#[derive(Debug)]
pub(super) struct ListGraphs(Mutex<RecentlyUsed<List>>);

impl Default for ListGraphs {
    fn default() -> Self {
        Self(Mutex::new(RecentlyUsed::new(LIMIT)))
    }
}

#[derive(Debug)]
struct List {
    /// A hash of the kernels and geometries of its steps.
    hash: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Completed once, without a graph.
    Seen,
    Graph(ListGraph),
    /// The device makes no graph of it.
    Refused,
}

/// The graph of a list.
#[derive(Debug)]
pub(super) struct ListGraph {
    native: NativeGraph,
    nodes: Vec<LaunchNode>,
}

#[derive(Debug)]
struct LaunchNode {
    kernel: Kernel,
    config: LaunchConfig,
    /// The arguments of the last replay; empty if they are not known.
    args: SmallVec<[KnownArg; 8]>,
}

/// What an argument was.
#[derive(Debug)]
enum KnownArg {
    Tensor(TensorIdentity, Access, bool),
    Scalar(DType, u64),
    Local(u64),
    /// It is passed again each time.
    Other,
}

/// A list that is submitted: its entries, and the steps that stand for them.
pub(super) type Submission<'s, 'e> = (&'s [Entry], &'s [Step<'e>]);

impl ListGraphs {
    /// Submits a list by a replay of its graph, after `waits`, which is called only for a replay; `watched` if the last launch is. Returns the ticket, or `None` if the list is new or cannot be a graph. Adds graphs that are no longer needed to `unused`.
    pub(super) fn submit(
        &self,
        queue: &Queue,
        list: Submission<'_, '_>,
        (waits, watched): (&dyn Fn() -> QueueWaits, bool),
        unused: &mut Vec<ListGraph>,
    ) -> Option<u64> {
        if !queue.device.info.capabilities.has(abi::CAP_GRAPHS) {
            return None;
        }
        // If another thread replays a graph of this queue, submitting the launches takes less time than waiting for that.
        let mut known = self.0.try_lock()?;
        let state = state_of(&mut known, hash(list), unused)?;
        let prepared = match &mut *state {
            State::Refused => return None,
            State::Graph(graph) if graph.is_of(list) => graph.update(list),
            other => {
                ListGraph::build(queue, list).map(|built| unused.extend(other.replace(State::Graph(built))))
            }
        };
        match (prepared, state) {
            // A refusal is reported by the launches themselves.
            (Ok(()), State::Graph(graph)) => queue.replay_listed(&graph.native, &waits(), watched).ok(),
            (Err(error), state) if error.kind() == ErrorKind::Unsupported => {
                unused.extend(state.replace(State::Refused));
                None
            }
            _ => None,
        }
    }
}

/// What is known of the lists with this hash; `None` for a new one.
fn state_of<'k>(
    known: &'k mut RecentlyUsed<List>,
    hash: u64,
    unused: &mut Vec<ListGraph>,
) -> Option<&'k mut State> {
    let is_same = |list: &List| list.hash == hash;
    if !known.has(is_same) {
        let evicted = known.insert(List { hash, state: State::Seen }, |_| false);
        unused.extend(evicted.and_then(|mut list| list.state.replace(State::Seen)));
        return None;
    }
    known.find(is_same).map(|list| &mut list.state)
}

impl State {
    /// Replaces the state; returns the graph that it was.
    fn replace(&mut self, state: Self) -> Option<ListGraph> {
        match std::mem::replace(self, state) {
            Self::Graph(graph) => Some(graph),
            Self::Seen | Self::Refused => None,
        }
    }
}

impl ListGraph {
    fn build(queue: &Queue, (entries, steps): Submission<'_, '_>) -> Result<Self> {
        let (mut operations, mut nodes) = (Vec::new(), Vec::new());
        for (index, step) in (0u32..).zip(steps) {
            let ((kernel, config), args) = (step.launch(entries), step.args(entries));
            if config.is_empty() || kernel.reporting().is_some() {
                return Err(Error::unsupported("a graph has no node for such a launch"));
            }
            let (kernel, config) = (kernel.clone(), *config);
            nodes.push(LaunchNode {
                kernel: kernel.clone(),
                config,
                args: args.iter().map(KnownArg::of).collect(),
            });
            let args = args.iter().map(OwnedArg::new).collect();
            let dependencies = index.checked_sub(1).into_iter().collect();
            operations.push(Node { operation: Operation::Launch { kernel, config, args }, dependencies });
        }
        Ok(Self { native: NativeGraph::build(&queue.device, &operations)?, nodes })
    }

    /// Whether its nodes are launches of the same kernels with the same geometries.
    fn is_of(&self, (entries, steps): Submission<'_, '_>) -> bool {
        let is_same = |(node, step): (&LaunchNode, &Step<'_>)| {
            let (kernel, config) = step.launch(entries);
            node.kernel.handle() == kernel.handle() && node.config == *config
        };
        self.nodes.len() == steps.len() && self.nodes.iter().zip(steps).all(is_same)
    }

    /// Updates the nodes whose arguments changed since the last replay.
    fn update(&mut self, (entries, steps): Submission<'_, '_>) -> Result<()> {
        for (index, (node, step)) in self.nodes.iter_mut().zip(steps).enumerate() {
            let args = step.args(entries);
            if node.has(&args) {
                continue;
            }
            // After an error they are not known.
            node.args.clear();
            self.native.update(index, (&node.kernel, &node.config), &args)?;
            node.args.extend(args.iter().map(KnownArg::of));
        }
        Ok(())
    }
}

impl LaunchNode {
    fn has(&self, args: &[Arg<'_>]) -> bool {
        self.args.len() == args.len() && self.args.iter().zip(args).all(|(known, arg)| known.is(arg))
    }
}

impl KnownArg {
    fn of(arg: &Arg<'_>) -> Self {
        match arg.value {
            ArgValue::Tensor(tensor, access, strided) => Self::Tensor(tensor.identity(), access, strided),
            ArgValue::Scalar(dtype, bits) => Self::Scalar(dtype, bits),
            ArgValue::Local(bytes) => Self::Local(bytes),
            ArgValue::Bytes(_) | ArgValue::Record(_) => Self::Other,
        }
    }

    fn is(&self, arg: &Arg<'_>) -> bool {
        match (self, arg.value) {
            (Self::Tensor(known, access, strided), ArgValue::Tensor(tensor, now, is_strided)) => {
                tensor.is(known) && *access == now && *strided == is_strided
            }
            (Self::Scalar(dtype, bits), ArgValue::Scalar(now, value)) => *dtype == now && *bits == value,
            (Self::Local(bytes), ArgValue::Local(now)) => *bytes == now,
            _ => false,
        }
    }
}

/// A hash of the kernels and geometries of a list, by their handles on this device.
fn hash((entries, steps): Submission<'_, '_>) -> u64 {
    let mut hasher = FxHasher::default();
    for step in steps {
        let (kernel, config) = step.launch(entries);
        kernel.handle().addr().hash(&mut hasher);
        match config {
            LaunchConfig::Groups(geometry) => (geometry.groups, geometry.group_size).hash(&mut hasher),
            LaunchConfig::Range(range) => (range.begin, range.end).hash(&mut hasher),
        }
    }
    hasher.finish()
}
