// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "lock-get-modify-put": atomic updates by their origin, under a lock of the target's part that is only for
/// updates. The target takes no part, and elements may have any size and operator.
///
///   origin: compare_swap(update_lock, 0 -> me)  again, after pauses, while another rank holds it
///           read the elements ------------------> target's memory
///           change them here
///           write them back; compare_swap(update_lock, me -> 0) takes effect behind the write (fabric.hpp)
///
/// All ranks use this protocol, even the target itself and its neighbors. The lock of a dead rank is taken over.
/// Source: dissertation, chapter 7 (get-modify-put; as a program it is examples/random_access).
#include <algorithm>
#include <cstddef>
#include <list>
#include <mutex>
#include <vector>

#include "datatype/copy.hpp"
#include "rma/detail/window_ops.hpp"
#include "xfer/complete.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/protocol/protocol.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

constexpr std::int64_t lock_pause_first_ns = 500, lock_pause_max_ns = 64'000;

/// One operation under the lock.
class locked_update {
 public:
  locked_update(window_core& w, const fabric::region_key& region, const checked_operation& o) noexcept
      : w_(w), region_(region), o_(o), name_(static_cast<std::uint64_t>(w.ctx->rank()) + 1) {}

  status run() noexcept {
    const operation_args& a = *o_.args;
    if (const status s = acquire(); s != status::done) return s;
    status s = status::done;
    if (a.kind == call::compare_and_swap) {
      s = swap();
    } else if (o_.contiguous) {
      s = update(o_.offset, static_cast<const std::byte*>(operand(a.op, a.origin)), result_of(a), o_.bytes);
    } else {
      s = update_pieces();
    }
    const status released = release();
    return s != status::done ? s : released;
  }

 private:
  [[nodiscard]] fabric::network& network() const noexcept { return *w_.ctx->wide(); }
  [[nodiscard]] engine& ops() const noexcept { return *w_.team->rt->ops; }
  [[nodiscard]] std::uint64_t lock_address() const noexcept {
    return block_.address + offsetof(window_block, update_lock);
  }
  std::byte* result_of(const operation_args& a) const noexcept {
    return o_.fetches() ? static_cast<std::byte*>(a.result) : nullptr;
  }

  status acquire() noexcept {
    if (const status s = block_region(w_, o_.args->target, block_); s != status::done) return s;
    std::uint64_t expected = 0;
    for (std::int64_t pause_ns = lock_pause_first_ns;;) {
      std::uint64_t holder = 0;
      const status s = remote_swap(ops(), network(), o_.peer, block_, lock_address(), expected, name_, holder);
      if (s != status::done) return s;
      if (holder == expected) return status::done;
      expected = 0;
      if (holder != 0 && w_.ctx->dead(static_cast<int>(holder - 1))) {
        expected = holder;
        continue;
      }
      (void)w_.ctx->wait({.deadline_ns = w_.ctx->after_ns(pause_ns)});
      pause_ns = std::min(2 * pause_ns, lock_pause_max_ns);
    }
  }
  status release() noexcept {
    std::uint64_t holder = 0;
    const status s = remote_swap(ops(), network(), o_.peer, block_, lock_address(), name_, 0, holder);
    std::uint64_t none = 0;
    for (operation_record* const written : writes_) {
      const status over = finish_remote_add(ops(), o_.peer, written, none);
      if (over != status::done) failed_ = over;
    }
    return failed_ != status::done ? failed_ : s;
  }

  /// Writes changed data back; their memory is kept until the lock is released.
  status write(std::uint64_t offset, const std::vector<std::byte>& changed) noexcept {
    operation_record* started = nullptr;
    const status s = start_remote_write(ops(), network(), o_.peer, region_, region_.address + offset, changed.data(),
                                        changed.size(), started);
    if (started != nullptr) writes_.push_back(started);
    return s;
  }
  /// `from` may be null for no_op, `old` if it is not needed.
  status update(std::uint64_t offset, const std::byte* from, std::byte* old, std::uint64_t bytes) noexcept {
    std::vector<std::byte>& here = memory_.emplace_back(bytes);
    status s = remote_read(ops(), network(), o_.peer, region_, region_.address + offset, here.data(), bytes);
    if (s == status::done) s = apply_owned(here.data(), from, old, bytes, o_.args->op, o_.args->type);
    return s == status::done && o_.args->op != operation::no_op ? write(offset, here) : s;
  }
  status update_pieces() noexcept {
    const operation_args& a = *o_.args;
    std::vector<std::byte> from(o_.bytes), old(o_.result != nullptr ? o_.bytes : 0);
    const bool carries = operand(a.op, a.origin) != nullptr;
    if (carries) pack(from.data(), a.origin, *o_.origin, 0, o_.bytes);
    std::uint64_t done = 0;
    status s = status::done;
    for_each_block(*o_.target, [&](std::ptrdiff_t at, std::size_t bytes) {
      if (s == status::done) {
        s = update(o_.offset + static_cast<std::uint64_t>(at), carries ? from.data() + done : nullptr,
                   old.empty() ? nullptr : old.data() + done, bytes);
      }
      done += bytes;
    });
    if (!old.empty() && s == status::done) unpack(a.result, old.data(), *o_.result, 0, o_.bytes);
    return s;
  }
  status swap() noexcept {
    const operation_args& a = *o_.args;
    std::vector<std::byte>& here = memory_.emplace_back(o_.bytes);
    const status s =
        remote_read(ops(), network(), o_.peer, region_, region_.address + o_.offset, here.data(), o_.bytes);
    if (s != status::done) return s;
    const std::vector<std::byte> before = here;
    swap_owned(here.data(), a.compare, a.origin, a.result, o_.bytes);
    return here == before ? s : write(o_.offset, here);
  }

  window_core& w_;
  const fabric::region_key& region_;
  const checked_operation& o_;
  std::uint64_t name_;
  fabric::region_key block_{};
  std::list<std::vector<std::byte>> memory_;
  std::vector<operation_record*> writes_;
  status failed_ = status::done;
};

struct lock_get_modify_put_row {
  static const char* refuses(const window_core& w, const placement&, const checked_operation& o) noexcept {
    return o.atomic() && w.mode == accumulate_mode::lock_get_modify_put ? nullptr
                                                                        : "the window's updates go another way";
  }
  static std::int64_t estimate_ns(const window_core&, const checked_operation&) noexcept { return 0; }
  static status start(window_core& w, const placement& at, const checked_operation& o, request_node**) noexcept {
    if (const status s = await_room(w, o.args->target); s != status::done) return s;
    status s = locked_update(w, *at.region, o).run();
    if (ok(s) && o.args->signal >= 0) {
      s = complete_target(w, o.args->target);
      if (s == status::done)
        notify(w, o.args->target, counter_kind::signal, static_cast<std::uint32_t>(o.args->signal));
      if (s == status::done) s = status::posted;  // the signal is sent
    }
    const std::lock_guard guard(w.ctx->lock());
    w.ctx->count(counter::operations_fabric);
    return s;
  }
  static const char* why(const window_core&, const placement&, const checked_operation&) noexcept {
    return "accumulate mode lock-get-modify-put";
  }
};

}  // namespace

const protocol lock_get_modify_put_protocol{layout_scheme::automatic,
                                            "lock-get-modify-put",
                                            false,
                                            lock_get_modify_put_row::refuses,
                                            lock_get_modify_put_row::estimate_ns,
                                            lock_get_modify_put_row::start,
                                            lock_get_modify_put_row::why};

}  // namespace rma::detail
