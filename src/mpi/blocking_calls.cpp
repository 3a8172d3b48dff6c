// SPDX-License-Identifier: Apache-2.0
/// \file
/// MPI's blocking calls for messages and collectives remain MPI's own. While one waits, its rank's progress is MPI's
/// (progress_hook.hpp), on which other ranks may rely.
#include "mpi/progress_hook.hpp"
#include "mpi/state.hpp"

using rma::mpi::blocking_call;

#define RMA_MPI_BLOCKING(call, parameters, arguments) \
  int MPI_##call parameters {                         \
    const blocking_call scope;                        \
    return PMPI_##call arguments;                     \
  }

RMA_MPI_BLOCKING(Send, (const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm),
                 (buf, count, type, dest, tag, comm))
RMA_MPI_BLOCKING(Ssend, (const void* buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm),
                 (buf, count, type, dest, tag, comm))
RMA_MPI_BLOCKING(Recv,
                 (void* buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status),
                 (buf, count, type, source, tag, comm, status))
RMA_MPI_BLOCKING(Sendrecv,
                 (const void* out, int out_count, MPI_Datatype out_type, int dest, int out_tag, void* in, int in_count,
                  MPI_Datatype in_type, int source, int in_tag, MPI_Comm comm, MPI_Status* status),
                 (out, out_count, out_type, dest, out_tag, in, in_count, in_type, source, in_tag, comm, status))
RMA_MPI_BLOCKING(Probe, (int source, int tag, MPI_Comm comm, MPI_Status* status), (source, tag, comm, status))
RMA_MPI_BLOCKING(Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status),
                 (source, tag, comm, message, status))
RMA_MPI_BLOCKING(Mrecv, (void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status),
                 (buf, count, type, message, status))
RMA_MPI_BLOCKING(Barrier, (MPI_Comm comm), (comm))
RMA_MPI_BLOCKING(Bcast, (void* buf, int count, MPI_Datatype type, int root, MPI_Comm comm),
                 (buf, count, type, root, comm))
RMA_MPI_BLOCKING(Reduce, (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
                 (in, out, count, type, op, root, comm))
RMA_MPI_BLOCKING(Allreduce, (const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
                 (in, out, count, type, op, comm))
RMA_MPI_BLOCKING(Gather,
                 (const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type,
                  int root, MPI_Comm comm),
                 (in, in_count, in_type, out, out_count, out_type, root, comm))
RMA_MPI_BLOCKING(Scatter,
                 (const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type,
                  int root, MPI_Comm comm),
                 (in, in_count, in_type, out, out_count, out_type, root, comm))
RMA_MPI_BLOCKING(Allgather,
                 (const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type,
                  MPI_Comm comm),
                 (in, in_count, in_type, out, out_count, out_type, comm))
RMA_MPI_BLOCKING(Allgatherv,
                 (const void* in, int in_count, MPI_Datatype in_type, void* out, const int out_counts[],
                  const int displacements[], MPI_Datatype out_type, MPI_Comm comm),
                 (in, in_count, in_type, out, out_counts, displacements, out_type, comm))
RMA_MPI_BLOCKING(Alltoall,
                 (const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type,
                  MPI_Comm comm),
                 (in, in_count, in_type, out, out_count, out_type, comm))
RMA_MPI_BLOCKING(Alltoallv,
                 (const void* in, const int in_counts[], const int in_displacements[], MPI_Datatype in_type, void* out,
                  const int out_counts[], const int out_displacements[], MPI_Datatype out_type, MPI_Comm comm),
                 (in, in_counts, in_displacements, in_type, out, out_counts, out_displacements, out_type, comm))
