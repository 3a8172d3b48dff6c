// SPDX-License-Identifier: Apache-2.0
/// \file
/// process_program MODE...: ranks whose processes are not what a program usually is, for process_test.cpp.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <rma/rma.hpp>

namespace {

/// Everyone puts into the next one's part. True if it came.
bool put_round(rma::Runtime& rt, rma::Window<long>& w) {
  const int size = rt.size();
  w.fence();
  w.put(100L + rt.rank(), (rt.rank() + 1) % size, 0);
  w.fence();
  return w[0] == 100 + (rt.rank() + size - 1) % size;
}

/// A child of the last rank, which holds a lock, comes back from main, through all destructors. The lock stays held.
int fork_and_return(rma::Runtime& rt, rma::Window<long>& w) {
  const int last = rt.size() - 1;
  if (rt.rank() == last) {
    if (w.lock_nothrow(rma::lock_kind::exclusive, 0) != rma::status::done) return 20;
    const pid_t child = ::fork();
    if (child == 0) return 0;
    int status = -1;
    if (::waitpid(child, &status, 0) != child || status != 0) return 21;
  }
  rt.world().barrier();
  rma::Request wanted;
  if (rt.rank() != last) wanted = w.ilock(rma::lock_kind::shared, 0);
  if (rt.rank() != last && wanted.try_test() != rma::status::not_yet) return 22;
  rt.world().barrier();
  if (rt.rank() == last && w.try_unlock(0) != rma::status::done) return 23;
  wanted.wait();
  if (rt.rank() != last) w.unlock(0);
  rt.world().barrier();
  return put_round(rt, w) && rt.failed_ranks().empty() ? 0 : 24;
}

/// Far more than a descriptor of somebody else would take.
int print(rma::Runtime& rt) {
  for (int i = 0; i < 2000; ++i) std::printf("rank %d prints line %d\n", rt.rank(), i);
  std::fflush(stdout);
  std::fprintf(stderr, "an error\n");
  rt.world().barrier();
  return 0;
}

int run(std::string_view mode, int number) {
  rma::Runtime rt;
  auto w = rma::Window<long>::allocate(rt.world(), 4);
  if (!put_round(rt, w)) return 30;
  if (mode == "abort" && rt.rank() == 0) rt.abort(number, "because");
  if (mode == "fork") return fork_and_return(rt, w);
  if (mode == "print") return print(rt);
  rt.world().barrier();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : 0);
  } catch (const rma::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 9;
  }
}
