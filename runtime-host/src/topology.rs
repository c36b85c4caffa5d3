//! The host's NUMA nodes: the processors and the memory local to them.

use std::path::{Path, PathBuf};

use runtime_core::device::MemoryUsage;

use crate::platform;

/// The folder in which Linux describes the nodes.
pub(crate) const SYSTEM: &str = "/sys/devices/system/node";

/// The NUMA nodes of a machine; empty if it has only one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topology(Vec<Node>);

/// Processors and their local memory; either may be missing.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Its number in the system.
    pub(crate) id: u32,
    /// The numbers of its processors.
    pub(crate) cpus: Vec<usize>,
    folder: PathBuf,
}

impl Topology {
    /// Reads a folder like [`SYSTEM`].
    pub(crate) fn read(folder: &Path) -> Self {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut nodes: Vec<_> = entries.filter_map(|entry| Node::read(&entry.path())).collect();
        nodes.sort_unstable_by_key(|node| node.id);
        Self(if nodes.len() > 1 { nodes } else { Vec::new() })
    }

    /// Nodes that have memory: the memory spaces.
    pub(crate) fn with_memory(&self) -> impl Iterator<Item = &Node> {
        self.0.iter().filter(|node| node.memory_usage().total_bytes > 0)
    }

    /// Nodes that have processors: the sub-devices.
    pub(crate) fn with_processors(&self) -> impl Iterator<Item = &Node> {
        self.0.iter().filter(|node| !node.cpus.is_empty())
    }
}

impl Node {
    fn read(folder: &Path) -> Option<Self> {
        let id = folder.file_name()?.to_str()?.strip_prefix("node")?.parse().ok()?;
        let cpus = std::fs::read_to_string(folder.join("cpulist")).unwrap_or_default();
        Some(Self { id, cpus: numbers(&cpus), folder: folder.to_owned() })
    }

    /// Its memory: the total, and what is free.
    pub(crate) fn memory_usage(&self) -> MemoryUsage {
        let text = std::fs::read_to_string(self.folder.join("meminfo")).unwrap_or_default();
        let prefix = format!("Node {} ", self.id);
        let text: String = text.lines().map(|line| line.strip_prefix(&prefix).unwrap_or(line)).fold(
            String::new(),
            |mut text, line| {
                text.push_str(line);
                text.push('\n');
                text
            },
        );
        let bytes = |key| platform::meminfo_bytes(&text, key).unwrap_or(0);
        // The page cache is reclaimed when memory is needed.
        let free_bytes = bytes("MemFree").saturating_add(bytes("FilePages")).saturating_sub(bytes("Shmem"));
        let total_bytes = bytes("MemTotal");
        MemoryUsage { free_bytes: free_bytes.min(total_bytes), total_bytes }
    }
}

/// The numbers of a list such as `0-3,8,10-11`; other text is ignored.
fn numbers(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse::<usize>().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A fake machine: for each node its number, its processors, and its memory in KiB.
    pub(crate) fn fake(nodes: &[(u32, &str, u64)]) -> (TempDir, Topology) {
        let folder = tempfile::tempdir().unwrap();
        for (id, cpus, total) in nodes {
            let node = folder.path().join(format!("node{id}"));
            std::fs::create_dir(&node).unwrap();
            std::fs::write(node.join("cpulist"), format!("{cpus}\n")).unwrap();
            let text = format!(
                "Node {id} MemTotal:       {total} kB\nNode {id} MemFree:        {} kB\nNode {id} FilePages: 8 kB\nNode {id} Shmem: 4 kB\n",
                total / 2
            );
            std::fs::write(node.join("meminfo"), text).unwrap();
        }
        std::fs::write(folder.path().join("online"), "0\n").unwrap();
        std::fs::create_dir(folder.path().join("power")).unwrap();
        let topology = Topology::read(folder.path());
        (folder, topology)
    }

    #[test]
    fn nodes_are_read_in_order_of_their_numbers() {
        let (_folder, topology) = fake(&[(10, "4,6-7", 1024), (2, "0-3", 2048), (11, "", 4096), (3, "8", 0)]);
        let processors: Vec<_> =
            topology.with_processors().map(|node| (node.id, node.cpus.clone())).collect();
        assert_eq!(processors, [(2, vec![0, 1, 2, 3]), (3, vec![8]), (10, vec![4, 6, 7])]);
        let memory: Vec<_> = topology.with_memory().map(|node| (node.id, node.memory_usage())).collect();
        assert_eq!(memory.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [2, 10, 11]);
        assert_eq!(memory[0].1, MemoryUsage { total_bytes: 2048 << 10, free_bytes: 1028 << 10 });
    }

    #[test]
    fn a_single_node_is_not_listed() {
        assert_eq!(fake(&[(0, "0-1", 1024)]).1.with_processors().count(), 0);
        assert_eq!(Topology::read(Path::new("no/such/folder")).with_memory().count(), 0);
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(numbers("0-2,5,7-8\n"), [0, 1, 2, 5, 7, 8]);
        assert!(numbers("\n").is_empty() && numbers("x-3").is_empty());
    }
}
