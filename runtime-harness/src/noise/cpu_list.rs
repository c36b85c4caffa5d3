//! Linux's lists of processors, such as `0-3,8`.

/// More processors than a machine has: a list may be garbled.
const MAX_CPUS: usize = 1 << 14;

/// The processors of a list; `None` if it is not one.
pub(super) fn parse(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if (last.checked_sub(first)? as usize) >= MAX_CPUS - cpus.len().min(MAX_CPUS) {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_ranges_and_numbers() {
        assert_eq!(parse("0-3,8\n").unwrap(), [0, 1, 2, 3, 8]);
        assert_eq!(parse("5").unwrap(), [5]);
        for garbled in ["", "a", "3-1", "0-", "0-4294967295", "0-16383,0-16383"] {
            assert_eq!(parse(garbled), None, "{garbled}");
        }
    }
}
