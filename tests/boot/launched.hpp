// SPDX-License-Identifier: Apache-2.0
/// \file
/// rmarun, or a program that comes to it, as a child of the test, its streams in the test's hands. Every wait ends
/// after 30 s.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "boot/socket.hpp"

namespace rma::boot::test {

inline constexpr int patience_ms = 30000;

/// A process that was seen alive.
class process_watch {
 public:
  explicit process_watch(pid_t pid) : fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

  /// Waits for its end.
  [[nodiscard]] bool ends() const {
    pollfd wait{fd_.get(), POLLIN, 0};
    return fd_ && ::poll(&wait, 1, patience_ms) == 1;
  }

 private:
  unique_fd fd_;
};

class launched {
 public:
  /// `input` is all of standard input; without it the stream stays open until close_input.
  explicit launched(const std::vector<std::string>& arguments, const std::optional<std::string>& input = "",
                    const char* program = RMARUN_PATH) {
    int in[2];
    int out[2];
    int err[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) return;
    std::vector<char*> pointers{const_cast<char*>(program)};
    for (const std::string& each : arguments) pointers.push_back(const_cast<char*>(each.c_str()));
    pointers.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      // Whoever runs the tests in the background of a shell has some ignored.
      for (const int number : {SIGINT, SIGQUIT, SIGHUP}) (void)std::signal(number, SIG_DFL);
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(err[1], STDERR_FILENO);
      ::execv(program, pointers.data());
      ::_exit(125);
    }
    for (const int theirs : {in[0], out[1], err[1]}) ::close(theirs);
    in_.reset(in[1]);
    if (input) {
      type(*input);
      close_input();
    }
    out_.reset(out[0]);
    err_.reset(err[0]);
  }
  launched(const launched&) = delete;
  launched& operator=(const launched&) = delete;
  ~launched() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void type(const std::string& text) const { (void)!::write(in_.get(), text.data(), text.size()); }
  void close_input() { in_.reset(); }
  void signal(int number) const { ::kill(pid_, number); }

  /// The next line of standard output, without its end; "" at the end of output.
  std::string line() {
    std::string::size_type end = 0;
    while ((end = out_text_.find('\n')) == std::string::npos) {
      if (!more(out_, out_text_)) return "";
    }
    std::string text = out_text_.substr(0, end);
    out_text_.erase(0, end + 1);
    return text;
  }

  /// All further output, up to the point where nobody holds the stream any more.
  std::string rest_of_output() {
    while (more(out_, out_text_)) {}
    return std::exchange(out_text_, {});
  }
  std::string errors() {
    while (more(err_, err_text_)) {}
    return err_text_;
  }

  /// As a shell gives it; -1 if it does not end.
  int exit_status() {
    if (pid_ <= 0 || !process_watch(pid_).ends()) return -1;
    int status = 0;
    (void)::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  static bool more(const unique_fd& from, std::string& text) {
    char chunk[4096];
    pollfd wait{from.get(), POLLIN, 0};
    if (::poll(&wait, 1, patience_ms) != 1) return false;
    const ssize_t got = ::read(from.get(), chunk, sizeof chunk);
    if (got > 0) text.append(chunk, static_cast<std::size_t>(got));
    return got > 0;
  }

  pid_t pid_ = -1;
  unique_fd in_;
  unique_fd out_;
  unique_fd err_;
  std::string out_text_;
  std::string err_text_;
};

}  // namespace rma::boot::test
