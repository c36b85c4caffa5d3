/* The kernels of this device, with the names and arguments of the null backend's. Tensors may be strided. */

#include "backend.h"

#include <string.h>
#include <time.h>

/* An operand that a kernel does not have. */
#define NONE SIZE_MAX

#define F32 {2, 32, 1}
#define F64 {2, 64, 1}
#define I32 {0, 32, 1}
#define I64 {0, 64, 1}
#define U32 {1, 32, 1}
#define U64 {1, 64, 1}
#define ANY {0, 0, 0}
#define READS(...) {RT_ARG_TENSOR, RT_ACCESS_READ, 0, __VA_ARGS__}
#define WRITES(...) {RT_ARG_TENSOR, RT_ACCESS_WRITE, 0, __VA_ARGS__}
#define UPDATES(...) {RT_ARG_TENSOR, RT_ACCESS_READ | RT_ACCESS_WRITE, 0, __VA_ARGS__}
#define SCALAR(...) {RT_ARG_SCALAR, RT_ACCESS_READ, 0, __VA_ARGS__}

static uint64_t elements(const struct tensor *tensor) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < tensor->ndim; i++) {
        count *= (uint64_t)tensor->shape[i];
    }
    return count;
}

static uint64_t element_bytes(const struct tensor *tensor) {
    return (tensor->dtype.bits * tensor->dtype.lanes + 7u) / 8;
}

/* The address of element `index` in row-major order; an error if it is outside the buffer. */
static rt_Status at(const struct tensor *tensor, uint64_t index, uint8_t **out) {
    int64_t offset = 0;
    for (uint32_t i = tensor->ndim; i-- > 0;) {
        uint64_t extent = (uint64_t)tensor->shape[i];
        offset += (int64_t)(index % extent) * tensor->strides[i];
        index /= extent;
    }
    offset = tensor->first + offset * (int64_t)element_bytes(tensor);
    return checked_address(tensor->buffer, (uint64_t)offset, element_bytes(tensor), out);
}

static rt_Status store(const struct tensor *tensor, uint64_t index, const void *value) {
    uint8_t *to;
    rt_Status outside = at(tensor, index, &to);
    if (outside == NULL) {
        memcpy(to, value, element_bytes(tensor));
    }
    return outside;
}

static rt_Status load(const struct tensor *tensor, uint64_t index, void *value) {
    uint8_t *from;
    rt_Status outside = at(tensor, index, &from);
    if (outside == NULL) {
        memcpy(value, from, element_bytes(tensor));
    }
    return outside;
}

/* A scalar is stored in the low bytes of a word. The processor is little-endian. */
static double number(const struct argument *scalar) {
    if (scalar->dtype.code == 0) {
        return (double)(int64_t)scalar->scalar;
    }
    float single;
    double twice;
    memcpy(&single, &scalar->scalar, sizeof single);
    memcpy(&twice, &scalar->scalar, sizeof twice);
    return scalar->dtype.bits == 32 ? (double)single : twice;
}

/* The argument indices of an elementwise kernel's operands. */
struct operands {
    size_t out, x, y, a;
};

static rt_Status each(const struct arguments *arguments, struct operands operands,
                      float (*value)(float x, float y, float a)) {
    const struct argument *list = arguments->list;
    const struct tensor *out = &list[operands.out].tensor;
    float a = operands.a == NONE ? 0 : (float)number(&list[operands.a]);
    size_t inputs[] = {operands.x, operands.y};
    uint64_t count = elements(out);
    for (int i = 0; i < 2; i++) {
        if (inputs[i] != NONE && elements(&list[inputs[i]].tensor) != count) {
            return fail(RT_ERROR_FAILED, "argument %zu has %llu elements, the output %llu", inputs[i],
                        (unsigned long long)elements(&list[inputs[i]].tensor), (unsigned long long)count);
        }
    }
    for (uint64_t index = 0; index < count; index++) {
        float operand[2] = {0, 0};
        rt_Status outside = NULL;
        for (int i = 0; i < 2 && outside == NULL; i++) {
            outside = inputs[i] == NONE ? NULL : load(&list[inputs[i]].tensor, index, &operand[i]);
        }
        if (outside == NULL) {
            float result = value(operand[0], operand[1], a);
            outside = store(out, index, &result);
        }
        if (outside != NULL) {
            return outside;
        }
    }
    return NULL;
}

static float sum(float x, float y, float a) { return (void)a, x + y; }
static float multiply_add(float x, float y, float a) { return a * x + y; }
static float multiply(float x, float y, float a) { return (void)y, a * x; }
static float constant(float x, float y, float a) { return (void)x, (void)y, a; }

static rt_Status add_f32(const struct arguments *arguments) {
    return each(arguments, (struct operands){2, 0, 1, NONE}, sum);
}
static rt_Status saxpy_f32(const struct arguments *arguments) {
    return each(arguments, (struct operands){1, 0, 1, 2}, multiply_add);
}
static rt_Status scale_f32(const struct arguments *arguments) {
    return each(arguments, (struct operands){0, 0, NONE, 1}, multiply);
}
static rt_Status fill_f32(const struct arguments *arguments) {
    return each(arguments, (struct operands){0, NONE, NONE, 1}, constant);
}

/* Stores 0, 1, 2, … in the first `count` elements. */
static rt_Status count_up(const struct tensor *out, uint64_t count) {
    rt_Status outside = NULL;
    for (uint64_t index = 0; index < count && outside == NULL; index++) {
        uint32_t value = (uint32_t)index;
        outside = store(out, index, &value);
    }
    return outside;
}

static rt_Status iota_i32(const struct arguments *arguments) {
    const struct tensor *out = &arguments->list[0].tensor;
    if (elements(out) > INT32_MAX) {
        return fail(RT_ERROR_FAILED, "more elements than an i32 counts");
    }
    return count_up(out, elements(out));
}

static rt_Status group_ids_u32(const struct arguments *arguments) {
    const struct tensor *out = &arguments->list[0].tensor;
    uint64_t count = elements(out) < arguments->items ? elements(out) : arguments->items;
    if (count > UINT32_MAX) {
        return fail(RT_ERROR_FAILED, "more work-items than a u32 counts");
    }
    return count_up(out, count);
}

static rt_Status copy_bytes(const struct arguments *arguments) {
    const struct tensor *from = &arguments->list[0].tensor, *to = &arguments->list[1].tensor;
    if (elements(from) != elements(to) || element_bytes(from) != element_bytes(to)) {
        return fail(RT_ERROR_FAILED, "copy_bytes takes two tensors with the same number and size of elements");
    }
    rt_Status outside = NULL;
    for (uint64_t index = 0; index < elements(to) && outside == NULL; index++) {
        uint8_t *element;
        outside = at(from, index, &element);
        outside = outside == NULL ? store(to, index, element) : outside;
    }
    return outside;
}

static rt_Status sum9_f64(const struct arguments *arguments) {
    double total = 0;
    for (size_t i = 0; i < 8; i++) {
        total += number(&arguments->list[i]);
    }
    return store(&arguments->list[8].tensor, 0, &total);
}

static rt_Status counters(const struct arguments *arguments) {
    const struct tensor *out = &arguments->list[0].tensor;
    rt_Status outside = NULL;
    for (uint64_t index = 0; index < CALLS && index < elements(out) && outside == NULL; index++) {
        outside = store(out, index, &arguments->calls[index]);
    }
    return outside;
}

static rt_Status noop(const struct arguments *arguments) { return (void)arguments, NULL; }

static rt_Status spin(const struct arguments *arguments) {
    int64_t microseconds = (int64_t)arguments->list[0].scalar;
    if (microseconds > 0) {
        uint64_t until = now_ns() + (uint64_t)microseconds * 1000;
        struct timespec end = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0) {
        }
    }
    return NULL;
}

static rt_Status fails(const struct arguments *arguments) {
    (void)arguments;
    return fail(RT_ERROR_FAILED, "the kernel `fail` was run");
}

static const rt_Param add_params[] = {READS(F32), READS(F32), WRITES(F32)};
static const rt_Param saxpy_params[] = {READS(F32), UPDATES(F32), SCALAR(F32)};
static const rt_Param scale_params[] = {UPDATES(F32), SCALAR(F32)};
static const rt_Param fill_params[] = {WRITES(F32), SCALAR(F32)};
static const rt_Param iota_params[] = {WRITES(I32)};
static const rt_Param copy_params[] = {READS(ANY), WRITES(ANY)};
static const rt_Param sum9_params[] = {SCALAR(F64), SCALAR(I64), SCALAR(F64), SCALAR(I64), SCALAR(F64),
                                       SCALAR(I64), SCALAR(F64), SCALAR(I64), WRITES(F64)};
static const rt_Param group_ids_params[] = {WRITES(U32)};
static const rt_Param counters_params[] = {WRITES(U64)};
static const rt_Param spin_params[] = {SCALAR(I64)};

static const struct builtin builtins[] = {
    {"add_f32", add_params, 3, add_f32},
    {"saxpy_f32", saxpy_params, 3, saxpy_f32},
    {"scale_f32", scale_params, 2, scale_f32},
    {"fill_f32", fill_params, 2, fill_f32},
    {"iota_i32", iota_params, 1, iota_i32},
    {"copy_bytes", copy_params, 2, copy_bytes},
    {"sum9_f64", sum9_params, 9, sum9_f64},
    {"group_ids_u32", group_ids_params, 1, group_ids_u32},
    {"counters", counters_params, 1, counters},
    {"noop", NULL, 0, noop},
    {"spin", spin_params, 1, spin},
    {"fail", NULL, 0, fails},
};

const char *const builtin_names = "add_f32, saxpy_f32, scale_f32, fill_f32, iota_i32, copy_bytes, sum9_f64, "
                                  "group_ids_u32, counters, noop, spin, fail";

const struct builtin *find_builtin(const char *name) {
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
        if (strcmp(builtins[i].name, name) == 0) {
            return &builtins[i];
        }
    }
    return NULL;
}
