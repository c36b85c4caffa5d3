//! Comparisons of counts.

use serde_json::Value;

use super::Case;
use super::fixture::{path, runtime};

pub(crate) const CASES: &[Case] = &[("counts_are_compared_exactly", counts_are_compared_exactly)];

fn counts_are_compared_exactly(board: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let evaluate = |name: &str, taps: &str| {
        let (spec, device) = (path("kernels/embedded/fir_q15.toml"), format!("embedded:{board}"));
        let taps = format!("taps={taps}");
        let run = runtime(&["eval", &spec, "--device", &device, "--set", &taps, "--json", &file(name)]);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        // The name of the row has the changed size.
        let text = std::fs::read_to_string(file(name)).unwrap();
        std::fs::write(file(name), text.replace(&format!("fir_q15 {taps}"), "fir_q15")).unwrap();
    };
    evaluate("old.json", "11");
    evaluate("same.json", "11");
    evaluate("more.json", "13");
    let compare = |name: &str, arguments: &[&str]| {
        let files = [file("old.json"), file(name)];
        let run = runtime(&[&["compare", &files[0], &files[1]], arguments].concat());
        (run.status.code().unwrap(), String::from_utf8(run.stdout).unwrap())
    };
    let (code, text) = compare("same.json", &[]);
    assert!(code == 0 && text.contains("same") && text.contains("1.000"), "{text}");
    let (code, text) = compare("more.json", &[]);
    assert!(code == 1 && text.contains("more") && !text.contains("slower"), "{text}");
    assert!(!text.contains(" ns") && !text.contains("µs"), "{text}");
    let (_, text) = compare("more.json", &["--json", "-"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let row = &document["comparisons"][0]["rows"][0];
    assert!(row["old"]["median_count"].as_f64() < row["new"]["median_count"].as_f64(), "{row}");
    assert!(row["regression"] == true && row["old"]["median_ns"].is_null(), "{row}");
}
