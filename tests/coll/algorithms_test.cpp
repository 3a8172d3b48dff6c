// SPDX-License-Identifier: Apache-2.0
// Every algorithm against the sequential oracle, and against the checker: 1 to 9, 16 and 33 ranks in one process.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "coll/team_in_memory.hpp"

namespace {

using namespace coll_test;

struct variant {
  int ranks;
  int root;
  std::size_t bytes;  ///< size of a vector or a block
  bool ordered;       ///< the operator does not commute
  bool in_place;
  bool varied;
  int per_node;  ///< 0: nodes are not known
};

bool combines(call c) {
  return c == call::reduce || c == call::allreduce || c == call::reduce_scatter || c == call::scan || c == call::exscan;
}
bool rooted(call c) { return c == call::broadcast || c == call::reduce || c == call::gather || c == call::scatter; }

/// Sizes and offsets of the v forms, the same on all ranks; they live as long as the test.
struct side {
  std::vector<std::size_t> sizes, offsets;
};

bytes fold_of(const problem& p, std::size_t from, std::size_t to) {
  bytes all = p.inputs[from];
  for (std::size_t r = from + 1; r < to; ++r) {
    if (p.ordered) {
      multiply(all.data(), p.inputs[r].data(), all.data(), all.size());
    } else {
      add(all.data(), p.inputs[r].data(), all.data(), all.size());
    }
  }
  return all;
}

bytes slice(const bytes& all, std::size_t offset, std::size_t count) {
  return {all.begin() + static_cast<std::ptrdiff_t>(offset), all.begin() + static_cast<std::ptrdiff_t>(offset + count)};
}

class team {
 public:
  team(call what, const variant& v) : what_(what), v_(v), n_(static_cast<std::size_t>(v.ranks)) {
    p.ordered = v.ordered;
    p.looked_at.assign(n_, true);
    p.shapes.resize(n_);
    p.inputs.resize(n_);
    p.outputs.resize(n_);
    p.wanted.resize(n_);
    nodes_.resize(n_);
    for (std::size_t r = 0; r < n_; ++r) {
      shape& s = p.shapes[r];
      s.what = what;
      s.rank = static_cast<int>(r);
      s.size = v.ranks;
      s.root = v.root;
      s.element_bytes = v.ordered ? sizeof(matrix) : 1;
      s.commutative = !v.ordered;
      s.varied = v.varied;
      s.puts = true;
      s.in_place = v.in_place && (what == call::alltoall || what == call::reduce_scatter);
      if (v.per_node > 0) {
        nodes_[r] = static_cast<int>(r) / v.per_node * v.per_node;
        s.nodes = nodes_;
      }
    }
    make();
  }
  [[nodiscard]] std::ptrdiff_t in_place(int r) const {
    if (!v_.in_place) return -1;
    const auto inside = [&](const blocks& b) { return static_cast<std::ptrdiff_t>(b.offset(r)); };
    switch (what_) {
      case call::gather: return r == v_.root ? inside(p.shapes[static_cast<std::size_t>(r)].received) : -1;
      case call::allgather: return inside(p.shapes[static_cast<std::size_t>(r)].received);
      case call::scatter: return -1;
      case call::broadcast:
      case call::barrier: return -1;
      case call::reduce: return r == v_.root ? 0 : -1;
      default: return 0;
    }
  }
  problem p;

 private:
  void make() {
    for (std::size_t r = 0; r < n_; ++r) {
      sizes_.sizes.push_back(v_.varied ? (v_.bytes / (1 + r % 3)) / element() * element() : v_.bytes);
    }
    std::size_t at = 0;
    for (std::size_t r = 0; r < n_; ++r) {
      sizes_.offsets.push_back(at);
      at += sizes_.sizes[r];
    }
    total_ = at;
    const auto vector = [&](std::size_t r) { return random_bytes(v_.bytes, 100 + r); };
    for (std::size_t r = 0; r < n_; ++r) {
      p.shapes[r].bytes = v_.bytes;
      p.inputs[r] = vector(r);
    }
    switch (what_) {
      case call::broadcast:
        for (std::size_t r = 0; r < n_; ++r) {
          p.outputs[r] = r == root() ? p.inputs[root()] : bytes(v_.bytes);
          p.wanted[r] = p.inputs[root()];
        }
        break;
      case call::reduce:
      case call::allreduce:
      case call::scan:
      case call::exscan: reductions(); break;
      case call::reduce_scatter:
      case call::gather:
      case call::scatter:
      case call::allgather: blockwise(); break;
      case call::alltoall: exchange(); break;
      default: break;
    }
  }
  void reductions() {
    for (std::size_t r = 0; r < n_; ++r) {
      p.outputs[r].resize(v_.bytes);
      if (what_ == call::reduce || what_ == call::allreduce) p.wanted[r] = fold_of(p, 0, n_);
      if (what_ == call::scan) p.wanted[r] = fold_of(p, 0, r + 1);
      if (what_ == call::exscan && r > 0) p.wanted[r] = fold_of(p, 0, r);
      p.looked_at[r] = what_ == call::reduce ? r == root() : what_ != call::exscan || r > 0;
    }
  }
  blocks block_list(bool everywhere, std::size_t r) const {
    blocks b;
    b.each = v_.bytes;
    if (v_.varied && (everywhere || r == root())) {
      b.sizes = sizes_.sizes;
      b.offsets = sizes_.offsets;
    } else if (v_.varied) {
      b.each = sizes_.sizes[r];
    }
    return b;
  }
  void blockwise() {
    bytes all;
    const bool whole = what_ == call::reduce_scatter;  // each rank gives a vector of all blocks
    for (std::size_t r = 0; r < n_; ++r) {
      shape& s = p.shapes[r];
      const std::size_t own = sizes_.sizes[r];
      p.inputs[r] = random_bytes(whole ? total_ : own, 500 + r);
      all.insert(all.end(), p.inputs[r].begin(), p.inputs[r].end());
      if (what_ == call::allgather || whole) s.received = block_list(true, r);
      if (whole) s.bytes = total_;
      if (what_ == call::gather) (r == root() ? s.received : s.sent) = block_list(false, r);
      if (what_ == call::gather && v_.varied && r == root()) s.sent = s.received;
      if (what_ == call::scatter) (r == root() ? s.sent : s.received) = block_list(false, r);
    }
    const bytes sum = whole ? fold_of(p, 0, n_) : bytes{};
    for (std::size_t r = 0; r < n_; ++r) {
      const std::size_t own = sizes_.sizes[r];
      switch (what_) {
        case call::reduce_scatter:
          p.wanted[r] = slice(sum, sizes_.offsets[r], own);
          p.outputs[r].resize(v_.in_place ? total_ : own);
          break;
        case call::scatter:
          p.wanted[r] = slice(all, sizes_.offsets[r], own);
          p.outputs[r].resize(own);
          p.inputs[r] = r == root() ? all : bytes{};
          break;
        default:
          p.looked_at[r] = what_ == call::allgather || r == root();
          p.wanted[r] = p.looked_at[r] ? all : bytes{};
          p.outputs[r].resize(p.wanted[r].size());
      }
    }
  }
  /// Rank r sends (r + t + 1) parts of the block to t if sizes vary: what it receives from there is as long.
  void exchange() {
    const std::size_t unit = v_.bytes;
    const auto length = [&](std::size_t a, std::size_t b) { return v_.varied ? unit * ((a + b) % 3) : unit; };
    exchanged_.resize(n_);
    for (std::size_t r = 0; r < n_; ++r) {
      side& mine = exchanged_[r];
      std::size_t at = 0;
      for (std::size_t t = 0; t < n_; ++t) {
        mine.sizes.push_back(length(r, t));
        mine.offsets.push_back(at);
        at += length(r, t);
      }
      p.inputs[r] = random_bytes(at, 900 + r);
      p.outputs[r].resize(at);
    }
    for (std::size_t r = 0; r < n_; ++r) {
      shape& s = p.shapes[r];
      s.sent.each = s.received.each = unit;
      if (v_.varied) {
        s.sent.sizes = s.received.sizes = exchanged_[r].sizes;
        s.sent.offsets = s.received.offsets = exchanged_[r].offsets;
      }
      for (std::size_t t = 0; t < n_; ++t) {
        const bytes part = slice(p.inputs[t], exchanged_[t].offsets[r], length(t, r));
        p.wanted[r].insert(p.wanted[r].end(), part.begin(), part.end());
      }
    }
  }
  [[nodiscard]] std::size_t root() const { return static_cast<std::size_t>(v_.root); }
  [[nodiscard]] std::size_t element() const { return v_.ordered ? sizeof(matrix) : 1; }

  call what_;
  variant v_;
  std::size_t n_;
  std::size_t total_ = 0;
  side sizes_;
  std::vector<side> exchanged_;
  std::vector<int> nodes_;
};

std::string describe(const algorithm& a, const variant& v) {
  return fmt::format("{} {}: {} ranks, root {}, {} B{}{}{}, {} per node", name_of(a.what), a.name, v.ranks, v.root,
                     v.bytes, v.ordered ? ", ordered" : "", v.in_place ? ", in place" : "", v.varied ? ", varied" : "",
                     v.per_node);
}

/// The first error; empty if there is none.
std::string failure_of(const algorithm& a, const variant& v, std::uint64_t seed) {
  team t(a.what, v);
  if (a.fits != nullptr) {
    for (const shape& s : t.p.shapes) {
      if (!a.fits(s)) return "";
    }
  }
  std::vector<Schedule> schedules;
  if (!run(
          t.p, a, [&](int r) { return t.in_place(r); }, seed, schedules))
    return "does not end";
  if (const auto found = rma::check(schedules); !found.empty()) return found.front();
  for (std::size_t r = 0; r < t.p.shapes.size(); ++r) {
    const bytes& wanted = t.p.wanted[r];
    if (t.p.looked_at[r] && !std::equal(wanted.begin(), wanted.end(), t.p.outputs[r].begin()))
      return fmt::format("rank {} has other bytes", r);
  }
  return "";
}

}  // namespace

TEST_CASE("every algorithm gives what the sequential oracle gives, whatever the order of events") {
  std::size_t runs = 0;
  for (const algorithm& a : algorithms()) {
    if (a.what == call::neighbor_allgather || a.what == call::neighbor_alltoall) continue;
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33}) {
      for (const std::size_t size : std::array<std::size_t, 5>{0, 16, 48, 1008, 4096}) {
        for (unsigned bits = 0; bits < 8; ++bits) {
          variant v{ranks, 0, size, combines(a.what) && (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, 0};
          if ((bits & 1) != 0 && !combines(a.what)) continue;
          for (const int root : {0, ranks / 2, ranks - 1}) {
            v.root = root;
            v.per_node = root == 0 ? 2 : 3;
            if (root != 0 && !rooted(a.what) && bits > 1) continue;
            const std::string wrong = failure_of(a, v, ++runs);
            if (!wrong.empty()) FAIL_CHECK(describe(a, v) << ": " << wrong);
          }
        }
      }
    }
  }
  CHECK(runs > 10000);
}

// Goal: one combination tree for all algorithms that `reproducible` lets through. Method: an operator that is not even
// associative, so that another tree gives other bytes.
TEST_CASE("what is reproducible is combined by the same tree in every algorithm") {
  const auto average = [](const std::byte* l, const std::byte* r, std::byte* into, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      into[i] = static_cast<std::byte>((3 * static_cast<unsigned>(l[i]) + static_cast<unsigned>(r[i])) / 4);
  };
  for (const int ranks : {2, 3, 4, 5, 7, 8, 13, 16}) {
    const auto n = static_cast<std::size_t>(ranks);
    const std::size_t block = 8;
    bytes first;
    int seen = 0;
    for (const algorithm& a : algorithms()) {
      if (a.what != call::allreduce && a.what != call::reduce && a.what != call::reduce_scatter) continue;
      std::vector<Schedule> schedules(n);
      std::vector<std::array<bytes, 3>> memory(n);
      bool fits = true;
      for (std::size_t r = 0; r < n; ++r) {
        shape s;
        s.what = a.what;
        s.rank = static_cast<int>(r);
        s.size = ranks;
        s.root = ranks / 2;
        s.bytes = block * n;
        s.reproducible = true;
        s.puts = true;
        s.received.each = block;
        fits = fits && (a.fits == nullptr || a.fits(s));
        if (!fits) break;
        a.build(s, schedules[r]);
        memory[r] = {random_bytes(block * n, r), bytes(block * n),
                     bytes(schedules[r].bytes_of(Schedule::Buffer::scratch))};
      }
      if (!fits) continue;
      interpreter all(schedules, 7);
      REQUIRE(all.run(
          [&](const Schedule::Step& s, int from_rank, Schedule::Place from, int into_rank, Schedule::Place into) {
            if (s.bytes == 0) return;
            const std::byte* const source =
                memory[static_cast<std::size_t>(from_rank)][static_cast<std::size_t>(from.buffer)].data() + from.offset;
            std::byte* const target =
                memory[static_cast<std::size_t>(into_rank)][static_cast<std::size_t>(into.buffer)].data() + into.offset;
            if (s.action == Schedule::Action::combine) {
              average(target, source, target, s.bytes);
            } else if (s.action == Schedule::Action::combine_before) {
              average(source, target, target, s.bytes);
            } else {
              std::memmove(target, source, s.bytes);
            }
          }));
      bytes result = memory[n / 2][1];
      if (a.what == call::reduce_scatter) {
        result.clear();
        for (std::size_t r = 0; r < n; ++r)
          result.insert(result.end(), memory[r][1].begin(), memory[r][1].begin() + block);
      }
      INFO(name_of(a.what) << " " << a.name << ", " << ranks << " ranks");
      if (first.empty()) first = result;
      CHECK(result == first);
      ++seen;
    }
    CHECK(seen >= 6);
  }
}

// Goal: each rank sends as many messages as the algorithm's formula says.
TEST_CASE("messages per rank are those of the formulas") {
  const auto sent = [](call what, const char* name, int ranks, int rank) {
    shape s;
    s.what = what;
    s.rank = rank;
    s.size = ranks;
    s.bytes = 64 * static_cast<std::size_t>(ranks);
    s.sent.each = s.received.each = 64;
    s.puts = true;
    Schedule schedule;
    const algorithm* const a = find_algorithm(what, name);
    REQUIRE(a != nullptr);
    a->build(s, schedule);
    return static_cast<int>(schedule.messages());
  };
  for (const int n : {2, 3, 4, 7, 8, 16, 33, 64}) {
    const int logs = static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1)));
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
    int tree = 0;
    for (int r = 0; r < n; ++r) {
      INFO(n << " ranks, rank " << r);
      const int low = r == 0 ? logs : std::countr_zero(static_cast<unsigned>(r));
      int children = 0;
      for (int k = 0; k < low; ++k) children += r + (1 << k) < n ? 1 : 0;
      CHECK(sent(call::broadcast, "binomial", n, r) == children);
      CHECK(sent(call::reduce, "binomial", n, r) == (r == 0 ? 0 : 1));
      tree += children;
      CHECK(sent(call::barrier, "dissemination", n, r) == logs);
      CHECK(sent(call::allgather, "bruck", n, r) == logs);
      CHECK(sent(call::allgather, "circulant", n, r) == logs);
      CHECK(sent(call::allreduce, "circulant", n, r) == 2 * logs);
      CHECK(sent(call::allgather, "ring", n, r) == n - 1);
      CHECK(sent(call::allreduce, "ring", n, r) == 2 * (n - 1));
      CHECK(sent(call::alltoall, "pairwise", n, r) == n - 1);
      CHECK(sent(call::alltoall, "bruck", n, r) == logs);
      CHECK(sent(call::barrier, "one-sided", n, r) == logs);
      CHECK(sent(call::broadcast, "one-sided", n, r) == children);
      CHECK(sent(call::allgather, "one-sided", n, r) == (n <= 16 ? n - 1 : logs));
      CHECK(sent(call::reduce_scatter, "one-sided", n, r) == n - 1);
      CHECK(sent(call::alltoall, "one-sided", n, r) == n - 1);
      const int aside = r >= 2 * (n - power) ? 0 : 1;
      const int rounds = std::countr_zero(static_cast<unsigned>(power));
      const bool works = aside == 0 || r % 2 != 0;
      CHECK(sent(call::allreduce, "recursive-doubling", n, r) == (works ? rounds + aside : 1));
      CHECK(sent(call::allreduce, "rabenseifner", n, r) == (works ? 2 * rounds + aside : 1));
    }
    CHECK(tree == n - 1);
  }
}
