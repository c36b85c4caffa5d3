struct Scalars { a: f64, n: i64, k: u64, m: u32 }
var<immediate> s: Scalars;
@group(0) @binding(0) var<storage, read_write> x: array<f64>;
@group(0) @binding(1) var<storage, read_write> y: array<i64>;
@group(0) @binding(2) var<storage, read_write> c: atomic<u64>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.x + id.y * groups.x * 8u;
    if i >= s.m { return; }
    x[i] = x[i] * s.a + 0.5lf;
    y[i] = y[i] / s.n % 7li + i64(s.k);
    atomicMax(&c, s.k);
}
