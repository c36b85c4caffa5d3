//! Native graphs, built of explicit nodes: capturing a stream would be ruined by any query of another thread.

#![allow(unsafe_code, reason = "builds graphs through the driver")]

use std::ffi::c_void;
use std::sync::Arc;

use runtime_core::backend::{Graph, GraphNode, GraphWork, Launch};
use runtime_core::{Error, Result};

use crate::builtin::FillLaunch;
use crate::context::Primary;
use crate::convert::Pattern;
use crate::driver::Graphs;
use crate::driver::abi::{
    self, Address, Context, CopyNode, CopySide, Executable, FillNode, Function, KernelNode, Node, Stream,
};
use crate::launch;
use crate::memory::CudaBuffer;
use crate::module::CudaKernel;
use crate::names::NameId;

/// Kernels of a graph that an error names.
const NAMED: usize = 3;

/// An executable graph.
#[derive(Debug)]
pub struct CudaGraph {
    primary: Arc<Primary>,
    calls: Graphs,
    graph: abi::Graph,
    executable: Executable,
    nodes: Vec<Node>,
    /// What a launch node launches; `None` for other nodes.
    launches: Vec<Option<CudaKernel>>,
    /// What a replay is called in errors.
    pub(crate) name: NameId,
}

impl CudaGraph {
    pub(crate) fn new(
        primary: &Arc<Primary>,
        nodes: &[GraphNode<'_, CudaBuffer, CudaKernel>],
    ) -> Result<Self> {
        let calls = primary
            .driver
            .graphs
            .ok_or_else(|| Error::unsupported("this driver has no graphs; update it"))?;
        let _current = primary.enter()?;
        let mut graph = abi::Graph::NULL;
        // SAFETY: the out-parameter is writable.
        primary.check("cuGraphCreate", unsafe { (calls.cuGraphCreate)(&raw mut graph, 0) })?;
        // On an error the drop destroys what was made so far.
        let mut made = Self {
            primary: Arc::clone(primary),
            calls,
            graph,
            executable: Executable::NULL,
            nodes: Vec::with_capacity(nodes.len()),
            launches: Vec::with_capacity(nodes.len()),
            name: NameId(0),
        };
        for node in nodes {
            made.add(node)?;
        }
        // SAFETY: the graph is complete, and the out-parameter is writable.
        let code = unsafe { (calls.cuGraphInstantiateWithFlags)(&raw mut made.executable, graph, 0) };
        primary.check("cuGraphInstantiate", code)?;
        made.name = made.describe();
        Ok(made)
    }

    /// What errors call a replay.
    fn describe(&self) -> NameId {
        let names = self.launches.iter().flatten().map(|kernel| self.primary.names.text(kernel.name));
        let mut names: Vec<_> = names.take(NAMED + 1).collect();
        if names.len() > NAMED {
            names[NAMED] = "…".to_owned();
        }
        self.primary.names.id(&format!("graph of {}", names.join(", ")))
    }

    fn add(&mut self, node: &GraphNode<'_, CudaBuffer, CudaKernel>) -> Result<()> {
        let needed = node.dependencies.iter().map(|&index| {
            self.nodes.get(index as usize).copied().ok_or_else(|| {
                Error::invalid(format!("node {} depends on itself or a later one", self.nodes.len()))
            })
        });
        let needed = needed.collect::<Result<Vec<_>>>()?;
        let (made, kernel) = match &node.work {
            GraphWork::Launch { kernel, launch } => {
                (self.add_launch(&needed, kernel, launch)?, Some(kernel.share()))
            }
            GraphWork::Copy { destination, source, bytes } => {
                let to = destination.0.range("copy: destination", destination.1, *bytes)?;
                let from = source.0.range("copy: source", source.1, *bytes)?;
                (self.add_copy(&needed, to, from, *bytes)?, None)
            }
            GraphWork::Fill { destination, bytes, pattern } => {
                let to = destination.0.range("fill", destination.1, *bytes)?;
                (self.add_fill(&needed, to, *bytes, pattern)?, None)
            }
        };
        self.nodes.push(made);
        self.launches.push(kernel);
        Ok(())
    }

    fn add_launch(
        &self,
        needed: &[Node],
        kernel: &CudaKernel,
        launch: &Launch<'_, CudaBuffer>,
    ) -> Result<Node> {
        launch::check_cluster(kernel, launch)?;
        let made = launch::pack(kernel, launch, |parameters, shared_bytes| {
            self.add_kernel(needed, &kernel_node(kernel.function, shape(launch), shared_bytes, parameters))
        })?;
        let (attributes, count) = launch::attributes(launch);
        for attribute in &attributes[..count] {
            // SAFETY: the node is a kernel's, and the value is as large as the attribute's.
            let code = unsafe {
                (self.calls.cuGraphKernelNodeSetAttribute)(made, attribute.id, &raw const attribute.value)
            };
            self.primary.check("cuGraphKernelNodeSetAttribute", code)?;
        }
        Ok(made)
    }

    fn add_kernel(&self, needed: &[Node], node: &KernelNode) -> Result<Node> {
        let mut made = Node::NULL;
        // SAFETY: the nodes are of this graph, and the parameters, which the driver copies, are as the function takes them.
        let code = unsafe {
            (self.calls.cuGraphAddKernelNode_v2)(
                &raw mut made,
                self.graph,
                needed.as_ptr(),
                needed.len(),
                std::ptr::from_ref(node),
            )
        };
        self.primary.check("cuGraphAddKernelNode", code).map(|()| made)
    }

    fn add_empty(&self, needed: &[Node]) -> Result<Node> {
        let mut made = Node::NULL;
        // SAFETY: the nodes are of this graph.
        let code = unsafe {
            (self.calls.cuGraphAddEmptyNode)(&raw mut made, self.graph, needed.as_ptr(), needed.len())
        };
        self.primary.check("cuGraphAddEmptyNode", code).map(|()| made)
    }

    fn add_copy(&self, needed: &[Node], to: Address, from: Address, bytes: u64) -> Result<Node> {
        let width_bytes = length(bytes)?;
        if width_bytes == 0 {
            return self.add_empty(needed);
        }
        let node = CopyNode {
            source: CopySide::at(from, width_bytes),
            destination: CopySide::at(to, width_bytes),
            width_bytes,
            height: 1,
            depth: 1,
        };
        let mut made = Node::NULL;
        // SAFETY: the nodes are of this graph, and both ranges lie within buffers, which core keeps.
        let code = unsafe {
            (self.calls.cuGraphAddMemcpyNode)(
                &raw mut made,
                self.graph,
                needed.as_ptr(),
                needed.len(),
                &raw const node,
                self.primary.context,
            )
        };
        self.primary.check("cuGraphAddMemcpyNode", code).map(|()| made)
    }

    fn add_fill(&self, needed: &[Node], to: Address, bytes: u64, pattern: &[u8]) -> Result<Node> {
        let pattern = Pattern::of(pattern)
            .ok_or_else(|| Error::invalid(format!("fill: a pattern of {} bytes", pattern.len())))?;
        let width = length(bytes)?;
        if width == 0 {
            return self.add_empty(needed);
        }
        let Some((unit, value)) = pattern.unit(to).filter(|(unit, _)| bytes.is_multiple_of(u64::from(*unit)))
        else {
            let fill = self.primary.builtins()?.fill(to, bytes, pattern.wide());
            let shape = [[fill.groups, 1, 1], [FillLaunch::GROUP_SIZE, 1, 1]];
            return fill.with(|parameters| {
                self.add_kernel(needed, &kernel_node(fill.function, shape, 0, parameters))
            });
        };
        let node = FillNode {
            destination: to,
            pitch: 0,
            value,
            element_bytes: unit,
            width: width / unit as usize,
            height: 1,
        };
        let mut made = Node::NULL;
        // SAFETY: the nodes are of this graph, and the range lies within a buffer, which core keeps.
        let code = unsafe {
            (self.calls.cuGraphAddMemsetNode)(
                &raw mut made,
                self.graph,
                needed.as_ptr(),
                needed.len(),
                &raw const node,
                self.primary.context,
            )
        };
        self.primary.check("cuGraphAddMemsetNode", code).map(|()| made)
    }

    /// Submits everything as one piece of work.
    pub(crate) fn launch(&self, stream: Stream) -> Result<()> {
        let _current = self.primary.enter()?;
        // SAFETY: graph and stream are alive and of one context.
        let code = unsafe { (self.calls.cuGraphLaunch)(self.executable, stream) };
        self.primary.check("cuGraphLaunch", code)
    }
}

impl Graph for CudaGraph {
    type Buffer = CudaBuffer;

    fn update(&mut self, node: u32, launch: &Launch<'_, CudaBuffer>) -> Result<()> {
        let index = node as usize;
        let kernel = self.launches.get(index).and_then(Option::as_ref);
        let kernel = kernel.ok_or_else(|| Error::invalid(format!("node {node} is no launch")))?;
        let _current = self.primary.enter()?;
        launch::pack(kernel, launch, |parameters, shared_bytes| {
            let with = kernel_node(kernel.function, shape(launch), shared_bytes, parameters);
            // SAFETY: the node is a launch of this graph, and the driver copies the parameters.
            let code = unsafe {
                (self.calls.cuGraphExecKernelNodeSetParams_v2)(
                    self.executable,
                    self.nodes[index],
                    &raw const with,
                )
            };
            self.primary.check("cuGraphExecKernelNodeSetParams", code)
        })
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        let _current = self.primary.enter();
        if self.executable != Executable::NULL {
            // SAFETY: made once, and no work uses it any more.
            let _ = unsafe { (self.calls.cuGraphExecDestroy)(self.executable) };
        }
        // SAFETY: as above.
        let _ = unsafe { (self.calls.cuGraphDestroy)(self.graph) };
    }
}

/// Groups, and work-items of each.
fn shape(launch: &Launch<'_, CudaBuffer>) -> [[u32; 3]; 2] {
    [launch.groups(), launch.group_size()]
}

fn kernel_node(
    function: Function,
    [groups, group_size]: [[u32; 3]; 2],
    shared_bytes: u32,
    parameters: *const *const c_void,
) -> KernelNode {
    KernelNode {
        function,
        groups,
        group_size,
        shared_bytes,
        parameters,
        extra: std::ptr::null(),
        kernel: std::ptr::null_mut(),
        context: Context::NULL,
    }
}

fn length(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| Error::invalid("a node of too many bytes"))
}
