// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "fabric": the network's own write and read, one call for up to 64 pieces on each side where the fabric can
/// do that, else one for each contiguous piece of the target ("multi-w" of the dissertation, ch. 8); or one write for a
/// list of pieces of the origin, where the target's memory is in one piece ("write-gather", "read-scatter").
#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <utility>

#include "datatype/copy.hpp"
#include "xfer/protocols.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

constexpr std::size_t pieces_max = 64;
constexpr std::uint64_t copied_bytes_max = 512;  ///< of a value: cheaper to copy than to wait for

/// What one operation posts. Holds the progress lock, but where it waits.
class posting {
 public:
  posting(window_core& w, const fabric::region_key& region, const checked_operation& o) noexcept
      : w_(w),
        region_(region),
        o_(o),
        network_(w.ctx->network_of(o.peer)),
        caps_(network_.caps()),
        write_(o.args->kind == call::put),
        guard_(w.ctx->lock()) {}

  [[nodiscard]] const fabric::capabilities& caps() const noexcept { return caps_; }

  /// One call of the fabric, when there is room. After a failure nothing more is posted.
  [[gnu::always_inline]] void post(std::span<const fabric::local_slice> local,
                                   std::span<const fabric::remote_slice> remote) noexcept {
    if (result_ != status::done) return;
    requests_ += remote.size();
    const status s = w_.ctx->until_posted(guard_, o_.peer, [=, this]() noexcept { return try_to_post(local, remote); });
    if (s == status::not_supported && remote.size() > 1) return post_each(local, remote);
    if (s == status::posted) return;
    if (s == status::peer_failed || s == status::transfer_failed) w_.ctx->blame(o_.peer);
    result_ = s;
  }
  /// What becomes of all that was posted, see engine::finish_posting.
  status end(bool now, request_node** request) noexcept {
    w_.ctx->count(counter::operations_fabric);
    if (!o_.contiguous) w_.ctx->count(counter::layout_requests, requests_);
    announce();
    if (operation_ == nullptr) return result_;
    keep_track();
    const status s =
        w_.team->rt->ops->finish_posting(guard_, *operation_, w_, o_.peer, now, ok(result_) ? request : nullptr);
    return ok(result_) ? s : result_;
  }
  /// The put is one write, so that an immediate can tell the target's fence of it.
  void tell_by_immediate() noexcept {
    told_by_it_ = write_ && w_.fence == fence_kind::imm_ri && w_.access == access_epoch::fence &&
                  caps_.write_with_immediate && o_.args->signal < 0 && o_.state->immediates < immediates_max;
  }
  /// Where the data are to be read from, if not from the origin: the fabric reads them after the call's return.
  std::byte* copy(const void* from, std::size_t bytes) noexcept {
    begin();
    const auto* const first = static_cast<const std::byte*>(from);
    operation_->copy.assign(first, first + bytes);
    return operation_->copy.data();
  }

 private:
  [[gnu::noinline]] void post_each(std::span<const fabric::local_slice> local,
                                   std::span<const fabric::remote_slice> remote) noexcept {
    requests_ -= remote.size();
    for (std::size_t i = 0; i < remote.size(); ++i) post(local.subspan(i, 1), remote.subspan(i, 1));
  }
  void begin() noexcept {
    if (operation_ != nullptr) return;
    engine& e = *w_.team->rt->ops;
    operation_ = &e.record_of(o_.record);
    e.track(*operation_, *o_.state, write_);
    e.trace_operation(*operation_, w_, o_);
  }
  status try_to_post(std::span<const fabric::local_slice> local,
                     std::span<const fabric::remote_slice> remote) noexcept {
    const bool direct = caps_.copies_by_cpu;  // over when it returns: nothing to keep track of
    if (!direct) begin();
    const std::uint64_t token = direct ? 0 : token_of(*operation_);
    const status s = !write_       ? network_.read(o_.peer, local, region_, remote, token)
                     : told_by_it_ ? write_with_immediate(local, remote[0], token)
                                   : network_.write(o_.peer, local, region_, remote, token);
    if (s == status::posted) ++operation_->pieces;
    return s == status::done && !direct ? status::posted : s;
  }
  /// The fence that closes this epoch has to say that this put is there.
  void announce() noexcept {
    if (!write_ || w_.access != access_epoch::fence || w_.fence == fence_kind::placed) return;
    if (!told_by_it_) o_.state->finish_due = true;
    if (std::exchange(o_.state->channel, true)) return;
    w_.fences.channels.push_back(o_.args->target);
  }
  /// Of fence imm-ri. What a fabric cannot do for this memory is a write that a finish message announces.
  status write_with_immediate(std::span<const fabric::local_slice> local, fabric::remote_slice remote,
                              std::uint64_t token) noexcept {
    const std::uint32_t slot = o_.far != nullptr
                                   ? o_.far->fence_slot
                                   : static_cast<std::uint32_t>(w_.identity_of(o_.args->target)->identity.fence_slot);
    const std::uint32_t immediate = fence_immediate(slot, w_.fences.number + 1);
    const status s = network_.write_with_immediate(o_.peer, local, region_, remote, immediate, token);
    if (s == status::not_supported) {
      told_by_it_ = false;
      return network_.write(o_.peer, local, region_, {&remote, 1}, token);
    }
    if (!ok(s)) return s;
    ++o_.state->immediates;
    if (operation_ != nullptr) operation_->immediate = true;
    return s;
  }
  void keep_track() noexcept {
    mark_dirty(w_, o_.args->target, *o_.state);
    if (o_.far == nullptr || !write_) return;
    if (caps_.write_means != fabric::write_completion::placed) o_.far->unplaced = true;
  }

  window_core& w_;
  const fabric::region_key& region_;
  const checked_operation& o_;
  fabric::network& network_;
  const fabric::capabilities& caps_;
  const bool write_;
  bool told_by_it_ = false;  ///< an immediate goes with the write
  std::uint64_t requests_ = 0;
  std::unique_lock<small_lock> guard_;
  operation_record* operation_ = nullptr;
  status result_ = status::done;
};

/// The pieces of a shape, or of what is larger than one transfer.
class piece_list {
 public:
  explicit piece_list(posting& to) noexcept
      : to_(to), room_(std::min(pieces_max, to.caps().remote_slices_max)), most_(to.caps().transfer_bytes_max) {}

  void add(std::byte* here, std::uint64_t there, std::size_t bytes) noexcept {
    for (; bytes > most_; bytes -= most_) {
      add(here, there, most_);
      here += most_;
      there += most_;
    }
    local_[count_] = {here, bytes};
    remote_[count_] = {there, bytes};
    if (++count_ == room_) flush();
  }
  void flush() noexcept {
    if (count_ != 0) to_.post({local_.data(), count_}, {remote_.data(), count_});
    count_ = 0;
  }

 private:
  posting& to_;
  std::size_t room_, most_;
  std::size_t count_ = 0;
  std::array<fabric::local_slice, pieces_max> local_;
  std::array<fabric::remote_slice, pieces_max> remote_;
};

[[gnu::noinline]] void post_pieces(posting& to, const checked_operation& o, std::byte* here,
                                   std::uint64_t there) noexcept {
  piece_list pieces(to);
  if (o.contiguous) {
    pieces.add(here, there, o.bytes);
  } else {
    for_each_pair(*o.target, *o.origin, [&](std::ptrdiff_t at, std::ptrdiff_t local, std::size_t bytes) {
      pieces.add(here + local, there + static_cast<std::uint64_t>(at), bytes);
    });
  }
  pieces.flush();
}

/// The origin's blocks in lists as long as the network takes them, for one place at the target.
void post_lists(posting& to, const checked_operation& o, std::byte* here, std::uint64_t there) noexcept {
  const bool put = o.args->kind == call::put;
  const std::size_t room = std::min(pieces_max, put ? to.caps().gather_max : to.caps().scatter_max);
  std::array<fabric::local_slice, pieces_max> list;
  std::size_t count = 0;
  fabric::remote_slice place{there + static_cast<std::uint64_t>(o.target->lower()), 0};
  const auto flush = [&] {
    if (count != 0) to.post({list.data(), count}, {&place, 1});
    place = {place.address + place.bytes, 0};
    count = 0;
  };
  for_each_block(*o.origin, [&](std::ptrdiff_t at, std::size_t bytes) {
    for (std::byte* from = here + at; bytes != 0;) {
      const std::size_t part = std::min(bytes, to.caps().transfer_bytes_max - place.bytes);
      if (part != 0) list[count++] = {from, part};
      place.bytes += part;
      from += part;
      bytes -= part;
      if (count == room || place.bytes == to.caps().transfer_bytes_max) flush();
    }
  });
  flush();
}

enum class cut : std::uint8_t { pairs, lists };

status post_all(window_core& w, const fabric::region_key& region, const checked_operation& o, cut how,
                request_node** request) noexcept {
  const operation_args& a = *o.args;
  posting to(w, region, o);
  const bool put = a.kind == call::put;
  auto* here = static_cast<std::byte*>(put ? const_cast<void*>(a.origin) : a.result);
  const std::uint64_t there = (w.kind == call::create_dynamic ? 0 : region.address) + o.offset;
  bool read_already = put && o.contiguous && o.bytes <= to.caps().inline_bytes_max;
  if (a.by_value && put && o.contiguous && !to.caps().copies_by_cpu && !read_already && o.bytes <= copied_bytes_max) {
    here = to.copy(here, o.bytes);
    read_already = true;
  }
  if (o.contiguous && o.bytes <= to.caps().transfer_bytes_max) [[likely]] {
    const fabric::local_slice local{here, o.bytes};
    const fabric::remote_slice remote{there, o.bytes};
    to.tell_by_immediate();
    to.post({&local, 1}, {&remote, 1});
  } else if (how == cut::lists) {
    post_lists(to, o, here, there);
  } else {
    post_pieces(to, o, here, there);
  }
  return to.end(a.by_value && !read_already, request);
}

/// And its signal.
status run(window_core& w, const fabric::region_key& region, const checked_operation& o, cut how,
           request_node** request) noexcept {
  const operation_args& a = *o.args;
  const status s = post_all(w, region, o, how, request);
  if (!ok(s) || a.signal < 0) return s;
  // No message waits for a read: the target may overwrite what the signal says has been read.
  if (a.kind == call::get || !w.ctx->network_of(o.peer).caps().messages_after_writes) {
    if (const status placed = complete_target(w, a.target); placed != status::done) return placed;
  }
  notify(w, a.target, counter_kind::signal, static_cast<std::uint32_t>(a.signal));
  return status::posted;
}

}  // namespace

status run_fabric(window_core& w, const fabric::region_key& region, const checked_operation& o,
                  request_node** request) noexcept {
  return run(w, region, o, cut::pairs, request);
}

status run_fabric_lists(window_core& w, const fabric::region_key& region, const checked_operation& o,
                        request_node** request) noexcept {
  return run(w, region, o, cut::lists, request);
}

}  // namespace rma::detail
