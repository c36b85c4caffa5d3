//! `cargo xtask lint`: product crates start programs in one place, `runtime-core/src/platform/program`, and catch panics in one,
//! `runtime-core/src/panics.rs`.
//!
//! `clippy.toml` lists what does either. Clippy looks for it only where a crate asks for that, so that tests and tasks can do
//! what they like; every product crate must ask.

use std::fs;

use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;

const LINE: &str = "#![cfg_attr(not(test), warn(clippy::disallowed_methods))]";

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let files = workspace.tracked_files()?;
    let is_root = |name: &&String| {
        name.starts_with("runtime-") && (name.ends_with("/src/lib.rs") || name.ends_with("/src/main.rs"))
    };
    let lacks_line = |name: &&String| {
        let text = fs::read_to_string(workspace.root.join(name)).unwrap_or_default();
        !text.lines().any(|line| line == LINE)
    };
    let without: Vec<_> = files.iter().filter(is_root).filter(lacks_line).map(String::as_str).collect();
    match without.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!("without the line {LINE}: {}", without.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_product_crate_asks() {
        check(&Workspace::read().unwrap()).unwrap();
    }
}
