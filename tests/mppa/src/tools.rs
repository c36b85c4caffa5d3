//! Fake tools: shell scripts.

use std::path::Path;
use std::process::Command;

/// Writes a shell script, with its folders. Another process writes it: a child that another thread starts meanwhile would inherit this
/// one's descriptor, and a file that is open for writing cannot be executed.
///
/// # Panics
/// If it cannot be written.
pub fn write_tool(path: &Path, script: &str) {
    let text = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).expect("a writable file");
    let status = Command::new("install").args(["-D", "-m", "755"]).arg(text.path()).arg(path).status();
    assert!(status.expect("install").success(), "{}", path.display());
}
