//! Calling conventions of functions, and the symbols that go with them.

use runtime_core::backend::{OptionSpec, did_you_mean};
use runtime_core::{Error, Options, Result};

/// The prefix of function symbols in TVM's FFI: `tvm_ffi_symbol_prefix` in `tvm/ffi/extra/module.h` of
/// `apache-tvm-ffi` 0.1.15.
const TVM_FFI_PREFIX: &str = "__tvm_ffi_";

/// A calling convention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Convention {
    /// `void f(T *tensor, int64_t scalar, …)`.
    #[default]
    Plain,
    /// `int f(value *args, int *type_codes, int n, value *ret, int *ret_code)`: TVM's classic packed function.
    Packed,
    /// `int __tvm_ffi_f(void *handle, const Any *args, int32_t n, Any *result)`: TVM's FFI.
    TvmFfi,
    /// `void f(const uint64_t *args, const uint32_t *groups, int64_t begin, int64_t end)`: work-groups of a grid.
    Groups,
}

impl Convention {
    const NAMES: [(&str, Self); 4] = [
        ("plain", Self::Plain),
        ("packed", Self::Packed),
        ("tvm-ffi", Self::TvmFfi),
        ("groups", Self::Groups),
    ];

    /// Whether tensors are passed as addresses and scalars as their own bytes.
    #[inline]
    pub(crate) const fn is_bare(self) -> bool {
        matches!(self, Self::Plain | Self::Groups)
    }

    /// The load option that selects a convention.
    pub(crate) fn option() -> OptionSpec {
        OptionSpec::module(
            "convention",
            "plain",
            "Calling convention of the functions; plain also detects functions that exist only as __tvm_ffi_NAME.",
        )
        .choices(&Self::NAMES.map(|(name, _)| name))
    }

    /// The convention that the options select.
    ///
    /// # Errors
    /// `InvalidArgument`, which lists the valid ones.
    pub(crate) fn of(options: &Options) -> Result<Self> {
        let given = options.text("convention").unwrap_or("plain");
        Self::NAMES.into_iter().find(|(name, _)| *name == given).map(|(_, convention)| convention).ok_or_else(
            || {
                let names = Self::NAMES.map(|(name, _)| name);
                Error::invalid(format!(
                    "option \"convention\" cannot be \"{given}\"; {}",
                    did_you_mean(given, &names)
                ))
            },
        )
    }

    /// The symbol and convention of function `name` if `self` is selected; `None` if it does not exist.
    pub(crate) fn resolve(self, name: &str, exists: impl Fn(&str) -> bool) -> Option<(String, Self)> {
        let prefixed = format!("{TVM_FFI_PREFIX}{name}");
        let found = |symbol: &str, convention| exists(symbol).then(|| (symbol.to_owned(), convention));
        match self {
            Self::Packed | Self::Groups => found(name, self),
            // A prefixed function has no other convention.
            _ if name.starts_with(TVM_FFI_PREFIX) => found(name, Self::TvmFfi),
            Self::Plain => found(name, self).or_else(|| found(&prefixed, Self::TvmFfi)),
            Self::TvmFfi => found(&prefixed, self),
        }
    }
}

/// The sorted entry-point names of the functions `defined`.
pub(crate) fn entry_points(defined: &[String]) -> Vec<String> {
    let entry = |symbol: &String| {
        let name = symbol.strip_prefix(TVM_FFI_PREFIX).unwrap_or(symbol);
        // Symbols such as `__tvm_ffi__metadata_f` describe a function.
        let about = symbol.len() > name.len() && name.starts_with('_');
        (!about).then(|| name.to_owned())
    };
    let mut names: Vec<_> = defined.iter().filter_map(entry).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(convention: Convention, name: &str, defined: &[&str]) -> Option<(String, Convention)> {
        convention.resolve(name, |symbol| defined.contains(&symbol))
    }

    #[test]
    fn a_plain_function_is_preferred_to_a_tvm_function() {
        let both = ["f", "__tvm_ffi_f"];
        assert_eq!(resolve(Convention::Plain, "f", &both), Some(("f".to_owned(), Convention::Plain)));
        let tvm = Some(("__tvm_ffi_f".to_owned(), Convention::TvmFfi));
        assert_eq!(resolve(Convention::Plain, "f", &both[1..]), tvm);
        assert_eq!(resolve(Convention::TvmFfi, "f", &both), tvm);
        assert_eq!(resolve(Convention::Plain, "__tvm_ffi_f", &both), tvm);
        assert_eq!(resolve(Convention::Packed, "f", &both), Some(("f".to_owned(), Convention::Packed)));
        assert_eq!(resolve(Convention::Packed, "f", &both[1..]), None);
        assert_eq!(
            resolve(Convention::TvmFfi, "f", &["f"]),
            None,
            "a function without the prefix is not a TVM function"
        );
        assert_eq!(resolve(Convention::Plain, "g", &both), None);
    }

    #[test]
    fn entry_points_have_no_prefix() {
        let defined = ["__tvm_ffi__metadata_add", "__tvm_ffi_add", "_mul", "add"].map(str::to_owned);
        assert_eq!(entry_points(&defined), ["_mul", "add"]);
    }

    #[test]
    fn a_wrong_convention_is_an_error() {
        assert_eq!(Convention::of(&Options::new()).unwrap(), Convention::Plain);
        assert_eq!(Convention::of(&Options::new().with("convention", "packed")).unwrap(), Convention::Packed);
        let error = Convention::of(&Options::new().with("convention", "pack")).unwrap_err();
        assert!(error.message().contains("plain, packed, tvm-ffi, groups"), "{error}");
    }
}
