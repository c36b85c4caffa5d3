// out[r][c] = x[r][c] + skipped[r][c]: the connection around a layer; row-major.
//
// A group processes one row at a time, and an invocation every GROUP-th element of it, like the kernels that reduce rows: so this
// one can be fused with them.

alias T = f32;

override GROUP: u32 = 256;

struct Scalars {
    rows: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> skipped: array<T>;
@group(0) @binding(2) var<storage, read_write> out: array<T>;
var<immediate> scalars: Scalars;

@compute @workgroup_size(GROUP)
fn residual(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    for (var row = group.x; row < scalars.rows; row += groups.x) {
        let first = row * scalars.columns;
        for (var column = lane; column < scalars.columns; column += GROUP) {
            out[first + column] = x[first + column] + skipped[first + column];
        }
    }
}
