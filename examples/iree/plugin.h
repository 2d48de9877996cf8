/* What IREE asks of a library that its programs import functions from
   (--executable_plugin), version 1 of that interface: enough to name functions.
   In C11. A plugin includes this once and lists its functions:

     static const Import imports[] = {{"attention_import", attention_import}};
     PLUGIN("attention", imports)
*/

#ifndef VARLEN_EXAMPLES_IREE_PLUGIN_H
#define VARLEN_EXAMPLES_IREE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* `params` points to the arguments of the call, one after the other as members of
   a struct are. 0 is success; anything else fails the program's invocation. */
typedef int (*ImportFunction)(void *params, void *context, void *reserved);
typedef struct Import {
  const char *name;
  ImportFunction function;
} Import;

typedef struct PluginHeader {
  uint32_t version;
  const char *name, *description;
  uint32_t features;
  int32_t sanitizer;
  uint64_t reserved[8];
} PluginHeader;

typedef struct PluginRequest {
  size_t count;
  const char *const *names; /* with a "?" before those that may be missing */
  void **functions, **contexts;
} PluginRequest;

/* A status is a code in the place of a pointer. */
enum { PLUGIN_OK = 0, PLUGIN_NOT_FOUND = 5, PLUGIN_OPTIONAL_IS_MISSING = 1 };
typedef uintptr_t PluginStatus;

typedef struct Plugin {
  const PluginHeader *header;
  PluginStatus (*load)(const void *environment, size_t count,
                       const void *parameters, void **self);
  void (*unload)(void *self);
  PluginStatus (*resolve)(void *self, const PluginRequest *request,
                          uint32_t *resolution);
} Plugin;

static PluginStatus pluginLoad(const void *environment, size_t count,
                               const void *parameters, void **self) {
  (void)environment, (void)count, (void)parameters;
  *self = NULL;
  return PLUGIN_OK;
}

static void pluginUnload(void *self) { (void)self; }

static PluginStatus pluginFind(const Import *imports, size_t count,
                               const PluginRequest *request,
                               uint32_t *resolution) {
  PluginStatus status = PLUGIN_OK;
  *resolution = 0;
  for (size_t i = 0; i < request->count; ++i) {
    if (request->functions[i])
      continue;
    const char *name = request->names[i];
    int isOptional = *name == '?';
    name += isOptional;
    for (size_t j = 0; j < count; ++j)
      if (strcmp(name, imports[j].name) == 0)
        request->functions[i] = (void *)(uintptr_t)imports[j].function;
    if (!request->functions[i] && isOptional)
      *resolution |= PLUGIN_OPTIONAL_IS_MISSING;
    else if (!request->functions[i])
      status = PLUGIN_NOT_FOUND;
  }
  return status;
}

#define PLUGIN(NAME, IMPORTS)                                                  \
  static PluginStatus pluginResolve(void *self, const PluginRequest *request,  \
                                    uint32_t *resolution) {                    \
    (void)self;                                                                \
    return pluginFind(IMPORTS, sizeof IMPORTS / sizeof *IMPORTS, request,      \
                      resolution);                                             \
  }                                                                            \
  __attribute__((visibility("default"))) const PluginHeader **                 \
  iree_hal_executable_plugin_query(uint32_t newest, void *reserved) {          \
    static const PluginHeader header = {1, NAME, NAME, 0, 0, {0}};             \
    static const Plugin plugin = {&header, pluginLoad, pluginUnload,           \
                                  pluginResolve};                              \
    (void)reserved;                                                            \
    return newest >= 1 ? (const PluginHeader **)&plugin : NULL;                \
  }

#endif /* VARLEN_EXAMPLES_IREE_PLUGIN_H */
