//! Measurements in reports, with the rates that follow from them.

use runtime_core::evaluate::Measurement;
use serde::{Serialize, Serializer};

#[derive(Serialize)]
struct WithRates<'m> {
    #[serde(flatten)]
    measurement: &'m Measurement,
    gflops_per_s: Option<f64>,
    gbytes_per_s: Option<f64>,
}

impl<'m> WithRates<'m> {
    fn of(measurement: &'m Measurement) -> Self {
        Self {
            measurement,
            gflops_per_s: measurement.gflops_per_s(),
            gbytes_per_s: measurement.gbytes_per_s(),
        }
    }
}

pub(super) fn with_rates<S: Serializer>(measurement: &Measurement, serializer: S) -> Result<S::Ok, S::Error> {
    WithRates::of(measurement).serialize(serializer)
}

pub(super) fn perhaps_with_rates<S: Serializer>(
    measurement: &Option<Measurement>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    measurement.as_ref().map(WithRates::of).serialize(serializer)
}
