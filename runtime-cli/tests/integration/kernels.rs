//! Every kernel of `kernels/` on every available device, at awkward sizes and in every element type that it supports.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;
use test_process::sample;

use crate::fixture::{Finished, command_with};

/// A kernel with the `--set` overrides of each run.
struct Sizes {
    kernel: &'static str,
    runs: &'static [&'static [&'static str]],
    /// Element types beside f32.
    elements: &'static [&'static str],
}

const FLOATS: &[&str] = &["f16", "f64"];
const NUMBERS: &[&str] = &["f16", "f64", "i32"];

const SIZES: &[Sizes] = &[
    Sizes {
        kernel: "bias",
        runs: &[
            &["rows=1", "columns=1"],
            &["rows=5", "columns=1003"],
            &["rows=3", "columns=100", "GROUP=64"],
        ],
        elements: NUMBERS,
    },
    Sizes {
        kernel: "blur",
        runs: &[&["n=1"], &["n=255"], &["n=100003"], &["n=1000", "GROUP=32"]],
        elements: FLOATS,
    },
    Sizes {
        kernel: "convolution",
        runs: &[
            &["height=1", "width=1"],
            &["height=67", "width=131"],
            &["height=33", "width=65", "GROUP_WIDTH=16", "GROUP_HEIGHT=2"],
        ],
        elements: NUMBERS,
    },
    Sizes {
        kernel: "gelu",
        runs: &[
            &["rows=1", "columns=1"],
            &["rows=5", "columns=1003"],
            &["rows=3", "columns=100", "GROUP=64"],
        ],
        elements: FLOATS,
    },
    Sizes {
        kernel: "gemm_f32",
        runs: &[&["m=4", "n=4", "k=4"], &["m=132", "n=260", "k=20"], &["m=128", "n=256", "k=16"]],
        elements: &[],
    },
    Sizes {
        kernel: "histogram",
        runs: &[&["n=1"], &["n=100003"], &["n=70001", "BINS=257", "GROUP=64"]],
        elements: &[],
    },
    Sizes {
        kernel: "layer_norm",
        runs: &[
            &["rows=1", "columns=1"],
            &["rows=5", "columns=1003"],
            &["rows=3", "columns=100", "GROUP=64"],
        ],
        elements: FLOATS,
    },
    Sizes {
        kernel: "mandelbrot",
        runs: &[&["width=1", "height=1"], &["width=301", "height=203"]],
        elements: &["f64"],
    },
    Sizes {
        kernel: "matmul",
        runs: &[
            &["m=1", "n=1", "k=1"],
            &["m=67", "n=45", "k=81"],
            &["m=130", "n=33", "k=17", "TILE=8"],
            &["m=64", "n=128", "k=64"],
        ],
        elements: NUMBERS,
    },
    Sizes {
        kernel: "multiply_subtract",
        runs: &[&["n=1"], &["n=255"], &["n=100003"], &["n=1000", "GROUP=32"]],
        elements: NUMBERS,
    },
    Sizes { kernel: "n_body", runs: &[&["n=1"], &["n=777"], &["n=100", "GROUP=64"]], elements: &["f64"] },
    Sizes {
        kernel: "reduction",
        runs: &[&["n=1"], &["n=100003"], &["n=4096"], &["n=5000", "GROUP=64", "ITEMS=3"]],
        elements: NUMBERS,
    },
    Sizes {
        kernel: "relu",
        runs: &[&["n=1"], &["n=255"], &["n=100003"], &["n=1000", "GROUP=32"]],
        elements: NUMBERS,
    },
    Sizes {
        kernel: "residual",
        runs: &[
            &["rows=1", "columns=1"],
            &["rows=5", "columns=1003"],
            &["rows=3", "columns=100", "GROUP=64"],
        ],
        elements: NUMBERS,
    },
    Sizes {
        kernel: "saxpy",
        runs: &[&["n=1"], &["n=255"], &["n=100003"], &["n=1000", "GROUP=32"]],
        elements: NUMBERS,
    },
    Sizes {
        kernel: "scale",
        runs: &[&["n=1"], &["n=255"], &["n=100003"], &["n=1000", "GROUP=32"]],
        elements: FLOATS,
    },
    Sizes {
        kernel: "scale_mask",
        runs: &[
            &["rows=1", "columns=1"],
            &["rows=5", "columns=1003"],
            &["rows=3", "columns=100", "GROUP=64"],
        ],
        elements: FLOATS,
    },
    Sizes {
        kernel: "scan",
        runs: &[&["n=1"], &["n=100003"], &["n=2048"], &["n=5000", "GROUP=64", "ITEMS=5"]],
        elements: NUMBERS,
    },
    Sizes { kernel: "scan_offset", runs: &[&["n=1"], &["n=100003"]], elements: NUMBERS },
    Sizes {
        kernel: "sharpen",
        runs: &[&["n=1"], &["n=255"], &["n=100003"], &["n=1000", "GROUP=32"]],
        elements: FLOATS,
    },
    Sizes {
        kernel: "softmax",
        runs: &[
            &["rows=1", "columns=1"],
            &["rows=5", "columns=1003"],
            &["rows=3", "columns=100", "GROUP=64"],
        ],
        elements: FLOATS,
    },
    Sizes {
        kernel: "transpose",
        runs: &[
            &["rows=1", "columns=1"],
            &["rows=67", "columns=131"],
            &["rows=100", "columns=30", "TILE=16", "ROWS=4"],
        ],
        elements: NUMBERS,
    },
    Sizes { kernel: "vector_add", runs: &[&["n=1"], &["n=255"], &["n=100003"]], elements: NUMBERS },
];

fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels")
}

/// The backends next to the command.
fn backends() -> Vec<String> {
    let folder = Path::new(env!("CARGO_BIN_EXE_runtime")).parent().unwrap();
    let prefix = format!("{}runtime_", std::env::consts::DLL_PREFIX);
    let names = std::fs::read_dir(folder).unwrap().filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().ok()?;
        let name = name.strip_prefix(&prefix)?.strip_suffix(std::env::consts::DLL_SUFFIX)?;
        Some(name.to_owned())
    });
    // The null backend simulates several devices, none of which runs code.
    names.filter(|name| name != "null").collect()
}

/// A modified copy of a kernel, its specification and its reference.
fn copied(kernel: &str, code: impl Fn(&str) -> String, spec: impl Fn(&str) -> String) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let copy = |file: String, change: &dyn Fn(&str) -> String| {
        let text = std::fs::read_to_string(kernels().join(&file)).unwrap();
        let changed = change(&text);
        std::fs::write(folder.path().join(file), changed).unwrap();
    };
    if let Some((group, _)) = kernel.split_once('/') {
        std::fs::create_dir(folder.path().join(group)).unwrap();
        copy(format!("{group}/reference.c"), &str::to_owned);
    }
    copy(format!("{kernel}.wgsl"), &code);
    copy(format!("{kernel}.toml"), &spec);
    copy("reference.c".to_owned(), &str::to_owned);
    folder
}

/// Replaces the first occurrence of `from`, which must exist.
fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

/// The rows of a short evaluation on all devices.
fn evaluate(folder: &Path, kernel: &str, changes: &[String]) -> (Finished, Vec<Value>) {
    let backends = backends();
    let backends: Vec<&str> = backends.iter().map(String::as_str).collect();
    evaluate_on(&backends, folder, kernel, changes)
}

/// The rows of a short evaluation on the devices of some backends.
fn evaluate_on(backends: &[&str], folder: &Path, kernel: &str, changes: &[String]) -> (Finished, Vec<Value>) {
    let spec = folder.join(kernel).with_extension("toml");
    let mut arguments = vec!["eval", spec.to_str().unwrap(), "--json", "-", "--repeat", "1", "--number", "1"];
    arguments.extend(["--warmup", "0"]);
    arguments.extend(changes.iter().map(String::as_str));
    let run: Finished = command_with(backends, &arguments).output().unwrap().into();
    let document: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    let rows = document["rows"].as_array().unwrap().clone();
    (run, rows)
}

/// The declared capabilities of each device.
static CAPABILITIES: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let backends = backends();
    let backends: Vec<&str> = backends.iter().map(String::as_str).collect();
    let run: Finished = command_with(&backends, &["devices", "--json"]).output().unwrap().into();
    let document: Value =
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"));
    let devices = document["targets"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|target| target["devices"].as_array().unwrap().to_vec());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    devices
        .map(|device| {
            (text(&device["id"]), device["capabilities"].as_array().unwrap().iter().map(text).collect())
        })
        .collect()
});

/// Whether a device may lack an element type: it does not declare it. Every device has the 32-bit types.
fn may_lack(device: &str, element: Option<&str>) -> bool {
    let declared = |element: &str| CAPABILITIES[device].iter().any(|capability| capability == element);
    matches!(element, Some(float @ ("f16" | "f64")) if !declared(float))
}

/// Whether a target cannot express a kernel in an element type: SPIR-V's `Exp` exists for 16 and 32 bits only.
fn is_inexpressible(kernel: &str, device: &str, element: Option<&str>) -> bool {
    matches!(kernel, "softmax" | "gelu") && device.starts_with("vulkan") && element == Some("f64")
}

/// Checks that every row is right, or unsupported on a device that does not declare the element type.
fn check(folder: &Path, kernel: &str, set: &[&str], element: Option<&str>) {
    let mut changes: Vec<String> =
        set.iter().flat_map(|change| ["--set".to_owned(), (*change).to_owned()]).collect();
    changes.extend(element.iter().flat_map(|element| ["--element".to_owned(), (*element).to_owned()]));
    let (run, rows) = evaluate(folder, kernel, &changes);
    let mut hosts = 0;
    for row in &rows {
        let device = row["device"].as_str().unwrap();
        let is_host = device.starts_with("host");
        let lacks = (may_lack(device, element) || is_inexpressible(kernel, device, element))
            && row["status"] == "not_run"
            && row["error_kind"] == "Unsupported";
        assert!(lacks || row["status"] == "right", "{kernel} {set:?} {element:?}: {row:#}\n{}", run.stderr);
        hosts += usize::from(is_host);
    }
    assert!(hosts > 0, "the host has a row: {run:?}");
}

fn sizes(kernel: &str) -> &'static Sizes {
    SIZES.iter().find(|sizes| sizes.kernel == kernel).unwrap()
}

/// Checks a kernel on the host with its work-items in order, as the compiler optimises it and for a debugger.
fn check_in_order(sizes: &Sizes) {
    let mut changes = ["--device", "host", "--option", "serial_items=true"].map(str::to_owned).to_vec();
    let set = sizes.runs[1].iter().flat_map(|change| ["--set".to_owned(), (*change).to_owned()]);
    changes.extend(set);
    let debug = copied(sizes.kernel, str::to_owned, |spec| {
        replaced(spec, "\n\n[[arg]]", "\noptions = { debug = true }\n\n[[arg]]")
    });
    for folder in [&*kernels(), debug.path()] {
        let (run, rows) = evaluate_on(&["host"], folder, sizes.kernel, &changes);
        assert!(rows.len() == 1 && rows[0]["status"] == "right", "{}: {run:?}", sizes.kernel);
    }
}

#[test]
fn every_kernel_of_the_folder_is_tested() {
    let specs = std::fs::read_dir(kernels()).unwrap().map(|entry| entry.unwrap().path());
    let names = specs.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let names: BTreeSet<_> =
        names.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    let tested: BTreeSet<_> = SIZES.iter().map(|sizes| sizes.kernel.to_owned()).collect();
    assert_eq!(names, tested);
}

#[test]
fn kernels_for_matrix_units_are_right_on_the_host() {
    let folder = kernels().join("matrix_units");
    let attention: [&[&str]; 3] = [&["n=1", "heads=1"], &["n=77", "heads=2"], &["n=201", "heads=3"]];
    let attention = sample("sizes of attention", attention, 1).into_iter().map(|sizes| ("attention", sizes));
    let others: [(&str, &[&str]); 2] = [("forms", &[]), ("gemm", &["m=176", "n=144", "k=72"])];
    for (kernel, sizes) in others.into_iter().chain(attention) {
        let set = sizes.iter().flat_map(|size| ["--set".to_owned(), (*size).to_owned()]);
        let changes: Vec<_> = ["--device".to_owned(), "host".to_owned()].into_iter().chain(set).collect();
        let (run, rows) = evaluate_on(&["host"], &folder, kernel, &changes);
        assert!(rows.len() == 1 && rows[0]["status"] == "right", "{kernel} {sizes:?}: {run:?}");
    }
}

#[test]
fn attention_scales_its_sums_where_scores_grow() {
    let large = |spec: &str| spec.replace("range = [-2, 2]", "range = [-16, 16]");
    let folder = copied("matrix_units/attention", str::to_owned, large);
    let changes = ["--device", "host", "--set", "n=201", "--set", "heads=2"].map(str::to_owned);
    let (run, rows) = evaluate_on(&["host"], &folder.path().join("matrix_units"), "attention", &changes);
    assert!(rows.len() == 1 && rows[0]["status"] == "right", "{run:?}");
}

#[test]
fn attention_runs_in_subgroups_of_64() {
    let wide = |spec: &str| {
        let spec = spec
            .replace("subgroup_size = 32", "subgroup_size = 64")
            .replace("group_size = 128", "group_size = 256");
        spec.replace("[launch]", "[specialise]\nconstants = { SUBGROUP = 64 }\n\n[launch]")
    };
    let folder = copied("matrix_units/attention", str::to_owned, wide);
    let changes = ["--device", "host", "--set", "n=77", "--set", "heads=2"].map(str::to_owned);
    let (run, rows) = evaluate_on(&["host"], &folder.path().join("matrix_units"), "attention", &changes);
    assert!(rows.len() == 1 && rows[0]["status"] == "right", "{run:?}");
}

/// The first key has nearly all the weight and the value 0: the output is what the small weights of the others add.
#[test]
fn attention_adds_small_weights() {
    let of_files = |spec: &str| {
        let spec = spec.replace("init = \"random\"\nrange = [-2, 2]", "init = \"file:NAME.npy\"");
        ["q", "k", "v"]
            .iter()
            .fold(spec.replace("init = \"random\"", "init = \"file:NAME.npy\""), |spec, name| {
                replaced(&spec, "NAME", name)
            })
    };
    let folder = copied("matrix_units/attention", str::to_owned, of_files);
    let group = folder.path().join("matrix_units");
    // Half-precision 8, 10.5 and 1: the score of the first key is 10.5, and 0 of the others.
    let (keys, eight, first, one) = (2048, 0x4800_u16, 0x4940, 0x3c00);
    let write = |name: &str, element: &dyn Fn(usize, usize) -> u16| {
        let elements = (0..keys).flat_map(|key| (0..64).map(move |column| (key, column)));
        let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        let header = format!("{{'descr': '<f2', 'fortran_order': False, 'shape': (1, {keys}, 64), }}");
        file.extend(format!("{header:<117}\n").into_bytes());
        file.extend(elements.flat_map(|(key, column)| element(key, column).to_le_bytes()));
        std::fs::write(group.join(name), file).unwrap();
    };
    write("q.npy", &|_, column| if column == 0 { eight } else { 0 });
    write("k.npy", &|key, column| if key == 0 && column == 0 { first } else { 0 });
    write("v.npy", &|key, _| if key == 0 { 0 } else { one });
    let changes = ["--device", "host", "--set", "n=2048", "--set", "heads=1"].map(str::to_owned);
    let (run, rows) = evaluate_on(&["host"], &group, "attention", &changes);
    assert!(rows.len() == 1 && rows[0]["status"] == "right", "{run:?}");
}

#[test]
fn a_broken_kernel_is_detected() {
    for (name, from, to) in [("saxpy", "* x[i] +", "* x[i] -"), ("scan", "sums[lane - 1]", "sums[lane]")] {
        let folder = copied(name, |code| replaced(code, from, to), str::to_owned);
        let spec = folder.path().join(name).with_extension("toml");
        let run = command_with(&["host"], &["run", spec.to_str().unwrap(), "--set", "n=3001"]).output();
        let run = Finished::from(run.unwrap());
        assert!(run.code == 1 && run.stdout.contains("wrong"), "{run:?}");
    }
}

/// Awkward sizes, element types, and ways of running that a failure of any one shows: a part of each.
fn sweep(sizes: &Sizes) {
    let kernel = sizes.kernel;
    for set in sample(kernel, sizes.runs.iter().copied(), 2) {
        check(&kernels(), kernel, set, None);
    }
    for element in sample(kernel, sizes.elements.iter().copied(), 1) {
        check(&kernels(), kernel, sizes.runs[1], Some(element));
    }
    for way in sample(kernel, [check_proofs as fn(&Sizes), check_in_order], 1) {
        way(sizes);
    }
}

/// Checks every index that was proven in range: a wrong proof fails the run.
fn check_proofs(sizes: &Sizes) {
    let asserted = copied(sizes.kernel, str::to_owned, |spec| {
        replaced(spec, "\n\n[[arg]]", "\noptions = { assert_proofs = true }\n\n[[arg]]")
    });
    check(asserted.path(), sizes.kernel, sizes.runs[1], None);
}

/// One test per kernel, so that they run in parallel and a failure names the kernel.
macro_rules! kernels {
    ($($kernel:ident)*) => {$(
        #[test]
        fn $kernel() {
            sweep(sizes(stringify!($kernel)));
        }
    )*};
}

kernels!(bias blur convolution gelu gemm_f32 histogram layer_norm mandelbrot matmul multiply_subtract n_body reduction relu residual saxpy scale scale_mask scan scan_offset sharpen softmax transpose vector_add);
