// SPDX-License-Identifier: Apache-2.0
#include "channel/dissemination.hpp"

#include <cstring>

namespace rma::detail {

struct dissemination::news {
  std::uint64_t id;
  std::uint32_t turn;
  std::uint32_t round;
};

dissemination::dissemination(context& ctx) : ctx_(ctx) {
  ctx.set_handler(message::barrier, &dissemination::on_news, this);
}

dissemination::circle& dissemination::find(std::uint64_t id) noexcept {
  const std::lock_guard guard(ctx_.lock());
  return known(id);
}

void dissemination::drop(std::uint64_t id) noexcept {
  const std::lock_guard guard(ctx_.lock());
  last_ = nullptr;
  circles_.erase(id);
}

// Others may come to a barrier before this rank has made what it belongs to.
dissemination::circle& dissemination::known(std::uint64_t id) noexcept {
  if (last_ == nullptr || last_->id != id) {
    last_ = &circles_[id];
    last_->id = id;
  }
  return *last_;
}

void dissemination::send(const circle& c, unsigned round, int to) noexcept {
  ctx_.send_record(to, message::barrier, news{c.id, c.turn, round});
}

void dissemination::on_news(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<dissemination*>(self);
  constexpr auto kind = static_cast<std::uint16_t>(message::barrier);
  news n{};
  if (payload.size() != sizeof n) return me.ctx_.refuse(source, kind, payload.size(), nonsense::wrong_length);
  std::memcpy(&n, payload.data(), sizeof n);
  if (n.round >= rounds_max) return me.ctx_.refuse(source, kind, payload.size(), nonsense::wrong_contents);
  me.known(n.id).heard[n.round].store(n.turn);
}

}  // namespace rma::detail
