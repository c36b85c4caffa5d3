//! Rejects barriers in non-uniform control flow, which naga lets pass.
