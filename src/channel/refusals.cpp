// SPDX-License-Identifier: Apache-2.0
/// \file
/// Messages that make no sense: their receiver refuses them, and their sender says so, once for each peer.
#include <cstdio>
#include <cstring>

#include "channel/context.hpp"

namespace rma::detail {
namespace {

struct protest_record {
  std::uint32_t bytes;
  std::uint16_t kind;
  nonsense why;
};

const char* reason_of(nonsense why) noexcept {
  switch (why) {
    case nonsense::unknown_kind: return "there is no such kind";
    case nonsense::wrong_length: return "it has another length than its kind";
    case nonsense::protected_memory: return "the window's memory there cannot be written, or not be read";
    case nonsense::wrong_contents: break;
  }
  return "what it says makes no sense";
}

}  // namespace

void context::refuse(int source, std::uint16_t kind, std::size_t bytes, nonsense why) noexcept {
  count(counter::messages_refused);
  send_record(source, message::protest, protest_record{static_cast<std::uint32_t>(bytes), kind, why});
}

// Said once for each peer. No answer: two ranks that understand nothing of each other must not go on like that.
void context::on_protest(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<context*>(self);
  protest_record r{};
  if (payload.size() != sizeof r) return;
  std::memcpy(&r, payload.data(), sizeof r);
  me.count(counter::protests);
  word32& protests = me.peer_of(source).protests;
  if (protests.load() == 0) {
    std::fprintf(stderr, "rma: rank %d: rank %d refused a message of this rank (kind %u, %u bytes): %s%s\n", me.rank(),
                 source, unsigned{r.kind}, r.bytes, reason_of(r.why),
                 r.why == nonsense::protected_memory
                     ? ""
                     : "; do both run the same version, and has this rank's memory been overwritten?");
  }
  protests.store(protests.load(std::memory_order_relaxed) + 1);
}

}  // namespace rma::detail
