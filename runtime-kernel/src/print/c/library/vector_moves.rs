//! Vectors that CUDA C++ moves as one word, in structures and in kernels for matrix units.

use naga::{Scalar, VectorSize};
use runtime_core::Result;

use crate::print::c::writer::Writer;

/// Whether memory is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Load,
    Store,
}

impl Direction {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
        }
    }
}

impl Writer<'_> {
    /// The function that moves a vector as one word: it is aligned like that.
    pub(crate) fn vector_move(
        &mut self,
        direction: Direction,
        (size, scalar): (VectorSize, Scalar),
    ) -> Result<String> {
        let own = self.vector(size, scalar)?;
        let word = match size as u32 * u32::from(scalar.width) {
            4 => "unsigned int",
            8 => "uint2",
            _ => "uint4",
        };
        self.library(format!("{own}_{}", direction.word()), |_, name| {
            Ok(match direction {
                Direction::Load => format!("{own} {name}(const {own} *p) {{ {own} v; *({word} *)&v = *(const {word} *)p; return v; }}"),
                Direction::Store => format!("void {name}({own} *p, {own} v) {{ *({word} *)p = *({word} *)&v; }}"),
            })
        })
    }

    /// The function that loads a vector if a condition holds, by an instruction with a predicate: a branch would wait for
    /// each load.
    pub(crate) fn conditional_vector_load(&mut self, (size, scalar): (VectorSize, Scalar)) -> Result<String> {
        let own = self.vector(size, scalar)?;
        let words = (size as usize * usize::from(scalar.width)).div_ceil(4);
        let list = |form: &dyn Fn(usize) -> String, separator: &str| {
            (0..words).map(form).collect::<Vec<_>>().join(separator)
        };
        let vector = if words == 1 { String::new() } else { format!(".v{words}") };
        let text = format!(
            "(const {own} *p, bool condition)
{{
    u32 w[{words}];
    asm(\"{{ .reg .pred q; setp.ne.u32 q, %{last}, 0; {zeros} @q ld.global.nc{vector}.u32 {{{numbers}}}, [%{words}]; }}\"
        : {outputs} : \"l\"(p), \"r\"((u32)condition));
    return *({own} *)w;
}}",
            last = words + 1,
            zeros = list(&|word| format!("mov.u32 %{word}, 0;"), " "),
            numbers = list(&|word| format!("%{word}"), ", "),
            outputs = list(&|word| format!("\"=&r\"(w[{word}])"), ", "),
        );
        self.scalar(Scalar::U32)?;
        self.library(format!("{own}_load_if"), |_, name| Ok(format!("{own} {name}{text}")))
    }
}
