//! Lower-case words that are not available as names at function scope, in any of the languages.

use std::sync::LazyLock;

use naga::FastHashSet;

/// Keywords, types, macros, and names that the generated text uses.
const WORDS: &str = "
    alignas alignof and and_eq asm atomic_bool auto bitand bitor bool break case catch char class co_await co_return
    co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do double
    dynamic_cast else enum explicit export extern false float for fortran friend goto half if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public quad register reinterpret_cast
    requires restrict return short signed size_t sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile
    wchar_t while xor xor_eq

    kernel global local constant generic read_only write_only read_write pipe uniform event_t clk_event_t queue_t
    ndrange_t reserve_id_t sampler_t uchar ushort uint ulong intptr_t uintptr_t ptrdiff_t ssize_t complex imaginary
    vec_step

    linux unix sun sparc mips arm vax hpux pixel vector near far pascal cdecl interface small

    barrier mem_fence read_mem_fence write_mem_fence get_work_dim get_global_size get_global_id get_local_size
    get_local_id get_num_groups get_group_id get_global_offset get_sub_group_size get_sub_group_id
    get_sub_group_local_id get_num_sub_groups sub_group_barrier atomic_add atomic_sub atomic_xchg atomic_inc atomic_dec
    atomic_cmpxchg atomic_min atomic_max atomic_and atomic_or atomic_xor atom_add atom_sub atom_xchg atom_cmpxchg
    atom_min atom_max atom_and atom_or atom_xor
    main array_length warp_lane";

static ALL: LazyLock<FastHashSet<&'static str>> = LazyLock::new(|| WORDS.split_whitespace().collect());

/// Whether a lower-case name already has a meaning. Library functions with lower-case names begin with `bool_`,
/// and OpenCL's extension macros with `cl_`.
pub(super) fn is_word(name: &str) -> bool {
    ALL.contains(name) || name.starts_with("bool_") || name.starts_with("cl_")
}
