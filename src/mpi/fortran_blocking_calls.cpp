// SPDX-License-Identifier: Apache-2.0
/// \file
/// Blocking calls by their Fortran names, as blocking_calls.cpp has those of C. Open MPI's Fortran library does not
/// call C's functions by the names that this library takes over; MPICH's does.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "mpi/progress_hook.hpp"
#include "mpi/state.hpp"

#ifdef OPEN_MPI

using rma::mpi::blocking_call;

namespace {

using any = void*;

/// The MPI's own call. Its Fortran library need not be visible to this one: a program may have loaded it for itself.
template <class Call>
Call* own_call(const char* name) noexcept {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) {
    void* const library = dlopen("libmpi_mpifh.so.40", RTLD_LAZY);
    found = library != nullptr ? dlsym(library, name) : nullptr;
  }
  if (found == nullptr) {
    std::fprintf(stderr, "librma_mpi: Open MPI's Fortran library has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Call*>(found);
}

}  // namespace

/// mpi_<call>_ of gfortran, and ompi_<call>_f of the module mpi_f08.
#define RMA_MPI_BLOCKING(call, parameters, arguments)                               \
  extern "C" __attribute__((visibility("default"))) void mpi_##call##_ parameters { \
    static auto* const own = own_call<void parameters>("pmpi_" #call "_");          \
    const blocking_call scope;                                                      \
    own arguments;                                                                  \
  }                                                                                 \
  extern "C" __attribute__((visibility("default"), alias("mpi_" #call "_"))) void ompi_##call##_f parameters;

RMA_MPI_BLOCKING(send, (any buf, any count, any type, any dest, any tag, any comm, any error),
                 (buf, count, type, dest, tag, comm, error))
RMA_MPI_BLOCKING(ssend, (any buf, any count, any type, any dest, any tag, any comm, any error),
                 (buf, count, type, dest, tag, comm, error))
RMA_MPI_BLOCKING(recv, (any buf, any count, any type, any source, any tag, any comm, any status, any error),
                 (buf, count, type, source, tag, comm, status, error))
RMA_MPI_BLOCKING(sendrecv,
                 (any out, any out_count, any out_type, any dest, any out_tag, any in, any in_count, any in_type,
                  any source, any in_tag, any comm, any status, any error),
                 (out, out_count, out_type, dest, out_tag, in, in_count, in_type, source, in_tag, comm, status, error))
RMA_MPI_BLOCKING(probe, (any source, any tag, any comm, any status, any error), (source, tag, comm, status, error))
RMA_MPI_BLOCKING(mprobe, (any source, any tag, any comm, any message, any status, any error),
                 (source, tag, comm, message, status, error))
RMA_MPI_BLOCKING(mrecv, (any buf, any count, any type, any message, any status, any error),
                 (buf, count, type, message, status, error))
RMA_MPI_BLOCKING(wait, (any request, any status, any error), (request, status, error))
RMA_MPI_BLOCKING(waitall, (any count, any requests, any statuses, any error), (count, requests, statuses, error))
RMA_MPI_BLOCKING(waitany, (any count, any requests, any index, any status, any error),
                 (count, requests, index, status, error))
RMA_MPI_BLOCKING(barrier, (any comm, any error), (comm, error))
RMA_MPI_BLOCKING(bcast, (any buf, any count, any type, any root, any comm, any error),
                 (buf, count, type, root, comm, error))
RMA_MPI_BLOCKING(reduce, (any in, any out, any count, any type, any op, any root, any comm, any error),
                 (in, out, count, type, op, root, comm, error))
RMA_MPI_BLOCKING(allreduce, (any in, any out, any count, any type, any op, any comm, any error),
                 (in, out, count, type, op, comm, error))
RMA_MPI_BLOCKING(gather,
                 (any in, any in_count, any in_type, any out, any out_count, any out_type, any root, any comm,
                  any error),
                 (in, in_count, in_type, out, out_count, out_type, root, comm, error))
RMA_MPI_BLOCKING(scatter,
                 (any in, any in_count, any in_type, any out, any out_count, any out_type, any root, any comm,
                  any error),
                 (in, in_count, in_type, out, out_count, out_type, root, comm, error))
RMA_MPI_BLOCKING(allgather,
                 (any in, any in_count, any in_type, any out, any out_count, any out_type, any comm, any error),
                 (in, in_count, in_type, out, out_count, out_type, comm, error))
RMA_MPI_BLOCKING(allgatherv,
                 (any in, any in_count, any in_type, any out, any out_counts, any displacements, any out_type, any comm,
                  any error),
                 (in, in_count, in_type, out, out_counts, displacements, out_type, comm, error))
RMA_MPI_BLOCKING(alltoall,
                 (any in, any in_count, any in_type, any out, any out_count, any out_type, any comm, any error),
                 (in, in_count, in_type, out, out_count, out_type, comm, error))
RMA_MPI_BLOCKING(alltoallv,
                 (any in, any in_counts, any in_displacements, any in_type, any out, any out_counts,
                  any out_displacements, any out_type, any comm, any error),
                 (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm, error))

#endif
