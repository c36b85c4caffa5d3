//! Every loop can end: by `break`, by `return` or by its condition (§behaviors-rules).

use naga::Module;

use super::Violation;
use crate::ir::{behaviors, blocks};

/// The loops that never end.
pub(super) fn endless(module: &Module) -> Vec<Violation> {
    let mut found = Vec::new();
    for function in blocks::functions(module) {
        behaviors::of_block(&function.body, &mut |place| {
            let text = "this loop never ends: it has no condition, and nothing leaves it; add a `break`";
            found.push(Violation { place, text: text.to_owned() });
        });
    }
    found
}
