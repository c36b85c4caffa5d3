//! Measures a warm `get` against reading a file: `cargo test --release -p runtime-core --lib cache::tests::measure --
//! --ignored --nocapture`.

use std::fs;
use std::time::Instant;

use super::*;

const ENTRIES: u32 = 1000;
const ROUNDS: usize = 5;

/// The best time per call in microseconds.
fn best_us(mut call: impl FnMut(u32)) -> f64 {
    let round = || {
        let begin = Instant::now();
        (0..ENTRIES).for_each(&mut call);
        begin.elapsed().as_secs_f64() * 1e6 / f64::from(ENTRIES)
    };
    std::iter::repeat_with(round).take(ROUNDS).fold(f64::INFINITY, f64::min)
}

#[test]
#[ignore = "a measurement, for a release build on a quiet machine"]
fn a_warm_get_against_a_plain_read() {
    for (bytes, name) in [(20 << 10, "20 KiB"), (1 << 20, "1 MiB")] {
        let fixture = Fixture::new();
        let cache = fixture.cache();
        let entry = |number| CachedCode { code: vec![7; bytes], ..code(number) };
        for number in 0..ENTRIES {
            cache.get(&key(number), || Ok(entry(number))).unwrap();
        }
        let keys: Vec<_> = (0..ENTRIES).map(key).collect();
        let files: Vec<_> = keys.iter().map(|key| fixture.file(key)).collect();
        let read = best_us(|at| drop(std::hint::black_box(fs::read(&files[at as usize]).unwrap())));
        let get = best_us(|at| {
            let (found, outcome) = cache.get(&keys[at as usize], || unreachable!()).unwrap();
            assert!(outcome == CacheOutcome::Hit && found.code.len() == bytes);
        });
        let again = fixture.cache();
        let begin = Instant::now();
        keys.iter().for_each(|key| drop(again.get(key, || unreachable!()).unwrap()));
        let all_ms = begin.elapsed().as_secs_f64() * 1e3;
        let ratio = get / read;
        let line = format!(
            "{name}: read {read:.1} us, get {get:.1} us, ratio {ratio:.2}, {ENTRIES} in {all_ms:.0} ms"
        );
        std::io::Write::write_all(&mut std::io::stdout(), format!("{line}\n").as_bytes()).unwrap();
    }
}
