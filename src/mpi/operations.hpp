// SPDX-License-Identifier: Apache-2.0
/// \file
/// Puts, gets and updates with MPI's arguments. All take a Request, which is null if the end of an epoch completes
/// them.
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

/// A location in a window.
struct target_range {
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

/// Returns bad_type or bad_size if the arguments describe no buffer.
inline status describe(MPI_Count count, MPI_Datatype type, extent_of_data& made) noexcept {
  if (count < 0) return status::bad_size;
  made.type = current()->types->find(type);
  made.count = static_cast<std::size_t>(count);
  return made.type != nullptr ? status::done : status::bad_type;
}

status put(window& w, const origin_buffer& from, const target_range& to, Request* request) noexcept;
status get(window& w, const result_buffer& to, const target_range& from, Request* request) noexcept;
status accumulate(window& w, const origin_buffer& from, const target_range& to, MPI_Op op, Request* request) noexcept;
status get_accumulate(window& w, const origin_buffer& from, const result_buffer& result, const target_range& to,
                      MPI_Op op, Request* request) noexcept;

}  // namespace rma::mpi
