//! Runs random kernels by brute force: if one reads an element that nothing has written, the variable must be zeroed.
//!
//! Barriers are only where all invocations reach them. An invocation may read what it has written itself, and what
//! any has written before a barrier. `ZEROING_ATTACK_SEED` and `ZEROING_ATTACK_CASES` select other kernels than the
//! default.

use std::fmt::Write;

use crate::{Program, Specialisation};

use super::must_zero;

/// Invocations per work-group, 4 × 2.
const ITEMS: u32 = 8;
/// Elements of the variable.
const ELEMENTS: u32 = 12;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32 % n
    }
}

fn word(count: usize) -> u32 {
    u32::try_from(count).unwrap()
}

/// A 32-bit number.
#[derive(Clone, Debug)]
enum Number {
    Literal(u32),
    Lane,
    /// The local id along an axis.
    Axis(u32),
    /// The counter of a loop, by nesting depth.
    Counter(usize),
    /// A value that no analysis can know.
    Unknown(u32),
    Binary(char, Box<Self>, Box<Self>),
    /// `place(x)`: a function that returns `x + x / 4`.
    Place(Box<Self>),
    /// `min` or `max`.
    Extreme(bool, Box<Self>, Box<Self>),
    Select(Box<Self>, Box<Self>, Box<Self>, Box<Self>),
}

#[derive(Clone, Debug)]
enum Step {
    Write(Number),
    Read(Number),
    Put(Number),
    Barrier,
    If([Number; 2], Vec<Self>, Vec<Self>),
    /// A counter's start, limit and step.
    For([Number; 3], Vec<Self>),
    Break([Number; 2]),
    Return([Number; 2]),
}

/// A step of an invocation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    Break,
    Return,
}

fn number(random: &mut Random, depth: u32, counters: usize) -> Number {
    let two = |random: &mut Random| [0; 2].map(|_| Box::new(number(random, depth - 1, counters)));
    match random.below(if depth == 0 { 8 } else { 14 }) {
        0 => Number::Literal(random.below(ELEMENTS)),
        1..3 => Number::Lane,
        3 => Number::Axis(random.below(3)),
        4..7 if counters > 0 => Number::Counter(random.below(word(counters)) as usize),
        7 if random.below(4) == 0 => Number::Unknown(random.below(3)),
        11 => Number::Place(Box::new(number(random, depth - 1, counters))),
        12 => {
            let [a, b] = two(random);
            Number::Extreme(random.below(2) == 0, a, b)
        }
        13 => {
            let ([a, b], [c, d]) = (two(random), two(random));
            Number::Select(a, b, c, d)
        }
        8.. => {
            let [a, b] = two(random);
            Number::Binary(char::from(b"++-*/%&|^<>"[random.below(11) as usize]), a, b)
        }
        _ => Number::Lane,
    }
}

/// `uniform` if all invocations or none reach these steps; `room` is the nesting depth left.
fn steps(random: &mut Random, (room, counters): (u32, usize), uniform: bool, in_loop: bool) -> Vec<Step> {
    let mut all = Vec::new();
    for _ in 0..=random.below(4) {
        let depth = random.below(3);
        let some = |random: &mut Random| number(random, depth, counters);
        all.push(match random.below(if room == 0 { 11 } else { 16 }) {
            0..4 => Step::Write(if random.below(2) == 0 { Number::Lane } else { some(random) }),
            4..7 => Step::Read(some(random)),
            7 => Step::Put(some(random)),
            8..10 if uniform => Step::Barrier,
            10 if in_loop && !uniform && random.below(3) == 0 => Step::Break([some(random), some(random)]),
            11 if random.below(8) == 0 && uniform => {
                // All invocations return, or none.
                Step::Return([Number::Unknown(random.below(3)), Number::Literal(random.below(9))])
            }
            12..14 => {
                let condition = [some(random), some(random)];
                // An invocation that leaves a loop early would miss its barriers.
                let inner = in_loop && !uniform;
                let accept = steps(random, (room - 1, counters), false, inner);
                Step::If(condition, accept, steps(random, (room - 1, counters), false, inner))
            }
            14.. => {
                let strided =
                    [Number::Lane, Number::Literal(ELEMENTS + random.below(3)), Number::Literal(ITEMS)];
                let counted = [0, 1 + random.below(4), 1].map(Number::Literal);
                let unknown = [Number::Literal(0), Number::Unknown(random.below(3)), Number::Literal(1)];
                let header = match random.below(4) {
                    0 | 1 => strided,
                    2 => counted,
                    _ => unknown,
                };
                // Loops whose trip count varies between invocations have no barrier.
                let same = uniform && !matches!(header[0], Number::Lane);
                Step::For(header, steps(random, (room - 1, counters + 1), same, true))
            }
            _ => Step::Read(some(random)),
        });
    }
    all
}

impl Number {
    fn text(&self) -> String {
        match self {
            Self::Literal(value) => format!("{value}u"),
            Self::Lane => "l".to_owned(),
            Self::Axis(axis) => format!("p.{}", ["x", "y", "z"][*axis as usize]),
            Self::Counter(depth) => format!("i{depth}"),
            Self::Unknown(number) => format!("s.{}", ["a", "b", "c"][*number as usize]),
            Self::Binary(op, a, b) => {
                let op = match op {
                    '<' => "<<".to_owned(),
                    '>' => ">>".to_owned(),
                    other => other.to_string(),
                };
                // Constant expressions must not overflow.
                let b = if matches!(op.as_str(), "<<" | ">>") {
                    format!("({} & 31u)", b.text())
                } else {
                    b.text()
                };
                format!("((zero | {}) {op} (zero | {b}))", a.text())
            }
            Self::Place(a) => format!("place({})", a.text()),
            Self::Extreme(larger, a, b) => {
                format!("{}({}, {})", if *larger { "max" } else { "min" }, a.text(), b.text())
            }
            Self::Select(a, b, c, d) => {
                format!("select({}, {}, {} < {})", a.text(), b.text(), c.text(), d.text())
            }
        }
    }

    fn value(&self, run: &Run, item: u32, counters: &[u32]) -> u32 {
        let value = |number: &Self| number.value(run, item, counters);
        match self {
            Self::Literal(value) => *value,
            Self::Lane => item,
            Self::Axis(axis) => [item % 4, item / 4, 0][*axis as usize],
            Self::Counter(depth) => counters[*depth],
            Self::Unknown(number) => run.unknown[*number as usize],
            Self::Binary(op, a, b) => {
                let (a, b) = (value(a), value(b));
                match op {
                    '+' => a.wrapping_add(b),
                    '-' => a.wrapping_sub(b),
                    '*' => a.wrapping_mul(b),
                    '/' => a.checked_div(b).unwrap_or(a),
                    '%' => a.checked_rem(b).unwrap_or(0),
                    '&' => a & b,
                    '|' => a | b,
                    '^' => a ^ b,
                    '<' => a << (b & 31),
                    _ => a >> (b & 31),
                }
            }
            Self::Place(a) => value(a).wrapping_add(value(a) / 4),
            Self::Extreme(true, a, b) => value(a).max(value(b)),
            Self::Extreme(false, a, b) => value(a).min(value(b)),
            Self::Select(a, b, c, d) => value(if value(c) < value(d) { b } else { a }),
        }
    }
}

fn write_text(steps: &[Step], depth: usize, out: &mut String) {
    for step in steps {
        match step {
            Step::Write(at) => writeln!(out, "tile[{}] = 1u;", at.text()),
            Step::Read(at) => writeln!(out, "y[l + 9u] += tile[{}];", at.text()),
            Step::Put(at) => writeln!(out, "put({});", at.text()),
            Step::Barrier => writeln!(out, "workgroupBarrier();"),
            Step::Break([a, b]) => writeln!(out, "if {} < {} {{ break; }}", a.text(), b.text()),
            Step::Return([a, b]) => writeln!(out, "if {} == {} {{ return; }}", a.text(), b.text()),
            Step::If([a, b], accept, reject) => {
                writeln!(out, "if {} < {} {{", a.text(), b.text()).unwrap();
                write_text(accept, depth, out);
                out.push_str("} else {\n");
                write_text(reject, depth, out);
                writeln!(out, "}}")
            }
            Step::For([from, below, by], body) => {
                let [from, below, by] = [from, below, by].map(Number::text);
                writeln!(out, "for (var i{depth} = {from}; i{depth} < {below}; i{depth} += {by}) {{")
                    .unwrap();
                write_text(body, depth + 1, out);
                writeln!(out, "}}")
            }
        }
        .unwrap();
    }
}

/// A run of a work-group, one invocation after the other between barriers.
struct Run {
    unknown: [u32; 3],
    /// By invocation: the elements that it has written since the last barrier, and those visible to all, as bits.
    own: [u32; ITEMS as usize],
    visible: u32,
    /// Whether an unwritten element was read.
    wrong: bool,
}

impl Run {
    /// Runs steps for the active invocations; returns what becomes of each.
    fn steps(&mut self, steps: &[Step], active: &mut [Goes], counters: &mut [Vec<u32>]) {
        for step in steps {
            let there: Vec<usize> = (0..active.len()).filter(|&item| active[item] == Goes::On).collect();
            if there.is_empty() {
                return;
            }
            let less = |run: &Self, [a, b]: &[Number; 2], item: usize, counters: &[Vec<u32>]| {
                let of = |number: &Number| number.value(run, word(item), &counters[item]);
                (of(a), of(b))
            };
            match step {
                Step::Write(at) | Step::Put(at) => {
                    for item in there {
                        let at = at.value(self, word(item), &counters[item]);
                        self.own[item] |= if at < ELEMENTS { 1 << at } else { 0 };
                    }
                }
                Step::Read(at) => {
                    for item in there {
                        let at = at.value(self, word(item), &counters[item]);
                        self.wrong |= at < ELEMENTS && (self.own[item] | self.visible) >> at & 1 == 0;
                    }
                }
                Step::Barrier => {
                    self.visible |= self.own.iter().fold(0, |all, own| all | own);
                }
                Step::Break(pair) => {
                    for item in there {
                        let (a, b) = less(self, pair, item, counters);
                        active[item] = if a < b { Goes::Break } else { Goes::On };
                    }
                }
                Step::Return(pair) => {
                    for item in there {
                        let (a, b) = less(self, pair, item, counters);
                        active[item] = if a == b { Goes::Return } else { Goes::On };
                    }
                }
                Step::If(pair, accept, reject) => {
                    for (block, wanted) in [(accept, true), (reject, false)] {
                        let mut inner = vec![Goes::Return; active.len()];
                        let mut those = Vec::new();
                        for &item in &there {
                            let (a, b) = less(self, pair, item, counters);
                            if (a < b) == wanted {
                                inner[item] = Goes::On;
                                those.push(item);
                            }
                        }
                        self.steps(block, &mut inner, counters);
                        those.into_iter().for_each(|item| active[item] = inner[item]);
                    }
                }
                Step::For(header, body) => self.iterations(header, body, active, counters),
            }
        }
    }

    fn iterations(
        &mut self,
        [from, below, by]: &[Number; 3],
        body: &[Step],
        active: &mut [Goes],
        counters: &mut [Vec<u32>],
    ) {
        let there: Vec<usize> = (0..active.len()).filter(|&item| active[item] == Goes::On).collect();
        let mut inner = vec![Goes::Return; active.len()];
        for &item in &there {
            inner[item] = Goes::On;
            let start = from.value(self, word(item), &counters[item]);
            counters[item].push(start);
        }
        loop {
            for &item in &there {
                let place = counters[item].len() - 1;
                let end = below.value(self, word(item), &counters[item]);
                if inner[item] == Goes::On && counters[item][place] >= end {
                    inner[item] = Goes::Break;
                }
            }
            if inner.iter().all(|goes| *goes != Goes::On) {
                break;
            }
            self.steps(body, &mut inner, counters);
            for &item in &there {
                let step = by.value(self, word(item), &counters[item]);
                *counters[item].last_mut().unwrap() += step;
            }
        }
        for item in there {
            counters[item].pop();
            active[item] = if inner[item] == Goes::Return { Goes::Return } else { Goes::On };
        }
    }
}

/// Whether a launch with some choice of the unknown values reads an unwritten element.
fn reads_first(steps: &[Step]) -> bool {
    let values = [0, 1, 3, 11];
    let all = values.iter().flat_map(|a| values.iter().flat_map(move |b| values.map(|c| [*a, *b, c])));
    all.into_iter().any(|unknown| {
        let mut run = Run { unknown, own: [0; ITEMS as usize], visible: 0, wrong: false };
        let mut counters = vec![Vec::new(); ITEMS as usize];
        run.steps(steps, &mut [Goes::On; ITEMS as usize], &mut counters);
        run.wrong
    })
}

fn must_be_zeroed(steps: &[Step]) -> (String, bool) {
    let mut body = String::new();
    write_text(steps, 0, &mut body);
    let code = format!(
        "struct Scalars {{ a: u32, b: u32, c: u32 }} var<immediate> s: Scalars;
         @group(0) @binding(0) var<storage, read_write> y: array<u32>;
         var<workgroup> tile: array<u32, {ELEMENTS}>;
         fn put(at: u32) {{ tile[at] = 1u; }}
         fn place(at: u32) -> u32 {{ return at + at / 4u; }}
         @compute @workgroup_size(4, 2) fn main(
            @builtin(local_invocation_index) l: u32, @builtin(local_invocation_id) p: vec3<u32>) {{
         var zero = 0u; {body} }}"
    );
    let parsed = Program::parse(&code, "", &Specialisation::default());
    let program = parsed.unwrap_or_else(|error| panic!("{error}\n{code}"));
    let zeroed = !must_zero(&program, 0).is_empty();
    (body, zeroed)
}

#[test]
fn no_random_kernel_reads_memory_that_is_neither_written_nor_zeroed() {
    let asked = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let mut random = Random(asked("ZEROING_ATTACK_SEED").unwrap_or(0x5eed_2e40));
    let cases = asked("ZEROING_ATTACK_CASES").unwrap_or(1500);
    let (mut proven, mut clean) = (0, 0);
    for _ in 0..cases {
        let mut steps = steps(&mut random, (2, 0), true, false);
        steps.push(Step::Barrier);
        steps.push(Step::Read(number(&mut random, 1, 0)));
        let (body, zeroed) = must_be_zeroed(&steps);
        let wrong = reads_first(&steps);
        assert!(zeroed || !wrong, "read first, and not zeroed:\n{body}");
        proven += u64::from(!zeroed);
        clean += u64::from(!wrong);
    }
    // An analysis that zeroes everything would pass the test above.
    assert!(
        proven * 2 > clean && proven * 10 > cases,
        "{proven} proven of {clean} that are right, of {cases}"
    );
}
