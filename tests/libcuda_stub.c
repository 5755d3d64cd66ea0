// A libcuda.so.1 without a GPU: host memory plays device memory, kernels are not executed, and every call that
// matters is written to the file named by STUB_LOG. STUB_LIMIT bounds the bytes that can be allocated, STUB_SHARED
// is the shared memory of a block.
#include "cuda.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef cuGetProcAddress

static CUcontext current = 0;
static size_t held = 0, high = 0;
static uintptr_t handles = 0x5000;

static void note(const char *format, ...) {
  static FILE *file = 0;
  const char *path = getenv("STUB_LOG");
  if (!path) return;
  if (!file) file = fopen(path, "a");
  va_list list;
  va_start(list, format);
  vfprintf(file, format, list);
  va_end(list);
  fputc('\n', file);
  fflush(file);
}

CUresult cuInit(unsigned flags) { return 0; }
CUresult cuDriverGetVersion(int *v) { *v = 13000; return 0; }
CUresult cuDeviceGetCount(int *n) { *n = 2; return 0; }
CUresult cuDeviceGet(CUdevice *d, int i) { *d = i; return i < 2 ? 0 : CUDA_ERROR_INVALID_DEVICE; }
CUresult cuDeviceGetName(char *name, int n, CUdevice d) { snprintf(name, n, "STUB GPU %d", d); return 0; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) { note("retain %d", d); *c = (CUcontext)(uintptr_t)(0x1000 + d); return 0; }
CUresult cuCtxGetCurrent(CUcontext *c) { *c = current; return 0; }
CUresult cuCtxSetCurrent(CUcontext c) { note("context %d", (int)((uintptr_t)c & 15)); current = c; return 0; }
CUresult cuCtxGetDevice(CUdevice *d) { *d = (int)((uintptr_t)current & 15); return current ? 0 : CUDA_ERROR_INVALID_CONTEXT; }
CUresult cuCtxSynchronize(void) { note("device synchronize"); return 0; }
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
  switch ((int)a) {
    case 75: *v = 9; break;       // compute capability 9.0
    case 76: *v = 0; break;
    case 97: *v = getenv("STUB_SHARED") ? atoi(getenv("STUB_SHARED")) : 232448; break;  // of a block, opt-in
    case 81: *v = 233472; break;
    case 16: *v = 132; break;     // multiprocessors
    case 10: *v = 32; break;      // warp size
    default: *v = 1024;
  }
  return 0;
}
CUresult cuGetErrorString(CUresult e, const char **s) { *s = "text of the stub"; return 0; }
CUresult cuGetErrorName(CUresult e, const char **s) { *s = "CUDA_ERROR_OF_STUB"; return 0; }

// Modules and launches
CUresult cuModuleLoadData(CUmodule *m, const void *image) { note("module"); *m = (CUmodule)0x2000; return 0; }
CUresult cuModuleUnload(CUmodule m) { return 0; }
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) { note("function %s", name); *f = (CUfunction)0x3000; return 0; }
CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f) { *v = a == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 32; return 0; }
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) { return 0; }
CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache c) { return 0; }
CUresult cuCtxGetLimit(size_t *v, CUlimit l) { *v = 0; return 0; }
CUresult cuCtxSetLimit(CUlimit l, size_t v) { return 0; }
CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction f, const CUlaunchConfig *c) { *n = 1; return 0; }
CUresult cuPointerGetAttribute(void *out, CUpointer_attribute a, CUdeviceptr p) { note("pointer attribute"); *(CUdeviceptr *)out = p; return 0; }
CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *c) { *c = 0; return 0; }
CUresult cuTensorMapEncodeTiled(CUtensorMap *t, CUtensorMapDataType d, cuuint32_t r, void *g, const cuuint64_t *n, const cuuint64_t *s, const cuuint32_t *b, const cuuint32_t *e, CUtensorMapInterleave i, CUtensorMapSwizzle w, CUtensorMapL2promotion l, CUtensorMapFloatOOBfill f) { return 0; }

static CUresult launched(const char *how, unsigned x, unsigned y, unsigned z, unsigned block, CUstream s, void **p) {
  if (getenv("STUB_LOG")) {
    const char *count = getenv("STUB_WORDS");
    char words[400] = "";
    for (int i = 0; i < (count ? atoi(count) : 2); i++) sprintf(words + strlen(words), " %lx", *(unsigned long *)p[i]);
    note("%s grid=%u,%u,%u block=%u stream=%lx words:%s", how, x, y, z, block, (unsigned long)(uintptr_t)s, words);
  }
  return 0;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p, void **e) {
  int cooperative = 0;
  for (unsigned i = 0; i < c->numAttrs; i++)
    cooperative |= c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && c->attrs[i].value.cooperative;
  return launched(cooperative ? "cooperative launch" : "launch", c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->hStream, p);
}
CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream s, void **p, void **e) {
  return launched("launch", x, y, z, bx, s, p);
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream s, void **p) {
  return launched("cooperative launch", x, y, z, bx, s, p);
}

// Memory: the size stands in front of each block
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *p, CUdevice d) { *p = (CUmemoryPool)0x4000; return 0; }
CUresult cuMemPoolSetAttribute(CUmemoryPool p, CUmemPool_attribute a, void *v) {
  note("pool attribute %d = %lx", (int)a, *(unsigned long *)v);
  if (a == CU_MEMPOOL_ATTR_USED_MEM_HIGH) high = held;
  return 0;
}
CUresult cuMemPoolGetAttribute(CUmemoryPool p, CUmemPool_attribute a, void *v) {
  *(unsigned long *)v = a == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? high : held;
  return 0;
}
CUresult cuMemPoolTrimTo(CUmemoryPool p, size_t n) { note("trim %lu", (unsigned long)n); return 0; }
CUresult cuMemGetInfo_v2(size_t *available, size_t *total) { *available = 12345; *total = 67890; return 0; }
CUresult cuMemAllocAsync(CUdeviceptr *p, size_t n, CUstream s) {
  const char *limit = getenv("STUB_LIMIT");
  if (limit && held + n > strtoul(limit, 0, 10)) return CUDA_ERROR_OUT_OF_MEMORY;
  char *block = aligned_alloc(256, (n + 256 + 255) / 256 * 256);
  *(size_t *)block = n;
  held += n;
  if (held > high) high = held;
  *p = (CUdeviceptr)(block + 256);
  note("alloc %lu stream=%lx", (unsigned long)n, (unsigned long)(uintptr_t)s);
  return 0;
}
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s) {
  char *block = (char *)p - 256;
  note("free %lu stream=%lx", (unsigned long)*(size_t *)block, (unsigned long)(uintptr_t)s);
  held -= *(size_t *)block;
  free(block);
  return 0;
}
CUresult cuMemAllocHost_v2(void **p, size_t n) { note("pinned %lu", (unsigned long)n); *p = malloc(n); return 0; }
CUresult cuMemFreeHost(void *p) { note("unpinned"); free(p); return 0; }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, CUstream t) { note("upload %lu", (unsigned long)n); memcpy((void *)d, s, n); return 0; }
CUresult cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, CUstream t) { note("download %lu", (unsigned long)n); memcpy(d, (void *)s, n); return 0; }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream t) { note("copy %lu", (unsigned long)n); memcpy((void *)d, (void *)s, n); return 0; }
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char b, size_t n, CUstream t) { note("set %lu", (unsigned long)n); memset((void *)d, b, n); return 0; }

// Streams, events and graphs
CUresult cuStreamCreateWithPriority(CUstream *s, unsigned flags, int priority) { *s = (CUstream)(handles += 16); note("stream %lx flags=%u", (unsigned long)handles, flags); return 0; }
CUresult cuStreamDestroy_v2(CUstream s) { note("destroy stream %lx", (unsigned long)(uintptr_t)s); return 0; }
CUresult cuStreamSynchronize(CUstream s) { note("synchronize %lx", (unsigned long)(uintptr_t)s); return 0; }
CUresult cuStreamQuery(CUstream s) { return CUDA_ERROR_NOT_READY; }
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) { note("wait %lx", (unsigned long)(uintptr_t)s); return 0; }
CUresult cuEventCreate(CUevent *e, unsigned flags) { *e = (CUevent)(handles += 16); note("event flags=%u", flags); return 0; }
CUresult cuEventDestroy_v2(CUevent e) { return 0; }
CUresult cuEventRecord(CUevent e, CUstream s) { note("record %lx", (unsigned long)(uintptr_t)s); return 0; }
CUresult cuEventSynchronize(CUevent e) { return 0; }
CUresult cuEventQuery(CUevent e) { return 0; }
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) { *ms = 2.5f; return 0; }
CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) { note("begin capture %lx", (unsigned long)(uintptr_t)s); return 0; }
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *m) { note("mode %d", (int)*m); *m = CU_STREAM_CAPTURE_MODE_GLOBAL; return 0; }
CUresult cuStreamEndCapture(CUstream s, CUgraph *g) { note("end capture"); *g = (CUgraph)0x6000; return 0; }
CUresult cuGraphInstantiateWithFlags(CUgraphExec *x, CUgraph g, unsigned long long flags) { note("instantiate flags=%llu", flags); *x = (CUgraphExec)0x7000; return 0; }
CUresult cuGraphLaunch(CUgraphExec x, CUstream s) { note("graph launch %lx", (unsigned long)(uintptr_t)s); return 0; }
CUresult cuGraphDestroy(CUgraph g) { return 0; }
CUresult cuGraphExecDestroy(CUgraphExec x) { note("graph destroy"); return 0; }

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status) {
  char versioned[200];
  void *self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  snprintf(versioned, sizeof versioned, "%s_v2", name);
  *function = dlsym(self, versioned);
  if (!*function) *function = dlsym(self, name);
  if (status) *status = *function ? 0 : 1;
  return *function ? 0 : CUDA_ERROR_NOT_FOUND;
}
CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags) { return cuGetProcAddress_v2(name, function, version, flags, 0); }
