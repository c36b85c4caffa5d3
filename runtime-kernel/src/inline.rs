//! Inlines functions that contain barriers, for the host.
