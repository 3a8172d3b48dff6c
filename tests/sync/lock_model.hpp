// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the models of locks share: ranks that want a lock so often, and the steps of lock "network".
#pragma once

#include <cstdint>

#include "sync/lock_cpu.hpp"
#include "sync/lock_network.hpp"
#include "sync/state_search.hpp"

namespace rma::test {

/// Kinds of locks in two bits for each rank, from the right: of its first lock, of its second; 1 is exclusive.
constexpr lock_kind kind_of(std::uint8_t kinds, int rank, unsigned done) noexcept {
  const unsigned bit = 2U * static_cast<unsigned>(rank) + (done == 0 ? 0U : 1U);
  return ((kinds >> bit) & 1U) != 0 ? lock_kind::exclusive : lock_kind::shared;
}

/// Nobody wants anything any more: they have had it, or are dead.
template <class Model>
bool nobody_is_busy(const Model& m) {
  for (int r = 0; r < Model::ranks; ++r) {
    if (m.busy(r)) return false;
  }
  return true;
}

/// Who gives the CPU word back while somebody sleeps for it wakes one of them, whichever; if there is none, nobody
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
