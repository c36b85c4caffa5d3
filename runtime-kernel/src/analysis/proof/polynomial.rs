//! Polynomials over numbers that are fixed for a launch.

use crate::ir::Global;

/// A number from 0 to 2³² − 1 that is fixed for a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LaunchParameter {
    /// A member of the struct of scalars, as an unsigned number.
    Scalar(Global, u32),
    /// The number of elements of a buffer's runtime-sized array.
    Length(Global),
    /// The number of work-groups along an axis.
    Groups(u32),
}

/// A polynomial over such numbers: products, sorted, with their coefficients.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Polynomial(Vec<(Vec<LaunchParameter>, i128)>);

/// Maximum number of products.
const MAX_PRODUCTS: usize = 8;

/// Coefficients are smaller than this in magnitude.
const FACTOR_LIMIT: i128 = 1 << 64;

impl Polynomial {
    pub(crate) fn constant(value: u64) -> Self {
        Self::of(Vec::new(), value.into())
    }

    pub(crate) fn parameter(parameter: LaunchParameter) -> Self {
        Self::of(vec![parameter], 1)
    }

    fn of(product: Vec<LaunchParameter>, factor: i128) -> Self {
        Self(if factor == 0 { Vec::new() } else { vec![(product, factor)] })
    }

    /// The sum; `None` if it exceeds the limits.
    pub(crate) fn plus(self, other: &Self) -> Option<Self> {
        self.plus_times(other, 1)
    }

    pub(crate) fn minus(self, other: &Self) -> Option<Self> {
        self.plus_times(other, -1)
    }

    /// The sum with `other` times a sign.
    fn plus_times(mut self, other: &Self, sign: i128) -> Option<Self> {
        for (product, factor) in &other.0 {
            let factor = factor * sign;
            match self.0.binary_search_by(|(own, _)| own.cmp(product)) {
                Ok(place) if self.0[place].1 + factor == 0 => {
                    self.0.remove(place);
                }
                Ok(place) => self.0[place].1 += factor,
                Err(place) => self.0.insert(place, (product.clone(), factor)),
            }
        }
        self.is_within_limits().then_some(self)
    }

    /// The product; `None` if it exceeds the limits.
    pub(crate) fn times(&self, other: &Self) -> Option<Self> {
        let mut sum = Self::default();
        for (left, factor) in &self.0 {
            for (right, times) in &other.0 {
                let mut product = [&left[..], right].concat();
                product.sort_unstable();
                sum = sum.plus(&Self::of(product, factor.checked_mul(*times)?))?;
            }
        }
        Some(sum)
    }

    fn is_within_limits(&self) -> bool {
        self.0.len() <= MAX_PRODUCTS && self.0.iter().all(|(_, factor)| factor.abs() < FACTOR_LIMIT)
    }

    /// Its value for given numbers.
    #[cfg(test)]
    pub(super) fn evaluated(&self, parameter: impl Fn(LaunchParameter) -> u32) -> i128 {
        let product = |(product, factor): &(Vec<LaunchParameter>, i128)| {
            product.iter().map(|&each| i128::from(parameter(each))).product::<i128>() * factor
        };
        self.0.iter().map(product).sum()
    }

    /// Its value, if it is constant.
    pub(crate) fn value(&self) -> Option<i128> {
        match &self.0[..] {
            [] => Some(0),
            [(product, factor)] if product.is_empty() => Some(*factor),
            _ => None,
        }
    }

    /// The sides of `left <= right`, which is equivalent to the polynomial being at most zero: sums of products
    /// with their coefficients. A coefficient beyond 32 bits becomes the largest 32-bit number.
    pub(crate) fn sides(&self) -> [Vec<(u32, Vec<LaunchParameter>)>; 2] {
        let mut sides = [Vec::new(), Vec::new()];
        for (product, factor) in &self.0 {
            let number = u32::try_from(factor.unsigned_abs()).unwrap_or(u32::MAX);
            sides[usize::from(*factor < 0)].push((number, product.clone()));
        }
        sides
    }

    /// The text of `left <= right`, which is equivalent to the polynomial being at most zero, in 64 bits; `None`
    /// if a side can overflow. `parameter` prints a number.
    pub(crate) fn at_most_zero(&self, parameter: impl Fn(LaunchParameter) -> String) -> Option<String> {
        if !self.fits() {
            return None;
        }
        let mut sides = [String::new(), String::new()];
        for (product, factor) in &self.0 {
            let side = usize::from(*factor < 0);
            let number =
                (factor.unsigned_abs() != 1 || product.is_empty()).then(|| factor.unsigned_abs().to_string());
            let factors = number.into_iter().chain(product.iter().map(|&factor| parameter(factor)));
            let text = factors.collect::<Vec<_>>().join(" * ");
            let sign = if sides[side].is_empty() { "" } else { " + " };
            sides[side].extend([sign, "(u64)", &text]);
        }
        let [left, right] = sides.map(|side| if side.is_empty() { "0".to_owned() } else { side });
        Some(format!("{left} <= {right}"))
    }

    /// Whether neither side of [`at_most_zero`](Self::at_most_zero) can overflow.
    pub(crate) fn fits(&self) -> bool {
        let largest = |(product, factor): &(Vec<LaunchParameter>, i128)| {
            product.iter().try_fold(factor.unsigned_abs(), |all, _| all.checked_mul(u32::MAX.into()))
        };
        let mut most = [0u128; 2];
        let added = self.0.iter().try_for_each(|term| {
            let side = &mut most[usize::from(term.1 < 0)];
            *side = side.checked_add(largest(term)?)?;
            Some(())
        });
        added.is_some() && most.into_iter().all(|most| most <= u64::MAX.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(polynomial: &Polynomial) -> Option<String> {
        polynomial.at_most_zero(|parameter| match parameter {
            LaunchParameter::Groups(axis) => ["x", "y", "z"][axis as usize].to_owned(),
            _ => "n".to_owned(),
        })
    }

    #[test]
    fn terms_are_combined_and_put_on_the_right_side() {
        let [x, y, z] = [0, 1, 2].map(|axis| Polynomial::parameter(LaunchParameter::Groups(axis)));
        let one = Polynomial::constant(1);
        let less = |p: &Polynomial| p.clone().minus(&one).unwrap();
        // (x − 1) · y + (y − 1) < z
        let last = less(&x).times(&y).unwrap().plus(&less(&y)).unwrap();
        let claim = last.plus(&one).unwrap().minus(&z).unwrap();
        assert_eq!(text(&claim).as_deref(), Some("(u64)x * y <= (u64)z"));
        let squares = less(&x).times(&less(&x)).unwrap();
        assert_eq!(text(&squares).as_deref(), Some("(u64)1 + (u64)x * x <= (u64)2 * x"));
        assert_eq!(less(&one).value(), Some(0));
        assert_eq!(x.minus(&y).unwrap().value(), None);
    }

    #[test]
    fn comparisons_that_may_overflow_are_rejected() {
        let x = Polynomial::parameter(LaunchParameter::Groups(0));
        let square = x.times(&x).unwrap();
        assert!(text(&square).is_some());
        assert_eq!(text(&square.times(&x).unwrap()), None);
        assert_eq!(text(&square.times(&Polynomial::constant(2)).unwrap()), None);
    }
    #[test]
    fn polynomials_beyond_the_limits_are_rejected() {
        let parameter = |axis| Polynomial::parameter(LaunchParameter::Groups(axis));
        let sum = |count| (1..count).try_fold(parameter(0), |sum, axis| sum.plus(&parameter(axis)));
        assert!(sum(8).is_some() && sum(9).is_none());
        let largest = Polynomial::constant(u64::MAX);
        assert_eq!(largest.clone().plus(&Polynomial::default()), Some(largest.clone()));
        assert_eq!(largest.clone().plus(&Polynomial::constant(1)), None);
        assert_eq!(Polynomial::default().minus(&largest).unwrap().minus(&Polynomial::constant(1)), None);
        assert_eq!(largest.times(&Polynomial::constant(2)), None);
    }
}
