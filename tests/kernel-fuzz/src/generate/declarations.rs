//! Declarations of a kernel: structures, immediates, overrides, tensors, and private and work-group variables.

use std::rc::Rc;

use super::context::{SharedUse, Space, Variable};
use super::{Generator, RESERVED_WORDS};
use crate::tree::{Scalar, Struct, Type};

impl Generator {
    pub(super) fn declare_structs(&mut self) {
        for at in 0..self.random.below(3) {
            let name = format!("S{at}{}", self.tag);
            let members: Vec<_> = (0..=self.random.below(3)).map(|_| self.ty(1)).collect();
            let (odd, has_gaps) = (self.random.once_in(3), self.random.once_in(2));
            let members = if has_gaps { self.members_with_gaps() } else { members };
            let name_of = |at: usize| if odd { RESERVED_WORDS[at * 7].to_owned() } else { format!("m{at}") };
            let members: Vec<_> = members.into_iter().enumerate().map(|(at, ty)| (name_of(at), ty)).collect();
            let lines: String = members
                .iter()
                .map(|(name, ty)| format!("{}{name}: {ty}, ", self.gap(has_gaps, ty)))
                .collect();
            self.global(&format!("struct {name} {{ {lines}}}"));
            self.structs.push(Rc::new(Struct { name, members }));
        }
    }

    /// Declares the immediates; returns their types.
    pub(super) fn declare_immediates(&mut self) -> Vec<Scalar> {
        let tag = self.tag.clone();
        let mut members = vec![("n".to_owned(), Scalar::U32)];
        for at in 0..1 + self.random.below(3) {
            let scalar = self.scalar(false);
            members.push((format!("a{at}"), scalar));
        }
        self.first_immediate = "n".to_owned();
        let lines: String = members.iter().map(|(name, ty)| format!("{name}: {}, ", ty.name())).collect();
        self.global(&format!("struct A{tag} {{ {lines}}}"));
        self.global(&format!("var<immediate> s{tag}: A{tag};"));
        for (name, scalar) in &members {
            let text = format!("s{tag}.{name}");
            let variable = Variable::value(&text, Type::Scalar(*scalar), true);
            self.scope.push(variable);
        }
        members.into_iter().map(|(_, scalar)| scalar).collect()
    }

    /// The value of an immediate: small, extreme, the group size, or close to the length of a tensor.
    pub(super) fn immediate(&mut self, scalar: Scalar, lengths: &[usize]) -> String {
        let small = self.random.below(8);
        match (scalar, self.random.below(7)) {
            (scalar, _) if scalar.is_float() => small.to_string(),
            (Scalar::I32, 0) => "-1".to_owned(),
            (Scalar::I32, 1) => (*self.random.one(&["2147483647", "-2147483648"])).to_owned(),
            (Scalar::I64, 0) => (*self.random.one(&["-1", "-4"])).to_owned(),
            (Scalar::I64, 1) => {
                (*self.random.one(&["9223372036854775807", "-9223372036854775808"])).to_owned()
            }
            (Scalar::U32, 0) => "4294967295".to_owned(),
            (Scalar::U64, 0) => "18446744073709551615".to_owned(),
            (_, 2) => self.lanes.to_string(),
            (_, 3) => "0".to_owned(),
            (_, 4) => (*self.random.one(lengths) + self.random.below(3)).saturating_sub(1).to_string(),
            _ => small.to_string(),
        }
    }

    /// Declares overrides; returns those that need a value at load time, with their values.
    pub(super) fn declare_overrides(&mut self) -> Vec<(String, String)> {
        let mut given = Vec::new();
        for at in 0..self.random.below(5).saturating_sub(2) {
            let scalar = *self.random.one(&[Scalar::U32, Scalar::I32, Scalar::F32, Scalar::Bool]);
            let name = format!("o{at}{}", self.tag);
            let value = if scalar == Scalar::Bool {
                self.random.once_in(2).to_string()
            } else {
                (1 + self.random.below(6)).to_string()
            };
            if self.random.once_in(2) {
                self.global(&format!("override {name}: {};", scalar.name()));
                given.push((name.clone(), value));
            } else {
                let suffix = if scalar.is_float() { ".0" } else { scalar.suffix() };
                self.global(&format!("override {name}: {} = {value}{suffix};", scalar.name()));
            }
            let variable = Variable::value(&name, Type::Scalar(scalar), true);
            self.scope.push(Variable { constant: true, ..variable });
        }
        if self.random.once_in(6) {
            let name = format!("lanes{}", self.tag);
            self.global(&format!("override {name}: u32 = 1;"));
            given.push((name.clone(), self.lanes.to_string()));
            self.size_override = Some(name);
        }
        given
    }

    /// Declares the tensors; returns their lengths.
    pub(super) fn declare_tensors(&mut self, total: usize) -> Vec<usize> {
        let tag = self.tag.clone();
        let all = total * self.words;
        let mut lengths = vec![*self.random.one(&[all, all, all, all + 3, all - 1, all / 2, 1, 0])];
        self.global(&format!("\u{1}group(0) \u{1}binding(0) var<storage, read_write> y{tag}: array<u32>;"));
        self.output = Some(format!("y{tag}"));
        let element = (self.random.below(3) > 0).then(|| self.ty_in_memory());
        if let Some(element) = &element {
            let at = lengths.len();
            self.tensors.push(format!("x{tag}"));
            self.global(&format!(
                "\u{1}group(0) \u{1}binding({at}) var<storage, read> x{tag}: array<{element}>;"
            ));
            let length = *self.random.one(&[1, 5, 7, 16, 64, 61, 0]);
            lengths.push(length);
            self.inputs(&format!("x{tag}"), element, length);
        }
        if self.random.once_in(2) {
            // Often of the same type as the input, so that whole elements are copied.
            let element = match element.filter(|_| self.random.once_in(2)) {
                Some(element) => element,
                None => self.ty_in_memory(),
            };
            let at = lengths.len();
            self.tensors.push(format!("z{tag}"));
            self.global(&format!(
                "\u{1}group(0) \u{1}binding({at}) var<storage, read_write> z{tag}: array<{element}>;"
            ));
            lengths.push(*self.random.one(&[total, total, total, total + 1, total - 1]));
            self.own_tensor = Some((format!("z{tag}"), element));
        }
        if self.random.once_in(3) {
            let at = lengths.len();
            self.tensors.push(format!("t{tag}"));
            self.global(&format!(
                "\u{1}group(0) \u{1}binding({at}) var<storage, read_write> t{tag}: array<atomic<u32>>;"
            ));
            lengths.push(self.counters);
            self.totals = Some(format!("t{tag}"));
        }
        lengths
    }

    /// Declares an integer tensor whose rows work-items sum up; returns its length.
    pub(super) fn declare_rows(&mut self, at: usize, total: usize) -> usize {
        let (name, scalar) = (format!("r{}", self.tag), *self.random.one(&[Scalar::U32, Scalar::I32]));
        let element = scalar.name();
        self.global(&format!(
            "\u{1}group(0) \u{1}binding({at}) var<storage, read> {name}: array<{element}>;"
        ));
        self.tensors.push(name.clone());
        self.rows = Some((name, scalar));
        *self.random.one(&[total * 3, total * 3, total * 3 - 1, total * 17, 61, 1, 0])
    }

    /// Adds a read-only tensor to the scope.
    pub(super) fn inputs(&mut self, name: &str, element: &Type, length: usize) {
        // It is used like an array of this length.
        let ty = Type::Array(Box::new(element.clone()), length.max(1));
        let variable = Variable::value(name, ty, true);
        self.scope.push(Variable { space: Space::Tensor, ..variable });
    }

    pub(super) fn declare_privates(&mut self) {
        for at in 0..self.random.below(3) {
            let (name, ty) = (format!("p{at}{}", self.tag), self.ty(2));
            let init = if self.random.once_in(3) { format!(" = {}", ty.zero()) } else { String::new() };
            self.global(&format!("var<private> {name}: {ty}{init};"));
            self.privates.push((name.clone(), ty.clone()));
            let variable = Variable::value(&name, ty, false);
            self.scope.push(Variable { space: Space::Private, writable: true, ..variable });
        }
    }

    /// Declares arrays in work-group memory, with one element per work-item.
    pub(super) fn shared_arrays(&mut self) -> Vec<Variable> {
        let tag = self.tag.clone();
        let mut arrays = Vec::new();
        for at in 0..self.random.below(3) {
            let element = if self.random.once_in(4) { self.ty(1) } else { Type::Scalar(self.scalar(false)) };
            let name = format!("w{at}{tag}");
            let count = self.size_override.clone().unwrap_or_else(|| self.lanes.to_string());
            self.global(&format!("var<workgroup> {name}: array<{element}, {count}>;"));
            let ty = Type::Array(Box::new(element), self.lanes);
            let variable = Variable::value(&name, ty, false);
            arrays.push(Variable {
                space: Space::Shared(self.shared_uses.len()),
                writable: true,
                ..variable
            });
            self.shared_uses.push(if self.random.once_in(4) { SharedUse::Read } else { SharedUse::Own(0) });
        }
        if self.random.once_in(3) {
            self.global(&format!("var<workgroup> c{tag}: array<atomic<u32>, {}>;", self.counters));
            self.workgroup_counters = Some(format!("c{tag}"));
        }
        if self.random.once_in(4) {
            self.global(&format!("var<workgroup> a{tag}: array<atomic<u32>, {}>;", self.lanes));
            self.own_atomics = Some(format!("a{tag}"));
        }
        if self.random.once_in(2) {
            let ty = if self.random.once_in(3) { self.padded_type() } else { Type::Scalar(Scalar::U32) };
            self.global(&format!("var<workgroup> u{tag}: {ty};"));
            self.uniform_cell = Some((format!("u{tag}"), ty));
        }
        arrays
    }
}
