//! The grammar and the reductions, exhaustively, against a reference that is written differently.

use runtime_core::backend::CounterSet as _;
use runtime_core::{Error, ErrorKind, Result};

use super::*;
use crate::config::Arch;

/// All selectors of a dimension, as texts.
fn selectors(count: usize) -> Vec<String> {
    let named = ["avg", "min", "max", "sum"].map(str::to_owned);
    (0..count).map(|index| index.to_string()).chain(named).collect()
}

/// Different for every position, not monotonic, and exact in `f64`.
fn raw(seed: u64) -> RawValues {
    std::array::from_fn(|cluster| {
        std::array::from_fn(|element| {
            let position = seed * 1009 + (cluster * ELEMENTS + element) as u64;
            position.wrapping_mul(2_654_435_761) % 1_000_003
        })
    })
}

/// The reduction as the specification words it, over lists of numbers.
fn naive(selector: &str, values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut total = 0.0;
    for value in values {
        total += value;
    }
    match selector {
        "avg" => total / values.len() as f64,
        "sum" => total,
        "min" => sorted[0],
        "max" => sorted[values.len() - 1],
        index => values[index.parse::<usize>().unwrap()],
    }
}

#[test]
fn every_name_is_parsed_and_reduced_as_the_reference_does() {
    for event in Event::all(Arch::Kv32) {
        let raw = raw(u64::from(event.number()));
        for cluster in selectors(CLUSTERS) {
            for element in selectors(ELEMENTS) {
                let name = format!("mppa.{}.cluster.{cluster}.pe.{element}", event.name());
                let request = Request::parse(&name, Arch::Kv32).unwrap();
                assert_eq!((request.event, request.to_string()), (event, name.clone()));
                let elements: Vec<_> = raw
                    .iter()
                    .map(|cluster| {
                        naive(&element, &cluster.iter().map(|value| *value as f64).collect::<Vec<_>>())
                    })
                    .collect();
                let expected = naive(&cluster, &elements);
                for repeats in [1, 3] {
                    let given = request.reduce(&raw, repeats);
                    assert_eq!(given.to_bits(), (expected / repeats as f64).to_bits(), "{name} {repeats}");
                }
            }
        }
    }
}

#[test]
fn processing_elements_are_reduced_before_clusters() {
    let mut raw: RawValues = [[0; ELEMENTS]; CLUSTERS];
    (raw[0][0], raw[1][0], raw[1][1]) = (6, 5, 5);
    let value = |name: &str| Request::parse(name, Arch::Kv32).unwrap().reduce(&raw, 1);
    assert!((value("mppa.PCC.cluster.max.pe.sum") - 10.0).abs() < 1e-9, "the largest sum of a cluster");
    assert!((value("mppa.PCC.cluster.sum.pe.max") - 11.0).abs() < 1e-9, "the sum of the largest values");
}

#[test]
fn other_names_are_refused_with_what_is_valid() {
    let valid = "mppa.PCC.cluster.0.pe.avg";
    Request::parse(valid, Arch::Kv32).unwrap();
    for (name, words) in [
        ("", "mppa.<EVENT>.cluster."),
        ("PCC", "mppa.<EVENT>.cluster."),
        ("mppa.PCC.cluster.0.pe", "the form is"),
        ("mppa.PCC.cluster.0.pe.avg.x", "the form is"),
        ("mppa.PCC.pe.0.cluster.0", "the form is"),
        ("MPPA.PCC.cluster.0.pe.0", "the form is"),
        ("mppa.PCD.cluster.0.pe.avg", "did you mean \"PCC\""),
        ("mppa.pcc.cluster.0.pe.avg", "no event \"pcc\""),
        ("mppa..cluster.0.pe.avg", "no event \"\""),
        ("mppa.PCC.cluster.5.pe.avg", "no cluster \"5\""),
        ("mppa.PCC.cluster.-1.pe.avg", "valid: 0 to 4, avg, min, max, sum"),
        ("mppa.PCC.cluster.00.pe.avg", "no cluster \"00\""),
        ("mppa.PCC.cluster.0.pe.16", "valid: 0 to 15, avg, min, max, sum"),
        ("mppa.PCC.cluster.0.pe.+1", "no processing element"),
        ("mppa.PCC.cluster.0.pe.median", "no processing element"),
        ("mppa.PCC.cluster..pe.avg", "no cluster \"\""),
    ] {
        let error = Request::parse(name, Arch::Kv32).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains(words), "{name}: {error}");
    }
}

/// The memory for comparing a name with the known ones grew with both, up to an abort.
#[test]
fn a_name_of_any_length_and_content_is_refused() {
    let long = "A".repeat(50 << 20);
    let dots = ".".repeat(1 << 20);
    for name in [
        &*format!("mppa.{long}.cluster.0.pe.0"),
        &*format!("mppa.PCC.cluster.{long}.pe.0"),
        &*format!("mppa.PCC.cluster.{}.pe.0", "0".repeat(1 << 20)),
        &dots,
        "mppa.PCC\0.cluster.0.pe.0",
        "mppa.PCC.cluster.\u{661}.pe.0",
        "mppa.PCC.cluster.+1.pe.0",
        "mppa.PCC.cluster.18446744073709551616.pe.0",
        "",
    ] {
        assert_eq!(Request::parse(name, Arch::Kv31).unwrap_err().kind(), ErrorKind::NotFound);
    }
}

#[test]
fn each_architecture_has_its_events() {
    let [first, second] = [Arch::Kv31, Arch::Kv32].map(|arch| Event::all(arch).collect::<Vec<_>>());
    assert_eq!((first.len(), second.len()), (51, 55));
    assert_eq!(first[..], second[..51]);
    for (name, number) in [("PCC", 0), ("MNGIC", 8), ("LDSC", 27), ("SC", 38), ("FSC", 50)] {
        assert_eq!(Event::find(name, Arch::Kv31).unwrap().number(), number);
    }
    for (name, number) in [("CPIRE", 51), ("CPIE", 52), ("HUPEVICT", 53), ("HUPHIT", 54)] {
        assert_eq!(Event::find(name, Arch::Kv32).unwrap().number(), number);
        let error = Event::find(name, Arch::Kv31).unwrap_err();
        assert!(error.message().contains("exists on kv3-2 only"), "{error}");
    }
}

#[test]
fn events_are_described_as_far_as_they_are_known() {
    let described =
        |name| Event::find(name, Arch::Kv32).map(|event| (event.description(), event.unit())).unwrap();
    assert_eq!(described("PCC"), ("Processor clock cycles", Some("cycles")));
    assert_eq!(described("ENIE"), ("Executed instructions", None));
    assert_eq!(described("DDSC"), ("Cycles stalled by data dependencies", Some("cycles")));
    assert_eq!(described("DARSC"), ("Stall cycles of a kind", Some("cycles")));
    assert_eq!(described("DCME"), ("Event of the data cache", None));
    assert_eq!(described("HUPHIT"), ("Event of the processing elements", None));
    let simulated: Vec<_> =
        Event::all(Arch::Kv32).filter(|event| event.is_simulated()).map(Event::name).collect();
    assert_eq!(simulated, ["PCC", "EBE", "ENIE"]);
}

/// Counts by a formula of event and pass, and records the slots.
#[derive(Debug, Default)]
struct Fake {
    slots: Vec<(u8, Event)>,
    starts: u32,
    simulated: bool,
    fails: bool,
    loses: bool,
}

impl CounterSource for Fake {
    fn start(&mut self, slots: &[(u8, Event)]) -> Result<()> {
        if self.fails {
            return Err(Error::new(ErrorKind::Driver, "start"));
        }
        self.starts += 1;
        self.slots = slots.to_vec();
        Ok(())
    }

    fn stop(&mut self) -> Result<Vec<RawValues>> {
        let values = self.slots.iter().map(|(_, event)| raw(u64::from(event.number())));
        Ok(values.skip(usize::from(self.loses)).collect())
    }

    fn is_simulated(&self) -> bool {
        self.simulated
    }
}

fn requests(count: usize) -> Vec<Request> {
    let events = Event::all(Arch::Kv32).take(count);
    events.map(|event| Request { event, clusters: Reduction::Sum, elements: Reduction::Max }).collect()
}

#[test]
fn seven_events_take_one_pass_and_eight_take_two() {
    for (count, passes) in [(0, 1), (1, 1), (7, 1), (8, 2), (14, 2), (15, 3), (55, 8)] {
        let requests = requests(count);
        let mut counters = Counters::new(Fake::default(), &requests);
        assert_eq!(counters.passes(), passes, "{count} events");
        let mut seen = Vec::new();
        for pass in 0..passes {
            counters.begin(pass).unwrap();
            assert!(
                counters.source.slots.iter().all(|(slot, _)| (1..8).contains(slot)),
                "slot 0 is the system's"
            );
            seen.extend(counters.source.slots.iter().map(|(_, event)| *event));
            counters.end().unwrap();
        }
        assert!(seen.iter().copied().eq(requests.iter().map(|request| request.event)), "{seen:?}");
        let values = counters.read().unwrap();
        for (request, value) in requests.iter().zip(values) {
            let expected = request.reduce(&raw(u64::from(request.event.number())), 1);
            assert_eq!(value.unwrap().value.to_bits(), expected.to_bits());
        }
    }
}

#[test]
fn an_event_that_is_requested_twice_takes_one_slot() {
    let names = ["mppa.PCC.cluster.avg.pe.avg", "mppa.PCC.cluster.0.pe.3", "mppa.EBE.cluster.max.pe.min"];
    let requests: Vec<_> = names.iter().map(|name| Request::parse(name, Arch::Kv32).unwrap()).collect();
    let plan = Plan::new(&requests);
    let slots: Vec<_> = plan.slots(0).map(|(slot, event)| (slot, event.name())).collect();
    assert_eq!(slots, [(1, "PCC"), (2, "EBE")]);
    assert_eq!(plan.slots(1).count(), 0);
}

#[test]
fn simulators_count_three_events_and_say_so_of_others() {
    let mut counters = Counters::new(Fake { simulated: true, ..Fake::default() }, &requests(4));
    let reasons: Vec<_> = counters.unavailable_reasons().iter().map(Option::is_some).collect();
    assert_eq!(reasons, [false, true, false, false]);
    counters.begin(0).unwrap();
    assert_eq!(counters.source.slots.len(), 3);
    counters.end().unwrap();
    let values: Vec<_> = counters.read().unwrap().iter().map(Option::is_some).collect();
    assert_eq!(values, [true, false, true, true]);
}

#[test]
fn failures_of_the_source_leave_no_wrong_values() {
    let mut counters = Counters::new(Fake::default(), &requests(2));
    assert!(counters.end().is_err(), "`end` without `begin`");
    counters.begin(0).unwrap();
    counters.end().unwrap();
    counters.begin(0).unwrap();
    counters.source.fails = true;
    assert!(counters.begin(0).is_err());
    assert!(counters.end().is_err(), "a failed `begin` begins nothing");
    assert!(counters.read().unwrap().iter().all(Option::is_none), "values of an earlier run are gone");
    (counters.source.fails, counters.source.loses) = (false, true);
    counters.begin(0).unwrap();
    assert_eq!(counters.end().unwrap_err().kind(), ErrorKind::Driver);
    assert!(counters.read().unwrap().iter().all(Option::is_none));
}
