// SPDX-License-Identifier: Apache-2.0
// A library to be preloaded: in the process of one rank, HALT_RANK, the HALT_CALL-th call of one of the C library's
// functions below does not return: HALT_HOW is stop, kill or hang. Without HALT_CALL the calls are counted: see
// start_is_over.
#include <dlfcn.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

constexpr long memory_calls_per_call = 64;  // there are so many that the others would hardly be met

std::atomic<long> calls;
std::atomic<long> memory_calls;
long halt_call;  // 0: none
bool counts;     // this process is the rank in question

[[gnu::constructor]] void look_at_environment() {
  const char* const wanted = std::getenv("HALT_RANK");
  const char* const rank = std::getenv("RMA_RANK");
  const char* const call = std::getenv("HALT_CALL");
  counts = wanted != nullptr && rank != nullptr && std::string_view(wanted) == rank;
  if (call != nullptr) halt_call = std::atol(call);
}

void halt() {
  const char* const how = std::getenv("HALT_HOW");
  const std::string_view way(how == nullptr ? "hang" : how);
  if (way == "kill") (void)std::raise(SIGKILL);
  if (way == "stop") (void)std::raise(SIGSTOP);
  sigset_t none;
  sigemptyset(&none);
  for (;;) ::sigsuspend(&none);
}

void count_call() {
  if (counts && calls.fetch_add(1) + 1 == halt_call) halt();
}

void count_memory_call() {
  if (memory_calls.fetch_add(1) % memory_calls_per_call == 0) count_call();
}

}  // namespace

extern "C" {

// The program says so. Writes the count of this rank's calls to the file HALT_COUNT.
void start_is_over() {
  const long counted = calls.load();
  const char* const name = std::getenv("HALT_COUNT");
  if (!counts || name == nullptr) return;
  std::FILE* const file = std::fopen(name, "w");
  if (file == nullptr) return;
  std::fprintf(file, "%ld\n", counted);
  std::fclose(file);
}

using any_function = long (*)(long, long, long, long, long, long);

// Defined under another name than the headers know, all alike: with as many integers as any takes.
#define HALTS(name)                                                                        \
  long halting_##name(long, long, long, long, long, long) asm(#name);                      \
  long halting_##name(long a, long b, long c, long d, long e, long f) {                    \
    static any_function next;                                                              \
    count_call();                                                                          \
    if (next == nullptr) next = reinterpret_cast<any_function>(::dlsym(RTLD_NEXT, #name)); \
    return next(a, b, c, d, e, f);                                                         \
  }

HALTS(socket)
HALTS(bind)
HALTS(listen)
HALTS(connect)
HALTS(accept4)
HALTS(setsockopt)
HALTS(getsockopt)
HALTS(getsockname)
HALTS(send)
HALTS(sendmsg)
HALTS(recv)
HALTS(recvmsg)
HALTS(read)
HALTS(write)
HALTS(readlink)
HALTS(getrandom)
HALTS(close)
HALTS(poll)
HALTS(epoll_create1)
HALTS(epoll_ctl)
HALTS(eventfd)
HALTS(memfd_create)
HALTS(ftruncate)
HALTS(posix_fallocate)
HALTS(mmap)
HALTS(munmap)
HALTS(madvise)
HALTS(pthread_create)
HALTS(pthread_mutex_init)
HALTS(sysconf)
HALTS(sched_getaffinity)

// These two are needed while the names of others are looked up.
void* __libc_malloc(std::size_t bytes);
void __libc_free(void* at);

void* malloc(std::size_t bytes) noexcept {
  count_memory_call();
  return __libc_malloc(bytes);
}

void free(void* at) noexcept {
  count_memory_call();
  __libc_free(at);
}

}  // extern "C"
