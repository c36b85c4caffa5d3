//! What is known of kernels, in JSON: entry points of portable code, and the reports of compilers.

use std::str::FromStr;

use runtime_core::code::{ArgKind, KernelInfo, Param};
use runtime_core::lowering::{Coarsening, LoweredKernel, LoweredParam};
use runtime_core::{Access, DType};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Access", rename_all = "snake_case")]
enum AccessName {
    Read,
    Write,
    ReadWrite,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ArgKind", rename_all = "snake_case")]
enum KindName {
    Tensor,
    Scalar,
    Bytes,
    Local,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Param")]
struct ParamFields {
    #[serde(with = "KindName")]
    kind: ArgKind,
    #[serde(with = "AccessName")]
    access: Access,
    #[serde(default)]
    strided: bool,
    #[serde(default, with = "dtype", skip_serializing_if = "Option::is_none")]
    dtype: Option<DType>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LoweredParam")]
struct LoweredParamFields {
    #[serde(flatten, with = "ParamFields")]
    param: Param,
    min_bytes: u64,
    alignment_bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LoweredKernel")]
struct LoweredKernelFields {
    name: String,
    symbol: String,
    #[serde(with = "lowered_params")]
    params: Vec<LoweredParam>,
    group_size: [u32; 3],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work_items: Option<[u32; 3]>,
    shared_bytes: u32,
    tensor_sizes: bool,
    #[serde(default, with = "coarsening", skip_serializing_if = "Option::is_none")]
    coarsening: Option<Coarsening>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reports_on: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "KernelInfo")]
struct KernelInfoFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    registers: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spilled_bytes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shared_bytes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_group_items: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group_size: Option<[u32; 3]>,
    #[serde(default, with = "params", skip_serializing_if = "Option::is_none")]
    params: Option<Vec<Param>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    binary_version: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    virtual_version: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preferred_multiple: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    private_bytes: Option<u32>,
}

/// A structure of core in a list, read and written by its fields here.
macro_rules! in_lists {
    ($($name:ident: $of:ty as $fields:literal;)*) => {
        $(
            #[derive(Serialize, Deserialize)]
            struct $name(#[serde(with = $fields)] $of);
        )*
    };
}

in_lists! {
    ListedParam: Param as "ParamFields";
    ListedLoweredParam: LoweredParam as "LoweredParamFields";
    ListedCoarsening: Coarsening as "CoarseningFields";
    ListedKernel: LoweredKernel as "LoweredKernelFields";
}

#[derive(Serialize, Deserialize)]
struct Resources {
    kernel: String,
    #[serde(flatten, with = "KernelInfoFields")]
    info: KernelInfo,
}

mod dtype {
    use super::*;

    pub(super) fn serialize<S: Serializer>(dtype: &Option<DType>, serializer: S) -> Result<S::Ok, S::Error> {
        dtype.map(|dtype| dtype.to_string()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<DType>, D::Error> {
        let name = Option::<String>::deserialize(deserializer)?;
        name.map(|name| DType::from_str(&name).map_err(serde::de::Error::custom)).transpose()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Coarsening")]
struct CoarseningFields {
    factor: u32,
    min_groups: u64,
    min_groups_x: u32,
}

mod coarsening {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        coarsening: &Option<Coarsening>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        coarsening.map(ListedCoarsening).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Coarsening>, D::Error> {
        match Option::<ListedCoarsening>::deserialize(deserializer)? {
            Some(ListedCoarsening(Coarsening { factor: 0 | 1, .. })) => {
                Err(serde::de::Error::custom("a factor of coarsening is at least 2"))
            }
            listed => Ok(listed.map(|listed| listed.0)),
        }
    }
}

mod lowered_params {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        params: &[LoweredParam],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(params.iter().map(|&param| ListedLoweredParam(param)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<LoweredParam>, D::Error> {
        let listed = Vec::<ListedLoweredParam>::deserialize(deserializer)?;
        Ok(listed.into_iter().map(|listed| listed.0).collect())
    }
}

mod params {
    use super::*;

    pub(super) fn serialize<S: Serializer>(
        params: &Option<Vec<Param>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(params.iter().flatten().map(|&param| ListedParam(param)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<Param>>, D::Error> {
        let listed = Vec::<ListedParam>::deserialize(deserializer)?;
        Ok(Some(listed.into_iter().map(|listed| listed.0).collect()))
    }
}

/// The entry points of portable code.
pub(super) mod lowered {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(
        kernels: &Option<Vec<LoweredKernel>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(kernels.iter().flatten().map(|kernel| ListedKernel(kernel.clone())))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<LoweredKernel>>, D::Error> {
        let listed = Vec::<ListedKernel>::deserialize(deserializer)?;
        Ok(Some(listed.into_iter().map(|listed| listed.0).collect()))
    }
}

/// What compilers report, by the name of the entry point.
pub(super) mod infos {
    use super::*;

    pub(in super::super) fn serialize<S: Serializer>(
        infos: &[(String, KernelInfo)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let listed =
            |(kernel, info): &(String, KernelInfo)| Resources { kernel: kernel.clone(), info: info.clone() };
        serializer.collect_seq(infos.iter().map(listed))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, KernelInfo)>, D::Error> {
        let listed = Vec::<Resources>::deserialize(deserializer)?;
        Ok(listed.into_iter().map(|resources| (resources.kernel, resources.info)).collect())
    }
}
