//! Names of files in a package: the same on every system, and within its folder.

/// Whether a file of this name stays within the folder that a package is extracted to, on every system: parts of letters,
/// digits and `._+-`, separated by `/`, none of which begins or ends with a dot.
pub(crate) fn is_safe(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte))
    };
    name.len() <= 255 && name != super::MANIFEST && name.split('/').all(is_part)
}

/// A name as a part of a file's name.
pub(crate) fn in_archive(name: &str) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() || "_+-".contains(letter) { letter } else { '-' };
    name.chars().take(64).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_within_the_folder_are_safe() {
        for name in ["a", "saxpy/cuda-sm_90.cubin", "a.b/c+d-e_f.spv"] {
            assert!(is_safe(name), "{name}");
        }
        for name in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "../a",
            "a/../b",
            "a/..",
            ".ssh/x",
            "a\\b",
            "C:a",
            "a\0b",
            "a\nb",
            "a b",
            "ä",
            "x.",
            "manifest.json",
            "\u{202e}a",
        ] {
            assert!(!is_safe(name), "{name:?}");
        }
        assert!(!is_safe(&"a".repeat(256)));
        assert_eq!(in_archive("cuda:sm_90/../ä"), "cuda-sm_90-----");
    }
}
