//! Reads a TOML document, or the same as JSON; every error names the place and the nearest valid key.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use runtime_core::backend::did_you_mean;
use runtime_core::{Error, Number, OptionValue, Result};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::expression::{Symbols, evaluate};
use super::inline::{InlineSpec, Keys};

/// A document being read.
#[derive(Debug)]
pub(super) struct Document<'a> {
    path: &'a Path,
    places: Places<'a>,
    /// The files named by the part read so far.
    files: RefCell<Vec<PathBuf>>,
}

/// What the spans of values are about.
#[derive(Debug)]
enum Places<'a> {
    /// The text of the file.
    Lines(&'a str),
    Keys(Keys<'a>),
}

impl<'a> Document<'a> {
    pub(super) fn new(path: &'a Path, text: &'a str) -> Self {
        Self { path, places: Places::Lines(text), files: RefCell::new(vec![path.to_owned()]) }
    }

    /// A document without a file.
    pub(super) fn inline(keys: Keys<'a>) -> Self {
        Self { path: Path::new(InlineSpec::NAME), places: Places::Keys(keys), files: RefCell::default() }
    }

    pub(super) const fn path(&self) -> &'a Path {
        self.path
    }

    /// The document itself and the files it names.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.files.borrow().clone()
    }

    /// The document's tables, or the location of a syntax error.
    pub(super) fn parse(&self, text: &'a str) -> Result<Spanned<DeTable<'a>>> {
        DeTable::parse(text).map_err(|error| {
            let (span, message) = (error.span().unwrap_or(0..0), error.message());
            match self.path.extension() {
                Some(extension) if extension == "toml" => self.error(&span, message),
                // Most likely the kernel itself.
                _ => self.error(
                    &span,
                    &format!(
                        "{message}; expected a spec, a TOML file that names the kernel and its arguments"
                    ),
                ),
            }
        })
    }

    /// `file:line` of the start of `span`, or the path of the key.
    pub(super) fn location(&self, span: &Range<usize>) -> String {
        match &self.places {
            Places::Lines(text) => {
                let line = 1 + text.bytes().take(span.start).filter(|&byte| byte == b'\n').count();
                format!("{}:{line}", self.path.display())
            }
            Places::Keys(keys) => keys.path(span.start),
        }
    }

    pub(super) fn error(&self, span: &Range<usize>, message: &str) -> Error {
        Error::invalid(format!("{}: {message}", self.location(span)))
    }

    /// Resolves a path relative to the spec's directory.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }
}

/// A table with a fixed set of keys.
#[derive(Debug)]
pub(super) struct Section<'a> {
    document: &'a Document<'a>,
    name: &'static str,
    span: Range<usize>,
    table: &'a DeTable<'a>,
}

impl<'a> Section<'a> {
    /// Opens a table and checks that all its keys are in `valid`.
    pub(super) fn new(
        document: &'a Document<'a>,
        name: &'static str,
        table: &'a Spanned<DeTable<'a>>,
        valid: &[&str],
    ) -> Result<Self> {
        let section = Self { document, name, span: table.span(), table: table.get_ref() };
        section.check_keys(valid)?;
        Ok(section)
    }

    fn check_keys(&self, valid: &[&str]) -> Result<()> {
        let unknown = self.table.keys().filter(|key| !valid.contains(&key.get_ref().as_ref()));
        match unknown.min_by_key(|key| key.span().start) {
            None => Ok(()),
            Some(key) => Err(self.document.error(
                &key.span(),
                &format!(
                    "unknown key \"{0}\" in {1}; {2}",
                    key.get_ref(),
                    self.name,
                    did_you_mean(key.get_ref(), valid)
                ),
            )),
        }
    }

    pub(super) fn optional(&self, key: &str) -> Option<Item<'a>> {
        let (name, value) = self.table.get_key_value(key)?;
        Some(Item { document: self.document, section: self.name, key: name.get_ref(), value })
    }

    pub(super) fn required(&self, key: &str) -> Result<Item<'a>> {
        self.optional(key).ok_or_else(|| self.error(&format!("missing key \"{key}\" in {}", self.name)))
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// All entries, for tables with user-defined keys.
    pub(super) fn items(&self) -> impl Iterator<Item = Item<'a>> {
        let (document, section) = (self.document, self.name);
        self.table.iter().map(move |(key, value)| Item { document, section, key: key.get_ref(), value })
    }

    pub(super) fn error(&self, message: &str) -> Error {
        self.document.error(&self.span, message)
    }

    pub(super) fn location(&self) -> String {
        self.document.location(&self.span)
    }

    /// The file of the document.
    pub(super) const fn path(&self) -> &'a Path {
        self.document.path()
    }
}

/// The value of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    document: &'a Document<'a>,
    section: &'static str,
    pub(super) key: &'a str,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Item<'a> {
    pub(super) fn error(&self, message: &str) -> Error {
        self.document.error(&self.value.span(), &format!("{} in {}: {message}", self.key, self.section))
    }

    /// `file:line` of the value.
    pub(super) fn location(&self) -> String {
        self.document.location(&self.value.span())
    }

    pub(super) fn expected(&self, what: &str) -> Error {
        let got = match self.value.get_ref() {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.error(&format!("expected {what}, got {got}"))
    }

    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    pub(super) fn is_text(&self) -> bool {
        self.value.get_ref().is_str()
    }

    pub(super) fn text(&self) -> Result<&'a str> {
        self.value.get_ref().as_str().ok_or_else(|| self.expected("text"))
    }

    pub(super) fn flag(&self) -> Result<bool> {
        self.value.get_ref().as_bool().ok_or_else(|| self.expected("true or false"))
    }

    /// One of `valid`.
    pub(super) fn choice<T: Copy>(&self, valid: &[(&str, T)]) -> Result<T> {
        let text = self.text()?;
        valid.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<_> = valid.iter().map(|(name, _)| *name).collect();
            self.error(&format!("unknown value \"{text}\"; {}", did_you_mean(text, &names)))
        })
    }

    /// A name that `T` parses.
    pub(super) fn parsed<T: FromStr<Err = Error>>(&self) -> Result<T> {
        self.text()?.parse().map_err(|error: Error| self.error(error.message()))
    }

    /// An existing file.
    pub(super) fn file(&self) -> Result<PathBuf> {
        self.existing_file(self.text()?)
    }

    /// The existing file at `path`, relative to the spec.
    pub(super) fn existing_file(&self, path: &str) -> Result<PathBuf> {
        let resolved = self.document.resolve(path);
        match resolved.metadata() {
            Ok(metadata) if metadata.is_file() => {
                self.document.files.borrow_mut().push(resolved.clone());
                Ok(resolved)
            }
            Ok(_) => Err(self.error(&format!("\"{}\" is not a regular file", resolved.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(self.error(&format!("there is no file \"{}\"", resolved.display())))
            }
            Err(error) => Err(self.error(&format!("\"{}\": {error}", resolved.display()))),
        }
    }

    /// An integer of at least `least` that fits `T`.
    pub(super) fn integer<T: TryFrom<i128>>(&self, least: i128) -> Result<T> {
        let DeValue::Integer(integer) = self.value.get_ref() else { return Err(self.expected("an integer")) };
        let value = i128::from_str_radix(integer.as_str(), integer.radix());
        let value = value.map_err(|_| self.error("the integer is too large"))?;
        if value < least {
            return Err(self.error(&format!("must be at least {least}, got {value}")));
        }
        T::try_from(value).map_err(|_| self.error(&format!("{value} is too large")))
    }

    /// An integer of at least `least` that fits `T`, or an expression with such a value.
    pub(super) fn size<T: TryFrom<i128>>(&self, names: &Symbols, least: i128) -> Result<T> {
        if !self.is_text() {
            return self.integer(least);
        }
        let value = evaluate(self.text()?, names).map_err(|message| self.error(&message))?;
        let whole = to_integer(value)
            .ok_or_else(|| self.error(&format!("the expression's value is {value}, not a whole number")))?;
        if whole < least {
            return Err(self.error(&format!("must be at least {least}, the expression's value is {whole}")));
        }
        T::try_from(whole).map_err(|_| self.error(&format!("the expression's value, {whole}, is too large")))
    }

    /// Any number, or true or false.
    pub(super) fn number(&self) -> Result<Number> {
        match self.value.get_ref() {
            DeValue::Boolean(flag) => Ok(Number::Bool(*flag)),
            DeValue::Integer(integer) => {
                let whole = i128::from_str_radix(integer.as_str(), integer.radix());
                // An integer that exceeds every type is still a valid floating-point number.
                whole.map(Number::Integer).or_else(|_| self.parse_float(integer.as_str()))
            }
            DeValue::Float(float) => self.parse_float(float.as_str()),
            _ => Err(self.expected("a number")),
        }
    }

    fn parse_float(&self, text: &str) -> Result<Number> {
        text.parse().map(Number::Float).map_err(|_| self.error("not a number"))
    }

    /// A finite number.
    pub(super) fn finite(&self) -> Result<f64> {
        let value = self.number()?.as_f64().ok_or_else(|| self.expected("a number"))?;
        match value.is_finite() {
            true => Ok(value),
            false => Err(self.error("expected finite numbers of at most 1.8e308")),
        }
    }

    /// A finite number of at least `least`.
    pub(super) fn real(&self, least: f64) -> Result<f64> {
        let value = self.number()?.as_f64().ok_or_else(|| self.expected("a number"))?;
        match value >= least && value.is_finite() {
            true => Ok(value),
            false => Err(self.error(&format!("must be a finite number of at least {least}, got {value}"))),
        }
    }

    /// The items of a list, or the value itself.
    pub(super) fn one_or_more(&self) -> Vec<Self> {
        if self.value.get_ref().is_array() { self.list().unwrap_or_default() } else { vec![*self] }
    }

    pub(super) fn list(&self) -> Result<Vec<Self>> {
        let items = self.value.get_ref().as_array().ok_or_else(|| self.expected("a list"))?;
        Ok(items.iter().map(|value| Self { value, ..*self }).collect())
    }

    /// A table with the keys `valid`.
    pub(super) fn section(&self, name: &'static str, valid: &[&str]) -> Result<Section<'a>> {
        let section = self.open_section(name)?;
        section.check_keys(valid)?;
        Ok(section)
    }

    /// A table with user-defined keys.
    pub(super) fn open_section(&self, name: &'static str) -> Result<Section<'a>> {
        let table = self.value.get_ref().as_table().ok_or_else(|| self.expected("a table"))?;
        Ok(Section { document: self.document, name, span: self.value.span(), table })
    }

    /// An option's value.
    pub(super) fn option(&self) -> Result<OptionValue> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(OptionValue::Text(text.as_ref().to_owned())),
            DeValue::Boolean(flag) => Ok(OptionValue::Flag(*flag)),
            DeValue::Integer(_) => self.integer(i128::from(i64::MIN)).map(OptionValue::Integer),
            DeValue::Float(_) => Ok(OptionValue::Number(self.number()?.as_f64().unwrap_or_default())),
            _ => Err(self.expected("text, a number, true or false, or a list of these")),
        }
    }
}

/// Converts `value` if it is exactly an integer.
#[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
pub(super) fn to_integer(value: f64) -> Option<i128> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i128)
}
