//! The differences between the C dialects.

use naga::{AddressSpace, Scalar, ScalarKind, StorageAccess};

use crate::program::Dialect;

impl Dialect {
    /// The language's own type for an alias such as `u32`.
    pub(super) const fn scalar(self, scalar: Scalar) -> &'static str {
        match (scalar.kind, scalar.width, self) {
            (ScalarKind::Bool, ..) => "_Bool",
            (ScalarKind::Sint, 4, _) => "int",
            (ScalarKind::Uint, 4, _) => "unsigned int",
            (ScalarKind::Sint, _, Self::OpenCl) => "long",
            (ScalarKind::Uint, _, Self::OpenCl) => "unsigned long",
            (ScalarKind::Sint, ..) => "long long",
            (ScalarKind::Uint, ..) => "unsigned long long",
            (_, 2, Self::OpenCl) => "half",
            (_, 2, _) => "_Float16",
            (_, 8, _) => "double",
            _ => "float",
        }
    }

    /// The language's own function on a floating-point type.
    pub(crate) fn float_function(self, name: &str, scalar: Scalar) -> String {
        let suffix = if scalar.width == 4 { "f" } else { "" };
        match self {
            Self::OpenCl => name.to_owned(),
            Self::Cuda => [name, suffix].concat(),
            Self::Host => ["__builtin_", name, suffix].concat(),
        }
    }

    /// The qualifiers in front of a function.
    pub(crate) const fn function(self) -> &'static str {
        match self {
            Self::OpenCl | Self::Host => "static inline ",
            Self::Cuda => "__device__ __forceinline__ ",
        }
    }

    /// The qualifiers in front of a constant at file scope.
    pub(super) const fn constant(self, scalar: bool) -> &'static str {
        match self {
            Self::OpenCl => "__constant ",
            Self::Cuda if scalar => "static constexpr ",
            Self::Cuda => "static __constant__ const ",
            Self::Host => "static const ",
        }
    }

    /// The address space in front of a pointee type.
    pub(crate) fn space(self, space: AddressSpace) -> &'static str {
        let constant = space == AddressSpace::Storage { access: StorageAccess::LOAD };
        match (self, space) {
            (Self::OpenCl, AddressSpace::Storage { .. }) if constant => "__global const ",
            (Self::OpenCl, AddressSpace::Storage { .. }) => "__global ",
            (Self::OpenCl, AddressSpace::WorkGroup) => "__local ",
            _ if constant => "const ",
            _ => "",
        }
    }

    /// The qualifier that declares a pointer unaliased.
    pub(crate) const fn restrict(self) -> &'static str {
        match self {
            Self::OpenCl => "restrict ",
            Self::Cuda | Self::Host => "__restrict__ ",
        }
    }

    /// The zero value of a type that is not a scalar.
    pub(crate) fn zero(self, type_name: &str) -> String {
        match self {
            Self::OpenCl | Self::Host => ["(", type_name, "){0}"].concat(),
            Self::Cuda => [type_name, "{}"].concat(),
        }
    }

    /// A compound literal of a structure type, whose parts are in braces.
    pub(crate) fn compound(self, type_name: &str, parts: &str) -> String {
        match self {
            Self::OpenCl | Self::Host => ["(", type_name, ")", parts].concat(),
            Self::Cuda => [type_name, parts].concat(),
        }
    }

    /// A compound literal of these parts.
    pub(crate) fn made_of(self, type_name: &str, parts: &[String]) -> String {
        self.compound(type_name, &["{", &parts.join(", "), "}"].concat())
    }

    /// The signed type of 64 bits.
    pub(crate) const fn long(self) -> &'static str {
        match self {
            Self::OpenCl => "long",
            Self::Cuda | Self::Host => "long long",
        }
    }

    /// The suffix of signed 64-bit integer literals.
    pub(crate) const fn long_suffix(self) -> &'static str {
        match self {
            Self::OpenCl => "L",
            Self::Cuda | Self::Host => "LL",
        }
    }
}
