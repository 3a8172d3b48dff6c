// SPDX-License-Identifier: Apache-2.0
// rmarun -n 2 --nodes 2 silent_target [lock]: rank 0 waits for rank 1, which never calls the library again.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include <rma/rma.hpp>

namespace {

/// A file of this job, by which rank 1 says outside of the library that it has made its last call.
std::string mark() {
  const char* const folder = std::getenv("TMPDIR");
  return std::string(folder == nullptr ? "/tmp" : folder) + "/rma-silent-target-" + std::to_string(::getppid());
}

[[noreturn]] void fall_silent() {
  ::close(::open(mark().c_str(), O_CREAT | O_CLOEXEC, 0600));
  for (;;) ::pause();
}

void await_silence() {
  while (::unlink(mark().c_str()) != 0) ::sched_yield();
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  auto window = rma::Window<long>::allocate(rt.world(), 8, {.name = "halo"});
  const bool locks = argc > 1 && std::string_view(argv[1]) == "lock";
  if (rt.rank() == 0 && locks) {  // then nothing but the lock needs rank 1
    const auto epoch = window.lock(rma::exclusive, 1);
    (void)window.get(1, 0);
  }
  rt.world().barrier();
  if (rt.rank() == 1) fall_silent();
  await_silence();
  if (locks) {
    const auto epoch = window.lock(rma::exclusive, 1);
  } else {
    const auto epoch = window.lock_all(rma::assertion::no_check);
    (void)window.get(1, 0);
  }
  return 0;
}
