// SPDX-License-Identifier: Apache-2.0
#include "rma/runtime.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "boot/descriptors.hpp"
#include "boot/process_sets.hpp"
#include "coll/machine.hpp"
#include "core/uncaught_mistakes.hpp"
#include "fabric/memory_costs.hpp"
#include "p2p/messenger.hpp"
#include "runtime/runtime_core.hpp"
#include "runtime/team_core.hpp"

namespace rma {
namespace {

/// The library's version as headers have it.
std::uint32_t library_version() {
  unsigned major = 0, minor = 0, patch = 0;
  (void)std::sscanf(std::string(version()).c_str(), "%u.%u.%u", &major, &minor, &patch);
  return 10'000 * major + 100 * minor + patch;
}

void check_headers(std::uint32_t of_program) {
  if (of_program / 100 == library_version() / 100) return;
  throw Error(status::bad_setting,
              fmt::format("the program was compiled with headers of rma {}.{}.{} and runs with the library {}: compile "
                          "it again, or install the library that belongs to these headers",
                          of_program / 10'000, of_program / 100 % 100, of_program % 100, version()));
}

Config config_of(int& argc, char** argv, const Config& wanted) {
  const detail::uncaught_mistakes end_here;
  return fabric::started_as(argc, argv, wanted);
}

std::shared_ptr<detail::runtime_core> start(const Config& config) {
  const detail::uncaught_mistakes end_here;
  check_headers(config.headers);
  boot::fill_standard_streams();  // before anything is opened
  const auto destroy = [](detail::runtime_core* core) {
    if (!core->forked()) delete core;
  };
  std::shared_ptr<detail::runtime_core> core(new detail::runtime_core(config), destroy);
  (void)boot::parse_process_sets(core->config.text(detail::knob::process_sets), core->ctx->size());  // or it throws
  return core;
}

constexpr std::uint64_t world_id = 1;

const char* name_of(fabric::write_completion c) noexcept {
  switch (c) {
    case fabric::write_completion::local: return "local";
    case fabric::write_completion::acked: return "acked";
    case fabric::write_completion::placed: return "placed";
  }
  return "?";
}

}  // namespace

Runtime::Runtime(int& argc, char** argv, const Config& config) : Runtime(config_of(argc, argv, config)) {}

Runtime::Runtime(const Config& config) : core_(start(config)) {
  auto team =
      std::make_shared<detail::team_core>(core_, world_id, std::vector<int>{}, core_->ctx->rank(), core_->ctx->size());
  team->make_lines({});
  world_ = std::move(team);
}

Runtime::~Runtime() = default;

trace_region::trace_region(const Runtime& rt, std::string_view name)
    : core_(rt.core().trace != nullptr ? &rt.core() : nullptr) {
  if (core_ == nullptr) return;
  name_ = name;
  begin_ns_ = core_->around->now_ns();
}

trace_region::~trace_region() {
  if (core_ != nullptr) core_->trace->add_region(name_, begin_ns_, core_->around->now_ns());
}

PollingScope::PollingScope(const Runtime& rt) noexcept : core_(&rt.core()) { core_->ctx->begin_polling(); }
PollingScope::~PollingScope() { core_->ctx->end_polling(); }

Team Runtime::world() const noexcept { return Team(world_); }
int Runtime::rank() const noexcept { return core_->ctx->rank(); }
int Runtime::size() const noexcept { return core_->ctx->size(); }
thread_level Runtime::threads() const noexcept { return core_->ctx->threads(); }
std::chrono::nanoseconds Runtime::now() const noexcept {
  return std::chrono::nanoseconds(core_->around->read_clock_ns());
}
void Runtime::compute(std::chrono::nanoseconds duration) noexcept { core_->around->compute(duration.count()); }
void Runtime::progress() noexcept {
  core_->ctx->progress();
  core_->ctx->take_news();
}

void Runtime::on_wait(std::function<void()> look) { core_->ctx->set_wait_hook(std::move(look)); }

// An aborted job is never a success, not by what the system keeps of the code either.
void Runtime::abort(int code, std::string_view message) noexcept {
  const int kept = code & 0xff;
  const int exit_status = kept == 0 ? 1 : kept;
  core_->boot->abort(exit_status, message);
  std::_Exit(exit_status);
}

std::vector<int> Runtime::failed_ranks() const { return core_->ctx->dead_ranks(); }

std::vector<Counter> Runtime::counters() const {
  std::vector<Counter> all;
  core_->each_count([&](std::string_view name, std::uint64_t value) { all.push_back({std::string(name), value}); });
  return all;
}

std::vector<Setting> Runtime::settings() const { return core_->config.list(); }

std::vector<std::string> Runtime::fabrics() const {
  std::vector<std::string> lines;
  const fabric::network* const on_node = core_->where.node.get();
  for (const fabric::network* each : {on_node, static_cast<const fabric::network*>(core_->where.wide.get())}) {
    if (each == nullptr) continue;
    const fabric::capabilities& c = each->caps();
    const bool node = each == on_node;
    lines.push_back(fmt::format(
        "{}: ranks {}, maps memory {}, one-sided {}, atomics {}, write completion {}, in-order placement {}, "
        "gather {}, scatter {}, message {} bytes{}{}",
        c.name, node ? core_->board->size() : static_cast<std::size_t>(size()), c.maps_memory, c.one_sided, c.atomics,
        name_of(c.write_means), c.in_order_placement, c.gather_max, c.scatter_max, c.message_bytes_max,
        c.not_one_sided_because.empty() ? "" : "; ", c.not_one_sided_because));
    if (!node) {
      const fabric::transfer_costs* const measured = core_->ctx->measured_costs();
      const fabric::transfer_costs& costs = measured != nullptr ? *measured : c.costs;
      lines.back() += fmt::format(
          "; expects of a write {} ns, of a piece {}, of a byte {:.2f}, of a message {}, of a byte in it {:.2f}, of a "
          "list's entry {} ({}); collectives use {} figures",
          costs.write_ns, costs.piece_ns, costs.byte_ns, costs.message_ns, costs.message_byte_ns, costs.list_entry_ns,
          measured != nullptr ? "RMA_TUNING" : "built in",
          core_->collectives->network_is_measured() ? "rank 0's" : "built-in");
    } else if (core_->where.wide == nullptr) {
      const detail::coll::machine& collectives = *core_->collectives;
      const fabric::memory_costs& costs = collectives.costs_in_memory();
      lines.back() += fmt::format(
          "; expects of a message {:.0f} ns, of a further one {:.0f}, of a byte in it {:.3f}, of a long one {:.0f}, of "
          "a byte in it {:.3f}, of a byte that is combined {:.3f} ({})",
          costs.latency_ns, costs.message_ns, costs.byte_ns, costs.rendezvous_ns, costs.long_byte_ns,
          costs.combined_byte_ns, collectives.memory_is_measured() ? "RMA_TUNING" : "built in");
    }
    lines.back() += "; " + core_->messages->describe(c);
  }
  return lines;
}

std::string Runtime::waits() const {
  const auto spin_ns = static_cast<std::int64_t>(core_->config.number(detail::knob::spin_us)) * 1000;
  return core_->where.around->why_waits(spin_ns) + (core_->ctx->serves_beside() ? "; a progress thread serves" : "");
}

std::string Runtime::route(int rank) const {
  if (rank < 0 || rank >= size()) return "no such rank";
  detail::context& context = *core_->ctx;
  if (core_->near(rank)) return rank == this->rank() ? "itself" : "memory";
  fabric::network& network = context.network_of(rank);
  const std::lock_guard guard(context.lock());
  const std::string picked = network.as_facts().route(rank);
  return fmt::format("{}{}{}", network.caps().name, picked.empty() ? "" : " ", picked);
}

}  // namespace rma
