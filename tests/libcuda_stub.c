// A libcuda.so.1 without a GPU: host memory plays device memory, kernels are not executed, and every call that
// matters is written to the file named by STUB_LOG. STUB_LIMIT bounds the bytes that can be allocated, STUB_SHARED
// is the shared memory of a block. Memory is address space until it is written; STUB_COPY bounds the bytes that a copy
// or a fill moves, so that arrays of real sizes cost nothing. A launch that an H200 would refuse for its grid, its
// registers or its shared memory is refused here, and so is what a capture forbids. Events have the host's clock. After
// launch number STUB_FAULT the context is lost, as after an illegal access.
#include "cuda.h"
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#undef cuGetProcAddress

enum { MULTIPROCESSORS = 132, BLOCK_SHARED = 232448, SM_SHARED = 233472, REGISTERS = 65536 };
static CUcontext current = 0;
static size_t held = 0, high = 0;
static uintptr_t handles = 0x5000;
static int trimmed = 0;
unsigned long stub_launches = 0;  // what was launched, recorded launches too
static CUresult lost = 0;         // what every call that the GPU has to do with gives from then on

// A stream capture of this thread: what is unsafe meanwhile fails, unless it was declared relaxed
static __thread CUstream captured = 0;
static __thread CUstreamCaptureMode captured_as = CU_STREAM_CAPTURE_MODE_GLOBAL;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static __thread int broken = 0;
static CUresult unsafe(void) {
  if (lost) return lost;
  if (!captured || captured_as == CU_STREAM_CAPTURE_MODE_RELAXED || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return 0;
  broken = 1;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

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
CUresult cuCtxSynchronize(void) { note("device synchronize"); return unsafe(); }
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d) {
  switch ((int)a) {
    case 75: *v = 9; break;       // compute capability 9.0
    case 76: *v = 0; break;
    case 97: *v = getenv("STUB_SHARED") ? atoi(getenv("STUB_SHARED")) : BLOCK_SHARED; break;  // of a block, opt-in
    case 81: *v = SM_SHARED; break;
    case 16: *v = MULTIPROCESSORS; break;
    case 10: *v = 32; break;      // warp size
    default: *v = 1024;
  }
  return 0;
}
CUresult cuGetErrorString(CUresult e, const char **s) {
  static __thread char text[40];
  if (e == CUDA_ERROR_OUT_OF_MEMORY) snprintf(text, sizeof text, "out of memory");
  else snprintf(text, sizeof text, "error %d of the stub", (int)e);
  *s = text;
  return 0;
}
CUresult cuGetErrorName(CUresult e, const char **s) { return cuGetErrorString(e, s); }

// Modules and launches
typedef struct { int registers, stack, shared, dynamic; } Kernel;  // shared: static bytes; dynamic: what it may have
static void describe(Kernel *k, const char *image) {  // from the one kernel of a cubin
  const Elf64_Ehdr *elf = (const Elf64_Ehdr *)image;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + elf->e_shoff);
  const char *names = image + sections[elf->e_shstrndx].sh_offset;
  for (int i = 0; i < elf->e_shnum; i++) {
    const Elf64_Shdr *s = sections + i;
    const unsigned char *at = (const unsigned char *)image + s->sh_offset, *end = at + s->sh_size;
    if (!strncmp(names + s->sh_name, ".nv.shared.", 11)) k->shared += s->sh_size;
    if (strcmp(names + s->sh_name, ".nv.info")) continue;
    for (; at < end; at += 4 + (at[0] == 4 ? *(unsigned short *)(at + 2) : 0)) {  // form, attribute, size or value
      if (at[0] == 4 && at[1] == 0x2f) k->registers = *(int *)(at + 8);           // EIATTR_REGCOUNT: symbol, registers
      if (at[0] == 4 && at[1] == 0x12) k->stack = *(int *)(at + 8);               // EIATTR_MIN_STACK_SIZE: likewise
    }
  }
}
static int resident(const Kernel *k, unsigned threads, unsigned shared) {  // programs on a multiprocessor at a time
  int warps = (threads + 31) / 32, by_warps = 64 / warps, by_shared = SM_SHARED / (k->shared + shared + 1024);
  int by_registers = REGISTERS / ((k->registers * 32 + 255) / 256 * 256 * warps), most = by_warps < 32 ? by_warps : 32;
  if (by_shared < most) most = by_shared;
  return by_registers < most ? by_registers : most;
}
CUresult cuModuleLoadData(CUmodule *m, const void *image) {
  if (getenv("STUB_FULL") && !trimmed) return CUDA_ERROR_OUT_OF_MEMORY;  // the pool holds all, until it is trimmed
  note("module");
  Kernel *k = calloc(1, sizeof *k);
  k->dynamic = 49152;
  describe(k, image);
  *m = (CUmodule)k;
  return unsafe();
}
CUresult cuModuleUnload(CUmodule m) { free(m); return unsafe(); }
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) { note("function %s", name); *f = (CUfunction)m; return 0; }
CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f) {
  const Kernel *k = (const Kernel *)f;
  *v = a == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : a == CU_FUNC_ATTRIBUTE_NUM_REGS ? k->registers :
       a == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES ? k->shared : a == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? k->stack : 0;
  return 0;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) {
  Kernel *k = (Kernel *)f;
  if ((int)a == 17) return CUDA_ERROR_INVALID_VALUE;  // SHARED_MEMORY_MODE, which Triton 3.9 tries first, is of newer drivers
  if (a != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return 0;
  if (v + k->shared > BLOCK_SHARED) return CUDA_ERROR_INVALID_VALUE;
  k->dynamic = v;
  return 0;
}
CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache c) { return 0; }
CUresult cuCtxGetLimit(size_t *v, CUlimit l) { *v = 0; return 0; }
CUresult cuCtxSetLimit(CUlimit l, size_t v) { return 0; }
CUresult cuOccupancyMaxActiveClusters(int *n, CUfunction f, const CUlaunchConfig *c) { *n = 1; return 0; }
CUresult cuPointerGetAttribute(void *out, CUpointer_attribute a, CUdeviceptr p) {
  if (a == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {  // of host memory: page-locked by another library, if the test says so
    const char *locked = getenv("STUB_LOCKED");
    *(unsigned *)out = CU_MEMORYTYPE_HOST;
    return locked ? 0 : CUDA_ERROR_INVALID_VALUE;
  }
  note("pointer attribute");
  *(CUdeviceptr *)out = p;
  return 0;
}
CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *c) { *c = 0; return 0; }
CUresult cuTensorMapEncodeTiled(CUtensorMap *t, CUtensorMapDataType d, cuuint32_t r, void *g, const cuuint64_t *n, const cuuint64_t *s, const cuuint32_t *b, const cuuint32_t *e, CUtensorMapInterleave i, CUtensorMapSwizzle w, CUtensorMapL2promotion l, CUtensorMapFloatOOBfill f) { return 0; }

static CUresult launched(CUfunction f, int cooperative, unsigned x, unsigned y, unsigned z, unsigned block,
                         unsigned shared, CUstream s, void **p) {
  const Kernel *k = (const Kernel *)f;
  if (getenv("STUB_LOG")) {
    const char *count = getenv("STUB_WORDS");
    char words[400] = "";
    for (int i = 0; i < (count ? atoi(count) : 2); i++) sprintf(words + strlen(words), " %lx", *(unsigned long *)p[i]);
    note("%slaunch grid=%u,%u,%u block=%u stream=%lx words:%s", cooperative ? "cooperative " : "", x, y, z, block, (unsigned long)(uintptr_t)s, words);
  }
  const char *fault = getenv("STUB_FAULT");
  if (lost) return lost;
  if (++stub_launches == (fault ? strtoul(fault, 0, 10) : 0)) lost = CUDA_ERROR_ILLEGAL_ADDRESS;  // said by the next call
  if (!x || x > 0x7fffffff || !y || y > 65535 || !z || z > 65535 || block > 1024 || (int)shared > k->dynamic)
    return CUDA_ERROR_INVALID_VALUE;
  int programs = resident(k, block, shared);
  if (!programs) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  return cooperative && (size_t)x * y * z > (size_t)programs * MULTIPROCESSORS ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE : 0;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **p, void **e) {
  int cooperative = 0;
  for (unsigned i = 0; i < c->numAttrs; i++)
    cooperative |= c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && c->attrs[i].value.cooperative;
  return launched(f, cooperative, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->sharedMemBytes, c->hStream, p);
}
CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream s, void **p, void **e) {
  return launched(f, 0, x, y, z, bx, shared, s, p);
}
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                                   unsigned bz, unsigned shared, CUstream s, void **p) {
  return launched(f, 1, x, y, z, bx, shared, s, p);
}

// Memory: a block is a power of two of address space, its size stands in front, and what is freed is handed out again
enum { CLASSES = 40, HEAD = 256 };
static void *unused[CLASSES];
static pthread_mutex_t of_memory = PTHREAD_MUTEX_INITIALIZER;
static int class_of(size_t n) {
  int c = 9;
  while ((1ul << c) < n + HEAD) c++;
  return c;
}
static char *block_of(size_t n) {
  static char *next = 0;
  int c = class_of(n);
  pthread_mutex_lock(&of_memory);
  char *block = unused[c];
  if (block) {
    unused[c] = *(void **)(block + 8);
  } else {
    if (!next) next = mmap(0, 1ul << CLASSES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    block = next;
    next += 1ul << c;
  }
  *(size_t *)block = n;
  held += n;
  if (held > high) high = held;
  pthread_mutex_unlock(&of_memory);
  return block;
}
static size_t moved(size_t n) {  // of so many bytes
  const char *most = getenv("STUB_COPY");
  return most && n > strtoul(most, 0, 10) ? strtoul(most, 0, 10) : n;
}
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
CUresult cuMemPoolTrimTo(CUmemoryPool p, size_t n) { trimmed = 1; note("trim %lu", (unsigned long)n); return 0; }
CUresult cuMemGetInfo_v2(size_t *available, size_t *total) { *available = 12345; *total = 67890; return 0; }
CUresult cuMemAllocAsync(CUdeviceptr *p, size_t n, CUstream s) {
  const char *limit = getenv("STUB_LIMIT");
  if (limit && held + n > strtoul(limit, 0, 10)) return CUDA_ERROR_OUT_OF_MEMORY;
  *p = (CUdeviceptr)(block_of(n) + HEAD);
  note("alloc %lu stream=%lx", (unsigned long)n, (unsigned long)(uintptr_t)s);
  return 0;
}
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream s) {
  char *block = (char *)p - HEAD;
  size_t n = *(size_t *)block;
  int c = class_of(n);
  note("free %lu stream=%lx", (unsigned long)n, (unsigned long)(uintptr_t)s);
  pthread_mutex_lock(&of_memory);
  held -= n;
  *(void **)(block + 8) = unused[c];
  unused[c] = block;
  pthread_mutex_unlock(&of_memory);
  return 0;
}
CUresult cuMemAllocHost_v2(void **p, size_t n) { note("pinned %lu", (unsigned long)n); *p = malloc(n); return unsafe(); }
CUresult cuMemFreeHost(void *p) { note("unpinned"); free(p); return unsafe(); }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *s, size_t n, CUstream t) { note("upload %lu", (unsigned long)n); memcpy((void *)d, s, moved(n)); return 0; }
CUresult cuMemcpyDtoHAsync_v2(void *d, CUdeviceptr s, size_t n, CUstream t) { note("download %lu", (unsigned long)n); memcpy(d, (void *)s, moved(n)); return 0; }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr d, CUdeviceptr s, size_t n, CUstream t) { note("copy %lu", (unsigned long)n); memcpy((void *)d, (void *)s, moved(n)); return 0; }
CUresult cuMemsetD8Async(CUdeviceptr d, unsigned char b, size_t n, CUstream t) { note("set %lu", (unsigned long)n); memset((void *)d, b, moved(n)); return 0; }

// Streams, events and graphs
CUresult cuStreamCreateWithPriority(CUstream *s, unsigned flags, int priority) { *s = (CUstream)(handles += 16); note("stream %lx flags=%u", (unsigned long)handles, flags); return 0; }
CUresult cuStreamDestroy_v2(CUstream s) { note("destroy stream %lx", (unsigned long)(uintptr_t)s); return 0; }
CUresult cuStreamSynchronize(CUstream s) {
  note("synchronize %lx", (unsigned long)(uintptr_t)s);
  if (!captured || s != captured) return unsafe();
  broken = 1;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}
CUresult cuStreamQuery(CUstream s) { return CUDA_ERROR_NOT_READY; }
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) { note("wait %lx", (unsigned long)(uintptr_t)s); return 0; }
CUresult cuEventCreate(CUevent *e, unsigned flags) { *e = calloc(1, sizeof(double)); note("event flags=%u", flags); return 0; }
CUresult cuEventDestroy_v2(CUevent e) { free(e); return 0; }
CUresult cuEventRecord(CUevent e, CUstream s) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *(double *)e = now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
  note("record %lx", (unsigned long)(uintptr_t)s);
  return lost;
}
CUresult cuEventSynchronize(CUevent e) { return lost; }
CUresult cuEventQuery(CUevent e) { return lost; }
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) { *ms = *(double *)b - *(double *)a; return lost; }
CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
  note("begin capture %lx", (unsigned long)(uintptr_t)s);
  captured = s;
  captured_as = mode;
  broken = 0;
  return 0;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *m) {
  CUstreamCaptureMode before = thread_mode;
  note("mode %d", (int)*m);
  thread_mode = *m;
  *m = before;
  return 0;
}
CUresult cuStreamEndCapture(CUstream s, CUgraph *g) {
  note("end capture");
  captured = 0;
  *g = (CUgraph)0x6000;
  return broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0;
}
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
