// SPDX-License-Identifier: Apache-2.0
/// \file
/// Datatypes and operators of MPI, decoded: a derived type is decoded once, then stored as an attribute of the type.
#pragma once

#include <array>
#include <mutex>

#include "mpi/state.hpp"

namespace rma::mpi {

using mpi_job::number_of;

/// A predefined type, of which others are made.
struct basic_type {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  std::size_t bytes = 0;        ///< bytes of data
  std::size_t extent = 0;       ///< distance from one to the next
  std::optional<element> as{};  ///< the library's element type; none: it is not updated
  bool has_gaps = false;        ///< a pair with bytes that are no data, which its element has as well
};

struct datatype {
  MPI_Datatype handle = MPI_DATATYPE_NULL;
  std::size_t bytes = 0;              ///< bytes of data
  bool dense = false;                 ///< the data of several are contiguous, and begin at the buffer's address
  const basic_type* basic = nullptr;  ///< the type of all its parts; null: of different types
  Layout one;                         ///< layout of one, with its extent
  Layout elements;                    ///< as `one`, with the gaps of pairs; set if `basic` has gaps
};

/// The layout of the data of `count`.
Layout layout_of(const datatype& type, std::size_t count);
/// The layout of the elements of `count`, for updates: whole pairs, gaps included.
Layout elements_of(const datatype& type, std::size_t count);

/// Handles of operators are constants of the MPI, but not of the compiler: they are stored once.
class operator_table {
 public:
  operator_table() noexcept;
  /// Returns the library's operator; none for invalid operators and those of the program.
  [[nodiscard]] std::optional<operation> find(MPI_Op op) const noexcept {
    for (const row& each : rows_) {
      if (each.theirs == op) return each.ours;
    }
    return std::nullopt;
  }

 private:
  struct row {
    MPI_Op theirs;
    operation ours;
  };
  std::array<row, operation_count> rows_;
};

class type_table {
 public:
  operator_table operators;
  type_table();
  ~type_table();
  type_table(const type_table&) = delete;
  type_table& operator=(const type_table&) = delete;

  /// Returns null if it cannot be decoded: its extent is negative, or it is no type.
  const datatype* find(MPI_Datatype type) noexcept {
    const datatype* const last = last_.load(std::memory_order_acquire);
    if (last != nullptr && last->handle == type) [[likely]]
      return last;
    return find_slow(type);
  }

  /// Says what the last type that could not be decoded has, and forgets it; empty if there was none.
  std::string take_refusal() noexcept;

 private:
  friend struct type_decoder;
  const datatype* find_predefined(MPI_Datatype type) noexcept;
  /// Finds types of MPI_Type_create_f90_real and the like, whose handles are not known in advance. `digits`: that many
  /// decimal ones were asked for.
  const datatype* find_f90(MPI_Datatype type, int combiner, int digits);
  const datatype* find_slow(MPI_Datatype type) noexcept;
  std::unique_ptr<datatype> make_basic(MPI_Datatype type, std::optional<element> as);
  void add(MPI_Datatype type, std::optional<element> as);
  void add_by_size(MPI_Datatype type, char kind);
  void add_fortran();
  void add_pairs();
  void add_pair(MPI_Datatype type, element as);

  std::unordered_map<std::uint64_t, std::unique_ptr<datatype>> predefined_;
  std::vector<std::unique_ptr<basic_type>> basics_;
  std::atomic<const datatype*> last_ = nullptr;  ///< a predefined one: its handle is never reused
  std::mutex mutex_;                             ///< guards the decoded types and the refusal
  std::string refusal_;
  std::unordered_map<std::uint64_t, std::unique_ptr<datatype>> f90_;
  int keyval_ = MPI_KEYVAL_INVALID;
};

}  // namespace rma::mpi
