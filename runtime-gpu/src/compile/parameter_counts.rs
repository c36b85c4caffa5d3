//! How many parameters kernels have, as their code says, for drivers that cannot be asked (`cuFuncGetParamCount` is of CUDA 13.2).
//!
//! A cubin has a section `.nv.info.` for each kernel, a list of attributes that NVIDIA does not document (seen in the output of
//! NVRTC 12.9 for `sm_75` to `sm_120a`). Fat binaries may be compressed, and are not read.

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};

/// The start of the names of the sections.
const SECTION: &[u8] = b".nv.info.";
/// Format of an attribute with a value of a size of its own.
const SIZED: u8 = 4;
/// Attribute of one parameter (`EIATTR_KPARAM_INFO`).
const PARAMETER: u8 = 0x17;
/// Attribute with the bytes of all parameters (`EIATTR_CBANK_PARAM_SIZE`).
const ALL_BYTES: u8 = 0x19;

/// The number of parameters by the name of the kernel; without the kernels whose number is not known.
pub(crate) type ParameterCounts = Vec<(String, usize)>;

/// The kernels of a cubin.
pub(crate) fn of_cubin(code: &[u8]) -> ParameterCounts {
    read_cubin(code).unwrap_or_default()
}

fn read_cubin(code: &[u8]) -> object::read::Result<ParameterCounts> {
    let header = FileHeader64::<LittleEndian>::parse(code)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, code)?;
    let mut counts = Vec::new();
    for section in sections.iter() {
        let Some(kernel) = sections.section_name(endian, section)?.strip_prefix(SECTION) else { continue };
        if let Some(count) = count_attributes(section.data(endian, code)?) {
            counts.push((String::from_utf8_lossy(kernel).into_owned(), count));
        }
    }
    Ok(counts)
}

/// The number of parameters in a list of attributes; `None` if they are described in another way.
fn count_attributes(mut rest: &[u8]) -> Option<usize> {
    let (mut count, mut all_bytes) = (0, 0);
    while let Some((&[format, attribute, low, high], behind)) = rest.split_first_chunk() {
        let value = u16::from_le_bytes([low, high]);
        count += usize::from(attribute == PARAMETER);
        if attribute == ALL_BYTES {
            all_bytes = value;
        }
        rest = if format == SIZED { behind.get(usize::from(value)..)? } else { behind };
    }
    (rest.is_empty() && (count == 0) == (all_bytes == 0)).then_some(count)
}

/// The kernels of PTX.
pub(crate) fn of_ptx(code: &str) -> ParameterCounts {
    let entries = code.split(".entry").skip(1);
    entries.filter_map(count_declared).collect()
}

/// The name and the number of parameters of a kernel, from what follows `.entry`: `name(.param .u64 a, …)`, or without
/// parentheses.
fn count_declared(declaration: &str) -> Option<(String, usize)> {
    let declaration = declaration.trim_start();
    let end = declaration.find(|character: char| character.is_whitespace() || "({".contains(character))?;
    let (name, rest) = declaration.split_at(end);
    let count = match rest.trim_start().strip_prefix('(') {
        Some(list) => list.split_once(')')?.0.matches(".param").count(),
        None => 0,
    };
    Some((name.to_owned(), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_of_parameters_are_counted() {
        // Of NVRTC 12.9 for sm_90: `(int, long, char)`, and a kernel without parameters.
        let three = [
            4, 0x37, 4, 0, 0x81, 0, 0, 0, 4, 0x17, 12, 0, 0, 0, 0, 0, 2, 0, 16, 0, 0, 0xf0, 5, 0, 4, 0x17,
            12, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0xf0, 0x21, 0, 4, 0x17, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0,
            0x11, 0, 3, 0x50, 0, 0, 3, 0x1b, 0xff, 0, 3, 0x19, 17, 0,
        ];
        assert_eq!(count_attributes(&three), Some(3));
        let none = [4, 0x37, 4, 0, 0x81, 0, 0, 0, 3, 0x50, 0, 0, 3, 0x1b, 0xff, 0];
        assert_eq!(count_attributes(&none), Some(0));
        assert_eq!(count_attributes(&[3, 0x19, 17, 0]), None, "bytes without a parameter");
        for length in 1..three.len() {
            assert!(count_attributes(&three[..length]) != Some(3) || length % 4 == 0, "{length}");
        }
    }

    #[test]
    fn the_declarations_of_ptx_are_counted() {
        let counts = of_ptx(
            ".visible .entry empty()\n{\n\tret;\n}\n.entry bare\n{ ret; }\n.weak .entry _Z1kPfi(\n\t.param .u64 .ptr .global .align 4 a,\n\t\
             .param .align 8 .b8 b[32],\n\t.param .u32 c\n)\n.maxntid 256\n{\n\tld.param.u64 %rd1, [a];\n}",
        );
        let named: Vec<_> = counts.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(named, [("empty", 0), ("bare", 0), ("_Z1kPfi", 3)]);
    }
}
