//! A small file of numbers with a hash, written in place: that works on a full disk, too.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::platform::trust::{self, Owner};

const HASH_BYTES: usize = 32;

/// Reads a file of `N` numbers; `None` if it is missing or damaged.
pub(super) fn read<const N: usize>(path: &Path) -> Option<[u64; N]> {
    let (file, metadata) = trust::open_file(path, Owner::User).ok()?;
    let mut bytes = vec![0; N * 8 + HASH_BYTES];
    if metadata.len() != bytes.len() as u64 || file.read_exact_at(&mut bytes, 0).is_err() {
        return None;
    }
    let (numbers, hash) = bytes.split_at(N * 8);
    let mut read = [0; N];
    for (number, bytes) in read.iter_mut().zip(numbers.chunks_exact(8)) {
        *number = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    (blake3::hash(numbers) == *hash).then_some(read)
}

/// Writes the file.
///
/// # Errors
/// The system's error.
pub(super) fn write<const N: usize>(path: &Path, numbers: [u64; N]) -> io::Result<()> {
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.extend(blake3::hash(&bytes).as_bytes());
    let mut options = File::options();
    options.write(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    file.write_all_at(&bytes, 0)?;
    if file.metadata()?.len() == bytes.len() as u64 { Ok(()) } else { file.set_len(bytes.len() as u64) }
}
