//! Which items may touch the same bytes of a tensor.

use super::linear::{Integer, Scalars, Variable};
use super::walk::Access;

/// Which pairs of items may touch the same bytes in two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Overlap {
    /// None.
    Never,
    /// One and the same item.
    SameItem,
    /// Items of one group.
    SameGroup,
    /// Any.
    Anywhere,
}

/// Values of a private variable that are tried one by one.
const MAX_VALUES: i128 = 16;
/// Steps of one comparison; beyond them nothing is known.
const MAX_STEPS: u32 = 2000;

/// Which items may touch the same bytes in two accesses of different launches, and the scalars that the answer relies on.
pub(super) fn overlap(first: &Access, second: &Access) -> (Overlap, [Scalars; 2]) {
    let (Some(one), Some(two)) = (&first.offset, &second.offset) else {
        return (Overlap::Anywhere, [0; 2]);
    };
    let attempts = [(Overlap::SameItem, &ALL[..]), (Overlap::SameGroup, &ALL[..3])];
    // Facts may rely on scalars, so they come last.
    let attempts = attempts.into_iter().flat_map(|attempt| [false, true].map(|facts| (attempt, facts)));
    for ((overlap, separate), uses_facts) in attempts {
        let mut pair = Pair {
            accesses: [first, second],
            separate,
            uses_facts,
            relies: [one.relies, two.relies],
            steps: 0,
        };
        let bytes = [1 - second.bytes, first.bytes - 1];
        let difference = one.constant - two.constant;
        let rest = [&one.terms[..], &two.terms[..]];
        match pair.outcome(rest, bytes.map(|bytes| bytes + difference), &mut Vec::new()) {
            Solution::Impossible => return (Overlap::Never, pair.relies),
            Solution::SameItem => return (overlap, pair.relies),
            Solution::Unknown => {}
        }
    }
    (Overlap::Anywhere, [0; 2])
}

/// The variables of an item; the first three are those of its group.
const ALL: [Variable; 6] = [
    Variable::Group(0),
    Variable::Group(1),
    Variable::Group(2),
    Variable::Local(0),
    Variable::Local(1),
    Variable::Local(2),
];

type Terms<'t> = &'t [(Variable, i128)];

struct Pair<'a> {
    accesses: [&'a Access; 2],
    /// The variables that must be the same in both items.
    separate: &'a [Variable],
    uses_facts: bool,
    relies: [Scalars; 2],
    steps: u32,
}

/// What is known of two items that make an equation true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Solution {
    /// There are none.
    Impossible,
    /// Their separate variables are equal.
    SameItem,
    /// Nothing.
    Unknown,
}

impl Pair<'_> {
    /// Solves `first - second + c = 0`, for the terms of both accesses and a `c` in `between`. The variables in `same` are known
    /// to be equal.
    fn outcome(&mut self, terms: [Terms<'_>; 2], between: [i128; 2], same: &mut Vec<Variable>) -> Solution {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Solution::Unknown;
        }
        let largest = terms.iter().flat_map(|terms| terms.iter()).map(|(_, factor)| factor.abs()).max();
        let Some(factor) = largest else { return self.at_end(between, same) };
        let [upper, lower] = [true, false].map(|is_upper| {
            terms.map(|terms| -> Vec<_> {
                terms.iter().filter(|(_, own)| (own.abs() == factor) == is_upper).copied().collect()
            })
        });
        let rest = self.difference([&lower[0], &lower[1]]);
        let Some((rest, [least, greatest])) = rest.zip(self.difference([&upper[0], &upper[1]])) else {
            return Solution::Unknown;
        };
        let [min, max] = [rest[0] + between[0], rest[1] + between[1]];
        // factor · upper = −(lower + between)
        let [from, to] = [-max, -min];
        let first = ceiling(from.max(least), factor);
        let last = to.min(greatest).div_euclid(factor);
        if first > last {
            return Solution::Impossible;
        }
        match self.separate_in(&upper) {
            Some(None) => {}
            Some(Some(variable)) if (first, last) == (0, 0) => same.push(variable),
            _ => return Solution::Unknown,
        }
        self.each_value((first, last), factor, [&lower[0], &lower[1]], (between, same))
    }

    /// The outcome for each value that the upper terms may have, in multiples of `factor`.
    fn each_value(
        &mut self,
        (first, last): (i128, i128),
        factor: i128,
        lower: [Terms<'_>; 2],
        (between, same): ([i128; 2], &mut Vec<Variable>),
    ) -> Solution {
        if last - first >= MAX_VALUES {
            // It may be that the rest does not matter.
            return self.settled(same);
        }
        let mut all = Solution::Impossible;
        for value in first..=last {
            let known = same.len();
            match self.outcome(lower, between.map(|bound| bound + value * factor), same) {
                Solution::Impossible => {}
                Solution::SameItem => all = Solution::SameItem,
                Solution::Unknown => return Solution::Unknown,
            }
            same.truncate(known);
        }
        all
    }

    /// The only separate variable among terms with the same factor, if they have one; `None` if they have more than that.
    fn separate_in(&self, upper: &[Vec<(Variable, i128)>; 2]) -> Option<Option<Variable>> {
        let separate = |(variable, _): &(Variable, i128)| {
            variable.position().filter(|position| self.separate.contains(position))
        };
        match (upper.each_ref().map(|terms| terms.iter().find_map(separate)), &upper[0][..], &upper[1][..]) {
            ([None, None], ..) => Some(None),
            // The variable itself, or what is congruent to it, with the same factor in both.
            ([Some(own), Some(other)], [one], [two]) if own == other && one.1 == two.1 => Some(Some(own)),
            // It is 0 in the other launch, which has one group only.
            (_, [(variable, _)], []) if self.is_zero(1, *variable) => Some(Some(*variable)),
            (_, [], [(variable, _)]) if self.is_zero(0, *variable) => Some(Some(*variable)),
            _ => None,
        }
    }

    fn is_zero(&self, access: usize, variable: Variable) -> bool {
        let range = self.accesses[access].knowledge.plain_range_of(&[(variable, 1)]);
        range.is_some_and(|(range, _)| range == [0, 0])
    }

    /// The range of the difference of two sums.
    fn difference(&mut self, [one, two]: [Terms<'_>; 2]) -> Option<[i128; 2]> {
        let (one, on_one) = self.range_of(0, one)?;
        let (two, on_two) = self.range_of(1, two)?;
        self.relies[0] |= on_one;
        self.relies[1] |= on_two;
        Some([one[0] - two[1], one[1] - two[0]])
    }

    fn range_of(&self, access: usize, terms: Terms<'_>) -> Option<([i128; 2], Scalars)> {
        let knowledge = &self.accesses[access].knowledge;
        if self.uses_facts { knowledge.range_of(terms) } else { knowledge.plain_range_of(terms) }
    }

    fn at_end(&mut self, between: [i128; 2], same: &[Variable]) -> Solution {
        if between[0] > 0 || between[1] < 0 {
            return Solution::Impossible;
        }
        self.settled(same)
    }

    /// The same item, if all separate variables are equal.
    fn settled(&mut self, same: &[Variable]) -> Solution {
        for &variable in self.separate {
            if same.contains(&variable) {
                continue;
            }
            // It does not matter for the place, so it must have one value only.
            let term = [(variable, 1)];
            match (self.range_of(0, &term), self.range_of(1, &term)) {
                (Some(([min, max], on_one)), Some((other, on_two))) if min == max && other == [min, max] => {
                    self.relies[0] |= on_one;
                    self.relies[1] |= on_two;
                }
                _ => return Solution::Unknown,
            }
        }
        Solution::SameItem
    }
}

fn ceiling(number: i128, divisor: i128) -> i128 {
    -(-number).div_euclid(divisor)
}

/// Whether two accesses address the same place of the same item, whatever the item.
pub(super) fn is_same_place(first: &Integer, second: &Integer) -> bool {
    (&first.terms, first.constant) == (&second.terms, second.constant)
}
