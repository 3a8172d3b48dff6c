// SPDX-License-Identifier: Apache-2.0
/// \file
/// Regions, peers, and how connections end.
#include "fabric/messaged/messaged_fabric.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"

namespace rma::messaged {

void messaged_fabric::counts(const std::function<void(std::string_view, std::uint64_t)>& add) const {
  const auto tell = [&](std::string_view what, std::uint64_t value) {
    add(std::string(caps_.name).append(what), value);
  };
  tell("_puts", puts_);
  tell("_gets", gets_);
  tell("_atomics", atomics_);
  tell("_messages", messages_);
  tell("_batches", batches_sent_);
}

// ---- regions ------------------------------------------------------------------------------------------------

status messaged_fabric::register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept {
  key = {reinterpret_cast<std::uint64_t>(at), bytes, 0};
  if (bytes == 0) return status::done;
  key.key = next_key_++;
  regions_.emplace(key.key, registered{key.address, bytes});
  return status::done;
}

// Keys are never used twice, so that a peer's old one reaches nothing new.
void messaged_fabric::deregister_region(const fabric::region_key& key) noexcept { regions_.erase(key.key); }

std::byte* messaged_fabric::own_memory(std::uint64_t key, std::uint64_t address, std::uint64_t bytes) noexcept {
  const auto at = regions_.find(key);
  if (at == regions_.end()) return nullptr;
  const std::uint64_t begin = at->second.address;
  const bool inside = address >= begin && bytes <= at->second.bytes && address - begin <= at->second.bytes - bytes;
  return inside ? reinterpret_cast<std::byte*>(address) : nullptr;
}

// ---- peers --------------------------------------------------------------------------------------------------

peer& messaged_fabric::known(int rank) noexcept {
  auto& p = by_rank_[rank];
  if (p == nullptr) p = make_peer(rank);
  return *p;
}

void messaged_fabric::suspect(peer& p, std::int64_t for_ns) noexcept {
  if (p.suspected_until_ns != 0) return;
  p.suspected_until_ns = detail::clock_ns() + for_ns;
  suspects_.push_back(&p);
}

void messaged_fabric::clear_suspicion(peer& p) noexcept {
  if (std::exchange(p.suspected_until_ns, 0) != 0) std::erase(suspects_, &p);
}

// A peer that left may have answered before: that gets its time to arrive where nothing else ends what is under way.
bool messaged_fabric::is_resolved(const peer& p) const noexcept {
  const bool known = p.state != connection_state::open && (p.state != connection_state::left || watches_peers_);
  return known || detail::clock_ns() >= p.suspected_until_ns;
}

void messaged_fabric::resolve_suspects(fabric::sink& to) noexcept {
  std::vector<int> broken;
  std::erase_if(suspects_, [&](peer* p) {
    if (!is_resolved(*p)) return false;
    if (p->state == connection_state::open) {
      p->state = connection_state::broken;
      broken.push_back(p->rank);
    }
    abandon(*p);
    return true;
  });
  for (const int rank : broken) to.on_broken(rank);
}

// Nothing is heard of the peer any more, and everything that it has not answered ends.
void messaged_fabric::abandon(peer& p) noexcept {
  drop(p);
  while (p.first != nullptr) end_first(p, status::peer_failed);
  for (const std::uint64_t token : p.written) end(token, status::peer_failed);
  p.written.clear();
  p.unflushed = 0;
}

void messaged_fabric::take_deaths() noexcept {
  for (const int rank : deaths_.take()) {
    peer& p = known(rank);
    p.state = connection_state::dead;
    std::erase_if(arrivals_, [rank](const arrival& a) { return a.source == rank; });
    abandon(p);
  }
}

// A peer that leaves goes on serving until this rank has nothing under way there.
void messaged_fabric::answer_leavers() noexcept {
  std::erase_if(leavers_, [this](peer* p) {
    if (p->state != connection_state::left) return true;
    if (!p->idle()) return false;
    if (can_answer(*p)) transmit(*p, own_kind::understood, {}, departure::now);
    return true;
  });
}

// It is the last thing that a peer sends.
bool messaged_fabric::expects_goodbye(int rank) noexcept {
  const auto at = by_rank_.find(rank);
  if (at == by_rank_.end()) return false;
  const peer& p = *at->second;
  return p.met && p.state == connection_state::open && p.suspected_until_ns == 0;
}

// Others learn that what ends now is no failure, and are served until they say that nothing is under way; who does not
// call the library now is not waited for long.
void messaged_fabric::say_goodbye(std::int64_t until_ns) noexcept {
  sink_ = nullptr;
  std::vector<peer*> notified;
  const auto hears = [this](const peer& p) {
    return p.begun && p.state == connection_state::open && p.suspected_until_ns == 0 && p.rank != rank_;
  };
  for (auto& [rank, p] : by_rank_) {
    if (!hears(*p)) continue;
    transmit(*p, own_kind::goodbye, {}, departure::now);
    notified.push_back(p.get());
  }
  progress_until(until_ns, [&] {
    if (deaths_.any()) take_deaths();
    answer_leavers();
    send_batches();
    std::erase_if(notified, [&](const peer* p) { return p->understood || !hears(*p); });
    return notified.empty() && leavers_.empty() && under_way_ == 0 && all_sent();
  });
}

void messaged_fabric::progress_until(std::int64_t until_ns, const std::function<bool()>& over) noexcept {
  while (!over()) {
    const std::int64_t left_ns = until_ns - detail::clock_ns();
    if (left_ns <= 0) return;
    if (progress()) continue;
    pollfd news{event_fd(), POLLIN, 0};
    const std::int64_t nap_ms = std::min<std::int64_t>(left_ns / 1'000'000 + 1, 10);  // deaths are told otherwise
    (void)::poll(&news, 1, static_cast<int>(nap_ms));
  }
}

// ---- progress -----------------------------------------------------------------------------------------------

unsigned messaged_fabric::poll(fabric::sink& to, unsigned limit) noexcept {
  sink_ = &to;
  handed_ = 0;
  handed_max_ = limit;
  if (deaths_.any()) [[unlikely]]
    take_deaths();
  if (!unflushed_.empty()) start_flushes();
  if (!batches_.empty()) send_batches();
  if (!arrivals_.empty()) hand_arrivals();
  unsigned found = look();
  if (!arrivals_.empty()) hand_arrivals();
  if (!leavers_.empty()) [[unlikely]]
    answer_leavers();
  if (!batches_.empty()) send_batches();  // replies given meanwhile leave together
  if (!suspects_.empty()) [[unlikely]]
    resolve_suspects(to);
  found = std::max(found, handed_);
  if (!ended_.empty()) {
    handing_.swap(ended_);
    found += static_cast<unsigned>(handing_.size());
    for (const ended& e : handing_) to.on_completion(e.token, e.result, e.bytes);
    handing_.clear();
  }
  sink_ = nullptr;
  return found;
}

// Asked before a sleep: from here on the descriptor tells.
bool messaged_fabric::pending() noexcept {
  if (!unflushed_.empty()) start_flushes();
  send_batches();
  if (std::ranges::any_of(leavers_, [](const peer* p) { return p->idle(); })) return true;
  if (!arrivals_.empty() || !ended_.empty() || deaths_.any()) return true;
  return std::ranges::any_of(suspects_, [this](const peer* p) { return is_resolved(*p); });
}

bool messaged_fabric::quiet() noexcept { return under_way_ == 0 && unflushed_.empty() && arrivals_.empty(); }

}  // namespace rma::messaged
