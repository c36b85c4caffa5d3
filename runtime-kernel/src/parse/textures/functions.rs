//! The WGSL functions that take the place of `textureLoad`, `textureStore` and `textureDimensions`.

use super::Texture;
use super::format::Format;

/// The functions of a texture. `layout` is the expression of its shape and strides.
pub(super) fn functions(texture: &Texture<'_>, layout: &str) -> String {
    let (name, access) = (texture.name, texture.access);
    let mut text = format!(" {} {}", dimensions(texture, layout), texel_number(texture, layout));
    if texture.is_arrayed {
        text += &format!(" fn textureNumLayers_{name}() -> u32 {{ return {layout}.shape[0]; }}");
    }
    if access != "write" {
        text += &load(texture, layout);
    }
    if access != "read" {
        text += &store(texture);
    }
    text
}

fn dimensions(texture: &Texture<'_>, layout: &str) -> String {
    let extents: Vec<_> = texture.extents().map(|at| format!("{layout}.shape[{at}]")).collect();
    let ty = vector(texture.dimensions, "u32");
    format!("fn textureDimensions_{}() -> {ty} {{ return {ty}({}); }}", texture.name, extents.join(", "))
}

/// A function for the number of a texel in row-major order; `0xffffffff` for a place outside of the texture, or a tensor
/// without the channels of the format.
fn texel_number(texture: &Texture<'_>, layout: &str) -> String {
    let name = texture.name;
    let axes: &[_] = match texture.dimensions {
        1 => &["u32(at)"],
        2 => &["u32(at.x)", "u32(at.y)"],
        _ => &["u32(at.x)", "u32(at.y)", "u32(at.z)"],
    };
    let mut conditions: Vec<_> = axes
        .iter()
        .zip(texture.extents())
        .map(|(axis, at)| format!("{axis} >= {layout}.shape[{at}]"))
        .collect();
    let mut number = String::from("0u");
    if texture.is_arrayed {
        conditions.push(format!("u32(layer) >= {layout}.shape[0]"));
        "u32(layer)".clone_into(&mut number);
    }
    for (axis, at) in axes.iter().zip(texture.extents()).rev() {
        number = format!("({number} * {layout}.shape[{at}] + {axis})");
    }
    if let Some(channels) = texture.format.channels() {
        conditions.push(format!("{layout}.shape[{}] != {channels}u", texture.rank() - 1));
    }
    format!(
        "fn textureNumber_{name}({}) -> u32 {{ if {} {{ return 0xffffffffu; }} return {number}; }}",
        place(texture),
        conditions.join(" || ")
    )
}

fn load(texture: &Texture<'_>, layout: &str) -> String {
    let (name, scalar) = (texture.name, texture.format.scalar());
    let result = if texture.format == Format::Depth { scalar.to_owned() } else { vector(4, scalar) };
    let (level, outside) = match texture.is_storage {
        true => ("", "n == 0xffffffffu"),
        false => (", level: i32", "n == 0xffffffffu || level != 0"),
    };
    let texel = match texture.format {
        Format::Depth => format!("return {name}[n];"),
        Format::Plain { channels: Some(channels), .. } => {
            let parts = (0..channels).map(|at| format!("{name}[n * {channels}u + {at}u]"));
            let rest = ["0", "0", "0", "1"][channels..].iter().map(|fill| format!("{scalar}({fill})"));
            let parts: Vec<_> = parts.chain(rest).collect();
            format!("return {result}({});", parts.join(", "))
        }
        Format::Plain { channels: None, .. } => {
            let last = texture.rank() - 1;
            let others = [("y", 1), ("z", 2), ("w", 3)]
                .map(|(part, at)| format!("if c > {at}u {{ v.{part} = {name}[n * c + {at}u]; }} "));
            format!(
                "let c = {layout}.shape[{last}]; var v = {result}({name}[n * c], 0, 0, 1); {}return v;",
                others.concat()
            )
        }
        Format::Packed(packed) => format!("let i = n * {}u; return {};", packed.words(), packed.texel(name)),
    };
    format!(
        " fn textureLoad_{name}({}{level}) -> {result} {{ let n = textureNumber_{name}({}); \
         if {outside} {{ return {result}(); }} {texel} }}",
        place(texture),
        arguments(texture)
    )
}

fn store(texture: &Texture<'_>) -> String {
    let (name, value) = (texture.name, vector(4, texture.format.scalar()));
    let words: Vec<String> = match texture.format {
        Format::Packed(packed) => packed.packed(),
        Format::Plain { channels, .. } => {
            let parts = ["v.x", "v.y", "v.z", "v.w"].map(str::to_owned).into_iter();
            parts.take(channels.unwrap_or(4)).collect()
        }
        Format::Depth => Vec::new(),
    };
    let count = words.len();
    let stores: String =
        words.iter().zip(0..).map(|(word, at)| format!("{name}[n * {count}u + {at}u] = {word}; ")).collect();
    format!(
        " fn textureStore_{name}({}, v: {value}) {{ let n = textureNumber_{name}({}); \
         if n != 0xffffffffu {{ {stores}}} }}",
        place(texture),
        arguments(texture)
    )
}

/// The parameters of a place in a texture.
fn place(texture: &Texture<'_>) -> String {
    let layer = if texture.is_arrayed { ", layer: i32" } else { "" };
    format!("at: {}{layer}", texture.coordinates())
}

const fn arguments(texture: &Texture<'_>) -> &'static str {
    if texture.is_arrayed { "at, layer" } else { "at" }
}

/// The type of so many components.
pub(super) fn vector(size: usize, scalar: &str) -> String {
    if size == 1 { scalar.to_owned() } else { format!("vec{size}<{scalar}>") }
}
