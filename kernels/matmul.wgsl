// c = a · b for row-major matrices: a is m × k, b is k × n, c is m × n.
//
// A group of TILE × TILE invocations computes a tile of c that is PER times as high and as wide. It proceeds along k in steps of
// TILE: the group loads a tile of a and a tile of b into work-group memory, then each invocation multiplies PER elements of a
// column of a by PER elements of a row of b, and keeps the PER × PER sums in registers. Its rows and columns are TILE apart, so
// that adjacent invocations read adjacent elements. Elements outside of a matrix count as zero.

alias T = f32;

override TILE: u32 = 16;
const PER: u32 = 4;

struct Scalars {
    m: u32,
    n: u32,
    k: u32,
}

@group(0) @binding(0) var<storage, read> a: array<T>;
@group(0) @binding(1) var<storage, read> b: array<T>;
@group(0) @binding(2) var<storage, read_write> c: array<T>;
var<immediate> scalars: Scalars;

var<workgroup> a_tile: array<T, PER * TILE * TILE>;
var<workgroup> b_tile: array<T, PER * TILE * TILE>;

@compute @workgroup_size(TILE, TILE)
fn matmul(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u) {
    let width = PER * TILE;
    let top = group.y * width + local.y;
    let left = group.x * width + local.x;
    var sum: array<array<T, PER>, PER>;
    for (var depth = 0u; depth < scalars.k; depth += TILE) {
        for (var i = 0u; i < PER; i++) {
            a_tile[(local.y + i * TILE) * TILE + local.x] = element_of_a(top + i * TILE, depth + local.x);
            b_tile[local.y * width + local.x + i * TILE] = element_of_b(depth + local.y, left + i * TILE);
        }
        workgroupBarrier();
        for (var p = 0u; p < TILE; p++) {
            var row: array<T, PER>;
            for (var j = 0u; j < PER; j++) {
                row[j] = b_tile[p * width + local.x + j * TILE];
            }
            for (var i = 0u; i < PER; i++) {
                let factor = a_tile[(local.y + i * TILE) * TILE + p];
                for (var j = 0u; j < PER; j++) {
                    sum[i][j] += factor * row[j];
                }
            }
        }
        workgroupBarrier();
    }
    for (var i = 0u; i < PER; i++) {
        for (var j = 0u; j < PER; j++) {
            let row = top + i * TILE;
            let column = left + j * TILE;
            if row < scalars.m && column < scalars.n {
                c[row * scalars.n + column] = sum[i][j];
            }
        }
    }
}

fn element_of_a(row: u32, column: u32) -> T {
    if row < scalars.m && column < scalars.k {
        return a[row * scalars.k + column];
    }
    return T(0);
}

fn element_of_b(row: u32, column: u32) -> T {
    if row < scalars.k && column < scalars.n {
        return b[row * scalars.n + column];
    }
    return T(0);
}
