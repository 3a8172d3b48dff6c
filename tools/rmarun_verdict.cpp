// SPDX-License-Identifier: Apache-2.0
/// \file
/// The consequences for the job of the end of a rank, an abort or a time-out.
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/process_state.hpp"
#include "rmarun_job.hpp"

namespace rma::launcher {

namespace {

using boot::boot_clock;

constexpr std::chrono::seconds end_grace{1};
// A process with much memory is seen dead by its peers long before the kernel reports its end.
constexpr std::chrono::seconds suspect_grace{2};

std::string describe_signal(int number) {
  const char* text = ::sigdescr_np(number);
  return fmt::format("was killed by signal {} ({})", number, text != nullptr ? text : "unknown");
}

}  // namespace

void job::on_end(int rank, pid_t pid, int wait_status) {
  server_.read_pending(rank);  // it may have left, or aborted, while rmarun was stopped or had no processor
  const std::optional<failure> failed = judge(rank, pid, wait_status);
  const std::vector<int> earlier = server_.deaths();
  server_.mark_dead(rank);
  if (server_.aborted()) return on_abort();
  if (phase_ == phase::suspecting && rank == suspect_) return conclude(failed.value_or(suspicion_));
  if (!failed || phase_ != phase::running) return;
  const bool other_died_first =
      !earlier.empty() && earlier.front() != rank && pids_[static_cast<std::size_t>(earlier.front())] > 0;
  if (asked_.keep_going) {
    say(failed->text);
    if (!verdict_ || rank == suspect_) verdict_ = failed->exit_status;
    if (other_died_first && suspect_ < 0) suspect_ = earlier.front();
  } else if (other_died_first) {
    suspicion_ = *failed;
    suspect_ = earlier.front();
    phase_ = phase::suspecting;
    phase_until_ = boot_clock::now() + suspect_grace;
  } else {
    conclude(*failed);
  }
}

std::optional<job::failure> job::judge(int rank, pid_t pid, int wait_status) const {
  const auto who = [&](int exit_status, const std::string& what) {
    return failure{
        .rank = rank, .exit_status = exit_status, .text = fmt::format("rank {} (pid {}) {}", rank, pid, what)};
  };
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    return who(exit_by_signal + number, describe_signal(number));
  }
  const int exit_status = WEXITSTATUS(wait_status);
  constexpr int ssh_failed = 255;
  if (exit_status == ssh_failed && !host_of_.empty() && server_.state(rank) == boot::rank_state::absent) {
    const std::string& name = asked_.hosts[static_cast<std::size_t>(host_of_[static_cast<std::size_t>(rank)])].name;
    return who(ssh_failed,
               fmt::format("did not start: '{} {}' failed; it must work without a password", asked_.ssh, name));
  }
  if (exit_status != 0) return who(exit_status, fmt::format("exited with status {}", exit_status));
  const boot::rank_state state = server_.state(rank);
  if (state == boot::rank_state::joined || state == boot::rank_state::dead) {
    return who(1, "exited with status 0, but left the job without destroying its Runtime");
  }
  return std::nullopt;
}

void job::conclude(const failure& culprit) {
  say(culprit.text);
  begin_end(culprit.exit_status);
}

void job::on_abort() {
  const auto news = server_.aborted();
  if (!news || !ends_itself()) return;
  say(fmt::format("rank {} aborted the job: {}", news->rank, news->message));
  const int exit_status = news->code & 0xff;
  begin_end(exit_status == 0 ? 1 : exit_status);  // an aborted job is never a success
}

void job::begin_end(int exit_status) {
  if (!verdict_) verdict_ = exit_status;
  phase_ = phase::ending;
  phase_until_ = boot_clock::now() + end_grace;
  signal_ranks(SIGTERM);
  signal_ranks(SIGCONT);  // a stopped process would not see the other
}

void job::on_deadlines() {
  const auto now = boot_clock::now();
  if (phase_ == phase::suspecting && now >= phase_until_) conclude(suspicion_);
  if (phase_ == phase::ending && now >= phase_until_) {
    signal_ranks(SIGKILL);
    phase_ = phase::killing;
    phase_until_ = boot_clock::time_point::max();
  }
  if (now < timeout_at_ || !ends_itself() || running_ == 0) return;
  say(fmt::format("the job did not end within {} s (--timeout) and is stopped; still running: ranks {}",
                  asked_.timeout_s, running_ranks()));
  say_where_ranks_are();
  timeout_at_ = boot_clock::time_point::max();
  verdict_ = exit_timeout;
  begin_end(exit_timeout);
}

/// As far as the job's server and the system know it. Ranks that have started and wait have said so themselves.
void job::say_where_ranks_are() const {
  constexpr std::size_t lines_max = 16;
  std::vector<std::pair<std::string, std::vector<int>>> ranks;  // by place, in the order of the first of each
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    if (pids_[rank] <= 0) continue;
    const std::string stopped = detail::why_stopped(pids_[rank]);
    const std::string where = server_.where(static_cast<int>(rank));
    const std::string place = stopped.empty() ? where : fmt::format("{}; {}", stopped, where);
    auto at = std::ranges::find(ranks, place, &decltype(ranks)::value_type::first);
    if (at == ranks.end()) at = ranks.insert(at, {place, {}});
    at->second.push_back(static_cast<int>(rank));
  }
  for (std::size_t i = 0; i < std::min(ranks.size(), lines_max); ++i)
    say(fmt::format("  {}: {}", detail::names_of_ranks(ranks[i].second), ranks[i].first));
  if (ranks.size() > lines_max) say("  ...");
}

std::string job::running_ranks() const {
  constexpr std::size_t listed_max = 16;
  std::string list;
  std::size_t listed = 0;
  for (std::size_t rank = 0; rank < pids_.size(); ++rank) {
    if (pids_[rank] <= 0) continue;
    if (++listed > listed_max) return list + ", ...";
    list += fmt::format("{}{}", list.empty() ? "" : ", ", rank);
  }
  return list;
}

}  // namespace rma::launcher
