// SPDX-License-Identifier: Apache-2.0
/// \file
/// The calls by their Fortran names. MPICH's Fortran library calls C's functions, and so these wrappers of them; Open
/// MPI's does not. Arguments are addresses, handles are numbers, the last argument receives the result. Requests are
/// complete when they are returned, since Open MPI's MPI_WAIT for Fortran does not call this library.
#include "mpi/requests.hpp"

namespace {

using integer = MPI_Fint*;
using address = MPI_Aint*;

}  // namespace

/// gfortran calls mpi_put_; Open MPI's module mpi_f08 calls ompi_put_f.
#define RMA_MPI_ALIAS(name, of, ...) \
  extern "C" __attribute__((visibility("default"), alias("rma_mpi_" #of))) void name(__VA_ARGS__)
#ifdef OPEN_MPI
#define RMA_MPI_FORTRAN(name, ...)                      \
  extern "C" void rma_mpi_##name(__VA_ARGS__) noexcept; \
  RMA_MPI_ALIAS(mpi_##name##_, name, __VA_ARGS__);      \
  RMA_MPI_ALIAS(ompi_##name##_f, name, __VA_ARGS__);    \
  void rma_mpi_##name(__VA_ARGS__) noexcept
#else
#define RMA_MPI_FORTRAN(name, ...)                      \
  extern "C" void rma_mpi_##name(__VA_ARGS__) noexcept; \
  RMA_MPI_ALIAS(mpi_##name##_, name, __VA_ARGS__);      \
  void rma_mpi_##name(__VA_ARGS__) noexcept
#endif

/// The attributes of a window are values in Fortran. MPICH's predefined keys are those of C plus one.
RMA_MPI_FORTRAN(win_get_attr, integer win, integer keyval, address value, integer flag, integer ierror) {
#ifdef OPEN_MPI
  const int key = *keyval;
#else
  const bool is_predefined = *keyval > MPI_WIN_BASE && *keyval <= MPI_WIN_MODEL + 1;
  const int key = is_predefined ? *keyval - 1 : *keyval;
#endif
  void* found = nullptr;
  int is_there = 0;
  *ierror = MPI_Win_get_attr(MPI_Win_f2c(*win), key, &found, &is_there);
  *flag = is_there;
  if (is_there == 0) return;
  const bool is_int = key == MPI_WIN_DISP_UNIT || key == MPI_WIN_CREATE_FLAVOR || key == MPI_WIN_MODEL;
  if (is_int) {
    *value = *static_cast<int*>(found);
  } else if (key == MPI_WIN_BASE) {
    *value = reinterpret_cast<MPI_Aint>(found);
  } else {
    *value = *static_cast<MPI_Aint*>(found);
  }
}

#ifdef OPEN_MPI

extern "C" [[gnu::weak]] int mpi_fortran_bottom_;

namespace {

/// Fortran's MPI_BOTTOM is a variable; a program without Fortran has none. That of C is null.
void* buffer(void* given) noexcept { return given == &mpi_fortran_bottom_ ? MPI_BOTTOM : given; }

void complete_requests() noexcept {
  while (rma::mpi::current() != nullptr && rma::mpi::current()->requests->advance()) {}
}

}  // namespace

RMA_MPI_FORTRAN(init, integer ierror) { *ierror = MPI_Init(nullptr, nullptr); }
RMA_MPI_FORTRAN(init_thread, integer required, integer provided, integer ierror) {
  *ierror = MPI_Init_thread(nullptr, nullptr, *required, provided);
}
RMA_MPI_FORTRAN(finalize, integer ierror) { *ierror = MPI_Finalize(); }
RMA_MPI_FORTRAN(win_create, void* base, address size, integer unit, integer info, integer comm, integer win,
                integer ierror) {
  MPI_Win made = MPI_WIN_NULL;
  *ierror = MPI_Win_create(buffer(base), *size, *unit, MPI_Info_f2c(*info), MPI_Comm_f2c(*comm), &made);
  *win = MPI_Win_c2f(made);
}
RMA_MPI_FORTRAN(win_allocate, address size, integer unit, integer info, integer comm, void* base, integer win,
                integer ierror) {
  MPI_Win made = MPI_WIN_NULL;
  *ierror = MPI_Win_allocate(*size, *unit, MPI_Info_f2c(*info), MPI_Comm_f2c(*comm), base, &made);
  *win = MPI_Win_c2f(made);
}
RMA_MPI_FORTRAN(win_allocate_cptr, address size, integer unit, integer info, integer comm, void* base, integer win,
                integer ierror) {
  MPI_Win made = MPI_WIN_NULL;
  *ierror = MPI_Win_allocate(*size, *unit, MPI_Info_f2c(*info), MPI_Comm_f2c(*comm), base, &made);
  *win = MPI_Win_c2f(made);
}
RMA_MPI_FORTRAN(win_allocate_shared, address size, integer unit, integer info, integer comm, void* base, integer win,
                integer ierror) {
  MPI_Win made = MPI_WIN_NULL;
  *ierror = MPI_Win_allocate_shared(*size, *unit, MPI_Info_f2c(*info), MPI_Comm_f2c(*comm), base, &made);
  *win = MPI_Win_c2f(made);
}
RMA_MPI_FORTRAN(win_allocate_shared_cptr, address size, integer unit, integer info, integer comm, void* base,
                integer win, integer ierror) {
  MPI_Win made = MPI_WIN_NULL;
  *ierror = MPI_Win_allocate_shared(*size, *unit, MPI_Info_f2c(*info), MPI_Comm_f2c(*comm), base, &made);
  *win = MPI_Win_c2f(made);
}
RMA_MPI_FORTRAN(win_create_dynamic, integer info, integer comm, integer win, integer ierror) {
  MPI_Win made = MPI_WIN_NULL;
  *ierror = MPI_Win_create_dynamic(MPI_Info_f2c(*info), MPI_Comm_f2c(*comm), &made);
  *win = MPI_Win_c2f(made);
}
RMA_MPI_FORTRAN(win_free, integer win, integer ierror) {
  MPI_Win freed = MPI_Win_f2c(*win);
  *ierror = MPI_Win_free(&freed);
  *win = MPI_Win_c2f(freed);
}
RMA_MPI_FORTRAN(win_attach, integer win, void* base, address size, integer ierror) {
  *ierror = MPI_Win_attach(MPI_Win_f2c(*win), base, *size);
}
RMA_MPI_FORTRAN(win_detach, integer win, void* base, integer ierror) {
  *ierror = MPI_Win_detach(MPI_Win_f2c(*win), base);
}
RMA_MPI_FORTRAN(win_shared_query, integer win, integer rank, address size, integer unit, void* base, integer ierror) {
  *ierror = MPI_Win_shared_query(MPI_Win_f2c(*win), *rank, size, unit, base);
}
RMA_MPI_FORTRAN(win_shared_query_cptr, integer win, integer rank, address size, integer unit, void* base,
                integer ierror) {
  *ierror = MPI_Win_shared_query(MPI_Win_f2c(*win), *rank, size, unit, base);
}
RMA_MPI_FORTRAN(win_fence, integer assert, integer win, integer ierror) {
  *ierror = MPI_Win_fence(*assert, MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(win_lock, integer kind, integer rank, integer assert, integer win, integer ierror) {
  *ierror = MPI_Win_lock(*kind, *rank, *assert, MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(win_lock_all, integer assert, integer win, integer ierror) {
  *ierror = MPI_Win_lock_all(*assert, MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(win_unlock, integer rank, integer win, integer ierror) {
  *ierror = MPI_Win_unlock(*rank, MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(win_flush, integer rank, integer win, integer ierror) {
  *ierror = MPI_Win_flush(*rank, MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(win_flush_local, integer rank, integer win, integer ierror) {
  *ierror = MPI_Win_flush_local(*rank, MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(win_unlock_all, integer win, integer ierror) { *ierror = MPI_Win_unlock_all(MPI_Win_f2c(*win)); }
RMA_MPI_FORTRAN(win_flush_all, integer win, integer ierror) { *ierror = MPI_Win_flush_all(MPI_Win_f2c(*win)); }
RMA_MPI_FORTRAN(win_flush_local_all, integer win, integer ierror) {
  *ierror = MPI_Win_flush_local_all(MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(win_sync, integer win, integer ierror) { *ierror = MPI_Win_sync(MPI_Win_f2c(*win)); }
RMA_MPI_FORTRAN(win_complete, integer win, integer ierror) { *ierror = MPI_Win_complete(MPI_Win_f2c(*win)); }
RMA_MPI_FORTRAN(win_wait, integer win, integer ierror) { *ierror = MPI_Win_wait(MPI_Win_f2c(*win)); }
RMA_MPI_FORTRAN(win_post, integer group, integer assert, integer win, integer ierror) {
  *ierror = MPI_Win_post(MPI_Group_f2c(*group), *assert, MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(win_start, integer group, integer assert, integer win, integer ierror) {
  *ierror = MPI_Win_start(MPI_Group_f2c(*group), *assert, MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(win_test, integer win, integer flag, integer ierror) {
  *ierror = MPI_Win_test(MPI_Win_f2c(*win), flag);
}
RMA_MPI_FORTRAN(put, void* from, integer count, integer type, integer rank, address at, integer count_there,
                integer type_there, integer win, integer ierror) {
  *ierror = MPI_Put(buffer(from), *count, MPI_Type_f2c(*type), *rank, *at, *count_there, MPI_Type_f2c(*type_there),
                    MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(get, void* from, integer count, integer type, integer rank, address at, integer count_there,
                integer type_there, integer win, integer ierror) {
  *ierror = MPI_Get(buffer(from), *count, MPI_Type_f2c(*type), *rank, *at, *count_there, MPI_Type_f2c(*type_there),
                    MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(accumulate, void* from, integer count, integer type, integer rank, address at, integer count_there,
                integer type_there, integer op, integer win, integer ierror) {
  *ierror = MPI_Accumulate(buffer(from), *count, MPI_Type_f2c(*type), *rank, *at, *count_there,
                           MPI_Type_f2c(*type_there), MPI_Op_f2c(*op), MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(get_accumulate, void* from, integer count, integer type, void* result, integer result_count,
                integer result_type, integer rank, address at, integer count_there, integer type_there, integer op,
                integer win, integer ierror) {
  *ierror = MPI_Get_accumulate(buffer(from), *count, MPI_Type_f2c(*type), buffer(result), *result_count,
                               MPI_Type_f2c(*result_type), *rank, *at, *count_there, MPI_Type_f2c(*type_there),
                               MPI_Op_f2c(*op), MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(rput, void* from, integer count, integer type, integer rank, address at, integer count_there,
                integer type_there, integer win, integer request, integer ierror) {
  MPI_Request made = MPI_REQUEST_NULL;
  *ierror = MPI_Rput(buffer(from), *count, MPI_Type_f2c(*type), *rank, *at, *count_there, MPI_Type_f2c(*type_there),
                     MPI_Win_f2c(*win), &made);
  complete_requests();
  *request = MPI_Request_c2f(made);
}
RMA_MPI_FORTRAN(rget, void* from, integer count, integer type, integer rank, address at, integer count_there,
                integer type_there, integer win, integer request, integer ierror) {
  MPI_Request made = MPI_REQUEST_NULL;
  *ierror = MPI_Rget(buffer(from), *count, MPI_Type_f2c(*type), *rank, *at, *count_there, MPI_Type_f2c(*type_there),
                     MPI_Win_f2c(*win), &made);
  complete_requests();
  *request = MPI_Request_c2f(made);
}
RMA_MPI_FORTRAN(raccumulate, void* from, integer count, integer type, integer rank, address at, integer count_there,
                integer type_there, integer op, integer win, integer request, integer ierror) {
  MPI_Request made = MPI_REQUEST_NULL;
  *ierror = MPI_Raccumulate(buffer(from), *count, MPI_Type_f2c(*type), *rank, *at, *count_there,
                            MPI_Type_f2c(*type_there), MPI_Op_f2c(*op), MPI_Win_f2c(*win), &made);
  complete_requests();
  *request = MPI_Request_c2f(made);
}
RMA_MPI_FORTRAN(rget_accumulate, void* from, integer count, integer type, void* result, integer result_count,
                integer result_type, integer rank, address at, integer count_there, integer type_there, integer op,
                integer win, integer request, integer ierror) {
  MPI_Request made = MPI_REQUEST_NULL;
  *ierror = MPI_Rget_accumulate(buffer(from), *count, MPI_Type_f2c(*type), buffer(result), *result_count,
                                MPI_Type_f2c(*result_type), *rank, *at, *count_there, MPI_Type_f2c(*type_there),
                                MPI_Op_f2c(*op), MPI_Win_f2c(*win), &made);
  complete_requests();
  *request = MPI_Request_c2f(made);
}
RMA_MPI_FORTRAN(fetch_and_op, void* from, void* result, integer type, integer rank, address at, integer op, integer win,
                integer ierror) {
  *ierror = MPI_Fetch_and_op(buffer(from), buffer(result), MPI_Type_f2c(*type), *rank, *at, MPI_Op_f2c(*op),
                             MPI_Win_f2c(*win));
}
RMA_MPI_FORTRAN(compare_and_swap, void* from, void* compare, void* result, integer type, integer rank, address at,
                integer win, integer ierror) {
  *ierror = MPI_Compare_and_swap(buffer(from), buffer(compare), buffer(result), MPI_Type_f2c(*type), *rank, *at,
                                 MPI_Win_f2c(*win));
}

#endif
