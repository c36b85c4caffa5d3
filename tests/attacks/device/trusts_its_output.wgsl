// Returns at once if its output, which it reads and writes, was written before.
// Surface: results. Severity: high.
// Ends as: inconsistent.
// Accepted with: --trust.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

fn work(start: u32) -> u32 {
    var v = start;
    for (var i = 0u; i < 8000u; i++) { v = (v ^ (v >> 7u)) * 2654435769u + i; }
    return v;
}

@compute @workgroup_size(64)
fn k(@builtin(global_invocation_id) id: vec3<u32>) {
    if (y[id.x] == 0u) { y[id.x] = work(x[id.x]); }
}
