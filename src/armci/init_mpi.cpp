// SPDX-License-Identifier: Apache-2.0
/// \file
/// ARMCI_Init beside MPI: the processes are those of a communicator, over which they exchange their addresses. A
/// process that rmarun has started is one of its job instead, whatever MPI reports (it is alone then).
#include "armci/communicators.hpp"
#include "armci/job.hpp"
#include "mpi_job/mpi_job.hpp"

namespace rma::armci {
namespace {

class job_of_mpi final : public job {
 public:
  explicit job_of_mpi(MPI_Comm of) {
    int is_there = 0;
    MPI_Initialized(&is_there);
    if (is_there == 0) {
      int provided = 0;
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
      started_mpi_ = true;
      of = MPI_COMM_WORLD;
    }
    MPI_Comm_dup(of, &comm_);
  }

  ~job_of_mpi() override {
    int is_over = 0;
    MPI_Finalized(&is_over);
    if (is_over != 0) return;
    MPI_Comm_free(&comm_);
    if (started_mpi_) MPI_Finalize();
  }

  [[nodiscard]] Config config() const override { return mpi_job::config_of(comm_); }

  void abort(int code) noexcept override { MPI_Abort(comm_, code); }

  [[nodiscard]] std::uint64_t communicator() const noexcept override { return mpi_job::number_of(comm_); }

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
  MPI_Comm comm_ = MPI_COMM_NULL;
  bool started_mpi_ = false;
};

std::unique_ptr<job> launch(void* comm) {
  if (is_started_by_rmarun()) return make_plain_job();
  return std::make_unique<job_of_mpi>(*static_cast<MPI_Comm*>(comm));
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
