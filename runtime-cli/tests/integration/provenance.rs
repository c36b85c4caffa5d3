//! Rows and reports say when, where, how and of which code they were made.

use std::process::Command;

use serde_json::{Value, json};

use super::fixture::{CODE, Folder, SCALE};

const FAST: [&str; 6] = ["--device", "host:0", "--repeat", "6", "--number", "1"];

/// A folder whose specs are in a repository; and its commit.
fn repository() -> (Folder, String) {
    let folder = Folder::new();
    let tuned = SCALE.replacen(
        "[reference]",
        "[specialise]\nconstants = { N = 1 }\n[tune]\nN = [1, 2]\n[reference]",
        1,
    );
    folder.write("tuned.toml", &tuned);
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(folder.path()).args(["-c", "user.name=n", "-c", "user.email=e@example.org"]);
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "first"]);
    let commit = git(&["rev-parse", "HEAD"]);
    (folder, commit)
}

/// Runs a command that writes a JSON report, and returns that.
fn report(folder: &Folder, arguments: &[&str], file: &str) -> Value {
    let run = folder.runtime(&[arguments, &FAST, &["--json", file]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    serde_json::from_str(&folder.read(file)).unwrap()
}

#[test]
fn every_row_says_when_and_of_which_commit_and_code_it_was_made() {
    let (folder, commit) = repository();
    let mut hashes = Vec::new();
    for arguments in [
        &["eval", "scale.toml"][..],
        &["eval", "scale.toml", "--isolate"],
        &["eval", "scale.toml", "--interleave"],
        &["tune", "tuned.toml"],
        &["fuse", "scale.toml", "scale.toml"],
    ] {
        let report = report(&folder, arguments, "rows.json");
        let origin = &report["origin"];
        let command = origin["command"].as_str().unwrap();
        assert!(
            command.starts_with(&format!("runtime {} --device host:0", arguments.join(" "))),
            "{command}"
        );
        assert!(origin["host"].is_string() && origin["sandbox"].is_string(), "{origin}");
        assert_eq!(report["runtime"]["profile"], if cfg!(debug_assertions) { "debug" } else { "release" });
        for row in report["rows"].as_array().unwrap() {
            assert_eq!(row["commit"], json!({ "id": commit, "changed": false }), "{arguments:?}");
            assert!(row["time"].as_str() >= origin["time"].as_str(), "{row}");
            let hash = row["code_sha256"].as_str().unwrap();
            assert_eq!(hash.len(), 64, "{row}");
            hashes.push(hash.to_owned());
        }
    }
    assert!(hashes[0] == hashes[1] && hashes[1] == hashes[2], "{hashes:?}");
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 4, "the code itself, with two values of a constant, and as a chain: {hashes:?}");
}

#[test]
fn what_has_changed_between_two_reports_is_said_in_words() {
    let (folder, commit) = repository();
    report(&folder, &["eval", "scale.toml"], "old.json");
    report(&folder, &["eval", "scale.toml"], "same.json");
    let compare = |new: &str| folder.runtime(&["compare", "old.json", new, "--threshold", "100000%"]).stdout;
    let same = compare("same.json");
    assert!(same.contains("scale") && !same.contains("differs: "), "{same}");
    folder.write("scale.c", &format!("{CODE}\n"));
    report(&folder, &["eval", "scale.toml"], "new.json");
    let commit = &commit[..12];
    let words = format!(
        "differs: the commit was {commit}, is {commit} (with changes)\ndiffers: the code changed\n\n"
    );
    assert!(compare("new.json").starts_with(&words), "{}", compare("new.json"));
}

#[test]
fn saved_reports_say_where_they_come_from_in_every_format() {
    let (folder, commit) = repository();
    report(&folder, &["eval", "scale.toml", "--isolate"], "rows.json");
    let saved: Value = serde_json::from_str(&folder.read("rows.json")).unwrap();
    let (origin, row) = (&saved["origin"], &saved["rows"][0]);
    let run =
        folder.runtime(&["report", "rows.json", "--csv", "r.csv", "--markdown", "r.md", "--html", "r.html"]);
    assert_eq!(run.code, 0, "{run:?}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let common =
        [text(&origin["time"]), text(&origin["host"]), text(&row["code_sha256"]), commit[..12].to_owned()];
    let common = common.into_iter().chain(["runtime eval scale.toml --isolate", "fixed"].map(str::to_owned));
    for (file, more) in
        [("r.csv", text(&row["time"])), ("r.md", "sandbox".to_owned()), ("r.html", "Sandbox".to_owned())]
    {
        let content = folder.read(file);
        // A row of CSV has its own time.
        let expected = common.clone().skip(usize::from(file == "r.csv")).chain([more]);
        for text in expected {
            assert!(content.contains(&text), "{file}: {text}: {content}");
        }
    }
}
