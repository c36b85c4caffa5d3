//! Checks of requests that most backends make.

use crate::model::options::did_you_mean;
use crate::{Error, Result};

/// The memory space with an index of `DeviceInfo::spaces`.
///
/// # Errors
/// `InvalidArgument` if the device has no such space.
pub fn space_at<T: Copy>(spaces: &[T], index: u32) -> Result<T> {
    spaces.get(index as usize).copied().ok_or_else(|| {
        let last = spaces.len().saturating_sub(1);
        Error::invalid(format!("space {index} does not exist; valid: 0 to {last}"))
    })
}

/// Refuses code whose format is not among those that the device accepts.
///
/// # Errors
/// `Unsupported`, with the accepted ones.
pub fn check_format(format: &str, accepted: &[&str]) -> Result<()> {
    if accepted.contains(&format) {
        return Ok(());
    }
    let hint = did_you_mean(format, accepted);
    Err(Error::unsupported(format!("this device does not accept format \"{format}\"; {hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn what_does_not_exist_is_refused_with_what_does() {
        assert_eq!(space_at(&["device", "pinned"], 1).unwrap(), "pinned");
        let error = space_at(&["device", "pinned"], 2).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains("0 to 1"), "{error}");
        check_format("ptx", &["cubin", "ptx"]).unwrap();
        let error = check_format("ptr", &["cubin", "ptx"]).unwrap_err();
        assert!(error.kind() == ErrorKind::Unsupported && error.message().contains("\"ptx\"?"), "{error}");
    }
}
