//! Parses device strings (`target`, `target:index`, `target:index.sub`, `target:name`) and resolves them.

use crate::{DeviceInfo, Error, ErrorKind, Result};

/// A parsed device string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceRef<'a> {
    pub(crate) target: &'a str,
    index_or_name: IndexOrName<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IndexOrName<'a> {
    Index(u32, Option<u32>),
    Name(&'a str),
}

impl<'a> DeviceRef<'a> {
    /// Parses a device string. Anything that is not an index is a name.
    ///
    /// # Errors
    /// `InvalidArgument` if a part is empty.
    pub(crate) fn parse(text: &'a str) -> Result<Self> {
        let (target, rest) = text.split_once(':').map_or((text, "0"), |(target, rest)| (target, rest));
        if target.is_empty() || rest.is_empty() {
            return Err(Error::invalid(format!(
                "device \"{text}\" is not of the form target, target:index, target:index.sub or target:name"
            )));
        }
        let (index, sub) = rest.split_once('.').map_or((rest, None), |(index, sub)| (index, Some(sub)));
        let index_or_name = match (parse_index(index), sub.map(parse_index)) {
            (Some(index), None) => IndexOrName::Index(index, None),
            (Some(index), Some(Some(sub))) => IndexOrName::Index(index, Some(sub)),
            _ => IndexOrName::Name(rest),
        };
        Ok(Self { target, index_or_name })
    }

    /// Finds the device among those of its target.
    ///
    /// # Errors
    /// `NotFound`, with a list of the devices; `InvalidArgument` for an ambiguous name.
    pub(crate) fn resolve(&self, devices: &[DeviceInfo]) -> Result<DeviceInfo> {
        let mut found: Vec<_> = devices.iter().filter(|device| self.matches(device)).collect();
        if let [device] = found[..] {
            return Ok(device.clone());
        }
        // A name shared by a device and its sub-devices means the device.
        found.retain(|device| device.id.sub.is_none());
        match found[..] {
            [device] => Ok(device.clone()),
            [] => Err(Error::new(
                ErrorKind::NotFound,
                format!("no device \"{self}\"; {}", list_devices(self.target, devices)),
            )),
            [first, ..] => Err(Error::invalid(format!(
                "{} devices are named \"{}\"; use the index: {}",
                found.len(),
                first.name,
                list_devices(self.target, devices)
            ))),
        }
    }

    fn matches(&self, device: &DeviceInfo) -> bool {
        match self.index_or_name {
            IndexOrName::Index(index, sub) => device.id.index == index && device.id.sub == sub,
            IndexOrName::Name(name) => device.name.eq_ignore_ascii_case(name),
        }
    }
}

impl std::fmt::Display for DeviceRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.index_or_name {
            IndexOrName::Index(index, None) => write!(f, "{}:{index}", self.target),
            IndexOrName::Index(index, Some(sub)) => write!(f, "{}:{index}.{sub}", self.target),
            IndexOrName::Name(name) => write!(f, "{}:{name}", self.target),
        }
    }
}

/// A plain decimal number: no sign, no spaces.
fn parse_index(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn list_devices(target: &str, devices: &[DeviceInfo]) -> String {
    if devices.is_empty() {
        return format!("\"{target}\" has no devices on this machine");
    }
    let lines: Vec<_> = devices.iter().map(|device| format!("{} ({})", device.id, device.name)).collect();
    format!("valid: {}", lines.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceId, DeviceKind};

    fn devices() -> Vec<DeviceInfo> {
        let device = |index, sub, name: &str| DeviceInfo {
            id: DeviceId { target: "t".into(), index, sub },
            ..DeviceInfo::new(DeviceKind::Accelerator, index, name)
        };
        vec![
            device(0, None, "Big One"),
            device(0, Some(2), "Big One"),
            device(1, None, "twin"),
            device(2, None, "twin"),
        ]
    }

    fn resolve(text: &str) -> Result<String> {
        Ok(DeviceRef::parse(text)?.resolve(&devices())?.id.to_string())
    }

    #[test]
    fn every_form_resolves() {
        for (text, id) in [("t", "t:0"), ("t:1", "t:1"), ("t:0.2", "t:0.2"), ("t:big one", "t:0")] {
            assert_eq!(resolve(text).unwrap(), id, "{text}");
        }
    }

    #[test]
    fn a_wrong_name_lists_the_valid_ones() {
        for text in ["t:7", "t:0.9", "t:huge", "t:+1", "t:99999999999999", "t:1.x"] {
            let error = resolve(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{text}");
            assert!(
                error.message().starts_with(&format!("no device \"{text}\"; valid: t:0 (Big One), t:0.2")),
                "{error}"
            );
        }
        let error = DeviceRef::parse("t").unwrap().resolve(&[]).unwrap_err();
        assert_eq!(error.message(), "no device \"t:0\"; \"t\" has no devices on this machine");
    }

    #[test]
    fn an_ambiguous_name_is_refused() {
        let error = resolve("t:twin").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().starts_with("2 devices are named \"twin\"; use the index: "), "{error}");
    }

    #[test]
    fn empty_parts_are_refused() {
        for text in ["", ":0", "t:"] {
            assert_eq!(DeviceRef::parse(text).unwrap_err().kind(), ErrorKind::InvalidArgument, "{text:?}");
        }
    }
}
