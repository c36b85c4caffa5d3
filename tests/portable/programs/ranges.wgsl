// Conditions that bound an index, and some that only seem to: accesses out of range read zero and write nothing.
// No access may leave the buffer of eight elements.

//# condition_goes_stale: a condition does not bound a variable that was assigned after it
//= read u32: 7*8
//= write u32: 9*4 -> 0 0 7 0
@group(0) @binding(0) var<storage, read> condition_goes_stale_x: array<u32, 8>;
@group(0) @binding(1) var<storage, read_write> condition_goes_stale_r: array<u32>;
@compute @workgroup_size(4)
fn condition_goes_stale(@builtin(local_invocation_index) l: u32) {
    var i = l;
    let ok = i < 8u;
    let both = i < 8u && l < 8u;
    let near = i < 4u;
    i += 1000u;
    if (l == 0u) { if (ok) { condition_goes_stale_r[l] = condition_goes_stale_x[i]; } }
    if (l == 1u) { if (both) { condition_goes_stale_r[l] = condition_goes_stale_x[i]; } }
    i = l;
    if (l == 2u) { if (near) { condition_goes_stale_r[l] = condition_goes_stale_x[i]; } }
    if (l == 3u) {
        for (var k = 0u; k < 2u; k++) {
            if (i < 8u) { i += 100u; condition_goes_stale_r[l] = condition_goes_stale_x[i]; }
        }
    }
}

//# early_return: after `if i >= n { return; }` i is below n, but n may exceed the buffer
//= read u32: 1 2 3 4 5
//= write u32: 9*8 -> 2 3 4 5 6 1 9 9
//= scalar u32: 6
struct EarlyReturn { n: u32 }
@group(0) @binding(0) var<storage, read> early_return_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> early_return_r: array<u32>;
var<immediate> early_return_s: EarlyReturn;
@compute @workgroup_size(16)
fn early_return(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= early_return_s.n) { return; }
    early_return_r[id.x] = early_return_x[id.x] + 1u;
}

//# scalar_lies: m · k exceeds the buffer, or wraps to less: the existing rows are right
//= read u32: 1 2 3 4 5 6 7
//= write u32: 9*12 -> 1 2 3 4 5 6 7 0 0 9 9 9
//= write u32: 9*4 -> 1 1 1 1
//= scalar u32: 3
//= scalar u32: 3
//= scalar u32: 65536
struct ScalarLies { m: u32, k: u32, wide: u32 }
@group(0) @binding(0) var<storage, read> scalar_lies_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> scalar_lies_r: array<u32>;
@group(0) @binding(2) var<storage, read_write> scalar_lies_t: array<u32>;
var<immediate> scalar_lies_s: ScalarLies;
fn scalar_lies_at(row: u32, column: u32) -> u32 {
    if (row < scalar_lies_s.m && column < scalar_lies_s.k) {
        return scalar_lies_x[row * scalar_lies_s.k + column];
    }
    return 0u;
}
@compute @workgroup_size(4, 4)
fn scalar_lies(@builtin(local_invocation_id) l: vec3<u32>) {
    if (l.y < scalar_lies_s.m && l.x < scalar_lies_s.k) {
        scalar_lies_r[l.y * scalar_lies_s.k + l.x] = scalar_lies_at(l.y, l.x);
    }
    // 65536² is 0 in 32 bits.
    if (l.y < scalar_lies_s.wide && l.x < scalar_lies_s.wide && l.y == 0u) {
        scalar_lies_t[l.y * scalar_lies_s.wide + l.x] = scalar_lies_x[(l.y + 65536u) * scalar_lies_s.wide + (l.x & 0u)];
    }
}

//# sum_lies: a condition bounds a part of a sum, and m · k exceeds the buffer
//= read u32: 1 2 3 4 5 6 7 8 9 10
//= write u32: 9*11 -> 1 2 3 4 5 6 7 8 9 10 0
//= scalar u32: 3
//= scalar u32: 4
struct SumLies { m: u32, k: u32 }
@group(0) @binding(0) var<storage, read> sum_lies_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> sum_lies_r: array<u32>;
var<immediate> sum_lies_s: SumLies;
@compute @workgroup_size(2)
fn sum_lies(@builtin(local_invocation_index) lane: u32) {
    for (var row = 0u; row < sum_lies_s.m; row++) {
        let first = row * sum_lies_s.k;
        for (var start = 0u; start < sum_lies_s.k; start += 2u) {
            if (start + lane < sum_lies_s.k) { sum_lies_r[first + start + lane] = sum_lies_x[lane + first + start]; }
        }
    }
}

//# launch_too_large: a group beyond the end of the output
//= read u32: 5 6 7
//= write u32: 9*2 -> 5 6
//= groups 3
@group(0) @binding(0) var<storage, read> launch_too_large_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> launch_too_large_r: array<u32>;
@compute @workgroup_size(1)
fn launch_too_large(@builtin(workgroup_id) g: vec3<u32>) {
    launch_too_large_r[g.x] = launch_too_large_x[g.x];
}

//# halving: a variable that only decreases stays below its initial value
//= read u32: 1 2 3 4 5 6 7 8
//= write u32: 0 -> 36
@group(0) @binding(0) var<storage, read> halving_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> halving_r: array<u32>;
var<workgroup> halving_w: array<u32, 8>;
@compute @workgroup_size(8)
fn halving(@builtin(local_invocation_index) l: u32) {
    halving_w[l] = halving_x[l];
    workgroupBarrier();
    for (var half = 4u; half > 0u; half /= 2u) {
        if (l < half) { halving_w[l] += halving_w[l + half]; }
        workgroupBarrier();
    }
    if (l == 0u) { halving_r[0] = halving_w[0]; }
}

//# growing: a variable that increases does not, nor does one assigned from it
//= read u32: 1 1 1 1 1 1 1 1
//= write u32: 9*3 -> 8 8 0
@group(0) @binding(0) var<storage, read> growing_x: array<u32, 8>;
@group(0) @binding(1) var<storage, read_write> growing_r: array<u32>;
@compute @workgroup_size(1)
fn growing() {
    var sum = 0u;
    for (var i = 0u; i < 100u; i++) { sum += growing_x[i]; }
    growing_r[0] = sum;
    var i = 0u;
    var other = 0u;
    sum = 0u;
    loop {
        sum += growing_x[other];
        i += 1u;
        other = i;
        if (i > 50u) { break; }
    }
    growing_r[1] = sum;
    if (i < 8u || other > 8u) { growing_r[2] = growing_x[i]; }
}

//# index_near_the_top: a sum that wraps around is checked by its wrapped value
//= read u32: 1 2 3 4
//= write u32: 9*3 -> 2 0 3
@group(0) @binding(0) var<storage, read> index_near_the_top_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> index_near_the_top_r: array<u32>;
@compute @workgroup_size(1)
fn index_near_the_top(@builtin(num_workgroups) n: vec3<u32>) {
    let top = 4294967295u * n.x;
    index_near_the_top_r[0] = index_near_the_top_x[top + 2u];
    if (top < 4294967295u || n.x == 1u) { index_near_the_top_r[1] = index_near_the_top_x[top]; }
    if (top >= 7u) { index_near_the_top_r[2] = index_near_the_top_x[(top + 2u) * 2u]; }
}

//# guarded_load: a load is not moved above the condition that guards it
//= read u32: 1 2 3
//= write u32: 9*4 -> 9*4
//= scalar u32: 4294967295
struct GuardedLoad { k: u32 }
@group(0) @binding(0) var<storage, read> guarded_load_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> guarded_load_r: array<u32>;
var<immediate> guarded_load_s: GuardedLoad;
@compute @workgroup_size(64)
fn guarded_load(@builtin(global_invocation_id) id: vec3<u32>) {
    if (guarded_load_s.k < arrayLength(&guarded_load_x)) {
        if (id.x < guarded_load_x[guarded_load_s.k]) { guarded_load_r[id.x] = 1u; }
    }
}

//# product_wraps: a product that wraps into range is a valid index
//= read u32: 65536 65536
//= write u32: 9*4 -> 1 9*3
@group(0) @binding(0) var<storage, read> product_wraps_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> product_wraps_r: array<u32>;
@compute @workgroup_size(1)
fn product_wraps() {
    let a = product_wraps_x[0] & 0xfffffu;
    let b = product_wraps_x[1] & 0xfffffu;
    if (a * b < 1000u && a * b < arrayLength(&product_wraps_r)) { product_wraps_r[a * b] = 1u; }
}

//# chain_leaves_early: every index of a chain is checked, not only the last
//= read u32: 1 2 3 4 5 6 7 8
//= write u32: 9*8 -> 9*5 1 9*2
//= write u32: 9*5 -> 0 0 0 6 0
//= scalar u32: 1
struct ChainLeavesEarly { one: u32 }
var<immediate> chain_leaves_early_s: ChainLeavesEarly;
@group(0) @binding(0) var<storage, read> chain_leaves_early_x: array<array<u32, 4>>;
@group(0) @binding(1) var<storage, read_write> chain_leaves_early_y: array<array<u32, 4>>;
@group(0) @binding(2) var<storage, read_write> chain_leaves_early_r: array<u32>;
@compute @workgroup_size(1)
fn chain_leaves_early() {
    let one = chain_leaves_early_s.one;
    chain_leaves_early_y[one][one] = 1u;
    chain_leaves_early_y[one + 1u][one] = 2u;
    chain_leaves_early_y[one + 7u][0] = 3u;
    chain_leaves_early_y[0][one + 3u] = 4u;
    chain_leaves_early_y[one - 2u][one] = 5u;
    chain_leaves_early_r[0] = chain_leaves_early_x[one + 1u][one];
    chain_leaves_early_r[1] = chain_leaves_early_x[one - 2u][0];
    chain_leaves_early_r[2] = chain_leaves_early_x[0][one + 3u];
    chain_leaves_early_r[3] = chain_leaves_early_x[one][one];
    var own = array<array<u32, 2>, 2>(array(7u, 7u), array(7u, 7u));
    own[one + 1u][0] = 8u;
    chain_leaves_early_r[4] = own[one + 1u][one];
}

//# product_lies: m · k wraps to 0, which is within the buffer; the columns beyond the end are not accessed
//= write u32: 9*4 -> 0 1 2 3
//= scalar u32: 65536
//= scalar u32: 65536
struct ProductLies { m: u32, k: u32 }
var<immediate> product_lies_s: ProductLies;
@group(0) @binding(0) var<storage, read_write> product_lies_r: array<u32>;
@compute @workgroup_size(16, 2)
fn product_lies(@builtin(local_invocation_id) l: vec3<u32>) {
    if (l.y < product_lies_s.m && l.x < product_lies_s.k) {
        product_lies_r[l.y * product_lies_s.k + l.x] = l.x;
    }
}

//# products_lie: a product of three factors that wraps only with the third
//= write u32: 9*4 -> 0 1 2 3
//= scalar u32: 2048
//= scalar u32: 2048
//= scalar u32: 1024
struct ProductsLie { m: u32, k: u32, n: u32 }
var<immediate> products_lie_s: ProductsLie;
@group(0) @binding(0) var<storage, read_write> products_lie_r: array<u32>;
@compute @workgroup_size(16)
fn products_lie(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) g: vec3<u32>) {
    if (g.x < products_lie_s.m && g.y < products_lie_s.k && l < products_lie_s.n) {
        products_lie_r[(g.x * products_lie_s.k + g.y) * products_lie_s.n + l] = l;
    }
}
