/* Launch arguments: copied from the caller's structures, which are valid only during the call. */

#include "backend.h"

#include <stdlib.h>
#include <string.h>

/* Limits of arguments per launch and dimensions per tensor, far above what kernels use. */
enum { MOST_ARGUMENTS = 1 << 12, MOST_DIMENSIONS = 64 };

/* Sums the dimensions of all tensors. */
static rt_Status count_dimensions(const rt_Launch *launch, size_t *out) {
    size_t dimensions = 0;
    if (launch->arg_count > MOST_ARGUMENTS) {
        return fail(RT_ERROR_INVALID_ARGUMENT, "%zu arguments; at most %d", launch->arg_count, MOST_ARGUMENTS);
    }
    for (size_t i = 0; i < launch->arg_count; i++) {
        if (launch->args[i].kind != RT_ARG_TENSOR) {
            continue;
        }
        rt_TensorArg tensor;
        read_struct(&tensor, sizeof tensor, launch->args[i].value.tensor);
        if (tensor.ndim > MOST_DIMENSIONS) {
            return fail(RT_ERROR_INVALID_ARGUMENT, "argument %zu has %u dimensions; at most %d", i, tensor.ndim,
                        MOST_DIMENSIONS);
        }
        dimensions += tensor.ndim;
    }
    *out = dimensions;
    return NULL;
}

/* Copies an argument; its shape and strides go to `room`, which is advanced. */
static void copy_argument(const rt_Arg *arg, struct argument *kept, int64_t **room) {
    kept->kind = arg->kind;
    if (arg->kind == RT_ARG_SCALAR) {
        kept->dtype = (rt_DType){arg->dtype_code, arg->dtype_bits, 1};
        kept->scalar = arg->value.scalar;
    }
    if (arg->kind != RT_ARG_TENSOR) {
        return;
    }
    rt_TensorArg tensor;
    read_struct(&tensor, sizeof tensor, arg->value.tensor);
    const struct buffer *buffer = tensor.buffer;
    int64_t *shape = *room, *strides = shape + tensor.ndim;
    if (tensor.ndim > 0) {
        memcpy(shape, tensor.shape, tensor.ndim * sizeof *shape);
        memcpy(strides, tensor.strides, tensor.ndim * sizeof *strides);
    }
    *room = strides + tensor.ndim;
    kept->dtype = tensor.dtype;
    kept->tensor = (struct tensor){.buffer = buffer,
                                   .first = (int64_t)(tensor.address - KERNEL_ADDRESS(buffer)),
                                   .ndim = tensor.ndim,
                                   .dtype = tensor.dtype,
                                   .shape = shape,
                                   .strides = strides};
}

/* Checks number, kinds and types of the arguments. Core does so, too; another caller may not. */
static rt_Status check_arguments(const struct builtin *kernel, const struct arguments *arguments) {
    if (kernel->params == NULL) {
        return NULL;
    }
    if (kernel->param_count != arguments->count) {
        return fail(RT_ERROR_INVALID_ARGUMENT, "%s takes %zu arguments, got %zu", kernel->name, kernel->param_count,
                    arguments->count);
    }
    for (size_t i = 0; i < arguments->count; i++) {
        const rt_Param *param = &kernel->params[i];
        const struct argument *argument = &arguments->list[i];
        int same = memcmp(&param->dtype, &argument->dtype, sizeof param->dtype) == 0;
        if (param->kind != argument->kind || (param->dtype.bits != 0 && !same)) {
            return fail(RT_ERROR_INVALID_ARGUMENT, "argument %zu of %s has the wrong kind or type", i, kernel->name);
        }
    }
    return NULL;
}

rt_Status copy_arguments(const rt_Launch *launch, const struct builtin *kernel, struct arguments *out) {
    size_t dimensions = 0;
    rt_Status refused = count_dimensions(launch, &dimensions);
    if (refused != NULL) {
        return refused;
    }
    /* One allocation: the list, followed by shapes and strides. */
    size_t list_bytes = launch->arg_count * sizeof(struct argument);
    struct argument *list = calloc(1, list_bytes + 2 * dimensions * sizeof(int64_t) + 1);
    if (list == NULL) {
        return fail(RT_ERROR_OUT_OF_RESOURCES, "no memory for %zu arguments", launch->arg_count);
    }
    int64_t *room = (int64_t *)(list + launch->arg_count);
    for (size_t i = 0; i < launch->arg_count; i++) {
        copy_argument(&launch->args[i], &list[i], &room);
    }
    out->count = launch->arg_count;
    out->list = list;
    out->items = 1;
    for (int i = 0; i < 3; i++) {
        out->items *= (uint64_t)launch->groups[i] * launch->group_size[i];
    }
    refused = check_arguments(kernel, out);
    if (refused != NULL) {
        free(list);
        out->list = NULL;
    }
    return refused;
}
