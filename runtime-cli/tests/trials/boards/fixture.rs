//! The command with the backends of the host and of boards, and its rows.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The command, with `home` as the folder of its caches.
pub(crate) fn command(home: &str, arguments: &[&str]) -> Command {
    let runtime = Path::new(env!("CARGO_BIN_EXE_runtime"));
    let libraries = ["host", "embedded"].map(|name| {
        let file = format!("{}runtime_{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        let library = runtime.with_file_name(file);
        assert!(library.is_file(), "{} is missing: build the workspace first", library.display());
        library
    });
    let mut command = Command::new(runtime);
    command.args(arguments).env("RUNTIME_BACKENDS", std::env::join_paths(libraries).unwrap());
    command.env("XDG_CACHE_HOME", home).env("RUNTIME_SHARE", "1");
    command.env_remove("RUNTIME_BACKEND_PATH").env_remove("RUNTIME_REQUIRE").env_remove("RUNTIME_CACHE");
    command
}

/// Runs the command until it exits. All tests share the images that they build.
pub(crate) fn runtime(arguments: &[&str]) -> Output {
    command(env!("CARGO_TARGET_TMPDIR"), arguments).output().unwrap()
}

/// The rows of `runtime eval` with these arguments on a board.
pub(crate) fn rows(board: &str, arguments: &[&str]) -> Vec<Value> {
    let device = format!("embedded:{board}");
    let output = runtime(&[&["eval", "--device", &device, "--json", "-"], arguments].concat());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let document: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"));
    document["rows"].as_array().unwrap().clone()
}

/// The path of a file in the repository.
pub(crate) fn path(name: &str) -> String {
    root().join(name).display().to_string()
}

/// Why a board cannot be used.
pub(crate) fn missing(board: &str) -> Option<String> {
    let output = runtime(&["devices", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let targets = document["targets"].as_array().unwrap().iter();
    let mut devices = targets.flat_map(|target| target["devices"].as_array().unwrap());
    let device = devices.find(|device| device["name"] == board).unwrap();
    device["unavailable_reason"].as_str().map(str::to_owned)
}
