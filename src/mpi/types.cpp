// SPDX-License-Identifier: Apache-2.0
#include "mpi/types.hpp"

#include <complex>
#include <cstdint>
#include <limits>
#include <utility>

#include "mpi/type_decoder.hpp"

namespace rma::mpi {

Layout layout_of(const datatype& type, std::size_t count) {
  if (type.dense) return Layout::contiguous<std::byte>(count * type.bytes);
  return count == 1 ? type.one : Layout::contiguous(count, type.one);
}

Layout elements_of(const datatype& type, std::size_t count) {
  if (type.basic == nullptr || !type.basic->has_gaps) return layout_of(type, count);
  return count == 1 ? type.elements : Layout::contiguous(count, type.elements);
}

operator_table::operator_table() noexcept
    : rows_{{{MPI_SUM, operation::sum},
             {MPI_REPLACE, operation::replace},
             {MPI_NO_OP, operation::no_op},
             {MPI_MAX, operation::max},
             {MPI_MIN, operation::min},
             {MPI_PROD, operation::prod},
             {MPI_BAND, operation::band},
             {MPI_BOR, operation::bor},
             {MPI_BXOR, operation::bxor},
             {MPI_LAND, operation::land},
             {MPI_LOR, operation::lor},
             {MPI_LXOR, operation::lxor},
             {MPI_MINLOC, operation::minloc},
             {MPI_MAXLOC, operation::maxloc}}} {}

namespace {

/// The element type of that size: signed or unsigned integers, floating point, complex, logical; none if there is none.
/// Operators on Fortran's logical values are those of C, as in both MPIs.
std::optional<element> element_of_size(char kind, int bytes) noexcept {
  constexpr struct {
    char kind;
    int bytes;
    element as;
  } table[] = {{'i', 1, element::i8},    {'i', 2, element::i16},   {'i', 4, element::i32}, {'i', 8, element::i64},
               {'u', 1, element::u8},    {'u', 2, element::u16},   {'u', 4, element::u32}, {'u', 8, element::u64},
               {'f', 4, element::f32},   {'f', 8, element::f64},   {'c', 8, element::c32}, {'c', 16, element::c64},
               {'f', 16, element::f128}, {'c', 32, element::c128}, {'l', 1, element::i8},  {'l', 2, element::i16},
               {'l', 4, element::i32},   {'l', 8, element::i64}};
  for (const auto& each : table) {
    if (each.kind == kind && each.bytes == bytes) return each.as;
  }
  return std::nullopt;
}

int free_datatype(MPI_Datatype /*type*/, int /*keyval*/, void* kept, void* /*extra*/) {
  delete static_cast<datatype*>(kept);
  return MPI_SUCCESS;
}

}  // namespace

std::unique_ptr<datatype> type_table::make_basic(MPI_Datatype type, std::optional<element> as) {
  int bytes = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_size(type, &bytes);
  PMPI_Type_get_extent(type, &lower, &extent);
  auto basic = std::make_unique<basic_type>();
  *basic = {type, static_cast<std::size_t>(bytes), static_cast<std::size_t>(extent), as, false};
  auto made = std::make_unique<datatype>();
  *made = {type, basic->bytes, extent == bytes, basic.get(), Layout::contiguous<std::byte>(basic->bytes), {}};
  basics_.push_back(std::move(basic));
  return made;
}

void type_table::add(MPI_Datatype type, std::optional<element> as) {
  if (!predefined_.contains(number_of(type))) predefined_.emplace(number_of(type), make_basic(type, as));
}

/// Adds types of Fortran and C's variable types, whose size depends on the compiler.
void type_table::add_by_size(MPI_Datatype type, char kind) {
  if (type == MPI_DATATYPE_NULL) return;
  int bytes = 0;
  PMPI_Type_size(type, &bytes);
  if (bytes > 0) add(type, element_of_size(kind, bytes));
}

const datatype* type_table::find_predefined(MPI_Datatype type) noexcept {
  const auto found = predefined_.find(number_of(type));
  return found == predefined_.end() ? nullptr : found->second.get();
}

const datatype* type_table::find_f90(MPI_Datatype type, int combiner, int digits) {
  const auto found = f90_.find(number_of(type));
  if (found != f90_.end()) return found->second.get();
  const bool is_integer = combiner == MPI_COMBINER_F90_INTEGER;
  const bool is_quadruple = !is_integer && digits > std::numeric_limits<long double>::digits10;
  const char kind = is_integer ? 'i' : is_quadruple ? 'q' : combiner == MPI_COMBINER_F90_REAL ? 'f' : 'c';
  int bytes = 0;
  PMPI_Type_size(type, &bytes);
  return f90_.emplace(number_of(type), make_basic(type, element_of_size(kind, bytes))).first->second.get();
}

const datatype* type_table::find_slow(MPI_Datatype type) noexcept {
  if (type == MPI_DATATYPE_NULL) return nullptr;
  if (const datatype* const known = find_predefined(type); known != nullptr) {
    last_.store(known, std::memory_order_release);
    return known;
  }
  const std::lock_guard guard(mutex_);
  void* kept = nullptr;
  int flag = 0;
  if (PMPI_Type_get_attr(type, keyval_, &kept, &flag) != MPI_SUCCESS) return nullptr;
  if (flag != 0) return static_cast<datatype*>(kept);
  std::unique_ptr<datatype> made = type_decoder(*this).decode(type);
  if (made == nullptr || PMPI_Type_set_attr(type, keyval_, made.get()) != MPI_SUCCESS) return nullptr;
  return made.release();
}

std::string type_table::take_refusal() noexcept {
  const std::lock_guard guard(mutex_);
  return std::exchange(refusal_, {});
}

type_table::type_table() {
  PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, free_datatype, &keyval_, nullptr);
  for (const MPI_Datatype type : {MPI_CHAR, MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_WCHAR,
                                  MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_COUNT, MPI_OFFSET})
    add_by_size(type, 'i');
  for (const MPI_Datatype type :
       {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_BYTE,
        MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_C_BOOL, MPI_CXX_BOOL, MPI_PACKED})
    add_by_size(type, 'u');
  for (const MPI_Datatype type : {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE}) add_by_size(type, 'f');
  for (const MPI_Datatype type : {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX,
                                  MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX, MPI_CXX_LONG_DOUBLE_COMPLEX})
    add_by_size(type, 'c');
  add_fortran();
  add_pairs();
}

type_table::~type_table() { PMPI_Type_free_keyval(&keyval_); }

void type_table::add_fortran() {
  for (const MPI_Datatype type : {MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_CHARACTER})
    add_by_size(type, 'i');
  for (const MPI_Datatype type : {MPI_REAL, MPI_DOUBLE_PRECISION, MPI_REAL4, MPI_REAL8}) add_by_size(type, 'f');
  for (const MPI_Datatype type : {MPI_COMPLEX, MPI_DOUBLE_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16}) add_by_size(type, 'c');
  add_by_size(MPI_LOGICAL, 'l');
  for (const MPI_Datatype type : {MPI_REAL16, MPI_COMPLEX32}) add_by_size(type, 'q');  // no type of C++: not updated
}

void type_table::add_pairs() {
  add_pair(MPI_SHORT_INT, element_of<ValueIndex<short>>);
  add_pair(MPI_2INT, element_of<ValueIndex<int>>);
  add_pair(MPI_LONG_INT, element_of<ValueIndex<long>>);
  add_pair(MPI_FLOAT_INT, element_of<ValueIndex<float>>);
  add_pair(MPI_DOUBLE_INT, element_of<ValueIndex<double>>);
  add_pair(MPI_LONG_DOUBLE_INT, element_of<ValueIndex<long double>>);
  add_pair(MPI_2REAL, element::f32_f32);
  add_pair(MPI_2DOUBLE_PRECISION, element::f64_f64);
  if (MPI_2INTEGER == MPI_DATATYPE_NULL) return;
  int bytes = 0;
  PMPI_Type_size(MPI_2INTEGER, &bytes);
  add_pair(MPI_2INTEGER, bytes == 8 ? element::i32_i32 : element::i64_i64);
}

/// The data of a pair with gaps end with its int.
void type_table::add_pair(MPI_Datatype type, element as) {
  if (type == MPI_DATATYPE_NULL) return;
  std::unique_ptr<datatype> pair = make_basic(type, as);
  basic_type& basic = *basics_.back();
  if (basic.extent != bytes_of(as)) {
    basic.as.reset();  // the compiler of that MPI lays it out in another way
  } else if (basic.bytes != basic.extent) {
    MPI_Aint lower = 0;
    MPI_Aint extent = 0;
    PMPI_Type_get_true_extent(type, &lower, &extent);
    const Layout first = Layout::contiguous<std::byte>(basic.bytes - sizeof(int));
    const Layout both = Layout::structure({{first, 0}, {Layout::contiguous<int>(1), extent - MPI_Aint{sizeof(int)}}});
    basic.has_gaps = true;
    pair->one = Layout::resized(both, 0, basic.extent);
    pair->elements = Layout::contiguous<std::byte>(basic.extent);
  }
  predefined_.emplace(number_of(type), std::move(pair));
}

}  // namespace rma::mpi
