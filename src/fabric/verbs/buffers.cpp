// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/buffers.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "rma/error.hpp"

namespace rma::verbs {
namespace {

constexpr std::size_t batch = 32;  // receives that are posted together

}  // namespace

buffer_pool::buffer_pool(ibv_pd* domain, std::size_t count, std::size_t bytes) : count_(count), bytes_(bytes) {
  void* const at =
      ::mmap(nullptr, count * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at != MAP_FAILED) {
    memory_ = static_cast<std::byte*>(at);
    region_ = ::ibv_reg_mr(domain, memory_, count * bytes, int{IBV_ACCESS_LOCAL_WRITE});
  }
  if (region_ == nullptr) {
    const int why = errno;
    if (memory_ != nullptr) ::munmap(memory_, count * bytes);
    throw Error(status::out_of_memory,
                fmt::format("cannot register {} bytes of the library's own ({}); the limit of locked memory "
                            "(ulimit -l) has to be 8 MiB or more",
                            count * bytes, std::strerror(why)));
  }
  free_.reserve(count);
  for (std::size_t i = count; i-- > 0;) free_.push_back(static_cast<std::int32_t>(i));
}

buffer_pool::~buffer_pool() {
  ::ibv_dereg_mr(region_);
  ::munmap(memory_, count_ * bytes_);
}

receive_queue::receive_queue(ibv_pd* domain, std::size_t count, std::size_t bytes) : pool_(domain, count, bytes) {
  ibv_srq_init_attr wanted{};
  wanted.attr.max_wr = static_cast<std::uint32_t>(count);
  wanted.attr.max_sge = 1;
  queue_ = ::ibv_create_srq(domain, &wanted);
  if (queue_ == nullptr) {
    throw Error(status::unreachable,
                fmt::format("the RDMA device gives no shared receive queue of {} ({})", count, std::strerror(errno)));
  }
  handled_.reserve(count);
  requests_.resize(batch);
  places_.resize(batch);
  for (std::size_t i = 0; i < count; ++i) handled_.push_back(pool_.take());
  replenish();
}

receive_queue::~receive_queue() { ::ibv_destroy_srq(queue_); }

void receive_queue::give_back(std::int32_t index) noexcept {
  handled_.push_back(index);
  if (handled_.size() >= batch) replenish();
}

void receive_queue::replenish() noexcept {
  while (!handled_.empty()) {
    std::size_t n = 0;
    for (; n < batch && !handled_.empty(); ++n) {
      const std::int32_t index = handled_.back();
      handled_.pop_back();
      places_[n] = {reinterpret_cast<std::uint64_t>(pool_.at(index)), static_cast<std::uint32_t>(pool_.bytes()),
                    pool_.key()};
      requests_[n] = {};
      requests_[n].wr_id = static_cast<std::uint64_t>(index);
      requests_[n].sg_list = &places_[n];
      requests_[n].num_sge = 1;
      if (n > 0) requests_[n - 1].next = &requests_[n];
    }
    ibv_recv_wr* refused = nullptr;
    if (::ibv_post_srq_recv(queue_, requests_.data(), &refused) == 0) continue;
    for (; refused != nullptr; refused = refused->next) handled_.push_back(static_cast<std::int32_t>(refused->wr_id));
    return;
  }
}

}  // namespace rma::verbs
