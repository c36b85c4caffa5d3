//! launch main groups=1 lengths=64 seed=3
// Multi-word subtraction: each step uses the borrow of the one before.
struct Number { limbs: array<u32, 32> }
@group(0) @binding(0) var<storage, read_write> numbers: array<Number>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var a = numbers[id.x];
    var r: Number;
    var borrow = 0u;
    for (var i = 0u; i < 32u; i++) {
        r.limbs[i] = a.limbs[i] - 7u - borrow;
        if a.limbs[i] < 7u + borrow {
            r.limbs[i] += 65536u;
            borrow = 1u;
        } else {
            borrow = 0u;
        }
    }
    numbers[id.x] = r;
}
