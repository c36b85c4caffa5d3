//! Rows for the tests of rooflines, pictures and pages.

use serde_json::{Value, json};

use crate::row::Row;

/// A right row on `host:0` with 2 GFLOP and 1 GB per call and these samples in nanoseconds, changed by `edit`.
pub(crate) fn row(kernel: &str, samples: &[f64], edit: impl FnOnce(&mut Value)) -> Row {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    let mut value = json!({
        "spec": "k.toml",
        "kernel": { "name": kernel, "path": "k.c", "entry": "k", "format": "c", "options": {} },
        "device": "host:0",
        "device_info": {
            "id": "host:0", "target": "host", "sub": null, "name": "CPU", "arch": "x86-64", "uuid": null, "pci_address": null,
            "driver_version": "Linux 6", "clock_hz": null, "compute_units": 2,
        },
        "code": null,
        "settings": {
            "repeat": samples.len(), "number": null, "min_repeat_ms": 1.0, "warmup": null, "warmup_ms": 10.0, "validate": true,
            "clock": "auto", "flush_cache": "never", "cooldown_ms": 0.0, "budget_s": 10.0,
        },
        "status": "right", "reason": null, "error_kind": null, "outcome": { "kind": "ok" }, "validation": null,
        "measurement": {
            "clock": "host_wall", "cold": false, "repeat": samples.len(), "number": 1, "calls": 31, "samples_ns": samples,
            "statistics": {
                "min_ns": sorted[0], "median_ns": median, "mean_ns": median, "max_ns": sorted[sorted.len() - 1],
                "stddev_ns": null, "p5_ns": sorted[0], "p95_ns": sorted[sorted.len() - 1],
                "median_ci95_ns": [sorted[0], sorted[sorted.len() - 1]], "outliers": 0,
            },
            "overhead_ns": null, "transfer": null, "flops": 2e9, "bytes": 1e9, "gflops_per_s": 2e9 / median,
            "gbytes_per_s": 1e9 / median,
        },
        "dtype": "f32", "working_set_bytes": 1_000_000_000,
    });
    edit(&mut value);
    serde_json::from_value(value).unwrap()
}
