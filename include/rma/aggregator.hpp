// SPDX-License-Identifier: Apache-2.0
/// \file
/// Aggregators route small operations on elements of a window in large buffers: for codes that update or read single
/// elements in no order (histograms, sparse matrices, graphs, hash tables).
///
///   {
///     rma::Aggregator agg(win);                            // collective
///     for (auto [rank, at] : places) agg.accumulate(1L, rank, at, rma::sum);
///     agg.get(rank, at, found);
///   }                                                      // collective: all are applied, `found` is valid
///
/// An operation is stored in a buffer that is sent, when it is full, to a rank nearer to the target: to a rank of the
/// target's plane, then of its row, then of its node. So a rank keeps buffers for its neighbors in a grid of nodes, not
/// for all ranks. Ranks do not wait for each other before the end; a rank that waits for room serves others meanwhile.
/// Operations on mapped memory are applied at once, unless a handler or an adapter owns the atomicity of the window
/// (accumulate_mode handler, direct): then each rank counts as a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "rma/window.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// Parameters of an aggregator. They must be the same on all ranks.
struct AggregatorOptions {
  /// Bytes of a buffer; 0: as much as `memory_bytes` allows, 16 KiB at most.
  std::size_t buffer_bytes = 0;
  /// Upper bound on the bytes of all buffers of a rank together where `buffer_bytes` is 0.
  std::size_t memory_bytes = std::size_t{1} << 20;
  /// Dimensions of the grid of nodes, 1 to 3; 0: 1 up to 16 nodes, 2 up to 256, else 3.
  int dimensions = 0;
  /// False promises that `get` is not called, which saves half of the buffers.
  bool gets = true;
};

/// Counters of this rank since the aggregator was made.
struct AggregatorCounts {
  std::uint64_t direct = 0;      ///< operations on mapped memory, applied at once
  std::uint64_t stored = 0;      ///< operations stored in a buffer
  std::uint64_t forwarded = 0;   ///< records of other ranks that were sent on
  std::uint64_t applied = 0;     ///< records of other ranks that were applied here
  std::uint64_t buffers = 0;     ///< buffers sent
  std::size_t buffer_bytes = 0;  ///< bytes of one buffer
  std::size_t memory_bytes = 0;  ///< bytes of all buffers of this rank
};

namespace detail {

/// Precedes each record in a buffer.
struct aggregated_record {
  std::int32_t target;
  std::uint16_t bytes;  ///< length of the record, this header included; a multiple of 8
  std::uint8_t kind;
  std::uint8_t op;
};

/// Routes records of any content to ranks. Internal.
class record_router {
 public:
  using deliver = void (*)(void* self, const aggregated_record& record);

  record_router(const Team& team, bool mapped, const AggregatorOptions& options, deliver run, void* self);
  ~record_router();
  record_router(const record_router&) = delete;
  record_router& operator=(const record_router&) = delete;

  /// Records for this rank are delivered here, without being stored.
  [[nodiscard]] bool is_here(int target) const noexcept { return groups_[target] == my_group_; }
  /// Reserves room for a record to another group: at most record_bytes_max. The next buffer carries it. `reply` marks a
  /// record that `deliver` sends, and that has no reply itself.
  std::byte* store(int target, std::size_t bytes, bool reply);
  /// Delivers the records that have arrived; never waits.
  void serve();
  /// Collective. Returns when all records that ranks have stored are delivered.
  void flush();
  /// Releases the other ranks from waiting for this one.
  void abandon() noexcept;
  [[nodiscard]] const AggregatorCounts& counts() const noexcept;
  static constexpr std::size_t record_bytes_max = 256;

 private:
  class routes;
  std::unique_ptr<routes> routes_;
  const int* groups_ = nullptr;  ///< group of each rank
  int my_group_ = 0;
};

}  // namespace detail

/// Collects operations on single elements of a window, from its construction to its end.
///
/// Shape      construction, flush, finish and the end of the scope are collective over the window's team; all else is
///            for one rank. The window must have no open epoch: the aggregator has a lock_all epoch until it ends
/// Completes  put, accumulate and get complete at the next flush or finish, or at the end of the scope, on all ranks
/// Memory     operations from one rank to one target are applied in the order of the calls, so that a get sees the
///            updates before it. After flush they are visible to plain loads of the target and of its node
/// Atomicity  accumulates are atomic with all other accumulates to the window, in its accumulate mode
/// Errors     throws Error: bad_rank, out_of_window, bad_argument (options), wrong_epoch; peer_failed and revoked from
///            collective calls. An exception that leaves the scope ends it without the other ranks, which get
///            `revoked`, and marks the window failed; so does a destructor that cannot complete. Call `finish` last: it
///            throws instead
/// Threads    one at a time
/// Progress   stored records move when their owner calls the aggregator, and when buffers are full
/// Cost       a stored operation 16 bytes and the element, copied at each of at most 3 hops
/// Source     the idea is that of Conveyors (Maley, DeVinney 2019) and of Arkouda's aggregators
template <class T>
class Aggregator {
  using source = std::source_location;

 public:
  /// Collective over the window's team.
  explicit Aggregator(Window<T>& window, const AggregatorOptions& options = {}, source where = source::current());
  Aggregator(const Aggregator&) = delete;
  Aggregator& operator=(const Aggregator&) = delete;
  ~Aggregator() {
    if (router_ == nullptr) return;
    if (!exceptions_.thrown()) {
      try {
        finish();
        return;
      } catch (const Error&) {  // a scope's end cannot report it: the window is marked failed
      }
    }
    if (router_ != nullptr) router_->abandon();
    detail::abandon_epoch(*window_.view_, -1);
  }

  /// Writes one element.
  void put(const T& value, int target, std::size_t at, source where = source::current()) {
    check(target, at, where);
    if (router_->is_here(target)) {
      ++direct_;
      return window_.put(value, target, at);
    }
    store_update(kind::put, operation::replace, value, target, at);
  }
  /// Updates one element.
  template <operation Op>
  void accumulate(const T& value, int target, std::size_t at, operation_tag<Op> op, source where = source::current())
    requires accumulable<T>
  {
    check(target, at, where);
    if (router_->is_here(target)) {
      ++direct_;
      return window_.accumulate(value, target, at, op);
    }
    store_update(kind::accumulate, Op, value, target, at);
  }
  /// Reads one element into `result`, at the latest in the next flush or finish; `result` must live until then.
  void get(int target, std::size_t at, T& result, source where = source::current()) {
    check(target, at, where);
    if (!gets_) throw Error(status::bad_argument, "Aggregator::get: AggregatorOptions::gets is false", -1, where);
    if (router_->is_here(target)) {
      ++direct_;
      result = window_.get(target, at);
      return;
    }
    request r{{target, sizeof(request), static_cast<std::uint8_t>(kind::get), 0}, me_, 0, at, &result};
    std::memcpy(router_->store(target, sizeof r, false), &r, sizeof r);
  }
  /// Applies records that have arrived. Long computations between operations should call it now and then.
  void serve() { router_->serve(); }
  /// Returns when all operations of all ranks so far are applied and all results are available.
  void flush() {
    router_->flush();
    window_.flush_all();
    if (node_) node_->barrier();  // operations for this rank may have been applied by its neighbors
    window_.sync();
  }
  /// Does a last `flush` and ends the aggregator: the destructor has nothing left to do.
  void finish() {
    flush();
    counts_ = counts();
    router_.reset();
    window_.unlock_all();
  }
  [[nodiscard]] AggregatorCounts counts() const noexcept {
    AggregatorCounts c = router_ == nullptr ? counts_ : router_->counts();
    c.direct = direct_;
    return c;
  }

 private:
  enum class kind : std::uint8_t { put, accumulate, get, reply };
  struct update {
    detail::aggregated_record head;
    std::uint64_t at;
    T value;
  };
  struct request {
    detail::aggregated_record head;
    std::int32_t origin;
    std::int32_t unused;
    std::uint64_t at;
    T* result;
  };
  struct reply {
    detail::aggregated_record head;
    T* result;
    T value;
  };
  template <class Record>
  static constexpr std::size_t bytes_of = (sizeof(Record) + 7) / 8 * 8;
  static_assert(bytes_of<update> <= detail::record_router::record_bytes_max, "rma::Aggregator is for small elements");

  void check(int target, std::size_t at, source where) const {
    if (target < 0 || target >= size_)
      throw Error(status::bad_rank, "Aggregator: the team has no such rank", target, where);
    const std::size_t limit = limits_.empty() ? limit_ : limits_[static_cast<std::size_t>(target)];
    if (at < limit) return;
    throw Error(status::out_of_window,
                "Aggregator: element " + std::to_string(at) + " of rank " + std::to_string(target) + ", which has " +
                    std::to_string(limit),
                target, where);
  }
  void store_update(kind what, operation op, const T& value, int target, std::size_t at) {
    update r{{target, bytes_of<update>, static_cast<std::uint8_t>(what), static_cast<std::uint8_t>(op)}, at, value};
    std::memcpy(router_->store(target, bytes_of<update>, false), &r, sizeof r);
  }
  static void deliver(void* self, const detail::aggregated_record& record) {
    auto& me = *static_cast<Aggregator*>(self);
    const auto* const bytes = reinterpret_cast<const std::byte*>(&record);
    switch (static_cast<kind>(record.kind)) {
      case kind::put: return me.window_.put(me.template read<update>(bytes).value, record.target, me.at(bytes));
      case kind::accumulate: return me.apply(me.template read<update>(bytes));
      case kind::get: return me.answer(me.template read<request>(bytes));
      case kind::reply: {
        const reply r = me.template read<reply>(bytes);
        *r.result = r.value;
      }
    }
  }
  template <class Record>
  static Record read(const std::byte* bytes) {
    Record r;
    std::memcpy(&r, bytes, sizeof r);
    return r;
  }
  static std::size_t at(const std::byte* bytes) { return read<update>(bytes).at; }
  void apply(const update& r) {
    if constexpr (accumulable<T>) {
      switch (static_cast<operation>(r.head.op)) {
        case operation::sum: return with(r, sum);
        case operation::bxor: return with(r, bxor);
        case operation::min: return with(r, min);
        case operation::max: return with(r, max);
        default:
          return window_.accumulate(std::span<const T>(&r.value, 1), r.head.target, r.at,
                                    static_cast<operation>(r.head.op));
      }
    }
  }
  template <operation Op>
  void with(const update& r, operation_tag<Op> op) {
    if constexpr (requires { window_.accumulate(r.value, 0, 0, op); }) {
      window_.accumulate(r.value, r.head.target, r.at, op);
    }
  }
  void answer(const request& r) {
    reply out{{r.origin, bytes_of<reply>, static_cast<std::uint8_t>(kind::reply), 0},
              r.result,
              window_.get(r.head.target, r.at)};
    std::memcpy(router_->store(r.origin, bytes_of<reply>, true), &out, sizeof out);
  }

  Window<T>& window_;
  int me_ = 0;
  int size_ = 0;
  detail::exception_watch exceptions_;
  bool gets_ = true;
  std::size_t limit_ = 0;            ///< elements of each part, if all parts have equally many
  std::vector<std::size_t> limits_;  ///< otherwise the elements of each part
  std::optional<Team> node_;         ///< the ranks whose memory is mapped, if there are others than this one
  std::uint64_t direct_ = 0;
  AggregatorCounts counts_;
  std::unique_ptr<detail::record_router> router_;
};

template <class T>
Aggregator<T>::Aggregator(Window<T>& window, const AggregatorOptions& options, source where)
    : window_(window), gets_(options.gets) {
  Team team = window.team(where);
  me_ = team.rank();
  size_ = team.size();
  const std::size_t mine = window.size();
  limit_ = team.allreduce(std::uint64_t{mine}, min, where);
  if (limit_ != team.allreduce(std::uint64_t{mine}, max, where)) limits_ = team.allgather(mine, where);
  Team node = team.node(where);
  // Only one owner of atomicity may update: where that is the target's handler, records go to the target itself.
  const bool by_owner = window.atomicity() == accumulate_mode::handler || is_by_adapter(window.atomicity());
  int mapped = by_owner ? 0 : 1;
  for (int i = 0; i < node.size(); ++i) {
    const int rank = team.rank_of(node.world_rank(i));
    const std::size_t limit = limits_.empty() ? limit_ : limits_[static_cast<std::size_t>(rank)];
    if (limit != 0 && window.pointer_to(rank) == nullptr) mapped = 0;
  }
  mapped = team.allreduce(mapped, min, where);
  if (mapped != 0 && node.size() > 1) node_ = std::move(node);
  router_ = std::make_unique<detail::record_router>(team, mapped != 0, options, &Aggregator::deliver, this);
  if (const status s = window.lock_all_nothrow(); s != status::done)
    throw Error(s, "Aggregator: the window has an open epoch, or lock_all failed", -1, where);
}

}  // namespace rma

#pragma GCC visibility pop
