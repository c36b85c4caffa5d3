//! Replaces textures by tensors, in the text: a texture that is only used by `textureLoad`, `textureStore` and the
//! functions for its size becomes a storage buffer, and these calls become calls of functions at the end of the text.
//!
//! The shape of the tensor comes with the scalars, as a [`LAYOUT`].

mod format;
mod functions;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use runtime_core::DType;

use self::format::Format;
use self::functions::{functions, vector};
use super::lists::List;
use super::text_edits::{Edit, applied};
use super::tokens::{Token, text, tokens};

/// What the names of structures begin with that receive the layout of a texture's tensor; the number of its dimensions
/// follows.
pub(crate) const LAYOUT: &str = "TextureLayout";
/// What the names of buffer types begin with whose words hold smaller elements; the type of these follows.
const PACKED: &str = "Packed_";
/// The names of a structure and a variable for kernels without scalars.
const SCALARS: [&str; 2] = ["TextureLayouts", "texture_layouts"];

/// More do not fit among the scalars of any device.
const MAX_TEXTURES: usize = 64;

/// The type of the elements in a buffer whose type has this name.
pub(crate) fn packed_dtype(type_name: &str) -> Option<DType> {
    let name = type_name.strip_prefix(PACKED)?;
    [DType::U8, DType::I8, DType::U16, DType::I16, DType::F16]
        .into_iter()
        .find(|dtype| dtype.to_string() == name)
}

/// A texture of the module.
#[derive(Debug)]
struct Texture<'a> {
    name: &'a str,
    /// Dimensions of the texture, without layers and channels.
    dimensions: usize,
    is_arrayed: bool,
    is_storage: bool,
    format: Format,
    /// `read`, `write` or `read_write`.
    access: &'a str,
    /// The places of `var` and of the `;` of its declaration.
    declaration: Range<usize>,
}

impl Texture<'_> {
    /// Dimensions of the tensor.
    fn rank(&self) -> usize {
        self.dimensions + usize::from(self.is_arrayed) + usize::from(self.format.has_channels())
    }

    /// The places of width, height and depth in the tensor's shape.
    fn extents(&self) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + use<> {
        let first = usize::from(self.is_arrayed);
        (first..first + self.dimensions).rev()
    }

    fn coordinates(&self) -> String {
        vector(self.dimensions, "i32")
    }
}

/// `code` with its textures replaced; lines stay the same. Textures that samplers use, or functions as parameters, stay.
pub(crate) fn with_tensors(code: &str) -> Cow<'_, str> {
    if !code.contains("texture_") {
        return Cow::Borrowed(code);
    }
    let tokens: Vec<_> = tokens(code).collect();
    let mut textures = declarations(&tokens);
    if textures.len() > MAX_TEXTURES {
        return Cow::Borrowed(code);
    }
    textures.retain(|texture| is_replaceable(&tokens, texture));
    let names: BTreeSet<_> = textures.iter().map(|texture| texture.name).collect();
    let Some(scalars) = Scalars::of(&tokens) else { return Cow::Borrowed(code) };
    if textures.is_empty() || names.len() < textures.len() {
        return Cow::Borrowed(code);
    }
    let mut edits = scalars.edits(&tokens, &textures);
    for texture in &textures {
        edits.push(declared(&tokens, texture));
        calls(&tokens, texture, &mut edits);
    }
    Cow::Owned(applied(code, edits) + &definitions(&textures, &scalars))
}

/// The textures that the text declares outside of functions and that a tensor can replace.
fn declarations<'a>(tokens: &[Token<'a>]) -> Vec<Texture<'a>> {
    let mut braces = 0usize;
    let mut list = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" => braces += 1,
            "}" => braces = braces.saturating_sub(1),
            "var" if braces == 0 && text(tokens, at + 2) == ":" => list.extend(declaration(tokens, at)),
            _ => {}
        }
    }
    list
}

/// The texture that is declared at a `var`.
fn declaration<'a>(tokens: &[Token<'a>], at: usize) -> Option<Texture<'a>> {
    let end = at + tokens[at..].iter().position(|token| token.text == ";")?;
    let parameters: Vec<_> = tokens[at + 4..end].iter().map(|token| token.text).collect();
    let kind = text(tokens, at + 3).strip_prefix("texture_")?;
    let (shape, is_storage, format, access) = match (kind.strip_prefix("storage_"), &parameters[..]) {
        (Some(shape), ["<", format, ",", access, ">"] | ["<", format, ",", access, ",", ">"]) => {
            (shape, true, format::storage(format)?, *access)
        }
        (None, ["<", scalar, ">"]) => (kind, false, format::sampled(scalar)?, "read"),
        (None, []) => (kind.strip_prefix("depth_")?, false, Format::Depth, "read"),
        _ => return None,
    };
    let (dimensions, is_arrayed) = match shape {
        "1d" => (1, false),
        "2d" => (2, false),
        "2d_array" => (2, true),
        "3d" => (3, false),
        _ => return None,
    };
    let is_access = matches!(access, "read" | "write" | "read_write");
    let name = text(tokens, at + 1);
    is_access.then_some(Texture {
        name,
        dimensions,
        is_arrayed,
        is_storage,
        format,
        access,
        declaration: at..end,
    })
}

/// Whether every use of a texture is a call that has a replacement.
fn is_replaceable(tokens: &[Token<'_>], texture: &Texture<'_>) -> bool {
    let uses = tokens.iter().enumerate().filter(|(_, token)| token.text == texture.name);
    let mut others = uses.filter(|(at, _)| *at != texture.declaration.start + 1);
    others.all(|(at, _)| {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| text(tokens, at));
        let is_member = before(1) == "." || text(tokens, at + 1) == ":";
        is_member || (before(1) == "(" && (function(before(2)).is_some() || before(2) == LEVELS))
    })
}

/// The level that a tensor has is the only one.
const LEVELS: &str = "textureNumLevels";

/// A function that has a replacement.
fn function(name: &str) -> Option<&str> {
    ["textureLoad", "textureStore", "textureDimensions", "textureNumLayers"]
        .into_iter()
        .find(|known| *known == name)
}

/// The declaration of the buffer.
fn declared(tokens: &[Token<'_>], texture: &Texture<'_>) -> Edit {
    let access = if texture.access == "read" { "read" } else { "read_write" };
    let ty = match texture.format.packed_dtype() {
        Some(dtype) => format!("{PACKED}{dtype}"),
        None => format!("array<{}>", texture.format.scalar()),
    };
    let range = tokens[texture.declaration.start].range.start..tokens[texture.declaration.end].range.start;
    (range, format!("var<storage, {access}> {}: {ty}", texture.name))
}

/// Renames the functions that are called for a texture, and converts the coordinates.
fn calls(tokens: &[Token<'_>], texture: &Texture<'_>, edits: &mut Vec<Edit>) {
    for at in 2..tokens.len() {
        let (called, name) = (text(tokens, at - 2), &tokens[at]);
        if name.text != texture.name || text(tokens, at - 1) != "(" {
            continue;
        }
        let Some(List { elements: arguments, close: end }) = List::at(tokens, at - 1) else { continue };
        let start = tokens[at - 2].range.start;
        if called == LEVELS {
            edits.push((start..tokens[end].range.end, "1u".to_owned()));
        } else if let Some(function) = function(called) {
            let head = format!("{function}_{}(", texture.name);
            let takes_place = matches!(function, "textureLoad" | "textureStore");
            let Some(first) = arguments.get(1).filter(|_| takes_place) else {
                edits.push((start..tokens[end].range.start, head));
                continue;
            };
            edits.push((start..tokens[first.start].range.start, head));
            // A stored texel has its type already.
            let kept = usize::from(function == "textureStore");
            for (index, argument) in arguments[1..arguments.len() - kept].iter().enumerate() {
                let ty = if index == 0 { texture.coordinates() } else { "i32".to_owned() };
                let (from, to) = (tokens[argument.start].range.start, tokens[argument.end].range.start);
                edits.push((from..from, format!("{ty}(")));
                edits.push((to..to, ")".to_owned()));
            }
        }
    }
}

/// The scalars of the kernel, which the layouts join.
struct Scalars<'a> {
    variable: &'a str,
    /// The place of the `}` of the structure, if the text has one.
    end: Option<usize>,
}

impl<'a> Scalars<'a> {
    /// Finds them; `None` if their structure is not in the text, or is used elsewhere, too.
    fn of(tokens: &[Token<'a>]) -> Option<Self> {
        let declares = |part: &[Token<'a>]| {
            let words: Vec<_> = part.iter().map(|token| token.text).collect();
            words.starts_with(&["var", "<", "immediate", ">"]) && words.get(5) == Some(&":")
        };
        let Some(part) = tokens.windows(7).find(|part| declares(part)) else {
            return Some(Self { variable: SCALARS[1], end: None });
        };
        if tokens.iter().filter(|token| token.text == part[6].text).count() > 2 {
            return None;
        }
        let structure =
            tokens.windows(2).position(|pair| pair[0].text == "struct" && pair[1].text == part[6].text)?;
        let end = structure + tokens[structure..].iter().position(|token| token.text == "}")?;
        Some(Self { variable: part[4].text, end: Some(end) })
    }

    fn edits(&self, tokens: &[Token<'_>], textures: &[Texture<'_>]) -> Vec<Edit> {
        let Some(end) = self.end else { return Vec::new() };
        let comma = if matches!(text(tokens, end - 1), "," | "{") { "" } else { "," };
        let place = tokens[end].range.start;
        vec![(place..place, format!("{comma} {} ", members(textures)))]
    }
}

fn members(textures: &[Texture<'_>]) -> String {
    let members =
        textures.iter().map(|texture| format!("{}_layout: {LAYOUT}{}", texture.name, texture.rank()));
    members.collect::<Vec<_>>().join(", ")
}

/// The types, the variable and the functions that the new text uses.
fn definitions(textures: &[Texture<'_>], scalars: &Scalars<'_>) -> String {
    let ranks: BTreeSet<_> = textures.iter().map(Texture::rank).collect();
    let mut text = String::from("\n");
    for rank in ranks {
        text +=
            &format!(" struct {LAYOUT}{rank} {{ shape: array<u32, {rank}>, strides: array<i32, {rank}> }}");
    }
    let packed: BTreeSet<_> =
        textures.iter().filter_map(|t| t.format.packed_dtype()).map(|dtype| dtype.to_string()).collect();
    for dtype in packed {
        text += &format!(" alias {PACKED}{dtype} = array<u32>;");
    }
    if scalars.end.is_none() {
        let [structure, variable] = SCALARS;
        text += &format!(
            " struct {structure} {{ {} }} var<immediate> {variable}: {structure};",
            members(textures)
        );
    }
    for texture in textures {
        text += &functions(texture, &format!("{}.{}_layout", scalars.variable, texture.name));
    }
    text
}

#[cfg(test)]
mod tests;
