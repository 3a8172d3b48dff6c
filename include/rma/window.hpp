// SPDX-License-Identifier: Apache-2.0
/// \file
/// Windows: memory that the ranks of a team put into, get from and update atomically.
///
/// `Window<T>` counts in elements of T. `Window<std::byte>` is the untyped window: byte displacements, element
/// type and operator chosen at run time, any layout on either side.
///
/// Epochs: operations are allowed between two fences, between start and complete, or while a lock is held.
/// An operation is complete, at origin and target, after the call that closes or flushes its epoch.
///
/// These headings hold for every operation below, unless its own comment says otherwise:
///
/// Shape      one-sided: only the origin calls
/// Completes  value forms (`T get`, `fetch_and_op`, `compare_and_swap`): when they return. Span and layout forms:
///            at the next flush, unlock, complete or fence; r... forms (rma/request_forms.hpp) also when their Request
///            is complete
/// Memory     operations of an epoch are not ordered, except accumulates from one origin to one location, which keep
///            their order. flush, unlock, complete and fence order everything before them before everything after
/// Units      displacements count `displacement_unit` (default: elements; in dynamic windows bytes) from the start of
///            the target's part
/// Target     a rank of the window's team. With rma::no_rank (rma/ranks.hpp) the call does nothing, in any epoch; a
///            fetched value is T{}, and a try_ form leaves it as it was
/// Errors     out_of_window, wrong_epoch, bad_rank, bad_size, bad_type, misaligned, bad_argument, unreachable,
///            window_freed, window_failed, wrong_thread; peer_failed and transfer_failed, by the operation or by the
///            call that completes it. The `try_` form (for lock, wait and recv, which may block, the `_nothrow` form)
///            returns them and the other form throws rma::Error; they do not differ otherwise. The calls that never
///            wait are `test`, `test_signal`, `test_until`, and the requests of rma/synchronization.hpp
/// Misuse     operations on mapped memory are not recorded. So the misuse of a fence epoch that had operations (a lock,
///            start or post that would end it, or a false no_precede) is detected between nodes only, and on one node
///            with RMA_CHECK=1, the default in debug builds of the library, where no call is inlined
/// Threads    one thread at a time. At thread_level::multiple any number of threads at once; they share its epochs: one
///            may lock a target, another put there and a third flush; one of them makes each collective call
/// Cost       mapped memory: a store, a load or a locked instruction, no allocation (perf/latency.cpp)
/// Source     MPI-4.1 chapter 12; docs/architecture.md "Life of one put"
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <source_location>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "rma/aggregate.hpp"
#include "rma/atomic_forms.hpp"
#include "rma/detail/copy.hpp"
#include "rma/detail/window_ops.hpp"
#include "rma/epoch.hpp"
#include "rma/epoch_scope.hpp"
#include "rma/hints.hpp"
#include "rma/layout.hpp"
#include "rma/operation.hpp"
#include "rma/ranks.hpp"
#include "rma/request.hpp"
#include "rma/request_forms.hpp"
#include "rma/run_time_types.hpp"
#include "rma/signals.hpp"
#include "rma/synchronization.hpp"
#include "rma/team.hpp"
#include "rma/window_facts.hpp"
#include "rma/words.hpp"

#pragma GCC visibility push(default)

namespace rma {

template <class T>
class Aggregator;

/// A window whose elements are T. Move-only; see the top of this file for what holds for all operations.
template <class T>
class Window : public window_facts,
               public Synchronization<Window<T>>,
               public AtomicForms<Window<T>, T>,
               public RequestForms<Window<T>, T>,
               public Signals<Window<T>, T>,
               public Words<Window<T>, T>,
               public RunTimeTypes<Window<T>> {
  friend class Synchronization<Window<T>>;
  friend class AtomicForms<Window<T>, T>;
  friend class RequestForms<Window<T>, T>;
  friend class Signals<Window<T>, T>;
  friend class Words<Window<T>, T>;
  friend class RunTimeTypes<Window<T>>;
  friend class Aggregator<T>;
  static_assert(std::is_trivially_copyable_v<T>, "rma::Window needs a trivially copyable T: bytes travel, not objects");
  using source = std::source_location;

 public:
  using value_type = T;  ///< the element

  // ---- life -----------------------------------------------------------------------------------------------

  /// Makes a window over memory of the library: `count` elements on this rank (ranks may differ), set to zero, mapped
  /// by all ranks of the node and registered once for the network.
  /// Shape      collective over the team
  /// Errors     throws Error: out_of_memory, with the requested and the available size, on every rank. The `try_`
  ///            forms of this and the next three return the status, and assign to `made` if it is done
  /// Cost       O(1) memory per rank beside the elements
  [[nodiscard]] static Window allocate(const Team& team, std::size_t count, const Hints& hints = {},
                                       source where = source::current()) {
    return make(team, plan(detail::call::allocate, nullptr, count, where), hints);
  }
  [[nodiscard]] static status try_allocate(const Team& team, std::size_t count, Window& made,
                                           const Hints& hints = {}) noexcept {
    return try_make(team, plan(detail::call::allocate, nullptr, count), made, hints);
  }
  /// Makes a window over memory of the user, which must live until `free`. Between processes it is slower than
  /// `allocate` unless promoted. Read-only memory is allowed, as a source of gets: updates of it end with
  /// transfer_failed at their origin (from within the same process they are stores, which fault). The protection is
  /// examined once, by this call: the program must not protect or unmap the memory while the window lives.
  /// Shape      collective over the team
  [[nodiscard]] static Window create(const Team& team, std::span<T> memory, const Hints& hints = {},
                                     source where = source::current()) {
    return make(team, plan(detail::call::create, memory.data(), memory.size(), where), hints);
  }
  [[nodiscard]] static status try_create(const Team& team, std::span<T> memory, Window& made,
                                         const Hints& hints = {}) noexcept {
    return try_make(team, plan(detail::call::create, memory.data(), memory.size()), made, hints);
  }
  /// As `allocate`, for a team on one node: plain loads and stores reach each part through `pointer_to`. With
  /// Hints::contiguous all parts are one array, in the order of the ranks, from `pointer_to(0)` on.
  /// Shape      collective over the team
  /// Errors     unreachable if the team spans nodes (use `team.node()`)
  [[nodiscard]] static Window allocate_shared(const Team& team, std::size_t count, const Hints& hints = {},
                                              source where = source::current()) {
    return make(team, plan(detail::call::allocate_shared, nullptr, count, where), hints);
  }
  [[nodiscard]] static status try_allocate_shared(const Team& team, std::size_t count, Window& made,
                                                  const Hints& hints = {}) noexcept {
    return try_make(team, plan(detail::call::allocate_shared, nullptr, count), made, hints);
  }
  /// Makes an empty window, to which each rank attaches its memory later. Displacements are bytes: the value that
  /// the owner's `attach` returned plus an offset within the range, or within ranges that follow it without a gap.
  /// Shape      collective over the team; attach and detach are local, in any number
  /// Errors     bad_argument if Hints::displacement_unit is neither 0 nor 1
  [[nodiscard]] static Window create_dynamic(const Team& team, const Hints& hints = {},
                                             source where = source::current()) {
    return make(team, plan(detail::call::create_dynamic, nullptr, 0, where), hints);
  }
  [[nodiscard]] static status try_create_dynamic(const Team& team, Window& made, const Hints& hints = {}) noexcept {
    return try_make(team, plan(detail::call::create_dynamic, nullptr, 0), made, hints);
  }

  Window() noexcept = default;
  Window(Window&& other) noexcept : window_facts(std::exchange(other.view_, detail::no_window())) {}
  Window& operator=(Window&& other) noexcept {
    if (this != &other) {
      detail::drop_window(view_);
      view_ = std::exchange(other.view_, detail::no_window());
    }
    return *this;
  }
  /// Not collective, and waits for no rank. Memory of `allocate` is released once every rank has dropped its handle;
  /// memory of `create` belongs to the program again at once. Operations that arrive for this rank's handler afterwards
  /// end with transfer_failed at their origin, so let the other ranks finish first.
  ~Window() { detail::drop_window(view_); }

  /// Frees the window and its memory. Completes the operations of an open fence epoch.
  /// Shape      collective; no lock, start or post may be open
  /// Errors     wrong_epoch, wrong_thread: nothing has happened. After any other error the window is freed anyway.
  ///            A dead member is no error; memory of `allocate` is then released once all living members have freed
  ///            or dropped the window, since those that do not know of the death yet may still use it
  void free(source where = source::current()) {
    const status s = try_free();
    detail::require(*view_, detail::call::free, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_free() noexcept {
    const status s = detail::free_window(view_);
    if (s != status::window_freed && s != status::wrong_epoch && s != status::wrong_thread) view_ = detail::no_window();
    return s;
  }

  /// Revokes the window: on every living member all waits for other members on it end with `revoked`, both pending and
  /// later ones. A rank calls this when it finds that the others cannot continue, as after a death that not all of them
  /// notice. Calls that wait for no member still work: operations in an open epoch, flush, unlock. Free or drop the
  /// window then.
  /// Shape      local; messages inform the other members
  void revoke(source where = source::current()) {
    detail::require(*view_, detail::call::revoke, try_revoke(), -1, 0, 0, where);
  }
  [[nodiscard]] status try_revoke() noexcept { return detail::revoke(*view_); }

  /// Attaches `memory`, which must live until `detach`, to this dynamic window, so that other ranks can access it
  /// (read-only memory: see `create`). One operation may cover several ranges
  /// that follow each other without a gap.
  /// Shape      local; returns the displacement of the range, the address of its first byte. Send it to the origins
  ///            (Team::allgather): that orders this call before their operations. A fence with no_precede does not
  /// Errors     bad_argument if it is empty or overlaps an attached range; not_supported unless the window is dynamic;
  ///            out_of_memory
  /// Cost       between nodes each range has a registration of its own, so that the target's handler carries out an
  ///            operation that covers several
  std::uint64_t attach(std::span<T> memory, source where = source::current()) {
    std::uint64_t at = 0;
    const status s = try_attach(memory, at);
    detail::require(*view_, detail::call::attach, s, -1, at, memory.size(), where);
    return at;
  }
  [[nodiscard]] status try_attach(std::span<T> memory, std::uint64_t& at) noexcept {
    return detail::attach(*view_, memory.data(), memory.size_bytes(), at);
  }
  /// Detaches a range; `memory` must begin where an attached range begins.
  /// Errors     bad_argument if none begins there; not_supported unless the window is dynamic
  void detach(std::span<T> memory, source where = source::current()) {
    const auto at = reinterpret_cast<std::uint64_t>(memory.data());
    detail::require(*view_, detail::call::detach, try_detach(memory), -1, at, memory.size(), where);
  }
  [[nodiscard]] status try_detach(std::span<T> memory) noexcept { return detail::detach(*view_, memory.data()); }

  // ---- local part and mapped parts ------------------------------------------------------------------------

  /// This rank's own part.
  [[nodiscard]] std::span<T> local() const noexcept {
    return {static_cast<T*>(detail::local_base(*view_)), detail::local_bytes(*view_) / sizeof(T)};
  }
  [[nodiscard]] T* data() const noexcept { return static_cast<T*>(detail::local_base(*view_)); }
  [[nodiscard]] std::size_t size() const noexcept { return detail::local_bytes(*view_) / sizeof(T); }
  /// Number of elements in `rank`'s part. See part_bytes.
  [[nodiscard]] std::size_t size(int rank, source where = source::current()) const {
    return part_bytes(rank, where) / sizeof(T);
  }
  T& operator[](std::size_t i) const noexcept { return data()[i]; }
  /// The part of `rank` if it is mapped here, else null.
  [[nodiscard]] T* pointer_to(int rank) const noexcept { return static_cast<T*>(detail::mapped_base(*view_, rank)); }

  // ---- several operations at once ----------------------------------------------------------------------------

  /// An aggregate handle, which sends small operations to a target together: see rma/aggregate.hpp.
  Aggregate<T> aggregate() noexcept { return Aggregate<T>(*view_); }

  // ---- put ------------------------------------------------------------------------------------------------

  /// Writes one element.
  void put(const T& value, int target, std::size_t at, source where = source::current()) {
    if (!detail::fast_put(*view_, value, target, at)) [[unlikely]]
      detail::put_or_raise<T>(*view_, value, target, at, where);
  }
  [[nodiscard]] status try_put(const T& value, int target, std::size_t at) noexcept {
    if (detail::fast_put(*view_, value, target, at)) [[likely]]
      return status::done;
    return detail::issue_and_wait(*view_, detail::put_args(&value, sizeof(T), target, at));
  }
  /// Writes a range. `from` may be reused after the next flush_local, flush or end of epoch.
  void put(std::span<const T> from, int target, std::size_t at, source where = source::current()) {
    const status s = try_put(from, target, at);
    detail::require(*view_, detail::call::put, s, target, at, from.size(), where);
  }
  [[nodiscard]] status try_put(std::span<const T> from, int target, std::size_t at) noexcept {
    if (std::byte* const to = detail::fast_range(*view_, from.size(), sizeof(T), target, at)) [[likely]] {
      detail::copy_bytes(to, from.data(), from.size_bytes(), &view_->turn);
      return status::done;
    }
    return detail::issue(*view_, detail::put_args(from.data(), from.size_bytes(), target, at), nullptr);
  }
  /// Deleted, since `{}` could mean a value or an empty range: write T{} or std::span<const T>().
  template <class... More>
  void put(std::initializer_list<detail::nothing>, int, std::size_t, const More&...) = delete;
  template <class... More>
  void try_put(std::initializer_list<detail::nothing>, int, std::size_t, const More&...) = delete;
  /// Writes the bytes that `from_layout` selects of `from` to those that `to_layout` selects from displacement `at` on.
  void put(const T* from, const Layout& from_layout, int target, std::size_t at, const Layout& to_layout,
           source where = source::current()) {
    const status s = try_put(from, from_layout, target, at, to_layout);
    detail::require(*view_, detail::call::put, s, target, at, to_layout, where);
  }
  [[nodiscard]] status try_put(const T* from, const Layout& from_layout, int target, std::size_t at,
                               const Layout& to_layout) noexcept {
    return detail::issue(
        *view_, detail::layout_args(detail::call::put, from, nullptr, from_layout, target, at, to_layout), nullptr);
  }

  // ---- get ------------------------------------------------------------------------------------------------

  /// Reads one element; complete when the call returns.
  [[nodiscard]] T get(int target, std::size_t at, source where = source::current()) {
    T value;
    if (detail::fast_get(*view_, value, target, at)) [[likely]]
      return value;
    return detail::get_or_raise<T>(*view_, target, at, where);
  }
  [[nodiscard]] status try_get(T& value, int target, std::size_t at) noexcept {
    if (detail::fast_get(*view_, value, target, at)) [[likely]]
      return status::done;
    return detail::issue_and_wait(*view_, detail::get_args(&value, sizeof(T), target, at));
  }
  /// Reads a range into `to`; complete at the next flush, flush_local or end of the epoch.
  void get(std::span<T> to, int target, std::size_t at, source where = source::current()) {
    const status s = try_get(to, target, at);
    detail::require(*view_, detail::call::get, s, target, at, to.size(), where);
  }
  [[nodiscard]] status try_get(std::span<T> to, int target, std::size_t at) noexcept {
    if (const std::byte* const from = detail::fast_range(*view_, to.size(), sizeof(T), target, at)) [[likely]] {
      detail::copy_bytes(to.data(), from, to.size_bytes(), &view_->turn);
      return status::done;
    }
    return detail::issue(*view_, detail::get_args(to.data(), to.size_bytes(), target, at), nullptr);
  }
  void get(T* to, const Layout& to_layout, int target, std::size_t at, const Layout& from_layout,
           source where = source::current()) {
    const status s = try_get(to, to_layout, target, at, from_layout);
    detail::require(*view_, detail::call::get, s, target, at, from_layout, where);
  }
  [[nodiscard]] status try_get(T* to, const Layout& to_layout, int target, std::size_t at,
                               const Layout& from_layout) noexcept {
    return detail::issue(
        *view_, detail::layout_args(detail::call::get, nullptr, to, to_layout, target, at, from_layout), nullptr);
  }

  // ---- atomic updates: each element is updated atomically with respect to the other updates ---------------------

  /// target[at] = target[at] op value
  template <operation Op>
    requires accumulable<T>
  void accumulate(const T& value, int target, std::size_t at, operation_tag<Op> op, source where = source::current()) {
    static_assert(defined_for(Op, element_of<T>), "this operator is not defined for the window's element type");
    if (detail::fast_accumulate<Op>(*view_, value, target, at)) [[likely]]
      return;
    detail::accumulate_or_raise<T>(*view_, value, target, at, op, where);
  }
  template <operation Op>
    requires accumulable<T>
  [[nodiscard]] status try_accumulate(const T& value, int target, std::size_t at, operation_tag<Op>) noexcept {
    static_assert(defined_for(Op, element_of<T>), "this operator is not defined for the window's element type");
    if (detail::fast_accumulate<Op>(*view_, value, target, at)) [[likely]]
      return status::done;
    return detail::issue(*view_, detail::accumulate_args(&value, sizeof(T), element_of<T>, Op, target, at), nullptr);
  }
  /// Updates a range of any length. The update of each element is atomic, that of the whole range is not.
  void accumulate(std::span<const T> from, int target, std::size_t at, operation op, source where = source::current())
    requires accumulable<T>
  {
    const status s = try_accumulate(from, target, at, op);
    detail::require(*view_, detail::call::accumulate, s, target, at, from.size(), where);
  }
  [[nodiscard]] status try_accumulate(std::span<const T> from, int target, std::size_t at, operation op) noexcept
    requires accumulable<T>
  {
    return detail::issue(*view_, detail::accumulate_args(from.data(), from.size_bytes(), element_of<T>, op, target, at),
                         nullptr);
  }
  template <class... More>
  void accumulate(std::initializer_list<detail::nothing>, int, std::size_t, const More&...) = delete;  // as put
  template <class... More>
  void try_accumulate(std::initializer_list<detail::nothing>, int, std::size_t, const More&...) = delete;
  void accumulate(const T* from, const Layout& from_layout, int target, std::size_t at, const Layout& to_layout,
                  operation op, source where = source::current())
    requires accumulable<T>
  {
    const status s = try_accumulate(from, from_layout, target, at, to_layout, op);
    detail::require(*view_, detail::call::accumulate, s, target, at, to_layout, where);
  }
  [[nodiscard]] status try_accumulate(const T* from, const Layout& from_layout, int target, std::size_t at,
                                      const Layout& to_layout, operation op) noexcept
    requires accumulable<T>
  {
    return this->accumulate_as(element_of<T>, op, from, from_layout, target, at, to_layout);
  }

  /// result[i] = target[at+i], then target[at+i] = target[at+i] op from[i]. With no_op `from` is not read, and may be
  /// empty.
  void get_accumulate(std::span<const T> from, std::span<T> result, int target, std::size_t at, operation op,
                      source where = source::current())
    requires accumulable<T>
  {
    const status s = try_get_accumulate(from, result, target, at, op);
    detail::require(*view_, detail::call::get_accumulate, s, target, at, result.size(), where);
  }
  [[nodiscard]] status try_get_accumulate(std::span<const T> from, std::span<T> result, int target, std::size_t at,
                                          operation op) noexcept
    requires accumulable<T>
  {
    if (op != operation::no_op && from.size() != result.size()) return status::bad_size;
    return detail::issue(*view_,
                         detail::get_accumulate_args(detail::operand(op, from.data()), result.data(),
                                                     result.size_bytes(), element_of<T>, op, target, at),
                         nullptr);
  }

  /// Updates one element and returns its old value; complete when the call returns.
  template <operation Op>
    requires accumulable<T>
  T fetch_and_op(const T& value, int target, std::size_t at, operation_tag<Op> op, source where = source::current()) {
    static_assert(defined_for(Op, element_of<T>), "this operator is not defined for the window's element type");
    T old;
    if (detail::fast_fetch<Op>(*view_, value, old, target, at)) [[likely]]
      return old;
    return detail::fetch_or_raise<T>(*view_, value, target, at, op, where);
  }
  template <operation Op>
    requires accumulable<T>
  [[nodiscard]] status try_fetch_and_op(const T& value, T& old, int target, std::size_t at,
                                        operation_tag<Op>) noexcept {
    static_assert(defined_for(Op, element_of<T>), "this operator is not defined for the window's element type");
    if (detail::fast_fetch<Op>(*view_, value, old, target, at)) [[likely]]
      return status::done;
    return detail::issue_and_wait(*view_, detail::fetch_args(element_of<T>, Op, &value, &old, target, at));
  }
  /// If target[at] == expected then target[at] = desired. Returns the old value of target[at].
  [[gnu::always_inline]] T compare_and_swap(const T& expected, const T& desired, int target, std::size_t at,
                                            source where = source::current())
    requires accumulable<T>
  {
    static_assert(std::is_integral_v<T>, "compare_and_swap needs an integer window");
    T old;
    if (detail::fast_swap(*view_, expected, desired, old, target, at)) [[likely]]
      return old;
    return detail::swap_or_raise<T>(*view_, expected, desired, target, at, where);
  }
  [[nodiscard]] status try_compare_and_swap(const T& expected, const T& desired, T& old, int target,
                                            std::size_t at) noexcept
    requires accumulable<T>
  {
    static_assert(std::is_integral_v<T>, "compare_and_swap needs an integer window");
    if (detail::fast_swap(*view_, expected, desired, old, target, at)) [[likely]]
      return status::done;
    return detail::issue_and_wait(*view_, detail::swap_args(element_of<T>, &expected, &desired, &old, target, at));
  }

  // ---- active target epochs -----------------------------------------------------------------------------------

  /// Closes this window's fence epoch on every rank and opens the next.
  /// Shape      collective over the window's team
  /// Completes  every operation issued by or aimed at this rank in the closed epoch
  /// Memory     their effects happen before the return: plain loads see them
  /// Errors     wrong_epoch if a lock or a start/post epoch is open or a promise is broken; bad_argument; peer_failed
  /// Cost       2 ranks of a node: one transfer of a cache line each way (perf/sync.cpp)
  void fence(assertion promises = assertion::none, source where = source::current()) {
    const status s = detail::fence(*view_, promises);
    detail::require(*view_, detail::call::fence, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_fence(assertion promises = assertion::none) noexcept {
    return detail::fence(*view_, promises);
  }

  /// Opens an exposure epoch of this rank's part for the ranks of `group`, until `wait`. Does not block.
  /// Errors     wrong_epoch if an exposure epoch, a lock, or a fence epoch with operations is open; bad_rank;
  ///            bad_argument if a rank occurs twice
  void post(std::span<const int> group, assertion promises = assertion::none, source where = source::current()) {
    detail::require(*view_, detail::call::post, try_post(group, promises), -1, 0, group.size(), where);
  }
  [[nodiscard]] status try_post(std::span<const int> group, assertion promises = assertion::none) noexcept {
    return detail::post(*view_, group.data(), group.size(), promises);
  }
  /// Opens an access epoch to the ranks of `group`; blocks until each has posted.
  /// Errors     as post; peer_failed if a rank of the group that has not posted is dead or has left. A start that
  ///            fails consumes no post: call it again with the other ranks
  void start(std::span<const int> group, assertion promises = assertion::none, source where = source::current()) {
    detail::require(*view_, detail::call::start, try_start(group, promises), -1, 0, group.size(), where);
  }
  [[nodiscard]] status try_start(std::span<const int> group, assertion promises = assertion::none) noexcept {
    return detail::start(*view_, group.data(), group.size(), promises);
  }
  /// Ends the epoch of `start`: everything issued in it is complete here and will be at the target's `wait`.
  /// Errors     wrong_epoch without `start`; transfer_failed, peer_failed: the epoch ends all the same
  void complete(source where = source::current()) {
    const status s = try_complete();
    detail::require(*view_, detail::call::complete, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_complete() noexcept { return detail::complete(*view_); }
  /// Ends the epoch of `post`: blocks until every rank of its group has completed.
  /// Memory     their operations are visible to plain loads
  /// Errors     wrong_epoch without `post`; peer_failed if a rank of the group that has not completed is dead or has
  ///            left. The epoch ends then, but what was posted to the others stays posted: the next wait for one of
  ///            them also waits for that
  void wait(source where = source::current()) {
    const status s = wait_nothrow();
    detail::require(*view_, detail::call::wait, s, -1, 0, 0, where);
  }
  [[nodiscard]] status wait_nothrow() noexcept { return detail::wait(*view_); }
  /// `wait` without blocking: true if the epoch has ended, which it reports once.
  [[nodiscard]] bool test(source where = source::current()) {
    const status s = try_test();
    if (!ok(s) && s != status::not_yet) [[unlikely]]
      detail::raise(*view_, detail::call::test, s, -1, 0, 0, where);
    return s == status::done;
  }
  /// done, not_yet, or an error as of `wait`.
  [[nodiscard]] status try_test() noexcept { return detail::test(*view_); }

  // ---- passive target epochs ----------------------------------------------------------------------------------

  /// Locks the target's part; the epoch ends with the returned scope. The lock is held when lock returns, under every
  /// lock_protocol, unless the program asks for less: `deferrable` acquires it later, `no_check` never.
  /// Errors     wrong_epoch if this rank holds the lock already or another kind of epoch is open (a fence epoch without
  ///            pending operations ends here); bad_rank; bad_argument for an invalid lock_kind; peer_failed
  /// Cost       uncontended on a node: one locked instruction each for lock and unlock (perf/sync.cpp); in the network
  ///            one atomic each, of which the second follows the puts without waiting for them. A small deferrable
  ///            epoch: one message to the target's lock manager and its reply
  Epoch lock(lock_kind kind, int target, assertion promises = assertion::none, source where = source::current()) {
    if (!detail::takes_lock(promises) || !detail::fast_lock(*view_, kind, target)) [[unlikely]]
      detail::lock_or_raise(*view_, kind, target, promises, where);
    return Epoch(view_, target);
  }
  /// As `lock` without the scope: `unlock` closes the epoch.
  [[nodiscard]] status lock_nothrow(lock_kind kind, int target, assertion promises = assertion::none) noexcept {
    return detail::lock(*view_, kind, target, promises);
  }
  /// Completes all operations issued to the target, at origin and target, and releases the lock.
  /// Errors     not_locked; transfer_failed, peer_failed: the lock is released nevertheless
  void unlock(int target, source where = source::current()) {
    if (!detail::fast_unlock(*view_, target)) [[unlikely]]
      detail::unlock_or_raise(*view_, target, where);
  }
  [[nodiscard]] status try_unlock(int target) noexcept { return detail::unlock(*view_, target); }

  /// Opens a shared epoch to every rank. Each target's lock is acquired at its first use, so that an operation may wait
  /// for an exclusive holder, or report peer_failed; lock_scheme::fompi acquires one lock for all targets here, and
  /// no_check acquires none.
  /// Errors     as lock
  Epoch lock_all(assertion promises = assertion::none, source where = source::current()) {
    const status s = lock_all_nothrow(promises);
    detail::require(*view_, detail::call::lock_all, s, -1, 0, 0, where);
    return Epoch(view_, -1);
  }
  [[nodiscard]] status lock_all_nothrow(assertion promises = assertion::none) noexcept {
    return detail::lock_all(*view_, promises);
  }
  void unlock_all(source where = source::current()) {
    const status s = try_unlock_all();
    detail::require(*view_, detail::call::unlock_all, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_unlock_all() noexcept { return detail::unlock_all(*view_); }

  /// Completes, at origin and target, all operations issued to the target in this epoch.
  /// Memory     orders them before every later operation and load
  /// Errors     wrong_epoch unless this rank holds a lock there (lock, lock_all, lock_range); peer_failed,
  ///            transfer_failed
  void flush(int target, source where = source::current()) {
    if (!detail::fast_flush(*view_, target)) [[unlikely]]
      detail::flush_or_raise(*view_, target, where);
  }
  [[nodiscard]] status try_flush(int target) noexcept { return detail::flush(*view_, target); }
  /// Does `flush` for every locked target.
  void flush_all(source where = source::current()) {
    const status s = try_flush_all();
    detail::require(*view_, detail::call::flush_all, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_flush_all() noexcept { return detail::flush_all(*view_); }
  /// Completes at the origin only: buffers may be reused, and results of gets are available. Errors as flush.
  /// Cost       one read less than flush on adapters that acknowledge writes before they are in memory; as flush
  ///            elsewhere, where completion at the origin implies completion at the target
  void flush_local(int target, source where = source::current()) {
    const status s = try_flush_local(target);
    detail::require(*view_, detail::call::flush_local, s, target, 0, 0, where);
  }
  [[nodiscard]] status try_flush_local(int target) noexcept { return detail::flush_local(*view_, target); }
  void flush_local_all(source where = source::current()) {
    const status s = try_flush_local_all();
    detail::require(*view_, detail::call::flush_local_all, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_flush_local_all() noexcept { return detail::flush_local_all(*view_); }
  /// Memory     orders this rank's plain loads and stores of its own part with other ranks' accesses to it
  void sync(source where = source::current()) {
    const status s = try_sync();
    detail::require(*view_, detail::call::sync, s, -1, 0, 0, where);
  }
  [[nodiscard]] status try_sync() noexcept { return detail::sync(*view_); }

 private:
  explicit Window(detail::window_view* view) noexcept : window_facts(view) {}
  static detail::window_plan plan(detail::call kind, T* memory, std::size_t count, source where = {}) noexcept {
    return {kind, memory, count, sizeof(T), alignof(T), where};
  }
  static Window make(const Team& team, const detail::window_plan& what, const Hints& hints) {
    return Window(detail::make_window(team, what, hints));
  }
  static status try_make(const Team& team, const detail::window_plan& what, Window& made, const Hints& hints) noexcept {
    detail::window_view* view = nullptr;
    const status s = detail::try_make_window(team, what, hints, view);
    if (s == status::done) made = Window(view);
    return s;
  }
};

}  // namespace rma

#pragma GCC visibility pop
