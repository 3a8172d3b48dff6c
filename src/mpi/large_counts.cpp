// SPDX-License-Identifier: Apache-2.0
/// \file
/// The calls with large counts, which MPI 4 defines and MPICH 4 has: those of the same names without _c, with wider
/// arguments.
#include "mpi/operations.hpp"
#include "mpi/requests.hpp"

#if MPI_VERSION >= 4

using namespace rma::mpi;

int MPI_Put_c(const void* from, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint at, MPI_Count count_there,
              MPI_Datatype type_there, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Put_c(from, count, type, rank, at, count_there, type_there, win);
  return report(*w, "MPI_Put_c", put(*w, {from, count, type}, {rank, at, count_there, type_there}, nullptr), rank);
}

int MPI_Get_c(void* to, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint at, MPI_Count count_there,
              MPI_Datatype type_there, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Get_c(to, count, type, rank, at, count_there, type_there, win);
  return report(*w, "MPI_Get_c", get(*w, {to, count, type}, {rank, at, count_there, type_there}, nullptr), rank);
}

int MPI_Accumulate_c(const void* from, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint at, MPI_Count count_there,
                     MPI_Datatype type_there, MPI_Op op, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Accumulate_c(from, count, type, rank, at, count_there, type_there, op, win);
  return report(*w, "MPI_Accumulate_c",
                accumulate(*w, {from, count, type}, {rank, at, count_there, type_there}, op, nullptr), rank);
}

int MPI_Get_accumulate_c(const void* from, MPI_Count count, MPI_Datatype type, void* result, MPI_Count result_count,
                         MPI_Datatype result_type, int rank, MPI_Aint at, MPI_Count count_there,
                         MPI_Datatype type_there, MPI_Op op, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr)
    return PMPI_Get_accumulate_c(from, count, type, result, result_count, result_type, rank, at, count_there,
                                 type_there, op, win);
  return report(*w, "MPI_Get_accumulate_c",
                get_accumulate(*w, {from, count, type}, {result, result_count, result_type},
                               {rank, at, count_there, type_there}, op, nullptr),
                rank);
}

int MPI_Rput_c(const void* from, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint at, MPI_Count count_there,
               MPI_Datatype type_there, MPI_Win win, MPI_Request* request) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Rput_c(from, count, type, rank, at, count_there, type_there, win, request);
  return begin(*w, "MPI_Rput_c", rank, request, [&](rma::Request& ours) {
    return put(*w, {from, count, type}, {rank, at, count_there, type_there}, &ours);
  });
}

int MPI_Rget_c(void* to, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint at, MPI_Count count_there,
               MPI_Datatype type_there, MPI_Win win, MPI_Request* request) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Rget_c(to, count, type, rank, at, count_there, type_there, win, request);
  return begin(*w, "MPI_Rget_c", rank, request, [&](rma::Request& ours) {
    return get(*w, {to, count, type}, {rank, at, count_there, type_there}, &ours);
  });
}

int MPI_Raccumulate_c(const void* from, MPI_Count count, MPI_Datatype type, int rank, MPI_Aint at,
                      MPI_Count count_there, MPI_Datatype type_there, MPI_Op op, MPI_Win win, MPI_Request* request) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Raccumulate_c(from, count, type, rank, at, count_there, type_there, op, win, request);
  return begin(*w, "MPI_Raccumulate_c", rank, request, [&](rma::Request& ours) {
    return accumulate(*w, {from, count, type}, {rank, at, count_there, type_there}, op, &ours);
  });
}

int MPI_Rget_accumulate_c(const void* from, MPI_Count count, MPI_Datatype type, void* result, MPI_Count result_count,
                          MPI_Datatype result_type, int rank, MPI_Aint at, MPI_Count count_there,
                          MPI_Datatype type_there, MPI_Op op, MPI_Win win, MPI_Request* request) {
  window* const w = find(win);
  if (w == nullptr)
    return PMPI_Rget_accumulate_c(from, count, type, result, result_count, result_type, rank, at, count_there,
                                  type_there, op, win, request);
  return begin(*w, "MPI_Rget_accumulate_c", rank, request, [&](rma::Request& ours) {
    return get_accumulate(*w, {from, count, type}, {result, result_count, result_type},
                          {rank, at, count_there, type_there}, op, &ours);
  });
}

namespace {

/// True if the unit fits an int; others are left to MPI, since hardly a program has one.
bool fits(MPI_Aint unit, const char* call, MPI_Comm comm) {
  if (unit == static_cast<int>(unit)) return true;
  if (state* const s = current(); s != nullptr)
    leave_to_mpi(*s, call, comm, "its displacement unit does not fit an int");
  return false;
}

}  // namespace

int MPI_Win_create_c(void* base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  if (!fits(disp_unit, "MPI_Win_create_c", comm)) return PMPI_Win_create_c(base, size, disp_unit, info, comm, win);
  return MPI_Win_create(base, size, static_cast<int>(disp_unit), info, comm, win);
}

int MPI_Win_allocate_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win) {
  if (!fits(disp_unit, "MPI_Win_allocate_c", comm))
    return PMPI_Win_allocate_c(size, disp_unit, info, comm, baseptr, win);
  return MPI_Win_allocate(size, static_cast<int>(disp_unit), info, comm, baseptr, win);
}

int MPI_Win_allocate_shared_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                              MPI_Win* win) {
  if (!fits(disp_unit, "MPI_Win_allocate_shared_c", comm))
    return PMPI_Win_allocate_shared_c(size, disp_unit, info, comm, baseptr, win);
  return MPI_Win_allocate_shared(size, static_cast<int>(disp_unit), info, comm, baseptr, win);
}

int MPI_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* disp_unit, void* baseptr) {
  if (find(win) == nullptr) return PMPI_Win_shared_query_c(win, rank, size, disp_unit, baseptr);
  int unit = 0;
  const int code = MPI_Win_shared_query(win, rank, size, &unit, baseptr);
  if (code == MPI_SUCCESS) *disp_unit = unit;
  return code;
}

#endif
