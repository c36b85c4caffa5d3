// A 3 × 3 filter over an image: out[r][c] = the sum of weights[3 · i + j] · image[r + i - 1][c + j - 1]; row-major, and zero
// beyond the edges.
//
// An invocation computes PER pixels of a column: it reads PER + 2 rows of three pixels once, and adds each row to all the pixels
// that it counts for. Neighbours read neighbours; what they read twice comes from a cache.

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
    var sum: array<T, PER>;
    for (var i = 0u; i < PER + 2; i++) {
        let row = top + i - 1;
        let left = pixel(row, column - 1);
        let middle = pixel(row, column);
        let right = pixel(row, column + 1);
        for (var j = 0u; j < PER; j++) {
            // The row of the filter that meets row i for pixel j; below 0 it wraps around.
            let f = i - j;
            if f < 3 {
                sum[j] += weights[3 * f] * left + weights[3 * f + 1] * middle + weights[3 * f + 2] * right;
            }
        }
    }
    for (var j = 0u; j < PER; j++) {
        if top + j < scalars.height && column < scalars.width {
            out[(top + j) * scalars.width + column] = sum[j];
        }
    }
}

// A pixel, or zero beyond the edges; above and left of the image a coordinate has wrapped around and is large.
fn pixel(row: u32, column: u32) -> T {
    if row < scalars.height && column < scalars.width {
        return image[row * scalars.width + column];
    }
    return T(0);
}
