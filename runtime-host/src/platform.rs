//! Operating-system interfaces: memory sizes, huge pages, NUMA nodes, thread affinity and stacks.

#![allow(unsafe_code, reason = "calls libc")]

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;

use runtime_core::device::MemoryUsage;
use runtime_core::{Error, ErrorKind, Result};

/// Size of a page.
pub(crate) fn page_bytes() -> u64 {
    // SAFETY: `sysconf` only reads a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// Number of online processors.
pub(crate) fn logical_cores() -> u32 {
    // SAFETY: `sysconf` only reads a number of the system.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(count).unwrap_or(1).max(1)
}

/// Whether the calling thread is known to have at least `bytes` bytes of stack left.
#[inline]
pub(crate) fn has_stack(bytes: usize) -> bool {
    thread_local! {
        /// The bounds of the thread's stack; zero until they are known.
        static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    }
    let marker = 0_u8;
    let here = (&raw const marker).addr();
    STACK.with(|stack| {
        if stack.get().1 == 0 {
            stack.set(own_stack());
        }
        let (lowest, end) = stack.get();
        // Outside: a coroutine with a stack of its own.
        (lowest..end).contains(&here) && here - lowest >= bytes
    })
}

/// The bounds of the calling thread's stack.
fn own_stack() -> (usize, usize) {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: has no preconditions.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: the thread is the calling one; success initialises the attributes.
    if unsafe { libc::pthread_getattr_np(thread, attributes.as_mut_ptr()) } != 0 {
        return (usize::MAX, usize::MAX);
    }
    let (mut lowest, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are initialised, and both outputs are writable.
    let known = unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut bytes) };
    // SAFETY: they were initialised above, and are not used again.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    if known == 0 { (lowest.addr(), lowest.addr().saturating_add(bytes)) } else { (usize::MAX, usize::MAX) }
}

/// Physical memory: the total, and what can still be allocated without swapping.
pub(crate) fn memory_usage() -> MemoryUsage {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total_bytes = meminfo_bytes(&text, "MemTotal").unwrap_or_else(physical_bytes);
    MemoryUsage { total_bytes, free_bytes: meminfo_bytes(&text, "MemAvailable").unwrap_or(total_bytes) }
}

/// Memory plus swap, the upper limit of an allocation; `u64::MAX` if unknown.
pub(crate) fn memory_and_swap_bytes() -> u64 {
    // Reading it takes longer than a small allocation.
    static MOST: OnceLock<u64> = OnceLock::new();
    *MOST.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let swap = meminfo_bytes(&text, "SwapTotal").unwrap_or(0);
        meminfo_bytes(&text, "MemTotal").map_or(u64::MAX, |total| total.saturating_add(swap))
    })
}

/// Size of a huge page; 0 if there are none.
pub(crate) fn huge_page_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    meminfo_bytes(&text, "Hugepagesize").unwrap_or(0)
}

fn physical_bytes() -> u64 {
    // SAFETY: `sysconf` only reads a number of the system.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    u64::try_from(pages).unwrap_or(0).saturating_mul(page_bytes())
}

/// Identifies the processor's instruction set.
pub(crate) fn processor() -> &'static str {
    // On a machine with many processors, reading it takes milliseconds.
    static PROCESSOR: OnceLock<String> = OnceLock::new();
    PROCESSOR.get_or_init(read_processor)
}

fn read_processor() -> String {
    const KEYS: [&str; 5] = ["vendor_id", "cpu family", "model", "stepping", "flags"];
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let first = text.split("\n\n").next().unwrap_or_default().lines();
    let fields: Vec<_> =
        first.filter(|line| line.split(':').next().is_some_and(|key| KEYS.contains(&key.trim()))).collect();
    format!("{} {}", std::env::consts::ARCH, fields.join("\n"))
}

/// The C library and its version.
#[cfg(target_env = "gnu")]
pub(crate) fn c_library() -> String {
    // SAFETY: returns a text of the C library that is never changed.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: the text is terminated and never changes.
    let version = unsafe { std::ffi::CStr::from_ptr(version) };
    format!("glibc {}", version.to_string_lossy())
}

/// The C library, which does not tell its version.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn c_library() -> String {
    std::env::consts::OS.to_owned()
}

/// The size of `key` in a text like `/proc/meminfo`.
pub(crate) fn meminfo_bytes(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// A private mapping, released by [`unmap`].
#[derive(Debug)]
pub(crate) struct Mapping {
    base: usize,
    bytes: usize,
    /// The first aligned byte.
    pub(crate) start: *mut u8,
}

/// Maps `bytes` bytes in transparent huge pages, which reduce TLB misses; `None` if the system has none.
///
/// # Errors
/// `OutOfMemory`.
pub(crate) fn map_transparent_huge(bytes: usize, alignment_bytes: usize) -> Result<Option<Mapping>> {
    let modes = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let page = usize::try_from(huge_page_bytes()).unwrap_or(0);
    if page == 0 || modes.is_empty() || modes.contains("[never]") {
        return Ok(None);
    }
    let (rounded, alignment) = (whole_pages(bytes, page)?, alignment_bytes.max(page));
    let padded = rounded.checked_add(alignment).ok_or_else(|| too_much(bytes))?;
    let mapping = map(padded, alignment, 0).ok_or_else(|| too_much(bytes))?;
    // SAFETY: the range is inside the mapping just made, which is at least one alignment longer.
    let advised = unsafe { libc::madvise(mapping.start.cast(), rounded, libc::MADV_HUGEPAGE) };
    if advised != 0 {
        unmap(&mapping);
        return Ok(None);
    }
    Ok(Some(mapping))
}

fn whole_pages(bytes: usize, page: usize) -> Result<usize> {
    bytes.checked_next_multiple_of(page.max(1)).ok_or_else(|| too_much(bytes))
}

fn too_much(bytes: usize) -> Error {
    Error::new(ErrorKind::OutOfMemory, format!("cannot map {bytes} bytes in huge pages; allocate less"))
}

/// Maps `bytes` bytes in huge pages: transparent ones if enabled, otherwise reserved ones.
///
/// # Errors
/// `Unavailable`, with the remedy, if there are none; `OutOfMemory`.
pub(crate) fn map_huge(bytes: usize, alignment_bytes: usize) -> Result<Mapping> {
    if let Some(mapping) = map_transparent_huge(bytes, alignment_bytes)? {
        return Ok(mapping);
    }
    let page = usize::try_from(huge_page_bytes()).unwrap_or(0);
    let rounded = whole_pages(bytes, page)?;
    let reserved = if page != 0 && alignment_bytes <= page {
        map(rounded, alignment_bytes, libc::MAP_HUGETLB)
    } else {
        None
    };
    reserved.ok_or_else(|| {
        Error::new(
            ErrorKind::Unavailable,
            "huge_pages: none are available; as root, write `madvise` to /sys/kernel/mm/transparent_hugepage/enabled \
             or reserve some with `sysctl vm.nr_hugepages=N`",
        )
    })
}

/// Maps `bytes` bytes in pages of the default size.
///
/// # Errors
/// `OutOfMemory`.
pub(crate) fn map_pages(bytes: usize, alignment_bytes: usize) -> Result<Mapping> {
    let exhausted = || Error::new(ErrorKind::OutOfMemory, format!("cannot map {bytes} bytes; allocate less"));
    let page = usize::try_from(page_bytes()).unwrap_or(4096);
    let alignment = alignment_bytes.max(page);
    let padded = bytes.checked_add(alignment).ok_or_else(exhausted)?;
    map(padded, alignment, 0).ok_or_else(exhausted)
}

/// Prefers `node` for all pages of a mapping, none of which has been touched yet. When the node is full, the system
/// takes other memory; with a strict policy it would kill the process.
///
/// # Errors
/// `Unavailable` if the system does not allow it.
pub(crate) fn prefer_node(mapping: &Mapping, node: u32) -> Result<()> {
    const WORDS: usize = 1024 / u64::BITS as usize;
    let mut mask = [0_u64; WORDS];
    if let Some(word) = mask.get_mut(node as usize / 64) {
        *word = 1 << (node % 64);
    }
    let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(mapping.base);
    // `mbind` uses one bit less than this number.
    let (mode, bits, flags) = (libc::MPOL_PREFERRED, WORDS * 64 + 1, 0_u32);
    // SAFETY: `mbind` sets the policy of our own mapping, and reads the mask.
    let result =
        unsafe { libc::syscall(libc::SYS_mbind, start, mapping.bytes, mode, mask.as_ptr(), bits, flags) };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    let message = format!(
        "memory of node {node}: mbind: {error}; use the memory space \"device\", or let the program choose nodes (a container needs CAP_SYS_NICE)"
    );
    Err(Error::new(ErrorKind::Unavailable, message).with_source(error))
}

/// Pins the calling thread to `cpus`; does nothing if the system does not allow it.
pub(crate) fn pin_thread(cpus: &[usize]) {
    // SAFETY: a processor set is a bit mask; all zeros is the empty set.
    let mut set = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
    for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
        // SAFETY: the number is below the size of the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: 0 is the calling thread, and the set is read in its own size.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
}

fn map(bytes: usize, alignment_bytes: usize, flags: i32) -> Option<Mapping> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping at an address chosen by the system affects no existing memory.
    let base =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return None;
    }
    let skip = base.cast::<u8>().align_offset(alignment_bytes);
    Some(Mapping { base: base.expose_provenance(), bytes, start: base.cast::<u8>().wrapping_add(skip) })
}

/// Releases a mapping.
pub(crate) fn unmap(mapping: &Mapping) {
    // SAFETY: base and size are those of a mapping, which its only owner releases once.
    unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(mapping.base), mapping.bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_keys_match_whole_names() {
        let text = "MemTotal:       16384 kB\nMemTotalX: 1 kB\nMemAvailable:    1024 kB\n";
        assert_eq!(meminfo_bytes(text, "MemAvailable"), Some(1 << 20));
        assert_eq!(meminfo_bytes(text, "MemTotal"), Some(16 << 20));
        assert_eq!(meminfo_bytes(text, "Mem"), None);
    }
}
