// SPDX-License-Identifier: Apache-2.0
/// \file
/// Boards of a job whose ranks are threads of the test, and forked children.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "boot/ranks.hpp"
#include "core/settings.hpp"
#include "fabric/shm/board.hpp"

namespace rma::shm::test {

inline detail::settings settings_of(const std::map<std::string, std::string>& values = {}) {
  Config config;
  config.environment = false;
  config.settings = values;
  return detail::settings(config);
}

/// Small segments, so that many boards fit into the address space of a sanitizer.
inline const std::map<std::string, std::string> small{{"RMA_SEGMENT_BYTES", "16M"}, {"RMA_BOOT_TIMEOUT_MS", "20000"}};

/// The board of a job of one rank.
struct lone_board {
  explicit lone_board(const std::map<std::string, std::string>& values = small)
      : config(settings_of(values)), boot(boot::join({})), node(std::make_unique<board>(*boot, config, members, 0)) {}

  std::vector<int> members{0};
  detail::settings config;
  std::unique_ptr<boot::client> boot;
  std::unique_ptr<board> node;
};

/// Runs `work` in a child of this process, without the test's threads and output. Returns its exit status.
template <class Work>
int in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int how = 0;
  ::waitpid(child, &how, 0);
  return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

}  // namespace rma::shm::test
