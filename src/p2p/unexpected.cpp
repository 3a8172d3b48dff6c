// SPDX-License-Identifier: Apache-2.0
#include "p2p/unexpected.hpp"

#include "core/assert.hpp"

namespace rma::detail {

unexpected_message& unexpected_messages::make(std::size_t data_bytes) {
  const unsigned c = class_of_bytes(data_bytes);
  RMA_ASSERT(c < free_.size());
  if (free_[c] == nullptr) {
    const std::size_t bytes = std::size_t{1} << c;
    blocks_.push_back(std::unique_ptr<std::byte[]>(new std::byte[bytes]));
    reserved_bytes_ += bytes;
    auto* const made = new (blocks_.back().get()) unexpected_message;
    made->size_class = c;
    free_[c] = made;
  }
  unexpected_message& m = *free_[c];
  RMA_ASSERT(m.size_class == c);
  free_[c] = m.next_free;
  return m;
}

void unexpected_messages::free(unexpected_message& m) noexcept {
  RMA_ASSERT(m.size_class < free_.size() && free_[m.size_class] != &m);
  m.next_free = free_[m.size_class];
  free_[m.size_class] = &m;
}

void unexpected_messages::add(unexpected_message& m) noexcept {
  in_order_.push_back(m);
  for (unsigned kind = 0; kind < match_classes; ++kind) {
    if ((kinds_ & 1U << kind) == 0) continue;
    m.entries[kind].of = &m;
    m.entries[kind].key = key_of_class(m.key, kind);
    tables_[kind].add(m.entries[kind]);
  }
}

void unexpected_messages::remove(unexpected_message& m) noexcept {
  RMA_ASSERT(!in_order_.empty());
  in_order_.erase(in_order_.iterator_to(m));
  for (unsigned kind = 0; kind < match_classes; ++kind) {
    if ((kinds_ & 1U << kind) != 0) tables_[kind].remove(m.entries[kind]);
  }
}

// Tables of wildcard keys are made on first use, so that a program without wildcards has no cost for them.
void unexpected_messages::look_after(unsigned kind) noexcept {
  kinds_ |= 1U << kind;
  for (unexpected_message& m : in_order_) {
    m.entries[kind].of = &m;
    m.entries[kind].key = key_of_class(m.key, kind);
    tables_[kind].add(m.entries[kind]);
  }
}

unexpected_message* unexpected_messages::find(const match_key& key) noexcept {
  const unsigned kind = class_of(key.source, key.tag);
  if ((kinds_ & 1U << kind) == 0) [[unlikely]]
    look_after(kind);
  match_entry* const first = tables_[kind].find(key);
  return first == nullptr ? nullptr : static_cast<unexpected_message::entry*>(first)->of;
}

}  // namespace rma::detail
