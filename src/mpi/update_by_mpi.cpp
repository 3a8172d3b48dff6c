// SPDX-License-Identifier: Apache-2.0
/// \file
/// Updates of pairs, long double and the like: read the elements, let MPI combine them, write them back, under a lock.
#include <cstring>
#include <limits>

#include "mpi/lock_board.hpp"
#include "mpi/operations.hpp"

namespace rma::mpi {
namespace {

using byte_list = std::vector<std::byte>;

/// Convert data without holes to elements in MPI's form, and back.
void spread(const basic_type& type, const byte_list& data, byte_list& elements) {
  if (!type.is_pair()) {
    elements = data;
    return;
  }
  const std::size_t first = type.bytes - sizeof(int);
  elements.resize(data.size() / type.bytes * type.extent);
  const std::byte* from = data.data();
  for (std::size_t at = 0; at < elements.size(); at += type.extent, from += type.bytes) {
    std::memcpy(&elements[at], from, first);
    std::memcpy(&elements[at + type.second_at], from + first, sizeof(int));
  }
}
void gather(const basic_type& type, const byte_list& elements, byte_list& data) {
  if (!type.is_pair()) {
    data = elements;
    return;
  }
  const std::size_t first = type.bytes - sizeof(int);
  data.resize(elements.size() / type.extent * type.bytes);
  std::byte* to = data.data();
  for (std::size_t at = 0; at < elements.size(); at += type.extent, to += type.bytes) {
    std::memcpy(to, &elements[at], first);
    std::memcpy(to + first, &elements[at + type.second_at], sizeof(int));
  }
}

/// new = operand op old, without holes.
void combine(const basic_type& type, MPI_Op op, const byte_list& operand, byte_list& data) {
  if (op == MPI_REPLACE) {
    data = operand;
    return;
  }
  byte_list in;
  byte_list inout;
  spread(type, operand, in);
  spread(type, data, inout);
  PMPI_Reduce_local(in.data(), inout.data(), static_cast<int>(data.size() / type.bytes), type.handle, op);
  gather(type, inout, data);
}

/// Reads the target's elements, or exchanges them: this is an element-wise update of bytes, so that its result shows
/// that it is complete at the target.
status exchange(window& w, operation op, const byte_list& from, byte_list& result, const place& to,
                const extent_of_data& there) {
  const Layout here = Layout::contiguous<std::byte>(result.size());
  const Layout target_layout = layout_of(*there.type, there.count);
  const auto [in, target, at] = w.find(to.target, to.displacement);
  Request request;
  const status s = in.rget_accumulate_as(element::u8, op, from.data(), here, result.data(), here, target, at,
                                         target_layout, request);
  return ok(s) ? request.wait_nothrow() : s;
}

status update_locked(window& w, const byte_list& operand, byte_list& old, const place& to, const extent_of_data& there,
                     MPI_Op op) {
  if (const status s = exchange(w, operation::no_op, {}, old, to, there); !ok(s) || op == MPI_NO_OP) return s;
  byte_list changed = old;
  combine(*there.type->basic, op, operand, changed);
  byte_list unused(old.size());
  return exchange(w, operation::replace, changed, unused, to, there);
}

status pack(const origin_buffer& from, byte_list& data) {
  int at = 0;
  const int code = PMPI_Pack(from.address, static_cast<int>(from.count), from.type, data.data(),
                             static_cast<int>(data.size()), &at, MPI_COMM_SELF);
  return code == MPI_SUCCESS && at == static_cast<int>(data.size()) ? status::done : status::bad_size;
}

status unpack(const byte_list& data, const result_buffer& result) {
  int at = 0;
  const int code = PMPI_Unpack(data.data(), static_cast<int>(data.size()), &at, result.address,
                               static_cast<int>(result.count), result.type, MPI_COMM_SELF);
  return code == MPI_SUCCESS ? status::done : status::bad_size;
}

}  // namespace

status update_by_mpi(window& w, const origin_buffer& from, const result_buffer* result, const place& to,
                     const extent_of_data& there, MPI_Op op) noexcept {
  if (there.bytes() == 0) return status::done;
  if (to.target < 0 || to.target >= w.size) return status::bad_rank;
  if (there.bytes() > std::numeric_limits<int>::max()) return status::bad_size;  // MPI_Pack counts by an int
  current()->counts.updates_by_mpi.fetch_add(1, std::memory_order_relaxed);
  try {
    byte_list operand(op == MPI_NO_OP ? 0 : there.bytes());
    byte_list old(there.bytes());
    if (const status s = op == MPI_NO_OP ? status::done : pack(from, operand); !ok(s)) return s;
    lock_board& locks = *current()->locks;
    const int in_world = w.memory.team().world_rank(to.target);
    if (const status s = locks.lock(in_world); !ok(s)) return s;
    const status updated = update_locked(w, operand, old, to, there, op);
    const status unlocked = locks.unlock(in_world);
    if (!ok(updated) || !ok(unlocked)) return ok(updated) ? unlocked : updated;
    return result != nullptr ? unpack(old, *result) : status::done;
  } catch (const std::exception&) {
    return status::out_of_memory;
  }
}

}  // namespace rma::mpi
