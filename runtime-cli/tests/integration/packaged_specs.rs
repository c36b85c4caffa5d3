//! `eval`, `run` and `tune` with a package as the code of a spec.

use serde_json::{Value, json};

use crate::fixture::{Finished, Folder, SCALE};

/// A folder with the package `k.rtpkg` of `scale.c` and a spec `scale.toml` of it.
fn folder(compile: &[&str]) -> Folder {
    let folder = Folder::new();
    let run = folder.runtime_with_null(&[&["compile", "scale.c", "-o", "k.rtpkg"], compile].concat());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let spec = SCALE.replacen("path = \"scale.c\"", "path = \"k.rtpkg\"", 1);
    folder.write("scale.toml", &spec);
    folder
}

fn rows(run: &Finished) -> Vec<Value> {
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    report["rows"].as_array().unwrap().clone()
}

/// Evaluates `scale.toml` on a device, and returns the row.
fn evaluated(folder: &Folder, device: &str) -> (i32, Value) {
    let run =
        folder.runtime_with_null(&["eval", "scale.toml", "--device", device, "--json", "-", "--repeat", "3"]);
    (run.code, rows(&run).remove(0))
}

#[test]
fn a_row_has_what_the_device_took_and_why() {
    let folder = folder(&["--target", "host:native"]);
    let (code, row) = evaluated(&folder, "host:0");
    assert_eq!((code, &row["status"]), (0, &json!("right")), "{row:#}");
    assert_eq!(row["kernel"]["format"], "package");
    let package = &row["package"];
    assert_eq!((&package["file"], &package["target"]), (&json!("scale"), &json!("host:native")));
    assert_eq!((&package["format"], &package["passed_over"]), (&json!("shared-object"), &json!([])));
    let why = "code for host:native is optimal for host:0";
    assert_eq!(package["why"], why);
    let run = folder.runtime_with_null(&["eval", "scale.toml", "--device", "host:0", "--repeat", "3"]);
    assert!(run.code == 0 && run.stdout.contains(why), "{run:?}");
    // Without a name, the first device that the package has code for.
    let run = folder.runtime_with_null(&["run", "scale.toml"]);
    assert!(
        run.code == 0
            && run
                .stdout
                .contains(&format!("scale on host:0: right (100 elements, largest error 0.0e0); {why}")),
        "{run:?}"
    );
}

#[test]
fn the_fallback_is_taken_where_nothing_else_fits() {
    let folder = Folder::new();
    let compiled = folder.runtime_with_null(&[
        "compile",
        "scale.c",
        "--target",
        "absent:any",
        "--keep-going",
        "-o",
        "k.rtpkg",
    ]);
    assert_eq!(compiled.code, 0, "{compiled:?}");
    // The entry points are unknown: the package has one kernel file.
    folder.write("scale.toml", &SCALE.replacen("path = \"scale.c\"", "path = \"k.rtpkg\"", 1));
    let (code, row) = evaluated(&folder, "host:0");
    assert_eq!(code, 0, "{row:#}");
    assert_eq!(
        row["package"]["why"],
        "no native code of the package was taken, so host:0 compiles its c code"
    );
    folder.write("plain.toml", SCALE);
    let plain = folder.runtime_with_null(&[
        "eval",
        "plain.toml",
        "--device",
        "host:0",
        "--json",
        "-",
        "--repeat",
        "3",
    ]);
    let (fallback, plain) = (&row["code_sha256"], &rows(&plain)[0]["code_sha256"]);
    assert!(
        fallback.is_string() && fallback == plain,
        "the hash is that of the file in the package: {row:#}"
    );
}

#[test]
fn what_cannot_be_loaded_says_why() {
    let folder = folder(&["--target", "host:native", "--no-fallback"]);
    let (code, row) = evaluated(&folder, "null:0");
    assert_eq!(
        (code, &row["status"], &row["error_kind"]),
        (1, &json!("not_run"), &json!("Unsupported")),
        "{row:#}"
    );
    let reason = row["reason"].as_str().unwrap();
    assert!(
        reason.contains("has no code of \"scale\" that null:0 can load")
            && reason.contains("host:native: it is for another backend"),
        "{reason}"
    );

    folder.write(
        "scale.toml",
        &std::fs::read_to_string(folder.path().join("scale.toml")).unwrap().replacen(
            "entry = \"scale\"",
            "entry = \"sale\"\nfile = \"scale\"",
            1,
        ),
    );
    let (code, row) = evaluated(&folder, "host:0");
    assert_eq!(
        (code, &row["status"], &row["error_kind"]),
        (1, &json!("failed"), &json!("NotFound")),
        "{row:#}"
    );
    assert!(row["reason"].as_str().unwrap().contains("sale"), "{row:#}");

    let mut damaged = std::fs::read(folder.path().join("k.rtpkg")).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(folder.path().join("k.rtpkg"), damaged).unwrap();
    let (code, row) = evaluated(&folder, "host:0");
    assert_eq!((code, &row["status"]), (1, &json!("failed")), "{row:#}");
    assert!(row["reason"].as_str().unwrap().contains("k.rtpkg"), "{row:#}");
}

#[test]
fn a_spec_of_a_package_has_no_options_and_no_constants() {
    let folder = folder(&["--target", "host:native"]);
    let spec = std::fs::read_to_string(folder.path().join("scale.toml")).unwrap();
    for (from, to, words) in [
        (
            "entry = \"scale\"",
            "entry = \"scale\"\noptions = { flags = \"-O1\" }",
            "give them to `runtime compile`",
        ),
        (
            "[cost]",
            "[specialise]\nconstants = { N = 4 }\n[cost]",
            "specialise its kernels with `runtime compile`",
        ),
        ("entry = \"scale\"", "entry = \"scale\"\nfile = \"sale\"", "did you mean \"scale\"?"),
    ] {
        folder.write("scale.toml", &spec.replacen(from, to, 1));
        let (_, row) = evaluated(&folder, "host:0");
        assert!(row["reason"].as_str().is_some_and(|reason| reason.contains(words)), "{words}: {row:#}");
    }
    folder.write("scale.toml", &SCALE.replacen("entry", "file = \"scale\"\nentry", 1));
    let run = folder.runtime(&["eval", "scale.toml"]);
    assert!(run.code == 2 && run.stderr.contains("only valid with a package"), "{run:?}");
}

#[test]
fn the_launch_of_a_packaged_kernel_is_tuned() {
    let folder = folder(&["--target", "host:native"]);
    let spec = std::fs::read_to_string(folder.path().join("scale.toml")).unwrap();
    let spec = spec.replacen("entry = \"scale\"", "entry = \"part\"", 1);
    folder.write(
        "scale.toml",
        &(spec + "\n[launch]\nrange = [0, 100]\ngrain = 10\n[tune]\ngrain = [10, 50]\n"),
    );
    let run = folder.runtime(&["tune", "scale.toml", "--device", "host:0", "--json", "-", "--repeat", "3"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("code for host:native is optimal for host:0"), "{run:?}");
}
