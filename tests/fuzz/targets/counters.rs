//! Arbitrary lines as names of an MPPA's counters: rejected, or a name that is printed as it was read, has a value, and is counted in
//! one pass. The bytes are also what the processing elements count.
#![no_main]

use libfuzzer_sys::fuzz_target;
use runtime_mppa::config::Arch;
use runtime_mppa::counters::{CLUSTERS, ELEMENTS, Plan, RawValues, Request, SLOTS};

/// More than the sum of what all elements count, a byte each.
const MAX_VALUE: f64 = 256.0 * (CLUSTERS * ELEMENTS) as f64;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let raw = raw_values(bytes);
    for (_, arch) in Arch::NAMES {
        let requests: Vec<_> = text.lines().filter_map(|name| parsed(name, arch)).collect();
        for request in &requests {
            let value = request.reduce(&raw, 1);
            assert!((0.0..MAX_VALUE).contains(&value), "{request}: {value}");
        }
        check_plan(&Plan::new(&requests), &requests);
    }
});

fn parsed(name: &str, arch: Arch) -> Option<Request> {
    let request = Request::parse(name, arch).ok()?;
    assert_eq!(request.to_string(), name);
    Some(request)
}

fn raw_values(bytes: &[u8]) -> RawValues {
    let mut values = bytes.iter().cycle().map(|byte| u64::from(*byte));
    std::array::from_fn(|_| std::array::from_fn(|_| values.next().unwrap_or_default()))
}

/// Every event has one slot in one pass, and the slots of a pass differ.
fn check_plan(plan: &Plan, requests: &[Request]) {
    let passes: Vec<Vec<_>> = (0..plan.passes()).map(|pass| plan.slots(pass).collect()).collect();
    for slots in &passes {
        assert!(slots.iter().map(|(slot, _)| slot).eq(SLOTS.iter().take(slots.len())), "{slots:?}");
    }
    for request in requests {
        let counted = passes.iter().flatten().filter(|(_, event)| *event == request.event).count();
        assert_eq!(counted, 1, "{request}");
    }
}
