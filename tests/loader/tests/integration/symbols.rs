//! A backend library exports exactly one symbol.

use object::{Object, ObjectSymbol};

use crate::fixture::{Fixture, built};

fn exported(path: &std::path::Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let defined = file.dynamic_symbols().filter(|symbol| symbol.is_global() && symbol.is_definition());
    defined.map(|symbol| symbol.name().unwrap().to_owned()).collect()
}

#[test]
fn each_library_exports_exactly_one_symbol() {
    for name in ["null", "host"] {
        assert_eq!(exported(&built(name)), ["runtime_backend_v1"], "{name}");
    }
    assert_eq!(exported(&Fixture::new().backend("fixture", &[])), ["runtime_backend_v1"]);
}
