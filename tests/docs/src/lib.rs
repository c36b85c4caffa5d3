//! The programs of the README and of the documentation, as documentation tests: compiled and, unless they are marked `no_run`,
//! run.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/linking.md")]
struct Linking;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/async.md")]
struct Async;

/// What the programs of `docs/async.md` begin with: the host, and a kernel that adds its first tensor to its second.
///
/// # Errors
/// Those of the host.
pub fn host_and_adder() -> runtime_core::Result<(runtime_core::Device, runtime_core::Kernel)> {
    const ADD: &str = "
        @group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) { y[id.x] += x[id.x]; }";
    let runtime = runtime_core::Runtime::builder()
        .discover(false)
        .register(runtime_host::backend())
        .with_lowering(runtime_kernel::wgsl())
        .build();
    let device = runtime.open("host")?;
    let add = device.kernel(runtime_core::ModuleSource::wgsl(ADD), "add")?;
    Ok((device, add))
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/interchange.md")]
struct Interchange;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/dispatch.md")]
struct Dispatch;
