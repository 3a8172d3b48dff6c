// SPDX-License-Identifier: Apache-2.0
#include "p2p/match_table.hpp"

#include <algorithm>
#include <new>

namespace rma::detail {

void match_table::grow() noexcept {
  constexpr std::size_t buckets_least = 64;
  const std::size_t count = std::max(2 * (mask_ + 1), buckets_least);
  std::unique_ptr<match_entry*[]> larger(new (std::nothrow) match_entry*[count]());
  if (larger == nullptr) return;
  for (std::size_t b = 0; b <= mask_; ++b) {
    for (match_entry* first = buckets_[b]; first != nullptr;) {
      match_entry* const next = first->next_key;
      first->next_key = std::exchange(larger[hash(first->key) & (count - 1)], first);
      first = next;
    }
  }
  memory_ = std::move(larger);
  buckets_ = memory_.get();
  mask_ = count - 1;
}

}  // namespace rma::detail
