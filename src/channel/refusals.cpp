// SPDX-License-Identifier: Apache-2.0
/// \file
/// Malformed messages: their receiver rejects them, and their sender reports that, once for each peer.
#include <cstdio>
#include <cstring>

#include "channel/context.hpp"
#include "core/assert.hpp"

namespace rma::detail {
namespace {

struct malformed_notice_record {
  std::uint32_t bytes;
  std::uint16_t kind;
  malformed_reason why;
};

const char* reason_of(malformed_reason why) noexcept {
  switch (why) {
    case malformed_reason::unknown_kind: return "there is no such kind";
    case malformed_reason::wrong_length: return "it has another length than its kind";
    case malformed_reason::protected_memory: return "the window's memory there cannot be written, or not be read";
    case malformed_reason::wrong_contents: break;
  }
  return "what it says makes no sense";
}

}  // namespace

void context::reject_malformed(int source, std::uint16_t kind, std::size_t bytes, malformed_reason why) noexcept {
  count(counter::messages_refused);
  send_record(source, message::malformed_notice, malformed_notice_record{static_cast<std::uint32_t>(bytes), kind, why});
}

// Reports the first notice of each peer. It sends no reply: two incompatible ranks must not exchange notices for ever.
void context::on_malformed_notice(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<context*>(self);
  RMA_ASSERT(me.is_guarded());
  RMA_ASSERT(source >= 0 && source < me.size());
  malformed_notice_record r{};
  if (payload.size() != sizeof r) return;
  std::memcpy(&r, payload.data(), sizeof r);
  me.count(counter::malformed_notices);
  word32& malformed_notices = me.peer_of(source).malformed_notices;
  if (malformed_notices.load() == 0) {
    std::fprintf(stderr, "rma: rank %d: rank %d refused a message of this rank (kind %u, %u bytes): %s%s\n", me.rank(),
                 source, unsigned{r.kind}, r.bytes, reason_of(r.why),
                 r.why == malformed_reason::protected_memory
                     ? ""
                     : "; do both run the same version, and has this rank's memory been overwritten?");
  }
  malformed_notices.store(malformed_notices.load(std::memory_order_relaxed) + 1);
}

}  // namespace rma::detail
