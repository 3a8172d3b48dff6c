// SPDX-License-Identifier: Apache-2.0
#include "mpi/type_decoder.hpp"

#include <algorithm>
#include <span>

namespace rma::mpi {

/// The contents of a type. The types among them are freed with it, unless they are predefined.
struct type_contents {
  explicit type_contents(MPI_Datatype type) {
    int integers = 0;
    int addresses = 0;
    int types = 0;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED) return;
    i.resize(static_cast<std::size_t>(integers));
    a.resize(static_cast<std::size_t>(addresses));
    t.resize(static_cast<std::size_t>(types));
    PMPI_Type_get_contents(type, integers, addresses, types, i.data(), a.data(), t.data());
  }
  ~type_contents() {
    for (MPI_Datatype& each : t) {
      int integers = 0;
      int addresses = 0;
      int types = 0;
      int kind = MPI_COMBINER_NAMED;
      PMPI_Type_get_envelope(each, &integers, &addresses, &types, &kind);
      if (kind != MPI_COMBINER_NAMED && !is_f90(kind)) PMPI_Type_free(&each);
    }
  }
  type_contents(const type_contents&) = delete;
  type_contents& operator=(const type_contents&) = delete;

  static bool is_f90(int kind) noexcept {
    return kind == MPI_COMBINER_F90_REAL || kind == MPI_COMBINER_F90_COMPLEX || kind == MPI_COMBINER_F90_INTEGER;
  }
  /// `count` integers, from number `first` on.
  [[nodiscard]] std::span<const int> integers(std::size_t first, std::size_t count) const {
    return std::span<const int>(i).subspan(first, count);
  }

  int combiner = MPI_COMBINER_NAMED;
  std::vector<int> i;
  std::vector<MPI_Aint> a;
  std::vector<MPI_Datatype> t;
};

namespace {

std::size_t count_of(int number) { return static_cast<std::size_t>(number); }

template <class To>
std::vector<To> converted(std::span<const int> from) {
  std::vector<To> to(from.size());
  std::transform(from.begin(), from.end(), to.begin(), [](int each) { return static_cast<To>(each); });
  return to;
}

/// `count` blocks of `length`, `stride` bytes apart.
Layout hvector(std::size_t count, std::size_t length, MPI_Aint stride, const Layout& inner) {
  const Layout block = Layout::contiguous(length, inner);
  if (stride >= 0) return Layout::contiguous(count, Layout::resized(block, 0, static_cast<std::size_t>(stride)));
  std::vector<Layout::Part> parts(count);
  for (std::size_t k = 0; k < count; ++k) parts[k] = {block, static_cast<std::ptrdiff_t>(k) * stride, 1};
  return Layout::structure(parts);
}

/// Blocks at byte offsets; `lengths` has one for all, or one for each.
Layout hindexed(std::span<const int> lengths, std::span<const MPI_Aint> offsets, const Layout& inner) {
  std::vector<Layout::Part> parts(offsets.size());
  for (std::size_t k = 0; k < offsets.size(); ++k)
    parts[k] = {inner, offsets[k], count_of(lengths[lengths.size() == 1 ? 0 : k])};
  return Layout::structure(parts);
}

Layout indexed(std::span<const int> lengths, std::span<const int> offsets, const Layout& inner) {
  return Layout::indexed(converted<std::size_t>(lengths), converted<std::ptrdiff_t>(offsets), inner);
}

Layout subarray(const type_contents& of, const Layout& inner) {
  const std::size_t dimensions = count_of(of.i[0]);
  auto sizes = converted<std::size_t>(of.integers(1, dimensions));
  auto subsizes = converted<std::size_t>(of.integers(1 + dimensions, dimensions));
  auto starts = converted<std::size_t>(of.integers(1 + 2 * dimensions, dimensions));
  if (of.i[1 + 3 * dimensions] == MPI_ORDER_FORTRAN) {
    std::reverse(sizes.begin(), sizes.end());
    std::reverse(subsizes.begin(), subsizes.end());
    std::reverse(starts.begin(), starts.end());
  }
  return Layout::subarray(sizes, subsizes, starts, inner);
}

/// The indices of one dimension that belong to a process.
std::vector<std::ptrdiff_t> indices_of(int global, int distribution, int argument, int processes, int coordinate) {
  int block = argument;
  if (distribution == MPI_DISTRIBUTE_NONE) {
    block = global;
  } else if (argument == MPI_DISTRIBUTE_DFLT_DARG) {
    block = distribution == MPI_DISTRIBUTE_CYCLIC ? 1 : (global + processes - 1) / processes;
  }
  std::vector<std::ptrdiff_t> mine;
  for (int index = 0; index < global; ++index) {
    if (distribution == MPI_DISTRIBUTE_NONE || index / block % processes == coordinate) mine.push_back(index);
  }
  return mine;
}

/// A process's part of a distributed array. Ranks are in row-major order of the grid, whatever the array's order is.
Layout darray(const type_contents& of, Layout inner) {
  int rank = of.i[1];
  const std::size_t dimensions = count_of(of.i[2]);
  const auto field = [&](std::size_t which, std::size_t k) { return of.i[3 + which * dimensions + k]; };
  std::vector<int> coordinates(dimensions);
  for (std::size_t k = dimensions; k-- > 0;) {
    coordinates[k] = rank % field(3, k);
    rank /= field(3, k);
  }
  const bool fortran = of.i[3 + 4 * dimensions] == MPI_ORDER_FORTRAN;
  for (std::size_t step = 0; step < dimensions; ++step) {
    const std::size_t k = fortran ? step : dimensions - 1 - step;
    const std::size_t extent = inner.extent();
    const auto mine = indices_of(field(0, k), field(1, k), field(2, k), field(3, k), coordinates[k]);
    inner = Layout::resized(Layout::indexed(1, mine, inner), 0, extent * count_of(field(0, k)));
  }
  return inner;
}

}  // namespace

Layout type_decoder::made_of(const datatype* known) {
  if (known == nullptr) throw Error(status::bad_type, "a predefined type of no kind that is known");
  if (basic != nullptr && basic != known->basic) mixed = true;
  basic = known->basic;
  return whole_elements && basic->has_gaps ? known->elements : known->one;
}

Layout type_decoder::combine(const type_contents& of) {
  const std::size_t count = of.i.empty() ? 0 : count_of(of.i[0]);
  if (of.combiner == MPI_COMBINER_STRUCT) {
    std::vector<Layout::Part> parts(count);
    for (std::size_t k = 0; k < count; ++k) {
      if (of.i[k + 1] != 0) parts[k] = {layout(of.t[k]), of.a[k], count_of(of.i[k + 1])};
    }
    return Layout::structure(parts);
  }
  const Layout inner = layout(of.t[0]);
  switch (of.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: return inner;
    case MPI_COMBINER_CONTIGUOUS: return Layout::contiguous(count, inner);
    case MPI_COMBINER_VECTOR: return Layout::vector(count, count_of(of.i[1]), of.i[2], inner);
    case MPI_COMBINER_HVECTOR: return hvector(count, count_of(of.i[1]), of.a[0], inner);
    case MPI_COMBINER_INDEXED: return indexed(of.integers(1, count), of.integers(1 + count, count), inner);
    case MPI_COMBINER_HINDEXED: return hindexed(of.integers(1, count), of.a, inner);
    case MPI_COMBINER_INDEXED_BLOCK:
      return Layout::indexed(count_of(of.i[1]), converted<std::ptrdiff_t>(of.integers(2, count)), inner);
    case MPI_COMBINER_HINDEXED_BLOCK: return hindexed(of.integers(1, 1), of.a, inner);
    case MPI_COMBINER_SUBARRAY: return subarray(of, inner);
    case MPI_COMBINER_DARRAY: return darray(of, inner);
    default: throw Error(status::bad_type, "a combiner that is not known");
  }
}

/// The extent is the one that MPI reports for each type, so that its rules for bounds need not be known here.
Layout type_decoder::layout(MPI_Datatype type) {
  const type_contents of(type);
  if (of.combiner == MPI_COMBINER_NAMED) return made_of(types.find_predefined(type));
  if (type_contents::is_f90(of.combiner)) return made_of(types.find_f90(type, of.combiner, of.i.empty() ? 0 : of.i[0]));
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type, &lower, &extent);
  if (extent < 0) throw Error(status::bad_size, "a negative extent");
  return Layout::resized(combine(of), lower, static_cast<std::size_t>(extent));
}

std::unique_ptr<datatype> type_decoder::decode(MPI_Datatype type) noexcept {
  try {
    auto made = std::make_unique<datatype>();
    made->handle = type;
    made->one = layout(type);
    made->bytes = made->one.bytes();
    made->dense =
        made->bytes == 0 || (made->one.is_contiguous() && made->one.lower() == 0 && made->one.extent() == made->bytes);
    made->basic = mixed ? nullptr : basic;
    whole_elements = made->basic != nullptr && made->basic->has_gaps;
    if (whole_elements) made->elements = layout(type);
    return made;
  } catch (const std::exception& e) {
    types.refusal_ = e.what();
    return nullptr;
  }
}

}  // namespace rma::mpi
