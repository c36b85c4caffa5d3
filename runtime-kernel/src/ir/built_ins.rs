//! The built-in values among the arguments of an entry point.

use naga::{Binding, BuiltIn, FunctionArgument, Handle, Type, TypeInner, UniqueArena};

/// The argument with a built-in value, and its member if the argument is a structure.
pub(crate) fn argument(
    types: &UniqueArena<Type>,
    arguments: &[FunctionArgument],
    wanted: BuiltIn,
) -> Option<(u32, Option<u32>)> {
    let is_wanted =
        |binding: &Option<Binding>| matches!(binding, Some(Binding::BuiltIn(known)) if *known == wanted);
    (0..).zip(arguments).find_map(|(argument, declared)| match &types[declared.ty].inner {
        _ if is_wanted(&declared.binding) => Some((argument, None)),
        TypeInner::Struct { members, .. } => {
            let mut members = (0..).zip(members);
            let (member, _) = members.find(|(_, member)| is_wanted(&member.binding))?;
            Some((argument, Some(member)))
        }
        _ => None,
    })
}

/// The argument with the local invocation index, and its member if it is a structure. An argument of type `word` is added
/// if there is none.
pub(crate) fn local_index(
    types: &UniqueArena<Type>,
    arguments: &mut Vec<FunctionArgument>,
    word: Handle<Type>,
) -> (u32, Option<u32>) {
    argument(types, arguments, BuiltIn::LocalInvocationIndex).unwrap_or_else(|| {
        let binding = Some(Binding::BuiltIn(BuiltIn::LocalInvocationIndex));
        arguments.push(FunctionArgument { name: Some("local_index".to_owned()), ty: word, binding });
        (u32::try_from(arguments.len() - 1).unwrap_or(u32::MAX), None)
    })
}
