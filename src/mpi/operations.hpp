// SPDX-License-Identifier: Apache-2.0
/// \file
/// Puts, gets and updates with MPI's arguments. All with a Request: null where the program waits by its epoch.
#pragma once

#include "mpi/types.hpp"

namespace rma::mpi {

/// A buffer of the program.
template <class Pointer>
struct buffer_of {
  Pointer address;
  MPI_Count count;
  MPI_Datatype type;
};
using origin_buffer = buffer_of<const void*>;
using result_buffer = buffer_of<void*>;

/// A place in a window.
struct place {
  int target;
  MPI_Aint displacement;
  MPI_Count count;
  MPI_Datatype type;
};

/// A buffer or a place with its type decoded.
struct extent_of_data {
  const datatype* type = nullptr;
  std::size_t count = 0;
  [[nodiscard]] std::size_t bytes() const noexcept { return count * type->bytes; }
};

/// bad_type or bad_size if that is no buffer.
inline status describe(MPI_Count count, MPI_Datatype type, extent_of_data& made) noexcept {
  if (count < 0) return status::bad_size;
  made.type = current()->types->find(type);
  made.count = static_cast<std::size_t>(count);
  return made.type != nullptr ? status::done : status::bad_type;
}

status put(window& w, const origin_buffer& from, const place& to, Request* request) noexcept;
status get(window& w, const result_buffer& to, const place& from, Request* request) noexcept;
status accumulate(window& w, const origin_buffer& from, const place& to, MPI_Op op, Request* request) noexcept;
status get_accumulate(window& w, const origin_buffer& from, const result_buffer& result, const place& to, MPI_Op op,
                      Request* request) noexcept;

/// An update that the library has no operator or element type for: under a lock of the target's part, by what MPI
/// makes of two values (MPI_Reduce_local). Over when it returns, here and there. `result` may be null.
status update_by_mpi(window& w, const origin_buffer& from, const result_buffer* result, const place& to,
                     const extent_of_data& there, MPI_Op op) noexcept;

}  // namespace rma::mpi
