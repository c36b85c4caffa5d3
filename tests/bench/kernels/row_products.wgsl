// y[i] = dot product of row i of a with row i of b, in integers; one row per work-item.
struct Scalars { rows: u32, columns: u32 }
var<immediate> scalars: Scalars;

@group(0) @binding(0) var<storage, read> a: array<i32>;
@group(0) @binding(1) var<storage, read> b: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<i32>;

@compute @workgroup_size(64)
fn row_products(@builtin(global_invocation_id) id: vec3u) {
    let row = id.x;
    if row >= scalars.rows { return; }
    var sum = 0i;
    for (var k = 0u; k < scalars.columns; k++) {
        sum += a[row * scalars.columns + k] * b[row * scalars.columns + k];
    }
    y[row] = sum;
}
