//! What compilers report, in JSON: a list of `KernelInfo`, each with the name of its entry point.

use runtime_core::code::KernelInfo;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
struct Resources {
    kernel: String,
    #[serde(flatten)]
    info: KernelInfo,
}

pub(super) fn serialize<S: Serializer>(
    infos: &[(String, KernelInfo)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let listed =
        |(kernel, info): &(String, KernelInfo)| Resources { kernel: kernel.clone(), info: info.clone() };
    serializer.collect_seq(infos.iter().map(listed))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, KernelInfo)>, D::Error> {
    let listed = Vec::<Resources>::deserialize(deserializer)?;
    Ok(listed.into_iter().map(|resources| (resources.kernel, resources.info)).collect())
}
