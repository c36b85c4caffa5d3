alias T = f32;
struct Scalars { a: T, b: T, n: u32, c: T, d: T, e: T }
var<immediate> scalars: Scalars;
@group(0) @binding(0) var<storage, read_write> x: array<T>;
var<workgroup> tile: array<T, 8>;

fn scale(value: T) -> T { return scalars.d * value; }

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let all = scalars;
    if id.x >= scalars.n { x[id.x] = all.e; }
    tile[lane] = scalars.a * x[id.x];
    workgroupBarrier();
    x[id.x] = scale(scalars.b + all.c + tile[7u - lane]);
}
