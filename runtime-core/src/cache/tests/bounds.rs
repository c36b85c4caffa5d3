//! Bounds: which entries go, and what the usage file knows.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use super::super::usage::Usage;
use super::*;

fn entry_bytes() -> u64 {
    let fixture = Fixture::new();
    fixture.get(&fixture.cache(), 1);
    fixture.cache().usage().unwrap().bytes
}

fn bounded(fixture: &Fixture, max_bytes: u64, max_entries: u64) -> CodeCache {
    CodeCache::with_options(CacheOptions { max_bytes, max_entries, ..fixture.options() })
}

/// Sets the time of last use to this many seconds ago; negative for the future.
fn set_age(fixture: &Fixture, number: u32, age_s: i64) {
    let seconds = Duration::from_secs(age_s.unsigned_abs());
    let now = SystemTime::now();
    let time = if age_s < 0 { now + seconds } else { now - seconds };
    File::options().write(true).open(fixture.file(&key(number))).unwrap().set_modified(time).unwrap();
}

fn remaining(fixture: &Fixture, numbers: std::ops::Range<u32>) -> Vec<u32> {
    numbers.filter(|number| fixture.file(&key(*number)).exists()).collect()
}

#[test]
fn the_least_recently_used_go_first_down_to_nine_tenths() {
    let fixture = Fixture::new();
    let cache = bounded(&fixture, u64::MAX, 20);
    fixture.fill(&cache, 0..20);
    (0..20).for_each(|number| set_age(&fixture, number, 1000 + i64::from((number + 5) % 20)));
    // A hit makes 14, the oldest, the newest.
    assert_eq!(fixture.get(&cache, 14), CacheOutcome::Hit);
    fixture.get(&cache, 20);
    // 18 of 20 remain with the new one; 13, 12 and 11 are the oldest of the others.
    let expected: Vec<u32> = (0..=20).filter(|number| ![13, 12, 11].contains(number)).collect();
    assert_eq!(remaining(&fixture, 0..21), expected);
    assert_eq!(Usage::read(fixture.path()).unwrap().entries, 18);
}

#[test]
fn bytes_are_bounded_too() {
    let fixture = Fixture::new();
    let bytes = entry_bytes();
    let cache = bounded(&fixture, 10 * bytes, u64::MAX);
    for number in 0..40 {
        assert_eq!(fixture.get(&cache, number), CacheOutcome::Miss);
        let usage = cache.usage().unwrap();
        assert!(usage.bytes <= 10 * bytes, "{usage:?}");
        assert_eq!(CacheUsage::from(Usage::read(fixture.path()).unwrap()), usage);
    }
    assert!(cache.usage().unwrap().entries >= 9);
}

#[test]
fn what_is_larger_than_the_bound_is_not_stored() {
    let fixture = Fixture::new();
    let bytes = entry_bytes();
    for cache in [bounded(&fixture, bytes - 1, u64::MAX), bounded(&fixture, u64::MAX, 0)] {
        assert_eq!(fixture.get(&cache, 1), CacheOutcome::Uncached);
        assert_eq!(cache.usage().unwrap().entries, 0);
    }
    let one = bounded(&fixture, bytes, 1);
    assert_eq!(
        [1, 2, 2].map(|number| fixture.get(&one, number)),
        [CacheOutcome::Miss, CacheOutcome::Miss, CacheOutcome::Hit]
    );
    assert_eq!(one.usage().unwrap(), CacheUsage { bytes, entries: 1 });
}

#[test]
fn a_replaced_entry_is_counted_once() {
    let fixture = Fixture::new();
    let cache = CodeCache::with_options(CacheOptions { recompile: true, ..fixture.options() });
    (0..5).for_each(|_| fixture.fill(&cache, 1..2));
    assert_eq!(Usage::read(fixture.path()).unwrap().entries, 1);
    assert_eq!(CacheUsage::from(Usage::read(fixture.path()).unwrap()), cache.usage().unwrap());
}

#[test]
fn a_damaged_usage_file_costs_a_scan() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    fixture.get(&cache, 0);
    let file = fixture.path().join("usage");
    let good = fs::read(&file).unwrap();
    let mut damaged = vec![Vec::new(), good[..20].to_vec(), [&good[..], &[0]].concat()];
    damaged.extend((0..good.len()).map(|at| {
        let mut bad = good.clone();
        bad[at] ^= 1;
        bad
    }));
    for (number, bytes) in (1..).zip(damaged) {
        fs::write(&file, bytes).unwrap();
        assert_eq!(Usage::read(fixture.path()), None, "{number}");
        fixture.get(&cache, number);
        let usage = Usage::read(fixture.path()).unwrap();
        assert_eq!(usage.entries, u64::from(number) + 1);
        assert_eq!(CacheUsage::from(usage), cache.usage().unwrap());
    }
    fs::remove_file(&file).unwrap();
    fixture.get(&cache, 1000);
    assert_eq!(CacheUsage::from(Usage::read(fixture.path()).unwrap()), cache.usage().unwrap());
}

#[test]
fn no_write_scans_while_the_usage_file_is_good() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    fixture.get(&cache, 0);
    // A scan would find this file.
    fs::copy(fixture.file(&key(0)), fixture.file(&key(0)).with_file_name("0".repeat(62))).unwrap();
    fixture.get(&cache, 1);
    assert_eq!(Usage::read(fixture.path()).unwrap().entries, 2);
}

#[test]
fn clocks_that_jump_only_affect_the_order() {
    let fixture = Fixture::new();
    let cache = bounded(&fixture, u64::MAX, 10);
    fixture.fill(&cache, 0..10);
    set_age(&fixture, 3, -1_000_000);
    set_age(&fixture, 4, -1_000_000);
    set_age(&fixture, 5, i64::from(u32::MAX) / 3);
    assert_eq!([3, 5].map(|number| fixture.get(&cache, number)), [CacheOutcome::Hit; 2]);
    let used = fixture.file(&key(3)).metadata().unwrap().modified().unwrap();
    assert!(used <= SystemTime::now(), "a hit repairs a time in the future");
    fixture.get(&cache, 10);
    let left = remaining(&fixture, 0..11);
    assert!(left.len() == 9 && left.contains(&4) && left.contains(&10), "{left:?}");
    assert_eq!(cache.verify().unwrap().intact.entries, 9);
}

#[test]
fn pruning_removes_by_age_size_and_bounds() {
    let fixture = Fixture::new();
    let bytes = entry_bytes();
    let cache = fixture.cache();
    fixture.fill(&cache, 0..10);
    (0..10).for_each(|number| set_age(&fixture, number, i64::from(number) * 86_400 + 60));
    let day = Duration::from_secs(86_400);
    let old = PruneOptions { older_than: Some(7 * day), ..PruneOptions::default() };
    assert_eq!(cache.prune(&old).unwrap().entries, 3, "7, 8 and 9");
    assert_eq!(cache.prune(&old).unwrap().entries, 0);
    let large = PruneOptions { max_bytes: Some(5 * bytes), ..PruneOptions::default() };
    assert_eq!(cache.prune(&large).unwrap(), CacheUsage { bytes: 2 * bytes, entries: 2 });
    assert_eq!(remaining(&fixture, 0..10), [0, 1, 2, 3, 4]);
    assert_eq!(cache.prune(&PruneOptions::default()).unwrap().entries, 0, "within the bounds");
    assert_eq!(bounded(&fixture, u64::MAX, 3).prune(&PruneOptions::default()).unwrap().entries, 2);
    assert_eq!(Usage::read(fixture.path()).unwrap().entries, 3);
    assert_eq!(cache.clear().unwrap().entries, 3);
    assert_eq!(cache.clear().unwrap().entries, 0);
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Miss);
}

#[test]
fn entries_are_listed_with_what_their_key_says() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    assert!(cache.list().unwrap().is_empty());
    fixture.fill(&cache, 0..3);
    set_age(&fixture, 1, 500);
    fs::write(fixture.file(&key(2)), "damaged").unwrap();
    set_age(&fixture, 2, 1000);
    let list = cache.list().unwrap();
    let names: Vec<_> = list.iter().map(|entry| entry.name.clone()).collect();
    assert_eq!(names, [0, 1, 2].map(|number| key(number).name()));
    assert_eq!((list[0].format.as_deref(), list[2].format.as_deref()), (Some("cubin"), None));
    assert_eq!(list[0].kernels, ["scale"]);
    assert_eq!(list[0].key[1], ("arch".to_owned(), b"sm_90".to_vec()));
    assert_eq!((list[1].bytes, list[2].bytes), (entry_bytes(), 7));
}

#[test]
fn verifying_removes_what_is_damaged() {
    let fixture = Fixture::new();
    let cache = fixture.cache();
    fixture.fill(&cache, 0..6);
    let change = |number: u32, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = fs::read(fixture.file(&key(number))).unwrap();
        change(&mut bytes);
        fs::write(fixture.file(&key(number)), bytes).unwrap();
    };
    change(1, &|bytes| *bytes.last_mut().unwrap() ^= 1);
    change(2, &|bytes| bytes.truncate(100));
    change(3, &|bytes| bytes[8] = 99);
    fs::copy(fixture.file(&key(5)), fixture.file(&key(4))).unwrap();
    let report = cache.verify().unwrap();
    assert_eq!(report.intact.entries, 2);
    let mut reasons: Vec<_> = report.damaged.iter().map(|entry| entry.reason.as_str()).collect();
    reasons.sort_unstable();
    for (reason, part) in
        reasons.iter().zip(["wrong length", "version 99", "under a wrong name", "match its hash"])
    {
        assert!(reason.contains(part), "{reasons:?}");
    }
    assert_eq!(remaining(&fixture, 0..6), [0, 5]);
    assert!(cache.verify().unwrap().damaged.is_empty());
    fixture.get(&cache, 7);
    assert_eq!(CacheUsage::from(Usage::read(fixture.path()).unwrap()), cache.usage().unwrap());
}
