// SPDX-License-Identifier: Apache-2.0
/// \file
/// The remote side of `rmarun --hosts`: one process between sshd and the rank.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "boot/socket.hpp"
#include "rmarun_hosts.hpp"
#include "rmarun_options.hpp"
#include "rmarun_process.hpp"

namespace rma::launcher {
namespace {

using boot::boot_clock;

constexpr std::size_t order_bytes_max = std::size_t{16} << 20;
constexpr std::chrono::seconds end_grace{1};

/// Byte by byte: what follows the order is the rank's standard input.
bool read_whole(char* into, std::size_t bytes) {
  while (bytes != 0) {
    const ssize_t got = ::read(STDIN_FILENO, into, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

std::optional<std::string> read_order() {
  std::string length;
  for (char c = 0; read_whole(&c, 1) && c != '\n' && length.size() < 20;) length += c;
  std::size_t bytes = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bytes);
  if (error != std::errc{} || end != length.data() + length.size() || bytes > order_bytes_max) return std::nullopt;
  std::string body(bytes, '\0');
  return read_whole(body.data(), bytes) ? std::optional(body) : std::nullopt;
}

struct order {
  std::string directory;
  std::vector<std::string> changes, command;
};

std::optional<order> parse(std::string_view body) {
  const auto next = [&body]() -> std::optional<std::string> {
    const auto end = body.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    std::string word(body.substr(0, end));
    body.remove_prefix(end + 1);
    return word;
  };
  const auto list = [&](std::vector<std::string>& out) {
    const auto count = next();
    for (int left = count ? std::atoi(count->c_str()) : -1; left > 0; --left) {
      auto word = next();
      if (!word) return false;
      out.push_back(std::move(*word));
    }
    return count.has_value();
  };
  order o;
  auto directory = next();
  if (!directory || !list(o.changes) || !list(o.command) || o.command.empty()) return std::nullopt;
  o.directory = std::move(*directory);
  return o;
}

/// sshd lets go of the pipes when its client is gone: nobody reads what the rank writes any more.
bool waits_for_end(int signals, pid_t pid, int& wait_status) {
  pollfd polled[] = {{signals, POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
  for (;;) {
    if (::waitpid(pid, &wait_status, WNOHANG) == pid) return true;
    if (::poll(polled, std::size(polled), -1) < 0 && errno != EINTR) return false;
    signalfd_siginfo news;
    while (::read(signals, &news, sizeof news) == static_cast<ssize_t>(sizeof news)) {
      const int number = static_cast<int>(news.ssi_signo);
      if (number != SIGCHLD) (void)::kill(-pid, number);
    }
    if ((polled[1].revents & (POLLERR | POLLHUP)) != 0) return false;
  }
}

int end_group(int signals, pid_t pid) {
  (void)::kill(-pid, SIGTERM);
  (void)::kill(-pid, SIGCONT);
  const auto until = boot_clock::now() + end_grace;
  int wait_status = 0;
  while (::waitpid(pid, &wait_status, WNOHANG) == 0 && boot_clock::now() < until) {
    pollfd news{signals, POLLIN, 0};
    (void)::poll(&news, 1, boot::ms_until(until));
    signalfd_siginfo skipped;
    while (::read(signals, &skipped, sizeof skipped) == static_cast<ssize_t>(sizeof skipped)) {}
  }
  (void)::kill(-pid, SIGKILL);
  return exit_by_signal + SIGTERM;
}

}  // namespace

int run_remote_rank() {
  const auto body = read_order();
  const auto asked = body ? parse(*body) : std::nullopt;
  if (!asked) {
    say("--remote-rank is for rmarun --hosts alone, which says on standard input what to start");
    return exit_usage;
  }
  std::array<char, 256> name{};
  (void)::gethostname(name.data(), name.size() - 1);
  if (::chdir(asked->directory.c_str()) != 0) {
    say(fmt::format("host {}: there is no directory '{}': rmarun starts ranks in the directory that it was started in",
                    name.data(), asked->directory));
    return exit_cannot_execute;
  }
  inherited_state inherited;
  (void)::getrlimit(RLIMIT_NOFILE, &inherited.open_files);
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) sigaddset(&blocked, number);
  (void)::sigprocmask(SIG_BLOCK, &blocked, &inherited.mask);
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  (void)::sigaction(SIGPIPE, &ignored, &inherited.on_pipe);
  const boot::unique_fd signals{::signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK)};
  const auto environment = environment_with(asked->changes);
  const start_outcome outcome =
      start_process({.command = asked->command, .environment = environment, .inherited = inherited});
  if (outcome.error != 0) {
    say(fmt::format("host {}: cannot start '{}': {}", name.data(), asked->command.front(),
                    boot::error_text(outcome.error)));
    return outcome.error == ENOENT ? exit_not_found : exit_cannot_execute;
  }
  int wait_status = 0;
  if (!waits_for_end(signals.get(), outcome.pid, wait_status)) return end_group(signals.get(), outcome.pid);
  (void)::kill(-outcome.pid, SIGKILL);  // processes that the rank has started and left behind
  return WIFSIGNALED(wait_status) ? exit_by_signal + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace rma::launcher
