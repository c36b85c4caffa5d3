// Types and constants that mean the same however they are written. `src/programs.rs` lists the programs.

//# alias_of_array: an alias names the same type
//= read f32: 0 1 2 3 4 5 6 7
//= write f32: 0*8 -> 3 2 1 0 7 6 5 4
//= groups 2
alias AliasRow = array<f32, 4>;
@group(0) @binding(0) var<storage, read> alias_of_array_x: array<f32>;
@group(0) @binding(1) var<storage, read_write> alias_of_array_y: array<f32>;
fn alias_reversed(r: array<f32, 4>) -> array<f32, 4> { return array<f32, 4>(r[3], r[2], r[1], r[0]); }
@compute @workgroup_size(1) fn alias_of_array(@builtin(global_invocation_id) id: vec3u) {
    let at = 4 * id.x;
    var r: AliasRow = AliasRow(alias_of_array_x[at], alias_of_array_x[at + 1], alias_of_array_x[at + 2], alias_of_array_x[at + 3]);
    r = alias_reversed(r);
    for (var i = 0u; i < 4; i++) { alias_of_array_y[at + i] = r[i]; }
}

//# alias_of_scalar: the idiom of element types, with a function that spells the type
//= write f32: 0*2 -> 3 4
alias AliasScalar = f32;
@group(0) @binding(0) var<storage, read_write> alias_of_scalar_y: array<AliasScalar>;
fn alias_sum(p: array<f32, 4>) -> f32 { return p[0] + p[3]; }
fn alias_first(p: ptr<function, array<f32, 4>>) -> AliasScalar { return (*p)[1]; }
@compute @workgroup_size(1) fn alias_of_scalar() {
    var p: array<AliasScalar, 4>;
    p[0] = 1; p[3] = 2; p[1] = 4;
    alias_of_scalar_y[0] = alias_sum(p);
    alias_of_scalar_y[1] = alias_first(&p);
}

//# alias_of_matrix: inside other types, and in the type of a variable with an initial value
//= write f32: 0*2 -> 4 5
alias AliasMatrix = mat2x2<f32>;
alias AliasPair = array<AliasMatrix, 2>;
@group(0) @binding(0) var<storage, read_write> alias_of_matrix_y: array<f32>;
var<private> alias_of_matrix_p: array<AliasMatrix, 2>;
fn alias_last(a: array<mat2x2<f32>, 2>) -> f32 { return a[1][1].y; }
@compute @workgroup_size(1) fn alias_of_matrix() {
    alias_of_matrix_p[1][1].y = 4;
    alias_of_matrix_y[0] = alias_last(alias_of_matrix_p);
    var q: array<mat2x2<f32>, 2> = AliasPair();
    q[1][1].y = 5;
    let r: AliasPair = q;
    alias_of_matrix_y[1] = alias_last(r);
}

//# alias_of_member: in structures, which keep their names
//= write f32: 0*3 -> 3 4 2
alias AliasTwo = array<f32, 2>;
struct AliasS { r: array<f32, 2>, t: AliasTwo }
@group(0) @binding(0) var<storage, read_write> alias_of_member_y: array<f32>;
@compute @workgroup_size(1) fn alias_of_member() {
    let a = AliasTwo(1, 2);
    let b = array<f32, 2>(3, 4);
    var s = AliasS(a, b);
    s.r = s.t;
    alias_of_member_y[0] = s.r[0];
    alias_of_member_y[1] = s.t[1];
    let c = array(1.0, 2.0);
    s.t = c;
    alias_of_member_y[2] = s.t[1];
}
