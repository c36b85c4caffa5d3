//! Texts that a preprocessor or template engine has yet to turn into WGSL.

use runtime_core::Error;

use super::diagnostics::{failed, location};
use super::tokens::tokens;

/// The error for the first directive or placeholder of a text that is not WGSL. A valid text may contain the same
/// symbols, so this is for texts that could not be parsed.
pub(crate) fn unexpanded(code: &str, path: &str) -> Option<Error> {
    let foreign =
        tokens(code).find(|token| is_import(token.text) || is_foreign(&code[token.range.start..]))?;
    let line = code[foreign.range.start..].lines().next().unwrap_or_default().trim_end();
    Some(failed(format!(
        "{}: this text is not WGSL yet: `{}` is for a preprocessor or template engine; expand the text, and load the result",
        location(code, path, foreign.span()),
        shortened(line),
    )))
}

/// Statements of several dialects that name other files; WGSL reserves these words.
fn is_import(word: &str) -> bool {
    matches!(word, "use" | "import")
}

/// Whether a text begins with a directive or a placeholder. `{{` also opens two blocks, which hold statements.
fn is_foreign(rest: &str) -> bool {
    let is_placeholder = || rest.split_once("}}").is_some_and(|(inside, _)| !inside.contains([';', '\n']));
    rest.starts_with(['#', '$'])
        || rest.starts_with("{%")
        || rest.starts_with("<{")
        || (rest.starts_with("{{") && is_placeholder())
        || rest.strip_prefix('{').is_some_and(begins_with_word_and_brace)
}

/// Whether a text begins with one word and a closing brace, which is not a statement, even one without its semicolon.
fn begins_with_word_and_brace(rest: &str) -> bool {
    let after = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    let word = &rest[..rest.len() - after.len()];
    after.starts_with('}') && !matches!(word, "" | "return" | "break" | "continue" | "discard")
}

/// At most the first 40 characters.
pub(super) fn shortened(line: &str) -> &str {
    line.char_indices().nth(40).map_or(line, |(end, _)| &line[..end])
}

#[cfg(test)]
mod tests {
    use crate::{Program, Specialisation};

    fn error(code: &str) -> String {
        Program::parse(code, "a.wgsl", &Specialisation::default()).unwrap_err().to_string()
    }

    #[test]
    fn directives_and_placeholders_are_named() {
        let main = "\n@compute @workgroup_size(1) fn f() { }";
        for foreign in [
            "#import bindings",
            "#ifdef F16",
            "alias T = {{ scalar }};",
            "{%- include x -%}",
            "const N = ${n};",
            "alias U = vec2<{NUMBER}>;",
            "const M = {size}u;",
            "use camera.wgsl;",
            "import package::a;",
        ] {
            let error = error(&format!("// #define\n{foreign}{main}"));
            let named = foreign
                .trim_start_matches("alias T = ")
                .trim_start_matches("const N = ")
                .trim_start_matches("alias U = vec2")
                .trim_start_matches("const M = ");
            assert!(error.contains("a.wgsl:2: this text is not WGSL yet: `"), "{error}");
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn other_errors_keep_their_message() {
        let error =
            error("// #import\nstruct S {x: u32}\n@compute @workgroup_size(1) fn f() {{ let a = b; }}");
        assert!(error.contains("no definition in scope for identifier: `b`"), "{error}");
        let error = self::error("@compute @workgroup_size(1) fn f() { if true {return} }");
        assert!(error.contains("expected") && !error.contains("template"), "{error}");
    }
}
