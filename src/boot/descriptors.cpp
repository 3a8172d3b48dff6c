// SPDX-License-Identifier: Apache-2.0
#include "boot/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace rma::boot {

namespace {

constexpr rlim_t of_program = 512;
constexpr rlim_t of_rank = 4;  // to its server and to its fabric, each once for the rank and once for a stranger

}  // namespace

void fill_standard_streams() noexcept {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) ::close(fd);
}

void allow_connections(int ranks) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  if (limit.rlim_cur >= of_program + of_rank * static_cast<rlim_t>(ranks)) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

bool out_of_descriptors(int error) noexcept { return error == EMFILE || error == ENFILE; }

std::string descriptors_remedy() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return "see ulimit -n";
  return "this process may have " + std::to_string(limit.rlim_cur) + " open: ulimit -n raises that";
}

}  // namespace rma::boot
