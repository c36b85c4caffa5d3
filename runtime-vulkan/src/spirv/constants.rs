//! Constants, and values that a program gives for those that can be specialised.

use half::f16;
use runtime_core::{Error, Result, suggest};

use super::{Code, Id, Type, Value};

/// A constant that can be specialised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constant {
    /// Its number in the code.
    pub(crate) id: u32,
    /// Its name, if the code has it.
    pub(crate) name: String,
    ty: Id,
}

impl Code {
    /// The constants that can be specialised.
    pub(crate) fn constants(&self) -> Vec<Constant> {
        let constant = |(id, value): (&Id, &Value)| match value {
            Value::Scalar { ty, specialised: true, .. } => {
                let name = self.names.get(id).cloned().unwrap_or_default();
                Some(Constant { id: self.decoration(*id).spec_id?, name, ty: *ty })
            }
            _ => None,
        };
        let mut constants: Vec<_> = self.values.iter().filter_map(constant).collect();
        constants.sort_by_key(|constant| constant.id);
        constants
    }

    /// Reads a list of `NAME=VALUE` or `ID=VALUE`.
    ///
    /// # Errors
    /// As [`Code::specialise`]; `InvalidArgument` for a constant that is given twice.
    pub(crate) fn specialise_all<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
    ) -> Result<Vec<(u32, Vec<u8>)>> {
        let mut all: Vec<(u32, Vec<u8>)> = Vec::new();
        for text in texts {
            let (id, value) = self.specialise(text)?;
            if all.iter().any(|(other, _)| *other == id) {
                return Err(Error::invalid(format!(
                    "constant \"{text}\": constant {id} is given twice; give it once, by its name or by its number"
                )));
            }
            all.push((id, value));
        }
        Ok(all)
    }

    /// Reads `NAME=VALUE` or `ID=VALUE`: the constant's number, and the bytes of its value.
    ///
    /// # Errors
    /// `InvalidArgument` for a constant that does not exist, or a value that is none of its type.
    pub(crate) fn specialise(&self, text: &str) -> Result<(u32, Vec<u8>)> {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| Error::invalid(format!("constant \"{text}\"; write NAME=VALUE or ID=VALUE")))?;
        let constants = self.constants();
        let found = constants
            .iter()
            .find(|constant| (!key.is_empty() && constant.name == key) || key.parse() == Ok(constant.id));
        let Some(constant) = found else {
            let names: Vec<String> = constants
                .iter()
                .map(|one| if one.name.is_empty() { one.id.to_string() } else { one.name.clone() })
                .collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(Error::invalid(format!(
                "constant \"{key}\" is not in the code; {}",
                suggest(key, &names)
            )));
        };
        let bytes = self.types.get(&constant.ty).and_then(|ty| bytes(ty, value.trim()));
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(format!("constant \"{key}\": \"{value}\" is no value of its type"))
        })?;
        Ok((constant.id, bytes))
    }

    /// The value of a constant of whole numbers.
    pub(super) fn number(&self, id: Id, specialised: &[(u32, Vec<u8>)]) -> Option<u32> {
        let Some(Value::Scalar { bits, specialised: open, .. }) = self.values.get(&id) else { return None };
        let given = self.decoration(id).spec_id.filter(|_| *open).and_then(|number| {
            let (_, bytes) = specialised.iter().find(|(given, _)| *given == number)?;
            Some(bytes.iter().rev().fold(0, |bits: u64, &byte| bits << 8 | u64::from(byte)))
        });
        u32::try_from(given.unwrap_or(*bits)).ok()
    }

    /// The parts of a constant.
    pub(super) fn parts(&self, id: Id) -> Option<&[Id]> {
        match self.values.get(&id)? {
            Value::Composite(parts) => Some(parts),
            _ => None,
        }
    }
}

/// A value in the form that the driver reads.
fn bytes(ty: &Type, value: &str) -> Option<Vec<u8>> {
    Some(match ty {
        Type::Bool => {
            let on = match value {
                "true" | "1" => true,
                "false" | "0" => false,
                _ => return None,
            };
            u32::from(on).to_le_bytes().to_vec()
        }
        Type::Int { bits: 8, signed: true } => value.parse::<i8>().ok()?.to_le_bytes().to_vec(),
        Type::Int { bits: 8, .. } => value.parse::<u8>().ok()?.to_le_bytes().to_vec(),
        Type::Int { bits: 16, signed: true } => value.parse::<i16>().ok()?.to_le_bytes().to_vec(),
        Type::Int { bits: 16, .. } => value.parse::<u16>().ok()?.to_le_bytes().to_vec(),
        Type::Int { bits: 32, signed: true } => value.parse::<i32>().ok()?.to_le_bytes().to_vec(),
        Type::Int { bits: 32, .. } => value.parse::<u32>().ok()?.to_le_bytes().to_vec(),
        Type::Int { bits: 64, signed: true } => value.parse::<i64>().ok()?.to_le_bytes().to_vec(),
        Type::Int { bits: 64, .. } => value.parse::<u64>().ok()?.to_le_bytes().to_vec(),
        Type::Float { bits: 16 } => f16::from_f64(value.parse().ok()?).to_le_bytes().to_vec(),
        Type::Float { bits: 32 } => value.parse::<f32>().ok()?.to_le_bytes().to_vec(),
        Type::Float { bits: 64 } => value.parse::<f64>().ok()?.to_le_bytes().to_vec(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_every_width_are_read() {
        let read = |bits: u32| bytes(&Type::Float { bits }, "1.5");
        assert_eq!(read(16), Some(vec![0, 0x3e]));
        assert_eq!(read(32), Some(1.5_f32.to_le_bytes().to_vec()));
        assert_eq!(read(64), Some(1.5_f64.to_le_bytes().to_vec()));
        assert_eq!(bytes(&Type::Float { bits: 16 }, "much"), None);
    }
}
