//! `cargo xtask lint`: modules import downwards only, and never in a circle.
//!
//! No two modules of a folder import each other, neither directly nor through others, each with all that is below it. So every
//! folder has an order; where it says something, the table fixes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::imports::{self, Imports};
use crate::process::{Failure, Outcome};
use crate::workspace::Workspace;
use crate::{circles, count_lines};

/// What is fixed of a crate.
struct Crate {
    name: &'static str,
    /// Modules of its root, the lowest first.
    order: &'static str,
    /// Circles: the modules that are one type, in several files, or otherwise belong together; each with the reason.
    circles: &'static [(&'static str, &'static str)],
}

const CRATES: &[Crate] = &[
    Crate {
        name: "runtime-core",
        order: "abi error panics platform process atomic_file model cache plugin timeline memory tensor code queue graph fusion \
                evaluate device dispatch backend runtime",
        circles: &[
            ("code::kernel code::module", "a module has kernels, which keep it loaded"),
            (
                "device::accelerator device::common_runtime device::embedded device::host",
                "a device can be asked for its kind",
            ),
        ],
    },
    Crate {
        name: "runtime-kernel",
        order: "ir parse program analysis transform check print fuse",
        circles: &[
            ("fuse::keep fuse::plan", "the methods of `Planner`"),
            ("print::c::invocation::bounds_checks print::c::invocation::place", "methods of `Printer`"),
            (
                "print::c::invocation::environment print::c::invocation::expression print::c::invocation::hoisted_checks \
                 print::c::invocation::statement print::c::invocation::unchecked_variant",
                "methods of `Printer`, which prints statements and the expressions in them",
            ),
            ("transform::inline::body transform::inline::unroll", "the methods of `Rebuild`"),
        ],
    },
    Crate {
        name: "runtime-harness",
        order: "platform random printable text_file traces describe origin commit crash_context release settings spec job chain row report noise compare \
                candidate device_lock device board runner evaluate interleave evaluate_chain worker pool tune server",
        circles: &[],
    },
    Crate {
        name: "runtime-host",
        order: "sysfs platform cpu_features shared_object architecture build_folder library sandbox compiler toolchain compile link \
                native_code identity register call pool parallel_for range work_groups module worker queue describe device",
        circles: &[],
    },
    Crate { name: "runtime-gpu", order: "bind driver context module queue device", circles: &[] },
    Crate {
        name: "runtime-opencl",
        order: "driver context program memory kernel queue device",
        circles: &[],
    },
    Crate { name: "runtime-vulkan", order: "driver context memory module launch queue device", circles: &[] },
    Crate {
        name: "runtime-mppa",
        order: "config driver_tree counters offload enumeration transport queue device",
        circles: &[],
    },
    Crate {
        name: "runtime-embedded",
        order: "absent gdb uart boards module image target timer convert device",
        circles: &[(
            "gdb::client gdb::description gdb::flash gdb::memory",
            "the methods of `Client`, by what they are about",
        )],
    },
    Crate {
        name: "runtime-package",
        order: "target manifest archive package choose extract builder",
        circles: &[],
    },
    Crate {
        name: "runtime-cli",
        order: "output output_paths table progress log interrupt registry probe report arguments worker compare devices eval fuse \
                tune peak examples command",
        circles: &[],
    },
    Crate {
        name: "xtask",
        order: "process workspace tokens imports circles count_lines layers requirements harden lint test",
        circles: &[],
    },
];

pub(crate) fn check(workspace: &Workspace) -> Outcome {
    let mut crates: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for name in workspace.tracked_files()?.iter().filter(|name| count_lines::is_product(name)) {
        let Some((package, file)) = name.split_once("/src/") else { continue };
        // A tracked file that does not exist was deleted without a commit yet.
        let Ok(text) = fs::read_to_string(workspace.root.join(name)) else { continue };
        crates.entry(package.to_owned()).or_default().insert(imports::module_name(file), text);
    }
    let mut wrong = Vec::new();
    for (name, texts) in &crates {
        let imports = imports::of_modules(texts);
        let fixed = CRATES.iter().find(|fixed| fixed.name == name);
        let circles = fixed.iter().flat_map(|fixed| fixed.circles);
        let accepted: BTreeSet<&str> = circles.map(|(circle, _)| *circle).collect();
        let order = fixed.map_or("", |fixed| fixed.order);
        let found = [upward(order, &imports), unexpected(&accepted, &imports)].concat();
        wrong.extend(found.into_iter().map(|what| format!("{name}: {what}")));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::new(wrong.join("\n"))) }
}

/// The imports of a module that is above the importing one in `order`.
fn upward(order: &str, imports: &Imports) -> Vec<String> {
    let rank =
        |module: &str| order.split_whitespace().position(|name| Some(name) == module.split("::").next());
    let mut found = Vec::new();
    for (module, others) in imports {
        let Some(own) = rank(module) else { continue };
        let above = others.iter().filter(|other| rank(other).is_some_and(|rank| rank > own));
        found.extend(above.map(|other| format!("`{module}` imports `{other}`, which is above it")));
    }
    found
}

/// The circles that are not accepted, and the accepted ones that do not exist.
fn unexpected(accepted: &BTreeSet<&str>, imports: &Imports) -> Vec<String> {
    let circles: BTreeSet<String> = circles::find(imports).iter().map(|circle| circle.join(" ")).collect();
    let new = circles.iter().filter(|circle| !accepted.contains(circle.as_str()));
    let gone = accepted.iter().filter(|circle| !circles.contains(**circle));
    new.map(|circle| format!("import each other: {circle}"))
        .chain(gone.map(|circle| format!("no longer import each other, remove the entry: {circle}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house(module: &str, text: &str) -> Imports {
        let rooms = [
            ("", "mod roof; pub use roof::tiles::{Tile, Gutter};"),
            ("cellar", ""),
            ("kitchen", ""),
            ("roof", ""),
            ("roof::tiles", ""),
            (module, text),
        ];
        imports::of_modules(&rooms.map(|(module, text)| (module.to_owned(), text.to_owned())).into())
    }

    fn upward_of(module: &str, text: &str) -> Vec<String> {
        upward("cellar kitchen roof", &house(module, text))
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
            assert_eq!(upward_of("kitchen", text).len(), 1, "{text}");
        }
        let through = upward_of("cellar::shelf", "use crate::Tile;");
        assert_eq!(through, ["`cellar::shelf` imports `roof::tiles`, which is above it"]);
    }

    #[test]
    fn imports_from_below_or_beside_are_accepted() {
        assert!(upward_of("roof", "use crate::{cellar::{a, b}, kitchen};").is_empty());
        assert!(upward_of("kitchen::pan", "use crate::kitchen::Pan; use super::Pot;").is_empty());
        assert!(upward_of("garden", "use crate::roof::Tile;").is_empty());
    }

    #[test]
    fn circles_are_accepted_as_long_as_they_exist() {
        let imports = imports::of_modules(
            &[("", ""), ("a", "use crate::b;"), ("b", "use crate::a;")]
                .map(|(module, text)| (module.to_owned(), text.to_owned()))
                .into(),
        );
        assert_eq!(unexpected(&BTreeSet::new(), &imports), ["import each other: a b"]);
        assert!(unexpected(&["a b"].into(), &imports).is_empty());
        let gone = unexpected(&["a b", "b c"].into(), &imports);
        assert_eq!(gone, ["no longer import each other, remove the entry: b c"]);
    }
}
