//! Other arguments for the launches of an executable graph.

use crate::code::argument_tuples::Arguments;
use crate::code::owned_arg::OwnedArg;
use crate::graph::executable::{ExecutableGraph, buffer_uses};
use crate::graph::native::NativeGraph;
use crate::graph::node::{Node, Operation, TensorUses};
use crate::{Access, Arg, Error, ErrorKind, Kernel, LaunchConfig, Result, Tensor};

/// A node, and what it is to do instead.
pub(super) type Change = (usize, Operation);

impl ExecutableGraph {
    /// Replaces the arguments of launch node `index`. Dependencies between nodes stay as recorded.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no such launch, the arguments do not match its kernel, or they would need
    /// dependencies that were not recorded.
    pub fn update<'a>(&mut self, index: usize, args: impl Arguments<'a>) -> Result<()> {
        let updated = self.launch_node(index).and_then(|(kernel, config)| {
            let changed =
                args.with(Some(&kernel), |args| self.changed_launch((index, &kernel, config), args))?;
            self.apply(vec![changed], None)
        });
        updated.map_err(|error| self.annotate(error, "update"))
    }

    /// Replaces the arguments of several launch nodes at once: cheaper than one after the other, and the order of the nodes
    /// is checked only for the result.
    ///
    /// ```
    /// # use runtime_core::{Arg, ModuleSource, Runtime, read_write};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let scale = device.kernel(&unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32")?;
    /// # let (x, y) = (device.tensor([1], &[1.0f32])?, device.tensor([1], &[1.0f32])?);
    /// # let queue = device.queue()?;
    /// let graph = queue.record(|recorder| {
    ///     recorder.launch(&scale, (1, 1), (read_write(&x), 2.0f32))?;
    ///     recorder.launch(&scale, (1, 1), (read_write(&x), 3.0f32))
    /// })?;
    /// let mut work = queue.instantiate(&graph)?;
    /// let args = |factor| [Arg::read_write(&y), Arg::scalar(factor)];
    /// work.update_nodes(&[(0, &args(5.0f32)), (1, &args(7.0f32))])?;
    /// queue.replay(&work)?.wait()?;
    /// assert_eq!((x.to_vec::<f32>()?, y.to_vec::<f32>()?), (vec![1.0], vec![35.0]));
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ExecutableGraph::update`]; nothing is replaced then.
    pub fn update_nodes(&mut self, changes: &[(usize, &[Arg<'_>])]) -> Result<()> {
        let changed = changes.iter().map(|&(index, args)| {
            let (kernel, config) = self.launch_node(index)?;
            let changed = self.changed_launch((index, &kernel, config), args);
            changed.map_err(|error| error.with_note(format_args!("node {index}")))
        });
        let updated = changed.collect::<Result<Vec<_>>>().and_then(|changes| self.apply(changes, None));
        updated.map_err(|error| self.annotate(error, "update_nodes"))
    }

    /// The kernel and the geometry of a launch node.
    fn launch_node(&self, index: usize) -> Result<(Kernel, LaunchConfig)> {
        match self.nodes.get(index).map(|node| &node.operation) {
            Some(Operation::Launch { kernel, config, .. }) => Ok((kernel.clone(), *config)),
            _ => Err(Error::invalid(format!("node {index} is not a launch of this graph"))),
        }
    }

    fn changed_launch(
        &self,
        (index, kernel, config): (usize, &Kernel, LaunchConfig),
        args: &[Arg<'_>],
    ) -> Result<Change> {
        kernel.check_args(&self.device, args)?;
        let args = args.iter().map(OwnedArg::new).collect();
        Ok((index, Operation::Launch { kernel: kernel.clone(), config, args }))
    }

    /// Makes all changes, or none. `uses` are the accesses of a replay, if the changes need no other order.
    pub(super) fn apply(
        &mut self,
        mut changes: Vec<Change>,
        uses: Option<Vec<(Tensor, Access)>>,
    ) -> Result<()> {
        let was_native = self.native.is_some();
        self.exchange(&mut changes);
        let checked = uses.map_or_else(|| self.check_order().and_then(|()| buffer_uses(&self.nodes)), Ok);
        let error = match checked.and_then(|uses| self.apply_native(&changes).map(|()| uses)) {
            Ok(uses) => {
                self.buffer_uses = uses;
                return Ok(());
            }
            Err(error) => error,
        };
        changes.reverse();
        self.exchange(&mut changes);
        if was_native && self.native.is_none() {
            // Without a native graph, replays submit the old nodes one by one.
            self.native = NativeGraph::build(&self.device, &self.nodes).ok();
        }
        Err(error)
    }

    /// Exchanges the operations of nodes with those in `changes`.
    fn exchange(&mut self, changes: &mut [Change]) {
        for (index, operation) in changes {
            std::mem::swap(&mut self.nodes[*index].operation, operation);
        }
    }

    /// Updates the native graph to the nodes that changed, or builds another one where the device cannot update it. After an error
    /// it is either unchanged or gone.
    fn apply_native(&mut self, changes: &[Change]) -> Result<()> {
        let Some(native) = &mut self.native else { return Ok(()) };
        let launches_only =
            changes.iter().all(|(_, operation)| matches!(operation, Operation::Launch { .. }));
        let mut updated = 0;
        let result: Result<()> = changes.iter().filter(|_| launches_only).try_for_each(|&(index, _)| {
            if let Operation::Launch { kernel, config, args } = &self.nodes[index].operation {
                let args: Vec<_> = args.iter().map(OwnedArg::borrow).collect();
                native.update(index, (kernel, config), &args)?;
            }
            updated += 1;
            Ok(())
        });
        let result = match result {
            Ok(()) if launches_only => return Ok(()),
            Err(error) if error.kind() != ErrorKind::Unsupported => Err(error),
            _ => NativeGraph::build(&self.device, &self.nodes).map(|rebuilt| self.native = Some(rebuilt)),
        };
        if result.is_err() && updated > 0 {
            self.native = None;
        }
        result
    }

    /// Refuses nodes that need dependencies that were not recorded.
    fn check_order(&self) -> Result<()> {
        let mut uses = TensorUses::default();
        let mut needed = Vec::new();
        for (index, node) in (0..).zip(&self.nodes) {
            node.operation.check_writable()?;
            needed.clear();
            uses.add(index, &node.operation, &mut needed)?;
            if !needed.iter().all(|&earlier| self.runs_after(node, earlier)) {
                return Err(Error::invalid(
                    "these arguments change the dependencies between nodes; record the graph again",
                ));
            }
        }
        Ok(())
    }

    /// Whether a node depends on an earlier one, directly or through others.
    fn runs_after(&self, node: &Node, earlier: u32) -> bool {
        if node.dependencies.contains(&earlier) {
            return true;
        }
        let mut seen = vec![false; self.nodes.len()];
        let mut pending = node.dependencies.clone();
        while let Some(at) = pending.pop() {
            if at == earlier {
                return true;
            }
            if at > earlier && !std::mem::replace(&mut seen[at as usize], true) {
                pending.extend(&self.nodes[at as usize].dependencies);
            }
        }
        false
    }

    pub(super) fn annotate(&self, error: Error, operation: &str) -> Error {
        error.in_operation(operation).on_device(&self.device.name)
    }
}
