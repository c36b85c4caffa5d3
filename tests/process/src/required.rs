//! `RUNTIME_REQUIRE`: what must not be missing on this machine.

/// Whether `RUNTIME_REQUIRE` lists `name`, so that its absence is a failure.
#[must_use]
pub fn required(name: &str) -> bool {
    let list = std::env::var("RUNTIME_REQUIRE").unwrap_or_default();
    list.split(',').any(|entry| entry.trim() == name)
}
