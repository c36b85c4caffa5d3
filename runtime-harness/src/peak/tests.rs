//! Tests of kept peaks and rooflines.
