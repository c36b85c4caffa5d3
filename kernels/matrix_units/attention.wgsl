// Attention with a causal mask, by matrix units: out = softmax(q · kᵀ / 8) · v for each head, where query i attends to keys 0 to i.
// All four are heads × n × 64 in f16, sums are in f32. n is any number.
//
// A group of four subgroups computes 64 queries of a head, each subgroup 16 of them. It proceeds along the keys in steps of
// KEYS. A step multiplies queries by keys, stores the scores in work-group memory, replaces them by powers of two of their
// distance to a reference of their row, and multiplies those by values. The sums stay in matrices, whose rows cannot be scaled:
// the reference is only raised where a score exceeds it by more than MARGIN, and the sums then pass through memory.

enable f16;
enable subgroups;
enable wgpu_cooperative_matrix;

/// Invocations of a subgroup: 16, 32 or 64.
override SUBGROUP: u32 = 32;
/// Keys of a step: a multiple of 32.
override KEYS: u32 = 64;
const SUBGROUPS: u32 = 4;
/// Vectors of a head in a row, and with the padding that spreads rows over the banks of memory.
const HEAD: u32 = 16;
const ROW: u32 = HEAD + 2;
/// 1 / √64, and from powers of e to powers of two.
const SCALE: f32 = 0.125 * 1.4426950408889634;
/// Powers may reach 2^MARGIN, which f16 can hold.
const MARGIN: f32 = 8;
const LEAST: f32 = -1e30;

struct Scalars {
    n: u32,
    heads: u32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read> k: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> v: array<vec4<f16>>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f16>>;
var<immediate> scalars: Scalars;

/// Keys, then values; the queries at first.
var<workgroup> tiles: array<vec4<f16>, 2 * KEYS * ROW>;
/// By subgroup: scores, and 16 columns of the sums.
var<workgroup> scores: array<vec4<f32>, SUBGROUPS * 16 * (KEYS / 4 + 1)>;
var<workgroup> powers: array<vec4<f16>, SUBGROUPS * 16 * (KEYS / 4 + 2)>;
var<workgroup> is_raised: array<u32, SUBGROUPS>;

/// An index that is out of range, where zero is read and nothing is written.
const NOWHERE: u32 = 0xffffffff;

/// The place of a vector of a head's row.
fn place(head: u32, row: u32, column: u32) -> u32 {
    return select(NOWHERE, (head * scalars.n + row) * HEAD + column, row < scalars.n && head < scalars.heads);
}

@compute @workgroup_size(SUBGROUPS * SUBGROUP)
fn attention(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) item: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) invocation: u32,
) {
    let score_row = KEYS / 4 + 1;
    let power_row = KEYS / 4 + 2;
    // Invocations of a row, and the vectors of 16 columns that each of them handles.
    let sharing = SUBGROUP / 16;
    let quarter = 4 / sharing;
    let head = group.y;
    // The groups with the most keys run first.
    let top = (groups.x - 1 - group.x) * 64;
    let own = min(subgroup, SUBGROUPS - 1);
    let lane = min(invocation, SUBGROUP - 1);
    let row = own * 16 + lane / sharing;
    let part = lane % sharing;
    let query = top + row;

    for (var i = item; i < 64 * HEAD; i += SUBGROUPS * SUBGROUP) {
        tiles[i / HEAD * ROW + i % HEAD] = q[place(head, top + i / HEAD, i % HEAD)];
    }
    workgroupBarrier();
    var queries: array<coop_mat16x16<f16, A>, 4>;
    for (var i = 0u; i < 4; i++) {
        queries[i] = coopLoadT<coop_mat16x16<f16, A>>(&tiles[own * 16 * ROW + i * 4], ROW);
    }
    var sums: array<coop_mat16x16<f32, C>, 4>;
    var reference = LEAST;
    var total = 0.0;
    let end = min(scalars.n, top + 64);
    for (var first = 0u; first < end; first += KEYS) {
        workgroupBarrier();
        for (var i = item; i < KEYS * HEAD; i += SUBGROUPS * SUBGROUP) {
            let at = place(head, first + i / HEAD, i % HEAD);
            tiles[i / HEAD * ROW + i % HEAD] = k[at];
            tiles[(KEYS + i / HEAD) * ROW + i % HEAD] = v[at];
        }
        workgroupBarrier();
        for (var j = 0u; j < KEYS / 16; j++) {
            var products = coop_mat16x16<f32, C>();
            for (var i = 0u; i < 4; i++) {
                let keys = coopLoad<coop_mat16x16<f16, B>>(&tiles[j * 16 * ROW + i * 4], ROW);
                products = coopMultiplyAdd(queries[i], keys, products);
            }
            coopStoreT(products, &scores[own * 16 * score_row + j * 4], score_row);
        }
        subgroupBarrier();
        var most = LEAST;
        for (var j = 0u; j < KEYS / 16; j++) {
            for (var i = 0u; i < quarter; i++) {
                let column = j * 4 + part * quarter + i;
                let seen = seen_by(query, first + column * 4);
                let score = select(vec4f(LEAST), scores[row * score_row + column] * SCALE, seen);
                most = max(most, max(max(score.x, score.y), max(score.z, score.w)));
            }
        }
        for (var step = 1u; step < sharing; step *= 2) {
            most = max(most, subgroupShuffleXor(most, step));
        }
        let raised = select(reference, most, most > reference + MARGIN);
        let factor = exp2(reference - raised);
        let any_raised = subgroupAny(raised > reference);
        if lane == 0 {
            is_raised[own] = select(0u, 1u, any_raised && first > 0);
        }
        reference = raised;
        total *= factor;
        for (var j = 0u; j < KEYS / 16; j++) {
            for (var i = 0u; i < quarter; i++) {
                let column = j * 4 + part * quarter + i;
                let seen = seen_by(query, first + column * 4);
                let power = select(vec4f(), exp2(scores[row * score_row + column] * SCALE - reference), seen);
                powers[row * power_row + column] = vec4<f16>(power);
                total += dot(power, vec4f(1));
            }
        }
        let raises = workgroupUniformLoad(&is_raised);
        if (raises[0] | raises[1] | raises[2] | raises[3]) != 0 {
            for (var i = 0u; i < 4; i++) {
                coopStoreT(sums[i], &scores[own * 16 * score_row], score_row);
                subgroupBarrier();
                for (var j = 0u; j < quarter; j++) {
                    scores[row * score_row + part * quarter + j] *= factor;
                }
                subgroupBarrier();
                sums[i] = coopLoadT<coop_mat16x16<f32, C>>(&scores[own * 16 * score_row], score_row);
            }
        }
        for (var j = 0u; j < KEYS / 16; j++) {
            let weights = coopLoadT<coop_mat16x16<f16, A>>(&powers[own * 16 * power_row + j * 4], power_row);
            for (var i = 0u; i < 4; i++) {
                let values = coopLoadT<coop_mat16x16<f16, B>>(&tiles[(KEYS + j * 16) * ROW + i * 4], ROW);
                sums[i] = coopMultiplyAdd(weights, values, sums[i]);
            }
        }
    }

    for (var step = 1u; step < sharing; step *= 2) {
        total += subgroupShuffleXor(total, step);
    }
    for (var i = 0u; i < 4; i++) {
        subgroupBarrier();
        coopStoreT(sums[i], &scores[own * 16 * score_row], score_row);
        subgroupBarrier();
        for (var j = 0u; j < quarter; j++) {
            let column = part * quarter + j;
            out[place(head, query, i * 4 + column)] = vec4<f16>(scores[row * score_row + column] / total);
        }
    }
}

/// Which of four keys a query attends to.
fn seen_by(query: u32, key: u32) -> vec4<bool> {
    return vec4u(key, key + 1, key + 2, key + 3) <= vec4u(min(query, scalars.n - 1));
}
