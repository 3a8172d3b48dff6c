// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/completion_queue.hpp"

#include <fcntl.h>

#include <cerrno>

#include "fabric/verbs/adapter.hpp"

namespace rma::verbs {

completion_queue::completion_queue(ibv_context* device, int entries) : channel_(::ibv_create_comp_channel(device)) {
  if (channel_ == nullptr) refuse_without("completion channel");
  ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(channel_->fd, F_SETFD, FD_CLOEXEC);
  queue_ = ::ibv_create_cq(device, entries, nullptr, channel_, 0);
  if (queue_ != nullptr) return;
  const int why = errno;
  ::ibv_destroy_comp_channel(channel_);
  errno = why;
  refuse_without("completion queue");
}

completion_queue::~completion_queue() {
  ::ibv_destroy_cq(queue_);
  ::ibv_destroy_comp_channel(channel_);
}

unsigned completion_queue::fetch() noexcept {
  if (count_ != 0) return count_;
  const int n = ::ibv_poll_cq(queue_, static_cast<int>(fetched_.size()), fetched_.data());
  first_ = 0;
  count_ = n > 0 ? static_cast<unsigned>(n) : 0;
  return count_;
}

void completion_queue::arm() noexcept {
  ibv_cq* which = nullptr;
  void* unused = nullptr;
  while (armed_ && ::ibv_get_cq_event(channel_, &which, &unused) == 0) {
    ::ibv_ack_cq_events(which, 1);
    armed_ = false;
  }
  if (armed_) return;
  (void)::ibv_req_notify_cq(queue_, 0);
  armed_ = true;
}

}  // namespace rma::verbs
