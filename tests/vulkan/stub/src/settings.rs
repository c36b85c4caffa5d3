//! The stub's settings: `STUB_VULKAN`, a list of `key=value` separated by commas.

use std::sync::OnceLock;

const VARIABLE: &str = "STUB_VULKAN";

/// All settings, in order; a key may occur several times.
pub(crate) fn all() -> &'static [(String, String)] {
    static ALL: OnceLock<Vec<(String, String)>> = OnceLock::new();
    ALL.get_or_init(|| {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        let pairs = text.split(',').filter_map(|setting| setting.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    })
}

/// The value of a setting.
pub(crate) fn value(key: &str) -> Option<&'static str> {
    all().iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// The value of a setting, as a number.
pub(crate) fn number(key: &str) -> Option<u64> {
    value(key)?.parse().ok()
}

/// Whether a function is to be missing.
pub(crate) fn is_missing(function: &str) -> bool {
    all().iter().any(|(key, value)| key == "missing" && value == function)
}
