// Attention with a causal mask, by matrix units: out = softmax(q · kᵀ / 8) · v for each head, where query i attends to keys 0 to i.
// All four are heads × n × 64 in f16, sums are in f32. n is any number.
//
// A group of four subgroups computes 128 queries of a head, each subgroup 32 of them, so that each matrix of keys or values that
// it loads serves two products. It proceeds along the keys in steps of KEYS. A step multiplies queries by keys, stores the
// scores in work-group memory, replaces them by powers of two of their distance to a reference of their row, and multiplies
// those by values. The reference is the largest score of the first step. The sums stay in matrices, whose rows cannot be
// scaled: the reference is only raised where a power would exceed 2^MARGIN, and the sums then pass through memory. The keys
// and values of the next step are loaded into registers meanwhile.

enable f16;
enable subgroups;
enable wgpu_cooperative_matrix;

/// Invocations of a subgroup: 32 or 64.
override SUBGROUP: u32 = 32;
/// Keys of a step.
const KEYS: u32 = 32;
const SUBGROUPS: u32 = 4;
/// Queries of a subgroup.
const OWN: u32 = 32;
const QUERIES: u32 = SUBGROUPS * OWN;
/// Groups of eight elements in a row of a head. A row of a tile has vectors of four, and padding that spreads rows over memory banks.
const HEAD: u32 = 8;
const ROW: u32 = 2 * HEAD + 2;
/// 1 / √64, and from powers of e to powers of two.
const SCALE: f32 = 0.125 * 1.4426950408889634;
/// 2^MARGIN is the largest power of two that f16 can hold.
const MARGIN: f32 = 15;
const LEAST: f32 = -1e30;

/// Eight elements of f16. A structure may be loaded from a tensor of any type.
struct Eight {
    words: vec4u,
}

struct Scalars {
    n: u32,
    heads: u32,
}

@group(0) @binding(0) var<storage, read> q: array<Eight>;
@group(0) @binding(1) var<storage, read> k: array<Eight>;
@group(0) @binding(2) var<storage, read> v: array<Eight>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f16>>;
var<immediate> scalars: Scalars;

/// Keys, then values; the queries at first.
var<workgroup> tiles: array<vec4<f16>, 2 * KEYS * ROW>;
/// By subgroup: scores, and 16 columns of the sums.
var<workgroup> scores: array<vec4f, QUERIES * (KEYS / 4 + 1)>;
var<workgroup> powers: array<vec4<f16>, QUERIES * (KEYS / 4 + 2)>;
var<workgroup> is_raised: array<u32, SUBGROUPS>;

/// An index that is out of range, where zero is read and nothing is written.
const NOWHERE: u32 = 0xffffffff;

/// The place of an eight of a head's row.
fn place(head: u32, row: u32, eight: u32) -> u32 {
    return select(NOWHERE, (head * scalars.n + row) * HEAD + eight, row < scalars.n && head < scalars.heads);
}

/// Which of four keys a query attends to.
fn seen_by(query: u32, key: u32) -> vec4<bool> {
    return vec4u(key, key + 1, key + 2, key + 3) <= vec4u(min(query, scalars.n - 1));
}

/// Stores 16 queries of each subgroup as tiles, beginning with `top` for the first.
fn load_queries(head: u32, top: u32, item: u32) {
    for (var i = item; i < SUBGROUPS * 16 * HEAD; i += SUBGROUPS * SUBGROUP) {
        let row = i / HEAD;
        let words = q[place(head, top + row / 16 * OWN + row % 16, i % HEAD)].words;
        let to = row * ROW + i % HEAD * 2;
        tiles[to] = bitcast<vec4<f16>>(words.xy);
        tiles[to + 1] = bitcast<vec4<f16>>(words.zw);
    }
}

@compute @workgroup_size(SUBGROUPS * SUBGROUP)
fn attention(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) item: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) invocation: u32,
) {
    let items = SUBGROUPS * SUBGROUP;
    // Vectors in a row of scores and of powers, with padding that spreads rows over memory banks.
    let score_row = KEYS / 4 + 1;
    let power_row = KEYS / 4 + 2;
    // Invocations that share a row, the vectors of scores of each, and the eights of a tile that an invocation moves.
    let sharing = SUBGROUP / OWN;
    let vectors = KEYS / 4 / sharing;
    let moved = KEYS * HEAD / items;
    let head = group.x;
    // The groups with the most keys run first.
    let top = (groups.y - 1 - group.y) * QUERIES;
    let index = min(subgroup, SUBGROUPS - 1);
    let own = index * OWN;
    let lane = min(invocation, SUBGROUP - 1);
    let row = lane % OWN;
    let part = lane / OWN;
    let query = top + own + row;

    // Of each subgroup, the upper 16, then the lower 16.
    var queries: array<coop_mat16x16<f16, A>, 8>;
    load_queries(head, top, item);
    workgroupBarrier();
    for (var i = 0u; i < 4; i++) {
        queries[i] = coopLoadT<coop_mat16x16<f16, A>>(&tiles[index * 16 * ROW + i * 4], ROW);
    }
    workgroupBarrier();
    load_queries(head, top + 16, item);
    workgroupBarrier();
    for (var i = 0u; i < 4; i++) {
        queries[4 + i] = coopLoadT<coop_mat16x16<f16, A>>(&tiles[index * 16 * ROW + i * 4], ROW);
    }
    var next: array<vec4u, 2>;
    for (var i = 0u; i < moved; i++) {
        let at = i * items + item;
        next[i] = k[place(head, at / HEAD, at % HEAD)].words;
    }
    workgroupBarrier();
    for (var i = 0u; i < moved; i++) {
        let at = i * items + item;
        let to = at / HEAD * ROW + at % HEAD * 2;
        tiles[to] = bitcast<vec4<f16>>(next[i].xy);
        tiles[to + 1] = bitcast<vec4<f16>>(next[i].zw);
        next[i] = v[place(head, at / HEAD, at % HEAD)].words;
    }
    var sums: array<coop_mat16x16<f32, C>, 8>;
    var reference = LEAST;
    var total = 0.0;
    let end = min(scalars.n, top + QUERIES);
    for (var first = 0u; first < end; first += KEYS) {
        workgroupBarrier();
        for (var i = 0u; i < moved; i++) {
            let at = i * items + item;
            let to = KEYS * ROW + at / HEAD * ROW + at % HEAD * 2;
            tiles[to] = bitcast<vec4<f16>>(next[i].xy);
            tiles[to + 1] = bitcast<vec4<f16>>(next[i].zw);
            next[i] = k[place(head, first + KEYS + at / HEAD, at % HEAD)].words;
        }
        for (var j = 0u; j < KEYS / 16; j++) {
            var upper = coop_mat16x16<f32, C>();
            var lower = coop_mat16x16<f32, C>();
            for (var i = 0u; i < 4; i++) {
                let keys = coopLoad<coop_mat16x16<f16, B>>(&tiles[j * 16 * ROW + i * 4], ROW);
                upper = coopMultiplyAdd(queries[i], keys, upper);
                lower = coopMultiplyAdd(queries[4 + i], keys, lower);
            }
            coopStoreT(upper, &scores[own * score_row + j * 4], score_row);
            coopStoreT(lower, &scores[(own + 16) * score_row + j * 4], score_row);
        }
        subgroupBarrier();
        var row_scores: array<vec4f, 8>;
        for (var i = 0u; i < vectors; i++) {
            row_scores[i] = scores[(own + row) * score_row + i * sharing + part];
        }
        if first + KEYS > top {
            for (var i = 0u; i < vectors; i++) {
                let seen = seen_by(query, first + (i * sharing + part) * 4);
                row_scores[i] = select(vec4f(LEAST), row_scores[i], seen);
            }
        }
        var most = LEAST;
        for (var i = 0u; i < vectors; i++) {
            let score = row_scores[i];
            most = max(most, max(max(score.x, score.y), max(score.z, score.w)));
        }
        if sharing > 1 {
            most = max(most, subgroupShuffleXor(most, OWN));
        }
        let raised = select(reference, most, (most - reference) * SCALE > MARGIN);
        let factor = exp2((reference - raised) * SCALE);
        let any_raised = subgroupAny(raised > reference);
        reference = raised;
        total *= factor;
        for (var i = 0u; i < vectors; i++) {
            let power = exp2((row_scores[i] - reference) * SCALE);
            powers[(own + row) * power_row + i * sharing + part] = vec4<f16>(power);
            total += (power.x + power.y) + (power.z + power.w);
        }
        if lane == 0 {
            is_raised[index] = select(0u, 1u, any_raised && first > 0);
        }
        let raises = workgroupUniformLoad(&is_raised);
        if (raises[0] | raises[1] | raises[2] | raises[3]) != 0 {
            for (var i = 0u; i < 8; i++) {
                let half = i / 4 * 16;
                subgroupBarrier();
                coopStoreT(sums[i], &scores[(own + half) * score_row], score_row);
                subgroupBarrier();
                if row / 16 * 16 == half {
                    for (var j = part; j < 4; j += sharing) {
                        scores[(own + row) * score_row + j] *= factor;
                    }
                }
                subgroupBarrier();
                sums[i] = coopLoadT<coop_mat16x16<f32, C>>(&scores[(own + half) * score_row], score_row);
            }
        }
        for (var i = 0u; i < moved; i++) {
            let at = i * items + item;
            let to = at / HEAD * ROW + at % HEAD * 2;
            tiles[to] = bitcast<vec4<f16>>(next[i].xy);
            tiles[to + 1] = bitcast<vec4<f16>>(next[i].zw);
            next[i] = v[place(head, first + KEYS + at / HEAD, at % HEAD)].words;
        }
        for (var j = 0u; j < KEYS / 16; j++) {
            let upper = coopLoadT<coop_mat16x16<f16, A>>(&powers[own * power_row + j * 4], power_row);
            let lower = coopLoadT<coop_mat16x16<f16, A>>(&powers[(own + 16) * power_row + j * 4], power_row);
            for (var i = 0u; i < 4; i++) {
                let values = coopLoadT<coop_mat16x16<f16, B>>(&tiles[(KEYS + j * 16) * ROW + i * 4], ROW);
                sums[i] = coopMultiplyAdd(upper, values, sums[i]);
                sums[4 + i] = coopMultiplyAdd(lower, values, sums[4 + i]);
            }
        }
    }

    if sharing > 1 {
        total += subgroupShuffleXor(total, OWN);
    }
    for (var i = 0u; i < 4; i++) {
        subgroupBarrier();
        coopStoreT(sums[i], &scores[own * score_row], score_row);
        coopStoreT(sums[4 + i], &scores[(own + 16) * score_row], score_row);
        subgroupBarrier();
        for (var j = part; j < 4; j += sharing) {
            let to = 2 * place(head, query, 2 * i + j / 2) + j % 2;
            out[to] = vec4<f16>(scores[(own + row) * score_row + j] / total);
        }
    }
}
