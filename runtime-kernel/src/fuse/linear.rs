//! Numbers as linear functions of the item: modulo 2³², as code computes them, and as integers, where nothing wraps around.

/// What a number of an item depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Variable {
    /// The index of its group along an axis.
    Group(u8),
    /// Its index in its group along an axis.
    Local(u8),
    /// The number of groups along an axis, the same in all launches.
    Groups(u8),
    /// The index of its group along an axis plus a multiple of the number of groups: what a loop over all groups counts. No
    /// two loops share one.
    Congruent(u8, u32),
    /// The number of the iteration of a loop, from 0. No two loops share one.
    Iteration(u32),
    /// A number that is known by its range and by facts only.
    Unknown(u32),
}

impl Variable {
    /// The position that has one value only where this variable has one.
    pub(super) const fn position(self) -> Option<Self> {
        match self {
            Self::Group(_) | Self::Local(_) => Some(self),
            Self::Congruent(axis, _) => Some(Self::Group(axis)),
            Self::Groups(_) | Self::Iteration(_) | Self::Unknown(_) => None,
        }
    }
}

/// The scalar arguments of a launch that a statement relies on, as bits.
pub(super) type Scalars = u64;

/// A constant plus multiples of variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum<N> {
    pub(super) constant: N,
    /// Sorted; no factor is 0.
    pub(super) terms: Vec<(Variable, N)>,
    pub(super) relies: Scalars,
}

/// A number modulo 2³².
pub(super) type Linear = Sum<u32>;

/// An integer.
pub(super) type Integer = Sum<i128>;

/// What the constants and factors of a sum are.
pub(super) trait Number: Copy + Default + PartialEq {
    /// `self + number * factor`
    fn plus_times(self, number: Self, factor: Self) -> Self;
}

impl Number for u32 {
    fn plus_times(self, number: Self, factor: Self) -> Self {
        self.wrapping_add(number.wrapping_mul(factor))
    }
}

impl Number for i128 {
    fn plus_times(self, number: Self, factor: Self) -> Self {
        self + number * factor
    }
}

impl<N: Number> Sum<N> {
    pub(super) fn constant(constant: N) -> Self {
        Self { constant, ..Self::default() }
    }

    pub(super) fn variable(variable: Variable, factor: N) -> Self {
        Self { terms: vec![(variable, factor)], ..Self::default() }
    }

    pub(super) fn plus_times(&self, other: &Self, factor: N) -> Self {
        let mut sum = self.clone();
        sum.constant = sum.constant.plus_times(other.constant, factor);
        sum.relies |= other.relies;
        for &(variable, times) in &other.terms {
            match sum.terms.binary_search_by(|(own, _)| own.cmp(&variable)) {
                Ok(place) => sum.terms[place].1 = sum.terms[place].1.plus_times(times, factor),
                Err(place) => sum.terms.insert(place, (variable, N::default().plus_times(times, factor))),
            }
        }
        sum.terms.retain(|(_, factor)| *factor != N::default());
        sum
    }
}

impl Linear {
    pub(super) fn plus(&self, other: &Self) -> Self {
        self.plus_times(other, 1)
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        self.plus_times(other, u32::MAX)
    }

    /// The product, if one of them is constant.
    pub(super) fn times(&self, other: &Self) -> Option<Self> {
        let (number, factor) = match (&self.terms[..], &other.terms[..]) {
            ([], _) => (other, self),
            (_, []) => (self, other),
            _ => return None,
        };
        let zero = Self { relies: number.relies | factor.relies, ..Self::default() };
        Some(zero.plus_times(number, factor.constant))
    }

    /// The same number, which relies on more scalars.
    pub(super) fn relying(mut self, on: Scalars) -> Self {
        self.relies |= on;
        self
    }

    /// Its value, if it is constant.
    pub(super) fn value(&self) -> Option<u32> {
        self.terms.is_empty().then_some(self.constant)
    }
}

/// What is known where a statement runs: a sum of multiples of variables is at most a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    pub(super) terms: Vec<(Variable, i128)>,
    pub(super) max: i128,
    pub(super) relies: Scalars,
}

/// The ranges of variables, and facts.
#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    /// The greatest value of each variable; the smallest is 0.
    pub(super) maxima: Vec<(Variable, i128, Scalars)>,
    pub(super) facts: Vec<Fact>,
}

impl Knowledge {
    /// The greatest value of a variable, and what that relies on.
    pub(super) fn maximum(&self, variable: Variable) -> Option<(i128, Scalars)> {
        self.maxima.iter().find(|(own, ..)| *own == variable).map(|(_, max, relies)| (*max, *relies))
    }

    /// The greatest value of a sum of terms, and what it relies on; `None` if it is unknown.
    pub(super) fn max_of(&self, terms: &[(Variable, i128)]) -> Option<(i128, Scalars)> {
        let mut rest = terms.to_vec();
        let (mut sum, mut relies) = (0, 0);
        for fact in &self.facts {
            let Some(times) = multiple(&fact.terms, &rest) else { continue };
            let plain =
                self.plain_max(fact.terms.iter().map(|(variable, factor)| (*variable, factor * times)));
            if plain.is_some_and(|(plain, _)| plain <= fact.max * times) {
                continue;
            }
            rest.retain(|(variable, _)| !fact.terms.iter().any(|(own, _)| own == variable));
            sum += fact.max * times;
            relies |= fact.relies;
        }
        let (plain, more) = self.plain_max(rest.into_iter())?;
        Some((sum + plain, relies | more))
    }

    /// The greatest value of a sum of terms, without the facts.
    pub(super) fn plain_max(&self, terms: impl Iterator<Item = (Variable, i128)>) -> Option<(i128, Scalars)> {
        let (mut sum, mut relies) = (0, 0);
        for (variable, factor) in terms {
            if factor > 0 {
                let (max, own) = self.maximum(variable)?;
                sum += factor * max;
                relies |= own;
            }
        }
        Some((sum, relies))
    }

    /// The range of a sum of terms.
    pub(super) fn range_of(&self, terms: &[(Variable, i128)]) -> Option<([i128; 2], Scalars)> {
        let negative: Vec<_> = terms.iter().map(|(variable, factor)| (*variable, -factor)).collect();
        let ((max, above), (least, below)) = (self.max_of(terms)?, self.max_of(&negative)?);
        Some(([-least, max], above | below))
    }

    /// The range of a sum of terms, without the facts.
    pub(super) fn plain_range_of(&self, terms: &[(Variable, i128)]) -> Option<([i128; 2], Scalars)> {
        let (max, above) = self.plain_max(terms.iter().copied())?;
        let (least, below) = self.plain_max(terms.iter().map(|(variable, factor)| (*variable, -factor)))?;
        Some(([-least, max], above | below))
    }

    /// The integer that a number is, if it provably does not wrap around: a number from 0 to 2³² − 1.
    pub(super) fn integer(&self, number: &Linear) -> Option<Integer> {
        let signed = |factor: u32| i128::from(factor.cast_signed());
        let terms: Vec<_> =
            number.terms.iter().map(|(variable, factor)| (*variable, signed(*factor))).collect();
        // Facts may rely on scalars, so they come last.
        let ranges = [self.plain_range_of(&terms), self.range_of(&terms)];
        let (constant, relies) = ranges
            .into_iter()
            .flatten()
            .find_map(|(range, relies)| Some((unwrapped(number.constant, range)?, relies)))?;
        Some(Integer { constant, terms, relies: relies | number.relies })
    }

    /// The range of an integer.
    pub(super) fn range(&self, number: &Integer) -> Option<([i128; 2], Scalars)> {
        let ([min, max], relies) = self.range_of(&number.terms)?;
        Some(([min + number.constant, max + number.constant], relies))
    }

    /// Learns that an integer is at most 0. Returns whether that can be: whether it is no number above 0.
    pub(super) fn at_most_zero(&mut self, number: &Integer) -> bool {
        let fact = Fact { terms: number.terms.clone(), max: -number.constant, relies: number.relies };
        let is_possible = !fact.terms.is_empty() || fact.max >= 0;
        // The latest conditions are the closest to the statement.
        self.facts.insert(0, fact);
        is_possible
    }
}

/// The positive number by which all of `fact` is multiplied in `terms`.
pub(super) fn multiple(fact: &[(Variable, i128)], terms: &[(Variable, i128)]) -> Option<i128> {
    let mut times = None;
    for (variable, factor) in fact {
        let own = terms.iter().find(|(own, _)| own == variable)?.1;
        if own % factor != 0 || own / factor <= 0 || times.is_some_and(|times| times != own / factor) {
            return None;
        }
        times = Some(own / factor);
    }
    times
}

/// The constant as an integer for which a sum of a number in `range` and it is a number from 0 to 2³² − 1.
fn unwrapped(constant: u32, [min, max]: [i128; 2]) -> Option<i128> {
    let constants = [i128::from(constant), i128::from(constant.cast_signed())];
    constants.into_iter().find(|constant| min + constant >= 0 && max + constant <= i128::from(u32::MAX))
}
