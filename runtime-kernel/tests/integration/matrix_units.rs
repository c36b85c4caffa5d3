//! Cooperative matrices: what is written for matrix units, and what is refused.

#![allow(clippy::unwrap_used, reason = "a test")]

use runtime_core::lowering::{Lowered, PortableSource};
use runtime_core::{CodeFormat, DeviceInfo, DeviceKind, ErrorKind, Options, Result};
use runtime_kernel::{Checks, Dialect, Feature, Program, Specialisation};

const GEMM: &str = include_str!("../../../kernels/matrix_units/gemm.wgsl");
const FORMS: &str = include_str!("../../../kernels/matrix_units/forms.wgsl");

fn parse(code: &str) -> Program {
    Program::parse(code, "k.wgsl", &Specialisation::default()).unwrap()
}

fn cuda(code: &str) -> String {
    parse(code).c(Dialect::Cuda, Checks::Bounded).unwrap().text
}

/// A kernel of 32 invocations with a tile of 256 elements in work-group memory.
fn kernel(body: &str) -> String {
    format!(
        "enable f16; enable wgpu_cooperative_matrix;
         @group(0) @binding(0) var<storage, read_write> c: array<f32>;
         var<workgroup> tile: array<f16, 256>;
         @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {{
             {body}
         }}"
    )
}

const STORE: &str =
    "coopStoreT(coopMultiplyAdd(m, coop_mat16x16<f16, B>(), coop_mat16x16<f32, C>()), &c[0], 16u);";

fn device(format: &str, arch: Option<&str>) -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, "Test Device");
    info.formats = vec![CodeFormat::from(format)];
    info.limits.group_size = [1024, 1024, 64];
    info.limits.group_items = 1024;
    info.limits.shared_bytes = 48 << 10;
    info.capabilities.0 = u64::MAX;
    info.arch = arch.map(str::to_owned);
    info
}

fn lower(code: &str, device: &DeviceInfo) -> Result<Lowered> {
    let options = Options::new();
    runtime_kernel::wgsl().lower(&PortableSource { code, path: "k.wgsl", options: &options }, device)
}

#[test]
fn matrix_units_are_a_feature() {
    let features = parse(GEMM).features().to_vec();
    assert_eq!(features, [Feature::F16, Feature::Subgroups, Feature::MatrixUnits]);
}

#[test]
fn tiles_that_are_proven_in_range_are_loaded_without_a_check() {
    let text = cuda(GEMM);
    assert!(
        text.contains("ldmatrix.sync.aligned.m8n8.x4.shared") && text.contains("mma.sync.aligned.m16n8k16")
    );
    assert!(!text.contains("coop16h_a_load_rows_8_shared_checked"), "{text}");
    // The sums are stored at an index that depends on the sizes.
    assert!(text.contains("coop16f_c_store_rows_4_checked(sums"), "{text}");
}

#[test]
fn tiles_that_may_be_out_of_range_or_misaligned_are_checked() {
    let checked = |index: &str, stride: &str| {
        let load = format!("let m = coopLoadT<coop_mat16x16<f16, A>>(&tile[{index}], {stride}); {STORE}");
        let text = cuda(&kernel(&load));
        let call = text.rfind("coop16h_a_load_rows_2_shared").unwrap();
        text[call..].starts_with("coop16h_a_load_rows_2_shared_checked")
    };
    for (index, stride) in
        [("0", "16u"), ("(g.x % 1u) * 8u", "16u"), ("112", "8u"), ("8 * min(g.x, 15u)", "8u")]
    {
        assert!(!checked(index, stride), "{index} {stride}");
    }
    let unproven = [
        ("g.x", "16u"),
        ("8", "16u"),
        ("1", "8u"),
        ("min(g.x, 8u)", "8u"),
        ("8 * min(g.x, 16u)", "8u"),
        ("0", "g.x"),
        ("0", "12u"),
        ("0", "17u"),
        ("0", "0x10000008u"),
    ];
    for (index, stride) in unproven {
        assert!(checked(index, stride), "{index} {stride}");
    }
}

#[test]
fn spirv_has_loads_behind_branches_unless_they_are_proven() {
    // `OpCooperativeMatrixLoadKHR` and `OpSelectionMerge`.
    let count = |words: &[u32], opcode: u32| {
        let (mut at, mut count) = (5, 0);
        while let Some(word) = words.get(at) {
            count += usize::from(word & 0xffff == opcode);
            at += (word >> 16) as usize;
        }
        count
    };
    let branches = |load: &str| {
        let words = parse(&kernel(&format!("let m = {load}; {STORE}"))).spirv(Checks::Bounded).unwrap();
        assert_eq!(count(&words, 4457), 1, "{load}");
        count(&words, 247)
    };
    let proven = branches("coopLoadT<coop_mat16x16<f16, A>>(&tile[0], 16u)");
    let unproven = branches("coopLoadT<coop_mat16x16<f16, A>>(&tile[g.x], 16u)");
    assert_eq!(unproven, proven + 1);
}

#[test]
fn work_group_memory_that_a_matrix_is_loaded_from_is_zeroed_unless_it_is_written() {
    let load = format!("let m = coopLoadT<coop_mat16x16<f16, A>>(&tile[0], 16u); {STORE}");
    let zeroes = |before: &str| {
        let text = cuda(&kernel(&format!("{before} {load}")));
        text[text.find("__global__").unwrap()..].matches("for (").count()
            == 1 + before.matches("for (").count()
    };
    let fill =
        |to: u32| format!("for (var k = i; k < {to}; k += 32) {{ tile[k] = 1h; }} workgroupBarrier();");
    assert!(zeroes(""));
    assert!(zeroes(&fill(255)));
    assert!(!zeroes(&fill(256)));
}

#[test]
fn tensors_begin_at_multiples_of_a_row() {
    let lowered = lower(FORMS, &device("cuda-c", Some("sm_90"))).unwrap();
    assert!(lowered.kernels[0].params.iter().all(|param| param.alignment_bytes == 16));
}

#[test]
fn devices_without_matrix_units_are_refused() {
    lower(GEMM, &device("cuda-c", Some("sm_80"))).unwrap();
    lower(GEMM, &device("cuda-c", Some("sm_100a"))).unwrap();
    let mut vulkan = device("spirv-shader", None);
    let error = lower(GEMM, &vulkan).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("the kernel uses matrix_units, which Test Device does not"), "{error}");
    vulkan.properties = Options::new().with("cooperative_matrix", "16x16x16 float16 * float16 + float32");
    lower(GEMM, &vulkan).unwrap();
    for (format, arch) in [("cuda-c", Some("sm_75")), ("cuda-c", None), ("opencl-c", None)] {
        let error = lower(GEMM, &device(format, arch)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{format}");
        assert!(error.message().ends_with("the load option `emulate_matrix_units` emulates them"), "{error}");
    }
}

#[test]
fn devices_without_matrix_units_emulate_them_on_request_and_the_host_always() {
    let emulating = Options::new().with("emulate_matrix_units", true);
    let lower = |device: &DeviceInfo, options: &Options| {
        runtime_kernel::wgsl().lower(&PortableSource { code: FORMS, path: "k.wgsl", options }, device)
    };
    let text = |lowered: &Lowered| String::from_utf8_lossy(&lowered.code).into_owned();
    lower(&device("c", None), &Options::new()).unwrap();
    for (format, arch) in [("cuda-c", Some("sm_75")), ("opencl-c", None), ("spirv-shader", None), ("c", None)]
    {
        let lowered = lower(&device(format, arch), &emulating).unwrap();
        assert!(!text(&lowered).contains("mma.sync"), "{format}");
        // A view that one device accepts is accepted by all.
        assert!(lowered.kernels[0].params.iter().all(|param| param.alignment_bytes == 16), "{format}");
    }
    let there = lower(&device("cuda-c", Some("sm_80")), &emulating).unwrap();
    assert!(text(&there).contains("mma.sync"));
}

#[test]
fn emulated_matrices_need_full_subgroups_of_16_to_64() {
    let lower = |items: &str, size: i64| {
        let code = kernel(&format!("let m = coop_mat16x16<f16, A>(); {STORE}")).replace("(32)", items);
        let options = Options::new().with("subgroup_size", size);
        let source = PortableSource { code: &code, path: "k.wgsl", options: &options };
        runtime_kernel::wgsl().lower(&source, &device("c", None)).map_err(|error| error.to_string())
    };
    for (items, size) in [("(16)", 0), ("(32)", 0), ("(48)", 16), ("(96)", 0), ("(64)", 64)] {
        lower(items, size).unwrap();
    }
    let partial = lower("(48)", 0).unwrap_err();
    assert!(
        partial.contains("48 items are not a multiple of the 32 items of emulated subgroups"),
        "{partial}"
    );
    for size in [8, 128] {
        let error = lower("(128)", size).unwrap_err();
        assert!(
            error.contains("with cooperative matrices: the size is a power of two from 16 to 64"),
            "{error}"
        );
    }
}

#[test]
fn subgroups_must_be_full() {
    let code = kernel(&format!("let m = coop_mat16x16<f16, A>(); {STORE}")).replace("(32)", "(48)");
    let error = lower(&code, &device("cuda-c", Some("sm_90"))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(
        error.message().contains("48 items are not a multiple of the 32 items of the subgroups"),
        "{error}"
    );
}

#[test]
fn entry_points_without_matrices_may_have_any_size() {
    let code = kernel(&format!("let m = coop_mat16x16<f16, A>(); {STORE}"));
    let code = code + "fn nothing() { } @compute @workgroup_size(1) fn other() { nothing(); }";
    for device in [device("cuda-c", Some("sm_90")), device("c", None)] {
        lower(&code, &device).unwrap();
    }
}

#[test]
fn only_vectors_of_numbers_are_moved_as_one_word() {
    let store = "var a = vec2<bool>(true); flags[i] = a; pairs[i] = vec2f(1); workgroupBarrier();
        if flags[31 - i].x { c[0] = pairs[31 - i].y; }";
    let code = kernel(&format!("let m = coop_mat16x16<f16, A>(); {store} {STORE}"));
    let code = code + "var<workgroup> flags: array<vec2<bool>, 32>; var<workgroup> pairs: array<vec2f, 32>;";
    let text = cuda(&code);
    assert!(text.contains("vec2f_store(&pairs") && !text.contains("vec2b_store("), "{text}");
}

#[test]
fn matrices_that_are_only_loaded_and_stored_count() {
    // No type of a matrix is left once the uniform buffer has become a tensor.
    let code = "enable f16; enable wgpu_cooperative_matrix;
        @group(0) @binding(0) var<uniform> n: vec4u;
        @group(0) @binding(1) var<storage, read> x: array<f16>;
        @group(0) @binding(2) var<storage, read_write> z: array<f32>;
        @compute @workgroup_size(48) fn main() {
            let a = coopLoadT<coop_mat16x16<f16, A>>(&x[0], n.x);
            let b = coopLoadT<coop_mat16x16<f16, B>>(&x[0], n.x);
            let s = coopLoadT<coop_mat16x16<f32, C>>(&z[0], n.x);
            coopStoreT(coopMultiplyAdd(a, b, s), &z[0], n.x);
        }";
    assert!(parse(code).features().contains(&Feature::MatrixUnits));
    let cuda = device("cuda-c", Some("sm_90"));
    assert_eq!(lower(code, &cuda).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let lowered = lower(&code.replace("48", "32"), &cuda).unwrap();
    assert!(lowered.kernels[0].params[..3].iter().all(|param| param.alignment_bytes == 16));
}

#[test]
fn a_device_needs_the_sums_of_the_program() {
    let mut vulkan = device("spirv-shader", None);
    vulkan.properties = Options::new().with("cooperative_matrix", "16x16x16 float16 * float16 + float32");
    lower(GEMM, &vulkan).unwrap();
    assert_eq!(lower(FORMS, &vulkan).unwrap_err().kind(), ErrorKind::Unsupported);
    let both = vulkan.properties.with("cooperative_matrix", "16x16x16 float16 * float16 + float16");
    vulkan.properties = both;
    lower(FORMS, &vulkan).unwrap();
}
