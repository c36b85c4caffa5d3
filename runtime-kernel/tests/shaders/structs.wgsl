struct Inner { v: vec3<f32>, s: f32, m: mat3x3<f32> }
struct Row { head: vec2<i32>, list: array<Inner, 3>, @align(32) tail: u32 }
struct Table { count: u32, rows: array<Row> }
@group(0) @binding(0) var<storage, read> table: Table;
@group(0) @binding(1) var<storage, read_write> result: array<mat4x4<f32>>;
const WEIGHTS = array<f32, 4>(0.1, 0.2, 0.3, 0.4);
var<private> scratch: array<f32, 4>;

fn blend(p: ptr<function, Inner>, k: u32) -> vec3<f32> {
    (*p).v = (*p).m * (*p).v;
    (*p).v[k % 3u] += WEIGHTS[k % 4u];
    return (*p).v;
}

@compute @workgroup_size(4)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let row = table.rows[group.x];
    var inner = row.list[local.x];
    scratch[local.x] = 1.0;
    let v = blend(&inner, row.tail);
    result[group.x][local.x] = vec4<f32>(v.zyx, scratch[local.x & 3u]);
    if group.x < arrayLength(&table.rows) && table.count > 0u { result[group.x][0].w += f32(row.head.y); }
}
