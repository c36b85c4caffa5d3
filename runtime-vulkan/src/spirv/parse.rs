//! From words to tables.

use runtime_core::{Error, ErrorKind, Result};

use super::uses::Function;
use super::{Code, Entry, Id, Nesting, Size, Type, Value, Variable};

const MAGIC: u32 = 0x0723_0203;
const HEADER_WORDS: usize = 5;
/// `GLCompute`.
const COMPUTE: u32 = 5;
/// `OpTypePointer`.
const POINTER: u32 = 32;
/// Types within types at most, as SPIR-V has it, and in all: code may come from anywhere, and is followed into each.
const MOST_DEPTH: u32 = 255;
const MOST_PARTS: u32 = 4096;

fn broken(what: &str) -> Error {
    Error::new(ErrorKind::CompileFailed, format!("not SPIR-V: {what}; see `spirv-val`"))
}

/// The code as words of this machine.
///
/// # Errors
/// `CompileFailed` for what is no SPIR-V.
pub(crate) fn words(code: &[u8]) -> Result<Vec<u32>> {
    if !code.len().is_multiple_of(4) || code.len() < 4 * HEADER_WORDS {
        return Err(broken(&format!("{} bytes are no whole number of words behind a header", code.len())));
    }
    let read = |turn: fn([u8; 4]) -> u32| -> Vec<u32> {
        code.chunks_exact(4).map(|word| turn([word[0], word[1], word[2], word[3]])).collect()
    };
    let words = read(u32::from_le_bytes);
    match words[0] {
        MAGIC => Ok(words),
        other if other.swap_bytes() == MAGIC => Ok(read(u32::from_be_bytes)),
        other => Err(broken(&format!("it begins with {other:#010x}"))),
    }
}

impl Code {
    /// Reads code.
    ///
    /// # Errors
    /// `CompileFailed` for code that is cut off, or that refers to what is not there.
    pub(crate) fn read(words: &[u32]) -> Result<Self> {
        let mut code = Self::default();
        let mut rest = words.get(HEADER_WORDS..).ok_or_else(|| broken("it has no header"))?;
        let mut function = None;
        while let Some(&first) = rest.first() {
            let (length, operation) = ((first >> 16) as usize, first & 0xffff);
            if length == 0 || length > rest.len() {
                return Err(broken(&format!(
                    "an instruction of {length} words, of which {} are there",
                    rest.len()
                )));
            }
            let (instruction, behind) = rest.split_at(length);
            let operands = &instruction[1..];
            if matches!(operation, 54..=56) || function.is_some() {
                code.function(&mut function, operation, operands);
            } else {
                if matches!(operation, 19..=33 | 4456) {
                    code.nest(operation, operands)?;
                }
                code.note(operation, operands).ok_or_else(|| {
                    broken(&format!("instruction {operation} has {} operands", operands.len()))
                })?;
            }
            rest = behind;
        }
        Ok(code)
    }

    /// Takes an instruction of a function.
    fn function(&mut self, current: &mut Option<(Id, Function)>, operation: u32, operands: &[u32]) {
        match (operation, current.as_mut()) {
            (54, _) => *current = operands.get(1).map(|&id| (id, Function::default())),
            (56, _) => self.functions.extend(current.take()),
            (_, Some((_, function))) => {
                let variables = &self.variables;
                function.note(operation, operands, |id| variables.contains_key(&id));
            }
            _ => {}
        }
    }

    /// Takes an instruction outside functions; `None` if operands are missing.
    fn note(&mut self, operation: u32, operands: &[u32]) -> Option<()> {
        let at = |index: usize| operands.get(index).copied();
        match operation {
            5 => {
                self.names.insert(at(0)?, text(&operands[1..]));
            }
            15 if at(0)? == COMPUTE => {
                self.entries.push(Entry { name: text(operands.get(2..)?), function: at(1)? });
            }
            16 if at(1)? == 17 => {
                self.sizes.insert(at(0)?, Size::Literal([at(2)?, at(3)?, at(4)?]));
            }
            331 if at(1)? == 38 => {
                self.sizes.insert(at(0)?, Size::Constants([at(2)?, at(3)?, at(4)?]));
            }
            17 => self.capabilities.push(at(0)?),
            19..=33 | 4456 => self.note_type(operation, operands)?,
            41..=52 => self.note_constant(operation, operands)?,
            59 => {
                self.variables.insert(at(1)?, Variable { ty: at(0)?, class: at(2)? });
            }
            71 => self.decorate(at(0)?, at(1)?, at(2)),
            72 => self.decorate_member((at(0)?, at(1)?), at(2)?, at(3)),
            _ => {}
        }
        Some(())
    }

    /// Notes how far a type reaches into others. Those come before it, so that none contains itself.
    fn nest(&mut self, operation: u32, operands: &[u32]) -> Result<()> {
        let Some(&id) = operands.first() else { return Ok(()) };
        let parts = match operation {
            23 | 24 | 28 | 29 => operands.get(1..2),
            30 => operands.get(1..),
            _ => None,
        };
        let mut nesting = Nesting { depth: 1, parts: 1 };
        for part in parts.unwrap_or_default() {
            // What is not there by now is a pointer that comes later, or a type that does not matter here.
            self.types.entry(*part).or_insert(Type::Other);
            let inner = self.nestings.get(part).copied().unwrap_or(Nesting { depth: 1, parts: 1 });
            nesting.depth = nesting.depth.max(inner.depth + 1);
            nesting.parts = nesting.parts.saturating_add(inner.parts);
        }
        if operation != POINTER && self.types.contains_key(&id) {
            return Err(broken(&format!("type {id} is declared twice, or contains itself")));
        }
        if nesting.depth > MOST_DEPTH || nesting.parts > MOST_PARTS {
            let message = format!(
                "type {id} has more than {MOST_PARTS} parts, or is more than {MOST_DEPTH} deep; use arrays, or several buffers"
            );
            return Err(Error::unsupported(message));
        }
        self.nestings.insert(id, nesting);
        Ok(())
    }

    fn note_type(&mut self, operation: u32, operands: &[u32]) -> Option<()> {
        let at = |index: usize| operands.get(index).copied();
        let ty = match operation {
            20 => Type::Bool,
            21 => Type::Int { bits: at(1)?, signed: at(2)? != 0 },
            // An encoding of its own (bfloat16, …) is no type of ours.
            22 if operands.len() == 2 => Type::Float { bits: at(1)? },
            23 => Type::Vector { of: at(1)?, count: at(2)? },
            24 => Type::Matrix { of: at(1)?, columns: at(2)? },
            28 => Type::Array { of: at(1)?, length: at(2)? },
            29 => Type::RuntimeArray { of: at(1)? },
            30 => Type::Struct { members: operands.get(1..)?.to_vec() },
            32 => Type::Pointer { class: at(1)?, to: at(2)? },
            _ => Type::Other,
        };
        self.types.insert(at(0)?, ty);
        Some(())
    }

    fn note_constant(&mut self, operation: u32, operands: &[u32]) -> Option<()> {
        let at = |index: usize| operands.get(index).copied();
        let ty = at(0)?;
        let scalar = |bits: u64, specialised: bool| Value::Scalar { ty, bits, specialised };
        let word = || Some(u64::from(at(2)?) | u64::from(at(3).unwrap_or(0)) << 32);
        let value = match operation {
            41 => scalar(1, false),
            42 => scalar(0, false),
            43 => scalar(word()?, false),
            44 | 51 => Value::Composite(operands.get(2..)?.to_vec()),
            48 => scalar(1, true),
            49 => scalar(0, true),
            50 => scalar(word()?, true),
            _ => Value::Computed,
        };
        self.values.insert(at(1)?, value);
        Some(())
    }

    fn decorate(&mut self, target: Id, decoration: u32, operand: Option<u32>) {
        let known = self.decorations.entry(target).or_default();
        match decoration {
            1 => known.spec_id = operand,
            3 => known.buffer_block = true,
            6 => known.stride = operand,
            11 => known.builtin = operand,
            24 => known.read_only = true,
            25 => known.write_only = true,
            33 => known.binding = operand,
            34 => known.set = operand,
            _ => {}
        }
    }

    fn decorate_member(&mut self, member: (Id, u32), decoration: u32, operand: Option<u32>) {
        let known = self.members.entry(member).or_default();
        match decoration {
            4 => known.row_major = true,
            7 => known.matrix_stride = operand.unwrap_or(0),
            24 => known.read_only = true,
            25 => known.write_only = true,
            35 => known.offset = operand.unwrap_or(0),
            _ => {}
        }
    }
}

/// Terminated text in words.
fn text(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_code_is_refused_in_words() {
        let refused = |code: &[u8], said: &str| {
            let error = words(code).and_then(|words| Code::read(&words)).unwrap_err();
            assert!(error.kind() == ErrorKind::CompileFailed && error.message().contains(said), "{error}");
        };
        refused(b"", "0 bytes");
        refused(&[1; 21], "21 bytes");
        refused(&[1; 20], "it begins with 0x01010101");
        let mut cut = [0_u32; 7].map(u32::to_le_bytes);
        cut[0] = MAGIC.to_le_bytes();
        cut[5] = (3_u32 << 16 | 17).to_le_bytes();
        refused(cut.as_flattened(), "an instruction of 3 words, of which 2 are there");
        cut[5] = 17_u32.to_le_bytes();
        refused(cut.as_flattened(), "an instruction of 0 words");
        cut[5] = (1_u32 << 16 | 17).to_le_bytes();
        refused(cut.as_flattened(), "instruction 17 has 0 operands");
    }

    /// Types behind a header: each an operation and its operands.
    fn types(all: &[(u32, &[u32])]) -> Result<Code> {
        let mut code = vec![MAGIC, 0x0001_0300, 0, 9999, 0];
        for (operation, operands) in all {
            code.push(u32::try_from(operands.len() + 1).unwrap() << 16 | operation);
            code.extend(*operands);
        }
        Code::read(&code)
    }

    #[test]
    fn no_type_contains_itself() {
        let refused = |all: &[(u32, &[u32])]| {
            let error = types(all).unwrap_err();
            assert!(error.message().contains("contains itself"), "{error}");
        };
        refused(&[(28, &[15, 15, 40])]);
        refused(&[(30, &[10, 11]), (29, &[11, 10])]);
        refused(&[(39, &[10, 5349]), (30, &[11, 10]), (28, &[10, 11, 40])]);
        let linked = types(&[(39, &[10, 5349]), (30, &[11, 10]), (32, &[10, 5349, 11])]);
        assert!(linked.is_ok(), "a list is linked by pointers");
    }

    #[test]
    fn types_that_double_are_refused() {
        let pairs: Vec<[u32; 3]> = (0..40).map(|step| [step + 101, step + 100, step + 100]).collect();
        let all: Vec<(u32, &[u32])> = pairs.iter().map(|pair| (30, pair.as_slice())).collect();
        assert!(types(&all[..8]).is_ok());
        let error = types(&all).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }

    #[test]
    fn code_of_the_other_byte_order_is_turned() {
        let turned: Vec<u8> = [MAGIC, 0x0001_0300, 0, 9, 0].into_iter().flat_map(u32::to_be_bytes).collect();
        assert_eq!(words(&turned).unwrap()[..2], [MAGIC, 0x0001_0300]);
    }
}
