//! Tests of `[tune]` and `[sweep]`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;

const SPEC: &str = r#"version = 1
[kernel]
path = "k.c"
entry = "k"
options = { flags = ["-O1", "-g"] }
[[arg]]
name = "x"
dtype = "element"
shape = ["n"]
[[arg]]
name = "n"
scalar = "i64"
value = 64
[specialise]
element = "f32"
constants = { TILE = 8, ON = true, RATE = 0.5 }
[launch]
groups = "n / TILE"
group_size = "TILE"
"#;

/// The first line of the table.
fn line() -> usize {
    SPEC.lines().count() + 1
}

fn parse(table: &str, overrides: &Overrides) -> Result<Spec> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.c"), "").unwrap();
    let path = folder.path().join("k.toml");
    parse::parse(&path, &format!("{SPEC}{table}\n"), overrides)
}

fn space(table: &str) -> Space {
    parse(table, &Overrides::default()).unwrap().tune.unwrap()
}

fn values(point: &Point) -> String {
    point.overrides.describe().trim().to_owned()
}

#[test]
fn combinations_are_counted_and_numbered_in_order() {
    let space =
        space("[tune]\nTILE = [4, 8]\nn = { from = 1, to = 9, step = 4 }\nelement = [\"f32\", \"f16\"]");
    assert_eq!(space.combinations(), 12);
    let all: Vec<String> = space.all(12).unwrap().iter().map(values).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 12);
    let indexed: Vec<String> = (0..12).map(|index| values(&space.point(index))).collect();
    assert_eq!(all, indexed);
    assert_eq!(space.names(), ["TILE", "element", "n"]);
}

#[test]
fn ranges_have_a_step_or_a_factor() {
    for (range, expected) in [
        ("n = { from = 3, to = 8, step = 2 }", vec!["n=3", "n=5", "n=7"]),
        ("n = { from = 1, to = 17, factor = 4 }", vec!["n=1", "n=4", "n=16"]),
        (
            "RATE = { from = 0.1, to = 0.3, step = 0.1 }",
            vec!["RATE=0.1", "RATE=0.2", "RATE=0.30000000000000004"],
        ),
        ("RATE = { from = 1, to = 4.5, factor = 2.0 }", vec!["RATE=1", "RATE=2", "RATE=4"]),
        ("ON = [true, false]", vec!["ON=true", "ON=false"]),
        ("options = { flags = [\"-O2\", [\"-O3\", \"-g\"]] }", vec!["flags=-O2", "flags=-O3 -g"]),
        ("group_size = [4, [\"TILE\", 2]]", vec!["group_size=4", "group_size=TILE×2"]),
    ] {
        let all: Vec<String> =
            space(&format!("[tune]\n{range}")).all(9).unwrap().iter().map(values).collect();
        assert_eq!(all, expected, "{range}");
    }
}

#[test]
fn conditions_choose_combinations() {
    let space = space(
        "[tune]\nTILE = [2, 4, 8]\nn = [8, 12]\nelement = [\"f32\", \"f64\"]\n\
         where = [\"n % TILE == 0\", \"TILE * bytes(element) < 32 or n > 8\"]",
    );
    let all: Vec<String> = space.all(100).unwrap().iter().map(values).collect();
    let expected = [
        "TILE=2 n=8 f32",
        "TILE=2 n=12 f32",
        "TILE=2 n=8 f64",
        "TILE=2 n=12 f64",
        "TILE=4 n=8 f32",
        "TILE=4 n=12 f32",
        "TILE=4 n=12 f64",
    ];
    assert_eq!(all, expected);
}

#[test]
fn errors_name_the_line_and_the_remedy() {
    for (table, at, word) in [
        ("[tune]\nTLE = [1]", 1, "unknown name \"TLE\"; did you mean \"TILE\"?"),
        ("[tune]\nx = [1]", 1, "unknown name \"x\""),
        ("[tune]\nTILE = []", 1, "the list is empty"),
        ("[tune]\nTILE = 8", 1, "expected a list, got an integer"),
        ("[tune]\nTILE = [8, 8]", 1, "is listed twice"),
        ("[tune]\nTILE = [8, \"9\"]", 1, "expected a number, got text"),
        ("[tune]\nTILE = [8, 1.5]", 1, "\"TILE\" is an integer, got 1.5"),
        ("[tune]\nON = [1]", 1, "\"ON\" is true or false, got 1"),
        ("[tune]\nRATE = [true]", 1, "\"RATE\" is a number, got true"),
        ("[tune]\nn = [1.5]", 1, "i64 requires an integer"),
        ("[tune]\nelement = [\"f33\"]", 1, "f32"),
        ("[tune]\nn = { from = 9, to = 1, step = 1 }", 1, "`to` not below `from`"),
        ("[tune]\nn = { from = 0, to = 8, factor = 2 }", 1, "`from` at least 1"),
        ("[tune]\nn = { from = 1, to = 8 }", 1, "a `step` or a `factor`"),
        ("[tune]\nTILE = { from = 1, to = 99999999999999999999, factor = 10 }", 1, "too large"),
        ("[tune]\ngroup_size = [\"TIL\"]", 1, "unknown name \"TIL\""),
        ("[tune]\ngroup_size = [0]", 1, "at least 1"),
        ("[tune]\ngrain = [1]", 1, "only valid with `range`"),
        ("[tune]\nTILE = [1]\nwhere = \"TILE < M\"", 2, "unknown name \"M\""),
        ("[tune]\nTILE = [1]\nwhere = [\"x[0] > 1\"]", 2, "unknown name \"x\""),
        ("[tune]\nTILE = [1]\nwhere = [\"TILE <\"]", 2, "expected an operand"),
        ("[tune]\n", 0, "varies nothing"),
        ("[sweep]\ngroup_size = [1]", 1, "unknown name \"group_size\""),
        (
            "[tune]\nn = { from = 0, to = 9000000000000000000, step = 1 }\nTILE = [1, 2]",
            0,
            "more than 2^63 combinations",
        ),
    ] {
        let error = parse(table, &Overrides::default()).unwrap_err().to_string();
        let place = format!("k.toml:{}:", line() + at);
        assert!(error.contains(word) && error.contains(&place), "{table}\n{error}, expected {place} {word}");
    }
}

#[test]
fn spaces_that_are_empty_or_too_large_are_errors_with_the_line() {
    let empty = space("[tune]\nTILE = [2, 4]\nwhere = [\"TILE > 1\", \"TILE * TILE < 4\"]");
    for error in [empty.all(10).unwrap_err(), empty.sample(1, 0).unwrap_err()] {
        let expected =
            format!(":{}: where in [tune]: no combination satisfies \"TILE * TILE < 4\"", line() + 2);
        assert!(error.to_string().contains(&expected), "{error}");
    }
    let together = space("[tune]\nTILE = [2, 4]\nwhere = [\"TILE > 2\", \"TILE < 4\"]");
    assert!(together.all(10).unwrap_err().message().contains("satisfies all conditions"));
    let large = space("[tune]\nTILE = { from = 1, to = 11, step = 1 }");
    assert!(large.all(10).unwrap_err().message().contains("11 combinations are too many"));
}

#[test]
fn a_sample_of_a_billion_is_quick_unique_and_reproducible() {
    let large = space(
        "[tune]\nTILE = { from = 1, to = 100000, step = 1 }\nn = { from = 0, to = 99990, step = 10 }\n\
         where = \"TILE % 2 == 0\"",
    );
    assert_eq!(large.combinations(), 1_000_000_000);
    let begin = Instant::now();
    let sample = large.sample(500, 7).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(20), "the space was built");
    assert_eq!(sample.iter().map(|point| point.index).collect::<BTreeSet<_>>().len(), 500);
    assert!(sample.iter().all(|point| large.admits(point)));
    assert_eq!(sample, large.sample(500, 7).unwrap());
    assert_ne!(sample, large.sample(500, 8).unwrap());
    let small = space("[tune]\nTILE = [1, 2, 3]");
    assert_eq!(small.sample(9, 1).unwrap().len(), 3);
}

#[test]
fn what_is_overridden_is_not_varied() {
    let fixed = Overrides { values: vec![("TILE".to_owned(), Number::Integer(4))], ..Overrides::default() };
    let spec = parse("[tune]\nTILE = [1, 2]\nn = [1, 2]\nwhere = \"n <= TILE\"", &fixed).unwrap();
    assert_eq!(spec.tune.unwrap().all(9).unwrap().len(), 2);
    assert!(parse("[tune]\nTILE = [1, 2]", &fixed).unwrap().tune.is_none());
}

#[test]
fn a_point_changes_the_kernel_and_its_launch() {
    let space =
        space("[tune]\nTILE = [16]\ngroups = [[\"n / TILE\", 2]]\noptions = { flags = [[]], fast = [true] }");
    let spec = parse("", &space.point(0).overrides).unwrap();
    let LaunchConfig::Groups(geometry) = spec.config else { panic!("{spec:?}") };
    assert_eq!((geometry.groups, geometry.group_size), ([4, 2, 1], [16, 1, 1]));
    assert_eq!(spec.kernel.options.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["fast"]);
    let parameters = serde_json::to_value(spec.overrides.parameters()).unwrap();
    let expected = serde_json::json!({ "TILE": 16, "launch.groups": ["n / TILE", 2], "options.fast": true, "options.flags": [] });
    assert_eq!(parameters, expected);
    let refused = Overrides {
        launch: [("groups".to_owned(), vec![Extent::Expression("n / 7".to_owned())])].into(),
        ..Overrides::default()
    };
    let error = parse("", &refused).unwrap_err();
    assert!(error.message().contains("groups = n / 7: the value is 9.14"), "{error}");
}

#[test]
fn a_sweep_gives_one_spec_per_combination() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k.c"), "").unwrap();
    let path = folder.path().join("k.toml");
    let load = |table: &str, overrides: &Overrides| {
        std::fs::write(&path, format!("{SPEC}{table}\n")).unwrap();
        let specs = Spec::load_sweep(Path::new(&path), overrides)?;
        Ok::<_, runtime_core::Error>(specs.into_iter().map(|spec| spec.name).collect::<Vec<_>>())
    };
    let sweep = "[sweep]\nn = { from = 64, to = 256, factor = 2 }";
    assert_eq!(load(sweep, &Overrides::default()).unwrap(), ["k n=64", "k n=128", "k n=256"]);
    let fixed = Overrides { values: vec![("n".to_owned(), Number::Integer(8))], ..Overrides::default() };
    assert_eq!(load(sweep, &fixed).unwrap(), ["k n=8"]);
    let many = load("[sweep]\nn = { from = 1, to = 10001, step = 1 }", &Overrides::default()).unwrap_err();
    assert!(many.message().contains("the limit is 10000"), "{many}");
}
