//! Trials that need a sandbox, and evaluations by the command in workers.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use libtest_mimic::{Completion, Failed, Trial};
use runtime_core::backend::missing_sandbox_parts;
use serde_json::Value;
use test_process::required;

/// What the sandbox of this system lacks.
static MISSING: LazyLock<Option<String>> = LazyLock::new(|| {
    let missing: Vec<String> = missing_sandbox_parts().iter().map(ToString::to_string).collect();
    (!missing.is_empty()).then(|| missing.join("\n"))
});

/// A trial that is ignored where the system lacks a part of the sandbox; `RUNTIME_REQUIRE=sandbox` makes that a failure.
pub(crate) fn trial(
    name: String,
    run: impl FnOnce() -> Result<Completion, Failed> + Send + 'static,
) -> Trial {
    trial_with(name, || None, run)
}

/// The same with something else that may be missing: what `RUNTIME_REQUIRE` calls it, and the reason.
pub(crate) fn trial_with(
    name: String,
    lacks: impl FnOnce() -> Option<(&'static str, String)> + Send + 'static,
    run: impl FnOnce() -> Result<Completion, Failed> + Send + 'static,
) -> Trial {
    Trial::ignorable_test(name, move || {
        let sandbox = MISSING.clone().map(|missing| ("sandbox", missing));
        match sandbox.or_else(lacks) {
            None => run(),
            Some((name, reason)) if required(name) => Err(Failed::from(reason)),
            Some((_, reason)) => Ok(Completion::ignored_with(reason)),
        }
    })
}

/// `runtime eval --isolate` in a folder, with these backends, without caches and locks.
pub(crate) fn command(folder: &Path, backends: &[&str]) -> Command {
    command_of(&["eval", "--isolate"], folder, backends)
}

/// The same of another command.
pub(crate) fn command_of(arguments: &[&str], folder: &Path, backends: &[&str]) -> Command {
    let runtime = Path::new(env!("CARGO_BIN_EXE_runtime"));
    let libraries = backends.iter().map(|name| {
        let file = format!("{}runtime_{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        runtime.with_file_name(file)
    });
    let libraries = std::env::join_paths(libraries).unwrap_or_default();
    let mut command = Command::new(runtime);
    command.args(arguments).current_dir(folder).env("RUNTIME_BACKENDS", libraries);
    command.env("RUNTIME_CACHE", "off").env("RUNTIME_SHARE", "1");
    command
}

/// The rows of such a command, and what it said.
pub(crate) fn rows(command: &mut Command, folder: &Path) -> Result<(Vec<Value>, String), Failed> {
    let file = folder.join("rows.json");
    // Those of an earlier command would hide that this one has written none.
    let _ = std::fs::remove_file(&file);
    let output = command.arg("--json").arg(&file).output()?;
    let said =
        format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&file).map_err(|_| said.clone())?;
    let mut document: Value = serde_json::from_str(&text)?;
    Ok((document["rows"].as_array_mut().map(std::mem::take).unwrap_or_default(), said))
}
