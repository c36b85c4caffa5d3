//! Pseudo-random numbers, which are the same in every run.

pub(crate) use runtime_core::backend::random_word as next;

/// A number below `count`, which is at least 1.
pub(crate) fn below(state: &mut u64, count: usize) -> usize {
    usize::try_from(next(state) % count as u64).unwrap_or(0)
}

/// A generator of random numbers of several distributions.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Uniform in (0, 1), without the bounds.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((next(&mut self.0) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Standard normal (Box and Muller, 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Gamma with a shape of at least 1 and the scale 1 (Marsaglia and Tsang, 2000).
    pub(crate) fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            if v > 0.0 && self.uniform().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// Beta, as a share of two gamma variates (Devroye 1986, chapter IX).
    pub(crate) fn beta(&mut self, a: f64, b: f64) -> f64 {
        let part = self.gamma(a);
        part / (part + self.gamma(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and variance of many numbers.
    fn moments(mut number: impl FnMut() -> f64) -> (f64, f64) {
        const COUNT: u32 = 50_000;
        let numbers: Vec<f64> = (0..COUNT).map(|_| number()).collect();
        let mean = numbers.iter().sum::<f64>() / f64::from(COUNT);
        let squares = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>();
        (mean, squares / f64::from(COUNT))
    }

    #[test]
    fn the_words_never_change() {
        let mut state = 1_234_567;
        assert_eq!(
            [next(&mut state), next(&mut state)],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn distributions_have_their_moments() {
        let mut random = Random::new(1);
        let check = |(mean, variance): (f64, f64), (expected_mean, expected_variance): (f64, f64)| {
            assert!(
                (mean - expected_mean).abs() < 0.03 * expected_variance.sqrt(),
                "{mean}, {expected_mean}"
            );
            assert!((variance / expected_variance - 1.0).abs() < 0.05, "{variance}, {expected_variance}");
        };
        check(moments(|| random.uniform()), (0.5, 1.0 / 12.0));
        check(moments(|| random.normal()), (0.0, 1.0));
        for shape in [1.0, 3.5, 100.0] {
            check(moments(|| random.gamma(shape)), (shape, shape));
        }
        check(moments(|| random.beta(2.0, 3.0)), (0.4, 0.04));
    }
}
