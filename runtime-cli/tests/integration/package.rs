//! `runtime compile` and `runtime package`, on the null backend.

use serde_json::{Value, json};

use crate::fixture::{Finished, Folder, command_with};

/// A folder with the kernels `sums.null` and `bad.null`.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("sums.null", "add_f32\nnoop");
    folder.write("bad.null", "no such builtin");
    folder
}

fn compile(folder: &Folder, arguments: &[&str]) -> Finished {
    folder.runtime_with_null(&[&["compile"], arguments].concat())
}

/// A folder with the package `k.rtpkg` of `sums.null`.
fn packaged() -> Folder {
    let folder = folder();
    let run = compile(&folder, &["sums.null", "--target", "null:null", "-o", "k.rtpkg"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    folder
}

/// The cells of each line.
fn cells(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn a_device_tells_what_it_takes_from_a_package() {
    let folder = packaged();
    let load =
        |arguments: &[&str]| folder.runtime_with_null(&[&["package", "load", "k.rtpkg"], arguments].concat());
    let run = load(&["--device", "null:0"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    assert!(run.stdout.starts_with("sums: ") && run.stdout.contains("null:null"), "{run:?}");
    let run = load(&["--device", "host:0", "--json"]);
    assert!(run.code == 2 && run.stderr.contains("null:null"), "nothing in it is for the host: {run:?}");
    let run = load(&["--device", "null:0", "--json"]);
    let choices: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(choices["kernels"][0]["target"], "null:null", "{choices}");
    assert_eq!(load(&["--device", "null:7"]).code, 2);
}

#[test]
fn a_package_is_compiled_listed_verified_and_extracted() {
    let folder = packaged();
    let list = folder.runtime_with_null(&["package", "list", "k.rtpkg"]);
    assert_eq!((list.code, list.stderr.as_str()), (0, ""));
    let rows = cells(&list.stdout);
    assert_eq!(rows[0], ["kernel", "entry", "target", "format", "bytes", "registers", "spilled", "ms"]);
    assert_eq!(rows[1][..7], ["sums", "add_f32", "null:null", "null-binary", "40", "16", "0"]);
    assert_eq!(rows[2][..4], ["sums", "noop", "null:null", "null-binary"]);
    assert_eq!(rows[3], ["sums", "fallback", "null", "12"]);

    let run = folder.runtime_with_null(&["package", "list", "k.rtpkg", "--json"]);
    let manifest: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(manifest["kernels"][0]["entries"], json!(["add_f32", "noop"]));
    assert!(manifest["program"].as_str().unwrap().starts_with("runtime "), "{manifest}");

    let verify = folder.runtime_with_null(&["package", "verify", "k.rtpkg"]);
    assert_eq!((verify.code, verify.stdout.as_str()), (0, "k.rtpkg: 2 files are intact\n"));
    let run = folder.runtime_with_null(&["package", "extract", "k.rtpkg"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.stdout, "k/sums/null-null.null-binary\nk/sums/source.null\nk/manifest.json\n");
    assert_eq!(folder.read("k/sums/source.null"), "add_f32\nnoop");
    let run = folder.runtime_with_null(&["package", "extract", "k.rtpkg", "-C", "other", "--json"]);
    let files: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(files["files"][2], "other/manifest.json");
    let run = folder.runtime_with_null(&["package", "extract", "k.rtpkg", "-C", "other"]);
    assert!(run.code == 2 && run.stderr.contains("other is not empty"), "{run:?}");
}

#[test]
fn every_failure_is_told_and_nothing_is_written() {
    let folder = folder();
    let targets = ["--target", "null:null", "--target", "null:other", "--target", "nul"];
    let arguments = [&["sums.null", "bad.null", "-o", "k.rtpkg"], &targets[..]].concat();
    let run = compile(&folder, &arguments);
    assert_eq!(run.code, 1, "{run:?}");
    let lines: Vec<_> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 4, "a target that fails for all kernels is told once: {run:?}");
    for (line, words) in [
        (0, ["error: \"bad\" for null:null: ", "no such builtin"]),
        (1, ["error: null:other: ", "unknown architecture \"other\""]),
        (2, ["error: ", "did you mean \"null\"?"]),
        (3, ["k.rtpkg was not written", "--keep-going"]),
    ] {
        assert!(words.iter().all(|word| lines[line].contains(word)), "{words:?}: {}", lines[line]);
    }
    assert!(run.stdout.contains("add_f32"), "what was compiled is shown");
    assert!(!folder.path().join("k.rtpkg").exists());

    let run = compile(&folder, &[&arguments[..], &["--keep-going"]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.stderr.lines().count(), 3, "{run:?}");
    let list = folder.runtime_with_null(&["package", "list", "k.rtpkg", "--json"]);
    let manifest: Value = serde_json::from_str(&list.stdout).unwrap();
    let codes = |at: usize| manifest["kernels"][at]["codes"].as_array().map(Vec::len);
    assert_eq!((codes(0), codes(1)), (Some(1), Some(0)));

    // A kernel with nothing in it helps nobody.
    let run = compile(&folder, &[&arguments[..], &["--keep-going", "--no-fallback"]].concat());
    assert!(run.code == 1 && run.stderr.contains("neither native code nor a fallback"), "{run:?}");
}

#[test]
fn options_formats_and_fallbacks_are_as_asked() {
    let folder = folder();
    std::fs::rename(folder.path().join("sums.null"), folder.path().join("sums")).unwrap();
    let run = compile(&folder, &["sums", "--target", "null", "-o", "k.rtpkg"]);
    assert!(run.code == 2 && run.stderr.contains("give the format"), "{run:?}");
    let arguments = [
        "sums",
        "--format",
        "null",
        "--target",
        "null",
        "--option",
        "prefix=my_",
        "--no-fallback",
        "-o",
        "k.rtpkg",
    ];
    let run = compile(&folder, &arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let rows = cells(&run.stdout);
    assert_eq!(rows.len(), 3, "no fallback: {run:?}");
    assert_eq!(rows[1][..3], ["sums", "my_add_f32", "null"]);
    let own = [
        "sums",
        "--format",
        "null",
        "--option",
        "prefix=my_",
        "--target",
        "null,prefix=7",
        "-o",
        "own.rtpkg",
    ];
    let run = compile(&folder, &own);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(cells(&run.stdout)[1][..3], ["sums", "7add_f32", "null,prefix=7"]);
    let run = compile(&folder, &["sums", "--format", "null", "--target", "null,prefix", "-o", "k"]);
    assert!(run.code == 2 && run.stderr.contains("KEY=VALUE"), "{run:?}");
    let run =
        compile(&folder, &["sums", "--format", "null", "--target", "null", "--option", "prefx=x", "-o", "k"]);
    assert!(run.code == 1 && run.stderr.contains("did you mean \"prefix\"?"), "{run:?}");
}

#[test]
fn wrong_usage_is_refused_before_anything_is_compiled() {
    let folder = packaged();
    for (arguments, words) in [
        (&["sums.null", "--target", "null"][..], "--output <FILE.rtpkg>"),
        (&["sums.null", "-o", "k.rtpkg"], "--target <TARGET:ARCHITECTURE>"),
        (&["sums.null", "--target", "null", "-o", "-"], "a package is binary"),
        (&["sums.null", "--target", "null", "-o", "sums.null"], "would overwrite"),
        (&["sums.null", "--target", "null", "-o", "no/folder/k.rtpkg"], "cannot write"),
        (&["missing.null", "--target", "null", "-o", "k.rtpkg"], "cannot read missing.null"),
        (&["sums.null", "sums.null", "--target", "null", "-o", "k.rtpkg"], "two kernel files are named"),
    ] {
        let run = compile(&folder, arguments);
        assert!(run.code == 2 && run.stderr.contains(words), "{arguments:?}: {run:?}");
    }
    assert_eq!(folder.read("sums.null"), "add_f32\nnoop");
}

#[test]
fn damage_is_found() {
    let folder = packaged();
    let path = folder.path().join("k.rtpkg");
    let mut bytes = std::fs::read(&path).unwrap();
    let manifest = bytes.windows(13).position(|window| window == b"manifest.json").unwrap();
    // Within the compressed manifest.
    bytes[manifest + 60] ^= 0x55;
    std::fs::write(&path, &bytes).unwrap();
    let run = folder.runtime_with_null(&["package", "verify", "k.rtpkg"]);
    assert!(run.code == 1 && run.stdout.starts_with("k.rtpkg: "), "{run:?}");
    let run = folder.runtime_with_null(&["package", "verify", "k.rtpkg", "--json"]);
    let verdict: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &verdict["intact"]), (1, &json!(false)));
    let run = folder.runtime_with_null(&["package", "list", "scale.c"]);
    assert!(run.code == 2 && run.stderr.contains("scale.c: the archive is damaged"), "{run:?}");
    let run = folder.runtime_with_null(&["package", "verify", "none.rtpkg"]);
    assert!(run.code == 2 && run.stderr.contains("cannot read none.rtpkg"), "{run:?}");
}

#[test]
fn portable_kernels_are_compiled_for_real_targets_without_their_devices() {
    let folder = Folder::new();
    let kernel = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/saxpy.wgsl");
    let targets = ["--target", "host:native", "--target", "vulkan", "--target", "opencl:c", "-o", "k.rtpkg"];
    let arguments =
        [&["compile", kernel, "--element", "f32", "--constant", "GROUP=64"], &targets[..]].concat();
    let run =
        command_with(&["host", "vulkan", "opencl"], &arguments).current_dir(folder.path()).output().unwrap();
    let run = Finished::from(run);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let rows = cells(&run.stdout);
    for (row, format) in rows[1..].iter().zip(["shared-object", "spirv-shader", "opencl-c"]) {
        assert_eq!((row[0], row[1], row[3]), ("saxpy", "saxpy", format), "{run:?}");
    }
    assert_eq!(rows[4][..3], ["saxpy", "fallback", "wgsl"]);
    assert_eq!(folder.runtime(&["package", "verify", "k.rtpkg"]).stdout, "k.rtpkg: 4 files are intact\n");
    let run = folder.runtime(&[
        "compile",
        kernel,
        "--target",
        "host:native",
        "--option",
        "unchecked=true",
        "-o",
        "u",
    ]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
}
