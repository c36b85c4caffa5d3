//! The counter of a board. An emulator counts instructions, which are never converted to time.

use crate::boards::Counter;

/// Converts ticks to the unit of the counter, rounded to the nearest.
pub(crate) fn count(counter: &Counter, ticks: u64) -> u64 {
    let [numerator, denominator] = counter.per_ticks.map(u128::from);
    let count = (u128::from(ticks) * numerator + denominator / 2) / denominator;
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_instructions() {
        let counter = |per_ticks| Counter { clock: "target-instructions".to_owned(), per_ticks };
        assert_eq!(count(&counter([1, 1]), u64::MAX), u64::MAX);
        // 100 instructions are 640 ticks; reading the timer may miss one.
        assert_eq!([639, 640, 641].map(|ticks| count(&counter([10, 64]), ticks)), [100; 3]);
    }
}
