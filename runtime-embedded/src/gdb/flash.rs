//! Flash memory: where it is, and how it is erased and written.

use std::time::Duration;

use super::client::{Client, name, refused};
use super::error::Result;
use super::memory::fitting;
use super::packet::escape;
use super::transport::Transport;

/// Bytes of a memory map that are requested at once.
const MAP_PIECE: usize = 0x100;
/// A memory map that is larger is not read.
const MAX_MAP_BYTES: usize = 64 << 10;
/// Bytes of a packet around its data.
const OVERHEAD_BYTES: usize = 48;
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
        let mut text = Vec::new();
        loop {
            let request = format!("qXfer:memory-map:read::{:x},{MAP_PIECE:x}", text.len());
            let reply = self.request(request.as_bytes())?;
            match reply.split_first() {
                Some((b'm', piece)) if !piece.is_empty() && text.len() < MAX_MAP_BYTES => text.extend(piece),
                Some((b'l', piece)) => {
                    text.extend(piece);
                    return Ok(parse(&String::from_utf8_lossy(&text)));
                }
                _ => return Err(refused(&reply).during("qXfer:memory-map")),
            }
        }
    }

    /// Writes memory, of which some is flash: its blocks are erased, then written.
    ///
    /// # Errors
    /// As for [`Client::command`]; `Refused` for an address without memory.
    pub fn program(&mut self, pieces: &[(u64, &[u8])]) -> Result<()> {
        let flash = self.flash.clone();
        let region = |address: u64| flash.iter().find(|region| region.contains(address));
        let mut blocks: Vec<_> = pieces
            .iter()
            .filter(|(_, bytes)| !bytes.is_empty())
            .filter_map(|&(address, bytes)| Some(region(address)?.blocks(address, bytes.len() as u64)))
            .collect();
        blocks.sort_unstable();
        let mut erased = 0;
        for (address, length) in &blocks {
            let end = address + length;
            let begin = erased.max(*address);
            if begin < end {
                self.flash_command(format!("vFlashErase:{begin:x},{:x}", end - begin).as_bytes())?;
                erased = end;
            }
        }
        for &(address, bytes) in pieces {
            match region(address) {
                Some(_) => self.write_flash(address, bytes)?,
                None => self.write_memory(address, bytes)?,
            }
        }
        if blocks.is_empty() { Ok(()) } else { self.flash_command(b"vFlashDone") }
    }

    fn write_flash(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        let (mut address, mut rest) = (address, bytes);
        while !rest.is_empty() {
            let length = fitting(rest, self.features.packet_bytes - OVERHEAD_BYTES);
            let (piece, later) = rest.split_at(length);
            let mut payload = format!("vFlashWrite:{address:x}:").into_bytes();
            escape(piece, &mut payload);
            self.flash_command(&payload)?;
            (address, rest) = (address.wrapping_add(length as u64), later);
        }
        Ok(())
    }

    fn flash_command(&mut self, payload: &[u8]) -> Result<()> {
        match self.request_within(payload, FLASH_DEADLINE)?.as_slice() {
            b"OK" => Ok(()),
            reply => Err(refused(reply).during(&name(payload))),
        }
    }
}

/// Finds the elements `<memory type="flash" start="…" length="…">` with their property `blocksize`.
fn parse(map: &str) -> Vec<FlashRegion> {
    let element = |text: &str| {
        let (tag, content) = text.split_once('>')?;
        let content = content.split("</memory").next()?;
        let attribute = |name: &str| {
            let value = tag.split_once(&format!("{name}="))?.1;
            value.get(1..)?.split(['"', '\'']).next()
        };
        let block = content.split_once("blocksize")?.1.split_once('>')?.1.split('<').next()?;
        let region = FlashRegion {
            start: number(attribute("start")?)?,
            length: number(attribute("length")?)?,
            block: number(block)?,
        };
        let is_valid =
            region.block > 0 && region.start.checked_add(region.length)?.checked_add(region.block).is_some();
        (attribute("type")? == "flash" && is_valid).then_some(region)
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
}
