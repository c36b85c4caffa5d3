use super::*;
use runtime_core::evaluate::{Clock, Cost, Statistics, Throttled, Validation};

use crate::row::{DeviceNoise, HostNoise, OtherProcess};
use crate::settings::Settings;

/// A quiet measurement: 30 samples of 10 ms.
fn measurement() -> Measurement {
    Measurement {
        clock: Clock::HostWall,
        cold: false,
        repeat: 30,
        reached_until: None,
        throttled: Some(Throttled::default()),
        number: 10,
        calls: 400,
        samples_ns: vec![1e6; 30],
        statistics: statistics(0.01),
        overhead_ns: None,
        transfer: None,
        cost: Cost::default(),
        validation: Validation::default(),
    }
}

fn statistics(uncertainty: f64) -> Statistics {
    Statistics {
        min_ns: 9e5,
        median_ns: 1e6,
        mean_ns: 1e6,
        max_ns: 2e6,
        stddev_ns: Some(1e4),
        p5_ns: 9e5,
        p95_ns: 2e6,
        median_ci95_ns: Some([1e6 * (1.0 - uncertainty / 2.0), 1e6 * (1.0 + uncertainty)]),
        outliers: 0,
    }
}

/// A machine on which nothing happens, with everything that can be read.
fn quiet() -> Noise {
    let host = HostNoise {
        elapsed_s: Some(0.3),
        affinity: Some(vec![0, 1]),
        governors: Some(vec!["performance".to_owned()]),
        turbo: Some(true),
        load: Some(3.0),
        others_busy_cpus: Some(0.02),
        smt_siblings_busy: Some(0.3),
        steal_share: Some(0.001),
        minor_page_faults: Some(20),
        major_page_faults: Some(0),
        voluntary_switches: Some(100),
        involuntary_switches: Some(1),
    };
    let device = DeviceNoise { processes: Some(Vec::new()), ..DeviceNoise::default() };
    Noise { host, device, ..Noise::default() }
}

fn advice_for(measurement: &Measurement, noise: &Noise, on_host: bool) -> Vec<String> {
    let until_percent = measurement.reached_until.map(|_| 1.0);
    let settings = Settings { until_percent, budget_s: Some(5.0), ..Settings::default() }.effective();
    advice(&Evidence { settings: &settings, measurement, noise, on_host })
}

/// The only advice for an interval of ±6%.
fn wide(edit: impl FnOnce(&mut Noise), on_host: bool) -> String {
    let mut noise = quiet();
    edit(&mut noise);
    let measurement = Measurement { statistics: statistics(0.06), ..measurement() };
    let found = advice_for(&measurement, &noise, on_host);
    assert_eq!(found.len(), 1, "{found:?}");
    let (quiet_advice, edited) = (advice_for(&self::measurement(), &noise, on_host), &found[0]);
    assert!(edited.starts_with("the median's interval is ±6.0%: "), "{edited}");
    assert!(quiet_advice.iter().all(|text| text.contains("processors busy")), "{quiet_advice:?}");
    edited.clone()
}

#[test]
fn a_good_result_gets_no_advice() {
    for on_host in [true, false] {
        assert_eq!(advice_for(&measurement(), &quiet(), on_host), [""; 0]);
        assert_eq!(advice_for(&measurement(), &Noise::default(), on_host), [""; 0]);
    }
}

#[test]
fn a_wide_interval_names_its_cause_and_the_remedy() {
    assert_eq!(
        wide(|noise| noise.host.steal_share = Some(0.4), true),
        "the median's interval is ±6.0%: 40% of the time was stolen by the hypervisor; run again when the machine is quieter, \
         or use --until 1%"
    );
    let text = wide(|noise| noise.host.others_busy_cpus = Some(1.3), true);
    assert!(text.contains("other processes kept 1.3 of 2 processors busy; stop them, or"), "{text}");
    let text = wide(|noise| noise.host.involuntary_switches = Some(60), true);
    assert!(text.contains("other work interrupted this process 60 times"), "{text}");
    let text = wide(|noise| noise.host.minor_page_faults = Some(90_000), true);
    assert!(text.contains("there were 90000 page faults") && text.contains("reuse memory"), "{text}");
    let text = wide(|noise| noise.host.governors = Some(vec!["powersave".to_owned()]), true);
    assert!(text.contains("the frequency governor is powersave; set it to performance"), "{text}");
    let text = wide(|_| (), true);
    assert!(text.contains("nothing else is known; run again, or use --until 1%"), "{text}");
}

#[test]
fn other_processes_of_the_device_are_named() {
    let process = |id, name: Option<&str>| OtherProcess { id, name: name.map(str::to_owned) };
    let list = vec![process(Some(7), Some("train.py")), process(Some(8), None), process(None, None)];
    let text = wide(|noise| noise.device.processes = Some(list), false);
    let named =
        "the device is also used by train.py (7), process 8, a process of another container; stop that";
    assert!(text.contains(named), "{text}");
}

#[test]
fn the_strongest_cause_comes_first_and_the_host_disturbs_host_kernels_only() {
    let disturb = |noise: &mut Noise| {
        noise.host.steal_share = Some(0.2);
        noise.host.minor_page_faults = Some(200_000);
        noise.host.governors = Some(vec!["schedutil".to_owned()]);
    };
    let text = wide(disturb, true);
    assert!(text.contains("there were 200000 page faults during the samples; reuse"), "{text}");
    assert!(!text.contains("schedutil"), "a weak cause: {text}");
    let both =
        wide(|noise| (noise.host.steal_share, noise.host.others_busy_cpus) = (Some(0.4), Some(1.0)), true);
    assert!(both.contains("1.0 of 2 processors busy, and 40% of the time was stolen"), "{both}");
    assert!(wide(disturb, false).contains("stolen"), "page faults of the host do not disturb a GPU");
}

#[test]
fn short_and_few_samples_are_causes() {
    let measurement = Measurement { number: 1, samples_ns: vec![1e3; 7], repeat: 7, ..measurement() };
    let statistics = Statistics { median_ns: 1e3, median_ci95_ns: Some([900.0, 1100.0]), ..statistics(0.0) };
    let text = advice_for(&Measurement { statistics, ..measurement.clone() }, &quiet(), true).remove(0);
    assert!(
        text.contains("±10%: a sample lasts only 1.0 µs; make more calls per sample (--number)"),
        "{text}"
    );
    let few = Measurement { number: 100_000, statistics: self::statistics(0.2), ..measurement };
    let text = advice_for(&few, &quiet(), true).remove(0);
    assert!(text.contains("there are only 7 samples; take more of them (--repeat)"), "{text}");
}

#[test]
fn a_precision_that_was_asked_for_and_not_reached_is_said() {
    let reached = Measurement { reached_until: Some(true), ..measurement() };
    assert_eq!(advice_for(&reached, &quiet(), true), [""; 0]);
    let missed = Measurement { reached_until: Some(false), statistics: statistics(0.02), ..measurement() };
    let text = advice_for(&missed, &quiet(), true).remove(0);
    assert!(
        text.contains("is ±2.0% instead of ±1.0%") && text.contains("raise --budget-s, which is 5"),
        "{text}"
    );
}

#[test]
fn defects_of_the_series_are_explained() {
    let with = |defect, cold| {
        let noise = Noise { defect: Some(defect), ..quiet() };
        advice_for(&Measurement { cold, ..measurement() }, &noise, true)
    };
    let slow_start = Defect::FirstPart { samples: 3, ratio: 1.5 };
    let text = with(slow_start, false).remove(0);
    assert!(text.contains("the first 3 of 30 samples are 50% longer") && text.contains("--warmup"), "{text}");
    assert_eq!(with(slow_start, true), [""; 0], "a cold start was asked for");
    let text = with(Defect::FirstPart { samples: 9, ratio: 0.8 }, false).remove(0);
    assert!(text.contains("20% shorter") && text.contains("the clock went down"), "{text}");
    let text = with(Defect::Drift { change: -0.034 }, false).remove(0);
    assert!(text.contains("the times fall by 3.4%") && text.contains("--cooldown-ms"), "{text}");
    let text = with(Defect::TwoModes { low_ns: 1e3, high_ns: 1.25e3, high_share: 0.4 }, false).remove(0);
    assert!(text.contains("40% of them are 25% longer") && text.contains("samples_ns"), "{text}");
    let noise = Noise { defect: Some(Defect::Drift { change: 0.2 }), ..quiet() };
    let stolen = HostNoise { steal_share: Some(0.3), ..noise.host };
    let text = advice_for(&measurement(), &Noise { host: stolen, ..noise }, true).remove(0);
    assert!(text.contains("the times rise by 20%") && text.contains("30% of the time was stolen"), "{text}");
}

#[test]
fn throttling_that_stays_and_a_spent_budget_are_said() {
    let mut noise = quiet();
    noise.device.throttle_reasons = Some(vec!["hardware thermal".to_owned()]);
    let throttled = |remeasured, kept| Some(Throttled { remeasured, kept, ..Throttled::default() });
    let again = Measurement { throttled: throttled(4, 0), ..measurement() };
    assert_eq!(advice_for(&again, &noise, false), [""; 0], "measured again with success");
    let kept = Measurement { throttled: throttled(30, 12), ..measurement() };
    let text = advice_for(&kept, &noise, false).remove(0);
    assert!(text.contains("during 12 of 30 samples (hardware thermal), although 30"), "{text}");
    let cut = Measurement { repeat: 100, ..measurement() };
    let text = advice_for(&cut, &quiet(), false).remove(0);
    assert_eq!(text, "30 of 100 samples: the budget was spent; raise --budget-s, which is 5");
}

#[test]
fn busy_processors_spoil_times_of_the_host_even_if_the_interval_is_narrow() {
    let mut noise = quiet();
    noise.host.others_busy_cpus = Some(1.5);
    let text = advice_for(&measurement(), &noise, true).remove(0);
    assert!(text.contains("other processes kept 1.5 of 2 processors busy"), "{text}");
    assert_eq!(advice_for(&measurement(), &noise, false), [""; 0]);
}

#[test]
fn a_time_of_zero_gives_no_advice() {
    let zero = Statistics { median_ns: 0.0, median_ci95_ns: Some([0.0, 0.0]), ..statistics(0.0) };
    assert_eq!(advice_for(&Measurement { statistics: zero, ..measurement() }, &quiet(), true), [""; 0]);
}
