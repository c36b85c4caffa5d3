// Every form of loads, stores and operations of cooperative matrices: each block of 256 elements of `out` is one result.
// Block 0 to 3: a · b from tensors, with rows or columns of a and of b; 4 to 7: the same from work-group memory; 8: with sums in
// f16; 9: 2 · (a · b) + c - c / 2; 10 and 11: a matrix that begins between multiples of 16 bytes, or ends out of range, is zero,
// and the latter is not stored.

enable f16;
enable wgpu_cooperative_matrix;

override SUBGROUP: u32 = 32;

@group(0) @binding(0) var<storage, read> a: array<f16>;
@group(0) @binding(1) var<storage, read> b: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> c: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

var<workgroup> a_tile: array<vec4<f16>, 64>;
var<workgroup> b_tile: array<f16, 256>;
var<workgroup> sums: array<f16, 256>;

@compute @workgroup_size(SUBGROUP)
fn forms(@builtin(local_invocation_index) item: u32) {
    for (var i = item; i < 64; i += SUBGROUP) {
        a_tile[i] = vec4<f16>(a[4 * i], a[4 * i + 1], a[4 * i + 2], a[4 * i + 3]);
    }
    for (var i = item; i < 256; i += SUBGROUP) {
        b_tile[i] = b[i / 4][i % 4];
    }
    workgroupBarrier();
    let zero = coop_mat16x16<f32, C>();
    let a_rows = coopLoadT<coop_mat16x16<f16, A>>(&a[0], 16u);
    let a_columns = coopLoad<coop_mat16x16<f16, A>>(&a[0], 16u);
    let b_rows = coopLoadT<coop_mat16x16<f16, B>>(&b[0], 4u);
    let b_columns = coopLoad<coop_mat16x16<f16, B>>(&b[0], 4u);
    coopStoreT(coopMultiplyAdd(a_rows, b_rows, zero), &out[0], 16u);
    coopStoreT(coopMultiplyAdd(a_rows, b_columns, zero), &out[256], 16u);
    coopStoreT(coopMultiplyAdd(a_columns, b_rows, zero), &out[512], 16u);
    coopStore(coopMultiplyAdd(a_columns, b_columns, zero), &out[768], 16u);
    let a_tile_rows = coopLoadT<coop_mat16x16<f16, A>>(&a_tile[0], 4u);
    let a_tile_columns = coopLoad<coop_mat16x16<f16, A>>(&a_tile[0], 4u);
    let b_tile_rows = coopLoadT<coop_mat16x16<f16, B>>(&b_tile[0], 16u);
    let b_tile_columns = coopLoad<coop_mat16x16<f16, B>>(&b_tile[0], 16u);
    coopStoreT(coopMultiplyAdd(a_tile_rows, b_tile_rows, zero), &out[1024], 16u);
    coopStoreT(coopMultiplyAdd(a_tile_rows, b_tile_columns, zero), &out[1280], 16u);
    coopStoreT(coopMultiplyAdd(a_tile_columns, b_tile_rows, zero), &out[1536], 16u);
    coopStore(coopMultiplyAdd(a_tile_columns, b_tile_columns, zero), &out[1792], 16u);
    let half_sums = coopMultiplyAdd(a_rows, b_rows, coop_mat16x16<f16, C>());
    coopStoreT(half_sums + half_sums, &sums[0], 16u);
    workgroupBarrier();
    for (var i = item; i < 256; i += SUBGROUP) {
        out[2048 + i] = f32(sums[i]);
    }
    let addend = coopLoadT<coop_mat16x16<f32, C>>(&c[0], 16u);
    let result = 2.0 * coopMultiplyAdd(a_rows, b_rows, zero) + addend - addend * 0.5;
    coopStoreT(result, &out[2304], 16u);
    let between = coopLoadT<coop_mat16x16<f16, A>>(&a[1], 16u);
    coopStoreT(coopMultiplyAdd(between, b_rows, addend), &out[2560], 16u);
    let beyond = coopLoadT<coop_mat16x16<f16, A>>(&a[16], 16u);
    coopStoreT(coopMultiplyAdd(beyond, b_rows, addend), &out[2816], 16u);
    coopStoreT(addend, &out[2832], 16u);
    coopStoreT(addend, &out[0], 0xffffffffu);
}
