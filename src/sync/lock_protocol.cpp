// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_protocol.hpp"

#include "sync/hybrid_machine.hpp"
#include "sync/lock_agent.hpp"
#include "sync/lock_auto.hpp"
#include "sync/lock_cpu.hpp"
#include "sync/lock_fompi.hpp"
#include "sync/lock_hybrid.hpp"
#include "sync/lock_two_sided.hpp"
#include "sync/locking.hpp"
#include "sync/network_machine.hpp"

namespace rma::detail {
namespace {

template <class Machine>
status lock_now_by(window_core& w, int target, lock_kind kind, deferral) noexcept {
  return lock_by<Machine>(w, target, kind);
}
template <class Machine>
std::unique_ptr<lock_machine> begin_by(window_core& w, int target, lock_kind kind, status&) {
  return std::make_unique<Machine>(w, target, kind);
}
/// Locks are acquired in the order of the program's calls: deferred ones come first.
template <class Machine>
std::unique_ptr<lock_machine> begin_after_deferred(window_core& w, int target, lock_kind kind, status& failed) {
  failed = send_deferred_before(w, -1);
  return failed == status::done ? begin_by<Machine>(w, target, kind, failed) : nullptr;
}

// ---- cpu: the word itself where it is mapped, else the lock manager -------------------------------------------------

lock_path path_cpu(const window_core& w, int target, lock_kind) noexcept {
  return maps_lock(w, target) ? lock_path::cpu : lock_path::agent;
}
status lock_cpu(window_core& w, int target, lock_kind kind, deferral) noexcept {
  return maps_lock(w, target) ? lock_by<cpu_machine>(w, target, kind) : lock_by<agent_machine>(w, target, kind);
}
std::unique_ptr<lock_machine> begin_cpu(window_core& w, int target, lock_kind kind, status& failed) {
  return maps_lock(w, target) ? begin_by<cpu_machine>(w, target, kind, failed)
                              : begin_by<agent_machine>(w, target, kind, failed);
}
status unlock_cpu(window_core& w, int target, lock_kind kind) noexcept {
  if (maps_lock(w, target)) {
    release_cpu(w, target, kind);
  } else {
    release_by_agent(w, target);
  }
  return status::done;
}

// ---- network: the word; or, scheme "agent", readers by the lock manager ---------------------------------------------

status unlock_network(window_core& w, int target, lock_kind kind) noexcept {
  full_fence();  // orders the epoch's stores before the adapter's atomic
  return release_network(w, target, kind);
}
lock_path path_network(const window_core&, int, lock_kind) noexcept { return lock_path::network; }
lock_path path_readers(const window_core&, int, lock_kind kind) noexcept {
  return kind == lock_kind::shared ? lock_path::agent : lock_path::network;
}
status lock_readers_by_agent(window_core& w, int target, lock_kind kind, deferral) noexcept {
  return kind == lock_kind::shared ? lock_by<agent_machine>(w, target, kind)
                                   : lock_by<network_machine>(w, target, kind);
}
std::unique_ptr<lock_machine> begin_readers_by_agent(window_core& w, int target, lock_kind kind, status& failed) {
  return kind == lock_kind::shared ? begin_by<agent_machine>(w, target, kind, failed)
                                   : begin_by<network_machine>(w, target, kind, failed);
}
status unlock_readers_by_agent(window_core& w, int target, lock_kind kind) noexcept {
  if (kind == lock_kind::exclusive) return unlock_network(w, target, kind);
  full_fence();
  release_by_agent(w, target);
  return status::done;
}

// ---- two-sided, hybrid, auto ----------------------------------------------------------------------------------------

status unlock_two_sided(window_core& w, int target, lock_kind) noexcept { return release_two_sided(w, target); }
lock_path path_agent(const window_core&, int, lock_kind) noexcept { return lock_path::agent; }
lock_path path_hybrid(const window_core& w, int target, lock_kind) noexcept {
  return const_cast<window_core&>(w).state_of(target).path;
}
constexpr std::string_view hybrid_names[] = {"hybrid:cpu", "hybrid:network", "hybrid:manager"};
static_assert(static_cast<int>(lock_path::network) == 1 && static_cast<int>(lock_path::agent) == 2);

constexpr lock_protocol_row cpu_row{
    .name = "cpu",
    .lock = lock_cpu,
    .begin = begin_cpu,
    .release = unlock_cpu,
    .path = path_cpu,
    .duty = manager_duty::takes_for_far,
};
constexpr lock_protocol_row network_row{
    .name = "network",
    .lock = lock_now_by<network_machine>,
    .begin = begin_by<network_machine>,
    .release = unlock_network,
    .path = path_network,
    .needs_atomics = true,
    .release_follows_writes = true,
};
constexpr lock_protocol_row network_agent_row{
    .name = "network:agent",
    .lock = lock_readers_by_agent,
    .begin = begin_readers_by_agent,
    .release = unlock_readers_by_agent,
    .path = path_readers,
    .duty = manager_duty::counts_readers,
    .needs_atomics = true,
};
constexpr lock_protocol_row network_fompi_row{
    .name = "network:fompi",
    .lock = lock_fompi,
    .begin = begin_fompi,
    .release = release_fompi,
    .path = path_network,
    .lock_all = lock_fompi_all,
    .unlock_all = release_fompi_all,
    .needs_atomics = true,
};
constexpr lock_protocol_row two_sided_row{
    .name = "two-sided",
    .lock = lock_two_sided,
    .begin = begin_after_deferred<agent_machine>,
    .release = unlock_two_sided,
    .path = path_agent,
    .duty = manager_duty::is_the_lock,
};
constexpr lock_protocol_row hybrid_row{
    .name = "hybrid",
    .lock = lock_now_by<hybrid_machine>,
    .begin = begin_by<hybrid_machine>,
    .release = release_hybrid,
    .path = path_hybrid,
    .duty = manager_duty::migrates,
    .needs_atomics = true,
    .release_follows_writes = true,
    .name_by_path = hybrid_names,
};
/// Lock "auto" of a team that spans nodes.
constexpr lock_protocol_row auto_row{
    .name = "hybrid",
    .lock = lock_auto,
    .begin = begin_after_deferred<hybrid_machine>,
    .release = release_auto,
    .path = path_hybrid,
    .duty = manager_duty::migrates,
    .needs_atomics = true,
    .release_follows_writes = true,
    .name_by_path = hybrid_names,
};

}  // namespace

const lock_protocol_row& row_of(lock_protocol locks, lock_scheme scheme, bool defers_far) noexcept {
  RMA_ASSERT(locks != lock_protocol::automatic);
  if (locks == lock_protocol::two_sided) return two_sided_row;
  if (locks == lock_protocol::hybrid) return defers_far ? auto_row : hybrid_row;
  if (locks == lock_protocol::cpu) return cpu_row;
  if (scheme == lock_scheme::fompi) return network_fompi_row;
  return scheme == lock_scheme::agent ? network_agent_row : network_row;
}

}  // namespace rma::detail
