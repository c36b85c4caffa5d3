//! The host's entry points: loops over the invocations of a work-group.
