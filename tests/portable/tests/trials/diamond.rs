//! A diamond of dependencies over four backends in one process: the simulated device, then the host and an OpenCL device, then a
//! Vulkan device. Its other shapes put another backend at the end.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};
use portable::required;
use runtime_core::{
    Device, ErrorKind, Event, Kernel, ModuleSource, Queue, Result, Runtime, Tensor, read_write,
};

const TWICE: &str = "
    @group(0) @binding(0) var<storage, read_write> x: array<f32>;
    @compute @workgroup_size(64) fn twice(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&x) { x[id.x] *= 2.0; }
    }";
const ELEMENTS: usize = 1000;
const DEADLINE: Duration = Duration::from_secs(60);

/// The device at the top, the two in the middle, and the one at the end.
const SHAPES: [[&str; 4]; 3] = [
    ["null", "host", "opencl", "vulkan"],
    ["vulkan", "null", "host", "opencl"],
    ["opencl", "vulkan", "null", "host"],
];

pub(crate) fn trials() -> Vec<Trial> {
    let runtime = Runtime::builder().register(runtime_null::backend()).with_lowering(runtime_kernel::wgsl());
    let runtime = Arc::new(runtime.build());
    let trials = SHAPES.map(|shape| {
        let runtime = runtime.clone();
        Trial::ignorable_test(format!("diamond::{}", shape.join("_")), move || run(&runtime, shape))
    });
    trials.into()
}

fn run(runtime: &Runtime, shape: [&str; 4]) -> std::result::Result<Completion, Failed> {
    let mut nodes = Vec::new();
    for name in shape {
        match Node::new(runtime, name) {
            Err(error)
                if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::NotFound)
                    && !required(name) =>
            {
                return Ok(Completion::ignored_with(format!("{name}: {error}")));
            }
            node => nodes.push(node?),
        }
    }
    diamond(&nodes)?;
    a_failure_ends_the_diamond(&nodes)?;
    Ok(Completion::Completed)
}

/// A device with a tensor of ones and a kernel that doubles it.
struct Node {
    device: Device,
    queue: Queue,
    twice: Kernel,
    x: Tensor,
}

impl Node {
    fn new(runtime: &Runtime, name: &str) -> Result<Self> {
        let device = runtime.open(name)?;
        let twice = match name {
            // SAFETY: the builtins check their arguments.
            #[allow(unsafe_code, reason = "loads code of the null device")]
            "null" => device.kernel(&unsafe { ModuleSource::native("null", "scale_f32") }, "scale_f32")?,
            _ => device.kernel(ModuleSource::wgsl(TWICE), "twice")?,
        };
        let (queue, x) = (device.queue()?, device.tensor([ELEMENTS], &[1.0f32; ELEMENTS])?);
        Ok(Self { device, queue, twice, x })
    }

    /// Doubles the tensor after these events.
    fn double(&self, deps: &[&Event]) -> Result<Event> {
        self.queue.wait_for_all(deps)?;
        match self.device.info().id.target.as_str() {
            "null" => self.queue.launch(&self.twice, (1, 1), (read_write(&self.x), 2.0f32)),
            _ => self.queue.launch(&self.twice, (16, 64), (&self.x,)),
        }
    }

    /// Copies the sum of other tensors here, by the host, after these events. Only events order it.
    fn gather(&self, deps: &[&Event], sources: &[&Self]) -> Result<Event> {
        let (x, sources) = (self.x.clone(), sources.iter().map(|node| node.x.clone()).collect::<Vec<_>>());
        self.queue.host_task(deps, move || {
            let mut sum = vec![0.0f32; ELEMENTS];
            for source in sources {
                sum.iter_mut().zip(source.to_vec::<f32>()?).for_each(|(sum, value)| *sum += value);
            }
            x.write(&sum)
        })
    }
}

fn diamond(nodes: &[Node]) -> Result<()> {
    let [top, left, right, end] = nodes else { unreachable!("four devices") };
    let first = top.double(&[])?;
    let copies = (left.gather(&[&first], &[top])?, right.gather(&[&first], &[top])?);
    let middle = (left.double(&[&copies.0])?, right.double(&[&copies.1])?);
    let sum = end.gather(&[&middle.0, &middle.1], &[left, right])?;
    // A failure of any of them would be one of the last.
    let last = end.double(&[&Event::all(&[&sum, &first]), &middle.0, &middle.1])?;
    last.wait_timeout(DEADLINE)?;
    assert!(Event::all(&[&first, &copies.0, &copies.1, &middle.0, &middle.1, &sum, &last]).is_done()?);
    Event::any(&[&first, &last]).wait()?;
    assert_eq!(end.x.to_vec::<f32>()?, [16.0; ELEMENTS]);
    Ok(())
}

fn a_failure_ends_the_diamond(nodes: &[Node]) -> Result<()> {
    let [top, left, right, end] = nodes else { unreachable!("four devices") };
    let before = end.x.to_vec::<f32>()?;
    let failing = top.queue.host_task(&[&top.double(&[])?], || -> () { panic!("expected") })?;
    let copies = (left.gather(&[&failing], &[top])?, right.gather(&[&failing], &[top])?);
    let last = end.gather(&[&Event::all(&[&copies.0, &copies.1])], &[left, right])?;
    let error = last.wait_timeout(DEADLINE).expect_err("its dependencies fail");
    assert!(error.kind() == ErrorKind::Failed && error.message().contains("expected"), "{error}");
    assert_eq!(end.x.to_vec::<f32>()?, before);
    Ok(())
}
