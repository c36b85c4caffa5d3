//! Batches of calls as graphs: replayed, they leave no gap between one call and the next.

use crate::{Arg, ExecutableGraph, Geometry, Kernel, Queue, Result};

/// The most calls of one graph: more would not make the gaps between replays matter less.
const MAX_NODES: u64 = 1024;

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
        for nodes in graph_sizes(number) {
            if self.0.iter().any(|(known, _)| *known == nodes) {
                continue;
            }
            // Only the last number's remainder is needed again.
            self.0.retain(|(known, _)| *known == MAX_NODES);
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
        for nodes in graph_sizes(number) {
            let Some((_, graph)) = self.0.iter().find(|(known, _)| *known == nodes) else { continue };
            // The rest is less than a whole graph, and is replayed once.
            let times = if nodes == MAX_NODES { number / MAX_NODES } else { 1 };
            for _ in 0..times {
                queue.replay(graph)?;
            }
        }
        Ok(())
    }
}

/// The graphs that `number` calls are made of.
fn graph_sizes(number: u64) -> impl Iterator<Item = u64> {
    [if number >= MAX_NODES { MAX_NODES } else { 0 }, number % MAX_NODES]
        .into_iter()
        .filter(|&nodes| nodes > 0)
}

fn record(call: Call<'_>, nodes: u64) -> Result<ExecutableGraph> {
    call.queue.begin_recording()?;
    let recorded =
        (0..nodes).try_for_each(|_| call.queue.launch(call.kernel, call.geometry, call.args).map(drop));
    // The recording ends even when a launch was refused: the queue goes on.
    let graph = call.queue.end_recording()?;
    recorded?;
    call.queue.instantiate(&graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_whole_graphs_and_a_rest() {
        let graph_sizes = |number| graph_sizes(number).collect::<Vec<_>>();
        assert_eq!(graph_sizes(1), [1]);
        assert_eq!(graph_sizes(1023), [1023]);
        assert_eq!(graph_sizes(1024), [1024]);
        assert_eq!(graph_sizes(5000), [1024, 5000 % 1024]);
    }
}
