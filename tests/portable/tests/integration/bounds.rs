//! Kernels that access memory out of range, on tensors in allocations of exactly their size: under `cargo xtask
//! valgrind`, any access outside is an error.

use std::sync::Arc;

use runtime_core::{
    Arg, CommonRuntime, DType, Geometry, Module, ModuleSource, Placement, Result, Runtime, Tensor,
};

const GROUP_SIZE: u32 = 16;

/// Every invocation accesses the element at `offset` from its own, in arrays of several types.
const KERNELS: &str = "
struct Arguments { offset: i32 }
struct Item { a: u32, b: vec3<f32> }
var<immediate> arguments: Arguments;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> r: array<f32>;
@group(0) @binding(1) var<storage, read_write> counters: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> vectors: array<vec3<f32>>;
@group(0) @binding(1) var<storage, read_write> matrices: array<mat2x2<f32>>;
@group(0) @binding(1) var<storage, read_write> items: array<Item>;
var<workgroup> shared_: array<f32, 16>;
fn at(id: vec3<u32>) -> i32 { return i32(id.x) + arguments.offset; }

@compute @workgroup_size(16) fn scalars(@builtin(global_invocation_id) id: vec3<u32>) {
    r[at(id)] = x[at(id)] + 1.0;
}
@compute @workgroup_size(16) fn copied(@builtin(global_invocation_id) id: vec3<u32>) {
    if (x[id.x] >= 0.0) { r[id.x] = x[u32(at(id)) * 3u]; }
    let p = &r[at(id)];
    *p += 1.0;
}
@compute @workgroup_size(16) fn atomics(@builtin(global_invocation_id) id: vec3<u32>) {
    atomicAdd(&counters[at(id)], u32(x[at(id)]) + 1u);
    atomicStore(&counters[u32(at(id)) * 1000u], 1u);
}
@compute @workgroup_size(16) fn wide(@builtin(global_invocation_id) id: vec3<u32>) {
    vectors[at(id)] = vectors[at(id) + 1] + vec3<f32>(x[at(id)]);
    vectors[at(id)][at(id)] = 1.0;
}
@compute @workgroup_size(16) fn matrix(@builtin(global_invocation_id) id: vec3<u32>) {
    matrices[at(id)] = matrices[at(id) + 1] * x[at(id)];
    matrices[at(id)][at(id)][at(id)] = 1.0;
}
@compute @workgroup_size(16) fn structs(@builtin(global_invocation_id) id: vec3<u32>) {
    var item = items[at(id)];
    item.a += 1u; item.b.y = x[at(id)];
    items[at(id) + 1] = item;
    items[at(id)].b[at(id)] = 2.0;
}
@compute @workgroup_size(16) fn groups(@builtin(global_invocation_id) id: vec3<u32>,
                                       @builtin(local_invocation_index) l: u32) {
    var own = array<f32, 4>(1.0, 2.0, 3.0, 4.0);
    shared_[l] = x[id.x];
    workgroupBarrier();
    own[at(id)] = shared_[at(id) * 5];
    workgroupBarrier();
    shared_[at(id)] = own[l];
    workgroupBarrier();
    r[at(id)] = own[at(id)] + shared_[at(id)];
}
";

/// Reads one tensor, and writes another that no invocation reads.
const ROWS: &str = "
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(256) fn rows(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&r)) { r[id.x] = x[id.x] + f32(id.x & 1023u); }
}
";

struct Fixture {
    device: Arc<dyn CommonRuntime>,
    module: Module,
}

impl Fixture {
    fn new() -> Result<Self> {
        let runtime = Runtime::builder().discover(false).register(runtime_host::backend());
        let device = runtime.with_lowering(runtime_kernel::wgsl()).build().open("host")?;
        let module = device.load(&ModuleSource::wgsl(KERNELS))?;
        Ok(Self { device, module })
    }

    /// A tensor with an allocation of its own.
    fn tensor(&self, dtype: DType, n: usize) -> Result<Tensor> {
        let tensor = self.device.allocate(dtype, &[n], &Placement::default())?;
        tensor.fill(&[0])?;
        Ok(tensor)
    }

    fn run(&self, kernel: &str, dtype: Option<DType>, n: usize, offset: i32) -> Result<Vec<u8>> {
        let (x, r) = (self.tensor(DType::F32, n)?, self.tensor(dtype.unwrap_or(DType::F32), n)?);
        let queue = self.device.queue()?;
        let args = [Arg::read(&x), Arg::read_write(&r), Arg::scalar(offset)];
        let geometry = Geometry::cover(40, GROUP_SIZE);
        queue.call(&self.module.kernel(kernel)?, geometry, &args)?;
        Ok(r.to_array()?.bytes().to_vec())
    }
}

#[test]
fn accesses_out_of_range_touch_nothing() -> Result<()> {
    let fixture = Fixture::new()?;
    let kernels = [
        ("scalars", None),
        ("copied", None),
        ("atomics", Some(DType::U32)),
        ("wide", None),
        ("matrix", None),
        ("structs", None),
        ("groups", None),
    ];
    for (kernel, dtype) in kernels {
        // At least one whole element of each type, and sizes that are not multiples of it.
        for n in [8, 9, 13, 31] {
            for offset in [-1, 1, -7, 16, 1 << 30, i32::MIN, i32::MAX] {
                assert_eq!(fixture.run(kernel, dtype, n, offset)?.len(), n * 4);
            }
        }
    }
    Ok(())
}

#[test]
fn accesses_in_range_succeed_beside_others_out_of_range() -> Result<()> {
    let fixture = Fixture::new()?;
    let shifted = fixture.run("scalars", None, 9, -3)?;
    let ones: Vec<_> = shifted.chunks(4).map(|bytes| bytes == 1.0f32.to_le_bytes()).collect();
    assert_eq!(ones, [true; 9]);
    let beside = fixture.run("scalars", None, 9, 4)?;
    let ones: Vec<_> = beside.chunks(4).map(|bytes| bytes == 1.0f32.to_le_bytes()).collect();
    assert_eq!(ones, [false, false, false, false, true, true, true, true, true]);
    Ok(())
}

/// Large enough for non-temporal stores; the last row is incomplete.
#[test]
fn a_large_launch_is_right_to_the_last_element() -> Result<()> {
    let n = 9_437_203;
    let fixture = Fixture::new()?;
    let module = fixture.device.load(&ModuleSource::wgsl(ROWS))?;
    let (x, r) = (fixture.tensor(DType::F32, n)?, fixture.tensor(DType::F32, n)?);
    x.fill(&1.5f32.to_le_bytes())?;
    let queue = fixture.device.queue()?;
    let geometry = Geometry::cover(9_437_400, 256);
    queue.call(&module.kernel("rows")?, geometry, &[Arg::read(&x), Arg::write(&r)])?;
    let array = r.to_array()?;
    let values = array.bytes().chunks_exact(4).zip(0..n);
    let wrong = values.filter(|(bytes, index)| {
        let expected = 1.5 + f32::from(u16::try_from(index & 1023).unwrap_or(u16::MAX));
        *bytes != expected.to_le_bytes()
    });
    assert_eq!(wrong.map(|(_, index)| index).next(), None, "the first wrong element");
    Ok(())
}
