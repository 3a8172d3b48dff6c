// SPDX-License-Identifier: Apache-2.0
// registration_instructions N: the same as instructions.cpp, for the cache of registrations in src/fabric/verbs.
// Without the question to the kernel that belongs to each acquire (one ioctl): valgrind does not know userfaultfd.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "fabric/verbs/registration_cache.hpp"  // tidy: allow(include-direction) it measures a part of the library

namespace {

using namespace rma::verbs;

class no_adapter final : public registrar {
 public:
  rma::status enroll(void*, std::size_t, registration&) noexcept override { return rma::status::done; }
  void withdraw(const registration&) noexcept override {}
};

constexpr std::size_t buffer_bytes = 64 << 10;
constexpr std::size_t buffers = 256;

}  // namespace

// Outside the namespace and with C names: callgrind reports them by these.
extern "C" {

// The buffer that was used last.
[[gnu::noinline]] void count_same_buffer(registration_cache& cache, char* at) {
  cache.release(cache.acquire(at, buffer_bytes));
}

// One of 256.
[[gnu::noinline]] void count_other_buffer(registration_cache& cache, char* at) {
  cache.release(cache.acquire(at, buffer_bytes));
}

}  // extern "C"

int main(int argc, char** argv) {
  const std::uint64_t calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  no_adapter adapter;
  registration_cache cache(adapter, {}, unmap_watch::source::program);
  // Twice as much between them, so that each is an entry of its own.
  std::vector<char> memory(2 * buffers * buffer_bytes);
  const auto buffer = [&memory](std::uint64_t i) { return memory.data() + 2 * (i % buffers) * buffer_bytes; };
  for (std::uint64_t i = 0; i < buffers; ++i) cache.release(cache.acquire(buffer(i), buffer_bytes));
  for (std::uint64_t i = 0; i < calls; ++i) count_same_buffer(cache, buffer(7));
  for (std::uint64_t i = 0; i < calls; ++i) count_other_buffer(cache, buffer(i * 97));
  return cache.counts().hits == 2 * calls ? EXIT_SUCCESS : EXIT_FAILURE;
}
