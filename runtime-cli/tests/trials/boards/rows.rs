//! Rows of boards: wrong results, what does not fit, samples, and the figures of the image.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::Case;
use super::fixture::{path, rows, runtime};

pub(crate) const CASES: &[Case] = &[
    ("a_broken_kernel_is_wrong", a_broken_kernel_is_wrong),
    ("a_trap_is_a_crash", a_trap_is_a_crash),
    ("a_hang_is_a_timeout", a_hang_is_a_timeout),
    ("what_does_not_fit_is_not_run", what_does_not_fit_is_not_run),
    ("initial_contents_before_each_call_are_refused", initial_contents_before_each_call_are_refused),
    ("inputs_that_no_candidate_has_seen_are_refused", inputs_that_no_candidate_has_seen_are_refused),
    ("two_processes_count_the_same", two_processes_count_the_same),
    ("samples_are_counts_per_call", samples_are_counts_per_call),
    ("a_worker_flashes_one_kernel_after_the_other", a_worker_flashes_one_kernel_after_the_other),
    ("functions_are_counted_on_request", functions_are_counted_on_request),
    ("tables_show_counts_without_times", tables_show_counts_without_times),
    ("a_count_is_the_candidates_where_nothing_bounds_it", a_count_is_the_candidates_where_nothing_bounds_it),
    ("a_counter_that_the_code_resets_is_found", a_counter_that_the_code_resets_is_found),
];

const CODE: &str = "#include <stdint.h>
    void scale(const float *x, int8_t *y, int n) { for (int i = 0; i < n; i++) y[i] = (int8_t)(3 * x[i]); }
    void part(const float *x, int8_t *y, int n, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) y[i] = (int8_t)(N * x[i]);
    }
    #if defined __riscv || defined __arm__
    uint64_t runtime_counter_read(void);
    void runtime_counter_start(void);
    void reset(const float *x, int8_t *y, int n) {
        uint64_t begin = runtime_counter_read();
        scale(x, y, n);
    #ifdef __riscv
        __asm__ volatile(\"csrw mcycle, %0\" ::\"r\"(begin));
    #else
        runtime_counter_start();
        while (runtime_counter_read() <= begin) {}
    #endif
    }
    #endif
    void broken(const float *x, int8_t *y, int n) {
        for (int i = 0; i < n - 1; i++) y[i] = (int8_t)(3 * x[i]);
        y[4] = 9;
    }
    void trap(const float *x, int8_t *y, int n) { __builtin_trap(); }
    void hang(const float *x, int8_t *y, int n) { while (*(volatile int *)&n) {} }";

/// A folder with a spec of that function; `extra` is appended to it.
fn folder(entry: &str, extra: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    // A name that the generated code has as well.
    std::fs::write(folder.path().join("entry.c"), CODE).unwrap();
    let spec = format!(
        "version = 1\n[kernel]\npath = \"entry.c\"\nentry = \"{entry}\"\n\
         [[arg]]\nname = \"x\"\ndtype = \"f32\"\nshape = [\"n\"]\ninit = \"arange\"\nuse = \"read\"\n\
         [[arg]]\nname = \"y\"\ndtype = \"i8\"\nshape = [\"n\"]\nuse = \"write\"\n\
         [[arg]]\nname = \"n\"\nscalar = \"i32\"\nvalue = 30\n\
         [specialise]\nconstants = {{ N = 3 }}\n{extra}\
         [reference]\npath = \"entry.c\"\nentry = \"scale\"\n"
    );
    let file = folder.path().join("spec.toml");
    std::fs::write(&file, spec).unwrap();
    let file = file.display().to_string();
    (folder, file)
}

fn only(mut rows: Vec<Value>) -> Value {
    assert_eq!(rows.len(), 1, "{rows:?}");
    rows.remove(0)
}

fn inputs_that_no_candidate_has_seen_are_refused(board: &str) {
    let (_folder, spec) = folder("scale", "");
    std::fs::write(&spec, std::fs::read_to_string(&spec).unwrap().replace("arange", "random")).unwrap();
    let row = only(rows(board, &[&spec, "--isolate", "--fresh-inputs"]));
    assert_eq!(row["status"], "not_run", "{row}");
    assert!(row["reason"].as_str().unwrap().contains("a board gets those of the spec only"), "{row}");
}

fn a_broken_kernel_is_wrong(board: &str) {
    let (_folder, spec) = folder("broken", "");
    let row = only(rows(board, &[&spec]));
    assert_eq!(row["status"], "wrong", "{row}");
    let validation = &row["validation"];
    assert_eq!((&validation["wrong"], &validation["unwritten"]), (&json!(2), &json!(1)), "{validation}");
    assert_eq!((&validation["name"], &validation["elements"]), (&json!("y"), &json!(30)));
    assert!(row["counts"]["median"].as_f64().unwrap() > 0.0, "it is counted nevertheless");
}

/// In this process and in a worker; the next kernel runs.
fn a_trap_is_a_crash(board: &str) {
    let (_folder, spec) = folder("trap", "");
    let next = path("kernels/embedded/fir_q15.toml");
    for arguments in [&[&*spec, &*next][..], &[&*spec, &*next, "--isolate"]] {
        let rows = rows(board, arguments);
        let [crashed, right] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((&crashed["status"], &crashed["error_kind"]), (&json!("failed"), &json!("Crashed")));
        let outcome = &crashed["outcome"];
        assert_eq!(
            (&outcome["kind"], &outcome["message"]),
            (&json!("launch_failed"), &crashed["reason"]),
            "{crashed}"
        );
        assert!(crashed["reason"].as_str().unwrap().contains("`trap`"), "{crashed}");
        assert_eq!(right["status"], "right", "{right}");
    }
}

/// In this process, where the run has a deadline, and in a worker that is ended before; the next kernel runs.
fn a_hang_is_a_timeout(board: &str) {
    let (_folder, spec) = folder("hang", "");
    let next = path("kernels/embedded/fir_q15.toml");
    // Long enough for the next kernel on a loaded machine: the run without a worker has built its image.
    let isolated: &[&str] = &["--isolate", "--timeout", "15", "--budget-s", "0.1"];
    for (arguments, words) in [(&[][..], &["still running", "`hang`"][..]), (isolated, &[])] {
        let rows = rows(board, &[&[&*spec, &*next], arguments].concat());
        let [hung, right] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((&hung["status"], &hung["error_kind"]), (&json!("failed"), &json!("Timeout")), "{hung}");
        assert_eq!(hung["outcome"]["kind"], "timeout", "{hung}");
        let reason = hung["reason"].as_str().unwrap();
        assert!(words.iter().all(|word| reason.contains(word)), "{reason}");
        assert!(hung["counts"].is_null(), "{hung}");
        assert_eq!(right["status"], "right", "{right}");
    }
}

fn what_does_not_fit_is_not_run(board: &str) {
    let (folder, spec) = folder("scale", "");
    let row = only(rows(board, &[&spec, "--set", "n=5000000", "--no-validate"]));
    assert_eq!((&row["status"], &row["error_kind"]), (&json!("not_run"), &json!("OutOfMemory")));
    let reason = row["reason"].as_str().unwrap();
    assert!(reason.contains("25000") && reason.contains("bytes of RAM"), "{reason}");
    let code = "const char large[5 << 20] = {1};
        void scale(const float *x, signed char *y, int n) { y[0] = large[n]; }";
    std::fs::write(folder.path().join("entry.c"), code).unwrap();
    let row = only(rows(board, &[&spec, "--no-validate"]));
    assert_eq!((&row["status"], &row["error_kind"]), (&json!("not_run"), &json!("OutOfResources")), "{row}");
    assert!(row["reason"].as_str().unwrap().contains("4194304 bytes of flash"), "{row}");
}

fn initial_contents_before_each_call_are_refused(board: &str) {
    let (_folder, spec) = folder("scale", "");
    let text = std::fs::read_to_string(&spec).unwrap();
    let text = text.replace("use = \"write\"", "use = \"readwrite\"\neach_call = \"initial\"");
    std::fs::write(&spec, text).unwrap();
    let row = only(rows(board, &[&spec]));
    assert_eq!(row["error_kind"], "Unsupported", "{row}");
    assert!(row["reason"].as_str().unwrap().contains("each_call"), "{row}");
}

fn two_processes_count_the_same(board: &str) {
    let run = || {
        let row = only(rows(board, &[&path("kernels/embedded/fir_q15.toml"), "--repeat", "4"]));
        let mut counts = row["counts"].clone();
        // Beside what is counted, the host's time.
        assert!(counts["run_ns"].take().as_f64().unwrap() > 0.0, "{row}");
        counts
    };
    let first = run();
    assert_eq!(first, run());
    assert_eq!(first["samples"].as_array().unwrap().len(), 4);
    assert_eq!(first["min"], first["max"], "{first}");
    let image = &first["image"];
    assert!(image["code_bytes"].as_u64().unwrap() > 500 && image["flash_bytes"] == 4_194_304, "{image}");
    let stack = &first["stack"];
    assert!(stack["used_bytes"].as_u64().unwrap() >= 256 && stack["bytes"] == 65_536, "{stack}");
    assert!((1..60).contains(&first["overhead"].as_u64().unwrap()), "{first}");
}

/// Also of a function that takes a range.
fn samples_are_counts_per_call(board: &str) {
    let (_folder, spec) = folder("part", "[launch]\nrange = [0, \"n\"]\n");
    let counts = |number: &str| {
        let row = only(rows(board, &[&spec, "--number", number, "--warmup", "2", "--repeat", "2"]));
        assert_eq!(row["status"], "right", "{row}");
        (row["counts"]["calls"].as_u64().unwrap(), row["counts"]["median"].as_f64().unwrap())
    };
    let ((few, one), (many, ten)) = (counts("1"), counts("10"));
    assert_eq!((few, many), (1 + 2 + 2, 1 + 10 + 20));
    assert!(ten < one && ten > 0.8 * one, "the counter is read once for ten calls: {one}, {ten}");
}

fn a_worker_flashes_one_kernel_after_the_other(board: &str) {
    let names = ["fir_q15", "matmul_i8"].map(|name| path(&format!("kernels/embedded/{name}.toml")));
    let [first, second] = names.each_ref().map(String::as_str);
    let medians = |arguments: &[&str]| -> Vec<Value> {
        rows(board, arguments).iter().map(|row| row["counts"]["median"].clone()).collect()
    };
    let isolated = medians(&[first, second, first, "--isolate"]);
    assert_eq!(isolated, medians(&[first, second, first]));
    assert_eq!(isolated[0], isolated[2]);
}

/// The sum of counters, which is the count of the row.
fn add_up(row: &Value, counters: &[Value]) -> f64 {
    let sum: f64 = counters.iter().map(|counter| counter["value"].as_f64().unwrap()).sum();
    assert!((sum - row["counts"]["median"].as_f64().unwrap()).abs() < 1e-6, "{row}");
    sum
}

fn functions_are_counted_on_request(board: &str) {
    let spec = path("kernels/embedded/network_i8.toml");
    let row = only(rows(board, &[&spec, "--counters", "functions,cycles", "--number", "2"]));
    let counters = row["counters"].as_array().unwrap();
    let (unknown, functions) = counters.split_last().unwrap();
    assert!(
        unknown["name"] == "cycles" && unknown["reason"].as_str().unwrap().contains("\"functions\""),
        "{row}"
    );
    let sum = add_up(&row, functions);
    let of = |name: &str| {
        functions.iter().find(|counter| counter["name"] == name).unwrap()["value"].as_f64().unwrap()
    };
    let measuring = of("functions:runtime_main") + of("functions:runtime_counter_read");
    assert!(measuring < 60.0, "{row}");
    assert!(functions[0]["value"].as_f64().unwrap() > 0.3 * sum, "the largest is first: {row}");
    let spec = path("kernels/embedded/fir_q15.toml");
    let twice = only(rows(board, &[&spec, "--counters", "functions", "--number", "2"]));
    add_up(&twice, twice["counters"].as_array().unwrap());
    let output =
        runtime(&["eval", &spec, "--device", &format!("embedded:{board}"), "--counters", "functions"]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("per call: functions:"), "{table}");
}

/// With what the emulator executes to compare it with; over a serial port, nobody knows.
fn a_count_is_the_candidates_where_nothing_bounds_it(board: &str) {
    let (_folder, spec) = folder("scale", "");
    let uart = ["--isolate", "--option", "link=uart"];
    for (options, is_candidates) in
        [(&uart[..], true), (&["--isolate"], false), (&["--isolate", "--trust"], false), (&[], false)]
    {
        let row = only(rows(board, &[&[&*spec], options].concat()));
        let counts = &row["counts"];
        let is = counts["is_candidates"].as_bool().unwrap_or_default();
        assert_eq!((&row["status"], is), (&json!("right"), is_candidates), "{options:?}: {row}");
        assert!(counts["run_ns"].as_f64().unwrap() > 0.0, "{row}");
        let arguments = ["eval", &spec, "--device", &format!("embedded:{board}")];
        let shown = runtime(&[&arguments[..], options].concat());
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert_eq!(shown.contains("; clock: the candidate's, a run takes "), is_candidates, "{shown}");
    }
}

fn a_counter_that_the_code_resets_is_found(board: &str) {
    let (_folder, spec) = folder("reset", "");
    let row = only(rows(board, &[&spec, "--isolate", "--trust"]));
    assert_eq!(row["status"], "right", "believed: {row}");
    let count = row["counts"]["median"].as_f64().unwrap();
    let (_folder, honest) = folder("scale", "");
    let honest = only(rows(board, &[&honest]))["counts"]["median"].as_f64().unwrap();
    assert!(count < 0.5 * honest, "it pays: {count} instead of {honest}");
    let row = only(rows(board, &[&spec, "--isolate"]));
    assert_eq!((&row["status"], &row["error_kind"]), (&json!("failed"), &json!("Failed")), "{row}");
    assert!(row["reason"].as_str().unwrap().contains("the code has changed the counter"), "{row}");
}

fn tables_show_counts_without_times(board: &str) {
    let spec = path("kernels/embedded/depthwise_i8.toml");
    let folder = tempfile::tempdir().unwrap();
    let (csv, markdown) = (folder.path().join("rows.csv"), folder.path().join("rows.md"));
    let output = runtime(&[
        "eval",
        &spec,
        "--device",
        &format!("embedded:{board}"),
        "--csv",
        csv.to_str().unwrap(),
        "--markdown",
        markdown.to_str().unwrap(),
    ]);
    let table = String::from_utf8(output.stdout).unwrap();
    let row = table.lines().nth(1).unwrap();
    assert!(row.contains("right (exact)") && row.contains("target-instructions"), "{table}");
    for text in [&table, &std::fs::read_to_string(markdown).unwrap()] {
        let has_time =
            ["ns", "µs", "ms", "s"].iter().any(|unit| text.split([' ', '|', '\n']).any(|word| word == *unit));
        assert!(!has_time && text.contains("instructions per element"), "{text}");
        assert!(text.contains(" instructions of a sample for measuring; flash "), "{text}");
    }
    let csv = std::fs::read_to_string(csv).unwrap();
    let mut lines = csv.lines();
    let cells = lines.next().unwrap().split(',').zip(lines.next().unwrap().split(','));
    for (name, value) in cells {
        let is_time = name.ends_with("_ns") || name.ends_with("_per_s");
        assert!(value.is_empty() || !is_time, "{name} is {value}");
        assert!(!value.is_empty() || !name.starts_with("count_"), "{name} is empty");
    }
}
