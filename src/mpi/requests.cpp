// SPDX-License-Identifier: Apache-2.0
#include "mpi/requests.hpp"

#include "mpi/operations.hpp"
#include "mpi/progress_hook.hpp"

namespace rma::mpi {
namespace {

int describe_end(void* /*extra*/, MPI_Status* status) {
  PMPI_Status_set_elements(status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
int free_nothing(void* /*extra*/) { return MPI_SUCCESS; }
int cancel_nothing(void* /*extra*/, int /*complete*/) { return MPI_SUCCESS; }

}  // namespace

int request_list::add(window& w, const char* call, Request ours, MPI_Request* theirs) {
  const int code = PMPI_Grequest_start(describe_end, free_nothing, cancel_nothing, nullptr, theirs);
  if (code != MPI_SUCCESS) return code;
  if (!ours.pending()) return PMPI_Grequest_complete(*theirs);
  const std::lock_guard guard(mutex_);
  entries_.push_back({&w, call, std::move(ours), *theirs});
  count_.store(entries_.size(), std::memory_order_release);
  return MPI_SUCCESS;
}

bool request_list::advance_slow() noexcept {
  const std::lock_guard guard(mutex_);
  for (auto each = entries_.begin(); each != entries_.end();) {
    const status s = each->ours.try_test();
    if (s == status::not_yet) {
      ++each;
      continue;
    }
    (void)report(*each->in, each->call, s);
    PMPI_Grequest_complete(each->theirs);
    each = entries_.erase(each);
  }
  count_.store(entries_.size(), std::memory_order_release);
  return !entries_.empty();
}

namespace {

/// Advances this library's requests. Returns true if some are still pending.
bool advance() noexcept {
  state* const s = current();
  return s != nullptr && s->requests->advance();
}

/// While requests of this library are pending, MPI is polled without waiting. Returns true if `code` is the result.
template <class Test>
bool tested(int& code, Test&& test) {
  while (advance()) {
    int flag = 0;
    code = test(&flag);
    if (flag != 0 || code != MPI_SUCCESS) return true;
  }
  return false;
}

}  // namespace
}  // namespace rma::mpi

using namespace rma::mpi;

int MPI_Rput(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
             MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) {
  window* const w = find(win);
  if (w == nullptr) {
    return PMPI_Rput(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                     target_datatype, win, request);
  }
  return begin(*w, "MPI_Rput", target_rank, request, [&](rma::Request& ours) {
    return put(*w, {origin_addr, origin_count, origin_datatype},
               {target_rank, target_disp, target_count, target_datatype}, &ours);
  });
}

int MPI_Rget(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
             int target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) {
  window* const w = find(win);
  if (w == nullptr) {
    return PMPI_Rget(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                     target_datatype, win, request);
  }
  return begin(*w, "MPI_Rget", target_rank, request, [&](rma::Request& ours) {
    return get(*w, {origin_addr, origin_count, origin_datatype},
               {target_rank, target_disp, target_count, target_datatype}, &ours);
  });
}

int MPI_Raccumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                    MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
                    MPI_Request* request) {
  window* const w = find(win);
  if (w == nullptr) {
    return PMPI_Raccumulate(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                            target_datatype, op, win, request);
  }
  return begin(*w, "MPI_Raccumulate", target_rank, request, [&](rma::Request& ours) {
    return accumulate(*w, {origin_addr, origin_count, origin_datatype},
                      {target_rank, target_disp, target_count, target_datatype}, op, &ours);
  });
}

int MPI_Rget_accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, void* result_addr,
                        int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                        int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request* request) {
  window* const w = find(win);
  if (w == nullptr) {
    return PMPI_Rget_accumulate(origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype,
                                target_rank, target_disp, target_count, target_datatype, op, win, request);
  }
  return begin(*w, "MPI_Rget_accumulate", target_rank, request, [&](rma::Request& ours) {
    return get_accumulate(*w, {origin_addr, origin_count, origin_datatype},
                          {result_addr, result_count, result_datatype},
                          {target_rank, target_disp, target_count, target_datatype}, op, &ours);
  });
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const blocking_call scope;
  int code = MPI_SUCCESS;
  if (tested(code, [&](int* flag) { return PMPI_Test(request, flag, status); })) return code;
  return PMPI_Wait(request, status);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  const blocking_call scope;
  int code = MPI_SUCCESS;
  if (tested(code, [&](int* flag) { return PMPI_Testall(count, requests, flag, statuses); })) return code;
  return PMPI_Waitall(count, requests, statuses);
}

int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  const blocking_call scope;
  int code = MPI_SUCCESS;
  if (tested(code, [&](int* flag) { return PMPI_Testany(count, requests, index, flag, status); })) return code;
  return PMPI_Waitany(count, requests, index, status);
}

int MPI_Waitsome(int incount, MPI_Request requests[], int* outcount, int indices[], MPI_Status statuses[]) {
  const blocking_call scope;
  int code = MPI_SUCCESS;
  const auto test = [&](int* flag) {
    const int made = PMPI_Testsome(incount, requests, outcount, indices, statuses);
    *flag = *outcount != 0 ? 1 : 0;
    return made;
  };
  return tested(code, test) ? code : PMPI_Waitsome(incount, requests, outcount, indices, statuses);
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  (void)advance();
  return PMPI_Test(request, flag, status);
}

int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  (void)advance();
  return PMPI_Testall(count, requests, flag, statuses);
}

int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  (void)advance();
  return PMPI_Testany(count, requests, index, flag, status);
}

int MPI_Testsome(int incount, MPI_Request requests[], int* outcount, int indices[], MPI_Status statuses[]) {
  (void)advance();
  return PMPI_Testsome(incount, requests, outcount, indices, statuses);
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  (void)advance();
  return PMPI_Request_get_status(request, flag, status);
}
