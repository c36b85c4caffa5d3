// Chains of multiply-adds for `runtime peak`. With m = -1 every step turns x into b - x and back, exactly in every type,
// which the compiler cannot know. STEP(x) is replaced by the operation.

override GROUP: u32 = 256;

struct Scalars {
    m: i32,
    b: i32,
    steps: u32,
}

@group(0) @binding(0) var<storage, read_write> result: array<T>;
var<immediate> s: Scalars;

@compute @workgroup_size(GROUP)
fn chains(@builtin(global_invocation_id) id: vec3u) {
    let m = V(T(s.m));
    let b = V(T(s.b));
    let x = V(T(i32(id.x % 8u)));
    let one = V(T(1));
    var x0 = x;
    var x1 = x0 + one;
    var x2 = x1 + one;
    var x3 = x2 + one;
    var x4 = x3 + one;
    var x5 = x4 + one;
    var x6 = x5 + one;
    var x7 = x6 + one;
    for (var k = 0u; k < s.steps; k++) {
        x0 = STEP(x0);
        x1 = STEP(x1);
        x2 = STEP(x2);
        x3 = STEP(x3);
        x4 = STEP(x4);
        x5 = STEP(x5);
        x6 = STEP(x6);
        x7 = STEP(x7);
    }
    let sum = ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + (x6 + x7));
    result[id.x] = TOTAL(sum);
}
