// SPDX-License-Identifier: Apache-2.0
#include "xfer/remote.hpp"

#include <algorithm>

#include "window/window_core.hpp"

namespace rma::detail {
namespace {

/// Posts when there is room, waits for the completion, and passes the record to `take`. `post(operation)` is called
/// under the lock.
template <class Post, class Take>
status post_and_wait(engine& e, int rank, Post&& post, Take&& take) noexcept {
  context& ctx = e.ctx();
  std::unique_lock guard(ctx.lock());
  operation_record& op = e.new_operation();
  status s = ctx.until_posted(guard, rank, [&]() noexcept { return post(op); });
  // The wait has no other end: the fabric ends every operation, if necessary by an error.
  if (s == status::posted) s = e.wait_posted(guard, op, rank);
  if (s == status::peer_failed) ctx.set_last_failed(rank);
  if (s == status::done) take(op);
  if (s == status::transfer_failed) ctx.set_last_failed(rank);
  if (s == status::job_aborted) {
    op.detached = true;  // it may still be pending
  } else {
    e.free_operation(op);
  }
  return s;
}

}  // namespace

status remote_read(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                   std::uint64_t address, void* into, std::size_t bytes) noexcept {
  auto* to = static_cast<std::byte*>(into);
  do {
    const std::size_t piece = std::min(bytes, network.caps().transfer_bytes_max);
    const fabric::local_slice here{to, piece};
    const fabric::remote_slice there{address, piece};
    const status s = post_and_wait(
        e, world_rank,
        [&](operation_record& op) noexcept {
          return network.read(world_rank, {&here, 1}, region, {&there, 1}, token_of(op));
        },
        [](operation_record&) noexcept {});
    if (s != status::done) return s;
    to += piece;
    address += piece;
    bytes -= piece;
  } while (bytes != 0);
  return status::done;
}

status remote_swap(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                   std::uint64_t address, std::uint64_t expected, std::uint64_t desired, std::uint64_t& old) noexcept {
  return post_and_wait(
      e, world_rank,
      [&](operation_record& op) noexcept {
        return network.compare_swap(world_rank, region, address, expected, desired, op.value, token_of(op));
      },
      [&](operation_record& op) noexcept { old = op.value; });
}

status start_remote_atomic(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                           std::uint64_t address, bool add, std::uint64_t expected, std::uint64_t operand,
                           operation_record*& started) noexcept {
  const std::lock_guard guard(e.ctx().lock());
  operation_record& op = e.new_operation();
  const status s = add ? network.fetch_add(world_rank, region, address, operand, op.value, token_of(op))
                       : network.compare_swap(world_rank, region, address, expected, operand, op.value, token_of(op));
  if (s == status::done) op.over.store(1);
  started = ok(s) ? &op : nullptr;
  if (!ok(s)) e.free_operation(op);
  return s;
}

operation_record* start_remote_add(engine& e, fabric::network& network, int world_rank,
                                   const fabric::region_key& region, std::uint64_t address,
                                   std::uint64_t operand) noexcept {
  operation_record* started = nullptr;
  (void)start_remote_atomic(e, network, world_rank, region, address, true, 0, operand, started);
  return started;
}

status start_remote_write(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                          std::uint64_t address, const void* from, std::size_t bytes,
                          operation_record*& started) noexcept {
  context& ctx = e.ctx();
  std::unique_lock guard(ctx.lock());
  operation_record& op = e.new_operation();  // its first piece stands for the posting
  const auto* at = static_cast<const std::byte*>(from);
  status s = status::done;
  while (bytes != 0 && ok(s)) {
    const std::size_t piece = std::min(bytes, network.caps().transfer_bytes_max);
    const fabric::local_slice here{const_cast<std::byte*>(at), piece};
    const fabric::remote_slice there{address, piece};
    s = ctx.until_posted(guard, world_rank, [&]() noexcept {
      return network.write(world_rank, {&here, 1}, region, {&there, 1}, token_of(op));
    });
    if (s == status::posted) ++op.pieces;
    at += piece;
    address += piece;
    bytes -= piece;
  }
  started = &op;
  e.end_piece(op, ok(s) ? status::done : s);
  return ok(s) ? status::done : s;
}

status finish_remote_add(engine& e, int world_rank, operation_record* op, std::uint64_t& old) noexcept {
  std::unique_lock guard(e.ctx().lock());
  const status s = e.wait_posted(guard, *op, world_rank);
  if (s == status::peer_failed || s == status::transfer_failed) e.ctx().set_last_failed(world_rank);
  if (s == status::done) old = op->value;
  if (s == status::job_aborted) {
    op->detached = true;  // it may still be pending
  } else {
    e.free_operation(*op);
  }
  return s;
}

status remote_add(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                  std::uint64_t address, std::uint64_t operand, std::uint64_t& old) noexcept {
  return post_and_wait(
      e, world_rank,
      [&](operation_record& op) noexcept {
        return network.fetch_add(world_rank, region, address, operand, op.value, token_of(op));
      },
      [&](operation_record& op) noexcept { old = op.value; });
}

status block_region(window_core& w, int target, fabric::region_key& region) noexcept {
  fabric::region_key& known = w.state_of(target).block;
  status s = status::done;
  if (known.bytes == 0) s = w.team->rt->region_at(w.world_rank(target), w.block_offset, known);
  region = known;
  return s;
}

status find_far(window_core& w, int target, far_target*& found) noexcept {
  far_target& far = w.far(target);
  found = &far;
  if (far.known) [[likely]]
    return status::done;
  if (const int rank = w.world_rank(target); w.ctx->gone(rank)) {  // its memory may be unmapped or reused by now
    w.ctx->set_last_failed(rank);
    return status::peer_failed;
  }
  fabric::region_key block;
  if (const status s = block_region(w, target, block); s != status::done) return s;
  window_identity it{};
  const status s =
      remote_read(*w.team->rt->ops, *w.ctx->wide(), w.world_rank(target), block, block.address, &it, sizeof it);
  if (s != status::done) return s;
  if (it.magic != w.my_block().identity.magic) return status::window_freed;
  far.bytes = it.bytes;
  far.region = it.wide;
  far.reachable = it.wide_reachable != 0;
  far.plain = far.reachable && w.kind != call::create_dynamic && w.ctx->wide()->caps().one_sided &&
              w.team->rt->ops->forced() != user_memory::handler;
  far.slot = static_cast<std::uint32_t>(it.slot);
  far.known = true;
  return status::done;
}

// Reads the table as the ranks of the node do: with its version before and after, and again if that has changed. Tables
// change seldom, so that mostly only the version is read.
status find_far_table(window_core& w, int target, far_target& far) noexcept {
  engine& e = *w.team->rt->ops;
  const int rank = w.world_rank(target);
  const auto read_head = [&](table_head& head) noexcept {
    return remote_read(e, *w.ctx->wide(), rank, far.block, far.block.address + offsetof(window_block, table), &head,
                       sizeof head);
  };
  for (;;) {
    table_head head{};
    if (const status s = read_head(head); s != status::done) return s;
    const std::uint64_t version = head.version.load();
    if ((version & 1) != 0) continue;
    if (version == far.table_version) return status::done;
    std::vector<attachment> table(head.count);
    if (head.count != 0) {
      const std::uint64_t bytes = table.size() * sizeof(attachment);
      const std::uint64_t at = far.block.address - w.block_offset + head.offset;
      const status s =
          remote_read(e, *w.ctx->wide(), rank, fabric::region_key{at, bytes, head.key}, at, table.data(), bytes);
      if (s != status::done) return s;
      if (const status reread = read_head(head); reread != status::done) return reread;
      if (head.version.load() != version) continue;
    }
    const std::lock_guard guard(w.ctx->lock());  // any thread may resume waiting operations, which read the table
    far.table = std::move(table);
    far.table_version = version;
    return status::done;
  }
}

// Posts a read after the writes, which completes when they are placed. It waits for this rank's writes only, and needs
// no region but the block's.
void ask_placed(window_core& w, int target) noexcept {
  if (!w.is_far(target)) return;
  far_target& far = w.far(target);
  if (!far.unplaced || far.queued.load() != 0) return;  // posted after the last queued write
  far.unplaced = false;
  engine& e = *w.team->rt->ops;
  const int rank = w.world_rank(target);
  fabric::region_key block;
  if (block_region(w, target, block) != status::done) return;
  const std::lock_guard guard(w.ctx->lock());
  operation_record& op = e.new_operation();
  const fabric::local_slice here{&op.value, sizeof op.value};
  const fabric::remote_slice there{block.address, sizeof op.value};
  const status s = w.ctx->wide()->read(rank, {&here, 1}, block, {&there, 1}, token_of(op));
  if (s == status::posted) {
    e.track(op, far, false);
    op.detached = true;
    w.ctx->count(counter::placement_reads);
    return;
  }
  far.unplaced = s == status::retry_queue_full;  // posted again when there is room
  e.free_operation(op);
}

}  // namespace rma::detail
