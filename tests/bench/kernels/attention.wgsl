alias T = f32;

override GROUP: u32 = 64;
override TILE: u32 = 16;
override CAUSAL: bool = true;

struct Scalars {
    rows: u32,
    columns: u32,
    depth: u32,
    scale: f32,
}

struct Row {
    largest: f32,
    sum: f32,
    weighted: vec4<f32>,
}

@group(0) @binding(0) var<storage, read> queries: array<vec4<T>>;
@group(0) @binding(1) var<storage, read> keys: array<vec4<T>>;
@group(0) @binding(2) var<storage, read> values: array<vec4<T>>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<T>>;
@group(0) @binding(4) var<storage, read_write> seen: array<atomic<u32>>;
var<immediate> scalars: Scalars;

var<workgroup> tile_keys: array<vec4<T>, TILE * 4>;
var<workgroup> tile_values: array<vec4<T>, TILE * 4>;
var<workgroup> sums: array<f32, GROUP>;

fn score(query: u32, key: u32) -> f32 {
    var sum = 0.0;
    for (var k = 0u; k < scalars.depth; k++) {
        let a = vec4<f32>(queries[query * scalars.depth + k]);
        let b = vec4<f32>(tile_keys[key * scalars.depth + k]);
        sum += dot(a, b);
    }
    return sum * scalars.scale;
}

fn merge(row: Row, value: f32, weighted: vec4<f32>) -> Row {
    var merged = row;
    merged.largest = max(row.largest, value);
    let before = exp(row.largest - merged.largest);
    let now = exp(value - merged.largest);
    merged.sum = row.sum * before + now;
    merged.weighted = row.weighted * before + weighted * now;
    return merged;
}

fn fetch(first: u32, lane: u32) {
    for (var i = lane; i < TILE * scalars.depth; i += GROUP) {
        let at = first * scalars.depth + i;
        if at < scalars.columns * scalars.depth {
            tile_keys[i] = keys[at];
            tile_values[i] = values[at];
        } else {
            tile_keys[i] = vec4<T>();
            tile_values[i] = vec4<T>();
        }
    }
}

fn total(lane: u32, value: f32) -> f32 {
    sums[lane] = value;
    workgroupBarrier();
    for (var stride = GROUP / 2; stride > 0; stride /= 2) {
        if lane < stride {
            sums[lane] += sums[lane + stride];
        }
        workgroupBarrier();
    }
    return sums[0];
}

@compute @workgroup_size(GROUP)
fn attention(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
) {
    let row = id.x;
    var best = Row(-1e30, 0.0, vec4<f32>());
    for (var first = 0u; first < scalars.columns; first += TILE) {
        fetch(first, lane);
        workgroupBarrier();
        for (var key = 0u; key < TILE && first + key < scalars.columns; key++) {
            if CAUSAL && first + key > row {
                continue;
            }
            let weighted = vec4<f32>(tile_values[key * scalars.depth]);
            best = merge(best, score(row, key), weighted);
        }
        workgroupBarrier();
    }
    let all = total(lane, best.sum);
    if lane == 0u {
        atomicAdd(&seen[group.x], u32(all));
    }
    if row < scalars.rows {
        out[row] = vec4<T>(best.weighted / max(best.sum, 1e-20));
    }
}
