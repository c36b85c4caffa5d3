// c = a · b by matrix units: a is m × k and b is k × n in f16, c is m × n in f32, all in rows. k and n are multiples of 4, m and
// n of 16.
//
// A group of four subgroups computes 128 × 128 elements of c, each subgroup 64 × 64. It proceeds along k in steps of 32. Two
// pairs of tiles in work-group memory alternate: while a pair is multiplied, the elements of the next one are loaded into
// registers. Rows of tiles are padded, so that eight of them are in different banks.

enable f16;
enable wgpu_cooperative_matrix;

/// Invocations of a subgroup.
override SUBGROUP: u32 = 32;
const SUBGROUPS: u32 = 4;
const WIDTH: u32 = 128;
const DEPTH: u32 = 32;
/// Vectors in a row of a tile, with its padding.
const A_ROW: u32 = DEPTH / 4 + 2;
const B_ROW: u32 = WIDTH / 4 + 2;
const A_TILE: u32 = WIDTH * A_ROW;
const B_TILE: u32 = DEPTH * B_ROW;
/// Vectors of a tile that an invocation of 128 moves.
const MOVED: u32 = WIDTH * DEPTH / 4 / 128;

struct Scalars {
    m: u32,
    n: u32,
    k: u32,
}

@group(0) @binding(0) var<storage, read> a: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read> b: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<immediate> scalars: Scalars;

var<workgroup> a_tiles: array<vec4<f16>, 2 * A_TILE>;
var<workgroup> b_tiles: array<vec4<f16>, 2 * B_TILE>;

/// An index that is out of range, where zero is read and nothing is written.
const NOWHERE: u32 = 0xffffffff;

fn of_a(row: u32, column: u32) -> vec4<f16> {
    return a[select(NOWHERE, (row * scalars.k + column) / 4, row < scalars.m && column < scalars.k)];
}

fn of_b(row: u32, column: u32) -> vec4<f16> {
    return b[select(NOWHERE, (row * scalars.n + column) / 4, row < scalars.k && column < scalars.n)];
}

@compute @workgroup_size(SUBGROUPS * SUBGROUP)
fn gemm(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) item: u32,
    @builtin(subgroup_id) subgroup: u32,
) {
    let top = group.y * WIDTH;
    let left = group.x * WIDTH;
    let own = min(subgroup, SUBGROUPS - 1);
    let row = own / 2 * 64;
    let column = own % 2 * 64;
    var sums: array<coop_mat16x16<f32, C>, 16>;
    var next_a: array<vec4<f16>, MOVED>;
    var next_b: array<vec4<f16>, MOVED>;
    for (var i = 0u; i < MOVED; i++) {
        let at = i * 128 + item;
        next_a[i] = of_a(top + at / (DEPTH / 4), at % (DEPTH / 4) * 4);
        next_b[i] = of_b(at / (WIDTH / 4), left + at % (WIDTH / 4) * 4);
    }
    for (var depth = 0u; depth < scalars.k; depth += DEPTH) {
        let tile = depth / DEPTH % 2;
        for (var i = 0u; i < MOVED; i++) {
            let at = i * 128 + item;
            a_tiles[tile * A_TILE + at / (DEPTH / 4) * A_ROW + at % (DEPTH / 4)] = next_a[i];
            b_tiles[tile * B_TILE + at / (WIDTH / 4) * B_ROW + at % (WIDTH / 4)] = next_b[i];
        }
        workgroupBarrier();
        for (var i = 0u; i < MOVED; i++) {
            let at = i * 128 + item;
            next_a[i] = of_a(top + at / (DEPTH / 4), depth + DEPTH + at % (DEPTH / 4) * 4);
            next_b[i] = of_b(depth + DEPTH + at / (WIDTH / 4), left + at % (WIDTH / 4) * 4);
        }
        for (var step = 0u; step < DEPTH / 16; step++) {
            var rows: array<coop_mat16x16<f16, A>, 4>;
            for (var i = 0u; i < 4; i++) {
                let at = tile * A_TILE + (row + i * 16) * A_ROW + step * 4;
                rows[i] = coopLoadT<coop_mat16x16<f16, A>>(&a_tiles[at], A_ROW);
            }
            for (var j = 0u; j < 4; j++) {
                let at = tile * B_TILE + step * 16 * B_ROW + (own % 2 * 4 + j) * 4;
                let columns = coopLoadT<coop_mat16x16<f16, B>>(&b_tiles[at], B_ROW);
                for (var i = 0u; i < 4; i++) {
                    sums[i * 4 + j] = coopMultiplyAdd(rows[i], columns, sums[i * 4 + j]);
                }
            }
        }
    }
    for (var i = 0u; i < 4; i++) {
        for (var j = 0u; j < 4; j++) {
            let y = top + row + i * 16;
            let x = left + column + j * 16;
            let at = select(NOWHERE, y * scalars.n + x, y < scalars.m && x < scalars.n);
            coopStoreT(sums[i * 4 + j], &c[at], scalars.n);
        }
    }
}
