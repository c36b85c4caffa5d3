// out[r][c] = (x[r][c] - mean of row r) / sqrt(variance of row r + epsilon) · scale[c] + shift[c]; row-major.
//
// A group processes one row at a time, in three passes: the mean; the variance around it, which is more accurate than the mean of
// squares; the result. After the first pass the row comes from a cache. An invocation handles every GROUP-th element of a row, so
// that adjacent invocations access adjacent elements. All invocations of a group run the same number of iterations; the row's end
// is checked inside the loop. GROUP must be a power of two.

alias T = f32;

override GROUP: u32 = 256;

struct Scalars {
    rows: u32,
    columns: u32,
    epsilon: T,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> scale: array<T>;
@group(0) @binding(2) var<storage, read> shift: array<T>;
@group(0) @binding(3) var<storage, read_write> out: array<T>;
var<immediate> scalars: Scalars;

var<workgroup> partial: array<T, GROUP>;

@compute @workgroup_size(GROUP)
fn layer_norm(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    for (var row = group.x; row < scalars.rows; row += groups.x) {
        let first = row * scalars.columns;
        var sum = T(0);
        for (var start = 0u; start < scalars.columns; start += GROUP) {
            if start + lane < scalars.columns {
                sum += x[first + start + lane];
            }
        }
        let mean = total(sum, lane) / T(scalars.columns);
        var squares = T(0);
        for (var start = 0u; start < scalars.columns; start += GROUP) {
            if start + lane < scalars.columns {
                let distance = x[first + start + lane] - mean;
                squares += distance * distance;
            }
        }
        let variance = total(squares, lane) / T(scalars.columns);
        let factor = T(1) / sqrt(variance + scalars.epsilon);
        for (var start = 0u; start < scalars.columns; start += GROUP) {
            let column = start + lane;
            if column < scalars.columns {
                out[first + column] = (x[first + column] - mean) * factor * scale[column] + shift[column];
            }
        }
    }
}

// The sum over all invocations of the group.
fn total(value: T, lane: u32) -> T {
    partial[lane] = value;
    workgroupBarrier();
    for (var half = GROUP / 2; half > 0; half /= 2) {
        if lane < half {
            partial[lane] += partial[lane + half];
        }
        workgroupBarrier();
    }
    let result = partial[0];
    workgroupBarrier();
    return result;
}
