// SPDX-License-Identifier: Apache-2.0
#include "mpi/operations.hpp"

namespace rma::mpi {
namespace {

/// Layouts need allocations, which may fail.
template <class Issue>
status guarded(Issue&& issue) noexcept {
  try {
    return issue();
  } catch (const Error& e) {
    return e.code();
  } catch (const std::exception&) {
    return status::out_of_memory;
  }
}

status put_layouts(window& w, const origin_buffer& from, const extent_of_data& here, const target_range& to,
                   const extent_of_data& there, Request* request) noexcept {
  return guarded([&] {
    const auto* const data = static_cast<const std::byte*>(from.address);
    const Layout from_layout = layout_of(*here.type, here.count);
    const Layout to_layout = layout_of(*there.type, there.count);
    const std::uint64_t at = w.offset(to.target, to.displacement);
    if (request != nullptr) return w.memory.try_rput(data, from_layout, to.target, at, to_layout, *request);
    return w.memory.try_put(data, from_layout, to.target, at, to_layout);
  });
}

status get_layouts(window& w, const result_buffer& to, const extent_of_data& here, const target_range& from,
                   const extent_of_data& there, Request* request) noexcept {
  return guarded([&] {
    auto* const data = static_cast<std::byte*>(to.address);
    const Layout to_layout = layout_of(*here.type, here.count);
    const Layout from_layout = layout_of(*there.type, there.count);
    const std::uint64_t at = w.offset(from.target, from.displacement);
    if (request != nullptr) return w.memory.try_rget(data, to_layout, from.target, at, from_layout, *request);
    return w.memory.try_get(data, to_layout, from.target, at, from_layout);
  });
}

/// The operator and element type of an update.
struct native_update {
  element type = element::u8;
  operation op = operation::no_op;
};

/// Returns bad_type if MPI does not allow it: data of different types, an invalid operator. Without data any update
/// does.
inline status choose(const extent_of_data& there, MPI_Op op, native_update& made) noexcept {
  if (there.type->basic == nullptr) return there.bytes() == 0 ? status::done : status::bad_type;
  const std::optional<operation> ours = current()->types->operators.find(op);
  const std::optional<element> as = there.type->basic->as;
  if (!ours || !as || !defined_for(*ours, *as)) return status::bad_type;
  made = {*as, *ours};
  return status::done;
}

/// The layout of the elements that an update combines.
Layout elements_of(const extent_of_data& data) { return elements_of(*data.type, data.count); }

}  // namespace

status put(window& w, const origin_buffer& from, const target_range& to, Request* request) noexcept {
  if (to.target == MPI_PROC_NULL) return status::done;
  extent_of_data here;
  extent_of_data there;
  if (const status s = describe(from.count, from.type, here); !ok(s)) return s;
  if (const status s = describe(to.count, to.type, there); !ok(s)) return s;
  if (!here.type->dense || !there.type->dense) return put_layouts(w, from, here, to, there, request);
  const std::size_t bytes = here.bytes();
  if (bytes != there.bytes()) return status::bad_size;
  const std::span<const std::byte> data(static_cast<const std::byte*>(from.address), bytes);
  const std::uint64_t at = w.offset(to.target, to.displacement);
  return request != nullptr ? w.memory.try_rput(data, to.target, at, *request) : w.memory.try_put(data, to.target, at);
}

status get(window& w, const result_buffer& to, const target_range& from, Request* request) noexcept {
  if (from.target == MPI_PROC_NULL) return status::done;
  extent_of_data here;
  extent_of_data there;
  if (const status s = describe(to.count, to.type, here); !ok(s)) return s;
  if (const status s = describe(from.count, from.type, there); !ok(s)) return s;
  if (!here.type->dense || !there.type->dense) return get_layouts(w, to, here, from, there, request);
  const std::size_t bytes = here.bytes();
  if (bytes != there.bytes()) return status::bad_size;
  const std::span<std::byte> room(static_cast<std::byte*>(to.address), bytes);
  const std::uint64_t at = w.offset(from.target, from.displacement);
  return request != nullptr ? w.memory.try_rget(room, from.target, at, *request)
                            : w.memory.try_get(room, from.target, at);
}

status accumulate(window& w, const origin_buffer& from, const target_range& to, MPI_Op op, Request* request) noexcept {
  if (to.target == MPI_PROC_NULL) return status::done;
  extent_of_data here;
  extent_of_data there;
  if (const status s = describe(from.count, from.type, here); !ok(s)) return s;
  if (const status s = describe(to.count, to.type, there); !ok(s)) return s;
  native_update native;
  if (const status s = choose(there, op, native); !ok(s)) return s;
  return guarded([&] {
    const Layout from_layout = elements_of(here);
    const Layout to_layout = elements_of(there);
    const std::uint64_t at = w.offset(to.target, to.displacement);
    if (request == nullptr)
      return w.memory.accumulate_as(native.type, native.op, from.address, from_layout, to.target, at, to_layout);
    return w.memory.raccumulate_as(native.type, native.op, from.address, from_layout, to.target, at, to_layout,
                                   *request);
  });
}

status get_accumulate(window& w, const origin_buffer& from, const result_buffer& result, const target_range& to,
                      MPI_Op op, Request* request) noexcept {
  if (to.target == MPI_PROC_NULL) return status::done;
  extent_of_data here;
  extent_of_data old;
  extent_of_data there;
  const bool has_operand = op != MPI_NO_OP;  // otherwise the origin's arguments are ignored
  if (const status s = has_operand ? describe(from.count, from.type, here) : status::done; !ok(s)) return s;
  if (const status s = describe(result.count, result.type, old); !ok(s)) return s;
  if (const status s = describe(to.count, to.type, there); !ok(s)) return s;
  native_update native;
  if (const status s = choose(there, op, native); !ok(s)) return s;
  return guarded([&] {
    const Layout from_layout = has_operand ? elements_of(here) : Layout();
    const Layout result_layout = elements_of(old);
    const Layout to_layout = elements_of(there);
    const std::uint64_t at = w.offset(to.target, to.displacement);
    if (request == nullptr) {
      return w.memory.get_accumulate_as(native.type, native.op, from.address, from_layout, result.address,
                                        result_layout, to.target, at, to_layout);
    }
    return w.memory.rget_accumulate_as(native.type, native.op, from.address, from_layout, result.address, result_layout,
                                       to.target, at, to_layout, *request);
  });
}

namespace {

/// True if both sides are contiguous elements of one type, as in most operations; `data` describes them.
bool are_plain(MPI_Count count, MPI_Datatype type, const target_range& there, extent_of_data& data) noexcept {
  return type == there.type && count == there.count && there.target != MPI_PROC_NULL &&
         ok(describe(count, type, data)) && data.type->dense;
}

inline status put_now(window& w, const origin_buffer& from, const target_range& to) noexcept {
  extent_of_data data;
  if (!are_plain(from.count, from.type, to, data)) return put(w, from, to, nullptr);
  const std::uint64_t at = w.offset(to.target, to.displacement);
  return w.memory.try_put(std::span(static_cast<const std::byte*>(from.address), data.bytes()), to.target, at);
}

inline status get_now(window& w, const result_buffer& to, const target_range& from) noexcept {
  extent_of_data data;
  if (!are_plain(to.count, to.type, from, data)) return get(w, to, from, nullptr);
  const std::uint64_t at = w.offset(from.target, from.displacement);
  return w.memory.try_get(std::span(static_cast<std::byte*>(to.address), data.bytes()), from.target, at);
}

inline status accumulate_now(window& w, const origin_buffer& from, const target_range& to, MPI_Op op) noexcept {
  extent_of_data data;
  native_update native;
  if (!are_plain(from.count, from.type, to, data) || !ok(choose(data, op, native)))
    return accumulate(w, from, to, op, nullptr);
  const std::uint64_t at = w.offset(to.target, to.displacement);
  const std::span<const std::byte> values(static_cast<const std::byte*>(from.address), data.bytes());
  return w.memory.accumulate_as(native.type, native.op, values, to.target, at);
}

status fetch_and_op(window& w, const void* value, void* old, MPI_Datatype type, int target, MPI_Aint at,
                    MPI_Op op) noexcept {
  if (target == MPI_PROC_NULL) return status::done;
  extent_of_data one;
  if (const status s = describe(1, type, one); !ok(s)) return s;
  native_update native;
  if (const status s = choose(one, op, native); !ok(s)) return s;
  return w.memory.fetch_and_op_as(native.type, native.op, value, old, target, w.offset(target, at));
}

status compare_and_swap(window& w, const void* desired, const void* expected, void* old, MPI_Datatype type, int target,
                        MPI_Aint at) noexcept {
  if (target == MPI_PROC_NULL) return status::done;
  extent_of_data one;
  if (const status s = describe(1, type, one); !ok(s)) return s;
  if (one.type->basic == nullptr) return status::bad_type;
  const element as = one.type->basic->as.value_or(element::c128);
  if (as > element::u64) return status::bad_type;
  return w.memory.compare_and_swap_as(as, expected, desired, old, target, w.offset(target, at));
}

}  // namespace
}  // namespace rma::mpi

using namespace rma::mpi;

int MPI_Put(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
            MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) [[unlikely]]
    return PMPI_Put(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype,
                    win);
  const rma::status s = put_now(*w, {origin_addr, origin_count, origin_datatype},
                                {target_rank, target_disp, target_count, target_datatype});
  return report(*w, "MPI_Put", s, target_rank);
}

int MPI_Get(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
            int target_count, MPI_Datatype target_datatype, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) [[unlikely]]
    return PMPI_Get(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype,
                    win);
  const rma::status s = get_now(*w, {origin_addr, origin_count, origin_datatype},
                                {target_rank, target_disp, target_count, target_datatype});
  return report(*w, "MPI_Get", s, target_rank);
}

int MPI_Accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                   MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) [[unlikely]]
    return PMPI_Accumulate(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                           target_datatype, op, win);
  const rma::status s = accumulate_now(*w, {origin_addr, origin_count, origin_datatype},
                                       {target_rank, target_disp, target_count, target_datatype}, op);
  return report(*w, "MPI_Accumulate", s, target_rank);
}

int MPI_Get_accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, void* result_addr,
                       int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                       int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) [[unlikely]]
    return PMPI_Get_accumulate(origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype,
                               target_rank, target_disp, target_count, target_datatype, op, win);
  const rma::status s =
      get_accumulate(*w, {origin_addr, origin_count, origin_datatype}, {result_addr, result_count, result_datatype},
                     {target_rank, target_disp, target_count, target_datatype}, op, nullptr);
  return report(*w, "MPI_Get_accumulate", s, target_rank);
}

int MPI_Fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                     MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) [[unlikely]]
    return PMPI_Fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp, op, win);
  return report(*w, "MPI_Fetch_and_op",
                fetch_and_op(*w, origin_addr, result_addr, datatype, target_rank, target_disp, op), target_rank);
}

int MPI_Compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr, MPI_Datatype datatype,
                         int target_rank, MPI_Aint target_disp, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) [[unlikely]]
    return PMPI_Compare_and_swap(origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win);
  return report(*w, "MPI_Compare_and_swap",
                compare_and_swap(*w, origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp),
                target_rank);
}
