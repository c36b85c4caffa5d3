//! Which values are the same for all invocations of a work-group.
