//! Overrides as JSON: `{"values": {"m": 1000, "alpha": 0.5}, "element": "f16", "options": {"flags": ["-O3"]}}`.

use std::fmt;

use runtime_core::OptionValue;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::Number;

impl From<Number> for Value {
    fn from(number: Number) -> Self {
        match number {
            Number::Bool(value) => value.into(),
            Number::Integer(value) => match (i64::try_from(value), u64::try_from(value)) {
                (Ok(value), _) => value.into(),
                (_, Ok(value)) => value.into(),
                _ => value.to_string().into(),
            },
            // JSON has no infinities and no NaN.
            Number::Float(value) => {
                serde_json::Number::from_f64(value).map_or_else(|| value.to_string().into(), Self::Number)
            }
        }
    }
}

impl TryFrom<Value> for Number {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        let number = match &value {
            Value::Bool(flag) => Some(Self::Bool(*flag)),
            Value::Number(number) if number.is_f64() => number.as_f64().map(Self::Float),
            Value::Number(number) => number.as_i128().map(Self::Integer),
            Value::String(text) => {
                text.parse().map(Self::Integer).or_else(|_| text.parse().map(Self::Float)).ok()
            }
            _ => None,
        };
        number.ok_or_else(|| format!("expected a number, true or false, got {value}"))
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
