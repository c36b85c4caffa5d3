//! wgpu running the same WGSL kernel on the same device.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use runtime_core::{ExecutableGraph, Geometry, QueueOptions};

use crate::{BURST, Device, Fixture, ROUNDS, TOUCH, compare, rate, time};

/// Bytes of a tensor.
const BYTES: u64 = 256;

/// A device of wgpu with the kernel and its arguments.
struct Wgpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
    arguments: wgpu::BindGroup,
}

/// Prints the comparison of launch rates.
pub(crate) fn compare_with(device: &Device) {
    let Some(wgpu) = Wgpu::open(&device.info().name) else {
        return println!("| wgpu | | it does not open this device | | | |");
    };
    let fixture = Fixture::open(device, &QueueOptions::default());
    type Way<'a> = (&'a str, &'a dyn Fn() -> Duration, &'a dyn Fn() -> Duration);
    let (ours_submitted, ours_ended) = (|| fixture.burst(), || fixture.timed_burst()[1]);
    let ways: [Way<'_>; 4] = [
        ("to submit 500, wgpu in one pass", &|| wgpu.burst(Wgpu::one_pass), &ours_submitted),
        ("to submit 500, wgpu one by one", &|| wgpu.burst(Wgpu::one_each), &ours_submitted),
        ("500 to their end, wgpu in one pass", &|| wgpu.whole_burst(Wgpu::one_pass), &ours_ended),
        ("500 to their end, wgpu one by one", &|| wgpu.whole_burst(Wgpu::one_each), &ours_ended),
    ];
    for (what, theirs, ours) in ways {
        let what = format!("launches per second, {what}");
        rate(&what, compare(ROUNDS, theirs, ours), (f64::from(BURST) * 1e9, "", 0), Some(2.0));
    }
    // wgpu has no graphs: it records a pass each time, while ours was recorded before.
    let graph = fixture.graph();
    let replay = || time(|| fixture.queue.replay(&graph).and_then(|event| event.wait()).expect("replayed"));
    let pair = compare(ROUNDS, || wgpu.whole_burst(Wgpu::one_pass), replay);
    let what = "launches per second, 500 to their end, ours a graph replayed, wgpu in one pass";
    rate(what, pair, (f64::from(BURST) * 1e9, "", 0), None);
}

impl Fixture {
    /// A burst, recorded.
    fn graph(&self) -> ExecutableGraph {
        let recorded = self.queue.record(|recorder| {
            let launch = |_| recorder.launch(&self.kernel, Geometry::single(), &self.args()).map(drop);
            (0..BURST).try_for_each(launch)
        });
        let graph = recorded.and_then(|graph| self.queue.instantiate(&graph));
        graph.expect("the device takes it")
    }
}

/// The result of a wgpu future: outside of a browser it is ready at once.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("wgpu is not ready at once"),
    }
}

impl Wgpu {
    fn open(name: &str) -> Option<Self> {
        let descriptor = wgpu::InstanceDescriptor {
            backends: wgpu::Backends::VULKAN,
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        };
        let adapters = ready(wgpu::Instance::new(descriptor).enumerate_adapters(wgpu::Backends::VULKAN));
        let adapter = adapters.into_iter().find(|adapter| adapter.get_info().name == name)?;
        let mut limits = wgpu::Limits::downlevel_defaults();
        limits.max_immediate_size = 4;
        let (device, queue) = ready(adapter.request_device(&wgpu::DeviceDescriptor {
            required_features: wgpu::Features::IMMEDIATES,
            required_limits: limits,
            ..wgpu::DeviceDescriptor::default()
        }))
        .ok()?;
        let pipeline = pipeline(&device);
        let buffers: [_; 3] = std::array::from_fn(|_| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: BYTES,
                usage: wgpu::BufferUsages::STORAGE,
                mapped_at_creation: false,
            })
        });
        let entries: [_; 3] = std::array::from_fn(|index| wgpu::BindGroupEntry {
            binding: u32::try_from(index).unwrap_or(0),
            resource: buffers[index].as_entire_binding(),
        });
        let arguments = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        Some(Self { device, queue, pipeline, arguments })
    }

    fn record(&self, launches: u32) -> wgpu::CommandBuffer {
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for _ in 0..launches {
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &self.arguments, &[]);
            pass.set_immediates(0, &3.0f32.to_le_bytes());
            pass.dispatch_workgroups(1, 1, 1);
        }
        drop(pass);
        encoder.finish()
    }

    fn wait(&self) {
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("the queue ends");
    }

    fn one_pass(&self) {
        self.queue.submit([self.record(BURST)]);
    }

    fn one_each(&self) {
        for _ in 0..BURST {
            self.queue.submit([self.record(1)]);
        }
    }

    /// A burst to its last submission; then it is waited for, which does not count.
    fn burst(&self, submit: fn(&Self)) -> Duration {
        let elapsed = time(|| submit(self));
        self.wait();
        elapsed
    }

    /// A burst to the end of its last kernel.
    fn whole_burst(&self, submit: fn(&Self)) -> Duration {
        time(|| {
            submit(self);
            self.wait();
        })
    }
}

fn pipeline(device: &wgpu::Device) -> wgpu::ComputePipeline {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(TOUCH.into()),
    });
    let storage = |binding, read_only| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let arguments = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: None,
        entries: &[storage(0, true), storage(1, true), storage(2, false)],
    });
    let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: None,
        bind_group_layouts: &[Some(&arguments)],
        immediate_size: 4,
    });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: Some(&layout),
        module: &module,
        entry_point: Some("touch"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    })
}
