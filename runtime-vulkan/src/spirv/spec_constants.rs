//! Constants, and the values given for specialisation constants.

use half::f16;
use runtime_core::backend::did_you_mean;
use runtime_core::{Error, ErrorKind, Result};

use super::{Constant, Id, SpirvModule, Type};

/// Values of specialisation constants: each constant's id, and the bytes of its value.
pub(crate) type SpecValues = Vec<(u32, Vec<u8>)>;

/// A specialisation constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SpecConstant {
    /// The id given by the `SpecId` decoration.
    pub(crate) id: u32,
    /// Its name; empty if the code has none.
    pub(crate) name: String,
    ty: Id,
}

impl SpirvModule {
    /// The specialisation constants, by id.
    fn spec_constants(&self) -> Vec<SpecConstant> {
        let constant = |(id, value): (&Id, &Constant)| match value {
            Constant::Scalar { ty, is_spec: true, .. } => {
                let name = self.names.get(id).cloned().unwrap_or_default();
                Some(SpecConstant { id: self.decorations_of(*id).spec_id?, name, ty: *ty })
            }
            _ => None,
        };
        let mut constants: Vec<_> = self.constants.iter().filter_map(constant).collect();
        constants.sort_by_key(|constant| constant.id);
        constants
    }

    /// Parses a list of `NAME=VALUE` or `ID=VALUE`.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown constant, one given twice, or a value not of its type.
    pub(crate) fn parse_spec_values<'t>(&self, texts: impl Iterator<Item = &'t str>) -> Result<SpecValues> {
        let mut all = SpecValues::new();
        for text in texts {
            let (id, value) = self.parse_spec_value(text)?;
            if all.iter().any(|(other, _)| *other == id) {
                return Err(Error::invalid(format!(
                    "constant \"{text}\": constant {id} is given twice; give it once, by name or by id"
                )));
            }
            all.push((id, value));
        }
        Ok(all)
    }

    /// Checks values that come from elsewhere: the driver reads as many bytes as each constant's type has.
    ///
    /// # Errors
    /// `CompileFailed` for an unknown constant, one given twice, or a value of another size.
    pub(crate) fn check_spec_values(&self, values: &SpecValues) -> Result<()> {
        let constants = self.spec_constants();
        for (index, (id, value)) in values.iter().enumerate() {
            let constant = constants.iter().find(|constant| constant.id == *id);
            let ty = constant.and_then(|constant| self.types.get(&constant.ty));
            let is_repeated = values[..index].iter().any(|(other, _)| other == id);
            if is_repeated || ty.and_then(value_size) != Some(value.len()) {
                return Err(Error::new(
                    ErrorKind::CompileFailed,
                    format!("the code has no constant {id} of {} bytes; compile it again", value.len()),
                ));
            }
        }
        Ok(())
    }

    /// Parses `NAME=VALUE` or `ID=VALUE` to the constant's id and the bytes of its value.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown constant, or a value not of its type.
    pub(crate) fn parse_spec_value(&self, text: &str) -> Result<(u32, Vec<u8>)> {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| Error::invalid(format!("constant \"{text}\"; write NAME=VALUE or ID=VALUE")))?;
        let constants = self.spec_constants();
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
                did_you_mean(key, &names)
            )));
        };
        let bytes = self.types.get(&constant.ty).and_then(|ty| value_bytes(ty, value.trim()));
        let bytes = bytes.ok_or_else(|| {
            Error::invalid(format!("constant \"{key}\": \"{value}\" is not a value of its type"))
        })?;
        Ok((constant.id, bytes))
    }

    /// The value of an integer constant, with these specialisations; `None` if it is computed or not an integer.
    pub(super) fn integer_constant(&self, id: Id, spec_values: &[(u32, Vec<u8>)]) -> Option<u32> {
        let Some(Constant::Scalar { bits, is_spec, .. }) = self.constants.get(&id) else { return None };
        let given = self.decorations_of(id).spec_id.filter(|_| *is_spec).and_then(|spec_id| {
            let (_, bytes) = spec_values.iter().find(|(given, _)| *given == spec_id)?;
            Some(bytes.iter().rev().fold(0, |bits: u64, &byte| bits << 8 | u64::from(byte)))
        });
        u32::try_from(given.unwrap_or(*bits)).ok()
    }

    /// The elements of a composite constant.
    pub(super) fn constant_elements(&self, id: Id) -> Option<&[Id]> {
        match self.constants.get(&id)? {
            Constant::Composite(elements) => Some(elements),
            _ => None,
        }
    }
}

/// How many bytes the value of a constant of this type has; `None` for a type that no constant has.
fn value_size(ty: &Type) -> Option<usize> {
    match *ty {
        Type::Bool => Some(4),
        Type::Int { bits: bits @ (8 | 16 | 32 | 64), .. } | Type::Float { bits: bits @ (16 | 32 | 64) } => {
            Some(bits as usize / 8)
        }
        _ => None,
    }
}

/// The bytes of a value, as the driver reads them.
fn value_bytes(ty: &Type, value: &str) -> Option<Vec<u8>> {
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
    fn floats_of_every_width_are_parsed() {
        let parse = |bits: u32| value_bytes(&Type::Float { bits }, "1.5");
        assert_eq!(parse(16), Some(vec![0, 0x3e]));
        assert_eq!(parse(32), Some(1.5_f32.to_le_bytes().to_vec()));
        assert_eq!(parse(64), Some(1.5_f64.to_le_bytes().to_vec()));
        assert_eq!(value_bytes(&Type::Float { bits: 16 }, "much"), None);
    }

    #[test]
    fn values_from_elsewhere_have_the_size_of_their_constants() {
        let mut module = SpirvModule::default();
        module.types.insert(1, Type::Int { bits: 32, signed: false });
        module.constants.insert(2, Constant::Scalar { ty: 1, bits: 0, is_spec: true });
        module.decorations.entry(2).or_default().spec_id = Some(7);
        let check = |values: &[(u32, &[u8])]| {
            let values: SpecValues = values.iter().map(|(id, value)| (*id, value.to_vec())).collect();
            module.check_spec_values(&values)
        };
        check(&[]).unwrap();
        check(&[(7, &[1, 0, 0, 0])]).unwrap();
        let wrong: [&[(u32, &[u8])]; 4] =
            [&[(6, &[1, 0, 0, 0])], &[(7, &[1])], &[(7, &[0; 4096])], &[(7, &[0; 4]), (7, &[0; 4])]];
        for values in wrong {
            assert_eq!(check(values).unwrap_err().kind(), ErrorKind::CompileFailed, "{values:?}");
        }
    }

    #[test]
    fn every_parsed_value_has_the_size_of_its_type() {
        let types = [8, 16, 32, 64].map(|bits| Type::Int { bits, signed: true });
        for ty in types.into_iter().chain([16, 32, 64].map(|bits| Type::Float { bits })).chain([Type::Bool]) {
            assert_eq!(value_bytes(&ty, "1").map(|bytes| bytes.len()), value_size(&ty), "{ty:?}");
        }
    }
}
