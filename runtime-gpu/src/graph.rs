//! Native graphs, built from explicit nodes: a query by any other thread would invalidate a stream capture.

#![allow(unsafe_code, reason = "builds graphs through the driver")]

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::{CUgraph, CUgraphNode};
use runtime_core::backend::{FillPattern, Graph, GraphNode, GraphWork, Launch};
use runtime_core::{Error, Result};

use crate::convert::memset_unit;
use crate::device_state::DeviceState;
use crate::driver::Graphs;
use crate::driver::abi::{
    self, CuResult, DevicePtr, Function, GraphExec, KernelNodeParams, MemsetNodeParams, Node, Stream,
};
use crate::interner::KernelNameId;
use crate::launch;
use crate::memory::CudaBuffer;
use crate::module::CudaKernel;

/// Most kernels of a graph that an error names.
const MAX_NAMED_KERNELS: usize = 3;

/// An executable graph.
#[derive(Debug)]
pub struct CudaGraph {
    shared: Arc<DeviceState>,
    api: Graphs,
    graph: abi::Graph,
    executable: GraphExec,
    nodes: Vec<Node>,
    /// The kernel of each launch node; `None` for other nodes.
    kernels: Vec<Option<CudaKernel>>,
    /// Name of a replay in errors.
    pub(crate) name: KernelNameId,
}

impl CudaGraph {
    pub(crate) fn new(
        shared: &Arc<DeviceState>,
        nodes: &[GraphNode<'_, CudaBuffer, CudaKernel>],
    ) -> Result<Self> {
        let primary = &shared.primary;
        let api = primary
            .driver
            .graphs
            .ok_or_else(|| Error::unsupported("this driver does not support graphs; update it"))?;
        let _current = primary.make_current()?;
        let mut graph = abi::Graph::NULL;
        // SAFETY: the out-parameter is writable.
        primary.check("cuGraphCreate", unsafe { (api.cuGraphCreate)(&raw mut graph.0, 0) })?;
        // On an error the drop destroys what exists so far.
        let mut built = Self {
            shared: Arc::clone(shared),
            api,
            graph,
            executable: GraphExec::NULL,
            nodes: Vec::with_capacity(nodes.len()),
            kernels: Vec::with_capacity(nodes.len()),
            name: KernelNameId(0),
        };
        for node in nodes {
            built.add_node(node)?;
        }
        // SAFETY: the graph is complete, and the out-parameter is writable.
        let code = unsafe { (api.cuGraphInstantiateWithFlags)(&raw mut built.executable.0, graph.0, 0) };
        primary.check("cuGraphInstantiate", code)?;
        built.name = built.intern_name();
        Ok(built)
    }

    /// Interns the name of a replay.
    fn intern_name(&self) -> KernelNameId {
        let names =
            self.kernels.iter().flatten().map(|kernel| self.shared.primary.kernel_names.resolve(kernel.name));
        let mut names: Vec<_> = names.take(MAX_NAMED_KERNELS + 1).collect();
        if names.len() > MAX_NAMED_KERNELS {
            names[MAX_NAMED_KERNELS] = "…".to_owned();
        }
        self.shared.primary.kernel_names.intern(&format!("graph of {}", names.join(", ")))
    }

    fn add_node(&mut self, node: &GraphNode<'_, CudaBuffer, CudaKernel>) -> Result<()> {
        let dependencies = node.dependencies.iter().map(|&index| {
            self.nodes.get(index as usize).copied().ok_or_else(|| {
                Error::invalid(format!("node {} depends on itself or a later one", self.nodes.len()))
            })
        });
        let dependencies = dependencies.collect::<Result<Vec<_>>>()?;
        let (handle, kernel) = match &node.work {
            GraphWork::Launch { kernel, launch } => {
                (self.add_launch(&dependencies, kernel, launch)?, Some(kernel.duplicate()))
            }
            GraphWork::Copy { destination, source, bytes } => {
                let to = destination.0.range("copy: destination", destination.1, *bytes)?;
                let from = source.0.range("copy: source", source.1, *bytes)?;
                (self.add_copy(&dependencies, to, from, *bytes)?, None)
            }
            GraphWork::Fill { destination, bytes, pattern } => {
                let to = destination.0.range("fill", destination.1, *bytes)?;
                (self.add_fill(&dependencies, to, *bytes, pattern)?, None)
            }
        };
        self.nodes.push(handle);
        self.kernels.push(kernel);
        Ok(())
    }

    fn add_launch(
        &self,
        dependencies: &[Node],
        kernel: &CudaKernel,
        launch: &Launch<'_, CudaBuffer>,
    ) -> Result<Node> {
        launch::check_cluster(kernel, launch)?;
        let node = launch::pack_pointers(kernel, launch, |parameters, shared_bytes| {
            self.add_kernel(
                dependencies,
                &kernel_node_params(kernel.function, shape(launch), shared_bytes, parameters),
            )
        })?;
        let (attributes, count) = launch::attributes(launch);
        for attribute in &attributes[..count] {
            // SAFETY: the node is a kernel's, and the value is as large as the attribute's.
            let code = unsafe {
                (self.api.cuGraphKernelNodeSetAttribute)(node.0, attribute.id, &raw const attribute.value)
            };
            self.shared.primary.check("cuGraphKernelNodeSetAttribute", code)?;
        }
        Ok(node)
    }

    /// Adds a node by one of the driver's functions, which takes the new node, the graph, and the nodes that it depends on.
    fn add(
        &self,
        function: &str,
        dependencies: &[Node],
        call: impl FnOnce(*mut CUgraphNode, CUgraph, *const CUgraphNode, usize) -> CuResult,
    ) -> Result<Node> {
        let mut node = Node::NULL;
        let code = call(&raw mut node.0, self.graph.0, dependencies.as_ptr().cast(), dependencies.len());
        self.shared.primary.check(function, code).map(|()| node)
    }

    fn add_kernel(&self, dependencies: &[Node], params: &KernelNodeParams) -> Result<Node> {
        self.add("cuGraphAddKernelNode", dependencies, |node, graph, first, count| {
            let params = std::ptr::from_ref(params);
            // SAFETY: the nodes are of this graph, and the parameters, which the driver copies, are as the function takes them.
            unsafe { (self.api.cuGraphAddKernelNode_v2)(node, graph, first, count, params) }
        })
    }

    fn add_empty(&self, dependencies: &[Node]) -> Result<Node> {
        self.add("cuGraphAddEmptyNode", dependencies, |node, graph, first, count| {
            // SAFETY: the nodes are of this graph.
            unsafe { (self.api.cuGraphAddEmptyNode)(node, graph, first, count) }
        })
    }

    fn add_copy(&self, dependencies: &[Node], to: DevicePtr, from: DevicePtr, bytes: u64) -> Result<Node> {
        let length = length(bytes)?;
        if length == 0 {
            return self.add_empty(dependencies);
        }
        let (copy, context) = (abi::copy_bytes(to, from, length), self.shared.primary.context.0);
        self.add("cuGraphAddMemcpyNode", dependencies, |node, graph, first, count| {
            // SAFETY: the nodes are of this graph, and both ranges lie within buffers, which core keeps.
            unsafe { (self.api.cuGraphAddMemcpyNode)(node, graph, first, count, &raw const copy, context) }
        })
    }

    fn add_fill(
        &self,
        dependencies: &[Node],
        to: DevicePtr,
        bytes: u64,
        pattern: &FillPattern,
    ) -> Result<Node> {
        let width = length(bytes)?;
        if width == 0 {
            return self.add_empty(dependencies);
        }
        let Some((unit, value)) = memset_unit(pattern, to) else {
            let fill = self.shared.builtins()?.fill(to, bytes, pattern.repeated());
            return fill.with_params(|parameters| {
                self.add_kernel(dependencies, &kernel_node_params(fill.function, fill.shape(), 0, parameters))
            });
        };
        let (width, context) = (width / unit as usize, self.shared.primary.context.0);
        let memset = MemsetNodeParams { dst: to, pitch: 0, value, elementSize: unit, width, height: 1 };
        self.add("cuGraphAddMemsetNode", dependencies, |node, graph, first, count| {
            // SAFETY: the nodes are of this graph, and the range lies within a buffer, which core keeps.
            unsafe { (self.api.cuGraphAddMemsetNode)(node, graph, first, count, &raw const memset, context) }
        })
    }

    /// Launches the graph.
    pub(crate) fn launch(&self, stream: Stream) -> Result<()> {
        let _current = self.shared.primary.make_current()?;
        // SAFETY: graph and stream are alive and of one context.
        let code = unsafe { (self.api.cuGraphLaunch)(self.executable.0, stream.0) };
        self.shared.primary.check("cuGraphLaunch", code)
    }
}

impl Graph for CudaGraph {
    type Buffer = CudaBuffer;

    fn update(&mut self, node: u32, launch: &Launch<'_, CudaBuffer>) -> Result<()> {
        let index = node as usize;
        let kernel = self.kernels.get(index).and_then(Option::as_ref);
        let kernel = kernel.ok_or_else(|| Error::invalid(format!("node {node} is not a launch")))?;
        let _current = self.shared.primary.make_current()?;
        launch::pack_pointers(kernel, launch, |parameters, shared_bytes| {
            let params = kernel_node_params(kernel.function, shape(launch), shared_bytes, parameters);
            // SAFETY: the node is a launch of this graph, and the driver copies the parameters.
            let code = unsafe {
                (self.api.cuGraphExecKernelNodeSetParams_v2)(
                    self.executable.0,
                    self.nodes[index].0,
                    &raw const params,
                )
            };
            self.shared.primary.check("cuGraphExecKernelNodeSetParams", code)
        })
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        let _current = self.shared.primary.make_current();
        if self.executable != GraphExec::NULL {
            // SAFETY: created once, and no longer in use.
            let _ = unsafe { (self.api.cuGraphExecDestroy)(self.executable.0) };
        }
        // SAFETY: created once, and its executable form was destroyed.
        let _ = unsafe { (self.api.cuGraphDestroy)(self.graph.0) };
    }
}

/// Groups, and work-items of each.
fn shape(launch: &Launch<'_, CudaBuffer>) -> [[u32; 3]; 2] {
    [launch.groups(), launch.group_size()]
}

fn kernel_node_params(
    function: Function,
    [[x, y, z], [i, j, k]]: [[u32; 3]; 2],
    shared_bytes: u32,
    parameters: *mut *mut c_void,
) -> KernelNodeParams {
    KernelNodeParams {
        func: function.0,
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: i,
        blockDimY: j,
        blockDimZ: k,
        sharedMemBytes: shared_bytes,
        kernelParams: parameters,
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

fn length(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| Error::invalid("the bytes of a graph node exceed the address space"))
}
