// SPDX-License-Identifier: Apache-2.0
#include "armci/letter_box.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace rma::armci {
namespace {

constexpr const char* sending = "armci_msg_snd";
constexpr const char* receiving = "armci_msg_rcv";

Hints with_signal() {
  Hints hints;
  hints.name = "messages of ARMCI";
  hints.signals = 1;
  return hints;
}

}  // namespace

letter_box::letter_box(const Team& world)
    : ring_(Window<std::byte>::allocate(world, 64 + slots * sizeof(slot), with_signal())), me_(world.rank()) {
  for (std::uint64_t i = 0; i < slots; ++i) std::memcpy(ring_.data() + place_of(i), &i, sizeof i);
  check("ARMCI_Init", ring_.try_lock_all(no_check));
  Team(world).barrier();
}

letter_box::~letter_box() { (void)ring_.try_unlock_all(); }

void letter_box::send(Runtime& runtime, int tag, const void* data, std::size_t bytes, int to) {
  slot piece;
  piece.bytes = bytes;
  piece.from = me_;
  piece.tag = tag;
  std::size_t at = 0;
  do {
    const std::uint64_t one = 1;
    std::uint64_t ticket = 0;
    check(sending, ring_.fetch_and_op_as(element::u64, rma::sum, &one, &ticket, to, 0));
    std::uint64_t state = ~ticket;
    while (state != ticket) {
      check(sending, ring_.try_get(std::as_writable_bytes(std::span(&state, 1)), to, place_of(ticket)));
      check(sending, ring_.try_flush(to));
      if (state == ticket) break;
      while (take()) {}
      runtime.progress();
      std::this_thread::yield();
    }
    piece.offset = static_cast<std::uint32_t>(at / piece_bytes);
    piece.length = static_cast<std::uint32_t>(std::min(piece_bytes, bytes - at));
    if (piece.length != 0) std::memcpy(piece.data, static_cast<const std::byte*>(data) + at, piece.length);
    const auto all = std::as_bytes(std::span(&piece, 1)).first(offsetof(slot, data) + piece.length);
    check(sending, ring_.try_put(all.subspan(sizeof state), to, place_of(ticket) + sizeof state));
    check(sending, ring_.try_flush(to));
    piece.state = ticket + 1;
    check(sending, ring_.try_put_signal(all.first(sizeof state), to, place_of(ticket), 0));
    check(sending, ring_.try_flush(to));
    at += piece.length;
  } while (at < bytes);
}

bool letter_box::take() {
  std::byte* const at = ring_.data() + place_of(head_);
  auto& state = *reinterpret_cast<std::uint64_t*>(at);
  if (std::atomic_ref(state).load(std::memory_order_acquire) != head_ + 1) return false;
  slot piece;
  std::memcpy(&piece, at, sizeof piece);
  message& made = incomplete_[piece.from];
  if (piece.offset == 0) made = {piece.from, piece.tag, static_cast<std::size_t>(piece.bytes), {}};
  made.data.insert(made.data.end(), piece.data, piece.data + piece.length);
  if (made.data.size() == made.bytes) {
    here_.push_back(std::move(made));
    incomplete_.erase(piece.from);
  }
  std::atomic_ref(state).store(head_ + slots, std::memory_order_release);
  ++head_;
  if (signals_ahead_ > 0) {
    --signals_ahead_;
  } else {
    check(receiving, ring_.try_wait_signal(0));  // behind the data by a moment
  }
  return true;
}

// The signal may be that of a later slot, whose sender was faster.
void letter_box::await_piece(int from) {
  check(receiving, ring_.try_wait_signal(0, 1, from < 0 || from == me_ ? -1 : from));
  ++signals_ahead_;
}

job::received letter_box::receive(int tag, void* data, std::size_t room, int from) {
  for (;;) {
    const auto found = std::find_if(here_.begin(), here_.end(), [&](const message& each) {
      return each.tag == tag && (from < 0 || each.from == from);
    });
    if (found != here_.end()) {
      if (found->bytes > room)
        fail(receiving, "a message of " + std::to_string(found->bytes) + " bytes from process " +
                            std::to_string(found->from) + " does not fit into " + std::to_string(room));
      if (found->bytes != 0) std::memcpy(data, found->data.data(), found->bytes);
      const job::received got{found->bytes, found->from};
      here_.erase(found);
      return got;
    }
    if (!take()) await_piece(from);
  }
}

}  // namespace rma::armci
