// SPDX-License-Identifier: Apache-2.0
#include "rmarun_io.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace rma::launcher {

namespace {

using boot::unique_fd;

constexpr int background_ms = 250;             // a shell's fg tells a job that runs nothing
constexpr std::size_t line_bytes_max = 65536;  // a longer one is cut: memory must have an end

/// In the background reading would stop rmarun. A terminal that is not the controlling one knows no background.
bool may_read() noexcept {
  const pid_t foreground = ::tcgetpgrp(STDIN_FILENO);
  return foreground < 0 || foreground == ::getpgrp();
}

/// False if nobody reads any more.
bool write_all(int to, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(to, text.data() + done, text.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno == EAGAIN) {  // somebody made our terminal non-blocking
      pollfd wait{to, POLLOUT, 0};
      (void)::poll(&wait, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

std::array<unique_fd, 2> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "cannot create a pipe");
  return {unique_fd{ends[0]}, unique_fd{ends[1]}};
}

}  // namespace

tagged_output::tagged_output() : stop_event_(::eventfd(0, EFD_CLOEXEC)) {}

tagged_output::ends tagged_output::add(int rank) {
  auto out = make_pipe();
  auto err = make_pipe();
  const std::string tag = std::to_string(rank) + "| ";
  streams_.push_back({std::move(out[0]), STDOUT_FILENO, tag, {}});
  streams_.push_back({std::move(err[0]), STDERR_FILENO, tag, {}});
  return {std::move(out[1]), std::move(err[1])};
}

void tagged_output::start() {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw std::system_error(error.code(), "cannot start a thread for --tag-output");
  }
}

void tagged_output::finish() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  (void)!::write(stop_event_.get(), &one, sizeof one);
  thread_.join();
}

void tagged_output::run() {
  std::vector<pollfd> polled;
  while (wait_for_output(polled)) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      if (polled[i].revents != 0) take(streams_[i]);
    }
  }
  for (stream& each : streams_) pass_on(each, true);
}

/// False when all streams have ended, or when the job has and nothing more is there.
bool tagged_output::wait_for_output(std::vector<pollfd>& polled) {
  polled.clear();
  bool any = false;
  for (const stream& each : streams_) {
    polled.push_back({each.from.get(), POLLIN, 0});
    any = any || each.from;
  }
  polled.push_back({stop_event_.get(), POLLIN, 0});
  if (!any) return false;
  int ready = 0;
  do {
    ready = ::poll(polled.data(), polled.size(), -1);
  } while (ready < 0 && errno == EINTR);
  return !(ready == 1 && polled.back().revents != 0);
}

void tagged_output::take(stream& from) {
  std::array<char, 65536> chunk;
  const ssize_t got = ::read(from.from.get(), chunk.data(), chunk.size());
  if (got < 0 && errno == EINTR) return;
  if (got > 0) from.line.append(chunk.data(), static_cast<std::size_t>(got));
  pass_on(from, got <= 0);
  if (got <= 0) from.from.reset();
}

/// Writes the lines that have ended, in one piece.
void tagged_output::pass_on(stream& from, bool everything) {
  std::string text;
  std::size_t at = 0;
  for (std::size_t end = 0; (end = from.line.find('\n', at)) != std::string::npos; at = end + 1) {
    text.append(from.tag).append(from.line, at, end + 1 - at);
  }
  from.line.erase(0, at);
  if (!from.line.empty() && (everything || from.line.size() > line_bytes_max)) {
    text.append(from.tag).append(from.line).append("\n");
    from.line.clear();
  }
  if (text.empty() || from.to < 0 || write_all(from.to, text)) return;
  from.to = -1;
  from.from.reset();  // the rank learns by SIGPIPE, as without tags
}

unique_fd terminal_input::open() {
  if (::isatty(STDIN_FILENO) == 0) return {};
  auto made = make_pipe();
  to_ = std::move(made[1]);
  (void)::fcntl(to_.get(), F_SETFL, O_NONBLOCK);
  return std::move(made[0]);
}

int terminal_input::watch(std::vector<pollfd>& polled) const {
  const bool wanting = to_ && pending_.empty() && !ended_;
  const bool reading = wanting && may_read();
  polled.push_back({reading ? STDIN_FILENO : -1, POLLIN, 0});
  polled.push_back({pending_.empty() ? -1 : to_.get(), POLLOUT, 0});
  return wanting && !reading ? background_ms : -1;
}

void terminal_input::serve(const pollfd& terminal, const pollfd& pipe) {
  if (terminal.revents != 0) take();
  if (pipe.revents != 0 || terminal.revents != 0) {
    const ssize_t written = ::write(to_.get(), pending_.data(), pending_.size());
    if (written > 0) pending_.erase(0, static_cast<std::size_t>(written));
    if (written < 0 && errno == EPIPE) {
      pending_.clear();
      ended_ = true;
    }
  }
  if (ended_ && pending_.empty()) to_.reset();
}

void terminal_input::take() {
  if (!may_read()) return;
  std::array<char, 4096> chunk;
  const ssize_t got = ::read(STDIN_FILENO, chunk.data(), chunk.size());
  if (got > 0) pending_.append(chunk.data(), static_cast<std::size_t>(got));
  if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) ended_ = true;
}

}  // namespace rma::launcher
