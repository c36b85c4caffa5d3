//! Every kernel of `kernels/embedded`, and portable kernels at small sizes, against the references on the host.

use serde_json::Value;

use crate::Case;
use crate::fixture::{path, rows};

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

/// With sizes that leave parts of work-groups empty, work-group memory and barriers.
fn portable_kernels_are_right(board: &str) {
    let runs: [&[&str]; 6] = [
        &["saxpy", "--set", "n=1000"],
        &["vector_add", "--set", "n=77", "--element", "i32"],
        &["matmul", "--set", "m=17", "--set", "n=19", "--set", "k=9"],
        &["reduction", "--set", "n=777"],
        &["softmax", "--set", "rows=2", "--set", "columns=100"],
        &["transpose", "--set", "rows=33", "--set", "columns=20"],
    ];
    for run in runs {
        let spec = path(&format!("kernels/{}.toml", run[0]));
        check(&rows(board, &[&[spec.as_str()], &run[1..]].concat()), 1);
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
