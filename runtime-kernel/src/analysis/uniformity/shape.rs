//! How a value varies across the invocations of a work-group.

/// How a value depends on the invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Equal in the whole work-group.
    Uniform,
    /// Linear in each row (invocations that differ in x only): the value at x is the value at 0 plus `x` times
    /// this number, modulo 2^32. With slope zero all invocations of a row agree, and the type may be any;
    /// otherwise it is a 32-bit integer.
    Linear(u32),
    /// Anything.
    Varying,
}

impl Shape {
    /// Equal along x.
    pub(crate) const ROW: Self = Self::Linear(0);

    /// The shape of a value that is either of two, with the same choice for the whole group.
    pub(crate) fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Uniform, Self::Uniform) => Self::Uniform,
            (Self::Uniform | Self::ROW, Self::Uniform | Self::ROW) => Self::ROW,
            (Self::Linear(a), Self::Linear(b)) if a == b => self,
            _ => Self::Varying,
        }
    }

    /// The shape of a value computed from both by an arbitrary operation.
    pub(crate) fn with(self, other: Self) -> Self {
        self.composite().join(other.composite())
    }

    /// The shape as part of a composite, which is either equal along x or varies.
    pub(crate) fn composite(self) -> Self {
        match self {
            Self::Uniform | Self::ROW => self,
            _ => Self::Varying,
        }
    }

    /// The sum of two 32-bit integers.
    pub(crate) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Uniform, Self::Uniform) => Self::Uniform,
            (Self::Varying, _) | (_, Self::Varying) => Self::Varying,
            _ => Self::Linear(self.slope().wrapping_add(other.slope())),
        }
    }

    /// The product of a 32-bit integer and a constant.
    pub(crate) fn times(self, factor: u32) -> Self {
        match self {
            Self::Linear(slope) => Self::Linear(slope.wrapping_mul(factor)),
            other => other,
        }
    }

    /// The shape of a variable after invocations chose whether to assign it, by a condition of shape `choice`.
    pub(crate) fn chosen_by(self, choice: Self) -> Self {
        match (choice, self) {
            (Self::Uniform, _) => self,
            (Self::ROW, Self::Uniform) => Self::ROW,
            (Self::ROW, _) => self,
            _ => Self::Varying,
        }
    }

    /// The slope along x; meaningless for varying values.
    const fn slope(self) -> u32 {
        match self {
            Self::Linear(slope) => slope,
            Self::Uniform | Self::Varying => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Shape::{Linear, Uniform, Varying};

    #[test]
    fn arithmetic_of_shapes() {
        assert_eq!(Linear(1).plus(Uniform), Linear(1));
        assert_eq!(Linear(1).plus(Linear(1).times(u32::MAX)), Linear(0));
        assert_eq!(Uniform.plus(Uniform), Uniform);
        assert_eq!(Linear(3).with(Uniform), Varying);
        assert_eq!(Linear(0).with(Uniform), Linear(0));
        assert_eq!(Linear(2).join(Linear(2)), Linear(2));
        assert_eq!(Linear(2).join(Uniform), Varying);
        assert_eq!(Uniform.chosen_by(Linear(0)), Linear(0));
        assert_eq!(Linear(1).chosen_by(Linear(1)), Varying);
        assert_eq!(Varying.times(0), Varying);
    }
}
