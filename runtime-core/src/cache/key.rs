//! The key of an entry: everything that native code depends on, in full, and its BLAKE3 hash.

use std::fmt;
use std::hash::{Hash, Hasher};

/// Collects the parts of a [`Key`], in order.
#[derive(Debug, Default)]
pub(crate) struct KeyBuilder {
    bytes: Vec<u8>,
}

impl KeyBuilder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a part. `runtime cache list` shows short parts that are text, and the part `arch` in its table.
    pub(crate) fn part(&mut self, name: &str, value: &[u8]) -> &mut Self {
        for field in [name.as_bytes(), value] {
            self.bytes.extend((field.len() as u64).to_le_bytes());
            self.bytes.extend(field);
        }
        self
    }

    pub(crate) fn finish(self) -> Key {
        Key::from_bytes(self.bytes)
    }
}

/// Identifies native code. Keys are equal only if all their bytes are: a hash collision is not a match.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Key {
    bytes: Vec<u8>,
    digest: [u8; 32],
}

impl Key {
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        let digest = *blake3::hash(&bytes).as_bytes();
        Self { bytes, digest }
    }

    /// The parts, one after the other, each with its lengths in front.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The BLAKE3 hash of all parts, with their names and lengths.
    pub(crate) fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The digest in hexadecimal: the name of the entry.
    pub(crate) fn name(&self) -> String {
        blake3::Hash::from_bytes(self.digest).to_hex().to_string()
    }

    /// A key with the digest of another.
    #[cfg(test)]
    pub(super) fn colliding_with(&self, bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), digest: self.digest }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest.hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.name())
    }
}

/// The parts in a key's bytes, as far as they can be read.
pub(super) fn parts(mut bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    fn field<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
        let (length, rest) = bytes.split_first_chunk::<8>()?;
        let (field, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        *bytes = rest;
        Some(field)
    }
    let mut found = Vec::new();
    while let Some(part) = field(&mut bytes).zip(field(&mut bytes)) {
        found.push(part);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parts: &[(&str, &str)]) -> Key {
        let mut builder = KeyBuilder::new();
        for (name, value) in parts {
            builder.part(name, value.as_bytes());
        }
        builder.finish()
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let keys = [
            key(&[]),
            key(&[("a", "")]),
            key(&[("", "a")]),
            key(&[("ab", "c")]),
            key(&[("a", "bc")]),
            key(&[("a", "b"), ("c", "")]),
            key(&[("c", ""), ("a", "b")]),
        ];
        for (at, one) in keys.iter().enumerate() {
            assert!(keys[at + 1..].iter().all(|other| other != one && other.name() != one.name()), "{at}");
        }
        assert_eq!(key(&[("a", "b")]), key(&[("a", "b")]));
    }

    #[test]
    fn keys_of_one_digest_differ_by_their_bytes() {
        let one = key(&[("a", "b")]);
        assert_ne!(one, one.colliding_with(b"other"));
        assert_eq!(one.name(), one.colliding_with(b"other").name());
        assert_eq!(one.name().len(), 64);
    }

    #[test]
    fn parts_are_read_back_as_far_as_possible() {
        let key = key(&[("arch", "sm_90"), ("source", "")]);
        let all: Vec<(&[u8], &[u8])> = vec![(b"arch", b"sm_90"), (b"source", b"")];
        assert_eq!(parts(key.bytes()), all);
        assert_eq!(parts(&key.bytes()[..key.bytes().len() - 1]), all[..1]);
        assert!(parts(&[0xff; 40]).is_empty());
    }
}
