//! A spec that a request holds as JSON instead of naming a file: the same tables and keys as in TOML.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::path::PathBuf;

use runtime_core::{Error, ErrorKind, Result};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// The most values in a spec: a line of millions would need many times its length of memory.
const MAX_VALUES: usize = 100_000;

/// Where a spec comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum SpecSource {
    /// A file.
    File(PathBuf),
    /// The request itself.
    Inline(InlineSpec),
}

/// The tables of a spec.
#[derive(Clone, Debug, PartialEq)]
pub struct InlineSpec(Node);

/// A value of JSON.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Text(String),
    /// A number as TOML writes it.
    Number(String),
    Flag(bool),
    List(Vec<Self>),
    Table(BTreeMap<String, Self>),
}

impl<P: Into<PathBuf>> From<P> for SpecSource {
    fn from(path: P) -> Self {
        Self::File(path.into())
    }
}

impl InlineSpec {
    /// What error messages call it. There is no file, and so no folder, that relative paths could be about.
    pub(super) const NAME: &str = "candidate.spec";

    /// Whether both have the same table, or neither has one.
    pub(crate) fn has_same(&self, other: &Self, table: &str) -> bool {
        let find = |spec: &Self| match &spec.0 {
            Node::Table(tables) => tables.get(table).cloned(),
            _ => None,
        };
        find(self) == find(other)
    }

    /// The tables as the parser takes them. The span of each value is its number in the list of keys.
    pub(super) fn tables(&self) -> Result<(Spanned<DeTable<'_>>, Keys<'_>)> {
        let mut keys = Keys(vec![(0, Segment::Key(Self::NAME))]);
        match keys.value(&self.0, 0)? {
            DeValue::Table(tables) => Ok((Spanned::new(0..0, tables), keys)),
            _ => Err(Error::new(ErrorKind::Internal, "a spec is not a table")),
        }
    }
}

/// The keys of all values: each has the number of the value that holds it, and its place there. Whole paths would take more memory than
/// the spec.
#[derive(Debug)]
pub(super) struct Keys<'a>(Vec<(usize, Segment<'a>)>);

#[derive(Clone, Copy, Debug)]
enum Segment<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> Keys<'a> {
    /// The path of a value, such as `candidate.spec.arg[1].shape`.
    pub(super) fn path(&self, number: usize) -> String {
        match self.0.get(number) {
            Some((_, Segment::Key(key))) if number == 0 => (*key).to_owned(),
            Some((holder, Segment::Key(key))) => format!("{}.{key}", self.path(*holder)),
            Some((holder, Segment::Index(index))) => format!("{}[{index}]", self.path(*holder)),
            None => InlineSpec::NAME.to_owned(),
        }
    }

    fn add(&mut self, holder: usize, segment: Segment<'a>) -> usize {
        self.0.push((holder, segment));
        self.0.len() - 1
    }

    fn value(&mut self, node: &'a Node, number: usize) -> Result<DeValue<'a>> {
        Ok(match node {
            Node::Text(text) => DeValue::String(text.as_str().into()),
            Node::Flag(flag) => DeValue::Boolean(*flag),
            Node::Number(text) => match DeValue::parse(text) {
                Ok(value) => value.into_inner(),
                Err(error) => {
                    return Err(Error::invalid(format!("{}: {}", self.path(number), error.message())));
                }
            },
            Node::List(nodes) => {
                let mut list = DeArray::new();
                for (index, node) in nodes.iter().enumerate() {
                    let number = self.add(number, Segment::Index(index));
                    list.push(Spanned::new(number..number, self.value(node, number)?));
                }
                DeValue::Array(list)
            }
            Node::Table(nodes) => {
                let mut table = DeTable::new();
                for (key, node) in nodes {
                    let number = self.add(number, Segment::Key(key));
                    let value = Spanned::new(number..number, self.value(node, number)?);
                    table.insert(Spanned::new(number..number, key.as_str().into()), value);
                }
                DeValue::Table(table)
            }
        })
    }
}

impl Serialize for SpecSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::File(path) => path.serialize(serializer),
            Self::Inline(spec) => spec.0.serialize(serializer),
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::List(nodes) => nodes.serialize(serializer),
            Self::Table(nodes) => nodes.serialize(serializer),
            Self::Number(text) => match (text.parse::<i64>(), text.parse::<u64>(), text.parse::<f64>()) {
                (Ok(number), ..) => serializer.serialize_i64(number),
                (_, Ok(number), _) => serializer.serialize_u64(number),
                (.., number) => serializer.serialize_f64(number.unwrap_or_default()),
            },
        }
    }
}

impl<'de> de::Deserialize<'de> for SpecSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let reader = Reader { left: &Cell::new(MAX_VALUES) };
        match deserializer.deserialize_any(reader)? {
            Node::Text(path) => Ok(Self::File(path.into())),
            spec @ Node::Table(_) => Ok(Self::Inline(InlineSpec(spec))),
            _ => Err(de::Error::custom("`spec` is the path of a spec file, or an object with its tables")),
        }
    }
}

/// Reads a value that is part of a spec, if so many values are left.
#[derive(Clone, Copy)]
struct Reader<'n> {
    left: &'n Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => {
                return Err(de::Error::custom(format!(
                    "`spec` has more than {MAX_VALUES} values; put data into .npy files"
                )));
            }
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text, a number, true, false, a list or an object")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Node, E> {
        Ok(Node::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        // With a point or an exponent, as it is no integer.
        Ok(Node::Number(format!("{number:?}")))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element_seed(self)? {
            list.push(value);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<Node, A::Error> {
        let mut table = BTreeMap::new();
        while let Some(key) = values.next_key::<String>()? {
            let value = values.next_value_seed(self)?;
            match table.entry(key) {
                Entry::Vacant(entry) => entry.insert(value),
                Entry::Occupied(entry) => {
                    return Err(de::Error::custom(format!("\"{}\" has two values", entry.key())));
                }
            };
        }
        Ok(Node::Table(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{ArgumentKind, Expected, Overrides, Spec};

    const SPEC: &str = r#"{
        "version": 1,
        "kernel": {"code": "void k(float *y, double a) { *y = a; }", "format": "c", "entry": "k"},
        "arg": [
            {"name": "y", "dtype": "f32", "shape": ["n / 4"], "use": "write"},
            {"name": "a", "scalar": "f64", "value": 18446744073709551615},
            {"name": "n", "scalar": "i64", "value": 8}
        ],
        "cost": {"flops": 1e3, "bytes": "bytes(y)"},
        "reference": {"code": "void k(float *y, double a) { *y = a; }", "format": "c", "entry": "k", "rtol": 1e-7}
    }"#;

    fn load(text: &str) -> Result<Spec, String> {
        let source: SpecSource = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let again: SpecSource = serde_json::from_str(&serde_json::to_string(&source).unwrap()).unwrap();
        assert_eq!(again, source);
        source.load(&Overrides::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_request_can_hold_what_a_file_holds() {
        let spec = load(SPEC).unwrap();
        assert_eq!((spec.files().len(), spec.folder(), spec.name.as_str()), (0, None, "k"));
        assert!(spec.kernel.text().unwrap().contains("*y = a"));
        assert!(matches!(&spec.args[0].kind, ArgumentKind::Tensor(tensor) if tensor.shape == [2]));
        assert!(
            matches!(spec.args[1].kind, ArgumentKind::Scalar(_, bits) if bits == 2_f64.powi(64).to_bits())
        );
        assert_eq!((spec.cost.flops, spec.cost.bytes), (Some(1e3), Some(8.0)));
        let reference = spec.reference.unwrap();
        assert!(matches!(reference.expected, Expected::Kernel(code) if code.text().is_ok()));
        assert_eq!(reference.tolerance.rtol, Some(1e-7));
    }

    #[test]
    fn errors_name_the_key() {
        for (old, new, message) in [
            ("\"n / 4\"", "\"m\"", "candidate.spec.arg[0].shape[0]: shape in [[arg]]: unknown name \"m\""),
            ("\"use\"", "\"used\"", "candidate.spec.arg[0].used: unknown key \"used\" in [[arg]]"),
            (
                "1e3",
                "-1",
                "candidate.spec.cost.flops: flops in [cost]: must be a finite number of at least 0",
            ),
            ("\"value\": 8", "\"value\": 1.5", "candidate.spec.arg[2].value: value in [[arg]]"),
            (
                "\"version\": 1",
                "\"version\": 2",
                "candidate.spec.version: version in the spec: unsupported version",
            ),
            ("\"version\": 1,", "", "candidate.spec: missing key \"version\" in the spec"),
            ("\"format\": \"c\", ", "", "candidate.spec.kernel: missing key \"format\" in [kernel]"),
            (
                "\"format\": \"c\"",
                "\"format\": \"cubin\"",
                "candidate.spec.kernel.format: format in [kernel]: cubin is no text",
            ),
            (
                "\"entry\"",
                "\"path\": \"k.c\", \"entry\"",
                "candidate.spec.kernel.code: code in [kernel]: cannot be combined with `path`",
            ),
            ("\"version\": 1", "\"version\": null", "invalid type: null"),
            ("\"version\": 1", "\"version\": 1e999", "number out of range"),
            ("\"version\": 1", "\"version\": 1, \"version\": 1", "\"version\" has two values"),
        ] {
            let error = load(&SPEC.replacen(old, new, 1)).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        assert!(load("7").unwrap_err().contains("path of a spec file"));
    }

    #[test]
    fn a_spec_has_a_bounded_number_of_values() {
        let with = |count: usize| format!("{{\"arg\": [{}0]}}", "0, ".repeat(count));
        assert!(load(&with(90_000)).unwrap_err().contains("missing key \"version\""));
        assert!(load(&with(MAX_VALUES)).unwrap_err().contains("more than 100000 values"));
    }
}
