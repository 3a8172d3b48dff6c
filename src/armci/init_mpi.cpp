// SPDX-License-Identifier: Apache-2.0
/// \file
/// ARMCI_Init beside MPI: the processes are those of a communicator, over which they learn how to reach each other.
/// A process that rmarun has started is one of its job instead, whatever MPI thinks (it is alone then).
#include <cstdlib>
#include <cstring>

#include "armci/communicators.hpp"
#include "armci/job.hpp"

namespace rma::armci {
namespace {

/// Gives everybody what rank 0 of `comm` gives.
std::string broadcast(MPI_Comm comm, const std::string& of_rank_0) {
  int bytes = static_cast<int>(of_rank_0.size());
  MPI_Bcast(&bytes, 1, MPI_INT, 0, comm);
  std::string text = of_rank_0;
  text.resize(static_cast<std::size_t>(bytes));
  MPI_Bcast(text.data(), bytes, MPI_CHAR, 0, comm);
  return text;
}

class mpi_job final : public job {
 public:
  explicit mpi_job(MPI_Comm of) {
    int is_there = 0;
    MPI_Initialized(&is_there);
    if (is_there == 0) {
      int provided = 0;
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
      started_mpi_ = true;
      of = MPI_COMM_WORLD;
    }
    MPI_Comm_dup(of, &comm_);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }

  ~mpi_job() override {
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (is_over != 0) return;
    MPI_Comm_free(&comm_);
    if (started_mpi_) MPI_Finalize();
  }

  [[nodiscard]] Config config() const override {
    Config how;
    how.rank = rank_;
    how.size = size_;
    how.one_machine = on_one_machine();
    how.from_rank_0 = [comm = comm_](const std::string& text) { return broadcast(comm, text); };
    return how;
  }

  void abort(int code) noexcept override { MPI_Abort(comm_, code); }

  [[nodiscard]] std::uint64_t communicator() const noexcept override { return kept(comm_); }

  void send(state& /*s*/, int tag, const void* data, std::size_t bytes, int to) override {
    MPI_Send(data, static_cast<int>(bytes), MPI_BYTE, to, tag, comm_);
  }

  received receive(state& /*s*/, int tag, void* data, std::size_t room, int from) override {
    MPI_Status how;
    MPI_Recv(data, static_cast<int>(room), MPI_BYTE, from < 0 ? MPI_ANY_SOURCE : from, tag, comm_, &how);
    int bytes = 0;
    MPI_Get_count(&how, MPI_BYTE, &bytes);
    return {static_cast<std::size_t>(bytes), how.MPI_SOURCE};
  }

 private:
  [[nodiscard]] bool on_one_machine() const {
    MPI_Comm here = MPI_COMM_NULL;
    MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    int together = 0;
    MPI_Comm_size(here, &together);
    MPI_Comm_free(&here);
    int fewest = 0;
    MPI_Allreduce(&together, &fewest, 1, MPI_INT, MPI_MIN, comm_);
    return fewest == size_;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  bool started_mpi_ = false;
};

std::unique_ptr<job> launch(void* comm) {
  if (is_started_by_rmarun()) return make_plain_job();
  return std::make_unique<mpi_job>(*static_cast<MPI_Comm*>(comm));
}

}  // namespace
}  // namespace rma::armci

using namespace rma::armci;

int PARMCI_Init_thread_comm(int requested, MPI_Comm comm) { return start(launch, &comm, requested); }
RMA_ARMCI_TWIN(int, Init_thread_comm, int requested, MPI_Comm comm);

int PARMCI_Init_thread(int requested) { return PARMCI_Init_thread_comm(requested, MPI_COMM_WORLD); }
RMA_ARMCI_TWIN(int, Init_thread, int requested);

int PARMCI_Init() { return PARMCI_Init_thread(0); }
RMA_ARMCI_TWIN(int, Init, void);

int PARMCI_Init_args(int* /*argc*/, char*** /*argv*/) { return PARMCI_Init_thread(0); }
RMA_ARMCI_TWIN(int, Init_args, int* argc, char*** argv);
