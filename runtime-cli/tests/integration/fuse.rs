//! `runtime fuse`: kernels on each other's results, one by one beside fused.

use std::path::Path;

use serde_json::Value;

use super::fixture::{Finished, Folder, SCALE, command, runtime};

/// Few and short samples.
const FAST: [&str; 6] = ["--repeat", "2", "--number", "1", "--warmup", "1"];
const ROWS: [&str; 4] = ["--set", "rows=5", "--set", "columns=301"];
const ELEMENTS: [&str; 2] = ["--set", "n=1003"];

fn specs(kernels: &[&str]) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    kernels.iter().map(|name| folder.join(name).with_extension("toml").display().to_string()).collect()
}

/// Fuses kernels of the repository on the host.
fn fuse(kernels: &[&str], more: &[&[&str]]) -> Finished {
    let specs = specs(kernels);
    let arguments = ["fuse", "--device", "host"].into_iter().chain(specs.iter().map(String::as_str));
    runtime(&arguments.chain(FAST).chain(more.concat()).collect::<Vec<_>>())
}

/// The kernels of a chain, its further arguments, and what the command prints.
type Chain<'a> = (&'a [&'a str], &'a [&'a [&'a str]], &'a str);

#[test]
fn chains_are_right_as_the_references_say() {
    let chains: [Chain<'_>; 5] = [
        (&["bias", "gelu", "residual", "layer_norm"], &[&ROWS], "layer_norm.out right (1505 elements"),
        (&["scale_mask", "softmax"], &[&ROWS], "softmax.out right (1505 elements"),
        (&["blur", "sharpen"], &[&ELEMENTS], "sharpen.out right (1003 elements"),
        (
            &["vector_add", "multiply_subtract", "relu", "scale"],
            &[&ELEMENTS, &["--link", "multiply_subtract.b=vector_add.b"]],
            "scale.out right (1003 elements",
        ),
        (
            &["vector_add", "relu", "scale", "multiply_subtract"],
            &[&ELEMENTS, &["--link", "scale.x=vector_add.c", "--link", "multiply_subtract.a=relu.out"]],
            "multiply_subtract.a = relu.out\n",
        ),
    ];
    for (kernels, more, expected) in chains {
        let run = fuse(kernels, more);
        assert!(run.code == 0 && run.stdout.contains(expected), "{kernels:?}: {run:?}");
        let results = run.stdout.lines().filter(|line| line.contains("one by one on host:0: "));
        let results = results.filter(|line| !line.contains(" kernels, "));
        assert_eq!(results.clone().count(), kernels.len(), "{run:?}");
        assert!(results.clone().all(|line| line.contains(" right (")), "{run:?}");
    }
}

#[test]
fn a_tensor_that_a_later_kernel_overwrites_is_compared_once() {
    let run = fuse(&["scale", "saxpy"], &[&ELEMENTS, &["--link", "saxpy.y=scale.x"]]);
    // saxpy.x is scale.out, and saxpy adds it to the input of scale.
    assert!(run.code == 0 && run.stdout.contains("saxpy.y = scale.x\nsaxpy.x = scale.out\n"), "{run:?}");
    assert!(run.stdout.contains("scale.out right") && run.stdout.contains("saxpy.y right"), "{run:?}");
}

#[test]
fn both_ways_are_timed_and_their_traffic_is_stated() {
    let report = |more: &[&str]| {
        let run = fuse(&["relu", "scale"], &[&["--set", "n=1000", "--json", "-"], more]);
        assert_eq!(run.code, 0, "{run:?}");
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        report["rows"][0].clone()
    };
    let row = report(&[]);
    let (fusion, fused) = (&row["fusion"], &row["measurement"]);
    assert_eq!(row["kernel"]["name"], "relu → scale");
    assert_eq!((row["status"].as_str(), &fusion["same_bits"]), (Some("right"), &Value::Bool(true)));
    // Each kernel reads and writes 4000 bytes; the fused one need not write what only `scale` reads.
    assert_eq!((&fusion["one_by_one"]["bytes"], &fused["bytes"]), (&16000.0.into(), &8000.0.into()));
    assert_eq!(fusion["promoted"], serde_json::json!(["relu.out"]));
    assert_eq!(fusion["kernels"].as_array().unwrap().len(), 1);
    for measurement in [fused, &fusion["one_by_one"]] {
        assert_eq!(measurement["samples_ns"].as_array().unwrap().len(), 2);
        assert_eq!(measurement["clock"], "host_wall");
    }
    let median = |measurement: &Value| measurement["statistics"]["median_ns"].as_f64().unwrap();
    let ratio = median(fused) / median(&fusion["one_by_one"]);
    assert!((fusion["ratio"].as_f64().unwrap() - ratio).abs() < 1e-9, "{row}");
    let kept = report(&["--keep"]);
    assert_eq!(
        (&kept["measurement"]["bytes"], kept["fusion"]["promoted"].as_array().unwrap().len()),
        (&12000.0.into(), 0)
    );
}

#[test]
fn the_text_names_clock_traffic_and_speed() {
    let run = fuse(&["relu", "scale"], &[&["--set", "n=1000"]]);
    for line in [
        "scale.x = relu.out\n",
        "fused on host:0: relu.out is not written\n",
        "relu → scale fused, 1 promotion\n",
        "one by one on host:0: 2 kernels, ",
        "fused on host:0: 1 kernel, ",
        " by host_wall, ",
        "GB/s of the 0.01600 MB that they must move",
        "GB/s of the 0.008000 MB that it must move",
        "× as fast as one by one",
    ] {
        assert!(run.stdout.contains(line), "{line}: {run:?}");
    }
}

#[test]
fn seams_that_stay_open_have_a_reason() {
    let run = fuse(&["blur", "sharpen"], &[&ELEMENTS]);
    assert!(run.stdout.contains("blur | sharpen not: "), "{run:?}");
    assert!(run.stdout.contains("fused on host:0: 2 kernels, "), "{run:?}");
    let alone = fuse(&["relu"], &[&ELEMENTS]);
    assert!(alone.code == 0 && alone.stdout.contains("relu alone\n"), "{alone:?}");
}

#[test]
fn specs_that_cannot_be_linked_are_refused_with_the_remedy() {
    let refused = |kernels: &[&str], more: &[&str]| {
        let run = fuse(kernels, &[more]);
        assert!(run.code == 2 && run.stdout.is_empty(), "{run:?}");
        run.stderr
    };
    assert!(refused(&["relu", "softmax"], &[]).contains("change the sizes with --set"));
    let unknown = refused(&["relu", "scale"], &["--link", "scale.y=relu.out"]);
    assert!(
        unknown.contains("--link scale.y=relu.out: ") && unknown.contains("no tensor \"y\""),
        "{unknown}"
    );
    assert!(refused(&["relu", "scale"], &["--link", "scale"]).contains("expected B.x=A.y"));
    assert!(refused(&["relu", "scale"], &["--set", "m=3"]).contains('m'));
    let cycle = refused(&["relu", "scale"], &["--link", "relu.x=scale.out"]);
    assert!(cycle.contains("scale does not come before relu; exchange them"), "{cycle}");
    let absent = refused(&["relu", "no_such_kernel"], &[]);
    assert!(absent.contains("no_such_kernel.toml"), "{absent}");
    assert!(refused(&["relu"], &["--energy"]).contains("see `runtime eval`"));
    let relu = specs(&["relu"]);
    let device = runtime(&["fuse", &relu[0], "--device", "no_such_device"]);
    assert!(
        device.code == 2 && device.stderr.contains("no target \"no_such_device\"; valid: host"),
        "{device:?}"
    );
    let none = runtime(&["fuse"]);
    assert!(none.code == 2 && none.stderr.contains("<SPEC>"), "{none:?}");
}

#[test]
fn code_is_printed_without_a_device() {
    let emit = |kernels: &[&str], format: &str| {
        let specs = specs(kernels);
        let arguments = ["fuse", "--emit", format].into_iter().chain(specs.iter().map(String::as_str));
        let mut command = command(&arguments.collect::<Vec<_>>());
        // No backend, so no device.
        let output = command.env("RUNTIME_BACKENDS", "").output().unwrap();
        (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
    };
    for (format, word) in [
        ("wgsl", "fn relu_scale("),
        ("c", "relu_scale"),
        ("cuda-c", "__global__"),
        ("opencl-c", "__kernel"),
        ("spirv", "relu_scale"),
    ] {
        let (code, stdout, stderr) = emit(&["relu", "scale"], format);
        assert!(code == Some(0) && stderr.is_empty(), "{format}: {stderr}");
        assert!(String::from_utf8_lossy(&stdout).contains(word), "{format}");
        assert!(format != "spirv" || stdout.starts_with(&0x0723_0203_u32.to_le_bytes()), "only the module");
    }
    let (code, stdout, stderr) = emit(&["blur", "sharpen"], "wgsl");
    assert!(code == Some(1) && stdout.is_empty() && stderr.contains("blur | sharpen not: "), "{stderr}");
    let folder = Folder::new();
    let native = folder.runtime(&["fuse", "--emit", "wgsl", "scale.toml"]);
    assert!(
        native.code == 2 && native.stderr.contains("scale cannot be fused without a device"),
        "{native:?}"
    );
}

/// `y = x * f` for the first `n` elements, whose numbers are in a uniform buffer.
fn by_value(name: &str) -> [(String, String); 3] {
    let code = format!(
        "struct P {{ n: u32, f: u32 }}
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> params: P;
@compute @workgroup_size(16) fn {name}(@builtin(global_invocation_id) id: vec3u) {{
    if id.x < params.n {{ y[id.x] = x[id.x] * params.f; }}
}}"
    );
    let reference = format!(
        "void {name}(const unsigned *x, unsigned *y, unsigned n, unsigned f) {{
    for (unsigned i = 0; i < n; i++) y[i] = x[i] * f;
}}"
    );
    let spec = format!(
        "version = 1
kernel = {{ path = \"{name}.wgsl\", entry = \"{name}\", options = {{ by_value = \"params\" }} }}
launch = {{ groups = 4 }}
reference = {{ path = \"{name}.c\", entry = \"{name}\" }}
arg = [
    {{ name = \"x\", dtype = \"u32\", shape = [64], init = \"arange\" }},
    {{ name = \"y\", dtype = \"u32\", shape = [64], use = \"write\" }},
    {{ name = \"n\", scalar = \"u32\", value = 64 }},
    {{ name = \"f\", scalar = \"u32\", value = 3 }},
]
"
    );
    [("wgsl", code), ("c", reference), ("toml", spec)].map(|(end, text)| (format!("{name}.{end}"), text))
}

#[test]
fn by_value_buffers_fuse_on_a_device_as_they_are_emitted() {
    let folder = Folder::new();
    for (file, text) in ["first", "second"].into_iter().flat_map(by_value) {
        folder.write(&file, &text);
    }
    let specs = ["fuse", "first.toml", "second.toml"];
    let emitted = folder.runtime(&[&specs[..], &["--emit", "wgsl"]].concat());
    assert!(emitted.code == 0 && emitted.stdout.contains("fn first_second("), "{emitted:?}");
    let run = folder.runtime(&[&specs[..], &["--device", "host"], &FAST].concat());
    assert!(run.code == 0 && run.stdout.contains("1 kernel, "), "{run:?}");
    assert!(run.stdout.contains("second.y right"), "{run:?}");
}

#[test]
fn outputs_fail_before_anything_runs() {
    let folder = Folder::new();
    let run = |more: &[&str]| {
        let arguments = [&["fuse", "scale.toml", "--device", "host"], &FAST[..], more].concat();
        folder.runtime(&arguments)
    };
    let overwriting = run(&["--json", "scale.toml"]);
    assert!(overwriting.code == 2 && overwriting.stderr.contains("which is an input"), "{overwriting:?}");
    let both = run(&["--json", "-", "--csv", "-"]);
    assert!(both.code == 2 && both.stderr.contains("only one output can go to standard output"), "{both:?}");
    let absent = run(&["--json", "missing/rows.json"]);
    assert!(absent.code == 2 && absent.stderr.contains("missing/rows.json"), "{absent:?}");
    let files = run(&["--json", "rows.json", "--csv", "rows.csv"]);
    assert!(files.code == 0 && files.stdout.contains("one by one on host:0: "), "{files:?}");
    assert!(folder.read("rows.json").contains("\"complete\": true"), "{files:?}");
    assert!(folder.read("rows.csv").lines().count() == 2, "{files:?}");
    #[cfg(target_os = "linux")]
    {
        let full = run(&["--json", "/dev/full"]);
        assert!(full.code == 2 && full.stderr.contains("cannot write /dev/full"), "{full:?}");
    }
}

#[test]
fn a_kernel_without_a_reference_is_refused_unless_nothing_is_compared() {
    let folder = Folder::new();
    let text = SCALE;
    folder.write("bare.toml", &text[..text.find("[reference]").unwrap()]);
    let run = |more: &[&str]| {
        folder.runtime(&[&["fuse", "bare.toml", "--device", "host"], &FAST[..], more].concat())
    };
    let refused = run(&[]);
    assert!(refused.code == 2 && refused.stderr.contains("scale has no [reference]"), "{refused:?}");
    let unchecked = run(&["--no-validate"]);
    assert!(unchecked.code == 0 && unchecked.stdout.contains("1 kernel, "), "{unchecked:?}");
}

#[test]
fn chains_refuse_initial_contents_before_each_call() {
    let folder = Folder::new();
    folder.write(
        "scale.toml",
        &SCALE.replace("use = \"write\"", "use = \"readwrite\"\neach_call = \"initial\""),
    );
    let run = folder.runtime(&["fuse", "--device", "host", "scale.toml", "scale.toml"]);
    assert!(
        run.code != 0 && run.stderr.contains("scale: each_call = \"initial\" is not supported in a chain"),
        "{run:?}"
    );
}
