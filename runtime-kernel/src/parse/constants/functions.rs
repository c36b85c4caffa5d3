//! Built-in functions of numbers on constants.

use super::bits;
use super::constant::{Constant, Origin};
use super::literals::scaled;
use super::operators::{binary, unary};
use super::value::{Kind, Number, Value, rounded, wrapped};

/// The functions that naga 30 does not evaluate (gfx-rs/wgpu 7700 is about one of them), or wrongly: `atanh` of numbers
/// near 1, `distance` of abstract ones, and `fma` whose product is out of range.
pub(super) const MISSING: [&str; 33] = [
    "atanh",
    "bitcast",
    "determinant",
    "distance",
    "extractBits",
    "faceForward",
    "fma",
    "frexp",
    "insertBits",
    "ldexp",
    "mix",
    "modf",
    "pack2x16float",
    "pack2x16snorm",
    "pack2x16unorm",
    "pack4x8snorm",
    "pack4x8unorm",
    "pack4xI8",
    "pack4xI8Clamp",
    "pack4xU8",
    "pack4xU8Clamp",
    "quantizeToF16",
    "reflect",
    "refract",
    "smoothstep",
    "transpose",
    "unpack2x16float",
    "unpack2x16snorm",
    "unpack2x16unorm",
    "unpack4x8snorm",
    "unpack4x8unorm",
    "unpack4xI8",
    "unpack4xU8",
];

/// The value of a call; `None` if it is not known, or an error.
pub(super) fn call<'a>(name: &str, arguments: &[Value]) -> Option<Constant<'a>> {
    match (name, arguments) {
        ("frexp", [value]) => split("frexp", &float(value)?),
        ("modf", [value]) => split("modf", &float(value)?),
        _ => value(name, arguments).map(Constant::Value),
    }
}

fn value(name: &str, arguments: &[Value]) -> Option<Value> {
    match (name, arguments) {
        ("select", [reject, accept, condition]) => select(reject, accept, condition),
        ("any" | "all", [value]) if value.kind == Kind::Bool => {
            let mut parts = value.parts.iter().map(|part| *part != Number::Int(0));
            Some(Value::bool(if name == "any" { parts.any(|part| part) } else { parts.all(|part| part) }))
        }
        ("ldexp", [value, exponent]) => ldexp(&float(value)?, exponent),
        ("determinant", [matrix]) => determinant(&float(matrix)?),
        ("transpose", [matrix]) => transpose(&float(matrix)?),
        ("abs" | "min" | "max" | "clamp" | "sign" | "dot", _)
            if arguments.iter().all(|value| value.kind.is_integer()) =>
        {
            match (name, &common(arguments)?[..]) {
                ("dot", [a, b]) if a.shape == b.shape && a.shape.1 > 1 => {
                    let products = binary("*", a, b)?;
                    let parts = products.parts.iter().map(|part| Value::scalar(a.kind, *part));
                    parts.reduce(|sum, part| binary("+", &sum?, &part?))?
                }
                (_, arguments) => integers(name, arguments),
            }
        }
        _ => bits::call(name, arguments).or_else(|| floats(name, &common_floats(arguments)?)),
    }
}

fn float(value: &Value) -> Option<Value> {
    value.automatic(value.kind.as_float()?)
}

/// Arguments converted to their common type.
fn common(arguments: &[Value]) -> Option<Vec<Value>> {
    let (first, rest) = arguments.split_first()?;
    let kind = rest.iter().try_fold(first.kind, |kind, argument| kind.common(argument.kind))?;
    arguments.iter().map(|argument| argument.automatic(kind)).collect()
}

fn common_floats(arguments: &[Value]) -> Option<Vec<Value>> {
    let arguments = common(arguments)?;
    arguments.iter().map(float).collect()
}

/// Applies a function to the components of arguments of one type and shape, which are scalars or vectors.
fn each(arguments: &[Value], f: impl Fn(&[Number]) -> Option<Number>) -> Option<Value> {
    let first = arguments.first()?;
    if arguments.iter().any(|argument| argument.shape != first.shape || argument.shape.0 > 1) {
        return None;
    }
    let parts = (0..first.parts.len()).map(|at| {
        let numbers: Vec<_> = arguments.iter().map(|argument| argument.parts[at]).collect();
        f(&numbers)
    });
    Value::of_parts(first.kind, first.shape, parts)
}

fn integers(name: &str, arguments: &[Value]) -> Option<Value> {
    let kind = arguments.first()?.kind;
    each(arguments, |numbers| {
        let numbers: Option<Vec<_>> = numbers.iter().map(|number| number.int()).collect();
        Some(Number::Int(match (name, &numbers?[..]) {
            ("abs", [value]) => wrapped(value.abs(), kind),
            ("sign", [value]) => value.signum(),
            ("min", [a, b]) => *a.min(b),
            ("max", [a, b]) => *a.max(b),
            ("clamp", [value, low, high]) if low <= high => *value.clamp(low, high),
            _ => return None,
        }))
    })
}

/// A vector of copies of a scalar beside a vector.
fn spread(value: &Value, like: &Value) -> Option<Value> {
    match value.is_scalar() {
        true => Value::new(value.kind, like.shape, vec![value.parts[0]; like.parts.len()]),
        false => Some(value.clone()),
    }
}

fn floats(name: &str, arguments: &[Value]) -> Option<Value> {
    let kind = arguments.first()?.kind;
    let product = |a: &Value, b: &Value| binary("*", a, b);
    let number = |kind, value| Value::scalar(kind, Number::Float(value));
    match (name, arguments) {
        ("mix", [from, to, by]) if from.shape == to.shape && (by.is_scalar() || by.shape == from.shape) => {
            let by = spread(by, from)?;
            let rest = binary("-", &number(by.kind, 1.0)?, &by)?;
            binary("+", &product(from, &rest)?, &product(to, &by)?)
        }
        ("smoothstep", [low, high, value]) => each(&[low.clone(), high.clone(), value.clone()], |numbers| {
            let [low, high, value] = [0, 1, 2].map(|at: usize| numbers[at].float());
            let t = ((value - low) / (high - low)).clamp(0.0, 1.0);
            (low != high).then_some(Number::Float(t * t * (3.0 - 2.0 * t)))
        }),
        // The product is an operation of its own.
        ("fma", [a, b, _]) if a.shape == b.shape && product(a, b).is_none() => None,
        ("fma", [_, _, _]) if kind == Kind::F32 => each(arguments, |numbers| {
            let [a, b, c] = [0, 1, 2].map(|at: usize| numbers[at].float() as f32);
            Some(Number::Float(a.mul_add(b, c).into()))
        }),
        ("dot", [a, b]) => dot(a, b),
        ("length", [value]) => length(value),
        ("distance", [a, b]) if a.shape == b.shape => length(&binary("-", a, b)?),
        ("normalize", [value]) if value.shape.1 > 1 => binary("/", value, &length(value)?),
        ("cross", [a, b]) if a.shape == (1, 3) && b.shape == (1, 3) => {
            let (a, b) = (a.floats(), b.floats());
            let part = |at: usize| {
                let [next, last] = [(at + 1) % 3, (at + 2) % 3];
                let products = [a[next] * b[last], a[last] * b[next]].map(|product| rounded(product, kind));
                Some(Number::Float(products[0]? - products[1]?))
            };
            Value::of_parts(kind, (1, 3), (0..3).map(part))
        }
        ("reflect", [value, normal]) if value.shape.1 > 1 => {
            let twice = product(&number(value.kind, 2.0)?, &dot(normal, value)?)?;
            binary("-", value, &product(&twice, normal)?)
        }
        ("faceForward", [value, incident, normal]) if value.shape.1 > 1 && value.shape == incident.shape => {
            let is_behind = dot(incident, normal)?.parts[0].float() < 0.0;
            if is_behind { Some(value.clone()) } else { unary("-", value) }
        }
        ("refract", [incident, normal, ratio]) if ratio.is_scalar() => refract(incident, normal, ratio),
        ("quantizeToF16", [value]) if value.kind.concrete() == Kind::F32 => {
            each(&[value.concrete()?], |numbers| rounded(numbers[0].float(), Kind::F16).map(Number::Float))
        }
        _ => each(arguments, |numbers| {
            let numbers: Vec<_> = numbers.iter().map(|number| number.float()).collect();
            of_numbers(name, &numbers).filter(|value| !value.is_nan()).map(Number::Float)
        }),
    }
}

fn dot(a: &Value, b: &Value) -> Option<Value> {
    if a.shape != b.shape || a.shape.0 != 1 || a.is_scalar() {
        return None;
    }
    let mut products = a.floats().into_iter().zip(b.floats()).map(|(x, y)| rounded(x * y, a.kind));
    let sum = products.try_fold(0.0, |sum, product| rounded(sum + product?, a.kind))?;
    Value::scalar(a.kind, Number::Float(sum))
}

fn length(value: &Value) -> Option<Value> {
    if value.is_scalar() {
        return Value::scalar(value.kind, Number::Float(value.parts[0].float().abs()));
    }
    let square = dot(value, value)?;
    Value::scalar(square.kind, Number::Float(square.parts[0].float().sqrt()))
}

fn refract(incident: &Value, normal: &Value, ratio: &Value) -> Option<Value> {
    // Each step must fit into the type.
    let kind = incident.kind;
    let (along, by) = (dot(normal, incident)?, ratio.parts[0].float());
    let cosine = along.parts[0].float();
    let square = rounded(cosine * cosine, kind)?;
    let k = rounded(1.0 - rounded(rounded(by * by, kind)? * (1.0 - square), kind)?, kind)?;
    if k < 0.0 {
        return Value::zero(kind, incident.shape);
    }
    let factor = Value::scalar(kind, Number::Float(rounded(by * cosine, kind)? + k.sqrt()))?;
    binary("-", &binary("*", ratio, incident)?, &binary("*", &factor, normal)?)
}

/// From here on, the area functions of the standard library overflow, and are logarithms.
const LARGE: f64 = 1e150;

fn log_of_twice(x: f64) -> f64 {
    x.ln() + std::f64::consts::LN_2
}

/// Functions that are applied to each component. Those of 32 bits are as exact as the ones that run.
fn of_numbers(name: &str, numbers: &[f64]) -> Option<f64> {
    let up_to_one = |value: f64| (value.abs() <= 1.0).then_some(value);
    Some(match (name, numbers) {
        ("abs", [x]) => x.abs(),
        ("acos", [x]) => up_to_one(*x)?.acos(),
        ("acosh", [x]) if *x >= LARGE => log_of_twice(*x),
        ("acosh", [x]) if *x >= 1.0 => x.acosh(),
        ("asin", [x]) => up_to_one(*x)?.asin(),
        ("asinh", [x]) if x.abs() >= LARGE => log_of_twice(x.abs()).copysign(*x),
        ("asinh", [x]) => x.asinh(),
        ("atan", [x]) => x.atan(),
        ("atan2", [y, x]) => y.atan2(*x),
        // The one of the standard library is exact on this side only.
        ("atanh", [x]) if x.abs() < 1.0 => x.abs().atanh().copysign(*x),
        ("ceil", [x]) => x.ceil(),
        ("clamp", [x, low, high]) if low <= high => x.clamp(*low, *high),
        ("cos", [x]) => x.cos(),
        ("cosh", [x]) => x.cosh(),
        ("degrees", [x]) => x.to_degrees(),
        ("exp", [x]) => x.exp(),
        ("exp2", [x]) => x.exp2(),
        ("floor", [x]) => x.floor(),
        ("fma", [a, b, c]) => a.mul_add(*b, *c),
        ("fract", [x]) => x - x.floor(),
        ("inverseSqrt", [x]) if *x > 0.0 => 1.0 / x.sqrt(),
        ("log", [x]) if *x > 0.0 => x.ln(),
        ("log2", [x]) if *x > 0.0 => x.log2(),
        ("max", [a, b]) => a.max(*b),
        ("min", [a, b]) => a.min(*b),
        ("pow", [x, y]) if *x > 0.0 || (*x == 0.0 && *y > 0.0) => x.powf(*y),
        ("radians", [x]) => x.to_radians(),
        ("round", [x]) => x.round_ties_even(),
        ("saturate", [x]) => x.clamp(0.0, 1.0),
        ("sign", [x]) => {
            if *x == 0.0 {
                0.0
            } else {
                x.signum()
            }
        }
        ("sin", [x]) => x.sin(),
        ("sinh", [x]) => x.sinh(),
        ("sqrt", [x]) if *x >= 0.0 => x.sqrt(),
        ("step", [edge, x]) => f64::from(u8::from(edge <= x)),
        ("tan", [x]) => x.tan(),
        ("tanh", [x]) => x.tanh(),
        ("trunc", [x]) => x.trunc(),
        _ => return None,
    })
}

fn select(reject: &Value, accept: &Value, condition: &Value) -> Option<Value> {
    let kind = reject.kind.common(accept.kind)?;
    let [reject, accept] = [reject, accept].map(|value| value.automatic(kind));
    let (reject, accept) = (reject?, accept?);
    if let Some(condition) = condition.as_bool().filter(|_| reject.shape == accept.shape) {
        return Some(if condition { accept } else { reject });
    }
    let fits =
        condition.kind == Kind::Bool && condition.shape == reject.shape && accept.shape == reject.shape;
    let parts = condition.parts.iter().zip(reject.parts.iter().zip(&accept.parts));
    let parts = parts.map(|(condition, (no, yes))| if *condition == Number::Int(0) { *no } else { *yes });
    fits.then(|| Value::new(kind, reject.shape, parts))?
}

/// `frexp` and `modf`, which return structures.
fn split<'a>(name: &'static str, value: &Value) -> Option<Constant<'a>> {
    let is_frexp = name == "frexp";
    let pairs = value.floats().into_iter().map(|x| match is_frexp {
        true => mantissa(x),
        false => (x - x.trunc(), x.trunc()),
    });
    let (first, second): (Vec<_>, Vec<_>) = pairs.unzip();
    let kind = match (is_frexp, value.kind) {
        (false, kind) => kind,
        (true, Kind::AbstractFloat) => Kind::AbstractInt,
        // As naga's `frexp`, which WGSL does not have for this type.
        (true, Kind::F64) => Kind::I64,
        (true, _) => Kind::I32,
    };
    let second = second.into_iter().map(|x| if is_frexp { Number::Int(x as i128) } else { Number::Float(x) });
    let first = Value::new(value.kind, value.shape, first.into_iter().map(Number::Float))?;
    let second = Value::new(kind, value.shape, second)?;
    let names = vec!["fract", if is_frexp { "exp" } else { "whole" }];
    let elements = [first, second].map(Constant::Value).to_vec();
    (value.shape.0 == 1).then(|| Constant::composite(Origin::BuiltIn(name), names, elements))
}

/// A number as a mantissa from 0.5 up to 1, and a power of two.
fn mantissa(x: f64) -> (f64, f64) {
    const EXPONENT: u64 = 0x7ff << 52;
    if x == 0.0 {
        return (x, 0.0);
    }
    if x.is_subnormal() {
        let (fraction, exponent) = mantissa(x * 2_f64.powi(64));
        return (fraction, exponent - 64.0);
    }
    let exponent = (x.to_bits() & EXPONENT) >> 52;
    (f64::from_bits(x.to_bits() & !EXPONENT | (1022 << 52)), exponent as f64 - 1022.0)
}

fn ldexp(value: &Value, exponent: &Value) -> Option<Value> {
    let bias = match value.kind {
        Kind::F16 => 15,
        Kind::F32 => 127,
        _ => 1023,
    };
    let exponent =
        exponent.automatic(if exponent.kind == Kind::I32 { Kind::I32 } else { Kind::AbstractInt })?;
    let parts = value.floats().into_iter().zip(&exponent.parts).map(|(x, by)| {
        let by = by.int().filter(|by| *by <= bias + 1)?;
        Some(Number::Float(scaled(x, by.max(i32::MIN.into()) as i32)))
    });
    (value.shape == exponent.shape).then(|| Value::of_parts(value.kind, value.shape, parts))?
}

fn transpose(matrix: &Value) -> Option<Value> {
    let (columns, rows) = matrix.shape;
    let order = (0..rows).flat_map(|row| (0..columns).map(move |column| column * rows + row));
    (columns > 1).then(|| Value::new(matrix.kind, (rows, columns), order.map(|at| matrix.parts[at])))?
}

fn determinant(matrix: &Value) -> Option<Value> {
    let (columns, rows) = matrix.shape;
    if columns != rows || columns == 1 {
        return None;
    }
    Value::scalar(matrix.kind, Number::Float(minor(&matrix.floats(), rows, matrix.kind)?))
}

/// The determinant of a matrix by its first column; each step must fit into the type.
fn minor(entries: &[f64], size: usize, kind: Kind) -> Option<f64> {
    if size == 1 {
        return Some(entries[0]);
    }
    let without = |row: usize| -> Vec<f64> {
        let rest = entries[size..].iter().enumerate();
        rest.filter(|(at, _)| at % size != row).map(|(_, entry)| *entry).collect()
    };
    (0..size).try_fold(0.0, |sum, row| {
        let term = rounded(entries[row] * minor(&without(row), size - 1, kind)?, kind)?;
        rounded(if row.is_multiple_of(2) { sum + term } else { sum - term }, kind)
    })
}
