// SPDX-License-Identifier: Apache-2.0
/// \file
/// ARMCI's calls for puts, gets and accumulates: each describes its action, and transfers.cpp carries it out.
#include "armci/transfers.hpp"

using namespace rma::armci;

namespace {

int run_contiguous(const action& op, void* local, void* remote, int bytes, const ending& by = {}) {
  state& s = running(op.call);
  const entry in(s);
  if (bytes < 0) fail(op.call, "a negative number of bytes");
  transfer(s, op, local, remote, static_cast<std::size_t>(bytes), by);
  return 0;
}

int run_strided(const action& op, void* local, void* remote, const strided& shape, const ending& by = {}) {
  state& s = running(op.call);
  const entry in(s);
  transfer(s, op, local, remote, shape, by);
  return 0;
}

int run_segments(const action& op, armci_giov_t* iov, int iov_len, const ending& by = {}) {
  state& s = running(op.call);
  const entry in(s);
  if (iov_len < 0) fail(op.call, "a negative number of descriptors");
  transfer(s, op, {iov, static_cast<std::size_t>(iov_len)}, by);
  return 0;
}

ending with(armci_hdl_t* handle) { return {.blocking = false, .handle = handle}; }

}  // namespace

int PARMCI_Put(void* src, void* dst, int bytes, int proc) {
  return run_contiguous({"ARMCI_Put", kind::put, proc}, src, dst, bytes);
}
RMA_ARMCI_TWIN(int, Put, void* src, void* dst, int bytes, int proc);

int PARMCI_Get(void* src, void* dst, int bytes, int proc) {
  return run_contiguous({"ARMCI_Get", kind::get, proc}, dst, src, bytes);
}
RMA_ARMCI_TWIN(int, Get, void* src, void* dst, int bytes, int proc);

int PARMCI_Acc(int type, void* scale, void* src, void* dst, int bytes, int proc) {
  return run_contiguous(accumulate_of("ARMCI_Acc", proc, type, scale), src, dst, bytes);
}
RMA_ARMCI_TWIN(int, Acc, int type, void* scale, void* src, void* dst, int bytes, int proc);

int PARMCI_NbPut(void* src, void* dst, int bytes, int proc, armci_hdl_t* handle) {
  return run_contiguous({"ARMCI_NbPut", kind::put, proc}, src, dst, bytes, with(handle));
}
RMA_ARMCI_TWIN(int, NbPut, void* src, void* dst, int bytes, int proc, armci_hdl_t* handle);

int PARMCI_NbGet(void* src, void* dst, int bytes, int proc, armci_hdl_t* handle) {
  return run_contiguous({"ARMCI_NbGet", kind::get, proc}, dst, src, bytes, with(handle));
}
RMA_ARMCI_TWIN(int, NbGet, void* src, void* dst, int bytes, int proc, armci_hdl_t* handle);

int PARMCI_NbAcc(int type, void* scale, void* src, void* dst, int bytes, int proc, armci_hdl_t* handle) {
  return run_contiguous(accumulate_of("ARMCI_NbAcc", proc, type, scale), src, dst, bytes, with(handle));
}
RMA_ARMCI_TWIN(int, NbAcc, int type, void* scale, void* src, void* dst, int bytes, int proc, armci_hdl_t* handle);

int PARMCI_PutS(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc) {
  return run_strided({"ARMCI_PutS", kind::put, proc}, src, dst, {levels, counts, src_strides, dst_strides});
}
RMA_ARMCI_TWIN(int, PutS, void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc);

int PARMCI_GetS(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc) {
  return run_strided({"ARMCI_GetS", kind::get, proc}, dst, src, {levels, counts, dst_strides, src_strides});
}
RMA_ARMCI_TWIN(int, GetS, void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc);

int PARMCI_AccS(int type, void* scale, void* src, int* src_strides, void* dst, int* dst_strides, int* counts,
                int levels, int proc) {
  return run_strided(accumulate_of("ARMCI_AccS", proc, type, scale), src, dst,
                     {levels, counts, src_strides, dst_strides});
}
RMA_ARMCI_TWIN(int, AccS, int type, void* scale, void* src, int* src_strides, void* dst, int* dst_strides, int* counts,
               int levels, int proc);

int PARMCI_NbPutS(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc,
                  armci_hdl_t* handle) {
  return run_strided({"ARMCI_NbPutS", kind::put, proc}, src, dst, {levels, counts, src_strides, dst_strides},
                     with(handle));
}
RMA_ARMCI_TWIN(int, NbPutS, void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc,
               armci_hdl_t* handle);

int PARMCI_NbGetS(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc,
                  armci_hdl_t* handle) {
  return run_strided({"ARMCI_NbGetS", kind::get, proc}, dst, src, {levels, counts, dst_strides, src_strides},
                     with(handle));
}
RMA_ARMCI_TWIN(int, NbGetS, void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc,
               armci_hdl_t* handle);

int PARMCI_NbAccS(int type, void* scale, void* src, int* src_strides, void* dst, int* dst_strides, int* counts,
                  int levels, int proc, armci_hdl_t* handle) {
  return run_strided(accumulate_of("ARMCI_NbAccS", proc, type, scale), src, dst,
                     {levels, counts, src_strides, dst_strides}, with(handle));
}
RMA_ARMCI_TWIN(int, NbAccS, int type, void* scale, void* src, int* src_strides, void* dst, int* dst_strides,
               int* counts, int levels, int proc, armci_hdl_t* handle);

int PARMCI_PutV(armci_giov_t* iov, int iov_len, int proc) {
  return run_segments({"ARMCI_PutV", kind::put, proc}, iov, iov_len);
}
RMA_ARMCI_TWIN(int, PutV, armci_giov_t* iov, int iov_len, int proc);

int PARMCI_GetV(armci_giov_t* iov, int iov_len, int proc) {
  return run_segments({"ARMCI_GetV", kind::get, proc}, iov, iov_len);
}
RMA_ARMCI_TWIN(int, GetV, armci_giov_t* iov, int iov_len, int proc);

int PARMCI_AccV(int type, void* scale, armci_giov_t* iov, int iov_len, int proc) {
  return run_segments(accumulate_of("ARMCI_AccV", proc, type, scale), iov, iov_len);
}
RMA_ARMCI_TWIN(int, AccV, int type, void* scale, armci_giov_t* iov, int iov_len, int proc);

int PARMCI_NbPutV(armci_giov_t* iov, int iov_len, int proc, armci_hdl_t* handle) {
  return run_segments({"ARMCI_NbPutV", kind::put, proc}, iov, iov_len, with(handle));
}
RMA_ARMCI_TWIN(int, NbPutV, armci_giov_t* iov, int iov_len, int proc, armci_hdl_t* handle);

int PARMCI_NbGetV(armci_giov_t* iov, int iov_len, int proc, armci_hdl_t* handle) {
  return run_segments({"ARMCI_NbGetV", kind::get, proc}, iov, iov_len, with(handle));
}
RMA_ARMCI_TWIN(int, NbGetV, armci_giov_t* iov, int iov_len, int proc, armci_hdl_t* handle);

int PARMCI_NbAccV(int type, void* scale, armci_giov_t* iov, int iov_len, int proc, armci_hdl_t* handle) {
  return run_segments(accumulate_of("ARMCI_NbAccV", proc, type, scale), iov, iov_len, with(handle));
}
RMA_ARMCI_TWIN(int, NbAccV, int type, void* scale, armci_giov_t* iov, int iov_len, int proc, armci_hdl_t* handle);
