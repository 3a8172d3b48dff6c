// SPDX-License-Identifier: Apache-2.0
/// \file
/// The base of a team's collectives: it runs, starts and keeps calls from their descriptions.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>

#include "rma/detail/collective_call.hpp"
#include "rma/error.hpp"
#include "rma/request.hpp"

// Declared before the push: users' code has pointers to them only, and their members are not exported.
namespace rma::detail {
struct team_core;
namespace coll {
class running;
}
}  // namespace rma::detail

#pragma GCC visibility push(default)

namespace rma {

namespace detail {

/// True if elements of type A may be gathered into, or combined to, elements of type T.
template <class A, class T>
concept same_elements = std::same_as<std::remove_cv_t<A>, T> && std::is_trivially_copyable_v<T>;
/// An operator of the library that is defined for T, or a user operator.
template <class Op, class T>
concept combiner_of = (std::convertible_to<Op, operation> && accumulable<T>) || std::same_as<Op, UserOperation>;

template <class R>
inline constexpr bool is_span = false;
template <class T, std::size_t N>
inline constexpr bool is_span<std::span<T, N>> = true;
/// An array, std::array, std::vector or the like: std::span can be made of it, and it is none.
template <class R>
concept container = !is_span<std::remove_cv_t<R>> && requires(R& r) { std::span(r); };
}  // namespace detail

/// A persistent collective, which can be started any number of times with the same arguments and buffers.
///
/// Shape      start: collective, in the same order among the team's collectives on all members
/// Completes  each start when its Request does; the next start may follow then
/// Errors     bad_argument for a start while it is pending; otherwise as the call that made it
/// Threads    as its team
/// Cost       no allocation and no lookup: less than a start of the same call by its name
class Collective {
 public:
  Collective() noexcept = default;
  Collective(Collective&& other) noexcept : core_(std::move(other.core_)), kept_(std::exchange(other.kept_, nullptr)) {}
  Collective& operator=(Collective&& other) noexcept {
    if (this != &other) {
      drop();
      core_ = std::move(other.core_);
      kept_ = std::exchange(other.kept_, nullptr);
    }
    return *this;
  }
  ~Collective() { drop(); }

  [[nodiscard]] Request start(std::source_location where = std::source_location::current());
  [[nodiscard]] status try_start(Request& made) noexcept;

 private:
  friend class TeamBase;
  void drop() noexcept;

  std::shared_ptr<detail::team_core> core_;
  detail::coll::running* kept_ = nullptr;
};

class TeamBase {
 public:
  /// This rank's number in the team, and the number of members.
  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;

  [[nodiscard]] detail::team_core& core() const noexcept { return *core_; }
  [[nodiscard]] const std::shared_ptr<detail::team_core>& shared_core() const noexcept { return core_; }

 protected:
  using source = std::source_location;
  using described = detail::collective_call;

  explicit TeamBase(std::shared_ptr<detail::team_core> core) noexcept : core_(std::move(core)) {}

  void run(const described& call, const source& where);
  [[nodiscard]] status try_run(const described& call) noexcept;
  [[nodiscard]] Request start(const described& call, const source& where);
  [[nodiscard]] status try_start(const described& call, Request& made) noexcept;
  [[nodiscard]] Collective keep(const described& call, const source& where);

  [[nodiscard]] std::size_t members() const noexcept { return static_cast<std::size_t>(size()); }
  [[nodiscard]] bool valid_root(int root) const noexcept { return root >= 0 && root < size(); }
  [[nodiscard]] static described describe(detail::collective what, const char* name, const void* in,
                                          void* out) noexcept {
    described c;
    c.what = what;
    c.name = name;
    c.in = in;
    c.out = out;
    return c;
  }
  /// Records status `else_wrong` unless `right`; the first error of a call counts.
  static void demand(described& c, bool right, status else_wrong) noexcept {
    if (!right && c.wrong == status::done) c.wrong = else_wrong;
  }
  /// Requires that the lists of a v form have an entry for each member (or neighbor), all within the buffer.
  static void demand_lists(described& c, std::span<const std::size_t> sizes, std::span<const std::size_t> offsets,
                           std::size_t blocks, std::size_t elements) noexcept {
    bool right = sizes.size() == blocks && (offsets.empty() || offsets.size() == blocks);
    std::size_t end = 0;
    for (std::size_t i = 0; i < blocks && right; ++i) {
      const std::size_t begin = offsets.empty() ? end : offsets[i];
      end = begin + sizes[i];
      right = end <= elements && end >= begin;
    }
    demand(c, right, status::bad_size);
  }

  std::shared_ptr<detail::team_core> core_;
};

}  // namespace rma

#pragma GCC visibility pop
