//! Fuses the kernels of a recorded graph.

use std::sync::Arc;

use crate::code::owned_arg::OwnedArg;
use crate::fusion::completion::Completer;
use crate::fusion::options::FusionOptions;
use crate::fusion::report::FusionReport;
use crate::graph::node::{Node, NodeList, Operation};
use crate::queue::fusion_list::{Entry, Step};
use crate::{Error, Graph, Result};

impl Graph {
    /// Fuses launches that follow each other in the order of the nodes, as [`Fuser`](crate::fusion::Fuser) does; copies and fills stay nodes
    /// of their own, between which launches are fused. Tensors that only this graph owns are not written where fused code can
    /// keep their elements elsewhere. Nodes are renumbered; use
    /// [`ExecutableGraph::rebind`](crate::ExecutableGraph::rebind) to replace tensors afterwards.
    ///
    /// # Errors
    /// With [`FusionOptions::require`], `Unsupported` if launches between two other nodes do not become one kernel;
    /// `InvalidArgument` for claims by [`FusionOptions::promote`]: drop the tensors instead.
    pub fn fuse(self, options: &FusionOptions) -> Result<(Self, FusionReport)> {
        let device = self.device.clone();
        let annotate = |error: Error| error.in_operation("fuse").on_device(&device.name);
        self.fused(options).map_err(annotate)
    }

    fn fused(self, options: &FusionOptions) -> Result<(Self, FusionReport)> {
        if !options.promote.is_empty() {
            return Err(Error::invalid(
                "a graph promotes the tensors that only it owns; drop them instead of claiming it",
            ));
        }
        let Self { nodes, device } = self;
        let is_on = device.instance.fusion;
        let split = Split::of(nodes.list);
        let completer = Completer::new(options.clone().cache(false), Arc::default());
        let planned = completer.plan(&device, &split.entries, is_on, |start| split.end_of_segment(start));
        let (steps, report) = (&planned.steps, planned.report(!is_on));
        if is_on && options.require && steps.len() > split.segments() {
            return Err(Error::unsupported(format!(
                "launches stay apart that `require` asks to become one kernel: {report}"
            )));
        }
        tracing::debug!(target: "runtime::fusion", device = %device.name, %report, "fused a graph");
        let nodes = split.nodes_with(steps)?;
        Ok((Self { nodes, device }, report))
    }
}

/// The nodes of a graph, with its launches as those of a list.
struct Split {
    entries: Vec<Entry>,
    /// By entry: its node, and how many other nodes come before it.
    places: Vec<(usize, usize)>,
    others: Vec<(usize, Operation)>,
    dependencies: Vec<Vec<u32>>,
}

impl Split {
    fn of(nodes: Vec<Node>) -> Self {
        let (entries, places, others, dependencies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut split = Self { entries, places, others, dependencies };
        for (index, Node { operation, dependencies }) in nodes.into_iter().enumerate() {
            split.dependencies.push(dependencies);
            match operation {
                Operation::Launch { kernel, config, args } => {
                    split.entries.push(Entry::recorded(kernel, config, args));
                    split.places.push((index, split.others.len()));
                }
                other => split.others.push((index, other)),
            }
        }
        split
    }

    /// The first entry from `start` on with another node before it.
    fn end_of_segment(&self, start: usize) -> usize {
        let others = self.places[start].1;
        self.places.partition_point(|(_, before)| *before <= others)
    }

    /// How many sequences of launches there are without other nodes between them.
    fn segments(&self) -> usize {
        self.places.chunk_by(|(_, one), (_, other)| one == other).count()
    }

    /// The nodes, with `steps` in place of the launches.
    fn nodes_with(&self, steps: &[Step<'_>]) -> Result<NodeList> {
        let mut new = Renumbered { nodes: NodeList::default(), numbers: vec![0; self.dependencies.len()] };
        let mut others = self.others.iter().peekable();
        for step in steps {
            let members: Vec<usize> = step.entries.clone().map(|entry| self.places[entry].0).collect();
            while let Some((index, other)) = others.next_if(|(index, _)| Some(index) < members.first()) {
                new.push(other.clone(), &[*index], self)?;
            }
            let entry = &self.entries[step.entries.start];
            let (kernel, config, args) = match &step.fused {
                Some(fused) => (&fused.kernel, fused.config, fused.args.iter().map(OwnedArg::new).collect()),
                None => (&entry.kernel, entry.config, entry.args.to_vec()),
            };
            new.push(Operation::Launch { kernel: kernel.clone(), config, args }, &members, self)?;
        }
        for (index, other) in others {
            new.push(other.clone(), &[*index], self)?;
        }
        Ok(new.nodes)
    }
}

/// New nodes, and the number of the one that stands for each old node.
struct Renumbered {
    nodes: NodeList,
    numbers: Vec<usize>,
}

impl Renumbered {
    /// Appends the node that stands for `members`, with their dependencies on others.
    fn push(&mut self, operation: Operation, members: &[usize], old: &Split) -> Result<()> {
        let needed = members.iter().flat_map(|&member| &old.dependencies[member]);
        let needed = needed.map(|&node| node as usize).filter(|node| !members.contains(node));
        let after: Vec<usize> = needed.map(|node| self.numbers[node]).collect();
        let number = self.nodes.push(operation, &after)? as usize;
        members.iter().for_each(|&member| self.numbers[member] = number);
        Ok(())
    }
}
