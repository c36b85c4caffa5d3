//! Damage and malice: errors, never a panic, wrong code, much memory, or a file outside the folder.

use runtime_core::ErrorKind;
use runtime_package::Package;
use serde_json::{Value, json};

use crate::fixture::{Files, archive, builder, file_entry, manifest};

/// Does all that is safe with a package. Returns its error.
fn examine(bytes: Vec<u8>) -> Result<(), runtime_core::Error> {
    let package = Package::from_bytes(bytes)?;
    package.verify()?;
    let _ = format!("{package:?}");
    package.extract(&Files::new().path("out"))?;
    Ok(())
}

fn error(bytes: Vec<u8>) -> String {
    let error = examine(bytes).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::Unsupported), "{error}");
    error.message().to_owned()
}

/// A package of one kernel with a fallback of these fields, and a file.
fn with_file(name: &str, entry: &Value, content: &[u8]) -> Vec<u8> {
    let manifest = manifest(&json!([{ "name": "k", "fallback": entry }]));
    archive([("manifest.json", manifest.as_bytes()), (name, content)])
}

#[test]
fn a_package_that_is_cut_off_anywhere_is_an_error() {
    let whole = builder().to_bytes().unwrap();
    examine(whole.clone()).unwrap();
    for length in 0..whole.len() {
        assert!(examine(whole[..length].to_vec()).is_err(), "{length} of {} bytes", whole.len());
    }
}

#[test]
fn flipped_bits_never_change_code_unseen() {
    let whole = builder().to_bytes().unwrap();
    let code = |bytes: Vec<u8>| {
        let package = Package::from_bytes(bytes).ok()?;
        package.verify().ok()?;
        let files: Vec<_> = package.kernels().iter().flat_map(|kernel| kernel.files()).collect();
        Some(files.iter().map(|file| package.read_file(file).unwrap()).collect::<Vec<_>>())
    };
    let right = code(whole.clone()).unwrap();
    let mut detected = 0;
    for at in 0..whole.len() {
        for bit in [0, 3, 7] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            match code(damaged) {
                // Some bytes mean nothing, such as dates.
                Some(read) => assert_eq!(read, right, "byte {at}, bit {bit}"),
                None => detected += 1,
            }
        }
    }
    assert!(detected > whole.len(), "{detected} of {} flips", 3 * whole.len());
}

#[test]
fn arbitrary_bytes_are_no_package() {
    assert!(error(Vec::new()).contains("the package: the archive is damaged"));
    assert!(error(b"PK\x05\x06".repeat(50)).contains("damaged"));
    assert!(error(vec![0xff; 100_000]).contains("damaged"));
    assert!(error(archive([])).contains("it has no file \"manifest.json\""));
    // An archive that declares far more entries than it has.
    let mut end = vec![0u8; 22];
    end[..4].copy_from_slice(b"PK\x05\x06");
    end[8..12].fill(0xff);
    assert!(error(end).contains("damaged"));
}

#[test]
fn manifests_are_checked() {
    let of = |text: &str| error(archive([("manifest.json", text.as_bytes())]));
    assert!(of("").contains("manifest.json: "));
    assert!(of("[]").contains("manifest.json: "));
    let nested = format!(r#"{{"schema": "rtpkg", "version": 1, "more": {}"#, "[".repeat(100_000));
    assert!(of(&nested).contains("manifest.json: "));
    assert!(of(r#"{"schema": "other", "version": 1}"#).contains("the schema is \"other\""));
    assert!(of(r#"{"schema": "rtpkg", "version": 1}"#).contains("missing field"));
    let message = of(r#"{"schema": "rtpkg", "version": 2, "kernels": "in a new form"}"#);
    assert!(message.contains("version 2") && message.contains("update it"), "{message}");
    let twice = json!([{ "name": "k" }, { "name": "k" }]);
    assert!(of(&manifest(&twice)).contains("two kernels \"k\""));
    for name in ["", "\u{1b}[31m", &"x".repeat(201)] {
        assert!(of(&manifest(&json!([{ "name": name }]))).contains("is not allowed"), "{name:?}");
    }
    let escape = json!([{ "name": "k", "entries": ["\u{1b}]0;"] }]);
    assert!(of(&manifest(&escape)).contains("the entry point"));
    let quoted =
        json!([{ "name": "k", "codes": [{ "lowered": [{ "params": [{ "kind": "\u{1b}[31m" }] }] }] }]);
    assert!(!of(&manifest(&quoted)).contains('\u{1b}'));
    // Later versions may add fields.
    let more = archive([("manifest.json", manifest(&json!([{ "name": "k", "new": 1 }])).as_bytes())]);
    examine(more).unwrap();
}

#[test]
fn kernels_that_no_lowering_makes_are_refused() {
    let of = |change: &dyn Fn(&mut Value)| {
        let parameter =
            json!({ "kind": "tensor", "access": "read_write", "min_bytes": 4, "alignment_bytes": 16 });
        let mut lowered = json!({ "name": "f", "symbol": "f", "params": [parameter], "group_size": [64, 1, 1],
            "shared_bytes": 0, "tensor_sizes": true });
        change(&mut lowered);
        let mut code = file_entry("a", "null", b"noop");
        code["target"] = json!("null:null");
        code["lowered"] = json!([lowered]);
        let manifest = manifest(&json!([{ "name": "k", "codes": [code] }]));
        archive([("manifest.json", manifest.as_bytes()), ("a", b"noop")])
    };
    examine(of(&|_| {})).unwrap();
    for alignment in [0, 3] {
        let bytes = of(&|lowered| lowered["params"][0]["alignment_bytes"] = json!(alignment));
        assert!(error(bytes).contains("an alignment is a power of two"), "{alignment}");
    }
    let coarse = json!({ "factor": 1, "min_groups": 8, "min_groups_x": 8 });
    assert!(error(of(&|lowered| lowered["coarsening"] = coarse.clone())).contains("at least 2"));
    assert!(error(of(&|lowered| lowered["params"][0]["dtype"] = json!("f33"))).contains("f33"));
}

#[test]
fn a_large_manifest_is_refused_before_it_is_read() {
    let bomb = vec![b' '; 17 << 20];
    let bytes = archive([("manifest.json", bomb.as_slice())]);
    assert!(bytes.len() < 64 << 10);
    assert!(error(bytes).contains("more than 16777216 bytes"));
}

#[test]
fn files_must_be_what_the_manifest_says() {
    let entry = file_entry("a", "null", b"noop");
    examine(with_file("a", &entry, b"noop")).unwrap();
    assert!(error(with_file("a", &entry, b"fail")).contains("file \"a\" is damaged"));
    assert!(error(with_file("a", &entry, b"noo")).contains("file \"a\" is damaged"));
    assert!(error(with_file("a", &entry, b"noop!")).contains("more than 4 bytes"));
    assert!(error(with_file("b", &entry, b"noop")).contains("it has no file \"a\""));
    for hash in ["", "00", &"g".repeat(64), &"A".repeat(64)] {
        let mut entry = entry.clone();
        entry["sha256"] = json!(hash);
        assert!(error(with_file("a", &entry, b"noop")).contains("no valid SHA-256"));
    }
}

#[test]
fn names_cannot_leave_the_folder() {
    for name in
        ["../a", "/etc/a", "a/../../b", "a\\..\\b", "C:\\a", "", ".", "a\0", "manifest.json", ".git/config"]
    {
        let entry = file_entry(name, "null", b"noop");
        assert!(error(with_file("a", &entry, b"noop")).contains("is not allowed"), "{name:?}");
    }
    // Files that the manifest does not name stay in the archive, whatever their names.
    let entry = file_entry("a", "null", b"noop");
    let listed = manifest(&json!([{ "name": "k", "fallback": entry }]));
    let bytes = archive([
        ("manifest.json", listed.as_bytes()),
        ("a", b"noop"),
        ("../evil", b"evil"),
        ("/tmp/evil", b"evil"),
    ]);
    let files = Files::new();
    let written = Package::from_bytes(bytes).unwrap().extract(&files.path("inner/out")).unwrap();
    assert_eq!(written.len(), 2);
    assert!(!files.path("inner/evil").exists() && !files.path("inner/out/tmp").exists());
}

#[test]
#[cfg(unix)]
fn a_link_in_the_folder_is_not_followed() {
    let files = Files::new();
    std::fs::create_dir_all(files.path("out")).unwrap();
    std::fs::create_dir_all(files.path("secret")).unwrap();
    std::os::unix::fs::symlink(files.path("secret"), files.path("out/a")).unwrap();
    let bytes = with_file("a/b", &file_entry("a/b", "null", b"noop"), b"noop");
    let error = Package::from_bytes(bytes).unwrap().extract(&files.path("out")).unwrap_err();
    assert!(error.message().contains("not empty"), "{error}");
    assert_eq!(std::fs::read_dir(files.path("secret")).unwrap().count(), 0);
}

#[test]
fn bombs_do_not_fill_the_memory() {
    // A file that declares more than is allowed.
    let mut entry = file_entry("a", "null", b"noop");
    entry["bytes"] = json!(u64::MAX);
    assert!(error(with_file("a", &entry, b"noop")).contains("the most are"));
    entry["bytes"] = json!(-1);
    assert!(error(with_file("a", &entry, b"noop")).contains("manifest.json"));
    // A file that is larger than its manifest says is not unpacked.
    entry["bytes"] = json!(4);
    let bomb = vec![0u8; 64 << 20];
    let bytes = with_file("a", &entry, &bomb);
    assert!(bytes.len() < 128 << 10);
    assert!(error(bytes).contains("more than 4 bytes"));
    // Many kernels that share one large file.
    let shared: Vec<_> = (0..100)
        .map(|at| json!({ "name": format!("k{at}"), "fallback": file_entry("a", "null", b"noop") }))
        .collect();
    let bytes = archive([("manifest.json", manifest(&json!(shared)).as_bytes()), ("a", b"noop".as_slice())]);
    assert!(error(bytes).contains("two kernels or targets have the file \"a\""));
    // More in all than is allowed.
    let many: Vec<_> = (0..17)
        .map(|at| {
            let mut entry = file_entry(&format!("f{at}"), "null", b"");
            entry["bytes"] = json!(256 << 20);
            json!({ "name": format!("k{at}"), "fallback": entry })
        })
        .collect();
    let bytes = archive([("manifest.json", manifest(&json!(many)).as_bytes())]);
    assert!(error(bytes).contains("the files have 4563402752 bytes"));
}

#[test]
fn a_size_that_the_archive_lies_about_is_found_while_reading() {
    let entry = file_entry("a", "null", b"noop");
    let whole = with_file("a", &entry, &vec![b'n'; 1 << 16]);
    // In the directory: the size 65,536 becomes 4.
    let size = (1u32 << 16).to_le_bytes();
    let mut lying = whole.clone();
    for at in 0..whole.len() - 4 {
        if whole[at..at + 4] == size {
            lying[at..at + 4].copy_from_slice(&4u32.to_le_bytes());
        }
    }
    assert_ne!(lying, whole);
    let message = error(lying);
    assert!(message.contains("more than 4 bytes") || message.contains("damaged"), "{message}");
}

#[test]
fn two_files_of_one_name_are_refused() {
    // The writer refuses them, so a second name is made equal to the first.
    let text = manifest(&json!([{ "name": "k", "fallback": file_entry("first", "null", b"noop") }]));
    let mut bytes = archive([
        ("manifest.json", text.as_bytes()),
        ("first", b"noop".as_slice()),
        ("other", b"fail".as_slice()),
    ]);
    let mut renamed = 0;
    for at in 0..bytes.len() - 5 {
        if &bytes[at..at + 5] == b"other" {
            bytes[at..at + 5].copy_from_slice(b"first");
            renamed += 1;
        }
    }
    assert_eq!(renamed, 2);
    assert!(error(bytes).contains("two files of the same name"));
}
