//! The memory of a candidate's tensors, which judge and runner share.

#![allow(unsafe_code, reason = "maps memory that two processes share")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _};

use memmap2::{MmapOptions, MmapRaw};
use runtime_core::backend::huge_page_file;

/// In an ordinary evaluation, the host's backend prefers huge pages for tensors of at least this size.
const LARGE: usize = 2 << 20;

/// Memory that another process may change at any time: it is copied, never borrowed.
#[derive(Debug)]
pub(super) struct SharedMemory(MmapRaw);

impl SharedMemory {
    /// New memory, all zeros, and the file that another process can map; for a tensor of the size `largest`, in huge pages if the system
    /// can.
    ///
    /// # Errors
    /// Any error of the system.
    pub(super) fn create(bytes: usize, largest: usize) -> io::Result<(Self, File)> {
        let file = match largest < LARGE {
            true => small_pages(bytes)?,
            false => huge_page_file(bytes).or_else(|_| small_pages(bytes))?,
        };
        Ok((Self::of(&file)?, file))
    }

    /// The memory of such a file.
    ///
    /// # Errors
    /// Any error of the system.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        MmapOptions::new().map_raw(file).map(Self)
    }

    /// Copies bytes out.
    pub(super) fn read(&self, at: usize, into: &mut [u8]) {
        let from = self.address(at, into.len());
        // SAFETY: the range is in the mapping, which no Rust reference points into.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
    }

    /// Copies bytes in.
    pub(super) fn write(&self, at: usize, from: &[u8]) {
        let to = self.address(at, from.len());
        // SAFETY: the range is in the mapping, which no Rust reference points into.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    }

    /// Sets bytes.
    pub(super) fn fill(&self, at: usize, bytes: usize, byte: u8) {
        let to = self.address(at, bytes);
        // SAFETY: the range is in the mapping, which no Rust reference points into.
        unsafe { std::ptr::write_bytes(to, byte, bytes) };
    }

    /// Where `bytes` begin.
    ///
    /// # Panics
    /// If they are not all in the memory.
    pub(super) fn address(&self, at: usize, bytes: usize) -> *mut u8 {
        assert!(at.checked_add(bytes).is_some_and(|end| end <= self.0.len()), "outside of the shared memory");
        self.0.as_mut_ptr().wrapping_add(at)
    }
}

/// A file of memory whose size nobody can change.
fn small_pages(bytes: usize) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is terminated and outlives the call.
    let file = unsafe { libc::memfd_create(c"tensors".as_ptr(), flags) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    let file = unsafe { File::from_raw_fd(file) };
    file.set_len(bytes.max(1) as u64)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: a system call without pointers.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_mappings_are_the_same_memory_of_a_fixed_size() {
        let (ours, file) = SharedMemory::create(10_000, 5_000).unwrap();
        assert!(file.set_len(1).is_err() && file.set_len(1 << 20).is_err());
        check(&ours, &file);
    }

    #[test]
    fn so_are_huge_pages() {
        // Where the system has none, or no user name spaces, there is nothing to test.
        if let Ok(file) = huge_page_file(5 << 20) {
            assert_eq!(file.metadata().unwrap().len(), 5 << 20);
            check(&SharedMemory::of(&file).unwrap(), &file);
        }
    }

    fn check(ours: &SharedMemory, file: &File) {
        let theirs = SharedMemory::of(file).unwrap();
        ours.write(9_000, &[1, 2, 3]);
        theirs.fill(9_001, 1, 7);
        let mut read = [0; 4];
        ours.read(8_999, &mut read);
        assert_eq!(read, [0, 1, 7, 3]);
    }

    #[test]
    #[should_panic(expected = "outside")]
    fn nothing_outside_is_read() {
        SharedMemory::create(100, 100).unwrap().0.read(98, &mut [0; 3]);
    }
}
