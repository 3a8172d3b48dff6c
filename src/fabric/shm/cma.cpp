// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/cma.hpp"

#include <sys/uio.h>

#include <array>
#include <cerrno>

namespace rma::shm {
namespace {

constexpr std::size_t batch = 64;                             // entries of each list in one call
constexpr std::size_t call_bytes_max = std::size_t{1} << 30;  // the system truncates at 2 GiB

/// Iterates over a list of slices in pieces.
template <class Slice>
class walker {
 public:
  explicit walker(std::span<const Slice> slices) noexcept : slices_(slices) { skip_empty(); }
  [[nodiscard]] bool at_end() const noexcept { return index_ == slices_.size(); }

  /// Fills `out` with up to `bytes_max`; returns the number of entries and bytes.
  std::size_t gather(std::array<iovec, batch>& out, std::size_t bytes_max, std::size_t& bytes) const noexcept {
    std::size_t count = 0;
    std::size_t within = within_;
    bytes = 0;
    for (std::size_t i = index_; i < slices_.size() && count < batch && bytes < bytes_max; ++i, within = 0) {
      const std::size_t take = std::min(slices_[i].bytes - within, bytes_max - bytes);
      if (take == 0) continue;
      out[count++] = {address(slices_[i], within), take};
      bytes += take;
    }
    return count;
  }
  void advance(std::size_t bytes) noexcept {
    while (bytes > 0) {
      const std::size_t take = std::min(bytes, slices_[index_].bytes - within_);
      within_ += take;
      bytes -= take;
      if (within_ == slices_[index_].bytes) {
        ++index_;
        within_ = 0;
      }
    }
    skip_empty();
  }

 private:
  static void* address(const fabric::local_slice& s, std::size_t within) noexcept {
    return static_cast<std::byte*>(s.at) + within;
  }
  static void* address(const fabric::remote_slice& s, std::size_t within) noexcept {
    return reinterpret_cast<void*>(s.address + within);
  }
  void skip_empty() noexcept {
    while (index_ < slices_.size() && slices_[index_].bytes == 0) ++index_;
  }
  std::span<const Slice> slices_;
  std::size_t index_ = 0;
  std::size_t within_ = 0;
};

status meaning_of(int error) noexcept {
  switch (error) {
    case ESRCH: return status::peer_failed;
    case EFAULT: return status::transfer_failed;
    case ENOMEM: return status::out_of_memory;
    default: return status::not_supported;
  }
}

ssize_t call(cma_direction direction, std::uint32_t pid, std::span<const iovec> here,
             std::span<const iovec> there) noexcept {
  return direction == cma_direction::write
             ? ::process_vm_writev(static_cast<pid_t>(pid), here.data(), here.size(), there.data(), there.size(), 0)
             : ::process_vm_readv(static_cast<pid_t>(pid), here.data(), here.size(), there.data(), there.size(), 0);
}

/// Copies one piece on each side, the most frequent case, with one call. Returns false unless all of it was copied: the
/// caller then starts again with lists.
bool copy_piece(cma_direction direction, std::uint32_t pid, const fabric::local_slice& local,
                const fabric::remote_slice& remote) noexcept {
  if (local.bytes != remote.bytes || local.bytes > call_bytes_max) return false;
  const iovec here{local.at, local.bytes};
  const iovec there{reinterpret_cast<void*>(remote.address), remote.bytes};
  return call(direction, pid, {&here, 1}, {&there, 1}) == static_cast<ssize_t>(local.bytes);
}

}  // namespace

status cma_copy(cma_direction direction, std::uint32_t pid, std::span<const fabric::local_slice> local,
                std::span<const fabric::remote_slice> remote) noexcept {
  if (local.size() == 1 && remote.size() == 1 && copy_piece(direction, pid, local[0], remote[0])) return status::done;
  walker<fabric::local_slice> mine(local);
  walker<fabric::remote_slice> theirs(remote);
  std::array<iovec, batch> here;
  std::array<iovec, batch> there;
  while (!mine.at_end() && !theirs.at_end()) {
    std::size_t local_bytes = 0;
    std::size_t remote_bytes = 0;
    std::size_t remotes = theirs.gather(there, call_bytes_max, remote_bytes);
    std::size_t locals = mine.gather(here, remote_bytes, local_bytes);
    if (local_bytes < remote_bytes) remotes = theirs.gather(there, local_bytes, remote_bytes);
    const ssize_t moved = call(direction, pid, {here.data(), locals}, {there.data(), remotes});
    if (moved < 0) return meaning_of(errno);
    if (moved == 0) return status::transfer_failed;
    mine.advance(static_cast<std::size_t>(moved));
    theirs.advance(static_cast<std::size_t>(moved));
  }
  return status::done;
}

}  // namespace rma::shm
