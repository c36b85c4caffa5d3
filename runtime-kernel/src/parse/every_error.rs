//! The errors of all functions: naga stops at the first, so a function with an error is emptied, and the rest is checked again.

use std::ops::Range;

use naga::front::wgsl::{self, ParseError};
use naga::valid::ValidationError;
use naga::{Arena, Block, Expression, Function, Module, Span, Statement, WithSpan};

use super::diagnostics::{location, path_or_wgsl};
use super::explanations::explained;
use super::pointer_calls;
use super::tokens::{Token, text, tokens};
use super::validate;

/// Errors of one text in a message.
const MAX_ERRORS: usize = 8;

/// The messages for a text that is not WGSL, one for each function at most.
pub(super) fn of_text(first: ParseError, code: &str, path: &str) -> Vec<String> {
    let bodies = bodies(code);
    let mut rest = code.to_owned();
    let mut messages = Vec::new();
    let mut next = Some(first);
    while let Some(error) = next.take().filter(|_| messages.len() < MAX_ERRORS) {
        let places: Vec<Span> = error.labels().map(|(span, _)| span).collect();
        messages.push(match places[..] {
            [] => without_place(error.message(), code, path),
            _ => error.emit_to_string_with_path(code, path_or_wgsl(path)),
        });
        let body = bodies.iter().find(|body| places.iter().any(|place| is_inside(*place, body)));
        if let Some(body) = body
            && empty(&mut rest, body.clone())
        {
            next = wgsl::parse_str(&rest).err();
        }
    }
    messages
}

/// The messages for wrong calls of functions that take pointers to variables. Empties the functions that contain the calls.
pub(super) fn of_pointer_calls(module: &mut Module, code: &str, path: &str) -> Vec<String> {
    let (mut messages, mut emptied) = (Vec::new(), Vec::new());
    while messages.len() < MAX_ERRORS
        && let Some(error) = pointer_calls::first_wrong(module)
    {
        messages.push(explained(module, &error, code, path_or_wgsl(path)));
        empty_function(module, error.as_inner(), &mut emptied);
    }
    messages
}

/// Appends the messages for a module that breaks rules, one for each function at most.
pub(super) fn of_module(
    mut module: Module,
    first: WithSpan<ValidationError>,
    messages: &mut Vec<String>,
    code: &str,
    path: &str,
) {
    let mut emptied = Vec::new();
    let mut next = Some(first);
    while let Some(error) = next.take().filter(|_| messages.len() < MAX_ERRORS) {
        let message = explained(&module, &error, code, path_or_wgsl(path));
        if !messages.contains(&message) {
            messages.push(message);
        }
        if !empty_function(&mut module, error.as_inner(), &mut emptied) {
            break;
        }
        next = validate(&module).err().map(|error| *error);
    }
}

/// Empties the function that an error is in, with all its copies, or removes the entry point; `false` if that changes nothing.
fn empty_function(module: &mut Module, error: &ValidationError, emptied: &mut Vec<Span>) -> bool {
    match error {
        ValidationError::Function { handle, .. } => {
            let place = module.functions.get_span(*handle);
            if emptied.contains(&place) {
                return false;
            }
            emptied.push(place);
            let copies = module.functions.iter().map(|(copy, _)| copy);
            let copies: Vec<_> = copies.filter(|copy| module.functions.get_span(*copy) == place).collect();
            copies.into_iter().for_each(|copy| return_zero(module.functions.get_mut(copy)));
            true
        }
        ValidationError::EntryPoint { name, .. } => {
            let before = module.entry_points.len();
            module.entry_points.retain(|entry| entry.name != *name);
            module.entry_points.len() < before
        }
        _ => false,
    }
}

/// naga's message for an error whose place it does not know: the only place where that can be.
fn without_place(message: &str, code: &str, path: &str) -> String {
    let path = path_or_wgsl(path);
    let index = message.strip_prefix("Index ").and_then(|rest| rest.split_once(" is out of bounds"));
    let Some((index, _)) = index else { return format!("{path}: {message}") };
    let tokens: Vec<_> = tokens(code).collect();
    let is_index = |at: &usize| {
        text(&tokens, *at) == "[" && text(&tokens, at + 1) == index && text(&tokens, at + 2) == "]"
    };
    let mut places = (0..tokens.len()).filter(is_index);
    let message = format!("index {index} is out of bounds of a vector, a matrix or an array");
    match (places.next(), places.next()) {
        (Some(at), None) => {
            let line = location(code, path, tokens[at].span());
            format!("{line}: {message}")
        }
        _ => format!("{path}: {message}"),
    }
}

/// What is between the braces of each function.
pub(super) fn bodies(code: &str) -> Vec<Range<usize>> {
    let tokens: Vec<_> = tokens(code).collect();
    let mut bodies = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].text == "fn"
            && let Some((open, close)) = braces(&tokens, at)
        {
            bodies.push(tokens[open].range.end..tokens[close].range.start);
            at = close;
        }
        at += 1;
    }
    bodies
}

/// The first braces behind a token.
fn braces(tokens: &[Token<'_>], at: usize) -> Option<(usize, usize)> {
    let open = at + tokens[at..].iter().position(|token| token.text == "{")?;
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "{" => depth += 1,
            "}" if depth == 1 => return Some((open, index)),
            "}" => depth -= 1,
            _ => {}
        }
    }
    None
}

fn is_inside(place: Span, body: &Range<usize>) -> bool {
    place.to_range().is_some_and(|place| body.start <= place.start && place.start < body.end)
}

/// Replaces a part by blanks, lines excepted; `false` if that changes nothing.
fn empty(code: &mut String, part: Range<usize>) -> bool {
    let blank: String =
        code[part.clone()].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
    let is_change = code[part.clone()] != blank;
    code.replace_range(part, &blank);
    is_change
}

/// Makes a function return zeros.
fn return_zero(function: &mut Function) {
    function.expressions = Arena::new();
    function.local_variables = Arena::new();
    function.named_expressions.clear();
    let zero = function.result.as_ref().map(|result| Expression::ZeroValue(result.ty));
    let value = zero.map(|zero| function.expressions.append(zero, Span::UNDEFINED));
    function.body = Block::from_vec(vec![Statement::Return { value }]);
}
