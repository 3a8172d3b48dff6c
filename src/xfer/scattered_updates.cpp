// SPDX-License-Identifier: Apache-2.0
/// \file
/// Accumulates with layouts, on mapped memory. Blocks of a few elements are collected in batches while their lines are
/// fetched. A batch is then applied
///
///   exclusive epoch   by plain instructions: no other rank updates
///   element           by one locked instruction for each element
///   striped, biased   the same, with a mark that this rank updates without stripes
///   striped           sorted by stripe, so that each stripe is locked once for all of its blocks
///
/// The sort is stable: updates of one element are made in the order of the layout. A longer block, or one that spans
/// stripes, is a range of its own (apply_range).
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "datatype/copy.hpp"
#include "xfer/kernels.hpp"
#include "xfer/protocols.hpp"
#include "xfer/stripes.hpp"

namespace rma::detail {
namespace {

constexpr std::size_t batch_blocks_max = 256;
constexpr std::size_t batch_block_bytes_max = 64;
constexpr std::size_t buckets = 256;  ///< stripes whose numbers differ by a multiple of this are sorted together

/// Blocks of equal length, each within one stripe.
class update_batch {
 public:
  update_batch(window_core& w, target_view& t, std::byte* base, const operation_args& a) noexcept
      : w_(w),
        t_(t),
        base_(base),
        from_(static_cast<const std::byte*>(a.origin)),
        op_(a.op),
        type_(a.type),
        plain_(kernels_for_this_cpu().bulk[index_of(a.op)][index_of(a.type)]),
        locked_(kernels_for_this_cpu().atomic[index_of(a.op)][index_of(a.type)]) {}

  /// Updates `bytes` at `offset` of the target's part with those at `source` of the origin's buffer.
  void add(std::uint64_t offset, std::ptrdiff_t source, std::size_t bytes) noexcept {
    const bool crosses = ((offset ^ (offset + bytes - 1)) >> w_.stripe_shift) != 0;
    if (bytes != block_bytes_ || crosses || count_ == batch_blocks_max) [[unlikely]] {
      apply();
      if (crosses || bytes > batch_block_bytes_max) {
        note(apply_range(w_, t_, base_, offset, from_ + source, nullptr, bytes, op_, type_));
        return;
      }
      block_bytes_ = bytes;
    }
    prefetch_for_write(place_of(base_, offset));
    blocks_[count_++] = {offset, from_ + source};
  }
  /// Applies the collected updates. Returns the first failure of all, else done.
  status finish() noexcept {
    apply();
    return result_;
  }

 private:
  struct block_update {
    std::uint64_t offset;
    const std::byte* from;
  };

  void note(status s) noexcept {
    if (result_ == status::done) result_ = s;
  }
  void apply() noexcept {
    if (count_ == 0) return;
    block_elements_ = block_bytes_ / rma::bytes_of(type_);
    if (block_bytes_ % rma::bytes_of(type_) != 0) {
      note(status::bad_type);  // a layout that splits elements
    } else if (t_.held == static_cast<std::uint8_t>(lock_kind::exclusive)) {
      apply_all(plain_);
    } else if (locked_ != nullptr && w_.mode == accumulate_mode::element) {
      apply_all(locked_);
    } else if (!apply_unstriped()) {
      apply_by_stripes();
    }
    count_ = 0;
  }
  void apply_one(apply_kernel kernel, const block_update& b) noexcept {
#if defined(RMA_EXPLORE)
    if (kernel == plain_) {  // other ranks may run between its loads and its stores
      (void)apply_owned(place_of(base_, b.offset), b.from, nullptr, block_bytes_, op_, type_);
      return;
    }
    explore_point();
#endif
    kernel(place_of(base_, b.offset), b.from, block_elements_);
  }
  void apply_all(apply_kernel kernel) noexcept {
    for (std::size_t i = 0; i < count_; ++i) apply_one(kernel, blocks_[i]);
  }
  /// Returns false if the stripes are needed: nothing was updated.
  bool apply_unstriped() noexcept {
    if (locked_ == nullptr || t_.elements != element_path::biased) return false;
    const bool biased = begin_unstriped(w_, t_);
    if (biased) apply_all(locked_);
    end_unstriped(w_);
    return biased;
  }
  void apply_by_stripes() noexcept {
    std::array<std::uint8_t, batch_blocks_max> order;
    sort_by_stripe(order);
    for (std::size_t i = 0; i < count_;) {
      const std::uint64_t number = stripe_of(blocks_[order[i]]);
      stripe_lock& stripe = t_.stripes[number];
      if (const status s = lock_stripe(w_, stripe); s != status::done) return note(s);
      const apply_kernel kernel = owns_stripe(w_, t_, 1) || locked_ == nullptr ? plain_ : locked_;
      do {
        apply_one(kernel, blocks_[order[i]]);
      } while (++i < count_ && stripe_of(blocks_[order[i]]) == number);
      stripe.owner.store(0);
    }
  }
  [[nodiscard]] std::uint64_t stripe_of(const block_update& b) const noexcept {
    return (b.offset >> w_.stripe_shift) & w_.stripe_mask;
  }
  void sort_by_stripe(std::array<std::uint8_t, batch_blocks_max>& order) const noexcept {
    std::array<std::uint8_t, batch_blocks_max> bucket;
    std::array<std::uint16_t, buckets> next{};
    for (std::size_t i = 0; i < count_; ++i) {
      bucket[i] = static_cast<std::uint8_t>(stripe_of(blocks_[i]) % buckets);
      ++next[bucket[i]];
    }
    std::uint16_t first = 0;
    for (std::uint64_t i = 0; i <= std::min<std::uint64_t>(w_.stripe_mask, buckets - 1); ++i)
      first = static_cast<std::uint16_t>(first + std::exchange(next[i], first));
    for (std::size_t i = 0; i < count_; ++i) order[next[bucket[i]]++] = static_cast<std::uint8_t>(i);
  }

  window_core& w_;
  target_view& t_;
  std::byte* base_;
  const std::byte* from_;
  operation op_;
  element type_;
  apply_kernel plain_;
  apply_kernel locked_;  ///< null if there is no locked instruction
  std::size_t block_bytes_ = 0;
  std::size_t block_elements_ = 0;
  std::size_t count_ = 0;
  status result_ = status::done;
  std::array<block_update, batch_blocks_max> blocks_;
};

/// Calls fn(target's offset, origin's offset, bytes) for each piece that is contiguous on both sides.
template <class F>
void for_each_update(const Layout& target, const Layout& origin, F&& fn) noexcept {
  if (!origin.is_contiguous()) return for_each_pair(target, origin, fn);
  std::ptrdiff_t from = origin.lower();
  const auto take = [&](std::ptrdiff_t at, std::size_t bytes) noexcept {
    fn(at, from, bytes);
    from += static_cast<std::ptrdiff_t>(bytes);
  };
  for (cursor at(target); at.remaining() > 0;) {
    const block_list list = at.irregular_blocks();
    if (list.count == 0) {
      const block_run run = at.run();
      for (std::size_t i = 0; i < run.count; ++i) take(moved(run.offset, run.stride, i), run.bytes);
      at.advance_blocks(run.count);
      continue;
    }
    const std::ptrdiff_t before = from;
    for (std::size_t i = 0; i < list.count; ++i) {
      const list_entry& each = list.entries[i];
      take(moved(list.origin, each.offset, 1), list.entries[i + 1].first - each.first);
    }
    at.advance_irregular(list.count, static_cast<std::size_t>(from - before));
  }
}

}  // namespace

status accumulate_layouts(window_core& w, target_view& t, std::byte* base, const checked_operation& o) noexcept {
  update_batch batch(w, t, base, *o.args);
  for_each_update(*o.target, *o.origin, [&](std::ptrdiff_t at, std::ptrdiff_t source, std::size_t bytes) noexcept {
    batch.add(o.offset + static_cast<std::uint64_t>(at), source, bytes);
  });
  return batch.finish();
}

}  // namespace rma::detail
