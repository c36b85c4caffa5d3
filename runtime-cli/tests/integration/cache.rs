//! `runtime cache`, on folders that are empty, damaged, read-only or missing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::fixture::{CODE, Finished, Folder, command};

/// The command with a cache in the folder.
fn cache(folder: &Folder, arguments: &[&str]) -> Finished {
    let mut command = command(&[&["cache"], arguments].concat());
    command.env("RUNTIME_CACHE", folder.path().join("cache")).output().unwrap().into()
}

fn cache_with(variables: &[(&str, &Path)], arguments: &[&str]) -> Finished {
    let mut command = command(&[&["cache"], arguments].concat());
    command.env_remove("XDG_CACHE_HOME").env_remove("HOME").envs(variables.iter().copied());
    command.output().unwrap().into()
}

/// A file in the place of an entry.
fn damaged_entry(folder: &Folder) -> String {
    let name = "ab".repeat(32);
    let part = folder.path().join("cache").join(&name[..2]);
    fs::create_dir_all(&part).unwrap();
    fs::write(part.join(&name[2..]), "\u{1b}[2Jdamaged").unwrap();
    name
}

#[test]
fn an_empty_cache_is_no_error() {
    let folder = Folder::new();
    for (action, text) in [
        ("list", "no entries\n"),
        ("verify", "intact: no entries\n"),
        ("clear", "removed no entries\n"),
        ("prune", "removed no entries\n"),
    ] {
        let run = cache(&folder, &[action]);
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, text, ""), "{action}");
    }
    let run = cache(&folder, &["path"]);
    assert_eq!((run.code, run.stdout), (0, format!("{}\n", folder.path().join("cache").display())));
    let run = cache(&folder, &["list", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&document["schema"], &document["version"]), (&"runtime.cache".into(), &1.into()));
    assert_eq!(document["entries"], serde_json::json!([]));
}

#[test]
fn damage_is_reported_and_removed() {
    let folder = Folder::new();
    let name = damaged_entry(&folder);
    let run = cache(&folder, &["list"]);
    assert!(
        run.code == 0 && run.stdout.contains("damaged") && run.stdout.contains("1 entry, 11.0 B"),
        "{run:?}"
    );
    let run = cache(&folder, &["list", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&document["entries"][0]["name"], &document["entries"][0]["bytes"]),
        (&name.clone().into(), &11.into())
    );
    assert_eq!(document["entries"][0]["format"], serde_json::Value::Null);
    let run = cache(&folder, &["verify"]);
    let text = format!("damaged: {name}: it has a wrong length\nintact: no entries; 1 damaged\n");
    assert_eq!((run.code, run.stdout, run.stderr.as_str()), (1, text, ""));
    assert_eq!(cache(&folder, &["verify"]).code, 0, "it was removed");
}

#[test]
fn entries_are_pruned_and_cleared() {
    let folder = Folder::new();
    damaged_entry(&folder);
    let removed = |arguments: &[&str]| {
        let run = cache(&folder, arguments);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
        run.stdout
    };
    assert_eq!(removed(&["prune"]), "removed no entries\n");
    assert_eq!(removed(&["prune", "--max-bytes", "1KiB", "--older-than", "1"]), "removed no entries\n");
    assert_eq!(removed(&["prune", "--max-bytes", "10"]), "removed 1 entry, 11.0 B\n");
    damaged_entry(&folder);
    assert_eq!(removed(&["prune", "--older-than", "0"]), "removed 1 entry, 11.0 B\n");
    damaged_entry(&folder);
    assert_eq!(removed(&["clear"]), "removed 1 entry, 11.0 B\n");
    for wrong in [["--max-bytes", "1GB"], ["--older-than", "-1"], ["--older-than", "1e300"]] {
        assert_eq!(cache(&folder, &[&["prune"], &wrong[..]].concat()).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_cache_that_is_off_missing_or_not_trusted_is_a_plain_error() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let writable = folder.path().join("writable");
    fs::create_dir(&writable).unwrap();
    fs::set_permissions(&writable, fs::Permissions::from_mode(0o777)).unwrap();
    for (variables, part) in [
        (&[][..], "there is no cache folder"),
        (&[("RUNTIME_CACHE", Path::new("off"))], "the code cache is off"),
        (&[("RUNTIME_CACHE", Path::new("on"))], "RUNTIME_CACHE is \"on\": set it to off"),
        (&[("RUNTIME_CACHE", writable.as_path())], "chmod go-w"),
    ] {
        let run = cache_with(variables, &["list"]);
        assert!(
            run.code == 2 && run.stdout.is_empty() && run.stderr.contains(part),
            "{variables:?}: {run:?}"
        );
    }
    assert_eq!(cache_with(&[], &["path"]).code, 2);
    let read_only = [("RUNTIME_CACHE", Path::new("read-only")), ("XDG_CACHE_HOME", folder.path())];
    assert_eq!(cache_with(&read_only, &["list"]).stdout, "no entries\n");
    fs::create_dir_all(folder.path().join("runtime/code")).unwrap();
    let run = cache_with(&read_only, &["clear"]);
    assert!(run.code == 2 && run.stderr.contains("read-only"), "{run:?}");
    let home = cache_with(&[("HOME", folder.path())], &["path"]);
    assert_eq!(home.stdout, format!("{}\n", folder.path().join(".cache/runtime/code").display()));
}

/// A script may do anything, so nothing is remembered of what it made of a text.
#[test]
fn the_preprocessor_runs_once_for_code_that_is_cached() {
    let folder = Folder::new();
    folder.write("scale.c", &format!("#include <stddef.h>\n{CODE}"));
    folder.write("cc", "#!/bin/sh\ncase \"$*\" in *\" -E \"*) echo >> \"$0.runs\";; esac\nexec cc \"$@\"\n");
    let compiler = folder.path().join("cc");
    fs::set_permissions(&compiler, PermissionsExt::from_mode(0o755)).unwrap();
    let mut runs = Vec::new();
    for _ in 0..2 {
        folder.write("cc.runs", "");
        let mut command = command(&["run", "scale.toml"]);
        command.current_dir(folder.path()).env("CC", &compiler);
        let run = Finished::from(command.env("RUNTIME_CACHE", folder.path().join("cache")).output().unwrap());
        assert!(run.code == 0 && run.stdout.contains("right"), "{run:?}");
        runs.push(folder.read("cc.runs").lines().count());
    }
    // The kernel and its reference are one file. Once more after it was compiled, since a header may have changed meanwhile.
    assert_eq!(runs, [3, 2]);
}
