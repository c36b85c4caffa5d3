//! The host with `serial_items`: work-items run one after the other, in the order of their index.

use std::sync::Arc;

use runtime_core::{Arg, CommonRuntime, Geometry, ModuleSource, Options, Result, Runtime};

const GROUPS: [u32; 3] = [3, 2, 2];
const SIZE: [u32; 3] = [4, 3, 2];
const ITEMS: u32 = SIZE[0] * SIZE[1] * SIZE[2];
const ALL: u32 = ITEMS * GROUPS[0] * GROUPS[1] * GROUPS[2];

/// A kernel in which every item takes tickets. `at` is its position in the required order.
fn code(body: &str) -> String {
    format!(
        "struct Scalars {{ n: u32 }} var<immediate> s: Scalars;
         @group(0) @binding(0) var<storage, read_write> counter: atomic<u32>;
         @group(0) @binding(1) var<storage, read_write> out: array<u32>;
         var<workgroup> shared_sum: u32;
         fn ticket() -> u32 {{ return atomicAdd(&counter, 1u); }}
         @compute @workgroup_size({}, {}, {}) fn main(
             @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
             @builtin(local_invocation_index) local: u32
         ) {{
             let items = {ITEMS}u;
             let g = (group.z * groups.y + group.y) * groups.x + group.x;
             let at = g * items + local;
             if s.n > 100u {{ out[0] = atomicLoad(&counter); }} // uses all arguments
             {body}
         }}",
        SIZE[0], SIZE[1], SIZE[2]
    )
}

fn serial() -> Arc<dyn CommonRuntime> {
    let runtime = Runtime::builder().discover(false).register(runtime_host::backend());
    let runtime = runtime.with_lowering(runtime_kernel::wgsl()).build();
    let opened = runtime.open_with("host", &Options::new().with("serial_items", true));
    opened.unwrap_or_else(|error| panic!("{error}"))
}

/// The content of `out`, with `n` as the scalar.
fn run(device: &dyn CommonRuntime, source: &ModuleSource, n: u32) -> Result<Vec<u32>> {
    let kernel = device.kernel(source, "main")?;
    let (counter, out) =
        (device.tensor([1], &[0_u32])?, device.tensor([2 * ALL as usize], &[0_u32; 2 * ALL as usize])?);
    let args = [Arg::read_write(&counter), Arg::read_write(&out), Arg::scalar(n)];
    device.queue()?.call(&kernel, Geometry::new(GROUPS, SIZE), &args)?;
    out.to_vec()
}

/// The content of `out` from optimised code and from code for a debugger, which are the same.
fn in_order(body: &str) -> Vec<u32> {
    let (device, source) = (serial(), ModuleSource::wgsl(&code(body)));
    let run = |debug| run(&*device, &source.clone().debug(debug), 1);
    let [fast, debug] =
        [false, true].map(|debug| run(debug).unwrap_or_else(|error| panic!("{body}: {error}")));
    assert_eq!(fast, debug, "{body}");
    fast
}

#[test]
fn items_and_groups_run_in_the_order_of_their_linear_index() {
    // Long enough for other threads to help.
    let out = in_order(
        "var busy = at;
         for (var i = 0u; i < 100000u; i++) { busy = busy * 1664525u + s.n; }
         out[at] = ticket(); out[at + groups.x * groups.y * groups.z * items] = busy;",
    );
    assert_eq!(out[..ALL as usize], (0..ALL).collect::<Vec<_>>());
}

#[test]
fn each_item_runs_to_its_end_if_there_is_no_barrier() {
    // Loops and returns that all items agree on do not divide the body.
    let out = in_order(
        "out[2u * at] = ticket();
         for (var i = 0u; i < s.n; i++) { out[2u * at] += 0u; }
         loop { if s.n > 0u { break; } }
         if s.n == 0u { return; }
         out[2u * at + 1u] = ticket();",
    );
    assert_eq!(out, (0..2 * ALL).collect::<Vec<_>>());
}

#[test]
fn all_items_of_a_group_reach_a_barrier_before_any_goes_on() {
    let out = in_order(
        "out[at] = ticket(); workgroupBarrier(); out[at + groups.x * groups.y * groups.z * items] = ticket();",
    );
    for at in 0..ALL {
        let (group, local) = (at / ITEMS, at % ITEMS);
        let [before, after] = [at, at + ALL].map(|at| out[at as usize]);
        assert_eq!(
            (before, after),
            (2 * ITEMS * group + local, 2 * ITEMS * group + ITEMS + local),
            "item {at}"
        );
    }
}

#[test]
fn barriers_in_loops_divide_every_iteration() {
    let out = in_order(
        "for (var i = 0u; i < 2u; i++) {
             if local == 0u { shared_sum = 0u; }
             workgroupBarrier();
             shared_sum = shared_sum * 7u + local;
             workgroupBarrier();
             out[at] = shared_sum;
             workgroupBarrier();
         }",
    );
    let folded = (0..ITEMS).fold(0_u32, |sum, local| sum.wrapping_mul(7).wrapping_add(local));
    assert_eq!(out[..ALL as usize], [folded; ALL as usize]);
}

#[test]
fn the_last_item_wins_a_race() {
    let out = in_order("out[0] = at; out[1] = out[1] * 31u + at;");
    let folded = (0..ALL).fold(0_u32, |sum, at| sum.wrapping_mul(31).wrapping_add(at));
    assert_eq!(out[..2], [ALL - 1, folded]);
}

#[test]
fn checks_remain() {
    let out = in_order("out[at * 1000u] = 1u; out[at] += out[at * 1000u + 5u];");
    assert_eq!(out.iter().sum::<u32>(), 1, "only the first item is in range");
}
