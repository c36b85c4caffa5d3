//! Blanks out functions that no entry point reaches: what the values of overrides make of them is no error (§errors).

use std::collections::HashSet;

use naga::Module;

use super::text_edits::applied;
use super::tokens::tokens;
use crate::ir::blocks;

/// `code`, whose functions are those of `module`, without these functions. Lines stay the same.
pub(crate) fn blanked(module: &Module, code: &str) -> String {
    let mut reached = vec![false; module.functions.len()];
    module.entry_points.iter().for_each(|point| blocks::note_calls(&point.function.body, &mut reached));
    blocks::note_inner_calls(module, &mut reached);
    let unreached = module.functions.iter().filter(|(handle, _)| !reached[handle.index()]);
    let unreached: HashSet<_> = unreached.filter_map(|(_, function)| function.name.as_deref()).collect();
    if unreached.is_empty() {
        return code.to_owned();
    }
    let mut edits = Vec::new();
    // The start of the declaration, the name of its function, whether that is for drawing, and the depth in braces.
    let (mut start, mut name, mut draws, mut depth) = (None, None, false, 0_usize);
    let mut list = tokens(code);
    while let Some(token) = list.next() {
        let start_of_this = *start.get_or_insert(token.range.start);
        match token.text {
            "fn" => name = list.next().map(|token| token.text),
            "vertex" | "fragment" if depth == 0 && name.is_none() => draws = true,
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    if name.take().is_some_and(|name| draws || unreached.contains(name)) {
                        edits.push((start_of_this..token.range.end, String::new()));
                    }
                    (start, draws) = (None, false);
                }
            }
            ";" if depth == 0 => (start, draws) = (None, false),
            _ => {}
        }
    }
    applied(code, edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_that_draw_go_with_what_only_they_call() {
        let code = "fn a() -> u32 { return 3u; } @fragment fn b() -> @location(0) vec4f { return vec4f(f32(a())); } @compute @workgroup_size(1) fn main() { }";
        let mut module = naga::front::wgsl::parse_str(code).unwrap();
        crate::parse::bindings::keep_compute(&mut module);
        assert_eq!(blanked(&module, code).trim(), "@compute @workgroup_size(1) fn main() { }");
    }

    #[test]
    fn only_what_is_reached_stays() {
        let code = "struct S { a: u32 }\n@must_use fn a(s: S) -> u32 { if true { return 1u; }\n return b(); } fn b() -> u32 { return 2u; } fn c() { _ = b(); }\nconst k = 1; @compute @workgroup_size(1) fn main() { c(); }";
        let module = naga::front::wgsl::parse_str(code).unwrap();
        let expected = "struct S { a: u32 }\n\n fn b() -> u32 { return 2u; } fn c() { _ = b(); }\nconst k = 1; @compute @workgroup_size(1) fn main() { c(); }";
        assert_eq!(blanked(&module, code), expected);
    }
}
