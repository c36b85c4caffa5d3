//! Converts expressions to WGSL.

use super::{Base, Input, Operation, Tree, Value};

/// The WGSL text of `tree`, fully parenthesised.
#[must_use]
pub fn text(tree: &Tree, inputs: &[Input]) -> String {
    let arguments: Vec<_> = tree.arguments.iter().map(|argument| text(argument, inputs)).collect();
    let float = tree.ty.base == Base::F32;
    let infix = |sign: &str| format!("({} {sign} {})", arguments[0], arguments[1]);
    let call = |name: &str| format!("{name}({})", arguments.join(", "));
    match &tree.operation {
        Operation::Input(index) => inputs[*index].name.clone(),
        Operation::Literal(value) => literal(tree.ty.base, *value),
        Operation::Multiply if float => {
            let cut = |side: usize| limited(&arguments[side], tree.arguments[side].ty.width, "512.0");
            limited(&format!("round({} * {})", cut(0), cut(1)), tree.ty.width, "512.0")
        }
        Operation::Dot if float => {
            let width = tree.arguments[0].ty.width;
            let cut = |side: usize| limited(&arguments[side], width, "512.0");
            limited(&format!("round(dot({}, {}))", cut(0), cut(1)), 1, "512.0")
        }
        // WGSL forbids some constants as bounds and ranges, for which the same is computed in another way.
        Operation::Clamp if tree.arguments[1..].iter().all(is_constant) => {
            format!("min(max({}, {}), {})", arguments[0], arguments[1], arguments[2])
        }
        Operation::ExtractBits | Operation::InsertBits
            if tree.arguments[tree.arguments.len() - 2..].iter().all(is_constant) =>
        {
            let (others, range) = arguments.split_at(arguments.len() - 2);
            let offset = format!("min({}, 32u)", range[0]);
            let others = others.join(", ");
            format!("{}({others}, {offset}, min({}, 32u - {offset}))", name(&tree.operation), range[1])
        }
        Operation::ClampFloat => {
            let bound = |value: &str| splat(value, tree.ty.width);
            format!("clamp({}, {}, {})", arguments[0], bound("-8.5"), bound("100.0"))
        }
        Operation::Convert if float && tree.arguments[0].ty.base != Base::Bool => {
            let (from, width) = (tree.arguments[0].ty, tree.ty.width);
            let low = Tree::literal([255; 4], super::Type::scalar(from.base));
            let low = text(&low, inputs);
            let low = if width == 1 { low } else { format!("{}({low})", from.name()) };
            format!("{}({} & {low})", tree.ty.name(), arguments[0])
        }
        Operation::Convert | Operation::Construct | Operation::Splat => call(&tree.ty.name()),
        Operation::Bitcast => call(&format!("bitcast<{}>", tree.ty.name())),
        Operation::Swizzle(components) => {
            let names: String = components.iter().map(|component| ["x", "y", "z", "w"][*component]).collect();
            format!("{}.{names}", arguments[0])
        }
        Operation::Index => {
            format!("{}[{} % {}u]", arguments[0], arguments[1], tree.arguments[0].ty.width)
        }
        Operation::Negate => format!("(-{})", arguments[0]),
        Operation::Complement => format!("(~{})", arguments[0]),
        Operation::Not => format!("(!{})", arguments[0]),
        operation => match sign(operation) {
            Some(sign) => infix(sign),
            None => call(name(operation)),
        },
    }
}

/// `e` clamped to ± `bound`.
fn limited(e: &str, width: usize, bound: &str) -> String {
    format!("clamp({e}, {}, {})", splat(&format!("-{bound}"), width), splat(bound, width))
}

fn splat(value: &str, width: usize) -> String {
    if width == 1 { value.to_owned() } else { format!("vec{width}<f32>({value})") }
}

fn literal(base: Base, value: Value) -> String {
    match base {
        Base::Bool => (value[0] != 0).to_string(),
        // The lowest value has no literal of its own type.
        Base::I32 if value[0] == 0x8000_0000 => "i32(-2147483648)".to_owned(),
        Base::I32 => format!("{}i", value[0] as i32),
        Base::U32 => format!("{}u", value[0]),
        Base::F32 => format!("{:?}f", f32::from_bits(value[0])),
    }
}

const fn sign(operation: &Operation) -> Option<&'static str> {
    Some(match operation {
        Operation::Add => "+",
        Operation::Subtract => "-",
        Operation::Multiply => "*",
        Operation::Divide => "/",
        Operation::Remainder => "%",
        Operation::And => "&",
        Operation::Or => "|",
        Operation::Xor => "^",
        Operation::ShiftLeft => "<<",
        Operation::ShiftRight => ">>",
        Operation::Both => "&&",
        Operation::Either => "||",
        Operation::Equal => "==",
        Operation::Unequal => "!=",
        Operation::Less => "<",
        Operation::LessEqual => "<=",
        Operation::Greater => ">",
        Operation::GreaterEqual => ">=",
        _ => return None,
    })
}

/// Whether a tree has no inputs.
fn is_constant(tree: &Tree) -> bool {
    !matches!(tree.operation, Operation::Input(_)) && tree.arguments.iter().all(is_constant)
}

const fn name(operation: &Operation) -> &'static str {
    match operation {
        Operation::Select => "select",
        Operation::Min => "min",
        Operation::Max => "max",
        Operation::Clamp => "clamp",
        Operation::Abs => "abs",
        Operation::Sign => "sign",
        Operation::CountOneBits => "countOneBits",
        Operation::CountLeadingZeros => "countLeadingZeros",
        Operation::CountTrailingZeros => "countTrailingZeros",
        Operation::FirstLeadingBit => "firstLeadingBit",
        Operation::FirstTrailingBit => "firstTrailingBit",
        Operation::ReverseBits => "reverseBits",
        Operation::ExtractBits => "extractBits",
        Operation::InsertBits => "insertBits",
        Operation::Dot => "dot",
        Operation::All => "all",
        Operation::Any => "any",
        Operation::Floor => "floor",
        Operation::Ceil => "ceil",
        Operation::Round => "round",
        Operation::Trunc => "trunc",
        Operation::Fract => "fract",
        Operation::PackU8 => "pack4xU8",
        Operation::PackI8 => "pack4xI8",
        Operation::PackU8Clamp => "pack4xU8Clamp",
        Operation::PackI8Clamp => "pack4xI8Clamp",
        Operation::UnpackU8 => "unpack4xU8",
        Operation::UnpackI8 => "unpack4xI8",
        Operation::DotU8 => "dot4U8Packed",
        Operation::DotI8 => "dot4I8Packed",
        _ => "",
    }
}
