//! A part of a sweep that is too long for every run.

/// `count` members of a sweep, in its order; all of them with `cargo xtask test --all`. Which ones follows from `name` and
/// `RUNTIME_FUZZ_SEED`, so that other runs take others, and the same seed takes the same.
#[must_use]
pub fn sample<T>(name: &str, sweep: impl IntoIterator<Item = T>, count: usize) -> Vec<T> {
    let seed = std::env::var("RUNTIME_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    chosen(name, seed, sweep, if is_complete() { usize::MAX } else { count })
}

/// Whether `cargo xtask test --all` runs, whose sweeps are complete.
#[must_use]
pub fn is_complete() -> bool {
    std::env::var_os("RUNTIME_TEST_ALL").is_some()
}

fn chosen<T>(name: &str, seed: u64, sweep: impl IntoIterator<Item = T>, count: usize) -> Vec<T> {
    let mut members: Vec<_> = sweep.into_iter().enumerate().collect();
    members.sort_by_key(|(index, _)| hash(name, seed, *index));
    members.truncate(count);
    members.sort_by_key(|(index, _)| *index);
    members.into_iter().map(|(_, member)| member).collect()
}

/// FNV-1a, which is the same on every machine and in every version of Rust.
fn hash(name: &str, seed: u64, index: usize) -> u64 {
    let numbers = [seed.to_le_bytes(), (index as u64).to_le_bytes()];
    let bytes = name.bytes().chain(numbers.into_iter().flatten());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn every_member_is_chosen_by_some_seed_and_the_order_stays() {
        let sweep = [1, 2, 3, 4, 5];
        let samples: Vec<_> = (0..100).map(|seed| chosen("sweep", seed, sweep, 2)).collect();
        assert!(samples.iter().all(|sample| sample.len() == 2 && sample.is_sorted()));
        assert!(sweep.iter().all(|member| samples.iter().any(|sample| sample.contains(member))));
        assert_eq!(chosen("sweep", 7, sweep, 2), samples[7]);
    }

    #[test]
    fn a_count_beyond_the_sweep_is_all_of_it() {
        assert_eq!(chosen("sweep", 3, [1, 2], 9), [1, 2]);
    }
}
