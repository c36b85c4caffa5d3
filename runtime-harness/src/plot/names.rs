//! Text of names in pictures: removes characters that XML forbids, and shortens what does not fit.

/// The text without control characters and others that XML does not allow.
pub(super) fn clean(text: &str) -> String {
    let is_forbidden = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars().map(|c| if is_forbidden(c) { ' ' } else { c }).collect()
}

/// At most `max` characters; the middle is left out, because names often differ at their ends.
pub(super) fn shortened(text: &str, max: usize) -> String {
    let text = clean(text);
    let count = text.chars().count();
    if count <= max {
        return text;
    }
    let tail = (max - 1) / 2;
    let head: String = text.chars().take(max - 1 - tail).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{head}…{end}")
}

/// A duration with a unit.
pub(super) fn duration(ns: f64) -> String {
    let (scale, unit) = match ns {
        ns if ns < 1e3 => (1.0, "ns"),
        ns if ns < 1e6 => (1e3, "µs"),
        ns if ns < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", number(ns / scale))
}

/// A number with three significant digits, without needless zeros.
pub(super) fn number(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e5).contains(&value.abs()) {
        return format!("{value:.2e}").replace(".00e", "e").replace("0e", "e");
    }
    let decimals = match value.abs() {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.9995 => 2,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_keep_their_ends() {
        assert_eq!(shortened("matmul TILE=8\n", 20), "matmul TILE=8 ");
        let long = shortened(&format!("{}=1", "k".repeat(80)), 20);
        assert!(long.chars().count() == 20 && long.ends_with("=1"), "{long}");
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in
            [(0.0, "0"), (1500.0, "1500"), (2.5, "2.5"), (0.25, "0.25"), (1e6, "1e6"), (12.345, "12.3")]
        {
            assert_eq!(number(value), text);
        }
        assert_eq!(duration(2_500_000.0), "2.5 ms");
    }
}
