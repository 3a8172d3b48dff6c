// SPDX-License-Identifier: Apache-2.0
// Packing: a put of a layout into contiguous memory that is mapped, and its flush, beside the loop that a person would
// write for the same data: ns for 8192 doubles. A vector of two, a nested vector (blocks of rows of a plane), an
// indexed layout. Rank 0 works on rank 1, which sits in a barrier.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench.hpp"

namespace {

constexpr int target = 1;
constexpr std::size_t doubles = 8192;
constexpr std::size_t room = 8 * doubles;

struct pattern {
  std::string name;
  rma::Layout layout;
  std::function<void(double* to, const double* from)> loop;
};

// The first 2 rows of 4 doubles, 16 apart, in each of 1024 planes of 64 doubles.
pattern nested_vector() {
  const auto rows = rma::Layout::vector<double>(2, 4, 16);
  return {"nested", rma::Layout::vector(doubles / 8, 1, 1, rma::Layout::resized(rows, 0, 64 * sizeof(double))),
          [](double* to, const double* from) {
            for (std::size_t plane = 0; plane < doubles / 8; ++plane) {
              for (std::size_t row = 0; row < 2; ++row) {
                for (std::size_t i = 0; i < 4; ++i) *to++ = from[64 * plane + 16 * row + i];
              }
            }
          }};
}

pattern vector_of_two() {
  return {"vector2", rma::Layout::vector<double>(doubles / 2, 2, 5), [](double* to, const double* from) {
            for (std::size_t i = 0; i < doubles / 2; ++i) {
              to[2 * i] = from[5 * i];
              to[2 * i + 1] = from[5 * i + 1];
            }
          }};
}

pattern indexed() {
  std::vector<std::ptrdiff_t> offsets;
  for (std::size_t i = 0; i < doubles; ++i) offsets.push_back(static_cast<std::ptrdiff_t>(7 * i + i * i % 5));
  auto layout = rma::Layout::indexed<double>(1, offsets);
  return {"indexed", std::move(layout), [offsets](double* to, const double* from) {
            for (std::size_t i = 0; i < offsets.size(); ++i) to[i] = from[offsets[i]];
          }};
}

void measure(perf::bench& b, rma::Window<double>& win, const pattern& p) {
  std::vector<double> mine(room), packed(doubles);
  for (std::size_t i = 0; i < room; ++i) mine[i] = static_cast<double>(i);
  const auto flat = rma::Layout::contiguous<double>(doubles);
  const std::size_t bytes = doubles * sizeof(double);
  b.points.origin({fmt::format("pack_{}", p.name), bytes}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      win.put(mine.data(), p.layout, target, 0, flat);
      win.flush(target);
    }
  });
  if (b.first() && b.points.wants(fmt::format("pack_{}", p.name), bytes)) {
    p.loop(packed.data(), mine.data());
    std::vector<double> there(doubles);
    win.get(std::span<double>(there), target, 0);
    win.flush(target);
    perf::require(there == packed, p.name);
  }
  if (!b.world.one_node()) return;
  b.points.origin({fmt::format("loop_{}", p.name), bytes}, [&](std::uint64_t n) {
    double* const there = win.pointer_to(target);
    for (std::uint64_t i = 0; i < n; ++i) {
      p.loop(there, mine.data());
      perf::keep(there);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "packing of layouts beside loops", 2, [](perf::bench& b) {
    auto win = rma::Window<double>::allocate(b.world, doubles);
    {
      std::optional<rma::Epoch> epoch;
      if (b.first()) epoch.emplace(win.lock_all());
      for (const pattern& each : {vector_of_two(), nested_vector(), indexed()}) measure(b, win, each);
    }
    b.world.barrier();
    win.free();
  });
}
