// SPDX-License-Identifier: Apache-2.0
#include "boot/client_socket.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace rma::boot {

namespace {

constexpr std::chrono::seconds leave_patience{5};
constexpr std::chrono::seconds abort_patience{2};

unique_fd checked_fd(int fd, const char* what) {
  if (fd < 0) throw Error(status::bad_boot, std::string("cannot create ") + what + ": " + error_text(errno));
  return unique_fd{fd};
}

void watch(int set, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0) {
    throw Error(status::bad_boot, "cannot watch the boot connection: " + error_text(errno));
  }
}

}  // namespace

socket_client::socket_client(const options& how, frame_link connected, std::unique_ptr<server> hosted)
    : rank_(how.rank),
      size_(how.size),
      key_(how.key),
      timeout_(how.timeout_ms),
      rank_0_serves_(boot::rank_0_serves(how)),
      hosted_(std::move(hosted)),
      link_(std::move(connected)),
      bell_(checked_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "an eventfd")),
      event_set_(checked_fd(::epoll_create1(EPOLL_CLOEXEC), "an epoll set")) {
  watch(event_set_.get(), link_.fd());
  watch(event_set_.get(), bell_.get());
  ring();  // frames may have come in along with the last one of the handshake
}

status socket_client::put(std::string_view key, std::string_view value) {
  if (key.size() > key_bytes_max || value.size() > value_bytes_max) return status::bad_size;
  return send(frame_writer(message::put).text(key).text(value).finish(), boot_clock::now() + timeout_);
}

status socket_client::get(std::string_view key, std::string& value) {
  if (key.size() > key_bytes_max) return status::bad_size;
  frame reply;
  if (const status s = request(frame_writer(message::get).u32(deaths_told_).text(key).finish(), reply);
      s != status::done)
    return s;
  body_reader body(reply.body);
  if (reply.type == message::value) {
    const std::string_view found = body.text();
    if (!body.complete()) return lose();
    value = found;
    return status::done;
  }
  const bool because_of_a_death = body.u8() != 0;
  if (reply.type != message::no_value || !body.complete()) return lose();
  return because_of_a_death ? status::peer_failed : status::bad_argument;
}

status socket_client::fence() {
  frame reply;
  if (const status s = request(bare_frame(message::fence), reply); s != status::done) return s;
  if (reply.type == message::fence_done) return status::done;
  return reply.type == message::fence_failed ? status::peer_failed : lose();
}

void socket_client::begin_step(std::string_view what, bool waits) noexcept try {
  const std::string_view step = what.substr(0, step_bytes_max);
  (void)send(frame_writer(message::step).u8(waits ? 1 : 0).text(step).finish(), boot_clock::now() + timeout_);
} catch (...) {  // out of memory: the next call will say so
}

std::string socket_client::late_ranks() {
  const auto deadline = boot_clock::now() + ask_patience;
  frame reply;
  overdue_ = 0;  // replies to earlier requests do not matter any more
  for (status s = send(bare_frame(message::ask_late), deadline); s == status::done;) {
    s = await_reply(reply, deadline);
    if (s != status::done || reply.type != message::late) continue;
    const std::string late = one_line(body_reader(reply.body).text());
    return late.empty() ? "others than the job's server knows of" : late;
  }
  return std::string("the job's server, in ") + (rank_0_serves_ ? "the process of rank 0" : "rmarun");
}

void socket_client::abort(int code, std::string_view message_text) noexcept try {
  const std::string text = one_line(message_text);
  if (rank_0_serves_) std::fprintf(stderr, "rma: rank %d aborted the job: %s\n", rank_, text.c_str());
  const auto deadline = boot_clock::now() + abort_patience;
  frame reply;
  const auto sent = frame_writer(message::abort).u32(static_cast<std::uint32_t>(code)).text(text).finish();
  // The server tells everyone, this rank included: then the news is out.
  if (send(sent, deadline) == status::done) (void)await_reply(reply, deadline);
} catch (...) {  // out of memory: the caller ends the process, and that is news enough
}

void socket_client::finalize() noexcept try {
  if (in_good_order_) return;
  const auto deadline = boot_clock::now() + leave_patience;
  frame reply;
  if (send(bare_frame(message::finalize), deadline) == status::done) {
    while (await_reply(reply, deadline) == status::done && reply.type != message::bye) {}
  }
  in_good_order_ = true;
  if (broken_ == status::done) (void)lose();
} catch (...) {  // out of memory: to the job, this rank dies when its process ends
}

void socket_client::report_death(int rank) noexcept try {
  if (rank < 0 || rank >= size_) return;
  (void)send(frame_writer(message::report_death).u32(static_cast<std::uint32_t>(rank)).finish(),
             boot_clock::now() + abort_patience);
} catch (...) {  // out of memory: the connection's end will tell the server
}

status socket_client::poll_events(std::vector<int>& died) {
  std::uint64_t count = 0;
  (void)!::read(bell_.get(), &count, sizeof count);
  frame received;
  while (broken_ == status::done) {
    const frame_link::result got = link_.next(received, boot_clock::time_point{});
    if (got == frame_link::result::timed_out) break;
    if (got != frame_link::result::ready || !take_news(received)) (void)lose();
  }
  (void)!::read(bell_.get(), &count, sizeof count);
  deaths_told_ += static_cast<std::uint32_t>(died_.size());
  died.insert(died.end(), died_.begin(), died_.end());
  died_.clear();
  return in_good_order_ ? status::done : broken_;
}

void socket_client::take_departures(std::vector<int>& left) {
  left.insert(left.end(), left_.begin(), left_.end());
  left_.clear();
}

/// A question that has an answer. While the answer to an earlier one is overdue, there is no point in waiting again.
status socket_client::request(const std::string& question, frame& reply) {
  if (overdue_ > 0) {
    if (const status s = await_reply(reply, boot_clock::time_point{}); s != status::not_yet) return s;
    if (overdue_ > 0) return status::bad_boot;
  }
  const auto deadline = boot_clock::now() + timeout_;
  status s = send(question, deadline);
  if (s == status::done) s = await_reply(reply, deadline);
  if (s != status::not_yet) return s;
  ++overdue_;
  return status::bad_boot;
}

status socket_client::send(const std::string& frame_bytes, boot_clock::time_point deadline) {
  if (broken_ != status::done) return broken_;
  const frame_link::result sent = link_.send(frame_bytes, deadline);
  if (sent == frame_link::result::ready) return status::done;
  (void)lose();
  if (sent == frame_link::result::timed_out) broken_ = status::bad_boot;  // part of a frame may have gone out
  return broken_;
}

/// The next frame that is neither news nor an overdue answer; `not_yet` if none comes in time.
status socket_client::await_reply(frame& reply, boot_clock::time_point deadline) {
  while (broken_ == status::done) {
    const frame_link::result got = link_.next(reply, deadline);
    if (got == frame_link::result::timed_out) return status::not_yet;
    if (got != frame_link::result::ready) return lose();
    if (take_news(reply)) continue;
    if (overdue_ == 0) return status::done;
    --overdue_;
  }
  return broken_;
}

/// False if it is no news.
bool socket_client::take_news(const frame& received) {
  body_reader body(received.body);
  switch (received.type) {
    case message::died: {
      const std::uint32_t rank = body.u32();
      if (rank < static_cast<std::uint32_t>(size_)) died_.push_back(static_cast<int>(rank));
      break;
    }
    case message::left: {
      const std::uint32_t rank = body.u32();
      if (rank < static_cast<std::uint32_t>(size_)) left_.push_back(static_cast<int>(rank));
      break;
    }
    case message::aborted:
      (void)lose();
      broken_ = status::job_aborted;
      break;
    case message::closing:
      if (rank_0_serves_) left_.push_back(0);
      in_good_order_ = true;
      (void)lose();
      break;
    default: return false;
  }
  ring();
  return true;
}

/// The connection is of no further use. Closing it also takes it out of the epoll set, which then is silent.
status socket_client::lose() {
  link_.close();
  broken_ = status::fabric_lost;
  ring();
  return broken_;
}

void socket_client::ring() {
  const std::uint64_t one = 1;
  (void)!::write(bell_.get(), &one, sizeof one);
}

}  // namespace rma::boot
