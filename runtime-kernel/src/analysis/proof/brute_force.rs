//! Random indices under random conditions: wherever an index is proven in range, brute force over edge values must
//! agree. `PROOF_ATTACK_SEED` and `PROOF_ATTACK_CASES` select other cases than the default.

use std::fmt::Write;

use naga::Expression;

use super::launch_precondition;
use super::polynomial::LaunchParameter;
use super::range::{Element, Limit, limit, root};
use super::{FunctionContext, bounds::AllBounds};
use crate::{Program, Specialisation};

/// Invocations per work-group.
const ITEMS: u32 = 8;
/// Kernels per module.
const BATCH: usize = 100;
const EDGES: [u32; 16] =
    [0, 1, 2, 3, 7, 8, 9, 31, 63, 64, 65, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, 0xffff_fffe, 0xffff_ffff];
/// Iterations of a loop that are evaluated.
const ROUNDS: u32 = 40;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as u32
    }

    fn below(&mut self, n: u32) -> u32 {
        self.next() % n
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(u32::try_from(all.len()).unwrap()) as usize]
    }
}

/// The values of one launch, invocation and program point.
#[derive(Clone, Copy, Debug, Default)]
struct Values {
    a: u32,
    b: u32,
    lane: u32,
    group: u32,
    groups: u32,
    n: u32,
    m: u32,
    length: u32,
    p: u32,
}

/// A 32-bit number; `Signed` computes in `i32`.
#[derive(Clone, Debug)]
enum Number {
    Name(&'static str),
    Literal(u32),
    Binary(&'static str, Box<Self>, Box<Self>),
    Call(&'static str, Vec<Self>),
    Select(Box<Truth>, Box<Self>, Box<Self>),
    /// Converted to i32, combined by `op` with another one, and converted back to u32.
    Signed(&'static str, Box<Self>, Box<Self>),
}

#[derive(Clone, Debug)]
enum Truth {
    Compare(&'static str, Box<Number>, Box<Number>, bool),
    Both(Box<Self>, Box<Self>),
    Either(Box<Self>, Box<Self>),
    Not(Box<Self>),
}

fn number(random: &mut Random, depth: u32) -> Number {
    let name =
        Number::Name(random.of(&["a", "b", "lane", "group", "s.n", "s.m", "length", "p", "p", "lane"]));
    if depth == 0 || random.below(5) == 0 {
        return name;
    }
    let some = |random: &mut Random| Box::new(number(random, depth - 1));
    let right = |random: &mut Random| match random.below(2) {
        0 => Box::new(Number::Literal(random.of(&EDGES))),
        _ => Box::new(number(random, depth - 1)),
    };
    match random.below(14) {
        0..=6 => {
            let op = random.of(&["+", "-", "*", "&", "|", "^", "/", "%", "<<", ">>", "+", "-", "&"]);
            let right = match (op, right(random)) {
                ("/" | "%", literal) if matches!(*literal, Number::Literal(0)) => {
                    Box::new(Number::Literal(3))
                }
                ("<<" | ">>", literal) => match *literal {
                    Number::Literal(bits) => Box::new(Number::Literal(bits % 32)),
                    other => Box::new(other),
                },
                (_, right) => right,
            };
            Number::Binary(op, some(random), right)
        }
        7 | 8 => Number::Call(random.of(&["min", "max"]), vec![*some(random), *right(random)]),
        9 => {
            let clamped = *some(random);
            // WGSL forbids constants in the other order.
            let (low, high) = match (*right(random), *right(random)) {
                (Number::Literal(one), Number::Literal(other)) => {
                    (Number::Literal(one.min(other)), Number::Literal(one.max(other)))
                }
                bounds => bounds,
            };
            Number::Call("clamp", vec![clamped, low, high])
        }
        10 => Number::Call("place", vec![*some(random)]),
        11 => Number::Select(Box::new(truth(random, depth - 1)), some(random), right(random)),
        _ => {
            let op = random.of(&["+", "-", "*", "&", "/", "%", "min", "max", ">>"]);
            Number::Signed(op, some(random), Box::new(number(random, depth - 1)))
        }
    }
}

fn truth(random: &mut Random, depth: u32) -> Truth {
    match random.below(if depth == 0 { 4 } else { 8 }) {
        0..=3 => {
            let op = random.of(&["<", "<=", ">", ">=", "==", "!="]);
            let left = Box::new(number(random, depth.min(1)));
            let right = match random.below(2) {
                0 => Number::Literal(random.of(&EDGES)),
                _ => number(random, depth.min(1)),
            };
            Truth::Compare(op, left, Box::new(right), random.below(6) == 0)
        }
        4 | 5 => Truth::Both(Box::new(truth(random, depth - 1)), Box::new(truth(random, depth - 1))),
        6 => Truth::Either(Box::new(truth(random, depth - 1)), Box::new(truth(random, depth - 1))),
        _ => Truth::Not(Box::new(truth(random, depth - 1))),
    }
}

impl Number {
    fn text(&self) -> String {
        match self {
            Self::Name(name) => (*name).to_owned(),
            Self::Literal(value) => format!("{value}u"),
            Self::Binary(op, left, right) => format!("({} {op} {})", left.text(), right.text()),
            Self::Call(name, arguments) => {
                let arguments: Vec<_> = arguments.iter().map(Self::text).collect();
                format!("{name}({})", arguments.join(", "))
            }
            Self::Select(truth, accept, reject) => {
                format!("select({}, {}, {})", reject.text(), accept.text(), truth.text())
            }
            Self::Signed(op @ ("min" | "max"), left, right) => {
                format!("u32({op}(i32({}), i32({})))", left.text(), right.text())
            }
            Self::Signed(">>", left, right) => format!("u32(i32({}) >> {})", left.text(), right.text()),
            Self::Signed(op, left, right) => format!("u32(i32({}) {op} i32({}))", left.text(), right.text()),
        }
    }

    fn value(&self, values: &Values) -> u32 {
        match self {
            Self::Name(name) => match *name {
                "a" => values.a,
                "b" => values.b,
                "lane" => values.lane,
                "group" => values.group,
                "s.n" => values.n,
                "s.m" => values.m,
                "length" => values.length,
                _ => values.p,
            },
            Self::Literal(value) => *value,
            Self::Binary(op, left, right) => unsigned(op, left.value(values), right.value(values)),
            Self::Call(name, arguments) => {
                let of = |index: usize| arguments[index].value(values);
                match *name {
                    "min" => of(0).min(of(1)),
                    "max" => of(0).max(of(1)),
                    "clamp" => of(0).max(of(1)).min(of(2)),
                    _ => of(0).wrapping_add(of(0) / 8),
                }
            }
            Self::Select(truth, accept, reject) => {
                if truth.value(values) {
                    accept.value(values)
                } else {
                    reject.value(values)
                }
            }
            Self::Signed(op, left, right) => signed(op, left.value(values), right.value(values)),
        }
    }
}

fn unsigned(op: &str, a: u32, b: u32) -> u32 {
    match op {
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "&" => a & b,
        "|" => a | b,
        "^" => a ^ b,
        "/" => a.checked_div(b).unwrap_or(a),
        "%" => a.checked_rem(b).unwrap_or(0),
        "<<" => a << (b & 31),
        _ => a >> (b & 31),
    }
}

fn signed(op: &str, a: u32, b: u32) -> u32 {
    let (x, y) = (a.cast_signed(), b.cast_signed());
    let value = match op {
        "+" => x.wrapping_add(y),
        "-" => x.wrapping_sub(y),
        "*" => x.wrapping_mul(y),
        "&" => x & y,
        "/" if y == 0 => x,
        "/" => x.wrapping_div(y),
        "%" if y == 0 => 0,
        "%" => x.wrapping_rem(y),
        "min" => x.min(y),
        "max" => x.max(y),
        _ => x >> (b & 31),
    };
    value.cast_unsigned()
}

impl Truth {
    fn text(&self) -> String {
        match self {
            Self::Compare(op, left, right, true) => {
                format!("(i32({}) {op} i32({}))", left.text(), right.text())
            }
            Self::Compare(op, left, right, false) => format!("({} {op} {})", left.text(), right.text()),
            Self::Both(left, right) => format!("({} && {})", left.text(), right.text()),
            Self::Either(left, right) => format!("({} || {})", left.text(), right.text()),
            Self::Not(inner) => format!("!{}", inner.text()),
        }
    }

    fn value(&self, values: &Values) -> bool {
        match self {
            Self::Compare(op, left, right, is_signed) => {
                let (a, b) = (left.value(values), right.value(values));
                let order = if *is_signed { a.cast_signed().cmp(&b.cast_signed()) } else { a.cmp(&b) };
                match *op {
                    "<" => order.is_lt(),
                    "<=" => order.is_le(),
                    ">" => order.is_gt(),
                    ">=" => order.is_ge(),
                    "==" => order.is_eq(),
                    _ => order.is_ne(),
                }
            }
            Self::Both(left, right) => left.value(values) && right.value(values),
            Self::Either(left, right) => left.value(values) || right.value(values),
            Self::Not(inner) => !inner.value(values),
        }
    }
}

/// A kernel with one access.
#[derive(Debug)]
struct Case {
    form: u32,
    /// The initial value of `p`, and what it is assigned.
    first: Number,
    next: Number,
    when: Truth,
    also: Truth,
    index: Number,
    /// The length of the array in work-group memory; `None` for the buffer.
    length: Option<u32>,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        Self {
            form: random.below(9),
            first: number(random, 1),
            next: number(random, 2),
            when: truth(random, 1),
            also: truth(random, 0),
            index: number(random, 2),
            length: (random.below(3) > 0).then(|| random.of(&[1, 8, 9, 64, 65])),
        }
    }

    fn text(&self, name: usize) -> String {
        let index = self.index.text();
        let access = match self.length {
            Some(length) => format!("out[0] = tile{length}[{index}];"),
            None => format!("out[0] = y[{index}];"),
        };
        let (when, also, next) = (self.when.text(), self.also.text(), self.next.text());
        let body = match self.form {
            0 => format!("if {when} {{ {access} }}"),
            1 => format!("if {when} {{ return; }} {access}"),
            2 => format!("if {when} {{ p = {next}; }} {access}"),
            3 => format!("if {when} {{ p = {next}; {access} }}"),
            4 => format!("while {when} {{ {access} p = {next}; }}"),
            5 => format!("for (; {when}; p = {next}) {{ if {also} {{ continue; }} {access} }}"),
            6 => format!("let ok = {when} && {also}; p = {next}; if ok {{ {access} }}"),
            7 => format!("if {when} {{ for (var k = 0u; k < 3u; k++) {{ {access} p = {next}; }} }}"),
            _ => format!("loop {{ if {when} {{ break; }} p = {next}; if {also} {{ {access} }} }}"),
        };
        format!(
            "@compute @workgroup_size({ITEMS}) fn k{name}(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) w: \
             vec3<u32>) {{ let group = w.x; let a = x[0]; let b = x[1]; let length = arrayLength(&y); var p = 0u; p = {}; {body} }}\n",
            self.first.text()
        )
    }

    /// The index values that an invocation reaches.
    fn indices(&self, values: &Values) -> Vec<(u32, Values)> {
        let mut values = Values { p: 0, ..*values };
        values.p = self.first.value(&values);
        let mut found = Vec::new();
        let mut note = |values: &Values| found.push((self.index.value(values), *values));
        let when = self.when.value(&values);
        match self.form {
            0 if when => note(&values),
            1 if !when => note(&values),
            2 | 3 => {
                if when {
                    values.p = self.next.value(&values);
                }
                if when || self.form == 2 {
                    note(&values);
                }
            }
            4 | 5 => {
                for _ in 0..ROUNDS {
                    if !self.when.value(&values) {
                        break;
                    }
                    if self.form == 4 || !self.also.value(&values) {
                        note(&values);
                    }
                    values.p = self.next.value(&values);
                }
            }
            6 => {
                let ok = when && self.also.value(&values);
                values.p = self.next.value(&values);
                if ok {
                    note(&values);
                }
            }
            7 if when => {
                for _ in 0..3 {
                    note(&values);
                    values.p = self.next.value(&values);
                }
            }
            8 => {
                for _ in 0..ROUNDS {
                    if self.when.value(&values) {
                        break;
                    }
                    values.p = self.next.value(&values);
                    if self.also.value(&values) {
                        note(&values);
                    }
                }
            }
            _ => {}
        }
        found
    }
}

fn program(cases: &[Case]) -> Program {
    let mut code = "struct Scalars { n: u32, m: u32 } var<immediate> s: Scalars;
        @group(0) @binding(0) var<storage, read> x: array<u32>;
        @group(0) @binding(1) var<storage, read> y: array<u32>;
        @group(0) @binding(2) var<storage, read_write> out: array<u32>;
        fn place(i: u32) -> u32 { return i + i / 8u; }\n"
        .to_owned();
    for length in [1, 8, 9, 64, 65] {
        writeln!(code, "var<workgroup> tile{length}: array<u32, {length}>;").unwrap();
    }
    cases.iter().enumerate().for_each(|(name, case)| code += &case.text(name));
    Program::parse(&code, "", &Specialisation::default()).unwrap_or_else(|error| panic!("{error}\n{code}"))
}

/// Edge values, many of them close to each other.
fn values(random: &mut Random) -> Values {
    let mut edge = || if random.below(2) == 0 { random.of(&EDGES) } else { random.below(70) };
    let [a, b, n, m] = [edge(), edge(), edge(), edge()];
    let groups = random.of(&[1, 2, 9, 0x1_0000]);
    let group = random.of(&[0, groups - 1, groups / 2]);
    let length = random.of(&[0, 1, 8, 9, 64, 65, 0x8000_0000, 0xffff_ffff]);
    Values { a, b, lane: random.below(ITEMS), group, groups, n, m, length, p: 0 }
}

/// How many accesses were proven, and how many under a launch precondition.
#[derive(Default)]
struct Proven {
    always: u32,
    conditional: u32,
}

fn attack(cases: &[Case], random: &mut Random, proven: &mut Proven) {
    let program = program(cases);
    let bounds = AllBounds::of(&program);
    for (number, case) in cases.iter().enumerate() {
        let context = bounds.entry(&program, number);
        let (always, precondition) = provable(context);
        proven.always += u32::from(always);
        proven.conditional += u32::from(precondition.is_some());
        if !always && precondition.is_none() {
            continue;
        }
        for _ in 0..400 {
            let values = values(random);
            let holds = precondition.as_ref().is_some_and(|precondition| {
                precondition.evaluated(|parameter| match parameter {
                    LaunchParameter::Scalar(_, 0) => values.n,
                    LaunchParameter::Scalar(..) => values.m,
                    LaunchParameter::Length(_) => values.length,
                    LaunchParameter::Groups(_) => values.groups,
                }) <= 0
            });
            for (index, at) in case.indices(&values) {
                let is_within = index < case.length.unwrap_or(values.length);
                assert!(!(always || holds) || is_within, "{index} at {at:?} of\n{}", case.text(number));
            }
        }
    }
}

/// What is proven about the access of a kernel: whether it is in range, and if not, for which launches.
fn provable(context: FunctionContext<'_>) -> (bool, Option<super::polynomial::Polynomial>) {
    let mut found = None;
    for (handle, expression) in context.function.expressions.iter() {
        let Expression::Access { base, .. } = *expression else { continue };
        let variable = root(context, base)
            .and_then(|variable| context.module.global_variables[variable].name.as_deref());
        if variable.is_some_and(|name| name == "y" || name.starts_with("tile")) {
            found = Element::of(context.function, handle);
        }
    }
    let element = found.unwrap();
    let needed: Option<Limit> = limit(context, element);
    (needed.is_none(), needed.and_then(|limit| launch_precondition::of(context, element, limit)))
}

#[test]
fn proven_accesses_are_in_range() {
    let asked = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = asked("PROOF_ATTACK_SEED").unwrap_or(20_261_122);
    let cases = usize::try_from(asked("PROOF_ATTACK_CASES").unwrap_or(4_000)).unwrap();
    println!("PROOF_ATTACK_SEED={seed}");
    let mut random = Random(seed | 1);
    let mut proven = Proven::default();
    for _ in 0..cases.div_ceil(BATCH) {
        let batch: Vec<_> = (0..BATCH).map(|_| Case::new(&mut random)).collect();
        attack(&batch, &mut random, &mut proven);
    }
    println!(
        "{} accesses of {cases} are proven, {} under a launch precondition",
        proven.always, proven.conditional
    );
    assert!(cases < 1000 || proven.always as usize > cases / 40 && proven.conditional as usize > cases / 40);
}
