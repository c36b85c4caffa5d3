//! The rules that do not depend on indices.

use runtime_core::Options;
use runtime_core::lowering::FusionArg::Tensor;
use runtime_core::lowering::{FusedArg, FusionLaunch, FusionRequest, PortableSource};

use super::{List, N, kernel, u32_arg};

const SCALE: &str = "if i < s.n { y[i] = 2.0 * x[i]; }";

#[test]
fn a_chain_of_own_elements_becomes_one_kernel() {
    let plan = List::new()
        .then("scale", SCALE, [0, 1])
        .then("relu", "if i >= s.n { return; } y[i] = max(x[i], 0.0);", [1, 2])
        .then("half", "let j = (i * 4u) >> 2u; y[i] = 0.5 * x[i];", [2, 1])
        .fuses(0);
    let code = plan.kernels[0].code.as_ref().unwrap();
    assert_eq!((code.groups_of, code.args.len()), (0, 3 + 6));
    assert_eq!(code.args[0], FusedArg::Of { launch: 0, arg: 0 });
    assert!(plan.relies_on.is_empty(), "{:?}", plan.relies_on);
    assert!(code.text.contains("read_write> y"), "{}", code.text);
}

#[test]
fn runs_are_as_long_as_possible_from_the_left() {
    let plan = List::new()
        .then("a", SCALE, [0, 1])
        .then("b", SCALE, [1, 2])
        .then("c", "y[i] = x[s.n - 1 - i];", [2, 3])
        .then("d", SCALE, [3, 4])
        .plan();
    let runs: Vec<_> =
        plan.kernels.iter().map(|kernel| (kernel.launches.clone(), kernel.code.is_some())).collect();
    assert_eq!(runs, [(0..2, true), (2..4, true)]);
    assert_eq!(plan.seams.iter().map(|seam| seam.fused).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(
        plan.seams[1].reason,
        "c reads \"x\" (argument 0), which b writes (\"y\", argument 1), at indices of other items"
    );
}

#[test]
fn constants_are_part_of_the_text() {
    let mut list =
        List::new().then("a", "if i < s.n { y[i] = x[i] * f32(s.w); }", [0, 1]).then("b", SCALE, [1, 2]);
    list.constants = true;
    let plan = list.fuses(0);
    let code = plan.kernels[0].code.as_ref().unwrap();
    assert_eq!(code.args.len(), 3);
    assert!(code.text.contains("1024u") && !code.text.contains("immediate"), "{}", code.text);
    assert!(plan.relies_on.is_empty());
}

#[test]
fn a_smaller_range_is_guarded() {
    let args = |x, y| [Tensor(x), Tensor(y), u32_arg(N), u32_arg(0)];
    let barrier = "tile[l.x] = x[i]; workgroupBarrier(); y[i] = tile[63 - l.x] + f32(groups.x);";
    let plan = List::new()
        .launch(&kernel("few", barrier), [3, 1, 1], &args(0, 1))
        .then("all", SCALE, [1, 2])
        .fuses(0);
    let code = plan.kernels[0].code.as_ref().unwrap();
    assert_eq!(code.groups_of, 1);
    assert!(code.args.contains(&FusedArg::Groups { launch: 0, axis: 0 }), "{:?}", code.args);
    let list = List::new().launch(&kernel("wide", SCALE), [3, 2, 1], &args(0, 1));
    list.launch(&kernel("tall", SCALE), [2, 3, 1], &args(2, 3)).fails("has the groups of the other");
}

#[test]
fn a_kernel_without_group_values_takes_other_groups() {
    let free = |size: u32| {
        format!(
        "@group(0) @binding(0) var<storage, read> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         @compute @workgroup_size({size}) fn free(@builtin(global_invocation_id) id: vec3u) {{ y[id.x] = x[id.x]; }}"
    )
    };
    let args = |x, y| [Tensor(x), Tensor(y)];
    let group = "tile[l.x] = x[i]; workgroupBarrier(); y[i] = tile[63 - l.x];";
    for size in [32, 128, 256] {
        let list =
            List::new().launch(&free(size), [N / size, 1, 1], &args(0, 1)).then("group", group, [1, 2]);
        assert_eq!(list.fuses(0).kernels[0].code.as_ref().unwrap().groups_of, 1);
        let list =
            List::new().launch(&free(size), [N / size + 1, 1, 1], &args(0, 1)).then("group", group, [1, 2]);
        list.fails("has fewer items");
    }
    List::new()
        .launch(&free(32), [16, 1, 1], &args(0, 1))
        .launch(&free(64), [16, 1, 1], &args(1, 2))
        .fuses(0);
    List::new()
        .launch(&free(32), [4, 4, 1], &args(0, 1))
        .then("group", group, [1, 2])
        .fails(" has groups of ");
}

#[test]
fn views_that_overlap_are_refused() {
    let mut list = List::new().then("a", SCALE, [0, 1]).then("b", SCALE, [2, 3]);
    list.fuses(0);
    list.tensors[1].overlaps = vec![2];
    list.fails("\"x\" (argument 0) of b shares memory with \"y\" (argument 1) of a");
    list.tensors[1].overlaps = Vec::new();
    list.tensors[0].overlaps = vec![2];
    list.fuses(0);
}

#[test]
fn other_element_types_of_one_tensor_are_refused() {
    let wide = kernel("wide", "y[i] = x[i].x;").replace("read> x: array<f32>", "read> x: array<vec4f>");
    let args = [Tensor(1), Tensor(2), u32_arg(N), u32_arg(0)];
    List::new().then("a", SCALE, [0, 1]).launch(&wide, [16, 1, 1], &args).fails("has another type than");
    let args = [Tensor(0), Tensor(2), u32_arg(N), u32_arg(0)];
    List::new().then("a", SCALE, [0, 1]).launch(&wide, [16, 1, 1], &args).fuses(0);
}

#[test]
fn helpers_private_variables_and_structures_are_seen_through() {
    let code = |name: &str| {
        kernel(name, "at = i; bump(&at); advance(); y[at - 3] = x[place(at) - 2];").replacen(
            "@compute",
            "var<private> at: u32 = 7;
             fn place(i: u32) -> u32 { return i - 1; }
             fn bump(p: ptr<private, u32>) { *p = *p + 2; }
             fn advance() { at = at + 1; }
             @compute",
            1,
        )
    };
    let args = |x, y| [Tensor(x), Tensor(y), u32_arg(N), u32_arg(0)];
    List::new()
        .launch(&code("a"), [16, 1, 1], &args(0, 1))
        .launch(&code("b"), [16, 1, 1], &args(1, 2))
        .fuses(0);
}

#[test]
fn loops_over_a_row_need_a_barrier_only_between_items() {
    let row = "for (var k = l.x; k < 60; k += 64) { y[g.x * 60 + k] = x[g.x * 60 + k]; }";
    List::new().then("a", row, [0, 1]).then("b", row, [1, 2]).fuses(0);
    let other = "for (var k = l.x; k < s.w; k += 64u) { y[g.x * s.w + k] = x[g.x * s.w + s.w - 1 - k]; }";
    let same = "for (var k = l.x; k < s.w; k += 64u) { y[g.x * s.w + k] = x[g.x * s.w + k]; }";
    List::new().then("a", same, [0, 1]).then("b", other, [1, 2]).fuses(1);
    List::new().then("a", same, [0, 1]).then("b", other, [1, 2]).then("c", other, [1, 3]).fuses(1);
    List::new().then("a", same, [0, 1]).then("b", other, [1, 2]).then("c", other, [2, 3]).fuses(2);
}

#[test]
fn too_many_scalars_are_refused() {
    let mut list = List::new();
    for step in 0..17 {
        list = list.then(&format!("k{step}x"), SCALE, [0, 1]);
    }
    list.fails("bytes of scalars, more than 128");
}

#[test]
fn work_group_memory_beyond_the_limit_is_refused() {
    let large =
        kernel("large", "tile[l.x] = x[i]; y[i] = tile[l.x];").replace("array<f32, 64>", "array<f32, 3000>");
    let args = |x, y| [Tensor(x), Tensor(y), u32_arg(N), u32_arg(0)];
    let list = List::new().launch(&large, [16, 1, 1], &args(0, 1)).launch(&large, [16, 1, 1], &args(1, 2));
    list.fuses(0);
    let list = list.launch(&large, [16, 1, 1], &args(2, 3));
    list.fails("together they need 36000 bytes of work-group memory, more than 32768");
    assert_eq!(list.plan().kernels[0].launches, 0..2);
}

#[test]
fn other_options_are_refused() {
    let (a, b) = (Options::new(), Options::new().with("variants", "1"));
    let code = kernel("scale", SCALE);
    let args = |x, y| [Tensor(x), Tensor(y), u32_arg(N), u32_arg(0)];
    let (one, two) = (args(0, 1), args(1, 2));
    let launch = |options, args| FusionLaunch {
        source: PortableSource { code: &code, path: "", options },
        entry: "scale",
        groups: [16, 1, 1],
        args,
    };
    let launches = [launch(&a, &one[..]), launch(&b, &two[..])];
    let tensors = List::new().tensors;
    let request =
        FusionRequest { launches: &launches, tensors: &tensors, constants: false, assume_group_local: false };
    let plan = crate::fuse::plan(&request, &super::device(), &|_| Ok(())).unwrap();
    assert_eq!(plan.seams[0].reason, "scale and scale are loaded with different options");
}
