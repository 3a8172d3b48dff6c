// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/sim_client.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "boot/protocol.hpp"

namespace rma::sim {

sim_client::sim_client(world& job, int rank) : job_(job), rank_(rank), boot_(job.boot_of(job.next_turn(rank))) {
  if (job_.running() != rank) {
    throw Error(status::bad_boot, fmt::format("the runtime of simulated rank {} was made outside of that rank", rank));
  }
  job_.enter_job(rank);
  if (ok(boot_.join(rank))) return;
  job_.leave_job(rank);
  job_.announce(rank);
  throw Error(status::peer_failed, "a rank ended without joining the job");
}

sim_client::~sim_client() {
  if (!inside_) return;
  job_.leave_job(rank_);
  job_.announce(rank_);
}

status sim_client::put(std::string_view key, std::string_view value) {
  if (key.size() > boot::key_bytes_max || value.size() > boot::value_bytes_max) return status::bad_size;
  boot_.put(key, value);
  return status::done;
}

status sim_client::get(std::string_view key, std::string& value) { return boot_.get(rank_, key, value, deaths_seen_); }

status sim_client::fence() { return boot_.fence(rank_); }

void sim_client::abort(int code, std::string_view message) noexcept {
  const std::string text = fmt::format("rank {} aborted the job: {}", rank_, message);
  if (!job_.same_thread()) {  // this thread must not use the world, and the world's own thread may never return to it
    std::fprintf(stderr, "rma: %s\n", text.c_str());
    std::fflush(nullptr);
    std::_Exit(code == 0 ? 1 : code);
  }
  job_.abort(code == 0 ? 1 : code, text);
}

void sim_client::finalize() noexcept {
  if (!std::exchange(inside_, false)) return;
  job_.leave_job(rank_);
  boot_.finalize(rank_);
}

status sim_client::poll_events(std::vector<int>& died) {
  for (; deaths_seen_ < job_.deaths().size(); ++deaths_seen_) {
    if (job_.deaths()[deaths_seen_] != rank_) died.push_back(job_.deaths()[deaths_seen_]);
  }
  return job_.aborted() ? status::job_aborted : status::done;
}

std::byte* sim_client::memory(std::size_t bytes) { return boot_.memory(job_.node_of(rank_), bytes); }

void sim_client::give_back() noexcept { boot_.give_back(job_.node_of(rank_)); }

}  // namespace rma::sim
