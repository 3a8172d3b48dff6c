// SPDX-License-Identifier: Apache-2.0
// This uses the lowest layer of Boost.Context, because its fiber class unwinds the stack of an unfinished fiber.
#include "fabric/sim/fiber.hpp"

#include <cxxabi.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <boost/context/detail/fcontext.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/assert.hpp"
#include "fabric/sim/sanitizers.hpp"
#include "rma/error.hpp"

namespace rma::sim {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t guard_bytes = page_bytes;

}  // namespace

stack_memory::stack_memory(std::size_t bytes) : bytes_((bytes + page_bytes - 1) / page_bytes * page_bytes) {
  void* const at = ::mmap(nullptr, guard_bytes + bytes_, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (at == MAP_FAILED || ::mprotect(at, guard_bytes, PROT_NONE) != 0) {
    const int error = errno;
    if (at != MAP_FAILED) ::munmap(at, guard_bytes + bytes_);
    throw Error(status::out_of_memory,
                fmt::format("no stack of {} bytes for a simulated rank: {}", bytes_, std::strerror(error)));
  }
  bottom_ = static_cast<std::byte*>(at) + guard_bytes;
}

stack_memory::~stack_memory() {
  if (abandoned_ && keep_for_leak_check(bottom_, bytes_)) return;
  unpoison(bottom_, bytes_);
  ::munmap(bottom_ - guard_bytes, guard_bytes + bytes_);
}

/// The entry function of fibers.
struct fiber::switches {
  static void enter(boost::context::detail::transfer_t from) {
    auto* const self = static_cast<fiber*>(from.data);
    self->outside_ = from.fctx;
    arrived_on_stack(nullptr, &self->outside_bottom_, &self->outside_bytes_);
    self->run_();
    self->finished_ = true;
    self->leave_for_ever();
  }
};

fiber::fiber(std::size_t stack_bytes, std::function<void()> run)
    : stack_(stack_bytes), run_(std::move(run)), inside_history_(make_history()) {
  inside_ = boost::context::detail::make_fcontext(stack_.top(), stack_.bytes(), &switches::enter);
}

fiber::~fiber() {
  drop_history(inside_history_);
  if (!finished_) stack_.abandon();
}

void fiber::swap_exceptions() noexcept {
  auto* const now = reinterpret_cast<exceptions_now*>(abi::__cxa_get_globals());
  std::swap(*now, others_);
  std::swap(newest_refusal_of_thread(), others_refusal_);
}

void fiber::resume() noexcept {
  RMA_ASSERT(!finished_ && inside_ != nullptr);
  swap_exceptions();
  outside_history_ = current_history();
  leave_stack(&outside_fake_stack_, stack_.bottom(), stack_.bytes());
  switch_history(inside_history_);
  inside_ = boost::context::detail::jump_fcontext(std::exchange(inside_, nullptr), this).fctx;
  arrived_on_stack(outside_fake_stack_, nullptr, nullptr);
  swap_exceptions();
}

void fiber::suspend() noexcept {
  RMA_ASSERT(inside_ == nullptr);
  leave_stack(&inside_fake_stack_, outside_bottom_, outside_bytes_);
  switch_history(outside_history_);
  outside_ = boost::context::detail::jump_fcontext(outside_, nullptr).fctx;
  arrived_on_stack(inside_fake_stack_, &outside_bottom_, &outside_bytes_);
}

// The last step of a fiber: nothing may use the fake stack afterwards.
RMA_SIM_NOT_INSTRUMENTED void fiber::leave_for_ever() noexcept {
  leave_stack(nullptr, outside_bottom_, outside_bytes_);
  switch_history(outside_history_);
  boost::context::detail::jump_fcontext(outside_, nullptr);
}

}  // namespace rma::sim
