//! `frexp` and bit casts of `f16` in declarations of the module, where their arguments depend on overrides. naga has other types
//! for them, and what replaces them in functions is calls of functions, which a declaration cannot have: here it is written out.

use super::constant::Constant;
use super::syntax::{Expr, ExprKind};
use super::value::Kind;
use super::{Scan, applied, tokens};

/// Bytes of an argument that is written out: nested casts double it each time.
const MOST_BYTES: usize = 1 << 12;

impl<'a> Scan<'a> {
    /// What such a call, or a member of it, is written as; `None` if it is another expression.
    pub(super) fn halves_of_overrides(&mut self, expression: &Expr<'a>) -> Option<String> {
        if self.scopes.is_inside() {
            return None;
        }
        let (call, member) = match &expression.kind {
            ExprKind::Member(base, member) => (&**base, Some(*member)),
            _ => (expression, None),
        };
        let ExprKind::Call(name, _, arguments) = &call.kind else { return None };
        let [argument] = &arguments[..] else { return None };
        match (*name, member) {
            ("frexp", _) => self.frexp(call, argument, member),
            ("bitcast", None) => self.bitcast(call, argument),
            _ => None,
        }
    }

    /// Computes in `f32`, which is exact.
    fn frexp(&mut self, call: &Expr<'a>, argument: &Expr<'a>, member: Option<&str>) -> Option<String> {
        let Constant::Composite(result) = self.scopes.with_overrides(call)? else { return None };
        let half = result.elements.first()?.value().filter(|value| value.kind == Kind::F16)?;
        let [ty, wide] = [Kind::F16, Kind::F32].map(|kind| self.scopes.type_name(kind, half.shape));
        let parts = format!("frexp({}({}))", wide?, self.edited(argument));
        let [fraction, exponent] = [format!("{}({parts}.fract)", ty?), format!("{parts}.exp")];
        match member {
            Some("fract") => Some(fraction),
            Some("exp") => Some(exponent),
            Some(_) => None,
            None => Some(format!("{}({fraction}, {exponent})", self.scopes.result(&result)?.0)),
        }
    }

    /// Packs and unpacks pairs.
    fn bitcast(&mut self, call: &Expr<'a>, argument: &Expr<'a>) -> Option<String> {
        let [to, from] = [call, argument].map(|of| self.scopes.with_overrides(of)?.value().cloned());
        let (to, from) = (to?, from?);
        let name = |kind, size| self.scopes.type_name(kind, (1, size));
        let [pair, wide_pair, words] = [name(Kind::F16, 2)?, name(Kind::F32, 2)?, name(Kind::U32, 2)?];
        let (ty, four) = (name(to.kind, to.shape.1)?, name(Kind::F16, 4)?);
        let word = name(Kind::U32, from.shape.1)?;
        match (from.kind, to.kind, self.edited(argument)) {
            (Kind::F16, Kind::F16, _) => None,
            (Kind::F16, _, text) => {
                let packed = |pair: &str| format!("pack2x16float({wide_pair}(({text}){pair}))");
                Some(match from.shape.1 {
                    2 => format!("bitcast<{ty}>({})", packed("")),
                    _ => format!("bitcast<{ty}>({words}({}, {}))", packed(".xy"), packed(".zw")),
                })
            }
            (_, Kind::F16, text) => {
                let halves = |part: &str| format!("{pair}(unpack2x16float(bitcast<{word}>({text}){part}))");
                Some(match to.shape.1 {
                    2 => halves(""),
                    _ => format!("{four}({}, {})", halves(".x"), halves(".y")),
                })
            }
            _ => None,
        }
    }

    /// The text of an expression after its edits, in one line; without edits if it is too long.
    fn edited(&mut self, expression: &Expr<'a>) -> String {
        let place = self.place(expression);
        let others = std::mem::take(&mut self.edits);
        self.edit(expression);
        let mut edits = std::mem::replace(&mut self.edits, others);
        for (range, _) in &mut edits {
            *range = range.start - place.start..range.end - place.start;
        }
        let whole = &self.code[place];
        let text = Some(applied(whole, edits)).filter(|text| text.len() <= MOST_BYTES);
        let text = text.unwrap_or_else(|| whole.to_owned());
        let (mut line, mut end) = (String::new(), 0);
        for token in tokens(&text) {
            line.push_str(if token.range.start > end { " " } else { "" });
            line.push_str(token.text);
            end = token.range.end;
        }
        line
    }
}
