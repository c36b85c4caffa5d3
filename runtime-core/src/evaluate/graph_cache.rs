//! Batches of calls as graphs: replayed, they leave no gap between one call and the next.

use crate::{Arg, ExecutableGraph, Geometry, Kernel, Queue, Result};

/// The most calls of one graph: more would not make the gaps between replays matter less.
const NODES: u64 = 1024;

/// Graphs of one kernel's calls, kept from window to window.
#[derive(Debug, Default)]
pub(crate) struct GraphCache(Vec<(u64, ExecutableGraph)>);

/// What is recorded.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) queue: &'a Queue,
    pub(crate) kernel: &'a Kernel,
    pub(crate) geometry: &'a Geometry,
    pub(crate) args: &'a [Arg<'a>],
}

impl GraphCache {
    /// Makes the graphs that `number` calls need; says how many calls their first replays, which are not timed, made.
    ///
    /// # Errors
    /// Whatever recording and instantiating say.
    pub(crate) fn prepare(&mut self, call: Call<'_>, number: u64) -> Result<u64> {
        let mut calls = 0;
        for nodes in sizes(number) {
            if self.0.iter().any(|(known, _)| *known == nodes) {
                continue;
            }
            // Only the last number's remainder is needed again.
            self.0.retain(|(known, _)| *known == NODES);
            let graph = record(call, nodes)?;
            call.queue.replay(&graph)?.wait()?;
            self.0.push((nodes, graph));
            calls += nodes;
        }
        Ok(calls)
    }

    /// Submits `number` calls, for which the graphs are there.
    ///
    /// # Errors
    /// Whatever a replay says.
    pub(crate) fn submit(&self, queue: &Queue, number: u64) -> Result<()> {
        for nodes in sizes(number) {
            let Some((_, graph)) = self.0.iter().find(|(known, _)| *known == nodes) else { continue };
            // The rest is less than a whole graph, and is replayed once.
            let times = if nodes == NODES { number / NODES } else { 1 };
            for _ in 0..times {
                queue.replay(graph)?;
            }
        }
        Ok(())
    }
}

/// The graphs that `number` calls are made of.
fn sizes(number: u64) -> impl Iterator<Item = u64> {
    [if number >= NODES { NODES } else { 0 }, number % NODES].into_iter().filter(|&nodes| nodes > 0)
}

fn record(call: Call<'_>, nodes: u64) -> Result<ExecutableGraph> {
    let Call { queue, kernel, geometry, args } = call;
    let graph = queue
        .record(|recorder| (0..nodes).try_for_each(|_| recorder.launch(kernel, geometry, args).map(drop)))?;
    queue.instantiate(&graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_whole_graphs_and_a_rest() {
        let sizes = |number| sizes(number).collect::<Vec<_>>();
        assert_eq!(sizes(1), [1]);
        assert_eq!(sizes(1023), [1023]);
        assert_eq!(sizes(1024), [1024]);
        assert_eq!(sizes(5000), [1024, 5000 % 1024]);
    }
}
