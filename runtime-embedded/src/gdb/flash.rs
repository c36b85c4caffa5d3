//! Flash memory: where it is, and how it is erased and written.

use std::time::Duration;

use super::client::Client;
use super::description::attribute;
use super::error::Result;
use super::memory::{OVERHEAD_BYTES, fitting};
use super::packet::escape;
use super::transport::Transport;

/// For erasing and writing, which take the target's time.
const FLASH_DEADLINE: Duration = Duration::from_secs(60);

/// A range of flash memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashRegion {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// Bytes that are erased together.
    pub block: u64,
}

impl FlashRegion {
    pub(super) fn contains(&self, address: u64) -> bool {
        address.checked_sub(self.start).is_some_and(|offset| offset < self.length)
    }

    /// The blocks that a range touches: address and length.
    fn blocks(&self, address: u64, bytes: u64) -> (u64, u64) {
        let begin = (address - self.start) / self.block * self.block;
        let end = (address - self.start).saturating_add(bytes).min(self.length);
        (self.start + begin, end.div_ceil(self.block) * self.block - begin)
    }
}

impl<T: Transport> Client<T> {
    /// The flash memory that the server describes; none if it describes no memory.
    #[must_use]
    pub fn flash_regions(&self) -> &[FlashRegion] {
        &self.flash
    }

    /// Reads the memory map.
    pub(super) fn read_memory_map(&mut self) -> Result<Vec<FlashRegion>> {
        Ok(parse(&self.read_description("memory-map", "")?))
    }

    /// Writes memory. Blocks of flash are erased first. Pieces may cross the ends of flash.
    ///
    /// # Errors
    /// As for [`Client::command`]; `Refused` for an address without memory.
    pub fn program(&mut self, pieces: &[(u64, &[u8])]) -> Result<()> {
        let parts: Vec<_> =
            pieces.iter().flat_map(|&(address, bytes)| parts(&self.flash, address, bytes)).collect();
        let mut blocks: Vec<_> = parts
            .iter()
            .filter_map(|part| Some(part.region?.blocks(part.address, part.bytes.len() as u64)))
            .collect();
        blocks.sort_unstable();
        let mut erased = 0;
        for (address, length) in &blocks {
            let end = address + length;
            let begin = erased.max(*address);
            if begin < end {
                let erase = format!("vFlashErase:{begin:x},{:x}", end - begin);
                self.command_within(erase.as_bytes(), FLASH_DEADLINE)?;
                erased = end;
            }
        }
        for Part { region, address, bytes } in parts {
            match region {
                Some(_) => self.write_flash(address, bytes)?,
                None => self.write_memory(address, bytes)?,
            }
        }
        if blocks.is_empty() { Ok(()) } else { self.command_within(b"vFlashDone", FLASH_DEADLINE) }
    }

    fn write_flash(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        let (mut address, mut rest) = (address, bytes);
        while !rest.is_empty() {
            let length = fitting(rest, self.features.packet_bytes - OVERHEAD_BYTES);
            let (piece, later) = rest.split_at(length);
            let mut payload = format!("vFlashWrite:{address:x}:").into_bytes();
            escape(piece, &mut payload);
            self.command_within(&payload, FLASH_DEADLINE)?;
            (address, rest) = (address.wrapping_add(length as u64), later);
        }
        Ok(())
    }
}

/// Bytes to write that are in one region of flash, or in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part<'a> {
    region: Option<FlashRegion>,
    address: u64,
    bytes: &'a [u8],
}

/// Divides bytes where a region of flash begins or ends.
fn parts<'a>(flash: &[FlashRegion], mut address: u64, mut bytes: &'a [u8]) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let region = flash.iter().find(|region| region.contains(address)).copied();
        let next = match region {
            Some(region) => Some(region.start + region.length),
            None => flash.iter().map(|region| region.start).filter(|start| *start > address).min(),
        };
        let room = next.map_or(usize::MAX, |next| usize::try_from(next - address).unwrap_or(usize::MAX));
        let (part, rest) = bytes.split_at(room.min(bytes.len()));
        parts.push(Part { region, address, bytes: part });
        (address, bytes) = (address.wrapping_add(part.len() as u64), rest);
    }
    parts
}

/// Finds the elements `<memory type="flash" start="…" length="…">` with their property `blocksize`.
fn parse(map: &str) -> Vec<FlashRegion> {
    let element = |text: &str| {
        let (tag, content) = text.split_once('>')?;
        let content = content.split("</memory").next()?;
        let block = content.split_once("blocksize")?.1.split_once('>')?.1.split('<').next()?;
        let region = FlashRegion {
            start: number(attribute(tag, "start")?)?,
            length: number(attribute(tag, "length")?)?,
            block: number(block)?,
        };
        let is_valid =
            region.block > 0 && region.start.checked_add(region.length)?.checked_add(region.block).is_some();
        (attribute(tag, "type")? == "flash" && is_valid).then_some(region)
    };
    map.split("<memory ").skip(1).filter_map(element).collect()
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flash_is_found_in_a_memory_map() {
        let map = "<memory-map><memory type=\"ram\" start=\"0x20000000\" length=\"0x100\"/>\n\
            <memory type=\"flash\" start=\"0x8000000\" length=\"0x10000\">\n\
            <property name=\"blocksize\">0x400</property></memory>\
            <memory type='flash' start='4096' length='8192'><property name='blocksize'>1024</property></memory>";
        let regions = parse(map);
        assert_eq!(regions[0], FlashRegion { start: 0x800_0000, length: 0x1_0000, block: 0x400 });
        assert_eq!(regions[1], FlashRegion { start: 4096, length: 8192, block: 1024 });
        assert_eq!(regions.len(), 2);
        for wrong in [
            "<memory ",
            "<memory type=\"flash\">blocksize",
            "<memory type=\"flash\" start=\"1\" length=\"9\">\
            <property name=\"blocksize\">0</property></memory>",
        ] {
            assert_eq!(parse(wrong), [], "{wrong}");
        }
    }

    #[test]
    fn whole_blocks_are_erased() {
        let region = FlashRegion { start: 0x1000, length: 0x2000, block: 0x400 };
        assert_eq!(region.blocks(0x1000, 1), (0x1000, 0x400));
        assert_eq!(region.blocks(0x13ff, 2), (0x1000, 0x800));
        assert_eq!(region.blocks(0x2fff, 0x1000), (0x2c00, 0x400));
    }

    #[test]
    fn pieces_are_divided_at_the_ends_of_flash() {
        let small = FlashRegion { start: 0x1000, length: 0x100, block: 0x10 };
        let large = FlashRegion { start: 0x1100, length: 0x100, block: 0x80 };
        let bytes = [0; 0x300];
        let found: Vec<_> = parts(&[large, small], 0xf80, &bytes)
            .iter()
            .map(|part| (part.address, part.bytes.len(), part.region.map(|region| region.block)))
            .collect();
        let expected = [
            (0xf80, 0x80, None),
            (0x1000, 0x100, Some(0x10)),
            (0x1100, 0x100, Some(0x80)),
            (0x1200, 0x80, None),
        ];
        assert_eq!(found, expected);
        assert_eq!(parts(&[small], u64::MAX, &[1])[0].region, None);
        assert_eq!(parts(&[small], 0x1000, &[]), []);
    }
}
