// In debug builds, the host's verifier rejected the loop over the items: it took an array of an item's own for one that is indexed at
// run time, because an index that is out of range is still an expression, though a constant one.
//! launch k groups=1,1,1 lengths=1 scalars=0,0,0 seed=0
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(7, 1, 1)
fn k(@builtin(local_invocation_id) local: vec3u) {
    let last = 7i;
    let index = 7i + last;
    var own = array<vec3<u32>, 4>(vec3<u32>(), local, vec3<u32>(), vec3<u32>());
    own[index].y = 0u;
    if local.x == 3u { y[0] = own[1].x; }
}
