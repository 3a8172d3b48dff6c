// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/sim_boot.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "fabric/sim/sim_fabric.hpp"
#include "fabric/sim/wire.hpp"

namespace rma::sim {

sim_boot::sim_boot(world& job)
    : job_(job),
      came_(static_cast<std::size_t>(job.size()), 0),
      left_(static_cast<std::size_t>(job.size()), 0),
      nodes_(static_cast<std::size_t>(job.nodes())) {}

sim_boot::~sim_boot() {
  for (const mapping& m : nodes_) {
    if (m.at != nullptr) ::munmap(m.at, m.bytes);
  }
}

status sim_boot::wait(int rank, std::string_view call, const std::function<bool()>& ready,
                      const std::function<bool()>& failed) {
  job_.enter_call(call, -1);
  job_.watch_ends(rank, true);
  status s = status::done;
  for (;;) {
    job_.pass_charged_time(rank);
    if (ready()) break;
    if (failed()) {
      s = status::peer_failed;
      break;
    }
    job_.park(rank, never_ps);
  }
  job_.watch_ends(rank, false);
  job_.enter_call({}, -1);
  return s;
}

void sim_boot::wake_all(std::vector<int>& ranks) noexcept {
  for (const int r : std::exchange(ranks, {})) job_.wake(r);
}

status sim_boot::join(int rank) {
  came_[static_cast<std::size_t>(rank)] = 1;
  if (++joined_ == job_.size()) wake_all(waiting_);
  waiting_.push_back(rank);
  return wait(
      rank, "the start of the runtime", [&] { return joined_ == job_.size(); },
      [&] {
        for (int r = 0; r < job_.size(); ++r) {
          if (came_[static_cast<std::size_t>(r)] == 0 && (!job_.alive(r) || !job_.active(r))) return true;
        }
        return false;
      });
}

void sim_boot::put(std::string_view key, std::string_view value) {
  values_.insert_or_assign(std::string(key), std::string(value));
  if (const auto found = askers_.find(key); found != askers_.end()) {
    wake_all(found->second);
    askers_.erase(found);
  }
}

status sim_boot::get(int rank, std::string_view key, std::string& value, std::size_t deaths_known) {
  auto found = values_.find(key);
  if (found == values_.end()) {
    askers_[std::string(key)].push_back(rank);
    const auto ready = [&] {
      found = values_.find(key);
      return found != values_.end();
    };
    const auto failed = [&] { return job_.deaths().size() > deaths_known; };
    // std::ref allocates nothing, which would leak if the rank never returned from here.
    const status s = wait(rank, "the start of the runtime", std::ref(ready), std::ref(failed));
    if (s != status::done) return s;
  }
  value = found->second;
  return status::done;
}

status sim_boot::fence(int rank) {
  const std::size_t turn = fences_;
  if (any_left_ != 0 || !job_.deaths().empty()) return status::peer_failed;
  if (++arrived_ == job_.size()) {
    arrived_ = 0;
    ++fences_;
    wake_all(waiting_);
    return status::done;
  }
  waiting_.push_back(rank);
  return wait(
      rank, "the start of the runtime", [&] { return fences_ != turn; },
      [&] { return any_left_ != 0 || !job_.deaths().empty(); });
}

void sim_boot::finalize(int rank) {
  if (std::exchange(left_[static_cast<std::size_t>(rank)], 1) != 0) return;
  ++any_left_;
  if (arrived_ != 0) wake_all(waiting_);
}

wire& sim_boot::network() {
  if (network_ == nullptr) {
    const world_options& o = job_.options();
    network_ = std::make_unique<wire>(job_, o.machine, topology(o.topology, job_.nodes()), o.today, o.seed);
  }
  return *network_;
}

std::byte* sim_boot::memory(int node, std::size_t bytes) {
  mapping& m = nodes_[static_cast<std::size_t>(node)];
  if (m.at == nullptr) {
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
      throw Error(status::out_of_memory,
                  fmt::format("no {} bytes of address space for the memory of simulated node {}: {}; a smaller "
                              "RMA_SEGMENT_BYTES may help",
                              bytes, node, std::strerror(errno)));
    }
    m = {static_cast<std::byte*>(at), bytes, 0};
    ::madvise(at, bytes, MADV_NOHUGEPAGE);  // each of many nodes touches little memory
    ::madvise(at, bytes, MADV_DONTDUMP);
  }
  if (m.bytes != bytes) {
    throw Error(status::bad_boot, fmt::format("one rank laid out {} bytes of node memory, another {}: the ranks of a "
                                              "node need the same RMA_SEGMENT_BYTES",
                                              m.bytes, bytes));
  }
  ++m.users;
  return m.at;
}

void sim_boot::give_back(int node) noexcept {
  mapping& m = nodes_[static_cast<std::size_t>(node)];
  // The members of a node may join one after the other: the memory is unmapped when no rank can join any more.
  if (--m.users == 0 && joined_ == job_.size() && m.at != nullptr) {
    ::munmap(m.at, m.bytes);
    m = {};
  }
}

}  // namespace rma::sim
