//! Errors for invalid code, with their location.

use naga::Span;
use runtime_core::{Error, ErrorKind};

/// The error for invalid code.
pub(crate) fn failed(message: String) -> Error {
    Error::new(ErrorKind::CompileFailed, message)
}

/// `path:line` of `span` in `source`.
pub(crate) fn location(source: &str, path: &str, span: Span) -> String {
    let path = path_or_wgsl(path);
    match line(source, span) {
        Some(line) => format!("{path}:{line}"),
        None => path.to_owned(),
    }
}

pub(crate) fn line(source: &str, span: Span) -> Option<u32> {
    let before = source.as_bytes().get(..span.to_range()?.start)?;
    let ends = before.iter().filter(|&&byte| byte == b'\n').count();
    u32::try_from(ends + 1).ok()
}

/// The name of a text in messages; text without a path is called `wgsl`.
pub(crate) fn path_or_wgsl(path: &str) -> &str {
    if path.is_empty() { "wgsl" } else { path }
}
