//! Overrides as JSON: `{"values": {"m": 1000, "alpha": 0.5}, "element": "f16", "options": {"flags": ["-O3"]}}`.

use std::fmt;

use runtime_core::OptionValue;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::Number;

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
