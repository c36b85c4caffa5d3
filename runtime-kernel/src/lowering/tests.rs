use runtime_core::{DType, DeviceKind, abi};

use super::*;

const CODE: &str = "\
    alias T = f32; override N: u32 = 4;
    struct Scalars { a: T, n: i32 } var<immediate> scalars: Scalars;
    @group(0) @binding(0) var<storage, read_write> y: array<T>;
    var<workgroup> tile: array<T, N>;
    @compute @workgroup_size(N, 2) fn main(@builtin(local_invocation_index) i: u32) {
        tile[i] = scalars.a;
        workgroupBarrier();
        y[i] += tile[7 - i];
    }";

fn device(formats: &[&str]) -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, "Test Device");
    info.formats = formats.iter().map(|&format| format.into()).collect();
    info.limits.group_size = [1024, 1024, 64];
    info.limits.group_items = 1024;
    info.limits.shared_bytes = 1 << 14;
    info
}

fn lower(device: &DeviceInfo, options: &Options) -> Result<Lowered> {
    wgsl().lower(&PortableSource { code: CODE, path: "k.wgsl", options }, device)
}

#[test]
fn the_first_format_of_the_device_with_a_writer_is_chosen() {
    let target = |formats: &[&str]| wgsl().target(&device(formats));
    assert_eq!(target(&["cubin", "opencl-c", "spirv-shader"]), Some(CodeFormat::OPENCL_C));
    assert_eq!(target(&["ptx"]), None);
    assert_eq!(lower(&device(&["ptx"]), &Options::new()).unwrap_err().kind(), ErrorKind::Unsupported);
    for (format, sizes) in [("spirv-shader", false), ("opencl-c", true), ("cuda-c", true), ("c", true)] {
        let lowered = lower(&device(&[format]), &Options::new()).unwrap();
        let [kernel] = &lowered.kernels[..] else { panic!("one entry point") };
        assert_eq!((lowered.format.as_str(), kernel.name.as_str()), (format, "main"));
        assert_eq!((kernel.tensor_sizes, kernel.group_size, kernel.shared_bytes), (sizes, [4, 2, 1], 16));
        let dtypes: Vec<_> = kernel.params.iter().map(|param| param.param.dtype).collect();
        assert_eq!(dtypes, [Some(DType::F32), Some(DType::F32), Some(DType::I32)]);
        assert_eq!(lowered.options.text("convention"), (format == "c").then_some("groups"));
    }
}

#[test]
fn subgroups_select_a_later_version_of_opencl_c() {
    let code = "enable subgroups;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
            y[i] = subgroupAdd(i);
        }";
    for (version, word) in [("OpenCL 2.1 Device", "-cl-std=CL2.0"), ("OpenCL 3.0 Device", "-cl-std=CL3.0")] {
        let mut device = device(&["opencl-c"]);
        device.properties.push("opencl_version", version);
        let options = Options::new();
        let portable = PortableSource { code, path: "k.wgsl", options: &options };
        let lowered = wgsl().lower(&portable, &device).unwrap();
        assert_eq!(lowered.options.text("build_options"), Some(word));
        assert_eq!(lower(&device, &options).unwrap().options.text("build_options"), None);
        device.properties.push("extensions", "cl_khr_fp64 cl_khr_icd");
        let lowered = wgsl().lower(&portable, &device).unwrap();
        assert_eq!(lowered.options.text("build_options"), None, "subgroups are emulated");
        assert!(!String::from_utf8(lowered.code).unwrap().contains("sub_group"));
    }
}

#[test]
fn a_required_subgroup_size_is_that_of_the_device_or_emulated() {
    let code = "enable subgroups;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(32) fn main(@builtin(subgroup_size) size: u32) { y[0] = size + subgroupAdd(1u); }";
    let lower = |format: &str, property: Option<i64>, size: i64| {
        let mut device = device(&[format]);
        if let Some(size) = property {
            device.properties.push("warp_size", size);
        }
        let options = Options::new().with("subgroup_size", size);
        wgsl().lower(&PortableSource { code, path: "k.wgsl", options: &options }, &device)
    };
    assert!(lower("cuda-c", Some(32), 32).is_ok());
    let error = lower("cuda-c", Some(32), 64).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("requires subgroups of 64 items, but those of"), "{error}");
    assert!(lower("cuda-c", None, 64).unwrap_err().message().contains("an unknown number of"));
    assert!(lower("c", None, 64).is_ok());
}

#[test]
fn workgroup_memory_of_cuda_c_is_limited_below_that_of_the_device() {
    let code = "var<workgroup> w: array<u32, 12289>;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) { w[i] = i; y[i] = w[i]; }";
    let lower = |format: &str| {
        let mut device = device(&[format]);
        device.limits.shared_bytes = 227 << 10;
        wgsl().lower(&PortableSource { code, path: "k.wgsl", options: &Options::new() }, &device)
    };
    assert!(lower("opencl-c").is_ok());
    assert!(
        lower("cuda-c")
            .unwrap_err()
            .message()
            .ends_with("49156 bytes, but the limit of Test Device is 49152 bytes")
    );
}

#[test]
fn private_memory_fits_the_stack_of_a_thread() {
    let code = |elements: u32| {
        format!(
            "var<private> p: array<u32, {elements}>;
            fn helper(i: u32) -> u32 {{ var a: array<u32, 1024>; a[i] = i; return a[i / 2]; }}
            @group(0) @binding(0) var<storage, read_write> y: array<u32>;
            @compute @workgroup_size(256) fn main(@builtin(local_invocation_index) i: u32) {{
                p[i] = i;
                y[i] = p[i / 2] + helper(i);
            }}"
        )
    };
    let lower = |elements: u32, stack: Option<i64>| {
        let mut device = device(&["opencl-c"]);
        stack.into_iter().for_each(|bytes| device.properties.push("thread_stack_bytes", bytes));
        let (code, options) = (code(elements), Options::new());
        wgsl().lower(&PortableSource { code: &code, path: "k.wgsl", options: &options }, &device)
    };
    // Half the stack is 16 KiB per invocation; the helper takes 4 KiB of it.
    assert!(lower(3072, Some(8 << 20)).is_ok());
    let error = lower(3073, Some(8 << 20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfResources);
    assert_eq!(
        error.message(),
        "entry point \"main\" needs 16388 bytes of private memory per invocation, but with work-groups of 256 Test \
         Device has 16384; use smaller arrays or a smaller work-group"
    );
    assert!(lower(100_000, None).is_ok());
    assert!(lower(200_000, None).unwrap_err().message().contains("has 524288; use smaller arrays"));
}

#[test]
fn gpus_flush_subnormal_numbers() {
    let flushes = |kind: &str| {
        let mut device = device(&["opencl-c"]);
        device.properties.push("type", kind);
        let lowered = lower(&device, &Options::new()).unwrap();
        lowered.options.texts("build_options").any(|option| option == "-cl-denorms-are-zero")
    };
    assert!(flushes("gpu") && !flushes("cpu"));
}

#[test]
fn options_reach_the_kernel() {
    let options = Options::new().with("constant", "N=2").with("constant", "N=8").with("element", "f64");
    let mut device = device(&["opencl-c"]);
    device.capabilities.0 = abi::CAP_F64;
    let lowered = lower(&device, &options).unwrap();
    assert_eq!((lowered.kernels[0].group_size, lowered.kernels[0].shared_bytes), ([8, 2, 1], 64));
    assert_eq!(lowered.kernels[0].params[0].param.dtype, Some(DType::F64));
    let unchecked = lower(&device, &Options::new().with("unchecked", true)).unwrap();
    assert_ne!(unchecked.code, lower(&device, &Options::new()).unwrap().code);
    let error = lower(&device, &Options::new().with("element", "float")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn proofs_are_asserted_in_every_language() {
    let options = Options::new().with("assert_proofs", true);
    for (format, word, reports) in [
        ("c", "proven_(", false),
        ("cuda-c", "proven_(", false),
        ("opencl-c", "atomic_max(", true),
        ("spirv-shader", "report", true),
    ] {
        let device = device(&[format]);
        let has_word =
            |lowered: &Lowered| lowered.code.windows(word.len()).any(|letters| letters == word.as_bytes());
        let (plain, asserted) = (lower(&device, &Options::new()).unwrap(), lower(&device, &options).unwrap());
        assert!(!has_word(&plain) && has_word(&asserted), "{format}");
        let [kernel] = &asserted.kernels[..] else { panic!("one entry point") };
        assert_eq!(kernel.reports_on.as_deref(), reports.then_some("k.wgsl"), "{format}");
        assert_eq!(kernel.params, plain.kernels[0].params, "a launch is the same");
        assert_eq!(plain.kernels[0].reports_on, None);
    }
}

#[test]
fn zeroing_of_workgroup_memory_can_be_turned_off() {
    let code = "var<workgroup> w: u32; @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[i] = w; }";
    let zeroes = |options: &Options| {
        let portable = PortableSource { code, path: "k.wgsl", options };
        let lowered = wgsl().lower(&portable, &device(&["opencl-c"])).unwrap();
        String::from_utf8(lowered.code).unwrap().contains("barrier(")
    };
    let options = Options::new().with("zero_workgroup_memory", false);
    let lowered =
        wgsl().lower(&PortableSource { code, path: "k.wgsl", options: &options }, &device(&["c"])).unwrap();
    let text = String::from_utf8(lowered.code).unwrap();
    assert!(text.contains("memset(&"), "the host has no memory without a value: {text}");
    assert!(zeroes(&Options::new()) && zeroes(&Options::new().with("zero_workgroup_memory", true)));
    assert!(!zeroes(&Options::new().with("zero_workgroup_memory", false)));
}

#[test]
fn launch_bounds_have_the_least_number_of_groups_on_cuda() {
    let lowered = |format: &str, options: &Options| {
        let lowered = lower(&device(&[format]), options)?;
        Ok::<_, Error>(String::from_utf8_lossy(&lowered.code).into_owned())
    };
    let groups = |groups: i64| Options::new().with(MIN_GROUPS, groups);
    let bounds = |options: &Options| {
        let text = lowered("cuda-c", options).unwrap();
        let (_, rest) = text.split_once("__launch_bounds__(").unwrap();
        rest.split_once(')').unwrap().0.to_owned()
    };
    assert_eq!(bounds(&Options::new()), "8");
    assert_eq!(bounds(&groups(0)), "8");
    assert_eq!(bounds(&groups(3)), "8, 3");
    assert_eq!(bounds(&groups(3).with("assert_proofs", true)), "8, 3");
    for format in ["opencl-c", "c", "spirv-shader"] {
        assert_eq!(
            lowered(format, &groups(3)).unwrap(),
            lowered(format, &Options::new()).unwrap(),
            "{format}"
        );
    }
    for wrong in [-1, 33] {
        let error = lowered("cuda-c", &groups(wrong)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("0 to 32"), "{error}");
    }
}

#[test]
fn missing_device_features_are_errors() {
    let refused = |device: &DeviceInfo, options: &Options, kind, expected: &str| {
        let error = lower(device, options).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(expected), "{error}\nhas not: {expected}");
    };
    let (invalid, unsupported) = (ErrorKind::InvalidArgument, ErrorKind::Unsupported);
    let good = device(&["c"]);
    let f16 = Options::new().with("element", "f16");
    refused(&good, &f16, unsupported, "the kernel uses f16, which Test Device does not support");
    let large = |value| Options::new().with("constant", value);
    refused(
        &good,
        &large("N=1025"),
        invalid,
        "work-groups of [1025, 2, 1], but the limit of Test Device is [1024",
    );
    refused(
        &good,
        &large("N=1000"),
        invalid,
        "work-groups of 2000 items, but the limit of Test Device is 1024 items",
    );
    let mut small = device(&["c"]);
    small.limits.shared_bytes = 15;
    refused(
        &small,
        &Options::new(),
        ErrorKind::OutOfResources,
        "workgroup memory of 16 bytes, but the limit of Test Device is 15 bytes",
    );
}

/// A device whose groups have at most 16 items.
fn small_groups() -> DeviceInfo {
    let mut device = device(&["opencl-c"]);
    device.limits.group_size = [16; 3];
    device.limits.group_items = 16;
    device
}

#[test]
fn groups_larger_than_the_device_run_as_loops_in_fewer_work_items() {
    let large = Options::new().with("constant", "N=64");
    let lowered = |device: &DeviceInfo, options: &Options| {
        let lowered = lower(device, options).unwrap();
        let [kernel] = &lowered.kernels[..] else { panic!("one entry point") };
        (kernel.group_size, kernel.work_items, String::from_utf8(lowered.code).unwrap())
    };
    let (size, work_items, text) = lowered(&small_groups(), &large);
    assert_eq!((size, work_items), ([64, 2, 1], Some([8, 2, 1])), "as many as the device allows");
    assert!(
        text.contains("reqd_work_group_size(8, 2, 1)") && text.contains("__local array_f32_64"),
        "{text}"
    );
    assert_eq!(text.matches("barrier(").count(), 1, "{text}");
    let mut processor = small_groups();
    processor.properties.push("type", "cpu");
    let (_, work_items, text) = lowered(&processor, &large);
    assert_eq!(work_items, Some([1, 1, 1]), "one thread runs a group of a processor in any case");
    assert!(text.contains("reqd_work_group_size(1, 1, 1)") && !text.contains("barrier("), "{text}");
    let (_, work_items, text) = lowered(&small_groups(), &Options::new());
    assert!(work_items.is_none() && text.contains("reqd_work_group_size(4, 2, 1)"), "{text}");
    let (_, work_items, _) = lowered(&small_groups(), &Options::new().with("work_items", "4"));
    assert_eq!(work_items, Some([2, 2, 1]), "on request, small groups too");
}

#[test]
fn groups_that_cannot_run_as_loops_are_refused_with_the_reason() {
    let refused = |device: &DeviceInfo, code: &str| {
        let portable = PortableSource { code, path: "k.wgsl", options: &Options::new() };
        wgsl().lower(&portable, device).unwrap_err()
    };
    let kernel = |body: &str| {
        format!(
            "enable subgroups; @group(0) @binding(0) var<storage, read_write> y: array<u32>;
            @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
        )
    };
    let error = refused(&small_groups(), &kernel("y[i] = subgroupAdd(i);"));
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let words =
        "k.wgsl:2: in OpenCL C, a subgroup operation in a work-group that runs as loops is not supported";
    assert!(error.message().contains(words), "{error}");
    let large = "var a: array<u32, 4096>; a[i] = i; workgroupBarrier(); y[i] = a[i / 2u];";
    let error = refused(&small_groups(), &kernel(large));
    assert_eq!(error.kind(), ErrorKind::OutOfResources);
    assert!(error.message().contains("but a work-item that runs them in a loop has 32768"), "{error}");
    let mut other = small_groups();
    other.formats = vec![CodeFormat::SPIRV_SHADER];
    let error = refused(&other, &kernel("y[i] = i;"));
    assert!(
        error.message().contains("work-groups of [64, 1, 1], but the limit of Test Device is [16"),
        "{error}"
    );
}
