//! What an entry point takes.

use runtime_core::{Access, DType, Error, ErrorKind, Result};

use super::uses::Use;
use super::{Code, Id, Size, Type, Variable, class};

/// `WorkgroupSize`.
const WORK_GROUP_SIZE: u32 = 25;
/// Members of push constants at most.
const MOST_MEMBERS: usize = 1024;

/// What an entry point takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Its tensors, by binding. Where the code has no other entry point, those count too that it declares and never uses.
    pub(crate) slots: Vec<Slot>,
    /// How many of them, from the first on, it cannot do without.
    pub(crate) used: usize,
    /// Its push constants.
    pub(crate) block: Block,
    pub(crate) group_size: [u32; 3],
    /// Bytes of work-group memory.
    pub(crate) shared_bytes: u32,
}

/// A storage buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) access: Access,
    /// The type that its elements are made of, where the code says. Unsigned words say nothing: they stand for anything.
    pub(crate) dtype: Option<DType>,
}

impl Slot {
    /// Two buffers at one binding are one tensor, seen in two ways: it is touched in both.
    fn and(self, other: Self) -> Self {
        let access = if self.access == other.access { self.access } else { Access::ReadWrite };
        Self { access, dtype: self.dtype.filter(|_| self.dtype == other.dtype) }
    }
}

/// Push constants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) bytes: u32,
    /// Where each member lies, how large it is, and its type, if it is a scalar.
    pub(crate) members: Vec<Member>,
}

/// A member of the push constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    pub(crate) dtype: Option<DType>,
}

fn refused(entry: &str, what: impl std::fmt::Display) -> Error {
    Error::unsupported(format!("entry point \"{entry}\": {what}"))
}

impl Code {
    /// What an entry point takes, with these constants.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` for what is neither a storage buffer of set 0 nor a push constant.
    pub(crate) fn interface(&self, name: &str, specialised: &[(u32, Vec<u8>)]) -> Result<Interface> {
        let entry = self.entries.iter().find(|entry| entry.name == name);
        let entry =
            entry.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no entry point \"{name}\"")))?;
        let mut uses: Vec<_> =
            self.uses(entry.function).into_iter().map(|(id, how)| (id, Some(how))).collect();
        uses.extend(self.unused(&uses));
        uses.sort_by_key(|(id, how)| (how.is_none(), *id));
        let mut used = 0;
        let (mut slots, mut block, mut shared_bytes): (Vec<Option<Slot>>, _, _) =
            (Vec::new(), Block::default(), 0);
        for (id, how) in uses {
            let Some(&variable) = self.variables.get(&id) else { continue };
            match variable.class {
                _ if how.is_none() && variable.class != class::STORAGE_BUFFER => {}
                class::PUSH_CONSTANT => block = self.block(name, variable, specialised)?,
                class::WORK_GROUP => {
                    let bytes = self.pointee(variable).map_or(0, |ty| self.bytes(ty, specialised));
                    // More than any device has.
                    shared_bytes = u32::saturating_add(shared_bytes, bytes);
                }
                class::UNIFORM_CONSTANT => {
                    return Err(refused(name, "images and samplers cannot be kernel arguments"));
                }
                class::UNIFORM | class::STORAGE_BUFFER => {
                    let (binding, slot) = self.slot(name, id, variable, how.unwrap_or_default())?;
                    if how.is_some() {
                        used = used.max(binding + 1);
                    }
                    if slots.len() <= binding {
                        slots.resize(binding + 1, None);
                    }
                    slots[binding] = Some(match slots[binding] {
                        Some(known) if how.is_some() => known.and(slot),
                        Some(known) => known,
                        None => slot,
                    });
                }
                _ => {}
            }
        }
        // A buffer that the entry point never touches is an argument all the same: the next one has its own place.
        let unused = Slot { access: Access::Read, dtype: None };
        Ok(Interface {
            slots: slots.into_iter().map(|slot| slot.unwrap_or(unused)).collect(),
            used,
            block,
            group_size: self.group_size(name, entry.function, specialised)?,
            shared_bytes,
        })
    }

    /// Variables that the only entry point does not use.
    fn unused(&self, used: &[(Id, Option<Use>)]) -> Vec<(Id, Option<Use>)> {
        let known = |id: &Id| used.iter().any(|(other, _)| other == id);
        let ids = self.variables.keys().filter(|id| self.entries.len() == 1 && !known(id));
        ids.map(|id| (*id, None)).collect()
    }

    fn pointee(&self, variable: Variable) -> Option<Id> {
        match self.types.get(&variable.ty)? {
            Type::Pointer { to, class } if *class == variable.class => Some(*to),
            _ => None,
        }
    }

    fn slot(&self, entry: &str, id: Id, variable: Variable, how: Use) -> Result<(usize, Slot)> {
        let own = self.decoration(id);
        let ty = self.pointee(variable).ok_or_else(|| refused(entry, "a buffer has no type"))?;
        let whole = self.decoration(ty);
        let called = self.names.get(&id).filter(|name| !name.is_empty()).or_else(|| self.names.get(&ty));
        let called = called.map_or("a buffer", String::as_str);
        if variable.class == class::UNIFORM && !whole.buffer_block {
            return Err(refused(entry, format_args!("`{called}` is a uniform buffer; declare it `buffer`")));
        }
        let Some(Type::Struct { members }) = self.types.get(&ty) else {
            return Err(refused(
                entry,
                format_args!("`{called}` is an array of buffers, which cannot be a kernel argument"),
            ));
        };
        let binding = match (own.set.unwrap_or(0), own.binding) {
            (0, Some(binding)) if binding < 1024 => binding as usize,
            (set, binding) => {
                let binding = binding.map_or_else(|| "none".to_owned(), |binding| binding.to_string());
                let place = format_args!(
                    "`{called}` is at set {set}, binding {binding}; arguments are bindings 0, 1, … of set 0"
                );
                return Err(refused(entry, place));
            }
        };
        let all = |flag: fn(&super::MemberDecorations) -> bool| {
            !members.is_empty()
                && (0..).zip(members).all(|(index, _)| self.members.get(&(ty, index)).is_some_and(flag))
        };
        let read_only = own.read_only || all(|member| member.read_only);
        let write_only = own.write_only || all(|member| member.write_only);
        let access = match (how.reads && !write_only, how.writes && !read_only) {
            (true, true) => Access::ReadWrite,
            (false, true) => Access::Write,
            (_, false) => Access::Read,
        };
        // A number before the elements makes bytes of all of it, unless it is one of them.
        let dtype = members.last().and_then(|member| self.element(*member));
        let dtype = dtype.filter(|_| members.iter().all(|member| self.element(*member) == dtype));
        Ok((binding, Slot { access, dtype: dtype.filter(|dtype| *dtype != DType::U32) }))
    }

    /// The scalar that a type is made of.
    fn element(&self, ty: Id) -> Option<DType> {
        match self.types.get(&ty)? {
            Type::RuntimeArray { of }
            | Type::Array { of, .. }
            | Type::Vector { of, .. }
            | Type::Matrix { of, .. } => self.element(*of),
            scalar => dtype(scalar),
        }
    }

    fn block(&self, entry: &str, variable: Variable, specialised: &[(u32, Vec<u8>)]) -> Result<Block> {
        let mut block = Block::default();
        if let Some(ty) = self.pointee(variable) {
            self.members(ty, 0, specialised, &mut block.members).ok_or_else(|| {
                refused(
                    entry,
                    format_args!(
                        "its push constants have more than {MOST_MEMBERS} members, or lie beyond 4 GiB; use a buffer"
                    ),
                )
            })?;
        }
        let ends = block.members.iter().map(|member| member.offset + member.bytes);
        // The driver counts in words.
        block.bytes = ends.max().unwrap_or(0).next_multiple_of(4);
        Ok(block)
    }

    /// The members of a structure, and of those within it; `None` if they are too many, or lie too far.
    fn members(
        &self,
        ty: Id,
        base: u32,
        specialised: &[(u32, Vec<u8>)],
        found: &mut Vec<Member>,
    ) -> Option<()> {
        let Some(Type::Struct { members }) = self.types.get(&ty) else { return Some(()) };
        for (index, member) in (0..).zip(members) {
            let known = self.members.get(&(ty, index)).copied().unwrap_or_default();
            let offset = base.checked_add(known.offset)?;
            match self.types.get(member) {
                Some(Type::Struct { .. }) => self.members(*member, offset, specialised, found)?,
                Some(Type::Matrix { columns, of }) if known.matrix_stride > 0 => {
                    let rows = match self.types.get(of) {
                        Some(Type::Vector { count, .. }) if known.row_major => count,
                        _ => columns,
                    };
                    let bytes = rows.checked_mul(known.matrix_stride)?;
                    found.push(Member { offset, bytes, dtype: None });
                }
                Some(plain) => {
                    let bytes = self.bytes(*member, specialised);
                    found.push(Member { offset, bytes, dtype: dtype(plain) });
                }
                None => {}
            }
            let end = found.last().map_or(Some(0), |member| member.offset.checked_add(member.bytes))?;
            if found.len() > MOST_MEMBERS || end.checked_next_multiple_of(4).is_none() {
                return None;
            }
        }
        Some(())
    }

    /// Bytes of a type.
    fn bytes(&self, ty: Id, specialised: &[(u32, Vec<u8>)]) -> u32 {
        match self.types.get(&ty) {
            Some(Type::Bool) => 4,
            Some(Type::Int { bits, .. } | Type::Float { bits }) => bits / 8,
            Some(Type::Vector { of, count }) => count.saturating_mul(self.bytes(*of, specialised)),
            Some(Type::Matrix { of, columns }) => columns.saturating_mul(self.bytes(*of, specialised)),
            Some(Type::Array { of, length }) => {
                let stride = self.decoration(ty).stride.unwrap_or_else(|| self.bytes(*of, specialised));
                stride.saturating_mul(self.number(*length, specialised).unwrap_or(0))
            }
            Some(Type::Struct { members }) => members
                .iter()
                .fold(0, |sum: u32, member| sum.saturating_add(self.bytes(*member, specialised))),
            _ => 0,
        }
    }

    fn group_size(&self, name: &str, function: Id, specialised: &[(u32, Vec<u8>)]) -> Result<[u32; 3]> {
        let builtin = self.decorations.iter().find(|(_, known)| known.builtin == Some(WORK_GROUP_SIZE));
        let parts = builtin.and_then(|(id, _)| self.parts(*id)).and_then(|parts| parts.first_chunk::<3>());
        let size = match parts {
            Some(parts) => Some(Size::Constants(*parts)),
            None => self.sizes.get(&function).copied(),
        };
        let number = |id: Id| {
            self.number(id, specialised).ok_or_else(|| {
                refused(
                    name,
                    "its work-group size is computed of specialisation constants; give it as numbers",
                )
            })
        };
        match size {
            Some(Size::Literal(size)) => Ok(size),
            Some(Size::Constants([x, y, z])) => Ok([number(x)?, number(y)?, number(z)?]),
            None => Err(refused(name, "it has no work-group size")),
        }
    }
}

fn dtype(ty: &Type) -> Option<DType> {
    Some(match ty {
        Type::Int { bits: 8, signed: true } => DType::I8,
        Type::Int { bits: 8, .. } => DType::U8,
        Type::Int { bits: 16, signed: true } => DType::I16,
        Type::Int { bits: 16, .. } => DType::U16,
        Type::Int { bits: 32, signed: true } => DType::I32,
        Type::Int { bits: 32, .. } => DType::U32,
        Type::Int { bits: 64, signed: true } => DType::I64,
        Type::Int { bits: 64, .. } => DType::U64,
        Type::Float { bits: 16 } => DType::F16,
        Type::Float { bits: 32 } => DType::F32,
        Type::Float { bits: 64 } => DType::F64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spirv::words;

    /// An instruction.
    fn op(operation: u32, operands: &[u32]) -> Vec<u32> {
        let length = u32::try_from(operands.len() + 1).unwrap();
        [&[length << 16 | operation], operands].concat()
    }

    /// An instruction with a name at its end.
    fn named(operation: u32, operands: &[u32], name: &str) -> Vec<u32> {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(name.len() / 4 * 4 + 4, 0);
        let words = bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        op(operation, &operands.iter().copied().chain(words).collect::<Vec<_>>())
    }

    /// Two entry points, `a` (90) and `b` (91), with buffers of their own (30 and 31) at binding 0; `b` also has one
    /// (32) at binding 2, which it only stores to through a function that it calls (92).
    fn two_entries() -> Code {
        let mut code = vec![0x0723_0203, 0x0001_0300, 0, 100, 0];
        let decorate = |target, rest: &[u32]| op(71, &[&[target], rest].concat());
        let function = |id: u32, body: &[Vec<u32>]| -> Vec<u32> {
            [op(54, &[2, id, 0, 3]), op(248, &[id + 100]), body.concat(), op(253, &[]), op(56, &[])].concat()
        };
        let element = |result: u32, variable: u32| op(65, &[14, result, variable, 20, 20]);
        let text = [
            op(17, &[1]),
            named(15, &[5, 90], "a"),
            named(15, &[5, 91], "b"),
            op(16, &[90, 17, 8, 4, 1]),
            op(331, &[91, 38, 40, 20, 21]),
            named(5, &[40], "WIDTH"),
            decorate(40, &[1, 7]),
            decorate(10, &[2]),
            decorate(11, &[6, 4]),
            op(72, &[10, 0, 35, 0]),
            decorate(30, &[24]),
            [30, 31, 32].map(|id| decorate(id, &[34, 0])).concat(),
            [(30, 0), (31, 0), (32, 2)].map(|(id, binding)| decorate(id, &[33, binding])).concat(),
            op(19, &[2]),
            op(33, &[3, 2]),
            op(22, &[4, 32]),
            op(21, &[5, 32, 0]),
            op(29, &[11, 4]),
            op(30, &[10, 11]),
            op(32, &[12, 12, 10]),
            op(32, &[14, 12, 4]),
            op(28, &[15, 4, 40]),
            op(32, &[16, 4, 15]),
            op(43, &[5, 20, 0]),
            op(43, &[5, 21, 1]),
            op(50, &[5, 40, 16]),
            [30, 31, 32].map(|id| op(59, &[12, id, 12])).concat(),
            op(59, &[16, 33, 4]),
            function(90, &[element(50, 30), op(61, &[4, 51, 50])]),
            function(91, &[element(52, 31), op(61, &[4, 53, 52]), op(62, &[52, 53]), op(57, &[2, 54, 92])]),
            function(92, &[element(55, 32), op(62, &[55, 53]), op(65, &[14, 56, 33, 20])]),
        ];
        code.extend(text.concat());
        Code::read(&code).unwrap()
    }

    #[test]
    fn each_entry_point_has_its_own_buffers() {
        let code = two_entries();
        assert_eq!(code.entry_names(), ["a", "b"]);
        let a = code.interface("a", &[]).unwrap();
        assert_eq!((a.slots.len(), a.used, a.group_size, a.shared_bytes), (1, 1, [8, 4, 1], 0));
        assert_eq!(a.slots[0], Slot { access: Access::Read, dtype: Some(DType::F32) });
        let b = code.interface("b", &[]).unwrap();
        let accesses: Vec<_> = b.slots.iter().map(|slot| slot.access).collect();
        assert_eq!(
            accesses,
            [Access::ReadWrite, Access::Read, Access::Write],
            "the middle one is never touched"
        );
        assert_eq!(code.interface("c", &[]).unwrap_err().kind(), ErrorKind::NotFound);
    }

    /// An entry point that loads from one buffer (30, words behind a float) and stores to another (31, floats), which
    /// are both at binding 0, with push constants (32) of a matrix of two columns and three rows.
    fn one_binding_twice(row_major: bool) -> Code {
        let decorate = |target, rest: &[u32]| op(71, &[&[target], rest].concat());
        let element = |result: u32, ty: u32, variable: u32| op(65, &[ty, result, variable, 20, 20]);
        let text = [
            op(17, &[1]),
            named(15, &[5, 90], "main"),
            op(16, &[90, 17, 1, 1, 1]),
            [10, 11, 18].map(|id| decorate(id, &[2])).concat(),
            op(72, &[11, 1, 35, 4]),
            [30, 31].map(|id| [decorate(id, &[34, 0]), decorate(id, &[33, 0])].concat()).concat(),
            op(72, &[18, 0, if row_major { 4 } else { 5 }]),
            op(72, &[18, 0, 7, 16]),
            op(19, &[2]),
            op(33, &[3, 2]),
            op(22, &[4, 32]),
            op(21, &[5, 32, 0]),
            op(29, &[6, 4]),
            op(29, &[7, 5]),
            op(30, &[10, 6]),
            op(30, &[11, 4, 7]),
            op(23, &[16, 4, 3]),
            op(24, &[17, 16, 2]),
            op(30, &[18, 17]),
            [(12, 11), (13, 10), (14, 5), (15, 4)].map(|(id, to)| op(32, &[id, 12, to])).concat(),
            op(32, &[19, 9, 18]),
            op(43, &[5, 20, 0]),
            op(59, &[12, 30, 12]),
            op(59, &[13, 31, 12]),
            op(59, &[19, 32, 9]),
            op(54, &[2, 90, 0, 3]),
            op(248, &[91]),
            [element(50, 14, 30), op(61, &[5, 51, 50])].concat(),
            [element(52, 15, 31), op(62, &[52, 20])].concat(),
            [op(65, &[19, 53, 32]), op(253, &[]), op(56, &[])].concat(),
        ];
        let header = vec![0x0723_0203, 0x0001_0300, 0, 100, 0];
        Code::read(&[header, text.concat()].concat()).unwrap()
    }

    #[test]
    fn buffers_at_one_binding_are_one_tensor() {
        let main = one_binding_twice(false).interface("main", &[]).unwrap();
        assert_eq!(main.slots, [Slot { access: Access::ReadWrite, dtype: None }]);
        assert_eq!(main.used, 1);
    }

    #[test]
    fn rows_of_a_matrix_lie_a_stride_apart() {
        let bytes = |row_major| one_binding_twice(row_major).interface("main", &[]).unwrap().block.bytes;
        assert_eq!([bytes(false), bytes(true)], [32, 48]);
    }

    #[test]
    fn constants_make_the_size_of_a_group_and_of_its_memory() {
        let code = two_entries();
        let plain = code.interface("b", &[]).unwrap();
        assert_eq!((plain.group_size, plain.shared_bytes), ([16, 0, 1], 64));
        for given in ["WIDTH=32", "7=32"] {
            let special = [code.specialise(given).unwrap()];
            assert_eq!(special, [(7, vec![32, 0, 0, 0])]);
            let special = code.interface("b", &special).unwrap();
            assert_eq!((special.group_size, special.shared_bytes), ([32, 0, 1], 128));
        }
        let twice = code.specialise_all(["WIDTH=32", "7=64"].into_iter()).unwrap_err();
        assert!(twice.message().contains("given twice"), "{twice}");
        for (given, said) in
            [("WIDHT=3", "did you mean"), ("WIDTH", "write NAME=VALUE"), ("WIDTH=-1", "no value")]
        {
            let error = code.specialise(given).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn push_constants_are_read_from_a_compilers_code() {
        let code = Code::read(&words(include_bytes!("../builtin/fill.spv")).unwrap()).unwrap();
        let fill = code.interface("main", &[]).unwrap();
        assert_eq!((fill.block.bytes, fill.group_size, fill.used), (24, [256, 1, 1], 1));
        assert_eq!(fill.slots, [Slot { access: Access::Write, dtype: None }], "words may stand for anything");
        let offsets: Vec<_> = fill.block.members.iter().map(|member| (member.offset, member.bytes)).collect();
        assert_eq!(offsets, [(0, 4), (4, 4), (8, 4), (12, 4), (16, 4), (20, 4)]);
        assert!(fill.block.members.iter().all(|member| member.dtype == Some(DType::U32)));
    }
}
