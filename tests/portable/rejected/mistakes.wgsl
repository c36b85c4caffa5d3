// Mistakes, with the errors that they give: in words of WGSL, and with a remedy where there is one.

//# operands: operators take operands of one type
//= says operator `+` | `f32` and `u32` | `f32(…)`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn operands() {
    let b = f32(r[1]);
    r[0] = u32(b + r[0]); //!
}

//# bits_of_floats: numbers with bits are integers
//= says operator `&` does not take `f32` and `f32`
@group(0) @binding(0) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn bits_of_floats() { r[0] = r[1] & r[2]; } //!

//# not_a_bool: only a bool has an opposite
//= says operator `!` | `r[1]` (of type `u32`) | compare it with 0
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn not_a_bool() { if !r[1] { r[0] = 1u; } } //!

//# minus: an unsigned number has no sign
//= says operator `-` | `u32` | signed type
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn minus() { r[0] = -r[1]; } //!

//# store_read: a tensor that is read only
//= says "x" is `var<storage, read>` | declare `var<storage, read_write> x`
@group(0) @binding(0) var<storage> x: array<u32>;
@compute @workgroup_size(1) fn store_read() { x[0] = 1u; } //!

//# store_uniform: a uniform buffer is read
//= says "u" is `var<uniform>`, which can only be read
struct S { n: u32 }
@group(0) @binding(0) var<uniform> u: S;
@compute @workgroup_size(1) fn store_uniform() { u.n = 1u; } //!

//# store_let: a let has one value
//= says `a` with `var` instead of `let`
@compute @workgroup_size(1) fn store_let() { let a = 1u; a = 2u; } //!

//# argument_type: arguments have the declared types
//= says "a" of function 'half' is `f32`, but `r[1]` is `u32`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn half(a: f32) -> u32 { return u32(a / 2.0); }
@compute @workgroup_size(1) fn argument_type() { r[0] = half(r[1]); } //!

//# argument_count: calls have all arguments
//= says 'half' takes 1 argument, not 0
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn half(a: f32) -> u32 { return u32(a / 2.0); }
@compute @workgroup_size(1) fn argument_count() { r[0] = half(); } //!

//# condition: a condition is a bool
//= says `r[0]` (of type `u32`) | != 0
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn condition() { if r[0] { r[1] = 1u; } } //!

//# result_type: a function returns its declared type
//= says 'half' returns `a` (of type `f32`) | declared `u32`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn half(a: f32) -> u32 { return a; } //!
@compute @workgroup_size(1) fn result_type() { r[0] = half(1.0); }

//# no_result: a function with a result returns it on every path
//= says 'half' can end without returning | `return`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn half(a: f32) -> u32 { //!
    if a > 1.0 { return 1u; }
}
@compute @workgroup_size(1) fn no_result() { r[0] = half(1.0); }

//# pointer_result: a function returns no pointer
//= says 'place' cannot return `ptr<private, u32>`
var<private> p: u32;
fn place() -> ptr<private, u32> { return &p; } //!
@compute @workgroup_size(1) fn pointer_result() { let x = *place(); }

//# pointer_variable: a pointer is no value of a variable
//= says "p" | declare it with `let`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn pointer_variable() { var x = 1u; var p = &x; r[0] = *p; } //!

//# pointer_array: arrays contain no pointers
//= says pointer cannot be stored | keep a pointer in a `let`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn pointer_array() { var x = 1u; let p = array(&x, &x); r[0] = *p[0]; } //!

//# pointer_member: structs contain no pointers
//= says pointer cannot be stored in `S`
struct S { p: ptr<function, u32> } //!
@compute @workgroup_size(1) fn pointer_member() { var s: S; }

//# pointer_space: a pointer argument has the declared address space
//= says "p" of function 'store' is `ptr<function, u32>` | `ptr<storage, u32, read_write>`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn store(p: ptr<function, u32>) { *p = 1u; }
@compute @workgroup_size(1) fn pointer_space() { store(&r[0]); } //!

//# pointer_length: a pointer to work-group memory has the declared type
//= says "p" of function 'last' is `ptr<workgroup, array<u32, 4>>` | `ptr<workgroup, array<u32, 8>>`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
var<workgroup> w: array<u32, 8>;
fn last(p: ptr<workgroup, array<u32, 4>>) -> u32 { return p[3]; }
@compute @workgroup_size(1) fn pointer_length() { r[0] = last(&w); } //!

//# pointer_element: a pointer to a tensor has the declared type
//= says "p" of function 'first' is `ptr<storage, array<f32>, read_write>` | `ptr<storage, array<u32>, read_write>`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn first(p: ptr<storage, array<f32>, read_write>) -> f32 { return p[0]; }
@compute @workgroup_size(1) fn pointer_element() { r[1] = u32(first(&r)); } //!

//# pointer_to_tensor: a pointer to work-group memory is not one to a tensor
//= says "p" of function 'store' is `ptr<workgroup, u32>` | `ptr<storage, u32, read_write>`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn store(p: ptr<workgroup, u32>) { *p = 1u; }
@compute @workgroup_size(1) fn pointer_to_tensor() { store(&r[0]); } //!

//# pointer_access: a pointer to a tensor has the declared access
//= says "p" of function 'first' is `ptr<storage, array<u32>>` | `ptr<storage, array<u32>, read_write>`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn first(p: ptr<storage, array<u32>>) -> u32 { return p[0]; }
@compute @workgroup_size(1) fn pointer_access() { r[1] = first(&r); } //!

//# pointer_count: a function with a pointer has all its arguments
//= says 'store' takes 2 arguments, not 1
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn store(p: ptr<storage, array<u32>, read_write>, i: u32) { p[i] = 1u; }
@compute @workgroup_size(1) fn pointer_count() { store(&r); } //!

//# pointer_uncalled: a function that nothing calls is checked as well
//= says function 'unused' returns `p[*q]` (of type `f32`)
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn unused(p: ptr<storage, array<f32>>, q: ptr<workgroup, u32>) -> u32 { return p[*q]; } //!
@compute @workgroup_size(1) fn pointer_uncalled() { r[1] = 1u; }

//# pointers_and_more: a wrong pointer does not hide other errors
//= says takes 2 arguments, not 1 | has a binding
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@group(0) @binding(1) var<workgroup> w: u32;
fn store(p: ptr<storage, array<u32>, read_write>, i: u32) { p[i] = 1u; }
@compute @workgroup_size(1) fn pointers_and_more() { store(&r); } //!

//# copied_error: an error in a function that is copied does not hide the next one
//= says function 'first' returns | function 'second' returns
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@group(0) @binding(1) var<storage, read_write> s: array<u32>;
fn first(p: ptr<storage, array<u32>, read_write>) -> u32 { return f32(p[0]); }
fn second() -> u32 { return 1f; } //!
@compute @workgroup_size(1) fn copied_error() { r[0] = first(&r) + first(&s) + second(); }

//# float_atomic: atomics are integers
//= says no type `atomic<f32>` | atomicCompareExchangeWeak
@group(0) @binding(0) var<storage, read_write> r: array<atomic<f32>>; //!
@compute @workgroup_size(1) fn float_atomic() { atomicAdd(&r[0], 1.0); }

//# private_atomic: atomics are shared
//= says "a" | `var<workgroup>`
var<private> a: atomic<u32>; //!
@compute @workgroup_size(1) fn private_atomic() { atomicStore(&a, 1u); }

//# bool_tensor: tensors have no bools
//= says "r" | `bool` | use `u32`
@group(0) @binding(0) var<storage, read_write> r: array<bool>; //!
@compute @workgroup_size(1) fn bool_tensor() { r[0] = true; }

//# bool_scalar: scalars are numbers
//= says "a" | `bool` | use `u32`
struct S { yes: bool }
var<immediate> a: S; //!
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn bool_scalar() { r[0] = u32(a.yes); }

//# no_length: work-group memory has a size
//= says "w" has no size | give the array a length
var<workgroup> w: array<u32>; //!
@compute @workgroup_size(1) fn no_length() { w[0] = 1u; }

//# local_no_length: variables have a size
//= says "w" is an array without a length
@compute @workgroup_size(1) fn local_no_length() { var w: array<u32>; } //!

//# length_inside: an array without a length is the last member
//= says "list" | last member | move it to the end
struct S { //!
    list: array<u32>,
    n: u32,
}
@group(0) @binding(0) var<storage, read_write> r: S;
@compute @workgroup_size(1) fn length_inside() { r.n = 1u; }

//# override_tensor: the size of a tensor depends on no override
//= says "r" depends on an override
override n: u32 = 4;
@group(0) @binding(0) var<storage, read_write> r: array<u32, n>; //!
@compute @workgroup_size(1) fn override_tensor() { r[0] = 1u; }

//# no_binding: tensors have bindings
//= says "r" has no binding | @binding
var<storage, read_write> r: array<u32>; //!
@compute @workgroup_size(1) fn no_binding() { r[0] = 1u; }

//# private_binding: other variables have none
//= says "p" has a binding | private
@group(0) @binding(0) var<private> p: u32; //!
@compute @workgroup_size(1) fn private_binding() { p = 1u; }

//# write_only: storage buffers are read or read and written
//= says "r" | declare `var<storage, read_write>`
@group(0) @binding(0) var<storage, write> r: array<u32>; //!
@compute @workgroup_size(1) fn write_only() { r[0] = 1u; }

//# initial_value: shared memory has no initial values
//= says "w" has an initial value | zeros
var<workgroup> w: u32 = 3u; //!
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn initial_value() { r[0] = w; }

//# two_immediates: one struct has all scalars
//= says "two_immediates" uses two | one struct
struct S { n: u32 }
var<immediate> a: S;
var<immediate> b: S; //!
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn two_immediates() { r[0] = a.n + b.n; }

//# large_group: the size of a work-group is limited
//= says "large_group" is out of range | 20000
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(20000) fn large_group() { r[0] = 1u; } //!

//# built_in_type: built-in values have their types
//= says "id" is declared `vec3<i32>` | `global_invocation_id` is `vec3<u32>`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn built_in_type(
    @builtin(global_invocation_id) id: vec3<i32>) { //!
    r[0] = u32(id.x);
}

//# other_built_in: compute shaders have their own built-in values
//= says no built-in value `vertex_index`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn other_built_in(@builtin(vertex_index) id: u32) { r[0] = id; } //!

//# same_built_in: a built-in value is one argument
//= says two arguments are `local_invocation_index`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn same_built_in(@builtin(local_invocation_index) a: u32, @builtin(local_invocation_index) b: u32) { r[a] = b; } //!

//# scalar_argument: scalars are no arguments of the entry point
//= says "n" has no `@builtin(…)` | `var<immediate>`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn scalar_argument(n: u32) { r[0] = n; } //!

//# located_argument: nor are inputs of other stages
//= says "n" has a @location
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn located_argument(@location(0) n: u32) { r[0] = n; } //!

//# entry_result: an entry point returns nothing
//= says "entry_result" returns a value | store it in a tensor
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn entry_result() -> u32 { return r[0]; } //!

//# same_case: the cases of a switch differ
//= says "same_case" has two cases for 1u
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn same_case() { switch r[0] { case 1u: { } case 1u: { } default: { } } } //!

//# no_default: a switch has a default
//= says default: { }
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn no_default() { switch r[0] { case 1u: { } } } //!

//# components: a vector has all its components
//= says `vec4<f32>` takes 4 values, not 2
@group(0) @binding(0) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn components() { let v = vec4f(r[0], r[1]); r[0] = v.x; } //!

//# component_type: components have the type of the vector
//= says `vec2<f32>` does not take `r[0]` (of type `u32`)
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn component_type() { let v = vec2f(r[0], r[1]); r[0] = u32(v.x); } //!

//# float_index: an index is an integer
//= says not `r[1]` (of type `f32`) | u32(
@group(0) @binding(0) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn float_index() { r[0] = r[r[1]]; } //!

//# large_index: constant indices are in bounds
//= says index 7 is out of bounds of `r` (of type `array<f32, 4>`)
@group(0) @binding(0) var<storage, read_write> r: array<f32, 4>;
@compute @workgroup_size(1) fn large_index() { r[0] = r[7]; } //!

//# vector_index: those of vectors, too
//= says index 5 is out of bounds
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn vector_index() { let v = vec3u(1u); r[0] = v[5]; } //!

//# selection: a selection has a condition
//= says `select` is a `bool`, not `f32`
@group(0) @binding(0) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(1) fn selection() { r[0] = select(r[0], r[1], r[2]); } //!

//# shift: shifts are smaller than the number
//= says shifted by more bits than it has
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn shift() { r[0] = r[0] << 40u; } //!

//# length_of_fixed: only tensors have a length at run time
//= says `arrayLength` takes | `r` (of type `array<u32, 4>`)
@group(0) @binding(0) var<storage, read_write> r: array<u32, 4>;
@compute @workgroup_size(1) fn length_of_fixed() { r[0] = arrayLength(&r); } //!

//# length_of_value: the length is that of a pointer
//= says `r` | write `&` before it
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn length_of_value() { r[0] = arrayLength(r); } //!

//# half_bits: the bits of three halves are no words
//= says pad them to a `vec4<f16>`
enable f16;
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn half_bits() { var v: vec3<f16>; r[0] = bitcast<u32>(v); } //!

//# pointer_to_immediate: scalars are passed by value
//= says `immediate` | pass the value
struct S { n: u32 }
var<immediate> a: S;
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn n_of(p: ptr<immediate, u32>) -> u32 { return *p; } //!
@compute @workgroup_size(1) fn pointer_to_immediate() { r[0] = n_of(&a.n); }

//# fragment_code: what only fragment shaders have
//= says "fragment_code" uses `discard` | return
@compute @workgroup_size(1) fn fragment_code() { discard; } //!

//# roles: factors and sums of matrices have roles
//= says `coopMultiplyAdd` | a factor `A`, a factor `B` and a sum `C`
enable wgpu_cooperative_matrix;
@group(0) @binding(0) var<storage, read_write> r: array<f32>;
@compute @workgroup_size(32) fn roles() {
    let a = coopLoad<coop_mat8x8<f32, A>>(&r[0], 8);
    let c = coopLoad<coop_mat8x8<f32, C>>(&r[0], 8);
    coopStore(coopMultiplyAdd(a, a, c), &r[0], 8); //!
}

//# unset_overrides: all overrides without a value are named
//= says "n" has no default | "FLAG" has no default
override n: u32; //!
override FLAG: bool;
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn unset_overrides() { if FLAG { r[0] = n; } }

//# constant_of_override: constants do not depend on overrides
//= says declare `override`
override n: u32 = 1u;
const m = n + 1u; //!
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn constant_of_override() { r[0] = m; }

//# declaration: declarations of C
//= says `var name: type = value;`
@compute @workgroup_size(1) fn declaration() {
    float a = 1.0; //!
}

//# ternary: conditional values of C
//= says select(if_false, if_true, condition)
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn ternary() { r[0] = r[1] > 1u ? 1u : 2u; } //!

//# directive: text for a preprocessor
//= says not WGSL yet | #ifdef
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
#ifdef FAST //!
@compute @workgroup_size(1) fn directive() { r[0] = 1u; }
#endif

//# every_text_error: the errors of all functions at once, before the text is understood
//= says identifier: `a` | identifier: `b` | return a;
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn first() -> u32 { return a; }
@compute @workgroup_size(1) fn every_text_error() { r[0] = first() + b; } //!

//# every_error: the errors of all functions at once
//= says 'first' returns `a` | operator `!` | operator `-` | return a; | return !r[0];
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
fn first(a: f32) -> u32 { return a; }
fn second() -> bool { return !r[0]; }
@compute @workgroup_size(1) fn every_error() { if second() { r[0] = -first(1.0); } } //!

//# small_integers: naga's advice is about its own flags
//= says portable kernels do not have the type `i16`
enable wgpu_int16;
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn small_integers() { var x: i16 = 1; r[0] = u32(x); }

//# small_integers_not_enabled: nor is an extension advised that is missing
//= says no integers of 16 bits
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn small_integers_not_enabled() { var x: u16 = 1; r[0] = u32(x); } //!

//# math_argument: naga's names of arguments are numbers
//= says `sqrt` | `u32`
@group(0) @binding(0) var<storage, read_write> r: array<u32>;
@compute @workgroup_size(1) fn math_argument() { r[0] = u32(countOneBits(sqrt(r[1]))); } //!
