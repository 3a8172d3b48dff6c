// SPDX-License-Identifier: Apache-2.0
/// \file
/// A collective_call holds a member's arguments of a collective, independently of the types of its buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rma/error.hpp"
#include "rma/layout.hpp"
#include "rma/operation.hpp"

#pragma GCC visibility push(default)

namespace rma {

class Schedule;

/// A user operator on vectors of T: `of<T>(f)` with f(left, right) -> T. `f` must live until the collective is
/// complete; any thread that makes progress may call it, one at a time. All members give the same operator. It must be
/// associative, and operands are combined in rank order unless it commutes.
class UserOperation {
 public:
  template <class T, class F>
  [[nodiscard]] static UserOperation of(F& f, bool commutes = false) noexcept {
    UserOperation made;
    made.self_ = const_cast<void*>(static_cast<const void*>(&f));
    made.element_bytes_ = sizeof(T);
    made.commutes_ = commutes;
    made.apply_ = [](void* self, void* into, const void* from, std::size_t count, bool from_is_left) {
      auto& call = *static_cast<F*>(self);
      auto* const a = static_cast<T*>(into);
      const auto* const b = static_cast<const T*>(from);
      for (std::size_t i = 0; i < count; ++i) a[i] = from_is_left ? call(b[i], a[i]) : call(a[i], b[i]);
    };
    return made;
  }
  [[nodiscard]] bool commutes() const noexcept { return commutes_; }
  [[nodiscard]] std::size_t element_bytes() const noexcept { return element_bytes_; }
  /// into[i] = into[i] op from[i], or from[i] op into[i] with `from_is_left`.
  void apply(void* into, const void* from, std::size_t count, bool from_is_left) const {
    apply_(self_, into, from, count, from_is_left);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return apply_ != nullptr; }

 private:
  void* self_ = nullptr;
  void (*apply_)(void*, void*, const void*, std::size_t, bool) = nullptr;
  std::size_t element_bytes_ = 1;
  bool commutes_ = true;
};

namespace detail {

/// The kinds of collectives. The v and w forms are of the same kind, with blocks of different sizes.
enum class collective : std::uint8_t {
  barrier,
  broadcast,
  reduce,
  allreduce,
  reduce_scatter,
  scan,
  exscan,
  gather,
  scatter,
  allgather,
  alltoall,
  neighbor_allgather,
  neighbor_alltoall,
  schedule,  ///< a schedule of the user
  count_
};

/// One side's blocks, one for each member (of a neighborhood: for each neighbor).
struct collective_blocks {
  std::size_t each_bytes = 0;
  std::span<const std::size_t> sizes{};    ///< in units; empty: all `each_bytes`
  std::span<const std::size_t> offsets{};  ///< in units; empty: one after the other
  std::size_t unit_bytes = 1;
};

/// The shape of a buffer that is not contiguous: `count` copies of a layout, or several layouts at offsets.
struct collective_shape {
  const Layout* one = nullptr;
  std::size_t count = 1;
  std::span<const Layout> several{};
  std::span<const std::ptrdiff_t> offsets{};
  [[nodiscard]] bool given() const noexcept { return one != nullptr || !several.empty(); }
};

/// The parts of a call that its collective in progress needs, beside the plan that is made of the rest.
struct collective_operands {
  const char* name = "barrier";  ///< name of the call: a string literal
  const void* in = nullptr;
  void* out = nullptr;
  UserOperation user{};
  collective what = collective::barrier;
  element type = element::u8;
  operation op = operation::no_op;
  bool combines = false;
  status wrong = status::done;  ///< error in this member's arguments, which the others are informed of
};

struct collective_call : collective_operands {
  std::size_t bytes = 0;  ///< length of the vector
  int root = 0;
  bool varied = false;
  bool in_place = false;
  collective_blocks sent{};
  collective_blocks received{};
  std::span<const int> sources{};
  std::span<const int> targets{};
  collective_shape in_shape{};
  collective_shape out_shape{};
  const Schedule* schedule = nullptr;
};

}  // namespace detail
}  // namespace rma

#pragma GCC visibility pop
