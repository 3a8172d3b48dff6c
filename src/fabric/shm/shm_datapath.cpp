// SPDX-License-Identifier: Apache-2.0
/// \file
/// Data path of the shm fabric. Mapped memory is copied at once; private memory of another process is copied by
/// cross-memory attach; messages are sent through rings.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/bytes.hpp"
#include "fabric/object_bytes.hpp"
#include "fabric/shm/cma.hpp"
#include "fabric/shm/shm.hpp"

namespace rma::shm {
namespace {

/// The fabric's own messages.
enum own_kind : std::uint16_t { kind_immediate = 1, kind_bulk = 2, kind_bulk_done = 3 };

struct bulk_header {
  std::uint64_t token;
  std::uint64_t pieces;
};

struct bulk_end {
  std::uint64_t token;
  std::int64_t result;
};

/// Marks an address in a bulk message as an offset in its sender's segment.
constexpr std::uint64_t in_segment = std::uint64_t{1} << 63;

using fabric::bytes_of;

template <class Slices>
std::uint64_t total(const Slices& of) noexcept {
  std::uint64_t bytes = 0;
  for (const auto& each : of) bytes += each.bytes;
  return bytes;
}

}  // namespace

// The ring to a rank, which polls it after the first call.
ring_writer& shm_fabric::ring_to(std::size_t index) noexcept {
  peer_state& p = peers_[index];
  if (!p.out) [[unlikely]] {
    p.out.emplace(board_.ring(index, board_.me()));
    const rank_slot& there = board_.slot(index);
    p.index = static_cast<std::uint32_t>(index);
    p.bell = &there.doorbell;
    p.fence = !board_.fenced_by_others() || there.fences.load() == 0;
    word64& senders = (&board_.slot(index).senders[0])[board_.me() / 64];
    senders.fetch_or(std::uint64_t{1} << (board_.me() % 64));
  }
  return *p.out;
}

line_pair* shm_fabric::lines_with(int peer) noexcept {
  const auto index = board_.index_of(peer);
  if (index == board_.size()) return nullptr;
  (void)ring_to(index);
  return &peers_[index];
}

// Promises first, then loads the peer's state. A rank that leaves or sleeps stores its state first and then checks
// promises, so that one of the two sees the other.
fabric::delivery_guarantee shm_fabric::reserve_delivery(int peer, std::size_t bytes) noexcept {
  const auto index = board_.index_of(peer);
  const word32& inside = board_.slot(index).inside;
  const auto seen = static_cast<whereabouts>(inside.load(std::memory_order_relaxed));
  if (seen != whereabouts::spinning) {
    return seen == whereabouts::asleep ? fabric::delivery_guarantee::asleep : fabric::delivery_guarantee::none;
  }
  ring_writer& out = ring_to(index);
  if (!out.has_room(bytes)) return fabric::delivery_guarantee::no_room;
  out.reserve_delivery();
  detail::full_fence();
  if (static_cast<whereabouts>(inside.load()) == whereabouts::spinning) return fabric::delivery_guarantee::certain;
  out.take_back();
  return fabric::delivery_guarantee::none;
}

bool shm_fabric::owes_delivery() noexcept {
  open_new_rings();
  const auto alive = static_cast<std::uint32_t>(presence::alive);
  return std::any_of(active_.begin(), active_.end(), [&](std::uint32_t i) {
    return peers_[i].in->reserved() && board_.slot(i).state.load() == alive;  // promises of the dead are void
  });
}

std::byte* shm_fabric::mapped(std::size_t index, const fabric::region_key& region, std::uint64_t address,
                              std::size_t bytes) const noexcept {
  if (address < region.address || address - region.address > region.bytes ||
      bytes > region.bytes - (address - region.address)) {
    return nullptr;
  }
  if (region.key != 0) return board_.segment(index) + (region.key - 1) + (address - region.address);
  return board_.same_process(index) ? reinterpret_cast<std::byte*>(address) : nullptr;
}

status shm_fabric::copy(bool write, int peer, slices local, const fabric::region_key& region,
                        std::span<const fabric::remote_slice> remote) noexcept {
  const auto index = board_.index_of(peer);
  if (region.key == 0 && !board_.same_process(index)) {
    return cma_copy(write ? cma_direction::write : cma_direction::read, board_.slot(index).pid, local, remote);
  }
  std::size_t piece = 0;
  std::size_t within = 0;
  for (const auto& r : remote) {
    if (r.bytes == 0) continue;  // its address may be invalid
    std::byte* at = mapped(index, region, r.address, r.bytes);
    if (at == nullptr) return status::out_of_window;
    for (std::size_t left = r.bytes; left > 0;) {
      const auto& l = local[piece];
      const std::size_t take = std::min(left, l.bytes - within);
      auto* const here = static_cast<std::byte*>(l.at) + within;
      if (write) {
        detail::store_bytes(at, here, take);
      } else {
        detail::load_bytes(here, at, take);
      }
      at += take;
      left -= take;
      within += take;
      if (within == l.bytes) {
        ++piece;
        within = 0;
      }
    }
  }
  return status::done;
}

status shm_fabric::write(int peer, slices from, const fabric::region_key& region,
                         std::span<const fabric::remote_slice> to, std::uint64_t, fabric::write_flags how) noexcept {
  if (how.kind == fabric::write_kind::immediate) return write_with_immediate(peer, from, region, to, how.immediate);
  return copy(true, peer, from, region, to);
}

status shm_fabric::read(int peer, slices to, const fabric::region_key& region,
                        std::span<const fabric::remote_slice> from, std::uint64_t) noexcept {
  return copy(false, peer, to, region, from);
}

status shm_fabric::write_with_immediate(int peer, slices from, const fabric::region_key& region,
                                        std::span<const fabric::remote_slice> to, std::uint32_t immediate) noexcept {
  // Checks for room for the notification first: a write without it could not be undone.
  if (!ring_to(board_.index_of(peer)).has_room(sizeof immediate)) return status::retry_queue_full;
  const status s = copy(true, peer, from, region, to);
  return ok(s) ? send(peer, kind_immediate, bytes_of(immediate), {}) : s;
}

status shm_fabric::fetch_add(int peer, const fabric::region_key& region, std::uint64_t address, std::uint64_t operand,
                             std::uint64_t& old, std::uint64_t, fabric::posting) noexcept {
  auto* const at = reinterpret_cast<std::uint64_t*>(mapped(board_.index_of(peer), region, address, 8));
  if (at == nullptr) return status::not_supported;
  old = std::atomic_ref(*at).fetch_add(operand);
  return status::done;
}

status shm_fabric::compare_swap(int peer, const fabric::region_key& region, std::uint64_t address,
                                std::uint64_t expected, std::uint64_t desired, std::uint64_t& old, std::uint64_t,
                                fabric::posting) noexcept {
  auto* const at = reinterpret_cast<std::uint64_t*>(mapped(board_.index_of(peer), region, address, 8));
  if (at == nullptr) return status::not_supported;
  old = expected;
  std::atomic_ref(*at).compare_exchange_strong(old, desired);
  return status::done;
}

status shm_fabric::send(int peer, std::uint16_t kind, std::span<const std::byte> header,
                        std::span<const std::byte> payload) noexcept {
  const auto index = board_.index_of(peer);
  ring_writer& out = ring_to(index);
  std::byte* const room = out.reserve(header.size() + payload.size());
  if (room == nullptr) return status::retry_queue_full;
  if (!header.empty()) std::memcpy(room, header.data(), header.size());
  if (!payload.empty()) std::memcpy(room + header.size(), payload.data(), payload.size());
  out.commit(header.size() + payload.size(), kind);
  if (out.was_promised()) return status::done;    // the peer handles it before it sleeps
  if (peers_[index].fence) detail::full_fence();  // orders the message before the load of the doorbell
  board_.ring_doorbell(index);
  return status::done;
}

// The address for bulk messages: an offset in this rank's segment, which the peer maps, else an address.
std::uint64_t shm_fabric::shared_place(const fabric::local_slice& here) const noexcept {
  const std::byte* const mine = board_.segment(board_.me());
  const auto* const first = static_cast<const std::byte*>(here.at);
  const bool inside = first >= mine && first + here.bytes <= mine + board_.segment_bytes();
  return inside ? in_segment | static_cast<std::uint64_t>(first - mine) : reinterpret_cast<std::uint64_t>(here.at);
}

status shm_fabric::send_bulk(int peer, slices from, std::uint64_t token) noexcept {
  if (from.size() > caps_.bulk_pieces_max) return status::bad_argument;
  const auto index = board_.index_of(peer);
  if (peers_[index].forgotten) return status::peer_failed;
  std::array<fabric::remote_slice, payload_max / sizeof(fabric::remote_slice)> pieces;
  std::size_t count = 0;
  for (const auto& s : from) {
    if (s.bytes != 0) pieces[count++] = {shared_place(s), s.bytes};
  }
  const auto list = std::span(pieces).first(count);
  const auto is_private = [](const fabric::remote_slice& s) { return (s.address & in_segment) == 0; };
  if (!caps_.one_sided && std::ranges::any_of(list, is_private)) return status::not_supported;
  const bulk_header header{token, count};
  const status s = send(peer, kind_bulk, bytes_of(header), std::as_bytes(list));
  if (s != status::done) return s;
  bulk_with(index).sends.push_back(token);
  return status::posted;
}

status shm_fabric::post_bulk_receive(int peer, slices to, std::uint64_t token) noexcept {
  if (to.size() > caps_.bulk_pieces_max) return status::bad_argument;
  const auto index = board_.index_of(peer);
  if (peers_[index].forgotten) return status::peer_failed;
  auto& receive = bulk_with(index).receives.add();
  receive.list.assign(to.begin(), to.end());
  receive.token = token;
  return status::posted;
}

void shm_fabric::own_message(std::size_t index, std::uint16_t kind, std::span<const std::byte> payload,
                             fabric::sink& to) noexcept {
  if (kind == kind_immediate && payload.size() == sizeof(std::uint32_t)) {
    std::uint32_t immediate = 0;
    std::memcpy(&immediate, payload.data(), sizeof immediate);
    to.on_immediate(board_.members()[index], immediate);
  } else if (kind == kind_bulk_done && payload.size() == sizeof(bulk_end)) {
    bulk_end end{};
    std::memcpy(&end, payload.data(), sizeof end);
    std::vector<std::uint64_t>& sends = bulk_with(index).sends;
    const auto at = std::find(sends.begin(), sends.end(), end.token);
    if (at == sends.end()) return;
    sends.erase(at);
    to.on_completion(end.token, static_cast<status>(end.result), 0);
  } else if (kind == kind_bulk && payload.size() >= sizeof(bulk_header)) {
    bulk_header header{};
    std::memcpy(&header, payload.data(), sizeof header);
    const auto list = payload.subspan(sizeof header);
    if (header.pieces != list.size() / sizeof(fabric::remote_slice)) return;
    auto& arrival = bulk_with(index).arrivals.add();
    arrival.token = header.token;
    arrival.list.resize(header.pieces);
    if (!list.empty()) std::memcpy(arrival.list.data(), list.data(), list.size());
  }
}

// Receives bulk data: this rank copies mapped memory, the kernel the rest.
status shm_fabric::take_bulk(std::size_t index, slices to, std::span<const fabric::remote_slice> from) noexcept {
  const fabric::region_key anywhere{0, ~std::uint64_t{0}, 0};
  status worst = status::done;
  auto into = to.begin();
  std::size_t used = 0;
  for (const fabric::remote_slice& each : from) {
    const std::uint64_t offset = each.address & ~in_segment;
    const bool shared = (each.address & in_segment) != 0;
    if (shared && (offset > board_.segment_bytes() || each.bytes > board_.segment_bytes() - offset))
      return status::bad_argument;
    for (std::size_t done = 0; done != each.bytes;) {
      for (; used == into->bytes; used = 0) ++into;
      const std::size_t part = std::min(each.bytes - done, into->bytes - used);
      const fabric::local_slice here{static_cast<std::byte*>(into->at) + used, part};
      const fabric::remote_slice there{each.address + done, part};
      if (shared) {
        std::memcpy(here.at, board_.segment(index) + offset + done, part);
      } else if (const status s = copy(false, board_.members()[index], {&here, 1}, anywhere, {&there, 1});
                 s != status::done) {
        worst = s;
      }
      used += part;
      done += part;
    }
  }
  return worst;
}

void shm_fabric::match_bulk(std::size_t index, fabric::sink& to) noexcept {
  bulk_state& p = bulk_with(index);
  while (!p.arrivals.empty() && !p.receives.empty()) {
    const auto& from = p.arrivals.front();
    const auto& into = p.receives.front();
    const std::uint64_t bytes = total(from.list);
    const bool fits = bytes <= total(into.list);
    const status s = fits ? take_bulk(index, into.list, from.list) : status::message_too_long;
    acknowledge_.push_back({board_.members()[index], from.token, s});
    const std::uint64_t token = into.token;
    p.arrivals.drop_first();
    p.receives.drop_first();
    to.on_completion(token, s, s == status::done ? bytes : 0);
  }
  const auto is_told = [this](const bulk_over& each) {
    const bulk_end end{each.token, static_cast<std::int64_t>(each.result)};
    return send(each.peer, kind_bulk_done, bytes_of(end), {}) == status::done;
  };
  acknowledge_.erase(acknowledge_.begin(), std::find_if_not(acknowledge_.begin(), acknowledge_.end(), is_told));
}

void shm_fabric::forget(int peer) noexcept {
  if (board_.index_of(peer) != board_.size()) deaths_.add(peer);
}

// Stops polling the rings of dead peers. Copies complete when they return, even if the peer has died; only bulk
// operations may be outstanding.
void shm_fabric::take_deaths() noexcept {
  open_new_rings();
  for (const int peer : deaths_.take()) {
    const auto index = board_.index_of(peer);
    std::erase(active_, static_cast<std::uint32_t>(index));
    peers_[index].forgotten = true;
    std::erase_if(acknowledge_, [&](const bulk_over& each) { return each.peer == peer; });
    if (const auto bulk = std::move(peers_[index].bulk); bulk != nullptr) {
      failed_.insert(failed_.end(), bulk->sends.begin(), bulk->sends.end());
      for (std::size_t i = 0; i < bulk->receives.size(); ++i) failed_.push_back(bulk->receives[i].token);
    }
  }
}

void shm_fabric::end_failed(fabric::sink& to) noexcept {
  for (const std::uint64_t token : std::exchange(failed_, {})) to.on_completion(token, status::peer_failed, 0);
}

// Each rank that has ever sent has a bit; new bits are rare.
void shm_fabric::open_new_rings() noexcept {
  const word64* const senders = &board_.slot(board_.me()).senders[0];
  for (std::size_t w = 0; w < known_.size(); ++w) {
    if (const std::uint64_t bits = senders[w].load(std::memory_order_relaxed); bits != known_[w]) [[unlikely]]
      open_rings(w, bits);
  }
}

void shm_fabric::open_rings(std::size_t w, std::uint64_t bits) noexcept {
  for (std::uint64_t unknown = bits & ~known_[w]; unknown != 0; unknown &= unknown - 1) {
    const std::size_t index = w * 64 + static_cast<std::size_t>(__builtin_ctzll(unknown));
    peers_[index].in.emplace(board_.ring(board_.me(), index));
    active_.push_back(static_cast<std::uint32_t>(index));
  }
  known_[w] = bits;
}

unsigned shm_fabric::poll_ring(std::size_t index, fabric::sink& to, unsigned limit) noexcept {
  unsigned found = 0;
  while (found < limit && peers_[index].in->poll([&](std::uint16_t kind, const std::byte* payload, std::size_t bytes) {
    const std::span<const std::byte> data(payload, bytes);
    if (kind >= fabric::first_kind) [[likely]] {
      to.on_message(board_.members()[index], kind, data);
    } else {
      own_message(index, kind, data, to);
    }
  })) {
    ++found;
  }
  if (peers_[index].in->take_gave_room()) {
    detail::full_fence();
    board_.ring_doorbell(index);
  }
  if (peers_[index].bulk != nullptr || !acknowledge_.empty()) match_bulk(index, to);
  return found;
}

unsigned shm_fabric::poll(fabric::sink& to, unsigned limit) noexcept {
  open_new_rings();
  if (deaths_.any()) [[unlikely]]
    take_deaths();
  if (!failed_.empty()) [[unlikely]]
    end_failed(to);
  unsigned found = 0;
  for (std::size_t i = 0; i < active_.size() && found < limit; ++i) {
    const peer_state& p = peers_[active_[i]];
    if (p.in->pending() || p.bulk != nullptr || !acknowledge_.empty())
      found += poll_ring(active_[i], to, limit - found);
  }
  return found;
}

bool shm_fabric::pending() noexcept {
  open_new_rings();
  return !failed_.empty() || deaths_.any() ||
         std::any_of(active_.begin(), active_.end(), [&](std::uint32_t i) { return peers_[i].in->pending(); });
}

}  // namespace rma::shm
