// SPDX-License-Identifier: Apache-2.0
#include "rmarun_cleanup.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>

namespace rma::launcher {

namespace {

using boot::unique_fd;

constexpr int sweeps_max = 20;  // each finds what was forked during the one before
constexpr int death_patience_ms = 1000;
constexpr std::chrono::seconds guardian_patience{20};

std::optional<std::string> read_all(const std::string& path) {
  const unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return std::nullopt;
  std::string text;
  char chunk[16384];
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return text;
    text.append(chunk, static_cast<std::size_t>(got));
  }
}

bool is_marked(const std::string& environment, const std::string& job) {
  const std::string start = std::string(job_variable) + "=";
  for (std::size_t at = 0; at < environment.size();) {
    const std::string_view variable(environment.c_str() + at);
    if (variable.starts_with(start)) return variable.find(job) != std::string_view::npos;
    at += variable.size() + 1;
  }
  return false;
}

/// The process, if it belongs to the job. Opened before it is looked at: its number may be used again meanwhile.
unique_fd open_if_marked(pid_t pid, const std::string& job) {
  unique_fd process{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  if (!process) return process;
  const auto environment = read_all("/proc/" + std::to_string(pid) + "/environ");
  if (!environment || !is_marked(*environment, job)) process.reset();
  return process;
}

std::vector<unique_fd> find_marked(const std::string& job) {
  std::vector<unique_fd> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir("/proc"), &::closedir);
  if (!list) return found;
  while (const dirent* entry = ::readdir(list.get())) {
    pid_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    const auto parsed = std::from_chars(entry->d_name, end, pid);
    if (parsed.ec != std::errc{} || parsed.ptr != end || pid == ::getpid()) continue;
    if (unique_fd process = open_if_marked(pid, job)) found.push_back(std::move(process));
  }
  return found;
}

[[noreturn]] void guard(int leash, const std::string& job) {
  (void)::setsid();  // out of reach of the terminal's signals and of those to rmarun's group
  (void)::prctl(PR_SET_NAME, "rmarun-guardian");
  sigset_t all;
  sigfillset(&all);
  (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
  // Holds nothing open that was rmarun's: whoever reads rmarun's output shall see its end.
  if (leash != 0) (void)::dup2(leash, 0);
  (void)::syscall(SYS_close_range, 1u, ~0u, 0u);
  (void)!::chdir("/");
  char byte = 0;
  ssize_t got = 0;
  do {
    got = ::read(0, &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 0) kill_marked(job, boot::boot_clock::now() + guardian_patience);
  ::_exit(0);
}

}  // namespace

void kill_marked(const std::string& job, boot::boot_clock::time_point until) {
  for (int sweep = 0; sweep < sweeps_max && boot::boot_clock::now() < until; ++sweep) {
    const std::vector<unique_fd> found = find_marked(job);
    if (found.empty()) return;
    for (const unique_fd& each : found) (void)::syscall(SYS_pidfd_send_signal, each.get(), SIGKILL, nullptr, 0);
    for (const unique_fd& each : found) {
      pollfd wait{each.get(), POLLIN, 0};
      (void)::poll(&wait, 1, std::min(death_patience_ms, boot::ms_until(until)));
    }
  }
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  const std::string self = std::to_string(::getpid());
  const std::string text = read_all("/proc/self/task/" + self + "/children").value_or("");
  for (std::size_t at = 0; at < text.size(); ++at) {
    pid_t pid = 0;
    const auto parsed = std::from_chars(text.data() + at, text.data() + text.size(), pid);
    if (parsed.ec != std::errc{}) break;
    found.push_back(pid);
    at = static_cast<std::size_t>(parsed.ptr - text.data());
  }
  return found;
}

guardian::guardian(const std::string& job) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  const unique_fd read_end{ends[0]};
  leash_.reset(ends[1]);
  pid_ = ::fork();
  if (pid_ == 0) {
    leash_.reset();
    guard(read_end.get(), job);
  }
}

guardian::~guardian() { wait_for_its_end(); }

void guardian::dismiss() {
  const char byte = 'q';
  if (pid_ > 0) (void)!::write(leash_.get(), &byte, 1);
  wait_for_its_end();
}

void guardian::wait_for_its_end() {
  leash_.reset();
  while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
  pid_ = -1;
}

}  // namespace rma::launcher
