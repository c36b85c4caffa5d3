// Control flow, functions and variables. The directives are documented in src/annotated.rs.

//# nested_loops: §continue-statement, §break-statement: they leave the innermost loop
//= write u32: 0*3 -> 35 6 4
@group(0) @binding(0) var<storage, read_write> nested_loops_r: array<u32>;
@compute @workgroup_size(1)
fn nested_loops() {
    var sum = 0u; var turns = 0u; var skipped = 0u;
    for (var i = 0u; i < 5u; i++) {
        if (i == 3u) { continue; }
        for (var j = 0u; ; j++) {
            if (j == i) { break; }
            if (j == 2u) { skipped += i; continue; }
            turns += 1u;
            sum += i * (j + 1u);
        }
    }
    nested_loops_r[0] = sum; nested_loops_r[1] = turns; nested_loops_r[2] = skipped;
}

//# loop_bounds: §for-statement: condition and step are evaluated in each iteration, but values of an earlier `let` are not
//= write u32: 0*4 -> 4 16 3 7
@group(0) @binding(0) var<storage, read_write> loop_bounds_r: array<u32>;
@compute @workgroup_size(1)
fn loop_bounds() {
    var turns = 0u;
    var limit = 8u;
    for (var i = 0u; i < limit; i++) { limit = 4u; turns += 1u; }
    loop_bounds_r[0] = turns;
    turns = 0u;
    var step = 1u; let first_step = step; step = 8u;
    for (var i = 0u; i < 16u; i += first_step) { turns += 1u; }
    loop_bounds_r[1] = turns;
    turns = 0u;
    for (var i = 1u; i < 40u; i *= step) { step = 4u; turns += 1u; }
    loop_bounds_r[2] = turns;
    turns = 0u;
    for (var half = -64; half < 0; half /= 2) { turns += 1u; }
    loop_bounds_r[3] = turns;
}

//# switch_cases: §switch-statement: no fall-through, several selectors, default in the middle
//= read i32: 0 1 2 3 -5 100
//= write i32: 0*6 -> 10 20 20 -1 50 -1
@group(0) @binding(0) var<storage, read> switch_cases_x: array<i32>;
@group(0) @binding(1) var<storage, read_write> switch_cases_r: array<i32>;
@compute @workgroup_size(4)
fn switch_cases(@builtin(global_invocation_id) id: vec3<u32>) {
    for (var i = id.x; i < 6u; i += 4u) {
        var r = 7;
        switch (switch_cases_x[i]) {
            case 0: { r = 10; }
            default: { r = -1; }
            case 1, 2: { r = 20; }
            case -5: { r = 50; }
        }
        switch_cases_r[i] = r;
    }
}

//# switch_in_loop: §continue-statement in a switch goes to the loop, §break-statement only leaves the switch
//= write u32: 0*2 -> 1213 5
@group(0) @binding(0) var<storage, read_write> switch_in_loop_r: array<u32>;
@compute @workgroup_size(1)
fn switch_in_loop() {
    var digits = 0u; var turns = 0u;
    for (var i = 0u; i < 5u; i++) {
        turns += 1u;
        switch (i % 3u) {
            case 0u: { if (i == 3u) { break; } digits = digits * 10u + 1u; continue; }
            case 1u: { if (i == 4u) { break; } digits = digits * 10u + 2u; break; }
            default: { digits = digits * 10u + 1u; }
        }
        if (i == 4u) { digits = digits * 10u + 3u; }
    }
    switch_in_loop_r[0] = digits; switch_in_loop_r[1] = turns;
}

//# default_only: §switch-statement with only a default
//= read u32: 9
//= write u32: 0 -> 90
@group(0) @binding(0) var<storage, read> default_only_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> default_only_r: array<u32>;
@compute @workgroup_size(1)
fn default_only() {
    switch (default_only_x[0]) { default: { default_only_r[0] = default_only_x[0] * 10u; } }
}

//# loop_continuing: §continuing-statement runs after continue; §break-if-statement
//= write i32: 0*3 -> 10 5 -3
@group(0) @binding(0) var<storage, read_write> loop_continuing_r: array<i32>;
@compute @workgroup_size(1)
fn loop_continuing() {
    var i = 0; var odd = 0; var twice = 0;
    loop {
        if (i % 2 == 0) { continue; }
        odd += 1;
        continuing {
            twice += 1;
            i += 1;
            let done = i >= 10;
            break if done;
        }
    }
    loop_continuing_r[0] = i; loop_continuing_r[1] = odd;
    loop { twice -= 1; if (twice < -2) { break; } }
    loop_continuing_r[2] = twice;
}

//# while_loop: §while-statement
//= read u32: 27 1 97 6
//= write u32: 0*4 -> 111 0 118 8
@group(0) @binding(0) var<storage, read> while_loop_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> while_loop_r: array<u32>;
@compute @workgroup_size(4)
fn while_loop(@builtin(local_invocation_index) i: u32) {
    var n = while_loop_x[i]; var steps = 0u;
    while (n != 1u) {
        if (n % 2u == 0u) { n /= 2u; } else { n = 3u * n + 1u; }
        steps++;
    }
    while_loop_r[i] = steps;
}

//# early_return: §return-statement ends the invocation, not the group
//= write u32: 9*8 -> 9 1 9 1 9 1 9 1
@group(0) @binding(0) var<storage, read_write> early_return_r: array<u32>;
@compute @workgroup_size(8)
fn early_return(@builtin(local_invocation_index) i: u32) {
    if (i % 2u == 0u) { return; }
    early_return_r[i] = 1u;
}

//# return_from_loops: §return-statement out of nested loops of a function
//= read i32: 0 5 12 30
//= write i32: 0*4 -> 0 105 302 -1
fn return_from_loops_find(x: i32) -> i32 {
    for (var i = 0; i < 5; i++) {
        for (var j = 0; j < 6; j++) {
            if (i * 5 + j == x) { return i * 100 + j; }
        }
    }
    return -1;
}
@group(0) @binding(0) var<storage, read> return_from_loops_x: array<i32>;
@group(0) @binding(1) var<storage, read_write> return_from_loops_r: array<i32>;
@compute @workgroup_size(4)
fn return_from_loops(@builtin(local_invocation_index) i: u32) {
    let x = return_from_loops_x[i];
    var r = return_from_loops_find(x);
    if (x == 5) { r += 100; }
    if (x == 12) { r += 100; }
    return_from_loops_r[i] = r;
}

//# else_if_chain: §if-statement
//= read f32: -1 0 0.5 7
//= write u32: 0*4 -> 1 2 3 4
@group(0) @binding(0) var<storage, read> else_if_chain_x: array<f32>;
@group(0) @binding(1) var<storage, read_write> else_if_chain_r: array<u32>;
@compute @workgroup_size(4)
fn else_if_chain(@builtin(local_invocation_index) i: u32) {
    let x = else_if_chain_x[i];
    if (x < 0) { else_if_chain_r[i] = 1u; }
    else if (x == 0) { else_if_chain_r[i] = 2u; }
    else if (x < 1) { else_if_chain_r[i] = 3u; }
    else { else_if_chain_r[i] = 4u; }
}

//# short_circuit: §logical-expr: the right side of && and || is evaluated only if needed
//= write u32: 0*5 -> 0 1 1 0 2
@group(0) @binding(0) var<storage, read_write> short_circuit_r: array<u32>;
var<private> short_circuit_calls: u32;
fn short_circuit_true() -> bool { short_circuit_calls += 1u; return true; }
@compute @workgroup_size(1)
fn short_circuit(@builtin(num_workgroups) n: vec3<u32>) {
    let no = n.x == 7u; let yes = n.x == 1u;
    short_circuit_r[0] = select(0u, 1u, no && short_circuit_true());
    short_circuit_r[1] = select(0u, 1u, yes || short_circuit_true());
    short_circuit_r[2] = select(0u, 1u, yes && short_circuit_true());
    short_circuit_r[3] = select(0u, 1u, no || !short_circuit_true());
    short_circuit_r[4] = short_circuit_calls;
}

//# order_of_evaluation: §program-order: operands from left to right
//= write i32: 0*2 -> 321 3
@group(0) @binding(0) var<storage, read_write> order_of_evaluation_r: array<i32>;
var<private> order_of_evaluation_n: i32;
fn order_of_evaluation_next() -> i32 { order_of_evaluation_n += 1; return order_of_evaluation_n; }
@compute @workgroup_size(1)
fn order_of_evaluation() {
    let digits = order_of_evaluation_next() + order_of_evaluation_next() * 10 + order_of_evaluation_next() * 100;
    order_of_evaluation_r[0] = digits;
    order_of_evaluation_r[1] = order_of_evaluation_n;
}

//# let_keeps_the_old_value: §let-decls: the value at the time of evaluation
//= write i32: 5 0*2 -> 6 5 11
@group(0) @binding(0) var<storage, read_write> let_keeps_r: array<i32>;
@compute @workgroup_size(1)
fn let_keeps_the_old_value() {
    let before = let_keeps_r[0];
    let_keeps_r[0] += 1;
    let_keeps_r[1] = before;
    var v = vec2<i32>(before, let_keeps_r[0]);
    let sum = v.x + v.y;
    v.x = 100;
    let_keeps_r[2] = sum;
}

//# increments: §increment-decrement and compound assignment wrap around
//= write i32: 2147483647 -2147483648 7 -> -2147483648 2147483647 -7
//= write u32: 0 5 -> 4294967295 80
@group(0) @binding(0) var<storage, read_write> increments_i: array<i32>;
@group(0) @binding(1) var<storage, read_write> increments_u: array<u32>;
@compute @workgroup_size(1)
fn increments() {
    increments_i[0]++; increments_i[1]--; increments_i[2] *= -1;
    increments_u[0]--; increments_u[1] <<= 4u;
}

//# phony: §phony-assignment evaluates and drops
//= write u32: 0 -> 1
@group(0) @binding(0) var<storage, read_write> phony_r: array<u32>;
fn phony_write() -> u32 { phony_r[0] += 1u; return 9u; }
@compute @workgroup_size(1)
fn phony() { _ = phony_write(); }

//# shadowing: §declaration-and-scope: an inner name hides an outer one
//= write i32: 0*3 -> 1 20 3
@group(0) @binding(0) var<storage, read_write> shadowing_r: array<i32>;
@compute @workgroup_size(1)
fn shadowing() {
    var x = 1;
    { var x = 20; shadowing_r[1] = x; }
    for (var x = 3; x < 4; x++) { shadowing_r[2] = x; }
    shadowing_r[0] = x;
}

//# loop_variables_start_anew: §var-decls: a variable in a loop body is initialised in each iteration
//= write u32: 0*2 -> 3 6
@group(0) @binding(0) var<storage, read_write> loop_variables_r: array<u32>;
@compute @workgroup_size(1)
fn loop_variables_start_anew() {
    var last = 0u; var sum = 0u;
    for (var i = 1u; i <= 3u; i++) {
        var fresh: u32;
        fresh += i;
        last = fresh;
        sum += fresh;
    }
    loop_variables_r[0] = last; loop_variables_r[1] = sum;
}

//# helper_functions: §function-calls: several levels, several results
//= read f32: 1 2 3
//= write f32: 0*3 -> 3 9 19
fn helper_functions_square(x: f32) -> f32 { return x * x; }
fn helper_functions_line(x: f32, a: f32, b: f32) -> f32 { return helper_functions_square(x) * a + b; }
@group(0) @binding(0) var<storage, read> helper_functions_x: array<f32>;
@group(0) @binding(1) var<storage, read_write> helper_functions_r: array<f32>;
@compute @workgroup_size(3)
fn helper_functions(@builtin(local_invocation_index) i: u32) {
    helper_functions_r[i] = helper_functions_line(helper_functions_x[i], 2, 1);
}

//# divergent_trip_counts: each invocation leaves its loop independently
//= write u32: 0*16 -> 0 1 3 6 10 15 21 28 36 45 55 66 78 91 105 120
@group(0) @binding(0) var<storage, read_write> divergent_trips_r: array<u32>;
@compute @workgroup_size(16)
fn divergent_trip_counts(@builtin(local_invocation_index) i: u32) {
    var sum = 0u; var k = 0u;
    loop {
        if (k > i) { break; }
        sum += k;
        k++;
    }
    divergent_trips_r[i] = sum;
}

//# const_declarations: §const-decls, const arrays and functions of constants
//= write u32: 0*4 -> 12 3 7 24
const const_declarations_n = 4u;
const const_declarations_table = array<u32, 3>(3u, 5u, 7u);
const const_declarations_product = const_declarations_n * const_declarations_table[0];
@group(0) @binding(0) var<storage, read_write> const_declarations_r: array<u32>;
@compute @workgroup_size(const_declarations_n / 4u)
fn const_declarations(@builtin(num_workgroups) n: vec3<u32>) {
    const local = const_declarations_product * 2u;
    const_declarations_r[0] = const_declarations_product;
    const_declarations_r[1] = const_declarations_table[n.x - 1u];
    const_declarations_r[2] = const_declarations_table[n.x + 1u];
    const_declarations_r[3] = local;
}

//# private_variables: §address-space: one per invocation, initialised for each
//= groups 2
//= write i32: 0*8 -> 5 6 7 8 5 6 7 8
var<private> private_variables_x: i32 = 5;
fn private_variables_add(i: i32) { private_variables_x += i; }
@group(0) @binding(0) var<storage, read_write> private_variables_r: array<i32>;
@compute @workgroup_size(4)
fn private_variables(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3<u32>) {
    private_variables_add(i32(i));
    private_variables_r[g.x * 4u + i] = private_variables_x;
}

//# private_zero: §address-space: private and function variables without initialiser are zero
//= groups 2
//= write f32: 9*6 -> 0 0 0 0 0 0
var<private> private_zero_p: array<vec3<f32>, 2>;
@group(0) @binding(0) var<storage, read_write> private_zero_r: array<f32>;
@compute @workgroup_size(1)
fn private_zero(@builtin(workgroup_id) g: vec3<u32>) {
    var f: mat2x2<f32>;
    private_zero_r[g.x * 3u] = private_zero_p[1].z;
    private_zero_r[g.x * 3u + 1u] = f[1].y;
    private_zero_p[1].z = 7; f[1].y = 8;
    var again: mat2x2<f32>;
    private_zero_r[g.x * 3u + 2u] = again[1].y;
}

//# built_in_values: §builtin-inputs-outputs, in three dimensions
//= groups 2 2 2
//= write u32: 0*8 -> 0x1 0x1 0x1 0x1 0x1 0x1 0x1 0x1
//= write u32: 0*4 -> 2 2 2 _
@group(0) @binding(0) var<storage, read_write> built_in_values_r: array<u32>;
@group(0) @binding(1) var<storage, read_write> built_in_values_n: array<u32>;
@compute @workgroup_size(2, 3, 1)
fn built_in_values(@builtin(global_invocation_id) g: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>,
                   @builtin(workgroup_id) w: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>,
                   @builtin(local_invocation_index) i: u32) {
    let right = all(g == w * vec3(2u, 3u, 1u) + l) && i == l.x + 2u * l.y + 6u * l.z;
    let at = w.x + 2u * w.y + 4u * w.z;
    if (i == 5u) { built_in_values_r[at] = select(0u, 1u, right); }
    if (at == 0u && i == 0u) { built_in_values_n[0] = n.x; built_in_values_n[1] = n.y; built_in_values_n[2] = n.z; }
}

//# built_in_struct: §builtin-inputs-outputs as members of a struct parameter
//= groups 3
//= write u32: 0*6 -> 0 1 102 103 204 205
struct BuiltInStruct { @builtin(global_invocation_id) id: vec3<u32>, @builtin(workgroup_id) group: vec3<u32> }
@group(0) @binding(0) var<storage, read_write> built_in_struct_r: array<u32>;
@compute @workgroup_size(2)
fn built_in_struct(input: BuiltInStruct) { built_in_struct_r[input.id.x] = input.group.x * 100u + input.id.x; }

//# scalar_arguments: `var<immediate>`: the scalars of the launch, in order
//= scalar i32: -7
//= scalar u32: 4294967295
//= scalar f32: 1.5
//= write f32: 0*3 -> -7 4294967295 1.5 within rounded
struct ScalarArguments { a: i32, b: u32, c: f32 }
var<immediate> scalar_arguments_s: ScalarArguments;
@group(0) @binding(0) var<storage, read_write> scalar_arguments_r: array<f32>;
@compute @workgroup_size(1)
fn scalar_arguments() {
    scalar_arguments_r[0] = f32(scalar_arguments_s.a);
    scalar_arguments_r[1] = f32(scalar_arguments_s.b);
    scalar_arguments_r[2] = scalar_arguments_s.c;
}

//# override_default: §override-decls: the default
//= write u32: 0*2 -> 12 3
override override_default_n: u32 = 12u;
override override_default_q = override_default_n / 4u;
@group(0) @binding(0) var<storage, read_write> override_default_r: array<u32>;
@compute @workgroup_size(1)
fn override_default() { override_default_r[0] = override_default_n; override_default_r[1] = override_default_q; }

//# override_given: §override-decls: a value at load time, and constants derived from it; the group size too
//= constant override_given_n=8
//= constant 7=-3
//= constant override_given_flag=true
//= constant override_given_scale=2.5
//= write f32: 0*9 -> -3 -3 -3 -3 -3 -3 -3 -3 22.5
override override_given_n: u32;
@id(7) override override_given_i: i32 = 1;
override override_given_flag: bool = false;
override override_given_scale: f32 = 1;
@group(0) @binding(0) var<storage, read_write> override_given_r: array<f32>;
var<workgroup> override_given_w: array<f32, override_given_n + 1u>;
@compute @workgroup_size(override_given_n)
fn override_given(@builtin(local_invocation_index) i: u32) {
    override_given_w[i] = f32(override_given_i);
    workgroupBarrier();
    override_given_r[i] = override_given_w[override_given_n - 1u - i];
    if (i == 0u && override_given_flag) { override_given_r[8] = f32(override_given_n + 1u) * override_given_scale; }
}

//# element_f32: `alias T` unchanged
//= element f32
//= read f32: 1.5 2
//= write f32: 0*2 -> 4 5
alias T = f32;
@group(0) @binding(0) var<storage, read> element_f32_x: array<T>;
@group(0) @binding(1) var<storage, read_write> element_f32_r: array<T>;
@compute @workgroup_size(2)
fn element_f32(@builtin(local_invocation_index) i: u32) { element_f32_r[i] = element_f32_x[i] * T(2) + T(1); }

//# element_i32: `alias T` replaced by i32
//= element i32
//= read i32: -7 2
//= write i32: 0*2 -> -13 5
alias T = f32;
@group(0) @binding(0) var<storage, read> element_i32_x: array<T>;
@group(0) @binding(1) var<storage, read_write> element_i32_r: array<T>;
@compute @workgroup_size(2)
fn element_i32(@builtin(local_invocation_index) i: u32) { element_i32_r[i] = element_i32_x[i] * T(2) + T(1); }

//# element_f16: `alias T` replaced by f16, `enable` not needed
//= needs f16
//= element f16
//= read f16: 1.5 2
//= write f16: 0*2 -> 4 5
alias T = f32;
@group(0) @binding(0) var<storage, read> element_f16_x: array<T>;
@group(0) @binding(1) var<storage, read_write> element_f16_r: array<T>;
@compute @workgroup_size(2)
fn element_f16(@builtin(local_invocation_index) i: u32) { element_f16_r[i] = element_f16_x[i] * T(2) + T(1); }

//# element_f64: `alias T` replaced by f64
//= needs f64
//= element f64
//= read f64: 1.5 2
//= write f64: 0*2 -> 4 5
alias T = f32;
@group(0) @binding(0) var<storage, read> element_f64_x: array<T>;
@group(0) @binding(1) var<storage, read_write> element_f64_r: array<T>;
@compute @workgroup_size(2)
fn element_f64(@builtin(local_invocation_index) i: u32) { element_f64_r[i] = element_f64_x[i] * T(2) + T(1); }

//# known_divisors: §arithmetic-expr, §bit-expr: operands that a compiler can evaluate are not constant expressions
//= write i32: 0*7 -> 7 0 2 80 9 7 18
fn known_divisors_quotient(x: i32, y: i32) -> i32 { return x / y; }
fn known_divisors_shift(x: i32, by: u32) -> i32 { return x << by; }
@group(0) @binding(0) var<storage, read_write> known_divisors_r: array<i32>;
@compute @workgroup_size(1)
fn known_divisors(@builtin(num_workgroups) n: vec3<u32>) {
    var zero = 0;
    known_divisors_r[0] = 7 / zero;
    known_divisors_r[1] = i32(n.x) % zero;
    var wide = 33u;
    known_divisors_r[2] = i32(n.x) << wide;
    known_divisors_r[3] = known_divisors_shift(5, 36u);
    known_divisors_r[4] = known_divisors_quotient(9, 0);
    known_divisors_r[5] = (vec2<i32>(7, 8) / vec2<i32>(zero, 1)).x;
    var sum = 0;
    for (var k = 0; k < 3; k++) { sum += 12 / k; }
    known_divisors_r[6] = sum - 12;
}

//# continuing_shadows: §loop-statement, a `continuing` block is a scope of its own: it may declare names of the body again
//= write i32: 0*4 -> 6 13 19 2
@group(0) @binding(0) var<storage, read_write> continuing_shadows_y: array<i32>;
struct ContinuingShadows { x: i32 }
@compute @workgroup_size(1)
fn continuing_shadows() {
    var i = 0;
    loop {
        let x = i;
        continuing { let x = x + 2; i = x; break if i > 5; }
    }
    continuing_shadows_y[0] = i;
    var s = ContinuingShadows(1);
    var sum = 0;
    loop {
        var<function> x = s.x;
        const step = 1;
        if x == 2 { sum += 10; }
        continuing {
            const step = step + 1;
            var x = x + step;
            { let x = 1; sum += x; }
            s.x = x - 1;
            break if x > 4;
        }
    }
    continuing_shadows_y[1] = sum;
    sum = 0;
    i = 0;
    loop {
        let x = i;
        continuing {
            // The loop in it has a variable of the same name, in its own scope.
            for (var x = 0; x < 2; x++) { sum += x; }
            sum += x;
            let x = x + 1;
            var j = 0;
            loop {
                let x = j + x;
                continuing { let x = x * 2; sum += x; j++; break if j == 2; }
            }
            i = x;
            break if x > 1;
        }
    }
    continuing_shadows_y[2] = sum;
    continuing_shadows_y[3] = i;
}

//# ends_in_a_loop: §behaviors, a function may end in a loop without `break`, and in branches that do
//= write i32: 0*6 -> 5 7 3 9 8 4
@group(0) @binding(0) var<storage, read_write> ends_in_a_loop_y: array<i32>;
fn ends_in_a_loop_f(n: i32) -> i32 { var i = n; loop { if i > 4 { return i; } continuing { i += 1; } } }
fn ends_in_a_loop_g(n: i32) -> i32 {
    var i = n;
    if i < 3 {
        loop { i += 1; if i == 7 { return i; } }
    } else {
        switch i { case 3: { return i; } default: { loop { loop { break; } if i % 3 == 0 { return i; } i += 1; } } }
    }
}
fn ends_in_a_loop_h(n: i32) -> vec2<i32> {
    var i = n;
    loop { switch i { case 4: { break; } default: { return vec2(i, 0); } } i *= 2; }
}
fn ends_in_a_loop_while(n: i32) -> array<i32, 2> {
    for (var i = n; ; i++) { if i % 4 == 0 { return array(i, i); } }
}
@compute @workgroup_size(1)
fn ends_in_a_loop() {
    ends_in_a_loop_y[0] = ends_in_a_loop_f(1);
    ends_in_a_loop_y[1] = ends_in_a_loop_g(1);
    ends_in_a_loop_y[2] = ends_in_a_loop_g(3);
    ends_in_a_loop_y[3] = ends_in_a_loop_g(7);
    ends_in_a_loop_y[4] = ends_in_a_loop_h(4).x;
    ends_in_a_loop_y[5] = ends_in_a_loop_while(1)[1];
}

//# nested_blocks: §limits, braces may be nested 127 deep
//= read u32: 0
//= write u32: 0*2 -> 7 9
@group(0) @binding(0) var<storage, read> nested_blocks_x: array<u32>;
@group(0) @binding(1) var<storage, read_write> nested_blocks_y: array<u32>;
@compute @workgroup_size(1)
fn nested_blocks() {
    {{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{ nested_blocks_y[0] = 7u; }}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}
    // Compilers of C accept 127 blocks.
    if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u {if nested_blocks_x[0] == 0u { nested_blocks_y[1] = 9u; }}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}}
}
