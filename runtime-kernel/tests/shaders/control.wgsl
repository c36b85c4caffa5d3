override STEPS: u32 = 10;
override GROUP = 16u;
@group(0) @binding(0) var<storage, read_write> x: array<i32>;
var<workgroup> shared_value: u32;

fn collatz(start: u32) -> u32 {
    var n = start;
    var steps = 0u;
    loop {
        if n <= 1u { break; }
        switch n % 2u {
            case 0u: { n /= 2u; }
            default: { n = 3u * n + 1u; }
        }
        continuing { steps++; break if steps > STEPS; }
    }
    return steps;
}

@compute @workgroup_size(GROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x == 0u { shared_value = collatz(27u); }
    let value = workgroupUniformLoad(&shared_value);
    for (var i = 0u; i < value; i++) {
        while x[id.x] > 100 { x[id.x] >>= 1u; continue; }
        workgroupBarrier();
    }
    storageBarrier();
    x[id.x] = select(x[id.x] / i32(value), -x[id.x] % 3, x[id.x] < 0);
}

@compute @workgroup_size(GROUP * 2)
fn second(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x + 1u] = i32(f32(x[id.x]) * 1.5); }
