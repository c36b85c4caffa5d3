//! What the languages spell differently.

use naga::{AddressSpace, Scalar, ScalarKind, StorageAccess};

use crate::program::Dialect;

impl Dialect {
    /// The language's own type behind an alias like `u32`.
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

    /// What stands before a function.
    pub(crate) const fn function(self) -> &'static str {
        match self {
            Self::OpenCl | Self::Host => "static inline ",
            Self::Cuda => "__device__ __forceinline__ ",
        }
    }

    /// What stands before a constant of file scope.
    pub(super) const fn constant(self, scalar: bool) -> &'static str {
        match self {
            Self::OpenCl => "__constant ",
            Self::Cuda if scalar => "static constexpr ",
            Self::Cuda => "static __constant__ const ",
            Self::Host => "static const ",
        }
    }

    /// What stands before the type that a pointer points to.
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

    /// What says that a pointer is the only way to what it points to.
    pub(crate) const fn restrict(self) -> &'static str {
        match self {
            Self::OpenCl => "restrict ",
            Self::Cuda | Self::Host => "__restrict__ ",
        }
    }

    /// The zero value of a type that is not a scalar.
    pub(crate) fn zero(self, type_name: &str) -> String {
        match self {
            Self::OpenCl | Self::Host => format!("({type_name}){{0}}"),
            Self::Cuda => format!("{type_name}{{}}"),
        }
    }

    /// A value of a structure type, up to its opening brace.
    pub(crate) fn construct(self, type_name: &str) -> String {
        match self {
            Self::OpenCl | Self::Host => format!("({type_name}){{"),
            Self::Cuda => format!("{type_name}{{"),
        }
    }

    /// The suffix of a 64-bit integer literal, signed.
    pub(super) const fn long_suffix(self) -> &'static str {
        match self {
            Self::OpenCl => "L",
            Self::Cuda | Self::Host => "LL",
        }
    }
}
