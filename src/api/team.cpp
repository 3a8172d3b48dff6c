// SPDX-License-Identifier: Apache-2.0
#include "rma/team.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/status_of.hpp"
#include "channel/call_scope.hpp"
#include "rma/runtime.hpp"
#include "runtime/team_core.hpp"

namespace rma {
namespace {

void require(const detail::team_core& team, const char* what, status s, const std::source_location& where) {
  if (!ok(s)) [[unlikely]]
    detail::raise_team(team, what, s, where);
}

[[noreturn]] void raise_rank(const detail::team_core& team, const char* what, int rank,
                             const std::source_location& where) {
  detail::raise_team(team, what, status::bad_rank, where, fmt::format("rank {} is none of them", rank));
}

/// The thread level lets this thread call.
void require_caller(const detail::team_core& team, const char* what, const std::source_location& where) {
  require(team, what, team.rt->ctx->check_caller(), where);
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t x = a * 0x9e3779b97f4a7c15ULL + b + 1;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9ULL;
  return x ^ (x >> 29);
}

/// The same at every member, whatever machine or compiler (FNV-1a).
std::uint64_t number_of(std::string_view name) noexcept {
  std::uint64_t number = 0xcbf29ce484222325ULL;
  for (const char c : name) number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return number;
}

/// Members wait for each other. `watched`: the death of that rank may have kept some of them from coming here, so that
/// it ends these waits.
std::shared_ptr<detail::team_core> make_team(const detail::team_core& parent, std::uint64_t id,
                                             const std::vector<int>& world_ranks, const std::source_location& where,
                                             int maker_watch = -1) {
  const int world = parent.world_rank(parent.rank);
  const auto me = std::find(world_ranks.begin(), world_ranks.end(), world) - world_ranks.begin();
  const int size = static_cast<int>(world_ranks.size());
  auto team = std::make_shared<detail::team_core>(parent.rt, id, world_ranks, static_cast<int>(me), size);
  team->maker_watch = maker_watch;
  team->make_lines(where);
  std::uint32_t here = 1;
  if (maker_watch >= 0 && !team->has_lines) require(parent, "split", team->allreduce_one(here, min), where);
  team->maker_watch = -1;
  return team;
}

}  // namespace

namespace detail {

void raise_team(const team_core& team, const char* call, status code, const std::source_location& where,
                const std::string& why) {
  const int dead = code == status::peer_failed ? team.rt->ctx->last_failed() : -1;
  std::string text;
  switch (code) {
    case status::peer_failed: text = team.rt->ctx->why_failed(dead) + "; go on with team.shrink()"; break;
    case status::revoked: text = "a member has revoked it; go on with team.shrink()"; break;
    case status::bad_rank:
      text = fmt::format("the team's ranks are 0 to {}", team.size - 1);
      if (why.empty() && team.refused_root.has_value())
        text += fmt::format(": rank {} is none of them", *team.refused_root);
      break;
    case status::bad_size:
      if (why.empty()) text = "the ranks gave different sizes, or another rank's call was refused";
      break;
    case status::bad_type: text = "this operator is not defined for the element type"; break;
    case status::wrong_thread: text = wrong_thread_remedy; break;
    case status::job_aborted: text = "the job is being ended"; break;
    default: break;
  }
  if (!why.empty()) text += (text.empty() ? "" : ": ") + why;
  throw Error(code, fmt::format("[rank {}] {} (team of {} ranks)", team.rt->ctx->rank(), call, team.size), text, dead,
              where);
}

}  // namespace detail

int Team::rank_of(int world_rank) const noexcept {
  for (int r = 0; r < size(); ++r) {
    if (core_->world_rank(r) == world_rank) return r;
  }
  return -1;
}

void Team::raise(const char* name, status s, const source& where) const { detail::raise_team(*core_, name, s, where); }

int Team::world_rank(int rank, source where) const {
  if (rank < 0 || rank >= size()) raise_rank(*core_, "world_rank", rank, where);
  return core_->world_rank(rank);
}

bool Team::shares_memory(int rank, source where) const {
  if (rank < 0 || rank >= size()) raise_rank(*core_, "shares_memory", rank, where);
  return core_->rt->intranode ? core_->node_index(rank) >= 0 : rank == core_->rank;
}

bool Team::one_node() const noexcept { return core_->one_node && (core_->rt->intranode || core_->size == 1); }

Team Team::split(int color, int key, source where) const {
  const detail::call_scope in(*core_->rt->ctx, "split");
  require_caller(*core_, "split", where);
  struct wish {
    int color, key, rank;
  };
  std::vector<wish> all(static_cast<std::size_t>(size()));
  const wish mine{color, key, rank()};
  core_->rt->dropped->announce();
  require("split", core_->allgather_alike(std::as_bytes(std::span(&mine, 1)), reinterpret_cast<std::byte*>(all.data())),
          where);
  const std::uint64_t child = ++core_->children;
  std::erase_if(all, [&](const wish& w) { return color < 0 ? w.rank != rank() : w.color != color; });
  std::stable_sort(all.begin(), all.end(), [](const wish& a, const wish& b) { return a.key < b.key; });
  std::vector<int> members;
  for (const wish& w : all) members.push_back(core_->world_rank(w.rank));
  const auto tag = color < 0 ? ~static_cast<std::uint64_t>(rank()) : static_cast<std::uint64_t>(color);
  return Team(make_team(*core_, mix(mix(core_->id, child), tag), members, where, core_->world_rank(0)));
}

Team Team::node(source where) const {
  int lowest = rank();
  for (int r = core_->first; r < core_->first + core_->mapped; ++r) {
    if (core_->node_index(r) >= 0) {
      lowest = r;
      break;
    }
  }
  return split(lowest, 0, where);
}

// Ranks that know of the same deaths meet in the same round; news of another death starts a new one. A rank that has
// left with a team that has a dead member comes back for it: by shrink() of that team.
Team Team::shrink(source where) const {
  detail::team_core& team = *core_;
  detail::context& ctx = *team.rt->ctx;
  const detail::call_scope in(ctx, "shrink");
  require_caller(team, "shrink", where);
  team.rt->dropped->announce();
  if (team.line == nullptr) {
    team.line = std::make_shared<detail::descent>();
    team.line->id = mix(~team.id, 1);
    for (int r = 0; r < team.size; ++r) team.line->members.push_back(team.world_rank(r));
  }
  detail::descent& line = *team.line;
  for (;;) {
    std::vector<int> living;
    for (const int r : line.members) {
      if (!ctx.dead(r)) living.push_back(r);
    }
    const std::size_t dead = line.members.size() - living.size();
    std::uint64_t& made = line.shrinks[dead];
    const std::uint64_t turn = (made << 32) | dead;
    try {
      auto shrunk = make_team(team, mix(line.id, turn), living, where);
      std::uint32_t here = 1;  // the making of lines has been a meeting already
      if (!shrunk->has_lines) require("shrink", shrunk->allreduce_one(here, min), where);
      ++made;
      shrunk->line = team.line;
      return Team(std::move(shrunk));
    } catch (const Error& e) {
      if (e.code() != status::peer_failed && e.code() != status::revoked) throw;
      if (e.code() == status::revoked) ++made;  // by a member that has it, and comes back with it
    }
  }
}

status Team::try_split(int color, int key, Team& made) const noexcept {
  return detail::status_of([&] { made = split(color, key); });
}
status Team::try_node(Team& made) const noexcept {
  return detail::status_of([&] { made = node(); });
}
status Team::try_shrink(Team& made) const noexcept {
  return detail::status_of([&] { made = shrink(); });
}

Team Runtime::team_of(std::string_view process_set, std::source_location where) const {
  const detail::call_scope in(*core_->ctx, "team_of");
  require_caller(*world_, "team_of", where);
  std::vector<int> members = ranks_of(process_set, where);
  if (!std::binary_search(members.begin(), members.end(), rank())) {
    throw Error(status::bad_argument, fmt::format("[rank {}] team_of", rank()),
                fmt::format("rank {} is not in process set '{}', whose {} members make its team; see ranks_of", rank(),
                            process_set, members.size()),
                -1, where);
  }
  core_->dropped->announce();
  // Sets of the same name may have other members elsewhere ("rma://node").
  const std::uint64_t id = mix(number_of(process_set), static_cast<std::uint64_t>(members.front()));
  return Team(make_team(*world_, mix(id, core_->count_team_of(process_set)), members, where));
}

namespace {

/// Why the ranks of a list make no team here; done if they do.
status check_list(std::span<const int> ranks, int size, int rank) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  if (!sorted.empty() && (sorted.front() < 0 || sorted.back() >= size)) return status::bad_rank;
  const bool twice = std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
  return twice || !std::binary_search(sorted.begin(), sorted.end(), rank) ? status::bad_argument : status::done;
}

}  // namespace

Team Runtime::team_of_ranks(std::span<const int> ranks, std::source_location where) const {
  const detail::call_scope in(*core_->ctx, "team_of_ranks");
  require_caller(*world_, "team_of_ranks", where);
  if (const status s = check_list(ranks, size(), rank()); !ok(s)) {
    detail::raise_team(
        *world_, "team_of_ranks", s, where,
        fmt::format("of the list {{{}}}, which has to name each member once, and this rank", fmt::join(ranks, ", ")));
  }
  core_->dropped->announce();
  const std::string name = fmt::format("ranks {}", fmt::join(ranks, ","));  // no set of the library has such a name
  const std::vector<int> members(ranks.begin(), ranks.end());
  return Team(make_team(*world_, mix(number_of(name), core_->count_team_of(name)), members, where));
}

status Team::try_revoke() noexcept {
  if (const status s = core_->rt->ctx->check_caller(); s != status::done) return s;
  core_->rt->revoked->revoke(*core_);
  return status::done;
}

// A member that counts in other elements would take the others' bytes for its own.
status Team::allgather_lengths(std::size_t count, std::size_t element_bytes, std::size_t* lengths) noexcept {
  struct part {
    std::uint64_t count, element_bytes;
  };
  const part mine{count, element_bytes};
  std::vector<part> all(members());
  const status s = try_allgather(std::span(&mine, 1), std::span(all));
  for (const part& each : all) {
    if (each.element_bytes != all.front().element_bytes) return ok(s) ? status::bad_size : s;
    *lengths++ = each.count;
  }
  return s;
}

}  // namespace rma
