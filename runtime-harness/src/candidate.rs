//! A kernel to evaluate, as data that can be sent to another process.

use runtime_core::{Error, Options, Result};
use serde::{Deserialize, Serialize};

use crate::chain::ChainRequest;
use crate::describe::options_json;
use crate::settings::Settings;
use crate::spec::{Overrides, Spec, SpecSource};

/// A kernel to evaluate on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// The spec.
    pub spec: SpecSource,
    /// The device string, e.g. `cuda:0`.
    pub device: String,
    /// Overrides of the spec's values.
    #[serde(default)]
    pub overrides: Overrides,
    /// Settings that take precedence over those of the spec.
    #[serde(default)]
    pub settings: Settings,
    /// Options to open the device with.
    #[serde(default, with = "options_json")]
    pub options: Options,
    /// What follows the kernel, if it begins a chain, which is then evaluated one by one and fused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainRequest>,
    /// What its evaluation must have: it is refused without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<Requirement>,
}

/// What the evaluation of a candidate must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    /// Calls with inputs that the candidate has never seen.
    Fresh,
    /// A sandbox that lacks nothing, around all code of the candidate that runs on the host.
    Sandbox,
}

impl Candidate {
    /// A candidate as its spec says.
    #[must_use]
    pub fn new(spec: impl Into<SpecSource>, device: impl Into<String>) -> Self {
        Self {
            spec: spec.into(),
            device: device.into(),
            overrides: Overrides::default(),
            settings: Settings::default(),
            options: Options::new(),
            chain: None,
            require: Vec::new(),
        }
    }

    /// The spec of the kernel; of a chain, that of the first one, with the name of the chain.
    ///
    /// # Errors
    /// Those of [`SpecSource::load`], for any spec of a chain; `InvalidArgument` for a chain that requires something.
    pub(crate) fn load(&self) -> Result<Spec> {
        let mut spec = self.spec.load(&self.overrides)?;
        if let Some(chain) = &self.chain {
            if !self.require.is_empty() {
                return Err(Error::invalid(
                    "candidate.require: chains run in the worker, on their own inputs; leave out `require` or `chain`",
                ));
            }
            let first = self.spec.load(&self.overrides)?;
            #[allow(unsafe_code, reason = "links a chain for its name, and runs nothing")]
            // SAFETY: the chain is dropped without running.
            let chain = unsafe { chain.load(first, &self.overrides) }?;
            spec.name = chain.name();
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use runtime_core::DType;
    use runtime_core::evaluate::{ClockChoice, FlushCache};

    use super::*;
    use crate::spec::{Extent, Number};

    #[test]
    fn a_candidate_survives_json() {
        let values = [
            ("n".to_owned(), Number::Integer(i128::from(u64::MAX))),
            ("x".to_owned(), Number::Float(1.0)),
            ("infinite".to_owned(), Number::Float(f64::NEG_INFINITY)),
            ("on".to_owned(), Number::Bool(true)),
        ];
        let candidate = Candidate {
            spec: "a.toml".into(),
            device: "host:0".to_owned(),
            overrides: Overrides {
                values: values.to_vec(),
                element: Some(DType::F16),
                options: vec![("flags".to_owned(), vec!["-O3".into(), true.into()])],
                launch: [("groups".to_owned(), vec![Extent::Number(4), Extent::Expression("n".to_owned())])]
                    .into(),
            },
            settings: Settings {
                repeat: Some(3),
                clock: Some(ClockChoice::Auto),
                flush_cache: Some(FlushCache::PerCall),
                ..Settings::default()
            },
            options: Options::new().with("a", 1_i64).with("b", "text").with("a", true),
            chain: Some(ChainRequest {
                specs: vec!["b.toml".into()],
                links: vec!["b.x=a.y".parse().unwrap()],
                keep: true,
            }),
            require: vec![Requirement::Fresh],
        };
        let text = serde_json::to_string(&candidate).unwrap();
        let read: Candidate = serde_json::from_str(&text).unwrap();
        assert_eq!(read.options.iter().count(), 3);
        assert_eq!((&read.chain, &read.require), (&candidate.chain, &candidate.require), "{text}");
        assert_eq!((read.overrides, read.settings), (candidate.overrides, candidate.settings), "{text}");
    }

    #[test]
    fn most_fields_are_optional_and_unknown_ones_are_errors() {
        let read = |text: &str| serde_json::from_str::<Candidate>(text).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"spec": "a", "device": "host"}"#).unwrap().settings, Settings::default());
        for (text, word) in [
            (r#"{"spec": "a", "device": "host", "sped": 1}"#, "sped"),
            (r#"{"spec": "a", "device": "host", "require": ["fish"]}"#, "expected `fresh` or `sandbox`"),
            (r#"{"spec": "a", "device": "host", "settings": {"clock": "sundial"}}"#, "host_wall"),
            (r#"{"spec": "a", "device": "host", "overrides": {"values": {"n": "many"}}}"#, "many"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
