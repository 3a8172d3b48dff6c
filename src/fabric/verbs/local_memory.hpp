// SPDX-License-Identifier: Apache-2.0
/// \file
/// The local memory from which the device sends, and into which it reads: inline data of the entry, a region that
/// others have keys for, the program's memory by the registration cache, or a buffer of the fabric's own.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>

#include "fabric/fabric.hpp"
#include "fabric/verbs/buffers.hpp"
#include "fabric/verbs/memory_regions.hpp"
#include "fabric/verbs/registration_cache.hpp"
#include "fabric/verbs/send_request.hpp"

namespace rma::verbs {

class local_memory {
 public:
  /// `caps` has the limits of an entry; it is complete before the first `place`. Throws Error(out_of_memory).
  local_memory(ibv_pd* domain, int rank, std::size_t buffer_bytes, std::size_t cache_bytes,
               const fabric::capabilities& caps);

  [[nodiscard]] memory_regions& regions() noexcept { return regions_; }
  [[nodiscard]] registration_cache& cache() noexcept { return cache_; }
  [[nodiscard]] const registration_cache& cache() const noexcept { return cache_; }
  [[nodiscard]] std::size_t buffer_bytes() const noexcept { return buffers_.bytes(); }
  [[nodiscard]] std::byte* buffer(const send_request& o) const noexcept { return buffers_.at(o.then.buffer); }
  /// True if less than half of the buffers are free.
  [[nodiscard]] bool is_short_of_buffers() const noexcept { return 2 * buffers_.free() < buffers_.size(); }

  /// Registers the pieces of an operation at once, unless they are registered, or will be copied.
  void expect(const fabric::piece_bounds& pieces) noexcept;
  /// Describes the local data of a write or a read to the device. `not_yet` means that they have to be bounced.
  status prepare(const connection& c, slices local, std::size_t bytes, send_request& o) noexcept;
  /// True if all of it is registered; then it is described.
  bool describe(slices local, send_request& o) noexcept;
  /// Takes a buffer for so many bytes. False if none is free.
  bool borrow(std::size_t bytes, send_request& o) noexcept;
  /// Takes a buffer for the result of an atomic, which is copied to `old`.
  bool borrow_word(std::uint64_t& old, send_request& o) noexcept;
  /// Describes the buffer of a message that is sent again.
  void describe_buffer(send_request& o) const noexcept;

  /// Returns the resources of an entry that was not posted.
  void undo(const completion_action& w) noexcept;
  /// Returns the resources of a complete entry; copies data that were read to their destination.
  void finish(const completion_action& w, status result) noexcept;
  void release(const completion_action& w) noexcept {
    if (w.lease != nullptr) cache_.release(w.lease);
  }

 private:
  void put_inline(slices local, send_request& o) const noexcept;
  bool lease(const fabric::local_slice& local, send_request& o) noexcept;
  bool lease_list(slices local, send_request& o) noexcept;
  [[nodiscard]] buffer_pool& pool_of(const completion_action& w) noexcept { return w.word ? words_ : buffers_; }

  const fabric::capabilities& caps_;
  buffer_pool buffers_;  ///< buffers of the size of a message
  buffer_pool words_;    ///< results of atomics
  memory_regions regions_;
  registration_cache cache_;  ///< registrations of the program's memory
};

}  // namespace rma::verbs
