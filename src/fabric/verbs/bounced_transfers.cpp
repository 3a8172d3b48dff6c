// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/bounced_transfers.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/assert.hpp"

namespace rma::verbs {

void bounced_transfers::add(connection& c, slices local, const send_request& o) noexcept {
  bounced s{};
  s.to = &c;
  s.write = !o.reads();
  s.local.assign(local.begin(), local.end());
  s.address = o.request.wr.rdma.remote_addr;
  s.key = o.request.wr.rdma.rkey;
  s.token = o.then.token;
  ++c.stages;
  all_.emplace(next_++, std::move(s));
  go_on();
}

void bounced_transfers::go_on() noexcept {
  for (auto& [id, s] : all_) {
    while (!s.all_posted() && post_piece(id, s)) {}
  }
}

// Posts the next piece, of one slice and at most one buffer.
bool bounced_transfers::post_piece(std::uint64_t id, bounced& s) noexcept {
  connection& c = *s.to;
  if (!queues_.has_room(c)) return false;
  const fabric::local_slice& slice = s.local[s.slice];
  const std::size_t bytes = std::min(slice.bytes - s.offset, memory_.buffer_bytes());
  std::byte* const here = static_cast<std::byte*>(slice.at) + s.offset;
  send_request o;
  if (!memory_.borrow(bytes, o)) return false;
  if (s.write) {
    std::memcpy(memory_.buffer(o), here, bytes);
  } else {
    o.then.copy_to = here;
  }
  o.request.opcode = s.write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
  o.request.wr.rdma.remote_addr = s.address;
  o.request.wr.rdma.rkey = s.key;
  o.then.token = id;
  o.then.piece = true;
  o.must_signal = !s.write || s.offset + bytes == slice.bytes;
  if (queues_.post(c, o) != status::posted) {
    memory_.undo(o.then);
    return false;
  }
  ++s.under_way;
  s.address += bytes;
  s.offset += bytes;
  if (s.offset == slice.bytes) {
    ++s.slice;
    s.offset = 0;
  }
  return true;
}

void bounced_transfers::stop(connection& c) noexcept {
  for (auto& [id, s] : all_) {
    if (s.to != &c || s.all_posted()) continue;
    ++s.under_way;
    s.slice = s.local.size();
    completion_action end_of_it;
    end_of_it.token = id;
    end_of_it.piece = true;
    c.unresolved.push_back(end_of_it);
  }
}

void bounced_transfers::end(const completion_action& w, status result, fabric::sink& to) noexcept {
  memory_.finish(w, result);
  if (w.piece) {
    end_piece(w.token, result, to);
  } else if (w.token != 0 && !w.message) {
    to.on_completion(w.token, result, 0);
  }
}

void bounced_transfers::end_piece(std::uint64_t id, status result, fabric::sink& to) noexcept {
  const auto at = all_.find(id);
  RMA_ASSERT(at != all_.end() && at->second.under_way != 0);
  bounced& s = at->second;
  --s.under_way;
  if (result != status::done) {
    s.result = result;
    s.slice = s.local.size();
  }
  if (s.under_way != 0 || !s.all_posted()) return;
  --s.to->stages;
  const std::uint64_t token = s.token;
  const status all = s.result;
  all_.erase(at);
  if (token != 0) to.on_completion(token, all, 0);
}

}  // namespace rma::verbs
