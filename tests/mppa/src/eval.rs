//! `runtime eval` on a fake machine.

use std::path::{Path, PathBuf};

use libtest_mimic::Failed;
use opencl::{DEADLINE, Finished, IcdFolder, built};
use serde_json::Value;

/// Evaluates `spec.toml` in a folder, and writes `rows.json` there.
///
/// # Errors
/// The backend or the command is not built, or it does not end.
pub fn start_eval(
    folder: &Path,
    variables: &[(&str, PathBuf)],
    arguments: &[&str],
) -> Result<Finished, Failed> {
    let mut command = crate::command(&IcdFolder::empty(), built("runtime")?)?;
    command.current_dir(folder).envs(variables.iter().cloned());
    command.args(["eval", "spec.toml", "--no-validate", "--json", "rows.json"]).args(arguments);
    Ok(opencl::finish(&mut command, DEADLINE)?)
}

/// The rows of `spec.toml` in a folder.
///
/// # Errors
/// As [`start_eval`]; what the command said if it wrote no rows.
pub fn eval_rows(
    folder: &Path,
    variables: &[(&str, PathBuf)],
    arguments: &[&str],
) -> Result<Vec<Value>, Failed> {
    let finished = start_eval(folder, variables, arguments)?;
    let document = std::fs::read_to_string(folder.join("rows.json"))
        .map_err(|error| format!("{error}: {finished:?}"))?;
    let document: Value = serde_json::from_str(&document)?;
    Ok(document["rows"].as_array().cloned().unwrap_or_default())
}

/// The first row of `spec.toml` in a folder.
///
/// # Errors
/// As [`eval_rows`]; if there is no row.
pub fn eval_row(folder: &Path, variables: &[(&str, PathBuf)], arguments: &[&str]) -> Result<Value, Failed> {
    Ok(eval_rows(folder, variables, arguments)?.into_iter().next().ok_or("no row")?)
}
