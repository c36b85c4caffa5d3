//! `cargo xtask lint`: the folders of a crate import downwards only.

use crate::imports::{self, Imports};
use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;

/// The layers of a crate, the lowest first. A module that is not listed is not checked.
struct Layers {
    source: &'static str,
    order: &'static [&'static str],
    /// Modules that import from a layer above, each with that layer.
    exceptions: &'static [(&'static str, &'static str)],
}

const CRATES: &[Layers] = &[
    Layers {
        source: "runtime-core/src",
        order: &[
            "abi",
            "error",
            "platform",
            "process",
            "atomic_file",
            "model",
            "cache",
            "plugin",
            "timeline",
            "memory",
            "tensor",
            "code",
            "queue",
            "graph",
            "fusion",
            "evaluate",
            "device",
            "dispatch",
            "backend",
            "runtime",
        ],
        exceptions: &[],
    },
    Layers {
        source: "runtime-kernel/src",
        order: &["ir", "parse", "analysis", "check", "transform", "print", "fuse"],
        // A kernel whose functions cannot be judged on their own is inlined first.
        exceptions: &[("check::barriers", "transform")],
    },
    Layers {
        source: "runtime-embedded/src",
        order: &[
            "gdb", "uart", "boards", "module", "image", "target", "timer", "memory", "queue", "convert",
            "device",
        ],
        exceptions: &[],
    },
    Layers {
        source: "runtime-harness/src",
        order: &[
            "platform",
            "random",
            "text_file",
            "traces",
            "describe",
            "crash_context",
            "release",
            "settings",
            "spec",
            "job",
            "chain",
            "row",
            "report",
            "noise",
            "compare",
            "candidate",
            "device_lock",
            "device",
            "evaluate",
            "interleave",
            "evaluate_chain",
            "worker",
            "pool",
            "tune",
            "server",
        ],
        exceptions: &[],
    },
];

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut wrong = Vec::new();
    for layers in CRATES {
        let imports = imports::of_crate(&workspace.root.join(layers.source))?;
        wrong.extend(upward(layers, &imports).into_iter().map(|what| format!("{}: {what}", layers.source)));
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("imports upwards:\n{}", wrong.join("\n"))))
    }
}

/// The imports from a layer above the importing module's own.
fn upward(layers: &Layers, imports: &Imports) -> Vec<String> {
    let layer = |module: &str| module.split("::").next().unwrap_or_default().to_owned();
    let rank = |module: &str| layers.order.iter().position(|name| *name == layer(module));
    let mut found = Vec::new();
    for (module, others) in imports {
        let Some(own) = rank(module) else { continue };
        for other in others.iter().filter(|other| rank(other).is_some_and(|rank| rank > own)) {
            if !layers.exceptions.contains(&(module, &layer(other))) {
                found.push(format!("`{module}` imports `{other}`, which is above it"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUSE: Layers = Layers {
        source: "",
        order: &["cellar", "kitchen", "roof"],
        exceptions: &[("cellar::chimney", "roof")],
    };

    fn imports(module: &str, text: &str) -> Vec<String> {
        let house = [
            ("", "mod roof; pub use roof::tiles::{Tile, Gutter};"),
            ("cellar", ""),
            ("kitchen", ""),
            ("roof", ""),
            ("roof::tiles", ""),
            (module, text),
        ];
        let texts = house.map(|(module, text)| (module.to_owned(), text.to_owned())).into();
        upward(&HOUSE, &imports::of_modules(&texts))
    }

    #[test]
    fn an_import_from_above_is_reported() {
        let texts = [
            "use crate::roof::Tile;",
            "use crate::{kitchen::Pan, Tile};",
            "fn f(x: &crate::Gutter) {}",
            "use super::roof;",
        ];
        for text in texts {
            assert_eq!(imports("kitchen", text).len(), 1, "{text}");
        }
        assert_eq!(
            imports("cellar", "use crate::kitchen;"),
            ["`cellar` imports `kitchen`, which is above it"]
        );
        let through = imports("cellar::shelf", "use crate::Tile;");
        assert_eq!(through, ["`cellar::shelf` imports `roof::tiles`, which is above it"]);
    }

    #[test]
    fn imports_from_below_beside_or_excepted_are_accepted() {
        assert!(imports("roof", "use crate::{cellar::{a, b}, kitchen};").is_empty());
        assert!(imports("kitchen::pan", "use crate::kitchen::Pan; use super::Pot;").is_empty());
        assert!(imports("cellar::chimney", "use crate::roof::Tile;").is_empty());
        assert!(imports("garden", "use crate::roof::Tile;").is_empty());
    }
}
