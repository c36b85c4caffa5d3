#if defined(__x86_64__)
#define STREAMED_ (64ULL << 20)
#define stream_end_() __builtin_ia32_sfence()
#ifdef __AVX__
typedef long long wide_ __attribute__((vector_size(32)));
#define NT_STORE_ __builtin_ia32_movntdq256
#else
typedef long long wide_ __attribute__((vector_size(16)));
#define NT_STORE_ __builtin_ia32_movntdq
#endif
#ifdef __clang__
#undef NT_STORE_
#define NT_STORE_(to, value) __builtin_nontemporal_store(value, to)
#endif
static inline void stream_(void *to, const void *from, long bytes)
{
    if ((__UINTPTR_TYPE__)to % sizeof(wide_) != 0) {
        __builtin_memcpy(to, from, (unsigned long)bytes);
        return;
    }
    for (long at = 0; at < bytes; at += (long)sizeof(wide_)) {
        wide_ value;
        __builtin_memcpy(&value, (const char *)from + at, sizeof value);
        NT_STORE_((wide_ *)((char *)to + at), value);
    }
}
#else
#define STREAMED_ (~0ULL)
#define stream_end_() ((void)0)
#define stream_(to, from, bytes) __builtin_memcpy(to, from, bytes)
#endif
