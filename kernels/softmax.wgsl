// out[r][c] = exp(x[r][c] - max of row r) / sum of these exponentials in row r; row-major.
//
// A group processes one row at a time: the maximum, so that no exponential overflows; the exponentials, stored in out, and their
// sum; the quotients. An invocation handles every GROUP-th element, so that adjacent invocations access adjacent elements. All
// invocations run the same number of iterations; the row's end is checked inside the loop. GROUP must be a power of two.

alias T = f32;

override GROUP: u32 = 256;

struct Scalars {
    rows: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> out: array<T>;
var<immediate> scalars: Scalars;

var<workgroup> partial: array<T, GROUP>;

@compute @workgroup_size(GROUP)
fn softmax(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    for (var row = group.x; row < scalars.rows; row += groups.x) {
        let first = row * scalars.columns;
        var most = x[first];
        for (var start = 0u; start < scalars.columns; start += GROUP) {
            if start + lane < scalars.columns {
                most = max(most, x[first + start + lane]);
            }
        }
        most = largest(most, lane);
        var sum = T(0);
        for (var start = 0u; start < scalars.columns; start += GROUP) {
            if start + lane < scalars.columns {
                let power = exp(x[first + start + lane] - most);
                out[first + start + lane] = power;
                sum += power;
            }
        }
        let scale = T(1) / total(sum, lane);
        for (var start = 0u; start < scalars.columns; start += GROUP) {
            if start + lane < scalars.columns {
                out[first + start + lane] *= scale;
            }
        }
    }
}

// The maximum over all invocations of the group.
fn largest(value: T, lane: u32) -> T {
    partial[lane] = value;
    workgroupBarrier();
    for (var half = GROUP / 2; half > 0; half /= 2) {
        if lane < half {
            partial[lane] = max(partial[lane], partial[lane + half]);
        }
        workgroupBarrier();
    }
    let result = partial[0];
    workgroupBarrier();
    return result;
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
