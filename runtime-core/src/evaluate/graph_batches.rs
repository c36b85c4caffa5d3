//! Batches of calls as graphs, whose replays leave no gaps between calls.

use crate::{Arg, ExecutableGraph, Kernel, LaunchConfig, Queue, Result};

/// Maximum number of calls per graph; beyond this, the gaps between replays are negligible.
const MAX_NODES: u64 = 1024;

/// Graphs of calls of one kernel, reused across windows.
#[derive(Debug, Default)]
pub(crate) struct GraphCache(Vec<(u64, ExecutableGraph)>);

/// The call to record.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) queue: &'a Queue,
    pub(crate) kernel: &'a Kernel,
    pub(crate) config: &'a LaunchConfig,
    pub(crate) args: &'a [Arg<'a>],
}

impl GraphCache {
    /// Creates the graphs that `number` calls need and replays each once, untimed; returns the number of
    /// calls made.
    ///
    /// # Errors
    /// Any error of recording, instantiating or replaying.
    pub(crate) fn prepare(&mut self, call: Call<'_>, number: u64) -> Result<u64> {
        let mut calls = 0;
        for nodes in graph_sizes(number) {
            if self.0.iter().any(|(known, _)| *known == nodes) {
                continue;
            }
            // Of the partial graphs, keep only the most recent.
            self.0.retain(|(known, _)| *known == MAX_NODES);
            let graph = record(call, nodes)?;
            call.queue.replay(&graph)?.wait()?;
            self.0.push((nodes, graph));
            calls += nodes;
        }
        Ok(calls)
    }

    /// Submits `number` calls, with the graphs that `prepare` created.
    ///
    /// # Errors
    /// Any error of a replay.
    pub(crate) fn submit(&self, queue: &Queue, number: u64) -> Result<()> {
        for nodes in graph_sizes(number) {
            let Some((_, graph)) = self.0.iter().find(|(known, _)| *known == nodes) else { continue };
            // The remainder is smaller than a full graph and is replayed once.
            let times = if nodes == MAX_NODES { number / MAX_NODES } else { 1 };
            for _ in 0..times {
                queue.replay(graph)?;
            }
        }
        Ok(())
    }
}

/// The sizes of the graphs that make up `number` calls.
fn graph_sizes(number: u64) -> impl Iterator<Item = u64> {
    [if number >= MAX_NODES { MAX_NODES } else { 0 }, number % MAX_NODES]
        .into_iter()
        .filter(|&nodes| nodes > 0)
}

fn record(call: Call<'_>, nodes: u64) -> Result<ExecutableGraph> {
    let Call { queue, kernel, config, args } = call;
    let graph = queue
        .record(|recorder| (0..nodes).try_for_each(|_| recorder.launch(kernel, *config, args).map(drop)))?;
    queue.instantiate(&graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_split_into_full_graphs_and_a_remainder() {
        let graph_sizes = |number| graph_sizes(number).collect::<Vec<_>>();
        assert_eq!(graph_sizes(1), [1]);
        assert_eq!(graph_sizes(1023), [1023]);
        assert_eq!(graph_sizes(1024), [1024]);
        assert_eq!(graph_sizes(5000), [1024, 5000 % 1024]);
    }
}
