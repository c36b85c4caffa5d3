//! The file of an entry. Every read checks its length, its hash and its key.
//!
//! | offset | bytes | content |
//! | --- | --- | --- |
//! | 0 | 8 | `rtcache\n` |
//! | 8 | 4 | version of the format |
//! | 12 | 32 | BLAKE3 hash of all that follows, up to the code |
//! | 44 | 3 × 8 | bytes of the key, of the metadata and of the code |
//! | 68 | 32 | BLAKE3 hash of the code |
//! | 100 | | the key, the metadata, the code |
//!
//! The code has a hash of its own because BLAKE3 is fastest on one aligned piece.

use std::fmt;
use std::io::{self, Read};

use super::code::CachedCode;
use super::encoding;
use super::key::Key;

const MAGIC: &[u8; 8] = b"rtcache\n";
/// Increase it whenever the format or the metadata changes: entries of other versions are then misses.
const VERSION: u32 = 5;
/// Bytes before the hashed part.
const HEADER_BYTES: usize = 44;
const LENGTHS_BYTES: usize = 24;
/// Bytes before the key.
const START_BYTES: usize = HEADER_BYTES + LENGTHS_BYTES + blake3::OUT_LEN;

/// Why a file is not an entry that can be used.
#[derive(Debug)]
pub(super) enum Damage {
    /// It could not be read.
    Unreadable(io::Error),
    /// It is shorter or longer than it says.
    Length,
    /// It does not begin like an entry.
    NotAnEntry,
    /// It has another version.
    Version(u32),
    /// Its content has changed.
    Hash,
    /// It is an entry of other code.
    OtherKey,
    /// Its metadata cannot be decoded.
    Metadata,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "it cannot be read: {error}"),
            Self::Length => f.write_str("it has a wrong length"),
            Self::NotAnEntry => f.write_str("it is not an entry of the cache"),
            Self::Version(version) => write!(f, "it has version {version} of the format, not {VERSION}"),
            Self::Hash => f.write_str("its content does not match its hash"),
            Self::OtherKey => f.write_str("it belongs to other code"),
            Self::Metadata => f.write_str("its metadata cannot be decoded"),
        }
    }
}

impl From<io::Error> for Damage {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Length,
            _ => Self::Unreadable(error),
        }
    }
}

/// The bytes of an entry up to its code, which follows them.
pub(super) fn encode_head(key: &Key, cached: &CachedCode) -> Vec<u8> {
    let metadata = encoding::encode(cached);
    let mut head = Vec::with_capacity(START_BYTES + key.bytes().len() + metadata.len());
    head.extend(MAGIC);
    head.extend(VERSION.to_le_bytes());
    head.extend([0; 32]);
    for part in [key.bytes(), &metadata, &cached.code] {
        head.extend((part.len() as u64).to_le_bytes());
    }
    head.extend(blake3::hash(&cached.code).as_bytes());
    head.extend(key.bytes());
    head.extend(metadata);
    let hash = blake3::hash(&head[HEADER_BYTES..]);
    head[12..HEADER_BYTES].copy_from_slice(hash.as_bytes());
    head
}

/// The entry of `key` in `input`, which has `bytes` bytes.
///
/// # Errors
/// Whatever else it is.
pub(super) fn read(input: &mut impl Read, bytes: u64, key: &Key) -> Result<CachedCode, Damage> {
    let head = Head::read(input, bytes)?;
    if head.key() != key.bytes() {
        return Err(Damage::OtherKey);
    }
    head.read_code(input)
}

/// Any entry in `input`, with its key.
///
/// # Errors
/// Whatever else it is.
pub(super) fn read_any(input: &mut impl Read, bytes: u64) -> Result<(Key, CachedCode), Damage> {
    let head = Head::read(input, bytes)?;
    Ok((Key::from_bytes(head.key().to_vec()), head.read_code(input)?))
}

/// Key and metadata. The code is neither read nor checked.
///
/// # Errors
/// Whatever else it is.
pub(super) fn read_description(input: &mut impl Read, bytes: u64) -> Result<(Key, CachedCode), Damage> {
    let head = Head::read(input, bytes)?;
    let description = encoding::decode(head.metadata(), Vec::new()).ok_or(Damage::Metadata)?;
    Ok((Key::from_bytes(head.key().to_vec()), description))
}

/// Everything before the code, checked.
struct Head {
    /// Lengths, hash of the code, key and metadata.
    bytes: Vec<u8>,
    key_bytes: usize,
    code_bytes: usize,
}

impl Head {
    fn read(input: &mut impl Read, file_bytes: u64) -> Result<Self, Damage> {
        let mut start = [0; START_BYTES];
        input.read_exact(&mut start)?;
        let (header, lengths) = start.split_at(HEADER_BYTES);
        if header[..8] != MAGIC[..] {
            return Err(Damage::NotAnEntry);
        }
        let version = u32::from_le_bytes(array(&header[8..12]));
        if version != VERSION {
            return Err(Damage::Version(version));
        }
        let [key, metadata, code] = [0, 8, 16].map(|at| u64::from_le_bytes(array(&lengths[at..at + 8])));
        let rest = key.checked_add(metadata).and_then(|sum| sum.checked_add(code));
        if rest != file_bytes.checked_sub(START_BYTES as u64) {
            return Err(Damage::Length);
        }
        // They are at most the length of the file, which the caller bounds.
        let [key_bytes, metadata_bytes, code_bytes] =
            [key, metadata, code].map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        let mut bytes = lengths.to_vec();
        read_exactly(input, key_bytes.saturating_add(metadata_bytes), &mut bytes)?;
        if blake3::hash(&bytes) != header[12..] {
            return Err(Damage::Hash);
        }
        Ok(Self { bytes, key_bytes, code_bytes })
    }

    fn key(&self) -> &[u8] {
        &self.bytes[START_BYTES - HEADER_BYTES..][..self.key_bytes]
    }

    fn metadata(&self) -> &[u8] {
        &self.bytes[START_BYTES - HEADER_BYTES + self.key_bytes..]
    }

    /// Reads and checks the code, and decodes the metadata.
    fn read_code(&self, input: &mut impl Read) -> Result<CachedCode, Damage> {
        let mut code = Vec::new();
        read_exactly(input, self.code_bytes, &mut code)?;
        if blake3::hash(&code) != self.bytes[LENGTHS_BYTES..START_BYTES - HEADER_BYTES] {
            return Err(Damage::Hash);
        }
        encoding::decode(self.metadata(), code).ok_or(Damage::Metadata)
    }
}

/// Appends `count` bytes of `input`. Memory is reserved up to a bound, and grows beyond it as bytes arrive.
fn read_exactly(input: &mut impl Read, count: usize, bytes: &mut Vec<u8>) -> Result<(), Damage> {
    const RESERVED_AT_MOST: usize = 64 << 20;
    bytes.reserve_exact(count.min(RESERVED_AT_MOST));
    match input.take(count as u64).read_to_end(bytes)? {
        read if read == count => Ok(()),
        _ => Err(Damage::Length),
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}

#[cfg(test)]
mod tests {
    use super::VERSION;

    #[test]
    fn the_documentation_names_the_version() {
        let docs = include_str!("../../../docs/cache.md");
        assert!(docs.contains(&format!("| 8 | 4 | version of the format, {VERSION} |")));
    }
}
