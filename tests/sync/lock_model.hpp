// SPDX-License-Identifier: Apache-2.0
/// \file
/// The parts that the models of locks share: ranks that want a lock so often, the steps of lock "network", and a lock
/// manager's queue.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "sync/lock_cpu.hpp"
#include "sync/lock_network.hpp"
#include "sync/lock_turns.hpp"
#include "sync/state_search.hpp"

namespace rma::test {

/// Kinds of locks in two bits for each rank, from the right: of its first lock, of its second; 1 is exclusive.
constexpr lock_kind kind_of(std::uint8_t kinds, int rank, unsigned done) noexcept {
  const unsigned bit = 2U * static_cast<unsigned>(rank) + (done == 0 ? 0U : 1U);
  return ((kinds >> bit) & 1U) != 0 ? lock_kind::exclusive : lock_kind::shared;
}

/// A list of at most so many, in the model itself: what is behind its end is as new, so that equal lists are equal.
template <class T, std::size_t Max>
class small_list {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return all_.data(); }
  T* end() noexcept { return all_.data() + size_; }
  [[nodiscard]] const T* begin() const noexcept { return all_.data(); }
  [[nodiscard]] const T* end() const noexcept { return all_.data() + size_; }
  [[nodiscard]] const T& front() const noexcept { return all_[0]; }
  void push_back(const T& t) noexcept {
    RMA_ASSERT(size_ < Max);
    all_[size_++] = t;
  }
  T* erase(T* at) noexcept {
    std::copy(at + 1, end(), at);
    all_[--size_] = {};
    return at;
  }
  void swap(small_list& other) noexcept { std::swap(*this, other); }
  bool operator==(const small_list&) const = default;

  template <class Self, class Field>
  static void fields(Self& s, Field& field) {
    field(s.size_, 3);
    for (auto& t : s.all_) t.fields(t, field);
  }

 private:
  std::array<T, Max> all_{};
  std::uint8_t size_ = 0;
};

/// A request of one of at most four ranks to a lock manager.
struct model_request {
  std::uint8_t source = 0;
  std::uint8_t number = 0;  ///< which of this rank's
  lock_kind kind = lock_kind::shared;
  bool is_epoch = false;
  bool operator==(const model_request&) const = default;

  template <class Self, class Field>
  static void fields(Self& s, Field& field) {
    field(s.source, 2);
    field(s.number, 2);
    field(s.kind, 2);
    field(s.is_epoch, 1);
  }
};

/// A lock manager's queue of that many ranks, which is the library's.
template <std::size_t Ranks>
using model_turns = detail::lock_turns<small_list<model_request, Ranks>>;

template <class Turns, class Field>
void turns_fields(Turns& turns, Field& field) {
  turns.lists(turns, [&](auto& list) { list.fields(list, field); });
}

/// Nobody wants anything any more: they have had it, or are dead.
template <class Model>
bool nobody_is_busy(const Model& m) {
  for (int r = 0; r < Model::ranks; ++r) {
    if (m.busy(r)) return false;
  }
  return true;
}

/// A rank that gives the CPU word back while others sleep for it wakes one of them, whichever; if there is none, nobody
/// sleeps for it any more.
template <class Model, class Emit>
void wake_one(const Model& after, Emit&& emit) {
  bool any = false;
  for (const int who : {0, 1, Model::manager}) {
    if (!after.sleeps(who)) continue;
    any = true;
    Model next = after;
    next.ring(who);
    emit(next);
  }
  if (any) return;
  Model next = after;
  next.cpu &= ~detail::lock_waiters;
  emit(next);
}

/// The attempt after its next request to the network word: the fabric's atomic happens at once.
inline detail::network_attempt walk(detail::network_attempt a, std::uint64_t& word) {
  const detail::network_request q = detail::request_of(a);
  const std::uint64_t old = word;
  if (q.add) {
    word = old + q.operand;
  } else if (old == q.expected) {
    word = q.operand;
  }
  return detail::step(a, old);
}

/// The parts of the network word that four ranks can change.
template <class Field, class Word>
void network_fields(Field& field, Word& word) {
  field(word, 2, 62);  // a writer, elsewhere
  field(word, 3, detail::network_holders_shift);
  field(word, 1, 39);  // wanted
  field(word, 4, 0);   // names
}

}  // namespace rma::test
