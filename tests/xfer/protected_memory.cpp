// SPDX-License-Identifier: Apache-2.0
// Goal: an update of memory that its owner cannot write is an error at the origin, whatever carries it; the owner,
// which does nothing wrong, goes on. The same for reads of memory that cannot be read. Method: windows over pages of
// which some are protected, and a dynamic one with such pages attached; rank 0 does every kind of operation there.
// Prints one line for each check that fails.
#include <fmt/format.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rma/rma.hpp"

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t words_per_page = page / sizeof(std::uint64_t);
constexpr std::size_t pages = 64;
constexpr std::uint64_t before = 7;

using window = rma::Window<std::uint64_t>;

int failures = 0;

void check(bool holds, int rank, std::string_view what) {
  if (holds) return;
  ++failures;
  fmt::print("protected_memory: rank {}: does not hold: {}\n", rank, what);
}

/// Pages of words that are all `before`; the first half can be written, the second only be read, the last nothing.
std::span<std::uint64_t> make_pages() {
  void* const at = ::mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return {};
  const std::span<std::uint64_t> all(static_cast<std::uint64_t*>(at), pages * words_per_page);
  for (std::uint64_t& word : all) word = before;
  auto* const bytes = static_cast<std::byte*>(at);
  const bool done = ::mprotect(bytes + pages / 2 * page, pages / 2 * page, PROT_READ) == 0 &&
                    ::mprotect(bytes + (pages - 1) * page, page, PROT_NONE) == 0;
  return done ? all : std::span<std::uint64_t>();
}

/// One rank's operations on another's pages, which begin at displacement `base`; `step` is that of one word.
class visitor {
 public:
  visitor(window& win, int to, std::size_t base, std::size_t step, std::string_view what)
      : win_(win), to_(to), base_(base), step_(step), what_(what) {}

  void run() {
    for (const std::size_t count : {std::size_t{1}, std::size_t{3}, words_per_page, 20 * words_per_page}) {
      updates(count, 0, true);
      updates(count, pages / 2 * words_per_page + 1, false);
      if (count > 1) updates(count, pages / 2 * words_per_page - 1, false);  // begins where it can be written
      reads(count, pages / 2 * words_per_page - 1, true);
      reads(count, (pages - 1) * words_per_page - count + 1, false);
    }
  }

 private:
  void expect(bool good, rma::status posted, std::string_view name, std::size_t count) {
    const rma::status flushed = win_.try_flush(to_);
    const bool ended_well = rma::ok(posted) && rma::ok(flushed);
    const bool failed = posted == rma::status::transfer_failed || flushed == rma::status::transfer_failed;
    check(good ? ended_well : failed, 0,
          fmt::format("{}: {} of {} words: {}, flush: {}", what_, name, count, rma::name_of(posted),
                      rma::name_of(flushed)));
  }
  void updates(std::size_t count, std::size_t first, bool good) {
    const std::vector<std::uint64_t> from(count, before);
    std::vector<std::uint64_t> old(count);
    const std::span<const std::uint64_t> data(from);
    const std::size_t at = base_ + first * step_;
    expect(good, win_.try_put(data, to_, at), "put", count);
    expect(good, win_.try_accumulate(data, to_, at, rma::band), "accumulate", count);
    expect(good, win_.try_get_accumulate(data, std::span(old), to_, at, rma::band), "get_accumulate", count);
    if (count > 1) return;
    expect(good, win_.try_fetch_and_op(before, old[0], to_, at, rma::band), "fetch_and_op", count);
    expect(good, win_.try_compare_and_swap(before, before, old[0], to_, at), "compare_and_swap", count);
  }
  void reads(std::size_t count, std::size_t first, bool good) {
    std::vector<std::uint64_t> data(count);
    expect(good, win_.try_get(std::span(data), to_, base_ + first * step_), "get", count);
    if (!good) return;
    for (const std::uint64_t word : data) check(word == before, 0, fmt::format("{}: what get brings", what_));
  }

  window& win_;
  int to_;
  std::size_t base_, step_;
  std::string_view what_;
};

void visit(rma::Runtime& rt, window& win, std::size_t base, std::size_t step, std::string_view what) {
  rt.world().barrier();
  if (rt.rank() == 0) {
    const auto epoch = win.lock(rma::exclusive, rt.size() - 1);
    visitor(win, rt.size() - 1, base, step, what).run();
  }
  rt.world().barrier();
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  const std::span<std::uint64_t> mine = make_pages();
  check(!mine.empty(), rt.rank(), "mmap and mprotect");
  if (mine.empty()) return 1;
  {
    auto win = window::create(rt.world(), mine);
    visit(rt, win, 0, 1, "create");
  }
  {
    auto win = window::create_dynamic(rt.world());
    win.attach(mine);
    std::uint64_t base = reinterpret_cast<std::uintptr_t>(mine.data());
    rt.world().broadcast(std::span(&base, 1), rt.size() - 1);
    visit(rt, win, base, sizeof(std::uint64_t), "create_dynamic");
    win.detach(mine);
  }
  bool kept = true;
  for (const std::uint64_t word : mine.first((pages - 1) * words_per_page)) kept = kept && word == before;
  check(kept, rt.rank(), "what was there is there still");
  if (rt.world().allreduce(failures, rma::sum) == 0 && rt.rank() == 0) fmt::print("protected_memory: done\n");
  return failures == 0 ? 0 : 1;
}
