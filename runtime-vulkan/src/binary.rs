//! The format `vulkan-binary`: SPIR-V with the values of its specialisation constants, and what the driver compiled of it.
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | [`MAGIC`], which ends in the version |
//! | 4, 4, 4 | bytes of the SPIR-V, number of constants, bytes of the driver's data; little-endian, as all numbers |
//! | … | the SPIR-V |
//! | 4, 4, … per constant | its id, the bytes of its value, the value |
//! | … | the driver's data: a `VkPipelineCache`, which begins with a header that identifies the driver |

use runtime_core::{Error, ErrorKind, Result};

use crate::driver::DeviceCaps;
use crate::spirv::SpecValues;

/// The format's name.
pub(crate) const FORMAT: &str = "vulkan-binary";
/// The first bytes.
const MAGIC: &[u8; 8] = b"RTVKBIN1";
/// Version of the header of a pipeline cache (`VK_PIPELINE_CACHE_HEADER_VERSION_ONE`), and its size.
const CACHE_HEADER_VERSION: u32 = 1;
const CACHE_HEADER_BYTES: u32 = 32;

/// SPIR-V, and what a driver compiled of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VulkanBinary {
    pub(crate) spirv: Vec<u8>,
    pub(crate) spec_values: SpecValues,
    /// Data of the driver's pipeline cache; no driver but its own sees them.
    pub(crate) pipelines: Vec<u8>,
}

impl VulkanBinary {
    /// The binary as bytes.
    ///
    /// # Errors
    /// `InvalidArgument` for a part of 4 GiB or more.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut code = MAGIC.to_vec();
        for number in [self.spirv.len(), self.spec_values.len(), self.pipelines.len()] {
            push(&mut code, number)?;
        }
        code.extend(&self.spirv);
        for (id, value) in &self.spec_values {
            code.extend(id.to_le_bytes());
            push(&mut code, value.len())?;
            code.extend(value);
        }
        code.extend(&self.pipelines);
        Ok(code)
    }

    /// Reads a binary.
    ///
    /// # Errors
    /// `CompileFailed` for another version, and for code that is not complete.
    pub(crate) fn decode(code: &[u8]) -> Result<Self> {
        let Some(mut rest) = code.strip_prefix(MAGIC) else {
            return Err(invalid("not a Vulkan binary of this version; compile it again"));
        };
        let incomplete = || invalid("an incomplete Vulkan binary; compile it again");
        let mut read = || {
            let [spirv, constants, pipelines] =
                [take_number(&mut rest)?, take_number(&mut rest)?, take_number(&mut rest)?];
            let spirv = take(&mut rest, spirv)?;
            let mut spec_values = SpecValues::new();
            for _ in 0..constants {
                let (id, bytes) = (take_number(&mut rest)?, take_number(&mut rest)?);
                spec_values.push((id, take(&mut rest, bytes)?));
            }
            let pipelines = take(&mut rest, pipelines)?;
            rest.is_empty().then_some(Self { spirv, spec_values, pipelines })
        };
        read().ok_or_else(incomplete)
    }

    /// The driver's data, if they come from the driver of this device; the driver trusts them.
    pub(crate) fn pipelines_for(&self, caps: &DeviceCaps) -> Option<&[u8]> {
        let mut rest = self.pipelines.as_slice();
        let header = [
            take_number(&mut rest)?,
            take_number(&mut rest)?,
            take_number(&mut rest)?,
            take_number(&mut rest)?,
        ];
        let expected = [CACHE_HEADER_BYTES, CACHE_HEADER_VERSION, caps.vendor_id, caps.device_id];
        let is_own = header == expected && rest.starts_with(&caps.cache_uuid);
        is_own.then_some(&self.pipelines)
    }
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::CompileFailed, format!("the code is {what}"))
}

fn push(code: &mut Vec<u8>, number: usize) -> Result<()> {
    let number = u32::try_from(number).map_err(|_| Error::invalid("the code has 4 GiB or more"))?;
    code.extend(number.to_le_bytes());
    Ok(())
}

fn take_number(rest: &mut &[u8]) -> Option<u32> {
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u32::from_le_bytes(*number))
}

fn take(rest: &mut &[u8], bytes: u32) -> Option<Vec<u8>> {
    let (taken, behind) = rest.split_at_checked(usize::try_from(bytes).ok()?)?;
    *rest = behind;
    Some(taken.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps() -> DeviceCaps {
        DeviceCaps { vendor_id: 0x10de, device_id: 7, cache_uuid: [9; 16], ..DeviceCaps::default() }
    }

    /// A binary whose data have this device's header.
    fn binary() -> VulkanBinary {
        let mut pipelines = Vec::new();
        for number in [32, 1, 0x10de, 7_u32] {
            pipelines.extend(number.to_le_bytes());
        }
        pipelines.extend([9; 16]);
        pipelines.extend([1, 2, 3]);
        let spec_values = vec![(3, vec![1, 0, 0, 0]), (900, vec![1])];
        VulkanBinary { spirv: vec![3, 2, 35, 7], spec_values, pipelines }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let empty = VulkanBinary { spirv: Vec::new(), spec_values: Vec::new(), pipelines: Vec::new() };
        for binary in [binary(), empty] {
            assert_eq!(VulkanBinary::decode(&binary.encode().unwrap()).unwrap(), binary);
        }
    }

    #[test]
    fn damaged_code_is_an_error_or_other_code_and_never_a_panic() {
        let code = binary().encode().unwrap();
        for length in 0..code.len() {
            let error = VulkanBinary::decode(&code[..length]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::CompileFailed, "{length}");
        }
        assert!(VulkanBinary::decode(&[code.clone(), vec![0]].concat()).is_err(), "one byte more");
        for at in 0..code.len() {
            for bit in 0..8 {
                let mut damaged = code.clone();
                damaged[at] ^= 1 << bit;
                let decoded = VulkanBinary::decode(&damaged);
                assert!(at >= 8 || decoded.is_err(), "{at}");
                assert_ne!(decoded.ok(), Some(binary()), "{at}");
            }
        }
        let mut huge = code;
        huge[12..16].fill(0xff);
        assert!(VulkanBinary::decode(&huge).is_err(), "4 billion constants");
    }

    #[test]
    fn only_its_own_driver_sees_the_data() {
        let whole = binary();
        assert_eq!(whole.pipelines_for(&caps()), Some(whole.pipelines.as_slice()));
        for at in 0..32 {
            let mut other = binary();
            other.pipelines[at] ^= 1;
            assert_eq!(other.pipelines_for(&caps()), None, "{at}");
        }
        for length in 0..32 {
            let mut short = binary();
            short.pipelines.truncate(length);
            assert_eq!(short.pipelines_for(&caps()), None, "{length}");
        }
        let updated = DeviceCaps { cache_uuid: [8; 16], ..caps() };
        assert_eq!(whole.pipelines_for(&updated), None);
    }
}
