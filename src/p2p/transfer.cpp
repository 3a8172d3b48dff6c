// SPDX-License-Identifier: Apache-2.0
#include "p2p/transfer.hpp"

#include <algorithm>
#include <span>

#include "core/assert.hpp"

namespace rma::detail {

// A processor that copies does so under the progress lock, and lets others take it in between.
bool transfer::post() noexcept {
  RMA_ASSERT(posted <= bytes && !confirming);
  constexpr std::size_t turn_bytes_max = std::size_t{1} << 20;
  const fabric::capabilities& caps = network->caps();
  const std::size_t piece_max =
      caps.copies_by_cpu ? std::min(caps.transfer_bytes_max, turn_bytes_max) : caps.transfer_bytes_max;
  while (posted < bytes && result == status::done) {
    const std::size_t now = std::min(piece_max, bytes - posted);
    const fabric::local_slice here{local + posted, now};
    const fabric::remote_slice there{remote.address + posted, now};
    const status s =
        write ? network->write(peer, std::span(&here, 1), remote, std::span(&there, 1), fabric::token_of(*this))
              : network->read(peer, std::span(&here, 1), remote, std::span(&there, 1), fabric::token_of(*this));
    if (s == status::retry_queue_full) return false;
    if (!ok(s)) {
      result = s;
      return true;
    }
    posted += now;
    if (s == status::posted) ++pending;
    if (caps.copies_by_cpu && posted < bytes) return false;
  }
  return true;
}

bool transfer::confirm() noexcept {
  RMA_ASSERT(posted == bytes || result != status::done);
  const fabric::capabilities& caps = network->caps();
  const bool needed = write && !confirming && result == status::done && !caps.messages_after_writes &&
                      caps.write_means != fabric::write_completion::placed;
  if (!needed) return false;
  confirming = true;
  write = false;
  const fabric::local_slice here{&confirmed, 1};
  const fabric::remote_slice there{remote.address + bytes - 1, 1};
  const status s = network->read(peer, std::span(&here, 1), remote, std::span(&there, 1), fabric::token_of(*this));
  if (s == status::retry_queue_full) {  // posted again in the next round
    confirming = false;
    write = true;
    return true;
  }
  if (s == status::posted) ++pending;
  if (!ok(s)) result = s;
  return s == status::posted;
}

}  // namespace rma::detail
