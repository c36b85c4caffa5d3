//! Writes that provably fill what is read later.

use super::linear::{Fact, Scalars, Variable, multiple};
use super::walk::{Access, Part};

type Terms = Vec<(Variable, i128)>;

/// Which iteration of a loop around the write concerns the item that reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    /// This variable of the read.
    Variable(Variable),
    Value(i128),
}

/// A write and a later read of the same tensor.
pub(super) struct Cover<'a> {
    pub(super) write: &'a Access,
    pub(super) read: &'a Access,
    /// Bytes from one element to the next.
    pub(super) stride: i128,
}

impl Cover<'_> {
    /// Whether the item that reads an element has written it: what that relies on, of the launch that writes and of the one that
    /// reads. The write comes first in the text.
    pub(super) fn by_item(&self) -> Option<[Scalars; 2]> {
        let [written, read] = self.offsets()?;
        let names = self.names([&written, &read])?;
        let renamed = |terms: &[(Variable, i128)]| -> (Terms, i128) {
            let (mut sum, mut constant) = (Terms::new(), 0);
            for &(variable, factor) in terms {
                match names.iter().find(|(own, _)| *own == variable).map(|(_, name)| *name) {
                    Some(Name::Variable(name)) => sum.push((name, factor)),
                    Some(Name::Value(value)) => constant += factor * value,
                    None => sum.push((variable, factor)),
                }
            }
            sum.sort_unstable();
            (sum, constant)
        };
        if renamed(&written) != (read, self.distance()?) {
            return None;
        }
        let mut relies = [0; 2];
        for Fact { terms, max, relies: on } in &self.write.path.facts {
            let (terms, constant) = renamed(terms);
            let (known, more) = self.read.knowledge.max_of(&terms)?;
            if known + constant > *max {
                return None;
            }
            relies[0] |= on;
            relies[1] |= more;
        }
        Some(relies)
    }

    /// Which iteration of the loops of the write an item that reads is concerned with.
    fn names(&self, [written, read]: [&Terms; 2]) -> Option<Vec<(Variable, Name)>> {
        let mut names: Vec<(Variable, Name)> = Vec::new();
        let mut rest = self.distance()?;
        for &variable in &self.write.path.loops {
            let factor = written.iter().find(|(own, _)| *own == variable).map(|(_, factor)| *factor);
            let is_free = |other: Variable| {
                let is_used = |name: &(Variable, Name)| name.1 == Name::Variable(other);
                other.position().is_none() && !names.iter().any(is_used)
            };
            let same = read.iter().find(|(other, own)| Some(*own) == factor && is_free(*other));
            let name = match (factor, same) {
                _ if self.read.path.loops.contains(&variable) => Name::Variable(variable),
                // Any iteration will do: the first one.
                (None, _) => Name::Value(0),
                (_, Some((other, _))) => Name::Variable(*other),
                (Some(factor), None) => {
                    let value = rest.div_euclid(factor);
                    rest -= value * factor;
                    Name::Value(value)
                }
            };
            names.push((variable, name));
        }
        let is_possible = |(_, name): &(Variable, Name)| !matches!(name, Name::Value(..0));
        names.iter().all(is_possible).then_some(names)
    }

    /// Whether an item of the group of the one that reads an element has written it, in an earlier launch.
    pub(super) fn by_group(&self) -> Option<[Scalars; 2]> {
        let [written, read] = self.offsets()?.map(|terms| {
            let rest = terms.into_iter().filter(|(variable, _)| !matches!(variable, Variable::Group(_)));
            rest.collect::<Terms>()
        });
        let distance = self.distance()?;
        let (full, on_full) = self.full(&written)?;
        let ([least, greatest], on_read) = self.read.knowledge.range_of(&read)?;
        if least + distance < 0 || greatest + distance > full {
            return None;
        }
        let mut relies = [on_full, on_read];
        for fact in &self.write.path.facts {
            let [on_write, on_read] = self.holds(fact, [&written, &read], distance)?;
            relies[0] |= on_write | fact.relies;
            relies[1] |= on_read;
        }
        Some(relies)
    }

    fn offsets(&self) -> Option<[Terms; 2]> {
        if !self.write.path.is_known || self.write.part != Part::Element {
            return None;
        }
        Some([self.write.offset.as_ref()?.terms.clone(), self.read.offset.as_ref()?.terms.clone()])
    }

    /// Bytes from the constant part of what is written to that of what is read.
    fn distance(&self) -> Option<i128> {
        let [written, read] = [self.write, self.read].map(|access| access.offset.as_ref());
        Some(read?.constant.div_euclid(self.stride) * self.stride - written?.constant)
    }

    /// The greatest value of a sum whose terms are the digits of a number, so that it has all values up to that.
    fn full(&self, terms: &Terms) -> Option<(i128, Scalars)> {
        let mut digits = terms.clone();
        digits.sort_unstable_by_key(|(_, factor)| *factor);
        let (mut weight, mut relies) = (self.stride, 0);
        for (variable, factor) in digits {
            let is_digit =
                matches!(variable, Variable::Local(_)) || self.write.path.loops.contains(&variable);
            if factor != weight || !is_digit {
                return None;
            }
            let (max, on) = self.write.knowledge.maximum(variable)?;
            weight *= max + 1;
            relies |= on;
        }
        Some((weight - self.stride, relies))
    }

    /// Whether a condition of the write holds for the item that writes what is read.
    fn holds(&self, fact: &Fact, [written, read]: [&Terms; 2], distance: i128) -> Option<[Scalars; 2]> {
        let is_digit = |variable: &Variable| written.iter().any(|(own, _)| own == variable);
        let is_free = |variable: &Variable| {
            let is_own = matches!(variable, Variable::Local(_)) || self.write.path.loops.contains(variable);
            is_own && !is_digit(variable)
        };
        let (free, rest): (Terms, Terms) =
            fact.terms.iter().copied().partition(|(variable, _)| is_free(variable));
        // Of the items, or iterations, that write the same place, the first one is enough.
        let (mut max, mut on_first) = (fact.max, 0);
        for (variable, factor) in free {
            let ([least, _], on) = self.write.knowledge.range_of(&[(variable, 1)])?;
            max -= factor * least;
            on_first |= on;
        }
        let (digits, rest): (Terms, Terms) = rest.into_iter().partition(|(variable, _)| is_digit(variable));
        let of_group = rest.iter().all(|(variable, _)| matches!(variable, Variable::Group(_)));
        let times = if digits.len() == written.len() { multiple(&digits, written) } else { None };
        match times {
            _ if of_group && digits.is_empty() => {
                let (known, on_read) = self.read.knowledge.max_of(&rest)?;
                (known <= max).then_some([on_first, on_read])
            }
            Some(times) if of_group => {
                let mut sum = read.clone();
                sum.extend(rest.iter().map(|(variable, factor)| (*variable, factor * times)));
                let (known, on_read) = self.read.knowledge.max_of(&sum)?;
                (known + distance <= max * times).then_some([on_first, on_read])
            }
            _ => {
                let (known, on_write) = self.write.knowledge.plain_max(digits.into_iter().chain(rest))?;
                (known <= max).then_some([on_first | on_write, 0])
            }
        }
    }
}
