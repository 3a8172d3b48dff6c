// SPDX-License-Identifier: Apache-2.0
/// \file
/// A window of any kind behind one face: memory here, displacements at a target, collective end.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "suite.hpp"

namespace conformance {

/// Anonymous pages: what promotion can move. At least one page, zeroed.
class pages {
 public:
  pages() = default;
  explicit pages(std::size_t bytes) : bytes_(bytes == 0 ? 1 : bytes) {
    at_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at_ == MAP_FAILED) throw std::bad_alloc();
  }
  pages(pages&& other) noexcept : at_(std::exchange(other.at_, nullptr)), bytes_(other.bytes_) {}
  pages& operator=(pages&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~pages() {
    if (at_ != nullptr) ::munmap(at_, bytes_);
  }
  [[nodiscard]] void* data() const noexcept { return at_; }

 private:
  void* at_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Memory of the user's own, as a window of this kind should have it.
template <class T>
class user_memory {
 public:
  user_memory() = default;
  user_memory(window_kind kind, std::size_t count) : count_(count) {
    if (kind == window_kind::promoted) {
      pages_ = pages(count * sizeof(T));
      at_ = static_cast<T*>(pages_.data());
    } else {
      heap_ = std::make_unique<T[]>(count + 1);
      at_ = heap_.get();
    }
  }
  [[nodiscard]] std::span<T> span() const noexcept { return {at_, count_}; }

 private:
  pages pages_{};
  std::unique_ptr<T[]> heap_{};
  T* at_ = nullptr;
  std::size_t count_ = 0;
};

template <class T>
class test_window {
 public:
  /// Collective over the team. Each rank may have its own count.
  test_window(context& ctx, std::size_t count, rma::Hints hints = {})
      : test_window(ctx.world(), ctx.kind(), count, hints) {}
  test_window(const rma::Team& team, window_kind kind, std::size_t count, rma::Hints hints = {})
      : kind_(kind), unit_(hints.displacement_unit == 0 ? sizeof(T) : hints.displacement_unit), team_(team) {
    if (kind != window_kind::allocated) memory_ = user_memory<T>(kind, count);
    hints.promote = kind == window_kind::promoted;
    switch (kind) {
      case window_kind::none:
      case window_kind::allocated: window_ = rma::Window<T>::allocate(team, count, hints); break;
      case window_kind::created:
      case window_kind::promoted: window_ = rma::Window<T>::create(team, memory_.span(), hints); break;
      case window_kind::dynamic:
        window_ = rma::Window<T>::create_dynamic(team, hints);
        starts_ = team_.allgather(count == 0 ? std::uint64_t{0} : window_.attach(memory_.span()));
        break;
    }
  }

  rma::Window<T>& operator*() noexcept { return window_; }
  rma::Window<T>* operator->() noexcept { return &window_; }
  /// This rank's part.
  [[nodiscard]] std::span<T> local() const noexcept {
    return kind_ == window_kind::dynamic ? memory_.span() : window_.local();
  }
  /// Displacement of element `i` of `target` (with displacement units that divide the element).
  [[nodiscard]] std::uint64_t at(int target, std::size_t i) const {
    if (kind_ != window_kind::dynamic) return i * sizeof(T) / unit_;
    return starts_[static_cast<std::size_t>(target)] + i * sizeof(T);
  }
  /// Collective; detaches and frees. Without it the destructor drops the window.
  void free() {
    team_.barrier();
    if (kind_ == window_kind::dynamic && !memory_.span().empty()) window_.detach(memory_.span());
    window_.free();
  }

 private:
  window_kind kind_;
  std::size_t unit_;
  rma::Team team_;
  user_memory<T> memory_{};  // before the window: it must outlive it
  rma::Window<T> window_{};
  std::vector<std::uint64_t> starts_{};
};

/// A value that tells who wrote it, where and when.
template <class T>
T tagged(int rank, std::size_t index, std::uint64_t salt = 0) noexcept {
  std::uint64_t x = (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15U + index * 0xbf58476d1ce4e5b9U + salt;
  x = (x ^ (x >> 29)) * 0x94d049bb133111ebU;
  x ^= x >> 32;
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(x % 100003);
  } else {
    return static_cast<T>(x);
  }
}

/// Fills with tagged values.
template <class T>
void fill_tagged(std::span<T> to, int rank, std::uint64_t salt = 0) noexcept {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = tagged<T>(rank, i, salt);
}

/// Index of the first element that is not tagged like this; to.size() if all are.
template <class T>
std::size_t first_untagged(std::span<T> in, int rank, std::uint64_t salt = 0, std::size_t from = 0) noexcept {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] != tagged<std::remove_const_t<T>>(rank, from + i, salt)) return i;
  }
  return in.size();
}

}  // namespace conformance
