// SPDX-License-Identifier: Apache-2.0
#include "channel/context.hpp"

#include <algorithm>
#include <utility>

#include "core/assert.hpp"

namespace rma::detail {
namespace {

constexpr unsigned events_per_round = 64;
constexpr std::int64_t look_around_every_ns = 100'000'000;  // deaths are news within 2 s
constexpr unsigned turns_per_clock = 16;                    // the clock costs more than a look at the rings
constexpr unsigned clocks_before_sleep = 64;                // when cores are short: a yield is cheaper than a futex
constexpr std::uint32_t knocks_per_wake = 8;                // a wake costs as much as some system calls that copy

}  // namespace

context::context(const settings& s, boot::client& boot, fabric::network& network, surroundings& around)
    : settings_(s), boot_(boot), network_(network), around_(around) {
  const bool crowded = around.oversubscribed();
  first_spins_ = crowded ? 1 : 256;
  spin_ns_ = crowded ? 0 : static_cast<std::int64_t>(s.number(knob::spin_us)) * 1000;
}

context::~context() { stop_progress_thread(); }

void context::send(int to, message kind, std::span<const std::byte> header,
                   std::span<const std::byte> payload) noexcept {
  peer& p = peer_of(to);
  count(counter::messages_sent);
  if (p.waiting.empty()) {
    if (network_.send(to, static_cast<std::uint16_t>(kind), header, payload) == status::done) return;
    waiting_.push_back(to);
  }
  count(counter::sends_queued);
  std::vector<std::byte> copy(header.begin(), header.end());
  copy.insert(copy.end(), payload.begin(), payload.end());
  p.waiting.push_back({static_cast<std::uint16_t>(kind), std::move(copy)});
}

void context::send_waiting() noexcept {
  std::erase_if(waiting_, [&](int rank) {
    peer& p = peer_of(rank);
    while (!p.waiting.empty()) {
      const auto& m = p.waiting.front();
      if (network_.send(rank, m.kind, m.bytes, {}) != status::done) return gone(rank);
      p.waiting.pop_front();
    }
    return true;
  });
}

context::peer& context::find_peer(int rank) noexcept {
  auto& p = peers_[rank];
  if (p == nullptr) p = std::make_unique<peer>();
  last_rank_ = rank;
  last_peer_ = p.get();
  return *p;
}

fabric::prospect context::promise(int to, std::size_t bytes) noexcept {
  peer& p = peer_of(to);
  if (!p.waiting.empty()) return fabric::prospect::no_room;  // these come first
  const fabric::prospect found = network_.promise(to, bytes);
  if (found == fabric::prospect::asleep && spin_ns_ != 0 && ++p.knocks % knocks_per_wake == 0) {
    full_fence();
    around_.ring(to);
  }
  return found;
}

void context::owe(int source) noexcept {
  if (peer_of(source).owed++ == 0) owed_.push_back(source);
}

// What finds no room stays owed, and grows.
void context::acknowledge() noexcept {
  std::erase_if(owed_, [&](int rank) {
    peer& p = peer_of(rank);
    if (p.owed == 0) return true;  // paid with an answer
    const auto kind = static_cast<std::uint16_t>(message::acknowledge);
    const auto bytes = std::as_bytes(std::span(&p.owed, 1));
    if (!p.waiting.empty() || network_.send(rank, kind, bytes, {}) != status::done) return gone(rank);
    count(counter::messages_sent);
    p.owed = 0;
    return true;
  });
}

unsigned context::progress() noexcept {
  const std::unique_lock guard(lock_, std::try_to_lock);
  if (!guard) return 0;  // somebody else is at it
  const unsigned found = network_.poll(*this, events_per_round);
  if (!owed_.empty()) acknowledge();
  if (!waiting_.empty()) send_waiting();
  return found;
}

status context::wait_slow(condition ready, judge failed) noexcept {
  around_.inside(true);
  std::int64_t idle_since_ns = 0;
  bool busy = true;  // since the clock was looked at
  unsigned idle_rounds = 0;
  unsigned turn = 0;
  std::uint32_t news_seen = ~std::uint32_t{0};
  status result = status::done;
  for (;;) {
    const unsigned found = progress();
    if (ready()) break;
    const std::uint32_t news = deaths_.load() + departures_.load() + aborted_.load();
    if (news != news_seen) {
      news_seen = news;
      result = aborted_.load() != 0 ? status::job_aborted : failed();
      if (result != status::done) {
        (void)progress();  // it may have come before the death did
        if (ready()) result = status::done;
        break;
      }
    }
    if (found != 0) {
      busy = true;
      idle_rounds = 0;
    }
    if (++turn % turns_per_clock != 0) {
      if (found == 0 && spin_ns_ != 0) spin_pause();
      if (found == 0 && spin_ns_ == 0) around_.yield();
      continue;
    }
    const std::int64_t now = around_.now_ns();
    look_around(now);
    if (std::exchange(busy, false)) idle_since_ns = now;
    if (now - idle_since_ns < spin_ns_) {
      spin_pause();
    } else if (spin_ns_ == 0 && idle_rounds++ < clocks_before_sleep) {
      around_.yield();
    } else if (sleep(ready)) {
      break;
    } else {
      busy = true;  // whoever woke it may have more
    }
  }
  leave_library();
  return result;
}

// Whoever promised to send a message while this rank was inside gets it handled before it goes: the last look at the
// rings comes after the others can see that it is gone.
void context::leave_library() noexcept {
  around_.inside(false);
  full_fence();
  for (std::int64_t until_ns = 0; promised();) {
    (void)progress();
    const std::int64_t now = around_.now_ns();
    if (until_ns == 0) until_ns = now + look_around_every_ns;
    if (now > until_ns) return;  // its sender died between the promise and the message
    around_.yield();
  }
}

bool context::promised() noexcept {
  const std::lock_guard guard(lock_);
  return network_.promised();
}

// Everything that waits for room.
std::size_t context::waiting_messages() noexcept {
  std::size_t n = owed_.size();
  for (const int rank : waiting_) n += peer_of(rank).waiting.size();
  return n;
}

// True if `ready` was met.
bool context::sleep(condition ready) noexcept {
  around_.arm();
  if (ready()) {
    around_.retract();
    return true;
  }
  bool news = false;
  {
    const std::lock_guard guard(lock_);  // whoever has it is about to finish, and may have missed what came meanwhile
    count(counter::sleeps);
    const std::size_t before = waiting_messages();
    if (before != 0) {
      acknowledge();
      send_waiting();
    }
    news = network_.pending() || network_.promised() || waiting_messages() != before;
  }
  if (news) {
    around_.retract();
  } else {
    around_.sleep(look_around_every_ns);
  }
  return false;
}

void context::look_around(std::int64_t now_ns) noexcept {
  if (now_ns - looked_ns_.load(std::memory_order_relaxed) < look_around_every_ns) return;
  const std::unique_lock guard(news_lock_, std::try_to_lock);
  if (!guard) return;
  looked_ns_.store(now_ns, std::memory_order_relaxed);
  std::vector<int> died;
  around_.look_for_deaths(died);
  for (const int rank : died) boot_.report_death(rank);
  const status job = boot_.poll_events(died);
  for (const int rank : died) {
    if (std::find(dead_.begin(), dead_.end(), rank) != dead_.end()) continue;
    dead_.push_back(rank);
    deaths_.fetch_add(1);
  }
  if (!ok(job)) aborted_.store(1);
  departures_.fetch_add(1);  // departures are looked up, not reported: ask `failed` again
}

// A peer may still need an answer of ours; one that does not read any more must not keep us.
void context::drain() noexcept {
  const std::int64_t until_ns = around_.now_ns() + 20 * look_around_every_ns;
  (void)wait_for_message(
      [&]() noexcept {
        const std::lock_guard guard(lock_);
        return (waiting_.empty() && owed_.empty()) || around_.now_ns() > until_ns;
      },
      []() noexcept { return status::done; });
}

bool context::dead(int rank) noexcept {
  if (deaths_.load() == 0) return false;
  const std::lock_guard guard(news_lock_);
  return std::find(dead_.begin(), dead_.end(), rank) != dead_.end();
}

bool context::gone(int rank) noexcept { return around_.has_left(rank) || dead(rank); }

void context::lost(int rank) noexcept {
  blame(rank);
  const std::lock_guard guard(news_lock_);
  if (std::find(dead_.begin(), dead_.end(), rank) != dead_.end()) return;
  boot_.report_death(rank);
  dead_.push_back(rank);
  deaths_.fetch_add(1);
}

std::vector<int> context::dead_ranks() {
  const std::lock_guard guard(news_lock_);
  return dead_;
}

void context::on_message(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept {
  count(counter::messages_received);
  if (kind >= handlers_.size() || handlers_[kind].run == nullptr) return;  // nothing of ours: drop it
  handlers_[kind].run(handlers_[kind].self, source, payload);
}

void context::on_completion(std::uint64_t, status) noexcept {}

void context::on_immediate(int, std::uint32_t) noexcept {}

void context::start_progress_thread() {
  progress_thread_ = std::thread([this] {
    while (stopping_.load() == 0) {
      (void)wait_until([this]() noexcept { return stopping_.load() != 0; }, []() noexcept { return status::done; });
      if (aborted_.load() != 0) return;
    }
  });
}

void context::stop_progress_thread() noexcept {
  if (!progress_thread_.joinable()) return;
  stopping_.store(1);
  full_fence();
  around_.ring(rank());
  progress_thread_.join();
}

}  // namespace rma::detail
