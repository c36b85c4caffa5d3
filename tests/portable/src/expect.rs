//! The results that the specification allows.

use crate::scalar::Kind;

/// The allowed error of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// The exact value. Zeros may have any sign (§differences-from-ieee754), and any NaN matches a NaN.
    Exact,
    /// One of the two neighbours of the exact value (§floating-point-accuracy, "correctly rounded").
    Rounded,
    /// This many units in the last place of the exact value.
    Ulp(f64),
    /// An absolute error.
    Absolute(f64),
}

/// The allowed values of a scalar.
#[derive(Clone, Debug)]
pub struct Expect {
    kind: Kind,
    /// The allowed values; if empty, any value.
    values: Vec<(u64, f64)>,
    tolerance: Tolerance,
}

impl Tolerance {
    /// Parses `rounded`, `2.5 ulp` or `2^-11`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_suffix("ulp") {
            _ if text == "rounded" => Some(Self::Rounded),
            Some(number) => number.trim().parse().ok().map(Self::Ulp),
            None => Kind::F64.read_real(text).map(Self::Absolute),
        }
    }
}

impl Expect {
    /// Parses `1`, `0|1e-40`, or `_` for any value.
    #[must_use]
    pub fn parse(kind: Kind, text: &str, tolerance: Tolerance) -> Option<Self> {
        let value = |text: &str| {
            let real = if kind.is_float() { kind.read_real(text)? } else { 0.0 };
            Some((kind.read(text)?, real))
        };
        let texts = text.split('|').filter(|text| *text != "_");
        Some(Self { kind, values: texts.map(value).collect::<Option<_>>()?, tolerance })
    }

    /// Exactly these bits.
    #[must_use]
    pub fn bits(kind: Kind, bits: u64) -> Self {
        Self::any(kind, &[bits])
    }

    /// Any of these bits.
    #[must_use]
    pub fn any(kind: Kind, bits: &[u64]) -> Self {
        let values = bits.iter().map(|bits| (*bits, kind.real(*bits))).collect();
        Self { kind, values, tolerance: Tolerance::Exact }
    }

    /// Whether a result is allowed.
    #[must_use]
    pub fn allows(&self, bits: u64) -> bool {
        self.values.is_empty() || self.values.iter().any(|(value, real)| self.is_near(bits, *value, *real))
    }

    fn is_near(&self, bits: u64, value: u64, real: f64) -> bool {
        if !self.kind.is_float() {
            return bits == value;
        }
        let actual = self.kind.real(bits);
        if real.is_nan() || !real.is_finite() {
            return actual.is_nan() == real.is_nan() && (real.is_nan() || actual == real);
        }
        let error = (actual - real).abs();
        match self.tolerance {
            Tolerance::Exact => bits == value || (actual == 0.0 && self.kind.real(value) == 0.0),
            Tolerance::Rounded => error < gap(self.kind, real) || bits == value,
            Tolerance::Ulp(n) => error <= n * ulp(self.kind, real),
            Tolerance::Absolute(bound) => error <= bound,
        }
    }
}

impl std::fmt::Display for Expect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values: Vec<_> = self.values.iter().map(|(bits, _)| self.kind.show(*bits)).collect();
        f.write_str(&values.join(" or "))?;
        match self.tolerance {
            Tolerance::Exact => Ok(()),
            tolerance => write!(f, " within {tolerance:?}"),
        }
    }
}

/// The distance between the floats around `real`, or to the next one above if it is a float itself.
fn gap(kind: Kind, real: f64) -> f64 {
    let low = below(kind, real.abs());
    kind.real(low + 1) - kind.real(low)
}

/// §floating-point-accuracy: the smallest distance between two floats around `real`.
fn ulp(kind: Kind, real: f64) -> f64 {
    let low = below(kind, real.abs());
    match low {
        _ if kind.real(low) == real.abs() && low > 0 => kind.real(low) - kind.real(low - 1),
        _ => kind.real(low + 1) - kind.real(low),
    }
}

/// The largest float that is at most `real`, which must not be negative.
fn below(kind: Kind, real: f64) -> u64 {
    let nearest = kind.nearest(real);
    if kind.real(nearest) > real { nearest - 1 } else { nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect(text: &str, tolerance: Tolerance) -> Expect {
        Expect::parse(Kind::F32, text, tolerance).unwrap()
    }

    fn bits(value: f32) -> u64 {
        u64::from(value.to_bits())
    }

    #[test]
    fn exact_ignores_only_the_sign_of_zero() {
        assert!(expect("0", Tolerance::Exact).allows(bits(-0.0)));
        assert!(!expect("1", Tolerance::Exact).allows(bits(1.0 + f32::EPSILON)));
        assert!(expect("0|7", Tolerance::Exact).allows(bits(7.0)));
        assert!(expect("nan", Tolerance::Exact).allows(0x7fc0_1234));
        assert!(expect("_", Tolerance::Exact).allows(5));
        assert!(!Expect::parse(Kind::I32, "-1", Tolerance::Exact).unwrap().allows(1));
    }

    #[test]
    fn rounding_goes_to_either_side_and_no_further() {
        let third = expect("0.3333333333333333", Tolerance::Rounded);
        let nearest = (1.0f32 / 3.0).to_bits();
        assert!(third.allows(u64::from(nearest)) && third.allows(u64::from(nearest - 1)));
        assert!(!third.allows(u64::from(nearest + 1)) && !third.allows(u64::from(nearest - 2)));
        assert!(!expect("1", Tolerance::Rounded).allows(bits(1.0).wrapping_add(1)));
    }

    #[test]
    fn units_in_the_last_place_are_counted_from_the_exact_value() {
        let one = expect("1", Tolerance::parse("2 ulp").unwrap());
        assert!(one.allows(bits(1.0) - 2) && one.allows(bits(1.0) + 1));
        assert!(!one.allows(bits(1.0) - 3) && !one.allows(bits(1.0) + 2));
        assert!(expect("0", Tolerance::parse("2^-11").unwrap()).allows(bits(4.8e-4)));
        assert!(!expect("0", Tolerance::parse("2^-11").unwrap()).allows(bits(4.9e-4)));
    }
}
