//! Load options in JSON: a list of `[key, value]`, in order, because a key may be repeated.

use runtime_core::{OptionValue, Options};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};

pub(super) fn serialize<S: Serializer>(options: &Options, serializer: S) -> Result<S::Ok, S::Error> {
    let pair = |(key, value): (_, &OptionValue)| {
        let value = match value {
            OptionValue::Flag(value) => Value::Bool(*value),
            OptionValue::Integer(value) => Value::from(*value),
            OptionValue::Number(value) => Number::from_f64(*value)
                .map(Value::Number)
                .ok_or_else(|| S::Error::custom(format!("option {key:?} is not finite")))?,
            OptionValue::Text(value) => Value::from(value.as_str()),
        };
        Ok((key, value))
    };
    let list: Vec<(&str, Value)> = options.iter().map(pair).collect::<Result<_, S::Error>>()?;
    list.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Options, D::Error> {
    let mut options = Options::new();
    for (key, value) in Vec::<(String, Value)>::deserialize(deserializer)? {
        let unknown = || D::Error::custom(format!("option \"{key}\" is no number, text, true or false"));
        let value = match &value {
            Value::Bool(value) => OptionValue::Flag(*value),
            Value::String(value) => OptionValue::Text(value.clone()),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(value), _) => OptionValue::Integer(value),
                (None, Some(value)) => OptionValue::Number(value),
                (None, None) => return Err(unknown()),
            },
            _ => return Err(unknown()),
        };
        options.push(&key, value);
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_keep_their_order_types_and_repetitions() {
        #[derive(PartialEq, Debug, Serialize, Deserialize)]
        struct Holder(#[serde(with = "super")] Options);
        let options =
            Options::new().with("a", 1i64).with("b", 1.0).with("a", "x").with("c", true).with("d", i64::MIN);
        let text = serde_json::to_string(&Holder(options.clone())).unwrap();
        assert_eq!(text, r#"[["a",1],["b",1.0],["a","x"],["c",true],["d",-9223372036854775808]]"#);
        assert_eq!(serde_json::from_str::<Holder>(&text).unwrap(), Holder(options));
        let infinite = Holder(Options::new().with("a", f64::INFINITY));
        assert!(serde_json::to_string(&infinite).unwrap_err().to_string().contains("is not finite"));
        let error = serde_json::from_str::<Holder>(r#"[["a",null]]"#).unwrap_err();
        assert!(error.to_string().contains("option \"a\" is no number"), "{error}");
    }
}
