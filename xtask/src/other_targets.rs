//! `cargo xtask lint`: the types for other targets, where the compiler has them. Otherwise the check says what it left out.

use std::fs;
use std::process::Command;

use crate::process::{Outcome, output, run};
use crate::workspace::Workspace;

/// Links most product crates, and no C code, which would need a compiler for the target.
const PACKAGE: &str = "runtime-cli";

/// Checks the types for the other targets in `deny.toml`.
pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let config = fs::read_to_string(workspace.root.join("deny.toml"))?;
    let installed = installed_targets();
    for target in targets(&config).filter(|target| !is_host(target)) {
        if installed.lines().any(|line| line == target) {
            run(&mut workspace.cargo(&["check", "--quiet", "--package", PACKAGE, "--target", target]))?;
        } else {
            eprintln!("xtask: other targets: {target} is not checked (rustup target add {target})");
        }
    }
    Ok(())
}

/// One per line; none without `rustup`.
fn installed_targets() -> String {
    let mut rustup = Command::new("rustup");
    output(rustup.args(["target", "list", "--installed"])).unwrap_or_default()
}

/// The targets in the line `targets = […]` of a configuration.
fn targets(config: &str) -> impl Iterator<Item = &str> {
    let line = config.lines().find(|line| line.starts_with("targets = ")).unwrap_or_default();
    line.split('"').skip(1).step_by(2)
}

fn is_host(target: &str) -> bool {
    target.starts_with(std::env::consts::ARCH) && target.contains(std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::targets;

    #[test]
    fn the_targets_of_a_configuration_are_read() {
        let config = "[graph]\ntargets = [\"a\", \"b\"]\nx = [\"c\"]\n";
        assert_eq!(targets(config).collect::<Vec<_>>(), ["a", "b"]);
    }
}
