// SPDX-License-Identifier: Apache-2.0
/// \file
/// Decodes the layouts of derived types, by MPI_Type_get_envelope and MPI_Type_get_contents.
#pragma once

#include "mpi/types.hpp"

namespace rma::mpi {

struct type_contents;

struct type_decoder {
  explicit type_decoder(type_table& table) noexcept : types(table) {}

  /// Returns null if the library has no layout for it.
  std::unique_ptr<datatype> decode(MPI_Datatype type) noexcept;

 private:
  Layout layout(MPI_Datatype type);
  Layout combine(const type_contents& of);
  Layout made_of(const datatype* known);

  type_table& types;
  const basic_type* basic = nullptr;
  bool mixed = false;
  bool whole_elements = false;  ///< pairs have their gaps
};

}  // namespace rma::mpi
