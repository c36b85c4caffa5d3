//! What is checked, and that what is made is valid.

use std::path::Path;

use super::*;
use crate::Specialisation;
use crate::parse::validate;

/// Every shader, kernel and program of the repository that needs no option, by the names of their files.
fn programs() -> Vec<(String, Program)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut programs = Vec::new();
    for folder in ["tests/shaders", "../kernels", "../tests/portable/programs", "../tests/kernel-fuzz/cases"]
    {
        for entry in here.join(folder).read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "wgsl") {
                continue;
            }
            let code = std::fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            // Programs of the specification stand behind each other, each whole, behind a line with its name.
            let parts: Vec<_> = match code.contains("//# ") {
                true => code.split("//# ").map(|part| format!("// {part}")).collect(),
                false => vec![code],
            };
            let parts = parts.iter().filter(|part| part.contains("@compute"));
            let parsed = parts.map(|part| Program::parse(part, &name, &Specialisation::default()));
            programs.extend(parsed.flatten().map(|program| (name.clone(), program)));
        }
    }
    programs.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert!(programs.len() > 150, "{}", programs.len());
    programs
}

/// What becomes of each access by an index of a function, in the order of the text: `c` it is checked, `o` there are launches
/// that need no check, `p` it is proven in range.
fn fates(program: &Program, frame: Frame<'_>, guard: &Guard) -> String {
    let source = guard.source(program, frame);
    let expressions = &frame.function.expressions;
    let accesses = expressions.iter().filter_map(|(handle, expression)| {
        let Expression::Access { base, .. } = *expression else { return None };
        range::length(frame, base)?;
        let fate = match source.checks[handle.index()] {
            None => 'p',
            Some(Check { promised: true, .. }) => 'o',
            Some(_) => 'c',
        };
        Some((expressions.get_span(handle).to_range().map(|range| range.start), fate))
    });
    let mut accesses: Vec<_> = accesses.collect();
    accesses.sort();
    accesses.into_iter().map(|(_, fate)| fate).collect()
}

/// The table of `tests/accesses.txt`.
fn accesses() -> String {
    let mut table = String::new();
    for (name, program) in programs() {
        let bounds = AllBounds::of(&program);
        let module = &program.module;
        let guard = Guard {
            types: UniqueArena::new(),
            functions: Arena::new(),
            forms: Vec::new(),
            provisos: vec![Provisos::new(); module.functions.len()],
            promises: is_small(module),
            report: None,
        };
        let mut line = |function: &Function, of: &str, frame| {
            let fates = fates(&program, frame, &guard);
            if !fates.is_empty() {
                let function = function.name.as_deref().unwrap_or(of);
                table.push_str(&format!("{name} {function} {fates}\n"));
            }
        };
        for (handle, function) in module.functions.iter() {
            let info = &program.info[handle];
            let bounds = bounds.function(handle);
            line(function, "", Frame { module, function, info, group_size: None, bounds });
        }
        for (index, entry) in module.entry_points.iter().enumerate() {
            let (function, info) = (&entry.function, program.info.get_entry_point(index));
            let group_size = Some(program.interfaces[index].group_size);
            line(
                function,
                &entry.name,
                Frame { module, function, info, group_size, bounds: bounds.entry(index) },
            );
        }
    }
    table
}

/// A check that goes must be proven needless, and one that comes costs time: whoever changes what is proven looks at each.
#[test]
fn what_is_checked_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/accesses.txt");
    let (is, due) = (accesses(), std::fs::read_to_string(&path).unwrap_or_default());
    if std::env::var_os("RUNTIME_WRITE_ACCESSES").is_some() {
        return std::fs::write(path, is).unwrap();
    }
    let other: Vec<_> = is.lines().filter(|line| !due.lines().any(|due| due == *line)).collect();
    assert!(is == due, "{}, or others are gone; RUNTIME_WRITE_ACCESSES=1 writes the table", other.join("\n"));
}

#[test]
fn what_is_made_is_valid() {
    for (_, program) in programs() {
        for checks in [Checks::Bounded, Checks::BoundedOnce] {
            let module = guarded(&program, checks).unwrap();
            if let Err(error) = validate(&module) {
                panic!("{}: {}", program.path(), error.emit_to_string(&program.source));
            }
        }
    }
}

#[test]
fn an_index_of_64_bits_is_compared_in_64_bits() {
    let code = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
        var<workgroup> t: array<u32, 4>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {
            y[u64(g.x) << 32u] = t[i64(g.y) << 32u];
        }";
    let program = Program::parse(code, "", &Specialisation::default()).unwrap();
    let module = guarded(&program, Checks::Bounded).unwrap();
    let wide = |ty: &naga::proc::TypeResolution| {
        ty.inner_with(&module.types).scalar().is_some_and(|scalar| scalar.width == 8)
    };
    let info = validate(&module).unwrap();
    let info = info.get_entry_point(0);
    let mut compared = 0;
    for (_, expression) in module.entry_points[0].function.expressions.iter() {
        if let &Expression::Binary { op: naga::BinaryOperator::Less, left, right } = expression {
            assert!(wide(&info[left].ty) && wide(&info[right].ty));
            compared += 1;
        }
    }
    assert_eq!(compared, 2);
}
