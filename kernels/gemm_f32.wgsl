// c = a · b for row-major matrices of f32: a is m × k, b is k × n, c is m × n. k and n are multiples of 4.
// The tensors must be of f32: the launch does not check that, as arrays of structures accept any type.
//
// A group of 256 invocations computes 128 × 256 elements of c, each invocation 8 × 16 of them, in blocks of 4 × 4 that are 64
// apart. It proceeds along k in steps of 8. Two pairs of tiles in work-group memory alternate: while a pair is multiplied, the
// elements of the next one are loaded into registers. Two subgroups of 32 load a, in blocks of 4 × 4 that they transpose, four
// load b. Elements outside of a matrix count as zero.

const HEIGHT: u32 = 128;
const WIDTH: u32 = 256;
const DEPTH: u32 = 8;
/// Vectors in a row of a tile, and in a tile.
const A_ROW: u32 = HEIGHT / 4;
const B_ROW: u32 = WIDTH / 4;
const A_TILE: u32 = DEPTH * A_ROW;
const B_TILE: u32 = DEPTH * B_ROW;

/// Four elements. CUDA moves a vector in a structure as one word.
struct Four {
    numbers: vec4f,
}

struct Scalars {
    m: u32,
    n: u32,
    k: u32,
}

@group(0) @binding(0) var<storage, read> a: array<Four>;
@group(0) @binding(1) var<storage, read> b: array<Four>;
@group(0) @binding(2) var<storage, read_write> c: array<Four>;
var<immediate> scalars: Scalars;

/// Tiles of a, whose rows run along k, and tiles of b.
var<workgroup> a_tiles: array<vec4f, 2 * A_TILE>;
var<workgroup> b_tiles: array<vec4f, 2 * B_TILE>;

/// An index that is out of range, where zero is read and nothing is written.
const NOWHERE: u32 = 0xffffffff;

fn of_a(row: u32, column: u32) -> vec4f {
    return a[select(NOWHERE, row * (scalars.k / 4) + column / 4, row < scalars.m && column < scalars.k)].numbers;
}

fn of_b(row: u32, column: u32) -> vec4f {
    return b[select(NOWHERE, row * (scalars.n / 4) + column / 4, row < scalars.k && column < scalars.n)].numbers;
}

@compute @workgroup_size(256)
fn gemm(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) item: u32) {
    let top = group.y * HEIGHT;
    let left = group.x * WIDTH;
    // The part that the invocation loads.
    let loads_a = item >= 128 && item < 192;
    let loads_b = item < 128;
    let a_row = (item % 8 + item % 64 / 16 * 8) * 4;
    let a_column = item / 8 % 2 * 4;
    let b_row = item % 128 / 64;
    let b_column = item % 64 * 4;
    // The part that it computes, so that a subgroup reads few different vectors.
    let x = item % 8 + item / 32 % 2 * 8;
    let y = item / 8 % 4 + item / 64 * 4;
    var sums: array<vec4f, 32>;
    var next: array<vec4f, 4>;
    if loads_a {
        for (var i = 0u; i < 4; i++) {
            next[i] = of_a(top + a_row + i, a_column);
        }
    } else if loads_b {
        for (var i = 0u; i < 4; i++) {
            next[i] = of_b(b_row + i * 2, left + b_column);
        }
    }
    for (var depth = 0u; depth < scalars.k; depth += DEPTH) {
        let a_tile = depth / DEPTH % 2 * A_TILE;
        let b_tile = depth / DEPTH % 2 * B_TILE;
        if loads_a {
            let block = transpose(mat4x4f(next[0], next[1], next[2], next[3]));
            for (var i = 0u; i < 4; i++) {
                a_tiles[a_tile + (a_column + i) * A_ROW + a_row / 4] = block[i];
            }
        } else if loads_b {
            for (var i = 0u; i < 4; i++) {
                b_tiles[b_tile + (b_row + i * 2) * B_ROW + b_column / 4] = next[i];
            }
        }
        workgroupBarrier();
        if loads_a {
            for (var i = 0u; i < 4; i++) {
                next[i] = of_a(top + a_row + i, depth + DEPTH + a_column);
            }
        } else if loads_b {
            for (var i = 0u; i < 4; i++) {
                next[i] = of_b(depth + DEPTH + b_row + i * 2, left + b_column);
            }
        }
        for (var p = 0u; p < DEPTH; p++) {
            let at_a = a_tile + p * A_ROW + y;
            let at_b = b_tile + p * B_ROW + x;
            let rows = array<vec4f, 2>(a_tiles[at_a], a_tiles[at_a + 16]);
            let columns = array<vec4f, 4>(b_tiles[at_b], b_tiles[at_b + 16], b_tiles[at_b + 32], b_tiles[at_b + 48]);
            for (var i = 0u; i < 8; i++) {
                for (var j = 0u; j < 4; j++) {
                    sums[i * 4 + j] += rows[i / 4][i % 4] * columns[j];
                }
            }
        }
    }
    for (var i = 0u; i < 8; i++) {
        let row = top + i / 4 * 64 + y * 4 + i % 4;
        for (var j = 0u; j < 4; j++) {
            let column = left + j * 64 + x * 4;
            if row < scalars.m && column < scalars.n {
                c[row * (scalars.n / 4) + column / 4].numbers = sums[i * 4 + j];
            }
        }
    }
}
