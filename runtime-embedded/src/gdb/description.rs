//! What the server describes in XML: its memory, and the registers of the target.

use super::client::{Client, refused};
use super::error::Result;
use super::transport::Transport;

/// Bytes of a description that are requested at once.
const PIECE_BYTES: usize = 0x100;
/// A description that is larger is not read.
const MAX_BYTES: usize = 256 << 10;
/// Files that a description may include.
const MAX_INCLUDES: usize = 32;

impl<T: Transport> Client<T> {
    /// The number of a register, by the server's description of the target; `None` if that does not name it. Case is ignored.
    ///
    /// # Errors
    /// As for [`Client::request`]; `Refused` for a description that cannot be read.
    pub fn register_number(&mut self, name: &str) -> Result<Option<u32>> {
        if !self.features.describes_target {
            return Ok(None);
        }
        let mut text = self.read_description("features", "target.xml")?;
        for _ in 0..MAX_INCLUDES {
            let Some((before, element, after)) = include(&text) else { break };
            let included = match attribute(element, "href").filter(|file| is_plain(file)) {
                Some(file) => self.read_description("features", file)?,
                None => String::new(),
            };
            text = [before, &included, after].concat();
        }
        Ok(number_of(&text, name))
    }

    /// Reads a description: that of the file `annex`, or the only one of its kind.
    pub(super) fn read_description(&mut self, kind: &str, annex: &str) -> Result<String> {
        let mut text = Vec::new();
        loop {
            let request = format!("qXfer:{kind}:read:{annex}:{:x},{PIECE_BYTES:x}", text.len());
            let reply = self.request(request.as_bytes())?;
            match reply.split_first() {
                Some((b'm', piece)) if !piece.is_empty() && text.len() < MAX_BYTES => text.extend(piece),
                Some((b'l', piece)) => {
                    text.extend(piece);
                    return Ok(String::from_utf8_lossy(&text).into_owned());
                }
                _ => return Err(refused(&reply).during(&format!("qXfer:{kind}"))),
            }
        }
    }
}

/// The value of an attribute in the text of a tag.
pub(super) fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let value = tag.split_once(&format!("{name}="))?.1;
    value.get(1..)?.split(['"', '\'']).next()
}

/// The first element that includes a file, with what is before and behind it.
fn include(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("<xi:include")?;
    let (element, after) = rest.split_once('>')?;
    Some((before, element, after))
}

/// Whether a name can be part of a request as it is.
fn is_plain(file: &str) -> bool {
    file.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// The number of a register: its own, or the one that follows the last register's.
fn number_of(description: &str, name: &str) -> Option<u32> {
    let mut next = 0;
    for element in description.split("<reg ").skip(1) {
        let tag = element.split('>').next()?;
        let number = attribute(tag, "regnum").and_then(|number| number.parse().ok()).unwrap_or(next);
        if attribute(tag, "name").is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return Some(number);
        }
        next = number.checked_add(1)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_without_a_number_follow_the_last_one() {
        let text = "<reg name=\"r0\" bitsize=\"32\"/><reg name='pc' regnum='15'/><reg name=\"xPSR\" bitsize=\"32\"/>";
        let number = |name| number_of(text, name);
        assert_eq!(
            (number("r0"), number("pc"), number("xpsr"), number("sp")),
            (Some(0), Some(15), Some(16), None)
        );
        assert_eq!(number_of("<reg regnum=\"4294967295\"><reg name=\"a\"/>", "a"), None);
    }

    #[test]
    fn names_with_signs_of_the_protocol_are_not_requested() {
        assert!(is_plain("arm-m-profile.xml") && !is_plain("a:0,1#") && !is_plain("a b"));
    }
}
