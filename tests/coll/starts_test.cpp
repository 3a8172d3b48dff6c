// SPDX-License-Identifier: Apache-2.0
// The cost of a start whose shape has been started before: no memory is taken. And how many messages are sent.
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rma/rma.hpp>

namespace {

std::atomic<std::size_t>& taken() {
  static std::atomic<std::size_t> count = 0;
  return count;
}

std::uint64_t count_of(const rma::Runtime& rt, std::string_view name) {
  for (const auto& each : rt.counters()) {
    if (each.name == name) return each.value;
  }
  return 0;
}

}  // namespace

void* operator new(std::size_t bytes) {
  taken().fetch_add(1, std::memory_order_relaxed);
  if (void* const at = std::malloc(bytes != 0 ? bytes : 1); at != nullptr) return at;
  throw std::bad_alloc();
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }

TEST_CASE("a shape's later starts take no memory") {
  int argc = 0;
  rma::Runtime rt(argc, nullptr);
  rma::Team team = rt.world();
  const auto n = static_cast<std::size_t>(team.size());
  std::vector<double> out(1000 * n, 1.0), in(1000 * n);
  rma::Collective kept = team.allreduce_init(std::span(out), std::span(in), rma::sum);
  const auto once = [&] {
    rma::Request a = team.iallreduce(std::span(out), std::span(in), rma::sum);
    a.wait();
    rma::Request b = team.ialltoall(std::span(out), std::span(in));
    rma::Request c = team.ibarrier();
    b.wait();
    c.wait();
    team.allgather(std::span(out).first(1000), std::span(in));
    team.allreduce(std::span(out), std::span(in), rma::max);
    kept.start().wait();
  };
  // Memory for what comes early grows until it is enough, which takes longer where ranks share processors.
  std::size_t most = 1;
  for (int turn = 0; turn < 40 && most > 0; ++turn) {
    const std::size_t before = taken().load();
    for (int i = 0; i < 50; ++i) once();
    most = team.allreduce(taken().load() - before, rma::max);
  }
  CHECK(most == 0);
}

namespace {

int log2_ceil(int n) { return n <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); }

/// Messages that all ranks of n send together in a call by this algorithm; -1: no formula is known here.
int messages_of(std::string_view call, std::string_view algorithm, int n) {
  const int rounds = log2_ceil(n);
  if (algorithm == "dissemination" || algorithm == "bruck" || algorithm == "circulant")
    return n * rounds * (call == "allreduce" ? 2 : 1);
  if (algorithm == "ring") return n * (n - 1) * (call == "allreduce" ? 2 : 1);
  if (algorithm == "pairwise") return n * (n - 1);
  if (algorithm == "binomial") return (n - 1) * (call == "allreduce" || call == "barrier" ? 2 : 1);
  if (algorithm == "recursive-doubling" && std::has_single_bit(static_cast<unsigned>(n))) return n * rounds;
  if (algorithm == "one-sided" && call == "barrier") return n * rounds;
  if (algorithm == "one-sided" && call == "broadcast") return n - 1;
  if (algorithm == "one-sided") return n * (n - 1);
  if (algorithm == "rabenseifner" && std::has_single_bit(static_cast<unsigned>(n))) return 2 * n * rounds;
  return -1;
}

/// False where the kernel forbids one process to write to another's memory.
bool writes_are_one_sided(const rma::Runtime& rt) {
  return rt.fabrics().front().find("one-sided true") != std::string::npos;
}

}  // namespace

// Goal: the messages that are sent are those of the algorithms' formulas. RMA_COLL_... say which ones.
TEST_CASE("algorithms send as many messages as their formulas say", "[formulas]") {
  int argc = 0;
  rma::Runtime rt(argc, nullptr);
  rma::Team team = rt.world();
  const int n = team.size();
  const auto ranks = static_cast<std::size_t>(n);
  std::vector<std::int64_t> out(ranks, 1), in(ranks);
  const std::span from(out), into(in);
  rma::Collective calls[] = {team.barrier_init(), team.broadcast_init(from, 0),
                             team.allreduce_init(from, into, rma::sum), team.allgather_init(from.first(1), into),
                             team.alltoall_init(from, into)};
  const std::string_view names[] = {"barrier", "broadcast", "allreduce", "allgather", "alltoall"};
  for (std::size_t i = 0; i < std::size(calls); ++i) {
    std::string setting = "RMA_COLL_" + std::string(names[i]);
    std::transform(setting.begin(), setting.end(), setting.begin(), [](unsigned char c) { return std::toupper(c); });
    std::string algorithm;
    for (const rma::Setting& each : rt.settings()) {
      if (each.name == setting) algorithm = each.value;
    }
    const int wanted = messages_of(names[i], algorithm, n);
    const bool puts = algorithm == "one-sided";
    if (wanted < 0 || (puts && !writes_are_one_sided(rt))) continue;
    calls[i].start().wait();
    team.barrier();
    constexpr int times = 10;
    const std::string_view counted = puts ? "collective_puts" : "messages_sent";
    const std::uint64_t before = count_of(rt, counted);
    for (int k = 0; k < times; ++k) calls[i].start().wait();
    const auto mine = static_cast<std::int64_t>(count_of(rt, counted) - before);
    const std::int64_t sent = team.allreduce(mine, rma::sum);
    INFO(names[i] << " by " << algorithm);
    CHECK(sent >= times * std::int64_t{wanted});
    CHECK(sent <= times * std::int64_t{wanted} * (puts ? 10 : 11) / 10);  // acknowledgements of many come on top
  }
}
