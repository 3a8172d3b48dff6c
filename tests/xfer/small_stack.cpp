// SPDX-License-Identifier: Apache-2.0
// Goal: calls need little stack, as tasks have: a wait less than 8 KiB, anything else less than 16 KiB.
// Method: a thread with a stack of 32 KiB makes calls of each kind; what is below its frame is painted before each, and
// looked at after it. Prints what took more.
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rma/rma.hpp"

namespace {

constexpr std::size_t stack_bytes = std::size_t{32} << 10;
constexpr std::size_t wait_max_bytes = std::size_t{8} << 10;
constexpr std::size_t call_max_bytes = std::size_t{16} << 10;
constexpr std::size_t own_bytes = 1024;  // stack of the measurement and of a lambda; counted, but not painted
constexpr std::byte paint{0x5a};

struct measured {
  const char* call;
  std::size_t bytes;
  std::size_t max_bytes;
};

struct work {
  rma::Runtime& rt;
  std::byte* stack;
  std::array<measured, 64> calls{};
  std::size_t count = 0;
  const char* failed = nullptr;

  template <class Call>
  [[gnu::noinline]] void measure(const char* name, std::size_t max_bytes, Call&& call) {
    auto* const here = static_cast<std::byte*>(__builtin_frame_address(0));
    std::atomic_signal_fence(std::memory_order_seq_cst);
    for (std::byte* at = stack; at < here - own_bytes; ++at) *at = paint;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    call();
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::byte* lowest = stack;
    while (lowest < here - own_bytes && *lowest == paint) ++lowest;
    calls[count++] = {name, static_cast<std::size_t>(here - lowest), max_bytes};
  }
  template <class Call>
  void wait(const char* name, Call&& call) {
    measure(name, wait_max_bytes, call);
  }
  template <class Call>
  void any(const char* name, Call&& call) {
    measure(name, call_max_bytes, call);
  }

  void use(rma::Window<std::uint64_t>& win, std::span<std::uint64_t> data, const rma::Layout& gaps,
           const rma::Layout& flat);
  void run();
};

void work::use(rma::Window<std::uint64_t>& win, std::span<std::uint64_t> data, const rma::Layout& gaps,
               const rma::Layout& flat) {
  const int peer = (rt.rank() + 1) % rt.size();
  const std::span<const std::uint64_t> from(data);
  const std::size_t half = data.size() / 2;
  wait("fence", [&] { win.fence(); });
  any("put", [&] { win.put(from, peer, 0); });
  any("accumulate", [&] { win.accumulate(from, peer, 0, rma::band); });
  wait("fence", [&] { win.fence(rma::no_succeed); });
  wait("lock", [&] { (void)win.lock_nothrow(rma::shared, peer); });
  any("put", [&] { win.put(data.data(), flat, peer, 0, gaps); });
  wait("flush", [&] { win.flush(peer); });
  any("get", [&] { win.get(data.data(), flat, peer, 0, gaps); });
  wait("flush", [&] { win.flush(peer); });
  any("put", [&] { win.put(7, peer, 3); });
  any("accumulate", [&] { win.accumulate(data.data(), flat, peer, 0, gaps, rma::band); });
  any("fetch_and_op", [&] { (void)win.fetch_and_op(std::uint64_t{1}, peer, 9, rma::bor); });
  any("get_accumulate", [&] { win.get_accumulate(from.first(half), data.last(half), peer, 0, rma::band); });
  any("rput and wait", [&] { win.rput(from, peer, 0).wait(); });
  wait("unlock", [&] { win.unlock(peer); });
  wait("barrier", [&] { rt.world().barrier(); });
  any("a refused put", [&] {
    try {
      win.put(1, rt.size() + 5, 0);
      failed = "a put to no rank";
    } catch (const rma::Error&) {}
  });
}

void work::run() {
  constexpr std::size_t words = 20'000;
  std::vector<std::uint64_t> user(3 * words), data(words);
  const rma::Layout gaps = rma::Layout::vector<std::uint64_t>(words, 1, 3);
  const rma::Layout flat = rma::Layout::contiguous<std::uint64_t>(words);
  rma::Window<std::uint64_t> own, given;
  any("allocate", [&] { own = rma::Window<std::uint64_t>::allocate(rt.world(), 3 * words); });
  any("create", [&] { given = rma::Window<std::uint64_t>::create(rt.world(), std::span(user)); });
  use(own, data, gaps, flat);
  use(given, data, gaps, flat);
  any("split", [&] { (void)rt.world().split(0, 0); });
  any("allreduce", [&] { (void)rt.world().allreduce(std::uint64_t{1}, rma::sum); });
  any("broadcast", [&] { rt.world().broadcast(std::span(data), 0); });
  any("free", [&] { own.free(); });
  any("free", [&] { given.free(); });
}

void* run_thread(void* task) {
  static_cast<work*>(task)->run();
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  void* const stack = ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) return 1;
  work task{rt, static_cast<std::byte*>(stack)};
  pthread_attr_t attributes;
  pthread_t thread{};
  ::pthread_attr_init(&attributes);
  if (::pthread_attr_setstack(&attributes, stack, stack_bytes) != 0) return 1;
  if (::pthread_create(&thread, &attributes, run_thread, &task) != 0 || ::pthread_join(thread, nullptr) != 0) return 1;
  bool holds = task.failed == nullptr;
  if (!holds) fmt::print("small_stack: not refused: {}\n", task.failed);
  for (const measured& each : std::span(task.calls).first(task.count)) {
    if (each.bytes < each.max_bytes) continue;
    holds = false;
    fmt::print("small_stack: rank {}: {} takes {} bytes of stack, {} allowed\n", rt.rank(), each.call, each.bytes,
               each.max_bytes);
  }
  if (argc > 1) {
    for (const measured& each : std::span(task.calls).first(task.count))
      fmt::print("{} {} {}\n", rt.rank(), each.call, each.bytes);
  }
  if (holds && rt.rank() == 0) fmt::print("small_stack: done\n");
  return holds ? 0 : 1;
}
