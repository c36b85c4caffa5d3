//! Kernel fusion: launches that run one after the other become one kernel, where a proof shows that its results are the same.
//!
//! The launches of a run are merged into one module, which is printed as WGSL and then loaded like any other text: memory
//! safety never depends on the fusion, only results do.
//!
//! | file | what is there |
//! | --- | --- |
//! | `kernel` | the code of a launch |
//! | `linear` | indices as linear functions of the item |
//! | `walk/` | the accesses of a launch to its tensors |
//! | `collide` | which items may touch the same bytes |
//! | `legality` | the rules that do not depend on indices: groups, options, types, overlaps, resources |
//! | `plan` | runs of launches, from the left, each as long as possible |
//! | `keep` | tensors of a run that need no memory |
//! | `promote` | those kept in a value: each item uses one element |
//! | `arrays` | those kept in an array: an item, or a group, uses several elements |
//! | `cover` | whether what is read was written before |
//! | `merge/` | one module of several |
//! | `text` | from the merged module to accepted text |

mod arrays;
mod collide;
mod cover;
mod keep;
mod kernel;
mod legality;
mod linear;
mod merge;
mod plan;
mod promote;
#[cfg(test)]
mod tests;
mod text;
mod walk;

pub(crate) use plan::plan;
