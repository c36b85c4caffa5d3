//! Library functions on a scalar type, from the C text in `scalars.c`.

use std::sync::LazyLock;

use naga::{Scalar, ScalarKind};

use super::integer::unsigned;
use crate::ir::declare::scalar_name;
use crate::print::c::writer::Writer;

/// The definition of a function.
pub(crate) struct Template {
    /// The types that have it: `signed`, `unsigned`, `integer` or `float`, or one of these or a type with a dialect or a width.
    types: &'static str,
    name: &'static str,
    /// The functions that it calls.
    pub(crate) needs: Vec<&'static str>,
    pub(crate) text: &'static str,
}

static ALL: LazyLock<Vec<Template>> =
    LazyLock::new(|| include_str!("scalars.c").split("\n\n").filter_map(Template::of).collect());

impl Template {
    /// Parses a section of the text: comments, the last of which is the title, then the function.
    fn of(part: &'static str) -> Option<Self> {
        let text = part.find("$T")?;
        let title = part[..text].trim_end().rsplit("// ").next()?;
        let (title, needs) = title.split_once(": ").unwrap_or((title, ""));
        let (types, name) = title.split_once(' ')?;
        let needs = needs.split_whitespace().collect();
        Some(Self { types, name, needs, text: part[text..].trim_end() })
    }
}

impl Writer<'_> {
    /// The definition of a function on a type; the most special one.
    pub(super) fn template(&self, name: &str, scalar: Scalar) -> Option<&'static Template> {
        let (own, all) = match scalar.kind {
            ScalarKind::Float => ("", "float"),
            ScalarKind::Sint => ("signed", "integer"),
            _ => ("unsigned", "integer"),
        };
        let (dialect, bits) = (format!("{:?}", self.dialect), u32::from(scalar.width) * 8);
        let dialects = [scalar_name(scalar), all].map(|types| format!("{types}.{dialect}"));
        let types = [&dialects[0], &dialects[1], own, all, &format!("{all}.{bits}")];
        let named: Vec<_> = ALL.iter().filter(|known| known.name == name).collect();
        types.into_iter().find_map(|types| named.iter().copied().find(|known| known.types == types))
    }

    /// Instantiates a template.
    pub(crate) fn expand(&self, template: &str, name: &str, scalar: Scalar) -> String {
        let is_wide = scalar.width == 8;
        let mut text = String::with_capacity(template.len() + 64);
        let mut rest = template;
        while let Some(at) = rest.find('$') {
            text.push_str(&rest[..at]);
            match rest.as_bytes().get(at + 1) {
                Some(b'T') => text.push_str(scalar_name(scalar)),
                Some(b'U') => text.push_str(scalar_name(unsigned(scalar))),
                Some(b'N') => text.push_str(name),
                Some(b'W') => text.push_str(if is_wide { "64" } else { "32" }),
                Some(b'M') => text.push_str(if is_wide { "63" } else { "31" }),
                Some(b'L') => text.push_str(&self.least(scalar)),
                Some(b'l') => text.push_str(if is_wide { "ll" } else { "" }),
                Some(b'S') => text.push_str(if is_wide { "" } else { "f" }),
                _ => {}
            }
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        text.push_str(rest);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_text_but_the_first_is_a_template() {
        assert_eq!(ALL.len(), include_str!("scalars.c").split("\n\n").count() - 1);
        for Template { name, needs, text, .. } in ALL.iter() {
            assert!(
                text.starts_with("$T $N(") && text.ends_with('}') && !text.contains("//"),
                "{name}: {text}"
            );
            let called = |need: &&str| text.contains(&format!("$T_{need}("));
            assert!(needs.iter().all(called) && needs.len() == text.matches("$T_").count(), "{name}");
        }
    }
}
