//! Other tensors for all nodes of an executable graph at once.

use std::sync::Arc;

use crate::graph::executable::ExecutableGraph;
use crate::graph::update::Change;
use crate::{Access, Error, Result, Tensor};

/// Beyond that many buffers, the search in a list is slower than a check of the order.
const MAX_MOVES: usize = 64;

/// What becomes of each buffer that a graph uses.
struct Moves {
    /// The addresses of an old and a new buffer, and a tensor in the new one.
    list: Vec<(usize, usize, Tensor)>,
    /// Each old buffer becomes one new buffer, and each new buffer was one old one: the order of the nodes is as before.
    one_to_one: bool,
}

impl Moves {
    /// Adds a tensor and what replaces it, which may be itself.
    fn add(&mut self, old: &Tensor, new: &Tensor) -> Result<()> {
        if !self.one_to_one {
            return Ok(());
        }
        let (from, to) = (address_of(old)?, address_of(new)?);
        match self.list.iter().find(|(known, replaced, _)| *known == from || *replaced == to) {
            Some((known, replaced, _)) => self.one_to_one = (*known, *replaced) == (from, to),
            None if self.list.len() == MAX_MOVES => self.one_to_one = false,
            None => self.list.push((from, to, new.clone())),
        }
        Ok(())
    }

    /// The accesses of a replay after the moves; `None` if the order of the nodes may change.
    fn uses(&self, before: &[(Tensor, Access)]) -> Result<Option<Vec<(Tensor, Access)>>> {
        if !self.one_to_one {
            return Ok(None);
        }
        let moved = before.iter().map(|(tensor, access)| {
            let address = address_of(tensor)?;
            let found = self.list.iter().find(|(known, _, _)| *known == address);
            Ok((found.map_or(tensor, |(_, _, new)| new).clone(), *access))
        });
        moved.collect::<Result<_>>().map(Some)
    }
}

impl ExecutableGraph {
    /// Makes all nodes use other tensors: the new one of each pair `(old, new)` instead of the old one, and views of the new
    /// one instead of views of the old one. Scalars stay. So recorded work runs on new data for the cost of an update, which
    /// is less than that of its launches. All pairs are replaced at once: `[(&a, &b), (&b, &a)]` exchanges two tensors.
    ///
    /// ```
    /// # use runtime_core::{ModuleSource, Runtime, read, read_write};
    /// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
    /// # let device = runtime.open("null")?;
    /// # let module = device.load(&unsafe { ModuleSource::native("null", "scale_f32\nsaxpy_f32") })?;
    /// # let (scale, saxpy) = (module.kernel("scale_f32")?, module.kernel("saxpy_f32")?);
    /// # let x = device.tensor([1], &[1.0f32])?;
    /// # let y = device.tensor([1], &[0.0f32])?;
    /// # let queue = device.queue()?;
    /// let graph = queue.record(|recorder| {
    ///     recorder.launch(&scale, (1, 1), (read_write(&x), 2.0f32))?; // x = 2 x
    ///     recorder.launch(&saxpy, (1, 1), (read(&x), read_write(&y), 1.0f32)) // y = x + y
    /// })?;
    /// let mut work = queue.instantiate(&graph)?;
    /// queue.replay(&work)?;
    /// let other = device.tensor([1], &[10.0f32])?;
    /// work.rebind(&[(&x, &other)])?;
    /// queue.replay(&work)?.wait()?;
    /// assert_eq!((other.to_vec::<f32>()?, y.to_vec::<f32>()?), (vec![20.0], vec![22.0]));
    /// # Ok::<(), runtime_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for an old tensor that no node uses, or that a node uses only a part of together with other memory; a
    /// new tensor of another device, type, shape or strides, or one that is frozen and would be written; or tensors that would
    /// need dependencies that were not recorded. Nothing is replaced then.
    pub fn rebind(&mut self, pairs: &[(&Tensor, &Tensor)]) -> Result<()> {
        let rebound = self.rebound(pairs).and_then(|(changes, uses)| self.apply(changes, uses));
        rebound.map_err(|error| self.annotate(error, "rebind"))
    }

    /// The nodes that use an old tensor of `pairs`, with the new ones instead, and the accesses of a replay if the order of the
    /// nodes is the same.
    #[expect(clippy::type_complexity, reason = "the arguments of `apply`")]
    fn rebound(&self, pairs: &[(&Tensor, &Tensor)]) -> Result<(Vec<Change>, Option<Vec<(Tensor, Access)>>)> {
        check_pairs(pairs)?;
        let mut is_used = vec![false; pairs.len()];
        let mut moves = Moves { list: Vec::new(), one_to_one: true };
        let mut changes = Vec::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let mut changed = false;
            let operation = node.operation.map_tensors(|tensor| {
                let replacement = replacement(pairs, tensor)?;
                changed |= replacement.is_some();
                let new = replacement.map_or_else(
                    || tensor.clone(),
                    |(at, moved)| {
                        is_used[at] = true;
                        moved
                    },
                );
                moves.add(tensor, &new).map(|()| new)
            });
            let operation = operation.map_err(|error| error.with_note(format_args!("node {index}")))?;
            if changed {
                operation.check_writable()?;
                changes.push((index, operation.checked(&self.device)?));
            }
        }
        match is_used.iter().position(|is_used| !is_used) {
            Some(at) => Err(Error::invalid(format!("pair {at}: no node uses {:?}", pairs[at].0))),
            None => Ok((changes, moves.uses(&self.buffer_uses)?)),
        }
    }
}

/// The address of a tensor's buffer.
fn address_of(tensor: &Tensor) -> Result<usize> {
    Ok(Arc::as_ptr(tensor.buffer("rebind")?).addr())
}

fn check_pairs(pairs: &[(&Tensor, &Tensor)]) -> Result<()> {
    let differ = |(old, new): &(&Tensor, &Tensor)| {
        old.dtype() != new.dtype() || old.shape() != new.shape() || old.strides() != new.strides()
    };
    match pairs.iter().position(differ) {
        None => Ok(()),
        Some(at) => {
            let (old, new) = pairs[at];
            Err(Error::invalid(format!(
                "pair {at}: {new:?} cannot replace {old:?}: types, shapes and strides must be equal"
            )))
        }
    }
}

/// What replaces `tensor`, with the index of its pair; `None` if it shares no memory with an old tensor.
fn replacement(pairs: &[(&Tensor, &Tensor)], tensor: &Tensor) -> Result<Option<(usize, Tensor)>> {
    for (at, (old, new)) in pairs.iter().enumerate() {
        if tensor.lies_within(old) {
            return Ok(Some((at, tensor.moved(old, new)?)));
        }
    }
    match pairs.iter().position(|(old, _)| tensor.shares_memory_with(old)) {
        Some(at) => Err(Error::invalid(format!(
            "pair {at}: {:?} is only a part of {tensor:?}, which the node uses; rebind the whole",
            pairs[at].0
        ))),
        None => Ok(None),
    }
}
