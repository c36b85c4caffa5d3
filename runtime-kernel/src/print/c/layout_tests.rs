//! The layouts of printed types against naga's `Layouter`, on random structures: the text of the C types is laid out by the
//! rules of C, and the decorations of SPIR-V are read back.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use naga::proc::{Alignment, Layouter};
use naga::{ArraySize, Handle, Module, Type, TypeInner};
use spirv::{Decoration, Op};

use crate::ir::cooperative::ROW_ALIGNMENT;
use crate::parse::nested_alignments;
use crate::{Checks, Dialect, Program, Specialisation};

/// Structures of a text.
const STRUCTURES: usize = 24;
const TEXTS: u64 = 40;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

/// A type in WGSL, and the path from a value of it to one of its scalars.
type Field = (String, String);

fn field(random: &mut Random, structures: &[Field], depth: usize) -> Field {
    let scalar = random.of(&["f32", "u32", "i32", "f16", "i64", "f64"]);
    match random.below(if depth == 0 { 3 } else { 6 }) {
        0 => (scalar.to_owned(), String::new()),
        1 => (format!("vec{}<{scalar}>", 2 + random.below(3)), ".x".to_owned()),
        2 => {
            let (columns, rows) = (2 + random.below(3), 2 + random.below(3));
            (format!("mat{columns}x{rows}<{}>", random.of(&["f32", "f16"])), "[1].y".to_owned())
        }
        3 | 4 => {
            let (element, path) = field(random, structures, depth - 1);
            (format!("array<{element}, {}>", 1 + random.below(3)), format!("[0]{path}"))
        }
        _ if structures.is_empty() => ("u32".to_owned(), String::new()),
        _ => structures[random.below(structures.len())].clone(),
    }
}

fn name(index: usize) -> String {
    let letter = |n: usize| char::from(b"abcdefghijklmnopqrstuvwxyz"[n % 26]);
    ["S".to_owned(), letter(index / 26).to_string(), letter(index).to_string()].concat()
}

/// A text with structures, and with a kernel that reads each of them.
fn text(random: &mut Random) -> String {
    let (mut declarations, mut body) = ("enable f16;\n".to_owned(), String::new());
    let mut structures: Vec<Field> = Vec::new();
    for index in 0..STRUCTURES {
        let name = name(index);
        let _ = write!(declarations, "struct {name} {{ ");
        let mut path = String::new();
        let count = 1 + random.below(5);
        let has_tail = random.below(5) == 0;
        for member in 0..count {
            let (mut ty, inner) = field(random, &structures, 2);
            let is_tail = has_tail && member + 1 == count;
            let is_scalar = !is_tail && ty.len() == 3 && !ty.starts_with('S');
            match random.below(8) {
                0 => declarations += "@align(128) ",
                1 | 2 if is_scalar => declarations += &format!("@align({}) ", 16 << random.below(3)),
                3 | 4 if is_scalar => declarations += &format!("@size({}) ", 8 + random.below(40)),
                _ => {}
            }
            if is_tail {
                ty = format!("array<{ty}>");
            }
            let field = char::from(b"pqrst"[member]);
            path = format!(".{field}{}{inner}", if is_tail { "[0]" } else { "" });
            let _ = write!(declarations, "{field}: {ty}, ");
        }
        let space = if !has_tail && random.below(2) == 0 { "uniform" } else { "storage" };
        let _ = writeln!(declarations, "}}\n@group(0) @binding({index}) var<{space}> v{name}: {name};");
        let _ = write!(body, "r[{index}] = f32(v{name}{path});\n    ");
        if !has_tail {
            structures.push((name, path));
        }
    }
    format!(
        "{declarations}@group(1) @binding(0) var<storage, read_write> r: array<f32>;\n\
         @compute @workgroup_size(1) fn main() {{\n    {body}}}\n"
    )
}

/// A member of a C structure.
struct Member<'a> {
    name: &'a str,
    ty: &'a str,
    offset: u32,
}

/// The declared structures of a C text, by name: the declared alignment, and the members.
struct CTypes<'a>(HashMap<&'a str, (u32, &'a str)>);

impl<'a> CTypes<'a> {
    fn of(text: &'a str) -> Self {
        let declared = text.split("typedef struct ").skip(1).filter_map(|part| {
            let (name, rest) = part.split_once(" {")?;
            let aligned = name.strip_prefix("__align__(").and_then(|rest| rest.split_once(") "));
            let (alignment, name) = aligned.map_or((1, name), |(n, name)| (n.parse().unwrap(), name));
            Some((name, (alignment, rest.split_once('}')?.0)))
        });
        Self(declared.collect())
    }

    /// The members, the size and the alignment.
    fn layout(&self, ty: &str) -> (Vec<Member<'a>>, u32, u32) {
        match ty {
            "unsigned char" => return (Vec::new(), 1, 1),
            "f16" => return (Vec::new(), 2, 2),
            "f32" | "u32" | "i32" => return (Vec::new(), 4, 4),
            "f64" | "i64" => return (Vec::new(), 8, 8),
            _ => {}
        }
        let (mut alignment, body) = *self.0.get(ty).unwrap_or_else(|| panic!("no type {ty}"));
        let (mut members, mut end) = (Vec::new(), 0_u32);
        for declared in body.split(';').map(str::trim).filter(|declared| !declared.is_empty()) {
            let at = if declared.starts_with("unsigned") {
                "unsigned char".len()
            } else {
                declared.find(' ').unwrap()
            };
            let (ty, names) = declared.split_at(at);
            let (_, size, align) = self.layout(ty);
            for name in names.split(',').map(str::trim) {
                let (name, count) = name.split_once('[').map_or((name, 1), |(name, count)| {
                    (name, count.trim_end_matches(']').parse().unwrap_or(0))
                });
                let offset = end.next_multiple_of(align);
                end = offset + size * count;
                alignment = alignment.max(align);
                members.push(Member { name, ty, offset });
            }
        }
        (members, end.next_multiple_of(alignment), alignment)
    }

    /// Compares a C type with naga's layout of a type; returns the number of structures.
    fn check(&self, module: &Module, layouts: &Layouter, ty: Handle<Type>, c: &str) -> usize {
        let (members, size, alignment) = self.layout(c);
        let layout = layouts[ty];
        assert!(layout.alignment >= Alignment::new(alignment).unwrap(), "{c}: C aligns it more");
        assert!(alignment <= ROW_ALIGNMENT, "{c}: C aligns it more than a launch does");
        match &module.types[ty].inner {
            TypeInner::Struct { members: expected, .. } => {
                let members: Vec<_> =
                    members.iter().filter(|member| !member.name.starts_with("padding")).collect();
                assert_eq!(members.len(), expected.len(), "{c}");
                let mut count = 1;
                let mut has_tail = false;
                for (member, expected) in members.iter().zip(expected) {
                    assert_eq!(member.offset, expected.offset, "{c}.{}", member.name);
                    has_tail = is_tail(module, expected.ty);
                    count += self.check(module, layouts, expected.ty, member.ty);
                }
                assert!(has_tail || size == layout.size, "{c}: {size}, not {}", layout.size);
                count
            }
            TypeInner::Array { base, stride, .. } => {
                let element = if is_tail(module, ty) { c } else { members[0].ty };
                assert_eq!(self.layout(element).1, *stride, "{c}");
                let element =
                    if element.ends_with("_padded") { self.layout(element).0[0].ty } else { element };
                self.check(module, layouts, *base, element)
            }
            TypeInner::Matrix { rows, scalar, .. } => {
                let stride = Alignment::from(*rows) * u32::from(scalar.width);
                assert_eq!(self.layout(members[0].ty).1, stride, "{c}");
                assert_eq!(size, layout.size, "{c}");
                0
            }
            _ => {
                assert_eq!(size, layout.size, "{c}");
                0
            }
        }
    }
}

fn is_tail(module: &Module, ty: Handle<Type>) -> bool {
    matches!(module.types[ty].inner, TypeInner::Array { size: ArraySize::Dynamic, .. })
}

/// The offsets of the members of each structure, and the strides of the arrays, in SPIR-V.
fn decorations(words: &[u32]) -> (BTreeSet<Vec<u32>>, BTreeSet<u32>) {
    let (mut offsets, mut strides) = (HashMap::<u32, Vec<u32>>::new(), BTreeSet::new());
    let mut rest = &words[5..];
    while let Some(&first) = rest.first() {
        let (instruction, after) = rest.split_at((first >> 16) as usize);
        match *instruction {
            [word, id, _, kind, offset]
                if word & 0xffff == Op::MemberDecorate as u32 && kind == Decoration::Offset as u32 =>
            {
                offsets.entry(id).or_default().push(offset);
            }
            [word, _, kind, stride]
                if word & 0xffff == Op::Decorate as u32 && kind == Decoration::ArrayStride as u32 =>
            {
                strides.insert(stride);
            }
            _ => {}
        }
        rest = after;
    }
    (offsets.into_values().collect(), strides)
}

#[test]
fn random_structures_have_the_layout_of_naga() {
    let mut count = 0;
    for seed in 1..=TEXTS {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let code = text(&mut random);
        let written = nested_alignments::written_out(&code, "").unwrap();
        let module =
            naga::front::wgsl::parse_str(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        let mut layouts = Layouter::default();
        layouts.update(module.to_ctx()).unwrap();
        let program = Program::parse(&code, "", &Specialisation::default())
            .unwrap_or_else(|error| panic!("{error}\n{code}"));
        let printed =
            [Dialect::Host, Dialect::Cuda].map(|dialect| program.c(dialect, Checks::Bounded).unwrap().text);
        let types = printed.each_ref().map(|text| CTypes::of(text));
        let (offsets, strides) = decorations(&program.spirv(Checks::Bounded).unwrap());
        for (handle, ty) in module.types.iter() {
            match &ty.inner {
                TypeInner::Struct { members, .. } => {
                    let name = format!("{}_w", ty.name.as_deref().unwrap());
                    for types in &types {
                        count += types.check(&module, &layouts, handle, &name);
                    }
                    let expected: Vec<_> = members.iter().map(|member| member.offset).collect();
                    assert!(offsets.contains(&expected), "{name}: {expected:?} in SPIR-V\n{code}");
                }
                TypeInner::Array { stride, .. } => {
                    assert!(strides.contains(stride), "{stride} in SPIR-V\n{code}");
                }
                _ => {}
            }
        }
        let interface = &program.interfaces()[0];
        for (tensor, index) in interface.tensors.iter().zip(0..STRUCTURES) {
            let variable = module.global_variables.iter().nth(index).unwrap().1;
            if !matches!(&module.types[variable.ty].inner, TypeInner::Struct { members, .. }
                if members.last().is_some_and(|last| is_tail(&module, last.ty)))
            {
                assert_eq!(tensor.min_bytes, u64::from(layouts[variable.ty].size), "{}", tensor.name);
            }
        }
    }
    assert!(count > 4000, "{count} structures");
}
