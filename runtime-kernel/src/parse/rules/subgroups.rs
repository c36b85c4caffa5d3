//! What belongs to subgroups needs `enable subgroups;` (§enable-extensions-sec).

use super::Violation;
use crate::parse::tokens::{Token, text};

/// The extensions that have subgroups. The matrices of the last one are held by subgroups, too.
const EXTENSIONS: [&str; 3] = ["subgroups", "chromium_experimental_subgroups", "wgpu_cooperative_matrix"];

/// The first use of subgroups in a text that does not enable them.
pub(super) fn not_enabled(tokens: &[Token<'_>]) -> Option<Violation> {
    let used = (0..tokens.len()).find(|&at| is_call(tokens, at) || is_built_in(tokens, at))?;
    let name = tokens[used].text;
    if is_enabled(tokens) || is_declared(tokens, name) {
        return None;
    }
    let text = format!("`{name}` is part of subgroups; begin the text with `enable subgroups;`");
    Some(Violation { place: tokens[used].span(), text })
}

fn is_call(tokens: &[Token<'_>], at: usize) -> bool {
    let name = tokens[at].text;
    let is_name = name.strip_prefix("subgroup").is_some_and(|rest| rest.starts_with(char::is_uppercase))
        || name.strip_prefix("quad").is_some_and(|rest| rest == "Broadcast" || rest.starts_with("Swap"));
    is_name && text(tokens, at + 1) == "(" && (at == 0 || text(tokens, at - 1) != "fn")
}

fn is_built_in(tokens: &[Token<'_>], at: usize) -> bool {
    let name = tokens[at].text;
    (name.starts_with("subgroup_") || name == "num_subgroups")
        && at > 1
        && text(tokens, at - 1) == "("
        && text(tokens, at - 2) == "builtin"
}

/// Whether a directive enables subgroups. Directives precede everything else.
fn is_enabled(tokens: &[Token<'_>]) -> bool {
    let mut directives = tokens.split(|token| token.text == ";");
    directives.any(|directive| {
        directive.first().is_some_and(|first| first.text == "enable")
            && directive.iter().any(|token| EXTENSIONS.contains(&token.text))
    })
}

/// Whether the text has a function of its own with a name.
fn is_declared(tokens: &[Token<'_>], name: &str) -> bool {
    tokens.windows(2).any(|pair| pair[0].text == "fn" && pair[1].text == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::tokens::tokens;

    fn is_refused(code: &str) -> bool {
        not_enabled(&tokens(code).collect::<Vec<_>>()).is_some()
    }

    #[test]
    fn only_what_is_of_subgroups_needs_them() {
        for used in
            ["subgroupAdd(1)", "quadSwapX(1)", "quadBroadcast(x, 1u)", "@builtin(subgroup_size) n: u32"]
        {
            assert!(is_refused(used), "{used}");
            assert!(is_refused(&format!("enable f16; {used}")), "{used}");
            assert!(!is_refused(&format!("enable f16, subgroups; {used}")), "{used}");
            assert!(!is_refused(&format!("enable f16; enable subgroups; {used}")), "{used}");
        }
        for own in [
            "fn subgroupAdd(a: u32) { } fn g() { subgroupAdd(1u); }",
            "subgroups(1)",
            "quadratic(1)",
            "subgroup_size",
        ] {
            assert!(!is_refused(own), "{own}");
        }
    }
}
