// SPDX-License-Identifier: Apache-2.0
#include "rmarun_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "boot/socket.hpp"

namespace rma::launcher {

namespace {

using boot::unique_fd;

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string_view name_of(std::string_view variable) { return variable.substr(0, variable.find('=') + 1); }

bool redirect(int from, int to) { return from == to || ::dup2(from, to) == to; }

[[noreturn]] void become_rank(const start_order& order, pid_t parent, int error_pipe, char* const* arguments,
                              char* const* environment) {
  const auto give_up = [error_pipe](int error) {
    (void)!::write(error_pipe, &error, sizeof error);
    ::_exit(1);
  };
  (void)::setpgid(0, 0);  // a group of its own: signals reach what it starts, too
  if (order.has_terminal) take_terminal(order.stdin_fd);
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // rmarun died before the line above
  if (!redirect(order.stdin_fd, STDIN_FILENO) || !redirect(order.stdout_fd, STDOUT_FILENO) ||
      !redirect(order.stderr_fd, STDERR_FILENO)) {
    give_up(errno);
  }
  if (order.binding != nullptr) order.binding->bind_self(order.rank);
  (void)::setrlimit(RLIMIT_NOFILE, &order.inherited.open_files);
  (void)::sigaction(SIGPIPE, &order.inherited.on_pipe, nullptr);
  (void)::sigprocmask(SIG_SETMASK, &order.inherited.mask, nullptr);
  ::execvpe(arguments[0], arguments, environment);
  give_up(errno);
  ::_exit(1);
}

}  // namespace

void take_terminal(int terminal) {
  if (::isatty(terminal) == 0) return;
  sigset_t output, before;
  sigemptyset(&output);
  sigaddset(&output, SIGTTOU);  // a group in the background would be stopped by the call
  (void)::sigprocmask(SIG_BLOCK, &output, &before);
  (void)::tcsetpgrp(terminal, ::getpgrp());
  (void)::sigprocmask(SIG_SETMASK, &before, nullptr);
}

start_outcome start_process(const start_order& order) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {.pid = -1, .error = errno};
  const unique_fd error_out{ends[0]};
  unique_fd error_in{ends[1]};
  const auto arguments = pointers_to(order.command);
  const auto environment = pointers_to(order.environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return {.pid = -1, .error = errno};
  if (pid == 0) become_rank(order, parent, error_in.get(), arguments.data(), environment.data());
  (void)::setpgid(pid, pid);  // in both, so that the group exists whoever comes first
  error_in.reset();
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(error_out.get(), &error, sizeof error);  // exec closes the other end: nothing to read
  } while (got < 0 && errno == EINTR);
  if (got != sizeof error) return {.pid = pid, .error = 0};
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {}
  return {.pid = -1, .error = error};
}

std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> made;
  const auto is_changed = [&changes](std::string_view variable) {
    return std::any_of(changes.begin(), changes.end(),
                       [variable](const std::string& change) { return name_of(change) == name_of(variable); });
  };
  for (char** at = ::environ; at != nullptr && *at != nullptr; ++at) {
    if (!is_changed(*at)) made.emplace_back(*at);
  }
  made.insert(made.end(), changes.begin(), changes.end());
  return made;
}

}  // namespace rma::launcher
