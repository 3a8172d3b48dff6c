// SPDX-License-Identifier: Apache-2.0
/// \file
/// Memory: an allocation is a window with a passive epoch that is open as long as it lives.
#include <cstdlib>
#include <cstring>
#include <new>

#include "armci/handles.hpp"
#include "armci/state.hpp"

namespace rma::armci {
namespace {

constexpr std::size_t local_alignment = 64;
constexpr std::uint64_t no_offset = 0;

/// The start in the segments of the window that contains this process's `ptr`, plus one; 0 if `ptr` is null.
std::uint64_t offset_of(state& s, const char* call, void* ptr) {
  if (ptr == nullptr) return no_offset;
  const spot where = s.find(call, s.me, ptr, 0);
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  if (where.in == nullptr || !where.in->window.place_in_segment(offset, bytes))
    fail(call, "the pointer is not one that ARMCI_Malloc has given this process");
  if (where.at != 0) fail(call, "the pointer is not the start of what ARMCI_Malloc has given this process");
  return offset + 1;
}

/// Members whose part is empty do not know which window is meant: the others determine it.
allocation& agreed(state& s, const char* call, group_state& group, void* ptr) {
  std::uint64_t offset = offset_of(s, call, ptr);
  check(call, group.team.try_allreduce(std::span(&offset, 1), max));
  for (auto& [key, each] : s.allocations) {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    if (each->window.place_in_segment(begin, bytes) && begin + 1 == offset &&
        each->window.team().shared_core() == group.team.shared_core())
      return *each;
  }
  fail(call, offset == no_offset ? "all processes gave a null pointer"
                                 : "the pointer was not allocated in this group (ARMCI_Malloc, ARMCI_Malloc_group)");
}

}  // namespace

int malloc_in(state& s, const char* call, group_state& group, void** ptrs, armci_size_t bytes) {
  if (bytes < 0) fail(call, "a negative number of bytes");
  const auto mine = static_cast<std::size_t>(bytes);
  std::vector<std::size_t> sizes(static_cast<std::size_t>(group.team.size()));
  check(call, group.team.try_allgather(mine, std::span(sizes)));
  bool all_empty = true;
  for (const std::size_t each : sizes) all_empty = all_empty && each == 0;
  if (all_empty) {
    for (std::size_t r = 0; r < sizes.size(); ++r) ptrs[r] = nullptr;
    return 0;
  }
  auto made = std::make_unique<allocation>();
  Hints hints;
  hints.name = call;
  const status s_made = Window<std::byte>::try_allocate(group.team, mine, made->window, hints);
  if (s_made == status::out_of_memory) return 1;  // as in other implementations: GA reports what it lacks
  check(call, s_made);
  made->one_node = group.team.one_node();
  for (int r = 0; made->one_node && r < group.team.size(); ++r) made->one_node = made->window.pointer_to(r) != nullptr;
  check(call, made->window.lock_all_nothrow(no_check));
  check(call, s.addresses.add(made->window, made.get()));
  for (std::size_t r = 0; r < sizes.size(); ++r)
    ptrs[r] = sizes[r] == 0 ? nullptr : s.addresses.address_of(made->window, group.to_world[r]);
  s.allocations.emplace(made.get(), std::move(made));
  return 0;
}

int free_in(state& s, const char* call, group_state& group, void* ptr) {
  allocation& gone = agreed(s, call, group, ptr);
  s.handles->complete(call, gone);
  check(call, s.addresses.remove(gone.window));
  check(call, gone.window.try_unlock_all());
  check(call, gone.window.try_free());
  s.allocations.erase(&gone);
  return 0;
}

}  // namespace rma::armci

using namespace rma::armci;

int PARMCI_Malloc(void** ptrs, armci_size_t bytes) {
  state& s = running("ARMCI_Malloc");
  const entry in(s);
  return malloc_in(s, "ARMCI_Malloc", *s.world_group, ptrs, bytes);
}
RMA_ARMCI_TWIN(int, Malloc, void** ptrs, armci_size_t bytes);

int PARMCI_Free(void* ptr) {
  state& s = running("ARMCI_Free");
  const entry in(s);
  return free_in(s, "ARMCI_Free", *s.world_group, ptr);
}
RMA_ARMCI_TWIN(int, Free, void* ptr);

int PARMCI_Malloc_memdev(void** ptrs, armci_size_t bytes, const char* /*device*/) { return PARMCI_Malloc(ptrs, bytes); }
RMA_ARMCI_TWIN(int, Malloc_memdev, void** ptrs, armci_size_t bytes, const char* device);

int PARMCI_Free_memdev(void* ptr) { return PARMCI_Free(ptr); }
RMA_ARMCI_TWIN(int, Free_memdev, void* ptr);

void* PARMCI_Malloc_local(armci_size_t bytes) {
  if (bytes < 0) return nullptr;
  const auto rounded = (static_cast<std::size_t>(bytes) + local_alignment - 1) / local_alignment * local_alignment;
  return std::aligned_alloc(local_alignment, rounded == 0 ? local_alignment : rounded);
}
RMA_ARMCI_TWIN(void*, Malloc_local, armci_size_t bytes);

int PARMCI_Free_local(void* ptr) {
  std::free(ptr);
  return 0;
}
RMA_ARMCI_TWIN(int, Free_local, void* ptr);

void PARMCI_Access_begin(void* ptr) {
  state& s = running("ARMCI_Access_begin");
  const entry in(s);
  if (const spot where = s.find("ARMCI_Access_begin", s.me, ptr, 0); where.in != nullptr)
    check("ARMCI_Access_begin", where.in->window.try_sync());
}
RMA_ARMCI_TWIN(void, Access_begin, void* ptr);

void PARMCI_Access_end(void* ptr) { PARMCI_Access_begin(ptr); }
RMA_ARMCI_TWIN(void, Access_end, void* ptr);

void ARMCI_Copy(void* src, void* dst, int bytes) { std::memmove(dst, src, static_cast<std::size_t>(bytes)); }
