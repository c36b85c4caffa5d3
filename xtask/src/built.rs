//! What cargo has built, from its messages in JSON.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::{Failure, Outcome, output};

/// Builds all that tests run: not the benchmarks. With the libraries, since a test program does not build those of another package.
pub(crate) const WORKSPACE: [&str; 7] =
    ["build", "--quiet", "--workspace", "--lib", "--bins", "--tests", "--examples"];

/// An executable that cargo has built.
pub(crate) struct Executable {
    pub(crate) path: PathBuf,
    /// The folder of its package.
    pub(crate) folder: PathBuf,
    /// Kind and name of its target.
    pub(crate) kind: String,
    pub(crate) name: String,
    /// Whether it runs tests.
    pub(crate) is_test: bool,
}

/// Builds with this command of cargo. Returns the executables, whose file names may contain a hash.
pub(crate) fn executables(build: &mut Command) -> Outcome<Vec<Executable>> {
    of_messages(&output(build.args(["--message-format", "json-render-diagnostics"]))?)
}

fn of_messages(messages: &str) -> Outcome<Vec<Executable>> {
    let mut found = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line)
            .map_err(|error| Failure::new(format!("a message of cargo is no JSON: {error}")))?;
        found.extend(of_message(&message));
    }
    Ok(found)
}

fn of_message(message: &Value) -> Option<Executable> {
    let target = &message["target"];
    Some(Executable {
        path: message["executable"].as_str()?.into(),
        folder: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
        kind: target["kind"][0].as_str()?.to_owned(),
        name: target["name"].as_str()?.to_owned(),
        is_test: message["profile"]["test"] == true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_found_in_cargos_messages() {
        let built = r#"{"manifest_path": "/w/bench/Cargo.toml", "executable": "/t/launch-0f", "profile": {"test": false},
            "target": {"kind": ["bench"], "name": "launch"}}"#;
        let messages = [&built.replace('\n', ""), r#"{"reason": "build-finished"}"#].map(str::to_owned);
        let found = of_messages(&messages.join("\n")).unwrap();
        let [only] = &found[..] else { panic!("{}", found.len()) };
        assert_eq!((&*only.kind, &*only.name, only.is_test), ("bench", "launch", false));
        assert_eq!(
            (only.path.as_path(), only.folder.as_path()),
            (Path::new("/t/launch-0f"), Path::new("/w/bench"))
        );
        assert!(of_messages("no JSON").is_err());
    }
}
