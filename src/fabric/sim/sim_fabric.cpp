// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/sim_fabric.hpp"

#include <algorithm>
#include <utility>

#include "core/assert.hpp"

namespace rma::sim {

using slices = std::span<const fabric::local_slice>;

namespace {

constexpr std::size_t chain_max = 8;  // as in the verbs fabric

/// True if a caller has kept to the network's limits for a request. Several remote pieces are paired with as many local
/// ones, each pair a request of its own.
[[maybe_unused]] bool keeps_to_limits(slices here, std::span<const fabric::remote_slice> there, std::size_t list_max,
                                      const fabric::capabilities& caps) noexcept {
  const bool paired = there.size() > 1;
  const bool is_short = std::ranges::all_of(
      there, [&](const fabric::remote_slice& each) { return each.bytes <= caps.transfer_bytes_max; });
  return is_short && there.size() <= caps.remote_slices_max && here.size() <= (paired ? there.size() : list_max);
}

}  // namespace

sim_fabric::sim_fabric(wire& shared, int rank) : network(*this, *this), wire_(shared), rank_(rank) {
  wire_.join(rank, *this);
}

sim_fabric::~sim_fabric() { wire_.detach(rank_); }

// The first region never fails, since no runtime exists without it. A second attempt at a refused address, with fewer
// bytes, is granted.
status sim_fabric::register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept {
  const bool repeated = std::exchange(refused_at_, nullptr) == at;
  if (!regions_.empty() && !repeated && wire_.refuses_registration()) {
    refused_at_ = at;
    return status::not_supported;
  }
  constexpr std::uint64_t registered_page_bytes = 4096;
  const time_ps page_time_ps = wire_.model().constants().registration_page_time_ps;
  const auto pages = static_cast<time_ps>(bytes / registered_page_bytes + (bytes % registered_page_bytes != 0 ? 1 : 0));
  if (page_time_ps != 0) wire_.job().charge(rank_, pages * page_time_ps, activity::post);
  key = {reinterpret_cast<std::uint64_t>(at), bytes, next_key_++};
  regions_[key.key] = {key.address, bytes};
  return status::done;
}

bool sim_fabric::has_registered(std::uint64_t key, std::uint64_t address, std::uint64_t bytes) const noexcept {
  const auto found = regions_.find(key);
  if (found == regions_.end() || address < found->second.address) return false;
  const std::uint64_t offset = address - found->second.address;
  return offset <= found->second.bytes && bytes <= found->second.bytes - offset;
}

wire::request sim_fabric::begin(wire::kind what, int peer, std::uint64_t token,
                                const fabric::region_key& region) const noexcept {
  wire::request o;
  o.what = what;
  o.origin = rank_;
  o.target = peer;
  o.token = token;
  o.region = region;
  return o;
}

status sim_fabric::write(int peer, slices from, const fabric::region_key& region,
                         std::span<const fabric::remote_slice> to, std::uint64_t token,
                         fabric::write_flags how) noexcept {
  const bool silent = how.kind == fabric::write_kind::silent;
  if (silent && !caps().words) return status::not_supported;
  if (how.kind == fabric::write_kind::immediate && !caps().write_with_immediate) return status::not_supported;
  if (!post_kept()) return status::retry_queue_full;
  wire::request o = begin(wire::kind::write, peer, token, region);
  o.remote = to;
  if (silent) {
    o.payload = {static_cast<const std::byte*>(from[0].at), from[0].bytes};
    o.reports = wire::signaling::silent;
  } else {
    o.local = from;
    if (how.unsignaled) o.reports = wire::signaling::unsignaled;
  }
  if (how.kind == fabric::write_kind::immediate) o.immediate = how.immediate;
  RMA_ASSERT(keeps_to_limits(from, to, caps().gather_max, caps()));
  const status s = wire_.post(o);
  return silent && s == status::posted ? status::done : s;
}

status sim_fabric::read(int peer, slices to, const fabric::region_key& region,
                        std::span<const fabric::remote_slice> from, std::uint64_t token) noexcept {
  if (!post_kept()) return status::retry_queue_full;
  wire::request o = begin(wire::kind::read, peer, token, region);
  o.local = to;
  o.remote = from;
  RMA_ASSERT(keeps_to_limits(to, from, caps().scatter_max, caps()));
  return wire_.post(o);
}

status sim_fabric::fetch_add(int peer, const fabric::region_key& region, std::uint64_t address, std::uint64_t operand,
                             std::uint64_t& old, std::uint64_t token, fabric::posting when) noexcept {
  return atomic({wire::kind::fetch_add, peer, region, address, operand, 0, &old, token}, when);
}

status sim_fabric::compare_swap(int peer, const fabric::region_key& region, std::uint64_t address,
                                std::uint64_t expected, std::uint64_t desired, std::uint64_t& old, std::uint64_t token,
                                fabric::posting when) noexcept {
  return atomic({wire::kind::compare_swap, peer, region, address, desired, expected, &old, token}, when);
}

status sim_fabric::atomic(const kept_atomic& a, fabric::posting when) noexcept {
  if (!caps().atomics) return status::not_supported;
  const bool joins = !kept_.empty() && kept_.front().peer == a.peer && kept_.size() < chain_max;
  if (!joins && !post_kept()) return status::retry_queue_full;
  if (when == fabric::posting::now && kept_.empty()) {
    const status s = post_atomic(a, false);
    if (s == status::posted) ++atomic_doorbells_;
    return s;
  }
  kept_.push_back(a);
  if (when == fabric::posting::now) (void)post_kept();
  return status::posted;
}

status sim_fabric::post_atomic(const kept_atomic& a, bool chained) noexcept {
  const fabric::remote_slice word{a.address, sizeof *a.old};
  wire::request o = begin(a.what, a.peer, a.token, a.region);
  o.remote = {&word, 1};
  o.operand = a.operand;
  o.expected = a.expected;
  o.old = a.old;
  o.chained = chained;
  const status s = wire_.post(o);
  if (s == status::posted) ++atomics_;
  return s;
}

bool sim_fabric::post_kept() noexcept {
  if (kept_.empty()) return true;
  std::size_t posted = 0;
  while (posted < kept_.size() && post_atomic(kept_[posted], posted != 0) == status::posted) ++posted;
  if (posted != 0) ++atomic_doorbells_;
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(posted));
  return kept_.empty();
}

void sim_fabric::counts(const std::function<void(std::string_view, std::uint64_t)>& add) const {
  add("sim_atomics", atomics_);
  add("sim_atomic_doorbells", atomic_doorbells_);
}

status sim_fabric::send(int peer, std::uint16_t kind, std::span<const std::byte> header,
                        std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(header.size() + payload.size() <= caps().message_bytes_max);
  if (!post_kept()) return status::retry_queue_full;
  wire::request o = begin(wire::kind::message, peer, 0, {});
  o.message_kind = kind;
  o.header = header;
  o.payload = payload;
  return wire_.post(o);
}

status sim_fabric::send_bulk(int peer, slices from, std::uint64_t token) noexcept {
  if (caps().bulk_pieces_max == 0) return status::not_supported;
  if (from.size() > caps().bulk_pieces_max) return status::bad_argument;
  wire::request o = begin(wire::kind::bulk, peer, token, {});
  o.local = from;
  return wire_.post(o);
}

status sim_fabric::post_bulk_receive(int peer, slices to, std::uint64_t token) noexcept {
  if (caps().bulk_pieces_max == 0) return status::not_supported;
  if (to.size() > caps().bulk_pieces_max) return status::bad_argument;
  return wire_.post_receive(rank_, peer, to, token);
}

unsigned sim_fabric::poll(fabric::sink& to, unsigned limit) noexcept {
  detail::explore_point(this);
  (void)post_kept();
  if (const std::size_t deaths = wire_.job().deaths().size(); deaths != deaths_seen_) {
    deaths_seen_ = deaths;
    wire_.end_bulk_of_dead(rank_);
  }
  unsigned found = 0;
  for (; found < limit && !arrivals_.empty(); ++found) {
    arrival a = arrivals_.pop_front();
    switch (a.what) {
      case arrival_kind::completion:
        if (!a.chained) wire_.job().charge(rank_, wire_.model().constants().completion_time_ps, activity::poll);
        report_broken(to, a);
        to.on_completion(a.value, a.result, a.bytes);
        break;
      case arrival_kind::immediate: to.on_immediate(a.source, static_cast<std::uint32_t>(a.value)); break;
      case arrival_kind::message:
        --messages_waiting_;
        to.on_message(a.source, a.kind, a.payload);
        wire_.give_back(std::move(a.payload));
        break;
    }
  }
  return found;
}

// A connection on which an operation has ended in this way carries no more operations: the failed operation proves that
// no write of the dead rank arrives later.
void sim_fabric::report_broken(fabric::sink& to, const arrival& a) noexcept {
  if (a.result == status::peer_failed && !wire_.job().alive(a.source) && !has_forgotten(a.source))
    to.on_broken(a.source);
}

bool sim_fabric::has_forgotten(int peer) const noexcept {
  return std::find(forgotten_.begin(), forgotten_.end(), peer) != forgotten_.end();
}

// The wire itself ends pending operations to the dead rank.
void sim_fabric::forget(int peer) noexcept {
  if (has_forgotten(peer)) return;
  forgotten_.push_back(peer);
  arrivals_.erase_if([&](const arrival& a) {
    if (a.what == arrival_kind::completion || a.source != peer) return false;
    messages_waiting_ -= a.what == arrival_kind::message ? 1 : 0;
    return true;
  });
}

void sim_fabric::end_one() noexcept {
  detail::explore_point(this);
  --under_way_;
  if (std::exchange(refused_, false) || under_way_ == 0) wire_.job().wake(rank_);
}

void sim_fabric::put(arrival&& a) {
  detail::explore_point(this);
  arrivals_.push_back(std::move(a));
  wire_.job().wake(rank_);
}

void sim_fabric::put_completion(const completion& c) {
  put({arrival_kind::completion, c.result, c.chained, 0, c.peer, c.token, c.bytes, {}});
}

void sim_fabric::put_message(int source, std::uint16_t kind, std::vector<std::byte>&& bytes) {
  if (has_forgotten(source)) return;
  ++messages_waiting_;
  put({arrival_kind::message, status::done, false, kind, source, 0, 0, std::move(bytes)});
}

void sim_fabric::put_immediate(int source, std::uint32_t immediate) {
  if (has_forgotten(source)) return;
  put({arrival_kind::immediate, status::done, false, 0, source, immediate, 0, {}});
}

}  // namespace rma::sim
