// SPDX-License-Identifier: Apache-2.0
/// \file
/// Puts and gets of one value, put with a flag, read-modify-write.
#include <cstring>

#include "armci/handles.hpp"

using namespace rma::armci;

namespace {

template <class T>
int put_value(const char* call, T value, void* dst, int proc) {
  state& s = running(call);
  const entry in(s);
  transfer(s, {call, kind::put, proc}, &value, dst, sizeof(T));
  return 0;
}

/// Blocks, unless the handle aggregates: a value is gone when the call returns, and is so small that its message is a
/// copy of it.
template <class T>
int start_value(const char* call, T value, void* dst, int proc, armci_hdl_t* handle) {
  if (!aggregates(handle)) return put_value(call, value, dst, proc);
  state& s = running(call);
  const entry in(s);
  void* const kept = s.handles->keep_value(&value, sizeof(T), handle);
  transfer(s, {call, kind::put, proc}, kept, dst, sizeof(T), {.blocking = false, .handle = handle});
  return 0;
}

template <class T>
T get_value(const char* call, void* src, int proc) {
  state& s = running(call);
  const entry in(s);
  T value{};
  transfer(s, {call, kind::get, proc}, &value, src, sizeof(T));
  return value;
}

/// Sets `old` to the old value.
void update(state& s, const char* call, void* remote, int proc, rma::element type, rma::operation how,
            const void* operand, void* old) {
  const std::size_t bytes = rma::bytes_of(type);
  const spot where = s.find(call, proc, remote, bytes);
  if (where.in == nullptr) {  // memory that no other process reaches
    std::memcpy(old, remote, bytes);
    const action op{call, how == rma::operation::replace ? kind::put : kind::accumulate, proc, type};
    transfer(s, op, const_cast<void*>(operand), remote, bytes);
    return;
  }
  s.keep_order(call, where);
  check(call, where.in->window.fetch_and_op_as(type, how, operand, old, where.target, where.at));
}

template <class T>
void read_modify_write(state& s, bool swap, T* local, void* remote, T value, int proc) {
  T old{};
  const T operand = swap ? *local : value;
  update(s, "ARMCI_Rmw", remote, proc, rma::element_of<T>, swap ? rma::operation::replace : rma::operation::sum,
         &operand, &old);
  *local = old;
}

void set_flag(int* flag, int value, int proc) {
  state& s = running("ARMCI_Put_flag");
  const spot where = s.find("ARMCI_Put_flag", proc, flag, sizeof(int));
  std::atomic_thread_fence(std::memory_order_release);
  if (where.in != nullptr && !where.in->one_node) check("ARMCI_Put_flag", where.in->window.try_flush(where.target));
  transfer(s, {"ARMCI_Put_flag", kind::put, proc}, &value, flag, sizeof(int));
}

}  // namespace

int PARMCI_PutValueInt(int src, void* dst, int proc) { return put_value("ARMCI_PutValueInt", src, dst, proc); }
RMA_ARMCI_TWIN(int, PutValueInt, int src, void* dst, int proc);
int PARMCI_PutValueLong(long src, void* dst, int proc) { return put_value("ARMCI_PutValueLong", src, dst, proc); }
RMA_ARMCI_TWIN(int, PutValueLong, long src, void* dst, int proc);
int PARMCI_PutValueFloat(float src, void* dst, int proc) { return put_value("ARMCI_PutValueFloat", src, dst, proc); }
RMA_ARMCI_TWIN(int, PutValueFloat, float src, void* dst, int proc);
int PARMCI_PutValueDouble(double src, void* dst, int proc) { return put_value("ARMCI_PutValueDouble", src, dst, proc); }
RMA_ARMCI_TWIN(int, PutValueDouble, double src, void* dst, int proc);

int PARMCI_NbPutValueInt(int src, void* dst, int proc, armci_hdl_t* handle) {
  return start_value("ARMCI_NbPutValueInt", src, dst, proc, handle);
}
RMA_ARMCI_TWIN(int, NbPutValueInt, int src, void* dst, int proc, armci_hdl_t* handle);
int PARMCI_NbPutValueLong(long src, void* dst, int proc, armci_hdl_t* handle) {
  return start_value("ARMCI_NbPutValueLong", src, dst, proc, handle);
}
RMA_ARMCI_TWIN(int, NbPutValueLong, long src, void* dst, int proc, armci_hdl_t* handle);
int PARMCI_NbPutValueFloat(float src, void* dst, int proc, armci_hdl_t* handle) {
  return start_value("ARMCI_NbPutValueFloat", src, dst, proc, handle);
}
RMA_ARMCI_TWIN(int, NbPutValueFloat, float src, void* dst, int proc, armci_hdl_t* handle);
int PARMCI_NbPutValueDouble(double src, void* dst, int proc, armci_hdl_t* handle) {
  return start_value("ARMCI_NbPutValueDouble", src, dst, proc, handle);
}
RMA_ARMCI_TWIN(int, NbPutValueDouble, double src, void* dst, int proc, armci_hdl_t* handle);

int PARMCI_GetValueInt(void* src, int proc) { return get_value<int>("ARMCI_GetValueInt", src, proc); }
RMA_ARMCI_TWIN(int, GetValueInt, void* src, int proc);
long PARMCI_GetValueLong(void* src, int proc) { return get_value<long>("ARMCI_GetValueLong", src, proc); }
RMA_ARMCI_TWIN(long, GetValueLong, void* src, int proc);
float PARMCI_GetValueFloat(void* src, int proc) { return get_value<float>("ARMCI_GetValueFloat", src, proc); }
RMA_ARMCI_TWIN(float, GetValueFloat, void* src, int proc);
double PARMCI_GetValueDouble(void* src, int proc) { return get_value<double>("ARMCI_GetValueDouble", src, proc); }
RMA_ARMCI_TWIN(double, GetValueDouble, void* src, int proc);

// The data arrive before the flag: blocking puts to one process take effect in order.
int PARMCI_Put_flag(void* src, void* dst, int bytes, int* flag, int value, int proc) {
  (void)PARMCI_Put(src, dst, bytes, proc);
  set_flag(flag, value, proc);
  return 0;
}
RMA_ARMCI_TWIN(int, Put_flag, void* src, void* dst, int bytes, int* flag, int value, int proc);

int PARMCI_PutS_flag(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int* flag,
                     int value, int proc) {
  (void)PARMCI_PutS(src, src_strides, dst, dst_strides, counts, levels, proc);
  set_flag(flag, value, proc);
  return 0;
}
RMA_ARMCI_TWIN(int, PutS_flag, void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels,
               int* flag, int value, int proc);

int PARMCI_Rmw(int op, void* local, void* remote, int value, int proc) {
  state& s = running("ARMCI_Rmw");
  const entry in(s);
  switch (op) {
    case ARMCI_FETCH_AND_ADD: read_modify_write<int>(s, false, static_cast<int*>(local), remote, value, proc); break;
    case ARMCI_FETCH_AND_ADD_LONG:
      read_modify_write<long>(s, false, static_cast<long*>(local), remote, value, proc);
      break;
    case ARMCI_SWAP: read_modify_write<int>(s, true, static_cast<int*>(local), remote, value, proc); break;
    case ARMCI_SWAP_LONG: read_modify_write<long>(s, true, static_cast<long*>(local), remote, value, proc); break;
    default: fail("ARMCI_Rmw", "there is no operation " + std::to_string(op));
  }
  return 0;
}
RMA_ARMCI_TWIN(int, Rmw, int op, void* local, void* remote, int value, int proc);
