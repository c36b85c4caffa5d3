// The host read the old value of `which` after the last row, which all its invocations left before they gave it another one.
//! launch k groups=1,1,1 lengths=4 scalars= seed=1
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1, 4, 1)
fn k(@builtin(local_invocation_index) lane: u32) {
    var which = 3u;
    for (var i = 0u; i < 2u; i++) {
        y[lane] += i;
        if lane != 1u { return; }
    }
    which = 0u;
    y[lane] += 5u;
    if which < 2u {
        y[lane] += 9u + which;
        return;
    }
    y[lane] = which;
}
