//! Lines that no client should send: each costs its own request, and nothing else.

use serde_json::{Value, json};

use super::protocol::doubling;
use super::sandbox::Sandbox;
use super::server::Server;

/// How many lines, of all those that `cargo xtask test --all` sends.
const LINES: usize = 20_000;
const ALL_LINES: usize = 1_000_000;
/// By how much the server's memory may grow over all lines but the first ones.
const GROWTH_BYTES: usize = 4 << 20;
/// The most that the longest lines may need: a line twice, and the parts of it.
const PEAK_BYTES: usize = 400 << 20;

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }
}

/// Words that a mutation puts in.
const WORDS: [&[u8]; 16] = [
    b"{",
    b"[",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"1e999",
    b"-1",
    b"18446744073709551616",
    b"null",
    b"true",
    b",",
    b":",
    b"\xff\xfe",
    b"[[[[[[[[[[[[",
    b"{\"version\": 1}",
    b"\"candidate\":",
];

/// Values that a mutation puts in the place of others.
const VALUES: [&str; 16] = [
    "null",
    "-1",
    "0",
    "1e308",
    "18446744073709551615",
    "0.5",
    "\"\"",
    "\"n / 0\"",
    "\"((((((((\"",
    "\"file:/dev/zero\"",
    "[]",
    "{}",
    "[[[[[]]]]]",
    "[4294967296, 4294967296, 4294967296]",
    "{\"from\": 1, \"to\": 1e18, \"step\": 1}",
    "true",
];

/// A line that differs from a request in one to three values, or in one to eight other places.
fn mutated(random: &mut Random, requests: &[Value], lines: &[Vec<u8>]) -> Vec<u8> {
    if random.below(2) == 0 {
        return mutated_text(random, lines);
    }
    let mut request = requests[random.below(requests.len())].clone();
    for _ in 0..=random.below(3) {
        let mut places = Vec::new();
        pointers(&request, "", &mut places);
        let place = request.pointer_mut(&places[random.below(places.len())]).unwrap();
        *place = serde_json::from_str(VALUES[random.below(VALUES.len())]).unwrap();
    }
    request.to_string().into_bytes()
}

/// The pointers to all parts of a value.
fn pointers(value: &Value, to: &str, all: &mut Vec<String>) {
    all.push(to.to_owned());
    match value {
        Value::Array(parts) => {
            (0..).zip(parts).for_each(|(at, part): (usize, _)| pointers(part, &format!("{to}/{at}"), all));
        }
        Value::Object(parts) => {
            parts.iter().for_each(|(key, part)| pointers(part, &format!("{to}/{key}"), all));
        }
        _ => {}
    }
}

fn mutated_text(random: &mut Random, lines: &[Vec<u8>]) -> Vec<u8> {
    let mut line = lines[random.below(lines.len())].clone();
    for _ in 0..=random.below(8) {
        let (at, length) = (random.below(line.len()), random.below(40));
        let part = at..(at + length).min(line.len());
        match random.below(5) {
            0 => line.truncate(at),
            1 => drop(line.drain(part)),
            2 => drop(line.splice(at..at, WORDS[random.below(WORDS.len())].iter().copied())),
            3 => line.extend_from_within(part),
            _ => line.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.next().to_le_bytes()[0]),
        }
    }
    // One line each, and none that is skipped.
    line.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
    if line.iter().all(u8::is_ascii_whitespace) { b"{".to_vec() } else { line }
}

/// The bytes of `VmRSS` or `VmHWM` of a process.
fn memory(process: u32, field: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

/// Sends lines that are answered by errors.
fn send(server: &mut Server<'_>, lines: impl Iterator<Item = Vec<u8>>) {
    for (number, line) in lines.enumerate() {
        server.write(line);
        // Now and then waits for the answers, so that neither side fills up. Requests may be answered later, and cancelled by others.
        if number % 100 == 0 {
            server.write(format!("\"line {number}\""));
            let is_answer = |reply: &Value| {
                reply["error"].as_str().is_some_and(|error| error.contains(&format!("\"line {number}\"")))
            };
            while !is_answer(&assert_refused(server.last_reply())) {}
        }
    }
}

fn assert_refused(reply: Value) -> Value {
    let error = reply["error"].as_str().or(reply["cancelled"].as_str()).unwrap_or_else(|| panic!("{reply}"));
    assert!(!error.is_empty() && error.len() < 5000, "{} bytes", error.len());
    reply
}

#[test]
fn hostile_lines_cost_their_requests_only() {
    let sandbox = Sandbox::new();
    let mut server = Server::start(&sandbox);
    // Should a mutation make a request valid, its device does not exist.
    let mut invalid = doubling("void k(void) {}");
    invalid["device"] = json!("host:77");
    invalid["spec"]["eval"]["energy"] = json!(1);
    let by_path =
        json!({"spec": "none.toml", "device": "host:77", "settings": {"repeat": 2}, "require": ["fresh"]});
    let requests = [
        json!({"id": 1, "candidate": invalid}),
        json!({"id": 2, "candidate": by_path}),
        json!({"cancel": 18_446_744_073_709_551_615_u64}),
    ];
    let lines = requests.clone().map(|request| request.to_string().into_bytes());
    let count = if test_process::is_complete() { ALL_LINES } else { LINES };
    let mut random = Random(39);
    send(&mut server, (0..LINES / 10).map(|_| mutated(&mut random, &requests, &lines)));
    let (before, begin) = (memory(server.id(), "VmRSS"), std::time::Instant::now());
    send(&mut server, (LINES / 10..count).map(|_| mutated(&mut random, &requests, &lines)));
    let after = memory(server.id(), "VmRSS");
    eprintln!("{count} lines in {:?}, {} KiB, then {} KiB", begin.elapsed(), before >> 10, after >> 10);
    assert!(after < before + GROWTH_BYTES, "{before} bytes, then {after}");
    let rest = doubling("void k(const float *x, float *y) { for (int i = 0; i < 4; i++) y[i] = 2 * x[i]; }");
    server.write(json!({"id": 7, "candidate": rest}).to_string());
    let mut last = server.last_reply();
    while last["row"].is_null() {
        assert_refused(last);
        last = server.last_reply();
    }
    assert_eq!((&last["id"], &last["row"]["status"]), (&json!(7), &json!("right")));
    server.finish();
}

#[test]
fn long_and_deep_lines_take_little_memory() {
    let sandbox = Sandbox::new();
    let mut server = Server::start(&sandbox);
    let around = |before: &str, part: &str, count: usize| {
        let line =
            format!("{{\"id\": 5, \"candidate\": {{\"device\": \"host:0\", {before}{}", part.repeat(count));
        (line, before.to_owned())
    };
    const MANY: usize = 20 << 20;
    for ((line, what), words) in [
        (around("\"spec\": [", "1,", MANY / 2), "more than 100000 values"),
        (around("\"spec\": {\"arg\": [", "[],", MANY / 3), "more than 100000 values"),
        (around("\"spec\": ", "[", MANY), "recursion limit"),
        (around("\"spec\": \"", "x", MANY), "EOF"),
        (around("\"settings\": {\"", "x", MANY), "EOF"),
        (around("\"overrides\": {\"values\": {\"n\": ", "9", MANY), ""),
        (around("", " ", 70 << 20), "a line of more than 67108864 bytes"),
    ] {
        server.write(line);
        let reply = assert_refused(server.last_reply());
        assert!(reply["error"].as_str().unwrap().contains(words), "{what}: {reply}");
    }
    let peak = memory(server.id(), "VmHWM");
    eprintln!("at most {} KiB", peak >> 10);
    assert!(peak < PEAK_BYTES, "{peak} bytes");
    server.submit(1, "right");
    assert_eq!(server.last_reply()["row"]["status"], "right");
    server.finish();
}
