// SPDX-License-Identifier: Apache-2.0
// Goal: the steps of each design, in all orders in which ranks and an abstract network can take them: when a rank is
// through the fence, all puts aimed at it are there, and no put of the next epoch has come before them.
// Method: three ranks, each puts into both others; a channel keeps what one rank sends to another in order, nothing
// else does; a collective lets a rank go on when all have come to it. Every state that can be reached is visited once.
// Break: leave steps out (the mutations at the end: the barrier overtakes puts; the next epoch begins too early).
#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <deque>
#include <string>
#include <unordered_set>

#include "sync/fence_def.hpp"
#include "sync/fence_imm_naive.hpp"
#include "sync/fence_imm_opt.hpp"
#include "sync/fence_imm_ri.hpp"

using rma::assertion;
using rma::detail::fence_phase;

namespace {

constexpr unsigned ranks = 3;
using design = fence_phase (*)(fence_phase, assertion);

/// The properties of a design beside its steps.
struct traits {
  design next;
  bool deferred = false;     ///< puts are posted in step issue
  bool immediates = false;   ///< each put says itself that it is there
  bool told_placed = false;  ///< step complete waits for what is in the target's memory
};

struct channel {
  std::string sent;  ///< p: put, f: finish, n: put of the next epoch
  std::size_t arrived = 0;
  [[nodiscard]] bool all_arrived(char what) const { return sent.find(what, arrived) == std::string::npos; }
};

struct world {
  std::array<fence_phase, ranks> at{};
  std::array<unsigned, ranks> has_sent{};  ///< bits: puts, finish messages, next puts
  unsigned in_count = 0, in_open = 0;      ///< ranks that have come to the collective
  std::array<std::array<channel, ranks>, ranks> between{};
  [[nodiscard]] std::string key() const {
    std::string k;
    for (const fence_phase p : at) k += static_cast<char>('a' + static_cast<int>(p));
    k += fmt::format("{}.{}.", in_count, in_open);
    for (const auto& row : between)
      for (const channel& c : row) k += fmt::format("{}{}", c.sent, c.arrived);
    return k;
  }
};

bool puts_arrived(const world& w, unsigned target) {
  for (unsigned o = 0; o < ranks; ++o)
    if (o != target && !(w.between[o][target].all_arrived('p'))) return false;
  return true;
}

void send(world& w, unsigned from, const std::string& what) {
  for (unsigned to = 0; to < ranks; ++to)
    if (to != from) w.between[from][to].sent += what;
}

class search {
 public:
  explicit search(const traits& what) : what_(what) {}
  /// Empty, or what went wrong.
  std::string run() {
    push(world{});
    while (!queue_.empty() && wrong_.empty()) {
      const world now = queue_.front();
      queue_.pop_front();
      bool moved = false;
      for (unsigned r = 0; r < ranks; ++r) moved = step(now, r) || moved;
      for (unsigned o = 0; o < ranks; ++o)
        for (unsigned t = 0; t < ranks; ++t) moved = deliver(now, o, t) || moved;
      for (const fence_phase p : now.at)
        if (!moved && p != fence_phase::over) wrong_ = "a rank is stuck";
    }
    return wrong_;
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }

 private:
  void push(world w) {
    if (seen_.insert(w.key()).second) queue_.push_back(std::move(w));
  }
  bool deliver(const world& now, unsigned from, unsigned to) {
    const channel& c = now.between[from][to];
    if (c.arrived == c.sent.size()) return false;
    world w = now;
    if (c.sent[c.arrived] == 'n' && !puts_arrived(now, to)) wrong_ = "a put of the next epoch comes before one of this";
    ++w.between[from][to].arrived;
    push(std::move(w));
    return true;
  }
  [[nodiscard]] bool arrived(const world& w, unsigned r) const {
    for (unsigned o = 0; o < ranks; ++o) {
      const channel& c = w.between[o][r];
      if (o != r && c.sent.substr(0, c.arrived).find('f') == std::string::npos) return false;
    }
    return true;
  }
  /// The rank's step is carried out if it can be.
  bool step(const world& now, unsigned r) {
    world w = now;
    constexpr unsigned all = (1U << ranks) - 1;
    switch (now.at[r]) {
      case fence_phase::begin:
        if (!what_.deferred) send(w, r, what_.immediates ? "pf" : "p");
        break;
      case fence_phase::finish:
        if (!what_.immediates) send(w, r, "f");
        break;
      case fence_phase::complete:
        for (unsigned t = 0; t < ranks; ++t)
          if (what_.told_placed && !now.between[r][t].all_arrived('p')) return false;
        break;
      case fence_phase::count:
        w.in_count |= 1U << r;
        if (w.in_count != all) return enter(now, std::move(w));
        break;
      case fence_phase::issue: send(w, r, "pf"); break;
      case fence_phase::arrive:
        if (!arrived(now, r)) return false;
        break;
      case fence_phase::barrier:
      case fence_phase::flags:
        w.in_open |= 1U << r;
        if (w.in_open != all) return enter(now, std::move(w));
        break;
      case fence_phase::over: return false;
    }
    w.at[r] = what_.next(now.at[r], assertion::none);
    if (w.at[r] == fence_phase::over) {
      if (!puts_arrived(now, r)) wrong_ = "a put is missing after the fence";
      if (!what_.deferred) send(w, r, "n");  // else it waits for the next fence
    }
    push(std::move(w));
    return true;
  }
  bool enter(const world& now, world&& w) {
    if (w.in_count == now.in_count && w.in_open == now.in_open) return false;
    push(std::move(w));
    return true;
  }

  traits what_;
  std::unordered_set<std::string> seen_;
  std::deque<world> queue_;
  std::string wrong_;
};

}  // namespace

namespace {

fence_phase ri_acked(fence_phase now, assertion promises) noexcept {
  return rma::detail::after_imm_ri(now, promises, false);
}
fence_phase ri_placed(fence_phase now, assertion promises) noexcept {
  return rma::detail::after_imm_ri(now, promises, true);
}

}  // namespace

TEST_CASE("no design loses a put, in any order of steps", "[fence][model]") {
  using namespace rma::detail;
  const traits designs[] = {{.next = after_placed, .told_placed = true},
                            {.next = after_def, .deferred = true},
                            {.next = after_imm_naive},
                            {.next = after_imm_opt},
                            {.next = ri_acked, .immediates = true},
                            {.next = ri_placed, .immediates = true, .told_placed = true}};
  for (const traits& each : designs) {
    search all(each);
    CHECK(all.run().empty());
    WARN(all.states() << " states");
    CHECK(all.states() > 100);
  }
}

TEST_CASE("a barrier after local completion loses puts", "[fence][model][mutation]") {
  search all({.next = [](fence_phase now, assertion promises) {
    return now == fence_phase::complete ? fence_phase::barrier : rma::detail::after_imm_opt(now, promises);
  }});
  CHECK(all.run() == "a put is missing after the fence");
}

TEST_CASE("imm-ri needs its barrier where completion does not mean placement", "[fence][model][mutation]") {
  search all({.next = ri_placed, .immediates = true});
  CHECK(all.run() == "a put of the next epoch comes before one of this");
}

TEST_CASE("without a barrier the next epoch begins too early", "[fence][model][mutation]") {
  search all({.next = [](fence_phase now, assertion promises) {
    return now == fence_phase::arrive ? fence_phase::over : rma::detail::after_imm_opt(now, promises);
  }});
  CHECK(all.run() == "a put of the next epoch comes before one of this");
}
