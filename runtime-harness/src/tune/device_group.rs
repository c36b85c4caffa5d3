//! Which devices may work at the same time.

use serde_json::Value;

/// Whether two devices may be the same chip, or parts of one, or the host: only then do they disturb each other. Devices of
/// one target are apart if their UUIDs differ; others, if their PCI addresses do.
pub(super) fn may_share_chip(one: &Value, other: &Value) -> bool {
    let differ = |key: &str| {
        let (one, other) = (one[key].as_str(), other[key].as_str());
        one.is_some() && other.is_some() && one != other
    };
    let is_host = one["kind"] == "host" && other["kind"] == "host";
    let is_part = one["target"] == other["target"] && one["index"] == other["index"];
    let is_apart = differ("pci_address") || (one["target"] == other["target"] && differ("uuid"));
    is_host || is_part || !is_apart
}

/// What makes two devices unlike; `None` if they are of one model.
pub(super) fn difference(one: &Value, other: &Value) -> Option<String> {
    let keys = ["target", "name", "arch", "driver_version", "compute_units"];
    let key = keys.into_iter().find(|key| one[key] != other[key])?;
    let what =
        if key == "compute_units" { "number of compute units".to_owned() } else { key.replace('_', " ") };
    Some(format!("the {what} differs ({} and {})", one[key], other[key]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn device(target: &str, index: u32, uuid: &str, pci: Option<&str>) -> Value {
        json!({ "kind": "accelerator", "target": target, "index": index, "uuid": uuid, "pci_address": pci })
    }

    #[test]
    fn one_chip_is_never_used_twice_at_a_time() {
        let cuda = |index, pci| device("cuda", index, if index == 0 { "a" } else { "b" }, Some(pci));
        assert!(!may_share_chip(&cuda(0, "1"), &cuda(1, "2")));
        assert!(may_share_chip(&cuda(0, "1"), &device("opencl", 0, "x", Some("1"))));
        assert!(may_share_chip(&cuda(0, "1"), &device("vulkan", 0, "x", None)), "unknown");
        assert!(!may_share_chip(&device("null", 0, "a", None), &device("null", 1, "b", None)));
        assert!(may_share_chip(&device("null", 0, "a", None), &device("null", 0, "b", None)), "sub-devices");
        assert!(may_share_chip(&json!({ "kind": "host" }), &json!({ "kind": "host" })));
    }

    #[test]
    fn unlike_devices_are_told_apart() {
        let device = |name| json!({ "target": "cuda", "name": name, "compute_units": 3 });
        assert_eq!(difference(&device("H100"), &device("H100")), None);
        let mut half = device("H100");
        half["compute_units"] = json!(1);
        assert_eq!(
            difference(&device("H100"), &half).unwrap(),
            "the number of compute units differs (3 and 1)"
        );
        assert_eq!(
            difference(&device("H100"), &device("H200")).unwrap(),
            "the name differs (\"H100\" and \"H200\")"
        );
    }
}
