//! Which devices are one chip.

use runtime_core::{DeviceInfo, DeviceKind};

/// The longest name that a driver may give to a lock. The name of a socket has at most 107 bytes.
const MAX_BYTES: usize = 64;

/// The name of a device's lock, which is the same for all devices of one chip: its property `lock`, or else its PCI address, or else
/// its UUID. All processors (`host:0`, and the CPU devices of OpenCL and Vulkan) share the lock `host`.
///
/// Simulated devices have none; nor have those that report none of these.
#[must_use]
pub fn lock_key(info: &DeviceInfo) -> Option<String> {
    if info.properties.flag("simulated") {
        return None;
    }
    if info.kind == DeviceKind::Host || info.properties.texts("type").any(|kind| kind == "cpu") {
        return Some("host".to_owned());
    }
    let address = || info.pci_address.as_deref().map(|address| format!("pci {}", canonical(address)));
    // Of two drivers of a chip, one may report no address or UUID.
    let own = info.properties.text("lock").map(|name| format!("name {}", bounded(name)));
    let uuid = || info.uuid.map(|uuid| format!("uuid {:032x}", u128::from_be_bytes(uuid)));
    own.or_else(address).or_else(uuid)
}

/// A PCI address as `dddd:bb:dd.f`. Drivers differ in case and in the digits of the domain.
fn canonical(address: &str) -> String {
    parse(address).unwrap_or_else(|| bounded(&address.to_lowercase()))
}

fn bounded(name: &str) -> String {
    let end = (0..=MAX_BYTES.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    name[..end.unwrap_or(0)].to_owned()
}

fn parse(address: &str) -> Option<String> {
    let hexadecimal = |text: &str| u32::from_str_radix(text.trim(), 16).ok();
    let (rest, function) = address.rsplit_once('.')?;
    let mut parts = rest.rsplitn(3, ':').map(hexadecimal);
    let (device, bus) = (parts.next()??, parts.next()??);
    let domain = parts.next().unwrap_or(Some(0))?;
    Some(format!("{domain:04x}:{bus:02x}:{device:02x}.{:x}", hexadecimal(function)?))
}

#[cfg(test)]
mod tests {
    use runtime_core::Options;

    use super::*;

    fn accelerator(address: Option<&str>, uuid: Option<u8>) -> DeviceInfo {
        let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, "chip");
        info.pci_address = address.map(str::to_owned);
        info.uuid = uuid.map(|byte| [byte; 16]);
        info
    }

    #[test]
    fn devices_of_one_chip_share_a_key() {
        let key = lock_key(&accelerator(Some("0000:c1:00.0"), Some(1))).unwrap();
        for address in ["0000:C1:00.0", "00000000:c1:00.0", "c1:00.0", "0:C1:0.0"] {
            assert_eq!(lock_key(&accelerator(Some(address), Some(2))).as_ref(), Some(&key), "{address}");
        }
        assert_ne!(lock_key(&accelerator(Some("0001:c1:00.0"), Some(1))).unwrap(), key);
        assert_ne!(lock_key(&accelerator(Some("0000:c1:00.1"), Some(1))).unwrap(), key);
        assert_eq!(lock_key(&accelerator(None, Some(0xab))), Some(format!("uuid {}", "ab".repeat(16))));
        assert_eq!(lock_key(&accelerator(None, None)), None);
    }

    #[test]
    fn devices_may_name_their_lock() {
        let mut info = accelerator(Some("0000:c1:00.0"), Some(1));
        info.properties = Options::new().with("lock", "mppa 0.1 /");
        assert_eq!(lock_key(&info).as_deref(), Some("name mppa 0.1 /"));
        info.properties = Options::new().with("lock", "x".repeat(1000));
        assert_eq!(lock_key(&info).unwrap().len(), MAX_BYTES + 5);
    }

    #[test]
    fn processors_share_a_key_and_simulations_have_none() {
        let host = DeviceInfo::new(DeviceKind::Host, 3, "CPU");
        assert_eq!(lock_key(&host).as_deref(), Some("host"));
        let mut cpu = accelerator(Some("0000:00:00.0"), Some(7));
        cpu.properties = Options::new().with("type", "gpu").with("type", "cpu");
        assert_eq!(lock_key(&cpu).as_deref(), Some("host"));
        cpu.properties = Options::new().with("type", "gpu");
        assert_eq!(lock_key(&cpu).as_deref(), Some("pci 0000:00:00.0"));
        cpu.properties = Options::new().with("simulated", true);
        assert_eq!(lock_key(&cpu), None);
    }

    #[test]
    fn an_address_that_is_none_is_a_bounded_name() {
        for address in ["", ".", ":", "..", "x:y.z", "\0\n", &"ü".repeat(1000), "1:2:3:4:5.6.7"] {
            let key = lock_key(&accelerator(Some(address), None)).unwrap();
            assert!(key.len() <= MAX_BYTES + 4, "{key}");
        }
    }
}
