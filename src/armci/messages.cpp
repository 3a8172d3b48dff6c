// SPDX-License-Identifier: Apache-2.0
/// \file
/// Messages and global operations of all processes.
#include <chrono>

#include "armci/job.hpp"
#include "armci/reductions.hpp"

using namespace rma::armci;

int armci_msg_me() { return running("armci_msg_me").me; }
int armci_msg_nproc() { return running("armci_msg_nproc").size; }
void armci_msg_abort(int code) { end_job(code, "armci_msg_abort"); }
double armci_timer() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void armci_msg_snd(int tag, void* buffer, int bytes, int to) {
  state& s = running("armci_msg_snd");
  if (to < 0 || to >= s.size || bytes < 0) fail("armci_msg_snd", "there is no process " + std::to_string(to));
  s.launcher->send(s, tag, buffer, static_cast<std::size_t>(bytes), to);
}

void armci_msg_rcv(int tag, void* buffer, int bytes, int* received, int from) {
  state& s = running("armci_msg_rcv");
  if (from < 0 || from >= s.size || bytes < 0) fail("armci_msg_rcv", "there is no process " + std::to_string(from));
  const auto got = s.launcher->receive(s, tag, buffer, static_cast<std::size_t>(bytes), from);
  if (received != nullptr) *received = static_cast<int>(got.bytes);
}

int armci_msg_rcvany(int tag, void* buffer, int bytes, int* received) {
  state& s = running("armci_msg_rcvany");
  const auto got = s.launcher->receive(s, tag, buffer, static_cast<std::size_t>(bytes), -1);
  if (received != nullptr) *received = static_cast<int>(got.bytes);
  return got.from;
}

void parmci_msg_barrier() { check("armci_msg_barrier", running("armci_msg_barrier").world.try_barrier()); }
extern "C" [[gnu::weak, gnu::alias("parmci_msg_barrier")]] void armci_msg_barrier(void);

void armci_msg_bintree(int scope, int* root, int* up, int* left, int* right) {
  const state& s = running("armci_msg_bintree");
  const bool alone = is_alone_in("armci_msg_bintree", scope);
  const auto child = [&](int number) { return !alone && number < s.size ? number : -1; };
  *root = alone ? s.me : 0;
  *up = alone || s.me == 0 ? -1 : (s.me - 1) / 2;
  *left = child(2 * s.me + 1);
  *right = child(2 * s.me + 2);
}

void armci_msg_bcast_scope(int scope, void* buffer, int bytes, int root) {
  broadcast("armci_msg_bcast", running("armci_msg_bcast").world, scope, buffer, bytes, root);
}
void armci_msg_bcast(void* buffer, int bytes, int root) { armci_msg_bcast_scope(SCOPE_ALL, buffer, bytes, root); }
void armci_msg_brdcst(void* buffer, int bytes, int root) { armci_msg_bcast(buffer, bytes, root); }

void armci_msg_gop_scope(int scope, void* x, int n, char* op, int type) {
  reduce("armci_msg_gop", running("armci_msg_gop").world, scope, x, n, op, type);
}
void armci_msg_igop(int* x, int n, char* op) { armci_msg_gop_scope(SCOPE_ALL, x, n, op, ARMCI_INT); }
void armci_msg_lgop(long* x, int n, char* op) { armci_msg_gop_scope(SCOPE_ALL, x, n, op, ARMCI_LONG); }
void armci_msg_llgop(long long* x, int n, char* op) { armci_msg_gop_scope(SCOPE_ALL, x, n, op, ARMCI_LONG_LONG); }
void armci_msg_fgop(float* x, int n, char* op) { armci_msg_gop_scope(SCOPE_ALL, x, n, op, ARMCI_FLOAT); }
void armci_msg_dgop(double* x, int n, char* op) { armci_msg_gop_scope(SCOPE_ALL, x, n, op, ARMCI_DOUBLE); }
// All ranks get the result, though only the root needs it: this is an allreduce of the library.
void armci_msg_reduce_scope(int scope, void* x, int n, char* op, int type) {
  armci_msg_gop_scope(scope, x, n, op, type);
}
void armci_msg_reduce(void* x, int n, char* op, int type) { armci_msg_gop_scope(SCOPE_ALL, x, n, op, type); }

void armci_msg_sel_scope(int scope, void* x, int bytes, char* op, int type, int contribute) {
  select("armci_msg_sel", running("armci_msg_sel").world, scope, x, bytes, op, type, contribute != 0);
}
void(armci_msg_sel)(void* x, int bytes, char* op, int type, int contribute) {
  armci_msg_sel_scope(SCOPE_ALL, x, bytes, op, type, contribute);
}

void armci_exchange_address(void** ptrs, int n) {
  state& s = running("armci_exchange_address");
  if (n != s.size) fail("armci_exchange_address", "the list needs an entry for each process");
  void* const mine = ptrs[s.me];
  check("armci_exchange_address", s.world.try_allgather(mine, std::span(ptrs, static_cast<std::size_t>(n))));
}

// A cluster is a domain, and each process is one (places.cpp).
void armci_msg_clus_brdcst(void* /*buffer*/, int /*bytes*/) {}
void armci_msg_clus_igop(int* /*x*/, int /*n*/, char* /*op*/) {}
void armci_msg_clus_fgop(float* /*x*/, int /*n*/, char* /*op*/) {}
void armci_msg_clus_lgop(long* /*x*/, int /*n*/, char* /*op*/) {}
void armci_msg_clus_llgop(long long* /*x*/, int /*n*/, char* /*op*/) {}
void armci_msg_clus_dgop(double* /*x*/, int /*n*/, char* /*op*/) {}
