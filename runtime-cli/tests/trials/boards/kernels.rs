//! Every kernel of `kernels/embedded`, and portable kernels at small sizes, against the references on the host.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Case;
use super::fixture::{path, rows};

pub(crate) const CASES: &[Case] = &[
    ("embedded_kernels_are_right", embedded_kernels_are_right),
    ("portable_kernels_are_right", portable_kernels_are_right),
];

fn embedded_kernels_are_right(board: &str) {
    let folder = path("kernels/embedded");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().display().to_string());
    let specs: Vec<String> = files.filter(|file| file.ends_with(".toml")).collect();
    assert!(specs.len() >= 5, "{specs:?}");
    check(&rows(board, &specs.iter().map(String::as_str).collect::<Vec<_>>()), specs.len());
}

/// Sizes that leave parts of work-groups empty.
const SIZES: [(&str, &str); 22] = [
    ("saxpy", "n=1000"),
    ("matmul", "m=17 n=19 k=9"),
    ("reduction", "n=777"),
    ("softmax", "rows=2 columns=100"),
    ("transpose", "rows=33 columns=20"),
    ("vector_add", "n=77"),
    ("bias", "rows=3 columns=101"),
    ("blur", "n=1003"),
    ("convolution", "height=19 width=37"),
    ("gelu", "rows=3 columns=101"),
    ("histogram", "n=1003"),
    ("layer_norm", "rows=3 columns=101"),
    ("mandelbrot", "width=13 height=7 most=20"),
    ("multiply_subtract", "n=1003"),
    ("n_body", "n=20"),
    ("relu", "n=1003"),
    ("residual", "rows=3 columns=101"),
    ("scale", "n=1003"),
    ("scale_mask", "rows=3 columns=101"),
    ("scan", "n=1003"),
    ("scan_offset", "n=1003"),
    ("sharpen", "n=1003"),
];

/// Every kernel on a board of each processor family, and some with barriers on the others.
fn portable_kernels_are_right(board: &str) {
    let files = std::fs::read_dir(path("kernels")).unwrap().map(|entry| entry.unwrap().path());
    let specs = files.filter(|file| file.extension().is_some_and(|extension| extension == "toml"));
    let names: BTreeSet<_> =
        specs.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    // A group of it needs 128 KiB of stack, more than the boards have.
    let known = SIZES.iter().map(|(kernel, _)| (*kernel).to_owned()).chain(["gemm_f32".to_owned()]);
    assert_eq!(names, known.collect());
    let has_all = super::BOARDS.contains(&board);
    let elements: &[&str] = if has_all { &["f32", "i32"] } else { &["i32"] };
    for element in elements {
        let spec = path("kernels/vector_add.toml");
        check(&rows(board, &[spec.as_str(), "--set", "n=77", "--element", element]), 1);
    }
    for (kernel, sizes) in &SIZES[..if has_all { SIZES.len() } else { 5 }] {
        let spec = path(&format!("kernels/{kernel}.toml"));
        let set = sizes.split(' ').flat_map(|size| ["--set", size]);
        check(&rows(board, &std::iter::once(spec.as_str()).chain(set).collect::<Vec<_>>()), 1);
    }
}

fn check(rows: &[Value], count: usize) {
    assert_eq!(rows.len(), count);
    for row in rows {
        let name = &row["kernel"]["name"];
        assert_eq!(row["status"], "right", "{name}: {}", row["reason"]);
        let counts = &row["counts"];
        assert_eq!(counts["clock"], "target-instructions", "{name}");
        assert!(counts["median"].as_f64().unwrap() > 10.0, "{name}: {counts}");
        assert!(counts["per_element"].as_f64().unwrap() > 0.0, "{name}: {counts}");
        // A count is no time.
        assert!(row["measurement"].is_null(), "{name}");
    }
}
