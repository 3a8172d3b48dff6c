// SPDX-License-Identifier: Apache-2.0
#include "armci/handles.hpp"

#include <algorithm>
#include <cstring>

namespace rma::armci {
namespace {

constexpr std::size_t prune_from = 4096;

#ifdef RMA_ARMCI_COMEX
// The handle is one number, made of the entry's and the generation; the sign shows that it aggregates.
int entry_of(const armci_hdl_t& h) noexcept { return (h < 0 ? -h : h) & 0xffff; }
unsigned generation_of(const armci_hdl_t& h) noexcept { return static_cast<unsigned>(h < 0 ? -h : h) >> 16; }
bool flag_of(const armci_hdl_t& h) noexcept { return h < 0; }
void set(armci_hdl_t& h, int entry, unsigned generation, bool aggregate) noexcept {
  const int number = static_cast<int>((generation & 0x7fff) << 16) | entry | (aggregate && entry == 0 ? 0xffff : 0);
  h = aggregate ? -number : number;
}
constexpr unsigned generation_mask = 0x7fff;
constexpr int entries_max = 0xfffe;
#else
int entry_of(const armci_hdl_t& h) noexcept { return h.target; }
unsigned generation_of(const armci_hdl_t& h) noexcept { return static_cast<unsigned>(h.aggregate) >> 1; }
bool flag_of(const armci_hdl_t& h) noexcept { return (h.aggregate & 1) != 0; }
void set(armci_hdl_t& h, int entry, unsigned generation, bool aggregate) noexcept {
  h.target = entry;
  h.aggregate = static_cast<int>(generation << 1 | (aggregate ? 1U : 0U));
}
constexpr unsigned generation_mask = 0x3fffffff;
constexpr int entries_max = 1 << 30;
#endif

}  // namespace

bool aggregates(const armci_hdl_t* handle) noexcept { return handle != nullptr && flag_of(*handle); }

gathered_operations::gathered_operations(const action& op, const spot& where) : op_(op), first_(where) {
  if (op.scale == nullptr) return;
  std::memcpy(scale_.data(), op.scale, bytes_of(op.type));
}

bool gathered_operations::takes(const action& op, const spot& where) const noexcept {
  if (op.what != op_.what || op.type != op_.type || where.in != first_.in || where.target != first_.target)
    return false;
  if ((op.scale == nullptr) != (op_.scale == nullptr)) return false;
  return op.scale == nullptr || std::memcmp(op.scale, scale_.data(), bytes_of(op.type)) == 0;
}

void gathered_operations::add(const spot& where, void* local, const Layout& local_layout, const Layout& remote_layout) {
  if (parts_.empty()) base_ = static_cast<std::byte*>(local);
  parts_.push_back(
      {static_cast<std::byte*>(local) - base_ + local_layout.lower(),
       static_cast<std::ptrdiff_t>(where.at) - static_cast<std::ptrdiff_t>(first_.at) + remote_layout.lower(),
       remote_layout.bytes()});
}

status gathered_operations::issue(std::vector<std::byte>& room, Request& request) {
  std::vector<std::size_t> lengths;
  std::vector<std::ptrdiff_t> local;
  std::vector<std::ptrdiff_t> remote;
  for (const part& each : parts_) {
    lengths.push_back(each.bytes);
    local.push_back(each.local);
    remote.push_back(each.remote);
  }
  if (op_.scale != nullptr) op_.scale = scale_.data();
  return armci::issue(op_, first_, base_, Layout::indexed<std::byte>(lengths, local),
                      Layout::indexed<std::byte>(lengths, remote), room, &request);
}

// A handle that was never initialized, or belongs to an earlier use, has no entry.
handle_table::entry* handle_table::find(const armci_hdl_t* handle) noexcept {
  const int number = entry_of(*handle);
  if (number <= 0 || static_cast<std::size_t>(number) > entries_.size()) return nullptr;
  entry& e = entries_[static_cast<std::size_t>(number) - 1];
  return e.used && e.generation == generation_of(*handle) ? &e : nullptr;
}

handle_table::entry& handle_table::of(armci_hdl_t* handle) {
  if (handle == nullptr) return implicit_;
  if (entry* const e = find(handle)) return *e;
  if (free_.empty()) {
    if (entries_.size() >= static_cast<std::size_t>(entries_max))
      fail("ARMCI_Nb...", "too many handles are in use: wait for some");
    entries_.emplace_back();
    free_.push_back(entries_.size() - 1);
  }
  const std::size_t number = free_.back();
  free_.pop_back();
  entry& e = entries_[number];
  e.used = true;
  set(*handle, static_cast<int>(number) + 1, e.generation, flag_of(*handle));
  return e;
}

void handle_table::release(armci_hdl_t* handle) {
  entry* const e = find(handle);
  if (e == nullptr) return;
  e->used = false;
  e->generation = (e->generation + 1) & generation_mask;
  free_.push_back(static_cast<std::size_t>(entry_of(*handle)) - 1);
  set(*handle, 0, 0, flag_of(*handle));
}

/// Drops requests that have ended, so that any number of them may be started.
void handle_table::keep(entry& e, const char* call, Request request, std::vector<std::byte> room) {
  if (!request.pending()) return;
  e.requests.push_back(std::move(request));
  if (!room.empty()) e.rooms.push_back(std::move(room));
  const std::size_t count = e.requests.size();
  if (count < prune_from || (count & (count - 1)) != 0 || !e.rooms.empty()) return;
  std::erase_if(e.requests, [call](Request& each) {
    const status made = each.try_test();
    if (made == status::not_yet) return false;
    check(call, made);
    return true;
  });
}

void handle_table::start(const action& op, const spot& where, void* local, const Layout& local_layout,
                         const Layout& remote_layout, armci_hdl_t* handle) {
  where.in->dirty = true;
  if (aggregates(handle) && local_layout.is_contiguous() && remote_layout.is_contiguous()) {
    entry& e = of(handle);
    if (e.gathered != nullptr && !e.gathered->takes(op, where)) send_gathered(e, op.call);
    if (e.gathered == nullptr) e.gathered = std::make_unique<gathered_operations>(op, where);
    e.gathered->add(where, local, local_layout, remote_layout);
    return;
  }
  std::vector<std::byte> room;
  const bool needs_request = handle != nullptr || op.scale != nullptr;
  Request request;
  check(op.call, issue(op, where, local, local_layout, remote_layout, room, needs_request ? &request : nullptr),
        "process " + std::to_string(op.proc));
  if (request.pending()) keep(of(handle), op.call, std::move(request), std::move(room));
}

void* handle_table::keep_value(const void* value, std::size_t bytes, armci_hdl_t* handle) {
  entry& e = of(handle);
  auto& kept = e.values.emplace_back();
  std::memcpy(kept.data(), value, std::min(bytes, kept.size()));
  return kept.data();
}

void handle_table::send_gathered(entry& e, const char* call) {
  if (e.gathered == nullptr) return;
  std::vector<std::byte> room;
  Request request;
  check(call, e.gathered->issue(room, request));
  e.gathered.reset();
  keep(e, call, std::move(request), std::move(room));
}

void handle_table::finish(entry& e, const char* call) {
  send_gathered(e, call);
  check(call, wait_all_nothrow(e.requests));
  e.requests.clear();
  e.rooms.clear();
  e.values.clear();
}

void handle_table::wait(const char* call, armci_hdl_t* handle) {
  if (handle == nullptr) return;
  entry* const e = find(handle);
  if (e == nullptr) return;
  finish(*e, call);
  release(handle);
}

bool handle_table::test(const char* call, armci_hdl_t* handle) {
  entry* const e = handle == nullptr ? nullptr : find(handle);
  if (e == nullptr) return true;
  send_gathered(*e, call);
  for (Request& each : e->requests) {
    const status made = each.try_test();
    if (made == status::not_yet) return false;
    check(call, made);
  }
  wait(call, handle);
  return true;
}

void handle_table::wait_implicit(const char* call) { finish(implicit_, call); }

void handle_table::complete_all(const char* call) {
  wait_implicit(call);
  for (entry& e : entries_) {
    if (e.used) finish(e, call);
  }
}

void handle_table::complete(const char* call, const allocation& gone) {
  if (gone.dirty) complete_all(call);
}

}  // namespace rma::armci

using namespace rma::armci;

#ifndef RMA_ARMCI_COMEX
void ARMCI_INIT_HANDLE(armci_hdl_t* handle) { set(*handle, 0, 0, false); }
#endif

void ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t* handle) { set(*handle, entry_of(*handle), generation_of(*handle), true); }

void ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t* handle) {
  set(*handle, entry_of(*handle), generation_of(*handle), false);
}

int PARMCI_Wait(armci_hdl_t* handle) {
  state& s = running("ARMCI_Wait");
  const entry in(s);
  s.handles->wait("ARMCI_Wait", handle);
  return 0;
}
RMA_ARMCI_TWIN(int, Wait, armci_hdl_t* handle);

int PARMCI_Test(armci_hdl_t* handle) {
  state& s = running("ARMCI_Test");
  const entry in(s);
  return s.handles->test("ARMCI_Test", handle) ? 0 : 1;
}
RMA_ARMCI_TWIN(int, Test, armci_hdl_t* handle);

int PARMCI_WaitProc(int proc) {
  state& s = running("ARMCI_WaitProc");
  const entry in(s);
  s.handles->wait_implicit("ARMCI_WaitProc");
  for (auto& [key, each] : s.allocations) {
    if (!each->dirty) continue;
    const int target = each->window.team().rank_of(proc);
    if (target >= 0) check("ARMCI_WaitProc", each->window.try_flush_local(target));
  }
  return 0;
}
RMA_ARMCI_TWIN(int, WaitProc, int proc);

int PARMCI_WaitAll() {
  state& s = running("ARMCI_WaitAll");
  const entry in(s);
  s.handles->complete_all("ARMCI_WaitAll");
  for (auto& [key, each] : s.allocations) {
    if (each->dirty) check("ARMCI_WaitAll", each->window.try_flush_local_all());
  }
  return 0;
}
RMA_ARMCI_TWIN(int, WaitAll, void);
