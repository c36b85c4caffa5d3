// A 3 × 3 filter over an image: out[r][c] = sum of weights[3 · i + j] · image[r + i - 1][c + j - 1]. Images are row-major;
// pixels beyond the edges are zero.
//
// Each invocation computes PER pixels of a column and keeps the three input rows in registers, so that it reads one new row per
// pixel. Adjacent invocations read adjacent columns; what they read twice comes from a cache.

alias T = f32;

override GROUP_WIDTH: u32 = 64;
override GROUP_HEIGHT: u32 = 4;
const PER: u32 = 4;

struct Scalars {
    height: u32,
    width: u32,
}

@group(0) @binding(0) var<storage, read> image: array<T>;
@group(0) @binding(1) var<storage, read> weights: array<T>;
@group(0) @binding(2) var<storage, read_write> out: array<T>;
var<immediate> scalars: Scalars;

@compute @workgroup_size(GROUP_WIDTH, GROUP_HEIGHT)
fn convolution(@builtin(global_invocation_id) id: vec3u) {
    let column = id.x;
    let top = id.y * PER;
    let first = vec3<T>(weights[0], weights[1], weights[2]);
    let second = vec3<T>(weights[3], weights[4], weights[5]);
    let third = vec3<T>(weights[6], weights[7], weights[8]);
    var above = pixels(top - 1, column);
    var here = pixels(top, column);
    for (var j = 0u; j < PER; j++) {
        let row = top + j;
        let below = pixels(row + 1, column);
        if row < scalars.height && column < scalars.width {
            out[row * scalars.width + column] = dot(first, above) + dot(second, here) + dot(third, below);
        }
        above = here;
        here = below;
    }
}

// A pixel and its left and right neighbours.
fn pixels(row: u32, column: u32) -> vec3<T> {
    return vec3<T>(pixel(row, column - 1), pixel(row, column), pixel(row, column + 1));
}

// A pixel, or zero beyond the edges. Above and left of the image the coordinate wraps around to a large number.
fn pixel(row: u32, column: u32) -> T {
    if row < scalars.height && column < scalars.width {
        return image[row * scalars.width + column];
    }
    return T(0);
}
