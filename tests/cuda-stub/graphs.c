/* Graphs: a list of work in node order, which satisfies all edges. */
#include "cuda.h"

#include <stdlib.h>

#ifndef LACKS_OPTIONAL

struct node {
    struct work work;
    int empty;
};
struct graph {
    struct node *nodes[4096];
    int count;
};
static int add(struct node **out, struct graph *graph, struct node node) {
    if (graph->count == 4096) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = graph->nodes[graph->count++] = malloc(sizeof node);
    **out = node;
    return 0;
}
struct kernel_node {
    const struct kernel *function;
    unsigned grid[3], block[3], shared;
    void **parameters;
};
struct memcpy3d_endpoint {
    size_t x, y, z, level;
    int kind;
    void *host;
    char *address;
    void *array, *reserved;
    size_t pitch, height;
};
struct memcpy3d {
    struct memcpy3d_endpoint source, destination;
    size_t width, height, depth;
};
struct memset_node {
    char *to;
    size_t pitch;
    unsigned value, unit;
    size_t width, height;
};
int cuGraphCreate(struct graph **graph, unsigned flags) {
    (void)flags;
    ENTER;
    *graph = calloc(1, sizeof **graph);
    return 0;
}
int cuGraphDestroy(struct graph *graph) {
    for (int i = 0; i < graph->count; i++) free(graph->nodes[i]);
    free(graph);
    return 0;
}
int cuGraphAddKernelNode_v2(struct node **out, struct graph *graph, void *needed, size_t count, const struct kernel_node *with) {
    (void)needed, (void)count;
    ENTER_WITH_CONTEXT;
    struct node node = {.work = {.kind = RUN}};
    pack_call(&node.work.call, with->function, with->grid, with->block, with->shared, with->parameters);
    return add(out, graph, node);
}
int cuGraphAddMemcpyNode(struct node **out, struct graph *graph, void *needed, size_t count, const struct memcpy3d *copy,
                         void *context) {
    (void)needed, (void)count, (void)context;
    ENTER_WITH_CONTEXT;
    struct work work = {.kind = COPY, .to = copy->destination.address, .from = copy->source.address, .bytes = copy->width};
    return add(out, graph, (struct node){.work = work});
}
int cuGraphAddMemsetNode(struct node **out, struct graph *graph, void *needed, size_t count, const struct memset_node *fill,
                         void *context) {
    (void)needed, (void)count, (void)context;
    ENTER_WITH_CONTEXT;
    struct work work = {.kind = FILL, .to = fill->to, .value = fill->value, .unit = fill->unit, .count = fill->width};
    return add(out, graph, (struct node){.work = work});
}
int cuGraphAddEmptyNode(struct node **out, struct graph *graph, void *needed, size_t count) {
    (void)needed, (void)count;
    return add(out, graph, (struct node){.empty = 1});
}
int cuGraphKernelNodeSetAttribute(struct node *node, int attribute, void *value) {
    (void)node, (void)attribute, (void)value;
    return 0;
}
int cuGraphInstantiateWithFlags(struct graph **executable, struct graph *graph, unsigned long long flags) {
    (void)flags;
    ENTER_WITH_CONTEXT;
    *executable = graph;
    return 0;
}
int cuGraphExecKernelNodeSetParams_v2(struct graph *executable, struct node *node, const struct kernel_node *with) {
    (void)executable;
    ENTER_WITH_CONTEXT;
    pack_call(&node->work.call, with->function, with->grid, with->block, with->shared, with->parameters);
    return 0;
}
int cuGraphExecDestroy(struct graph *executable) {
    (void)executable;
    return 0;
}
int cuGraphLaunch(struct graph *executable, struct stream *stream) {
    ENTER_WITH_CONTEXT;
    for (int i = 0; i < executable->count; i++)
        if (!executable->nodes[i]->empty) submit(stream, executable->nodes[i]->work);
    return 0;
}
#endif
