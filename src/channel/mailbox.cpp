// SPDX-License-Identifier: Apache-2.0
#include "channel/mailbox.hpp"

#include <algorithm>
#include <cstring>

namespace rma::detail {

struct mailbox::header {
  std::uint64_t team;
  std::uint64_t sequence;
  std::uint64_t total;
  std::uint64_t offset;
  std::uint32_t tag;
  std::uint32_t unused;
};

mailbox::mailbox(context& ctx) : ctx_(ctx) { ctx.set_handler(message::collect, &mailbox::on_piece, this); }

void mailbox::send(int to, std::uint64_t team, std::uint64_t sequence, std::uint32_t tag,
                   std::span<const std::byte> data) noexcept {
  const std::size_t piece = ctx_.network_of(to).caps().message_bytes_max - sizeof(header);
  std::size_t offset = 0;
  do {
    const auto part = data.subspan(offset, std::min(piece, data.size() - offset));
    const std::lock_guard guard(ctx_.lock());
    ctx_.send_record(to, message::collect, header{team, sequence, data.size(), offset, tag, 0}, part);
    offset += part.size();
  } while (offset < data.size());
}

void mailbox::on_piece(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<mailbox*>(self);
  header h{};
  constexpr auto kind = static_cast<std::uint16_t>(message::collect);
  if (payload.size() < sizeof h)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  const auto part = payload.subspan(sizeof h);
  const address key{h.team, h.sequence, h.tag, source};
  const auto known = me.messages_.find(key);
  // Pieces arrive in order, and memory is allocated for pieces that have arrived, not for the announced size.
  const std::size_t before = known == me.messages_.end() ? 0 : known->second.data.size();
  const std::size_t total = known == me.messages_.end() ? h.total : known->second.total;
  if (h.offset != before || h.total != total || part.size() > total - before)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_contents);
  collective_message& l = me.messages_[key];
  l.total = total;
  l.data.insert(l.data.end(), part.begin(), part.end());
  RMA_ASSERT(l.data.size() <= l.total);
}

status mailbox::take(const address& from, std::span<std::byte> data) noexcept {
  const std::lock_guard guard(ctx_.lock());
  return take_locked(from, data);
}

// A message of another node may arrive sooner than a wait is set up.
status mailbox::take_soon(const address& from, std::span<std::byte> data) noexcept {
  if (&ctx_.network_of(from.source) != ctx_.wide()) return status::not_yet;
  const std::lock_guard guard(ctx_.lock());
  status taken = status::not_yet;
  (void)ctx_.ready_soon([&]() noexcept { return (taken = take_locked(from, data)) != status::not_yet; });
  return taken;
}

status mailbox::take_locked(const address& from, std::span<std::byte> data) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  const auto at = messages_.find(from);
  if (at == messages_.end() || at->second.data.size() < at->second.total) return status::not_yet;
  const bool fits = at->second.data.size() == data.size();
  if (fits && !data.empty()) std::memcpy(data.data(), at->second.data.data(), data.size());
  messages_.erase(at);
  return fits ? status::done : status::bad_size;
}

}  // namespace rma::detail
