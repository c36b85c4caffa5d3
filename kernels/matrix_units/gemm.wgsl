// c = a · b by matrix units: a is m × k and b is k × n in f16, c is m × n in f32, all in rows. k and n are multiples of 8, m and
// n of 16.
//
// A group of four subgroups computes 128 × 128 elements of c, each subgroup 64 × 64. It proceeds along k in steps of 32. Two
// pairs of tiles in work-group memory alternate: while a pair is multiplied, the elements of the next one are loaded into
// registers, eight at a time. Rows of tiles are padded, so that eight of them are in different banks.

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
/// Eights of a tile that an invocation of 128 moves.
const MOVED: u32 = WIDTH * DEPTH / 8 / 128;

/// Eight elements of f16. A structure may be loaded from a tensor of any type.
struct Eight {
    words: vec4u,
}

struct Scalars {
    m: u32,
    n: u32,
    k: u32,
}

@group(0) @binding(0) var<storage, read> a: array<Eight>;
@group(0) @binding(1) var<storage, read> b: array<Eight>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<immediate> scalars: Scalars;

var<workgroup> a_tiles: array<vec4<f16>, 2 * A_TILE>;
var<workgroup> b_tiles: array<vec4<f16>, 2 * B_TILE>;

/// An index that is out of range, where zero is read and nothing is written.
const NOWHERE: u32 = 0xffffffff;

fn of_a(row: u32, column: u32) -> vec4u {
    return a[select(NOWHERE, row * (scalars.k / 8) + column / 8, row < scalars.m && column < scalars.k)].words;
}

fn of_b(row: u32, column: u32) -> vec4u {
    return b[select(NOWHERE, row * (scalars.n / 8) + column / 8, row < scalars.k && column < scalars.n)].words;
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
    var next_a: array<vec4u, MOVED>;
    var next_b: array<vec4u, MOVED>;
    for (var i = 0u; i < MOVED; i++) {
        let at = i * 128 + item;
        next_a[i] = of_a(top + at / (DEPTH / 8), at % (DEPTH / 8) * 8);
        next_b[i] = of_b(at / (WIDTH / 8), left + at % (WIDTH / 8) * 8);
    }
    for (var depth = 0u; depth < scalars.k; depth += DEPTH) {
        let tile = depth / DEPTH % 2;
        for (var i = 0u; i < MOVED; i++) {
            let at = i * 128 + item;
            let to_a = tile * A_TILE / 2 + at / (DEPTH / 8) * (A_ROW / 2) + at % (DEPTH / 8);
            a_tiles[2 * to_a] = bitcast<vec4<f16>>(next_a[i].xy);
            a_tiles[2 * to_a + 1] = bitcast<vec4<f16>>(next_a[i].zw);
            let to_b = tile * B_TILE / 2 + at / (WIDTH / 8) * (B_ROW / 2) + at % (WIDTH / 8);
            b_tiles[2 * to_b] = bitcast<vec4<f16>>(next_b[i].xy);
            b_tiles[2 * to_b + 1] = bitcast<vec4<f16>>(next_b[i].zw);
        }
        workgroupBarrier();
        for (var i = 0u; i < MOVED; i++) {
            let at = i * 128 + item;
            next_a[i] = of_a(top + at / (DEPTH / 8), depth + DEPTH + at % (DEPTH / 8) * 8);
            next_b[i] = of_b(depth + DEPTH + at / (WIDTH / 8), left + at % (WIDTH / 8) * 8);
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
