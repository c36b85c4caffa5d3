//! Overrides as JSON: `{"values": {"m": 1000, "alpha": 0.5}, "element": "f16", "options": {"flags": ["-O3"]}}`.

use std::fmt;

use runtime_core::{DType, OptionValue};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use super::Number;

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Bool(value) => serializer.serialize_bool(value),
            Self::Integer(value) => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(value), _) => serializer.serialize_i64(value),
                (_, Ok(value)) => serializer.serialize_u64(value),
                _ => serializer.serialize_str(&value.to_string()),
            },
            Self::Float(value) if value.is_finite() => serializer.serialize_f64(value),
            // JSON has no infinities and no NaN.
            Self::Float(value) => serializer.serialize_str(&value.to_string()),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Number;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a number, true or false")
            }

            fn visit_bool<E>(self, value: bool) -> Result<Number, E> {
                Ok(Number::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
                Ok(Number::Integer(value.into()))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
                Ok(Number::Integer(value.into()))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
                Ok(Number::Float(value))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
                let number = text.parse().map(Number::Integer).or_else(|_| text.parse().map(Number::Float));
                number.map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// Named numbers as an object.
pub(super) mod values {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        values: &[(String, Number)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(values.len()))?;
        for (name, value) in values {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, Number)>, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vec<(String, Number)>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut values: Self::Value = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Number>()? {
                    if values.iter().any(|(other, _)| *other == name) {
                        return Err(de::Error::custom(format!("\"{name}\" has two values")));
                    }
                    values.push((name, value));
                }
                Ok(values)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Options as an object of lists.
pub(super) mod options {
    use serde_json::{Map, Value};

    use super::*;
    use crate::describe;

    pub(crate) fn serialize<S: Serializer>(
        options: &[(String, Vec<OptionValue>)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(options.len()))?;
        for (key, values) in options {
            map.serialize_entry(key, &values.iter().map(describe::option).collect::<Vec<_>>())?;
        }
        map.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, Vec<OptionValue>)>, D::Error> {
        let object: Map<String, Value> = Map::deserialize(deserializer)?;
        let read = |(key, value): (String, Value)| {
            let list = describe::read_option_list(&key, &value).map_err(de::Error::custom)?;
            Ok((key, list))
        };
        object.into_iter().map(read).collect()
    }
}

/// An element type by its name.
pub(super) mod element {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(dtype: &Option<DType>, serializer: S) -> Result<S::Ok, S::Error> {
        dtype.map(|dtype| dtype.to_string()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DType>, D::Error> {
        let name: Option<String> = Option::deserialize(deserializer)?;
        name.map(|name| name.parse().map_err(de::Error::custom)).transpose()
    }
}
