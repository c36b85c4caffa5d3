//! What depends on the operating system: sizes of the memory, huge pages, and nodes.

#![allow(unsafe_code, reason = "asks and maps through libc")]

use std::cell::Cell;
use std::io;
use std::sync::OnceLock;

use runtime_core::{Error, ErrorKind, MemoryUsage, Result};

/// Bytes of one page.
pub(crate) fn page_bytes() -> u64 {
    // SAFETY: `sysconf` only reads a constant of the system.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

/// Processors that are switched on.
pub(crate) fn logical_cores() -> u32 {
    // SAFETY: `sysconf` only reads a number of the system.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(count).unwrap_or(1).max(1)
}

/// Whether the calling thread has so many bytes of its stack left, for certain.
#[inline]
pub(crate) fn has_stack(bytes: usize) -> bool {
    thread_local! {
        /// The first address of the thread's stack, and the one behind it; zero if they are not known yet.
        static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    }
    let marker = 0_u8;
    let here = (&raw const marker).addr();
    STACK.with(|stack| {
        if stack.get().1 == 0 {
            stack.set(own_stack());
        }
        let (lowest, end) = stack.get();
        // Somewhere else: a coroutine that brought its own.
        (lowest..end).contains(&here) && here - lowest >= bytes
    })
}

/// The first address of the calling thread's stack, and the one behind it.
#[cfg(target_os = "linux")]
fn own_stack() -> (usize, usize) {
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: a thread may ask for itself at any time.
    let thread = unsafe { libc::pthread_self() };
    // SAFETY: the thread is the one that runs; the attributes are initialised if it succeeds.
    if unsafe { libc::pthread_getattr_np(thread, attributes.as_mut_ptr()) } != 0 {
        return (usize::MAX, usize::MAX);
    }
    let (mut lowest, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are initialised, and the two places are ours.
    let known = unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut lowest, &raw mut bytes) };
    // SAFETY: they were initialised above, and are not used again.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    if known == 0 { (lowest.addr(), lowest.addr().saturating_add(bytes)) } else { (usize::MAX, usize::MAX) }
}

/// Not known on other systems.
#[cfg(not(target_os = "linux"))]
const fn own_stack() -> (usize, usize) {
    (usize::MAX, usize::MAX)
}

/// Physical memory: what there is, and what could still be allocated without swapping.
pub(crate) fn memory_usage() -> MemoryUsage {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total_bytes = meminfo_bytes(&text, "MemTotal").unwrap_or_else(physical_bytes);
    MemoryUsage { total_bytes, free_bytes: meminfo_bytes(&text, "MemAvailable").unwrap_or(total_bytes) }
}

/// The most that an allocation could ever hold: memory and swap; `u64::MAX` if the system does not tell.
pub(crate) fn most_bytes() -> u64 {
    // Asking takes longer than a small allocation.
    static MOST: OnceLock<u64> = OnceLock::new();
    *MOST.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let swap = meminfo_bytes(&text, "SwapTotal").unwrap_or(0);
        meminfo_bytes(&text, "MemTotal").map_or(u64::MAX, |total| total.saturating_add(swap))
    })
}

/// Bytes of one huge page, 0 where there are none.
pub(crate) fn huge_page_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    meminfo_bytes(&text, "Hugepagesize").unwrap_or(0)
}

fn physical_bytes() -> u64 {
    // SAFETY: `sysconf` only reads a number of the system.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    u64::try_from(pages).unwrap_or(0).saturating_mul(page_bytes())
}

/// What tells this processor's instructions from another one's.
pub(crate) fn processor() -> String {
    const KEYS: [&str; 5] = ["vendor_id", "cpu family", "model", "stepping", "flags"];
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let first = text.split("\n\n").next().unwrap_or_default().lines();
    let told: Vec<_> =
        first.filter(|line| line.split(':').next().is_some_and(|key| KEYS.contains(&key.trim()))).collect();
    format!("{} {}", std::env::consts::ARCH, told.join("\n"))
}

/// The size that stands behind `key` in a text like `/proc/meminfo`.
pub(crate) fn meminfo_bytes(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// A mapping of the program's own, given back with [`unmap`].
#[derive(Debug)]
pub(crate) struct Mapping {
    base: usize,
    bytes: usize,
    /// First byte of the wanted alignment.
    pub(crate) start: *mut u8,
}

/// Lets the system back memory that is about to be used with huge pages, where it has a choice: fewer pages are looked up.
#[cfg(target_os = "linux")]
pub(crate) fn prefer_huge(start: *mut u8, bytes: usize) {
    let page = usize::try_from(page_bytes()).unwrap_or(4096);
    let before = start.align_offset(page);
    if let Some(inside) = bytes.checked_sub(before) {
        let whole = inside - inside % page;
        // SAFETY: whole pages of the caller's memory; what they hold stays. A system without huge pages refuses, and nothing is lost.
        unsafe { libc::madvise(start.wrapping_add(before).cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

/// Huge pages are preferred on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn prefer_huge(_start: *mut u8, _bytes: usize) {}

/// Maps `bytes` of memory in huge pages, transparent ones if they are on, else reserved ones.
///
/// # Errors
/// `Unavailable` with the remedy where there are none; `OutOfMemory`.
#[cfg(target_os = "linux")]
pub(crate) fn map_huge(bytes: usize, alignment_bytes: usize) -> Result<Mapping> {
    let page = usize::try_from(huge_page_bytes()).unwrap_or(0);
    let too_much =
        || Error::new(ErrorKind::OutOfMemory, format!("no address range of {bytes} bytes in huge pages"));
    let rounded = bytes.checked_next_multiple_of(page.max(1)).ok_or_else(too_much)?;
    let modes = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if page != 0 && !modes.is_empty() && !modes.contains("[never]") {
        let alignment = alignment_bytes.max(page);
        let mapping =
            map(rounded.checked_add(alignment).ok_or_else(too_much)?, alignment, 0).ok_or_else(too_much)?;
        // SAFETY: the range is inside the mapping just made, which is at least one alignment longer.
        let advised = unsafe { libc::madvise(mapping.start.cast(), rounded, libc::MADV_HUGEPAGE) };
        if advised == 0 {
            return Ok(mapping);
        }
        unmap(&mapping);
    }
    let reserved = if page != 0 && alignment_bytes <= page {
        map(rounded, alignment_bytes, libc::MAP_HUGETLB)
    } else {
        None
    };
    reserved.ok_or_else(|| {
        Error::new(
            ErrorKind::Unavailable,
            "huge_pages: there are none; as root, write `madvise` to /sys/kernel/mm/transparent_hugepage/enabled \
             or reserve some with `sysctl vm.nr_hugepages=N`",
        )
    })
}

/// Huge pages are asked for on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn map_huge(_bytes: usize, _alignment_bytes: usize) -> Result<Mapping> {
    Err(Error::new(ErrorKind::Unavailable, "huge_pages: not on this operating system; allocate without them"))
}

/// Maps `bytes` of memory in pages of the usual size.
///
/// # Errors
/// `OutOfMemory`.
#[cfg(target_os = "linux")]
pub(crate) fn map_pages(bytes: usize, alignment_bytes: usize) -> Result<Mapping> {
    let exhausted = || Error::new(ErrorKind::OutOfMemory, format!("no address range of {bytes} bytes"));
    let page = usize::try_from(page_bytes()).unwrap_or(4096);
    let alignment = alignment_bytes.max(page);
    let padded = bytes.checked_add(alignment).ok_or_else(exhausted)?;
    map(padded, alignment, 0).ok_or_else(exhausted)
}

/// Asks for the memory of `node` for all pages of a mapping, none of which was touched. When the node is full, the
/// system takes what is near: it would end the program otherwise.
///
/// # Errors
/// `Unavailable` where the system does not let it.
#[cfg(target_os = "linux")]
pub(crate) fn prefer_node(mapping: &Mapping, node: u32) -> Result<()> {
    const WORDS: usize = 1024 / u64::BITS as usize;
    let mut mask = [0_u64; WORDS];
    if let Some(word) = mask.get_mut(node as usize / 64) {
        *word = 1 << (node % 64);
    }
    let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(mapping.base);
    // The system counts one bit less than it is told.
    let (mode, bits, flags) = (libc::MPOL_PREFERRED, WORDS * 64 + 1, 0_u32);
    // SAFETY: `mbind` changes where pages of our own mapping will come from, and reads the mask.
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

/// Keeps the calling thread to `cpus`; where the system does not let it, the thread stays free.
#[cfg(target_os = "linux")]
pub(crate) fn pin_thread(cpus: &[usize]) {
    // SAFETY: a processor set is plain bits, and none of them set is the empty one.
    let mut set = unsafe { std::mem::zeroed::<libc::cpu_set_t>() };
    for &cpu in cpus.iter().filter(|&&cpu| cpu < libc::CPU_SETSIZE as usize) {
        // SAFETY: the number is below the size of the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: 0 is the calling thread, and the set is read in its own size.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
}

/// Nodes are known on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn map_pages(_bytes: usize, _alignment_bytes: usize) -> Result<Mapping> {
    Err(Error::unsupported("memory of a node on this operating system is not supported"))
}

/// Nodes are known on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn prefer_node(_mapping: &Mapping, _node: u32) -> Result<()> {
    Err(Error::unsupported("memory of a node on this operating system is not supported"))
}

/// Nodes are known on Linux only.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_thread(_cpus: &[usize]) {}

#[cfg(target_os = "linux")]
fn map(bytes: usize, alignment_bytes: usize, flags: i32) -> Option<Mapping> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping at an address that the system chooses touches nothing that exists.
    let base =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return None;
    }
    let skip = base.cast::<u8>().align_offset(alignment_bytes);
    Some(Mapping { base: base.expose_provenance(), bytes, start: base.cast::<u8>().wrapping_add(skip) })
}

/// Gives a mapping back.
pub(crate) fn unmap(mapping: &Mapping) {
    // SAFETY: base and size are those of a mapping that only its one owner gives back, once.
    unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(mapping.base), mapping.bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_by_whole_keys() {
        let text = "MemTotal:       16384 kB\nMemTotalX: 1 kB\nMemAvailable:    1024 kB\n";
        assert_eq!(meminfo_bytes(text, "MemAvailable"), Some(1 << 20));
        assert_eq!(meminfo_bytes(text, "MemTotal"), Some(16 << 20));
        assert_eq!(meminfo_bytes(text, "Mem"), None);
    }
}
