//! naga's validation errors in terms of the text: what is wrong, its line, and what to write instead.

/// An explanation: what is wrong, and after a semicolon the remedy, both as for `format!`.
macro_rules! explain {
    ($text:literal $(, $part:expr)*) => {
        $crate::parse::explanations::Explanation { text: format!($text $(, $part)*), remedy: None, place: None }
    };
    ($text:literal $(, $part:expr)*; $remedy:literal $(, $more:expr)*) => {{
        let remedy = $crate::parse::explanations::Remedy(format!("note: {}", format_args!($remedy $(, $more)*)));
        $crate::parse::explanations::Explanation { remedy: Some(remedy), ..explain!($text $(, $part)*) }
    }};
}

mod entries;
mod expressions;
mod functions;
mod variables;

use std::error::Error;
use std::fmt;

use naga::common::wgsl::TypeContext as _;
use naga::proc::TypeResolution;
use naga::valid::ValidationError;
use naga::{Function, Handle, Module, Span, Type, TypeInner, WithSpan};

use super::templates::shortened;
use super::tokens::{Token, text, tokens};
use crate::ir::{Value, resolved};

/// What is wrong, and the remedy.
#[derive(Debug)]
struct Explanation {
    text: String,
    remedy: Option<Remedy>,
    /// The place, where naga has none.
    place: Option<Span>,
}

#[derive(Debug)]
struct Remedy(String);

impl Explanation {
    fn at(self, place: Option<Span>) -> Self {
        Self { place, ..self }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Explanation {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.remedy.as_ref().map(|remedy| remedy as _)
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Remedy {}

/// The module and the text that an error is about.
struct Context<'a> {
    module: &'a Module,
    code: &'a str,
}

/// Whether a text is in terms of naga's types and flags: their names, or values as Rust prints them.
fn is_internal(text: &str) -> bool {
    const WORDS: [&str; 6] = ["apabilit", "CAPABILIT", "naga", "::", "Handle", "Scalar"];
    let is_value = |(at, _): (usize, &str)| text[..at].ends_with(|before: char| before.is_alphanumeric());
    WORDS.iter().any(|word| text.contains(word))
        || text.contains(" { ")
        || text.match_indices('(').filter(|(at, _)| !text[*at..].starts_with("()")).any(is_value)
            && !text.contains('`')
}

fn or_empty(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or_default()
}

/// The message of an error, with the lines that it concerns.
pub(super) fn explained(
    module: &Module,
    error: &WithSpan<ValidationError>,
    code: &str,
    path: &str,
) -> String {
    let context = Context { module, code };
    let explanation = context.of(error.as_inner());
    let mut places: Vec<_> = error.spans().filter(|(span, _)| span.is_defined()).collect();
    let is_function = |(_, label): &(Span, String)| label.starts_with("naga::ir::Function");
    if places.iter().any(|place| !is_function(place)) {
        places.retain(|place| !is_function(place));
    }
    let mut places: Vec<_> = places
        .into_iter()
        .map(|place| if is_function(place) { context.header(place.0) } else { place.0 })
        .collect();
    if places.is_empty() {
        places.extend(explanation.place);
    }
    let mut located = WithSpan::new(explanation);
    for place in places {
        located = located.with_span(place, "");
    }
    located.emit_to_string_with_path(code, path)
}

impl Context<'_> {
    fn of(&self, error: &ValidationError) -> Explanation {
        match error {
            ValidationError::Type { handle, source, .. } => self.of_type(*handle, source),
            ValidationError::GlobalVariable { handle, source, .. } => self.of_variable(*handle, source),
            ValidationError::Function { handle, source, .. } => {
                self.of_function(&self.module.functions[*handle], source)
            }
            ValidationError::EntryPoint { name, source, .. } => self.of_entry(name, source),
            other => self.of_other(None, other),
        }
    }

    /// naga's own words for the cause, without its handles.
    fn of_other(&self, function: Option<&Function>, error: &(dyn Error + 'static)) -> Explanation {
        let mut cause = error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        let text = self.without_handles(function, &cause.to_string());
        if is_internal(&text) {
            return explain!("portable kernels do not have this"; "the supported part of WGSL is in docs/kernels.md");
        }
        explain!("{text}")
    }

    /// Replaces the handle of each expression, which naga writes `[3]`, by its text.
    fn without_handles(&self, function: Option<&Function>, text: &str) -> String {
        let mut new = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('[') {
            let Some((number, after)) = after.split_once(']') else { break };
            new += before;
            match number.parse::<usize>() {
                Ok(number) => {
                    let value = function.and_then(|function| function.expressions.iter().nth(number));
                    let text = value.and_then(|(handle, _)| self.text_of(function?, handle));
                    new += &text.unwrap_or_else(|| "it".to_owned());
                }
                Err(_) => new += &format!("[{number}]"),
            }
            rest = after;
        }
        new + rest
    }

    /// The text of an expression, between backquotes.
    fn text_of(&self, function: &Function, value: Value) -> Option<String> {
        let span = function.expressions.get_span(value).to_range()?;
        let text = self.code.get(span)?.lines().next()?;
        (!text.is_empty()).then(|| format!("`{}`", shortened(text)))
    }

    fn text_or_this(&self, function: &Function, value: Value) -> String {
        self.text_of(function, value).unwrap_or_else(|| "this".to_owned())
    }

    /// The type of an expression, or of what it points to, between backquotes.
    fn value_type(&self, function: &Function, value: Value) -> Option<String> {
        resolved(self.module, function, value).map(|ty| match ty.inner_with(&self.module.types) {
            TypeInner::Pointer { base, .. } => self.type_name(*base),
            _ => self.resolution_name(&ty),
        })
    }

    /// The type of an expression, between backquotes.
    fn exact_type(&self, function: &Function, value: Value) -> String {
        let ty = resolved(self.module, function, value);
        ty.map_or_else(|| "of another type".to_owned(), |ty| self.resolution_name(&ty))
    }

    fn resolution_name(&self, ty: &TypeResolution) -> String {
        match ty {
            TypeResolution::Handle(ty) => self.type_name(*ty),
            TypeResolution::Value(inner) => self.inner_name(inner),
        }
    }

    fn type_name(&self, ty: Handle<Type>) -> String {
        format!("`{}`", self.module.to_ctx().type_to_string(ty))
    }

    fn inner_name(&self, inner: &TypeInner) -> String {
        let mut text = String::new();
        let written = self.module.to_ctx().write_type_inner(inner, &mut text);
        written.map_or_else(|_| "this type".to_owned(), |()| format!("`{text}`"))
    }

    /// The first line of a function.
    fn header(&self, span: Span) -> Span {
        let Some(range) = span.to_range() else { return span };
        let text = self.code.get(range.clone()).unwrap_or_default();
        let length = text.find(['{', '\n']).map_or(text.len(), |end| text[..end].trim_end().len());
        match (u32::try_from(range.start), u32::try_from(range.start + length)) {
            (Ok(start), Ok(end)) => Span::new(start, end),
            _ => span,
        }
    }

    /// The name of a function in the text, or that of one of its arguments.
    fn name_of(&self, function: &str, argument: Option<&str>) -> Option<Span> {
        let tokens: Vec<_> = tokens(self.code).collect();
        let is_here = |at: usize| text(&tokens, at) == "fn" && text(&tokens, at + 1) == function;
        let name = (0..tokens.len()).find(|&at| is_here(at))? + 1;
        let is_argument = |at: &usize| Some(text(&tokens, *at)) == argument && text(&tokens, at + 1) == ":";
        let found = argument.and_then(|_| (name..tokens.len()).find(is_argument));
        tokens.get(found.unwrap_or(name)).map(Token::span)
    }
}
