//! Frames: header, payload and checksum, encoded so that a zero byte ends them and occurs nowhere else (COBS, *consistent
//! overhead byte stuffing*).

use super::checksum::crc32;

/// Largest payload of a frame.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 10;
/// Bytes before the payload.
const HEADER_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 4;
/// Bytes of the largest frame, encoded.
const MAX_ENCODED_BYTES: usize = MAX_PAYLOAD_BYTES + MAX_PAYLOAD_BYTES / 254 + 32;
/// Bytes of the longest block: its length is in the byte before it, and 255 says that no zero follows.
const BLOCK_BYTES: usize = 254;

/// A message in either direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it requests or answers.
    pub kind: u8,
    /// Number of the request.
    pub sequence: u8,
    /// Number of the session.
    pub nonce: u32,
    /// Contents, of at most [`MAX_PAYLOAD_BYTES`].
    pub payload: Vec<u8>,
}

/// What the parser found on the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A frame with a valid checksum.
    Frame(Frame),
    /// A frame that cannot be used, with the reason.
    Damaged(&'static str),
}

/// Splits received bytes into frames.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    encoded: Vec<u8>,
}

impl Parser {
    /// Takes the next byte; returns what it completes.
    pub fn push(&mut self, byte: u8) -> Option<Item> {
        if byte != 0 {
            if self.encoded.len() <= MAX_ENCODED_BYTES {
                self.encoded.push(byte);
            }
            return None;
        }
        // Senders may separate frames with several zeros.
        if self.encoded.is_empty() {
            return None;
        }
        let item = parse(&self.encoded).map_or_else(Item::Damaged, Item::Frame);
        self.encoded.clear();
        Some(item)
    }
}

fn parse(encoded: &[u8]) -> Result<Frame, &'static str> {
    if encoded.len() > MAX_ENCODED_BYTES {
        return Err("it is too long");
    }
    let bytes = decode(encoded).ok_or("its encoding is invalid")?;
    let (content, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or("it is too short")?;
    let (header, payload) = content.split_first_chunk::<HEADER_BYTES>().ok_or("it is too short")?;
    let [kind, sequence, low, high, nonce @ ..] = *header;
    if payload.len() != usize::from(u16::from_le_bytes([low, high])) {
        return Err("its length is wrong");
    }
    if crc32(content) != u32::from_le_bytes(*checksum) {
        return Err("its checksum is wrong");
    }
    Ok(Frame { kind, sequence, nonce: u32::from_le_bytes(nonce), payload: payload.to_vec() })
}

impl Frame {
    /// The frame as it is sent, with a zero before and behind it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let length = u16::try_from(self.payload.len()).unwrap_or(u16::MAX);
        let mut bytes = vec![self.kind, self.sequence];
        bytes.extend(length.to_le_bytes());
        bytes.extend(self.nonce.to_le_bytes());
        bytes.extend(&self.payload);
        bytes.extend(crc32(&bytes).to_le_bytes());
        let mut encoded = vec![0];
        encode(&bytes, &mut encoded);
        encoded.push(0);
        encoded
    }
}

fn encode(mut bytes: &[u8], encoded: &mut Vec<u8>) {
    loop {
        let block = bytes.iter().take(BLOCK_BYTES).take_while(|byte| **byte != 0).count();
        encoded.push(u8::try_from(block + 1).unwrap_or(u8::MAX));
        encoded.extend(&bytes[..block]);
        match &bytes[block..] {
            [] => return,
            rest if block == BLOCK_BYTES => bytes = rest,
            [_, rest @ ..] => bytes = rest,
        }
    }
}

fn decode(mut encoded: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(encoded.len());
    while let Some((&code, rest)) = encoded.split_first() {
        let (block, rest) = rest.split_at_checked(usize::from(code).checked_sub(1)?)?;
        bytes.extend(block);
        if code != u8::MAX && !rest.is_empty() {
            bytes.push(0);
        }
        encoded = rest;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(payload: Vec<u8>) -> Frame {
        Frame { kind: 2, sequence: 7, nonce: 0x0100_00ff, payload }
    }

    fn items(bytes: &[u8]) -> Vec<Item> {
        let mut parser = Parser::default();
        bytes.iter().filter_map(|&byte| parser.push(byte)).collect()
    }

    #[test]
    fn any_payload_survives() {
        for length in (0..600).chain([4000, MAX_PAYLOAD_BYTES]) {
            for step in [0u8, 1, 7] {
                let payload = (0..length).map(|at: usize| at.to_le_bytes()[0].wrapping_mul(step)).collect();
                let encoded = frame(payload).encode();
                let [0, inner @ .., 0] = encoded.as_slice() else { panic!("no delimiters") };
                assert!(!inner.contains(&0));
                assert_eq!(items(&encoded), [Item::Frame(frame(encoded_payload(inner)))]);
            }
        }
    }

    fn encoded_payload(inner: &[u8]) -> Vec<u8> {
        let bytes = decode(inner).unwrap();
        bytes[HEADER_BYTES..bytes.len() - CHECKSUM_BYTES].to_vec()
    }

    #[test]
    fn every_damaged_byte_is_found() {
        let good = frame(vec![1, 0, 0, 200, 3]).encode();
        for at in 1..good.len() - 1 {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = good.clone();
                damaged[at] ^= flip;
                let found = items(&damaged);
                assert!(found.iter().all(|item| matches!(item, Item::Damaged(_))), "{at}: {found:?}");
            }
        }
    }

    #[test]
    fn damage_does_not_hide_the_next_frame() {
        let good = frame(vec![9]).encode();
        let noise = [&good[..6], &good, b"noise"].concat();
        let found = items(&[&noise[..], &good].concat());
        assert_eq!(found[1], Item::Frame(frame(vec![9])));
        assert!(matches!(found[0], Item::Damaged(_)) && matches!(found[2], Item::Damaged(_)));
        assert_eq!(found[3], Item::Frame(frame(vec![9])));
    }

    #[test]
    fn a_frame_is_bounded() {
        let mut endless = vec![1; 3 * MAX_ENCODED_BYTES];
        endless.push(0);
        assert_eq!(items(&endless), [Item::Damaged("it is too long")]);
    }
}
