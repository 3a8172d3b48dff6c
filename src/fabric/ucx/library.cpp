// SPDX-License-Identifier: Apache-2.0
#include "fabric/ucx/library.hpp"

#include <fmt/format.h>
#include <ucs/debug/log_def.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "core/signals_blocked.hpp"
#include "rma/error.hpp"

namespace rma::ucx {
namespace {

[[noreturn]] void reject(const calls& ucx, const char* what, ucs_status_t why) {
  throw Error(status::unreachable,
              fmt::format("UCX gives no {} ({}); UCX_TLS and UCX_NET_DEVICES say what it may use, `ucx_info -d` what "
                          "there is",
                          what, ucx.ucs_status_string(why)));
}

ucs_log_func_rc_t swallow(const char*, unsigned, const char*, ucs_log_level_t, const ucs_log_component_config_t*,
                          const char*, va_list) {
  return UCS_LOG_FUNC_RC_STOP;
}

ucs_status_t init(const calls& ucx, std::uint64_t features, const ucp_config_t* config, ucp_context_h& context) {
  ucp_params_t how{};
  how.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME;
  how.features = features;
  how.mt_workers_shared = 0;
  how.name = "rma";
  return ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &how, config, &context);
}

bool is_infiniband(const std::string& name) noexcept {
  return name.starts_with("rc_") || name.starts_with("ud_") || name.starts_with("dc_");
}

}  // namespace

library::library(purpose what) {
  try {
    {
      const detail::signals_blocked for_its_threads;
      open_context();
      if (what == purpose::only_to_look) return;
      open_worker();
    }
    try_watching();
  } catch (...) {
    if (worker_ != nullptr) ucx_.ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucx_.ucp_cleanup(context_);
    throw;
  }
}

library::~library() {
  if (worker_ != nullptr) ucx_.ucp_worker_destroy(worker_);
  ucx_.ucp_cleanup(context_);
}

// The library has its own shared memory for the ranks of one node: UCX's would fill /dev/shm and stay there after a
// kill.
// UCX's caches keep registrations of memory whose pages have been unmapped since: UCX misses some of these changes, and
// all of them without its hooks, which a program that has loaded UCX itself may have. Until 1.15 InfiniBand's cache has
// a setting of its own, about which UCX warns where it does not exist.
void library::open_context() {
  constexpr unsigned cache_setting = 14, last_own_cache = 15;
  ucp_config_t* config = nullptr;
  if (const ucs_status_t s = ucx_.ucp_config_read(nullptr, nullptr, &config); s != UCS_OK)
    reject(ucx_, "configuration", s);
  if (std::getenv("UCX_TLS") == nullptr) (void)ucx_.ucp_config_modify(config, "TLS", "^sm");
  unsigned major = 0, minor = 0, release = 0;
  ucx_.ucp_get_version(&major, &minor, &release);
  if (major > 1 || minor >= cache_setting) (void)ucx_.ucp_config_modify(config, "RCACHE_ENABLE", "n");
  ucs_status_t s = open_context(config);
  if (s == UCS_OK && major == 1 && minor <= last_own_cache && std::ranges::any_of(transports_, &is_infiniband)) {
    ucx_.ucp_cleanup(std::exchange(context_, nullptr));
    (void)ucx_.ucp_config_modify(config, "REG_METHODS", "direct");
    s = open_context(config);
  }
  ucx_.ucp_config_release(config);
  if (s != UCS_OK) reject(ucx_, "context with remote memory access, active messages and events", s);
}

// Opens the context without atomics if the transports in use have none and UCX does not emulate them.
ucs_status_t library::open_context(const ucp_config_t* config) {
  constexpr std::uint64_t needed = UCP_FEATURE_RMA | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  ucs_status_t s = init(ucx_, needed | UCP_FEATURE_AMO64, config, context_);
  atomics_ = s == UCS_OK;
  if (s != UCS_OK) s = init(ucx_, needed, config, context_);
  if (s == UCS_OK) look_at_transports();
  return s;
}

void library::open_worker() {
  ucp_worker_params_t how{};
  how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  how.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // the progress lock serializes
  if (const ucs_status_t s = ucx_.ucp_worker_create(context_, &how, &worker_); s != UCS_OK) reject(ucx_, "worker", s);
  if (const ucs_status_t s = ucx_.ucp_worker_get_efd(worker_, &events_); s != UCS_OK)
    reject(ucx_, "event descriptor", s);
}

// Tests this with an endpoint to this worker itself; UCX reports an error if it cannot be made.
void library::try_watching() {
  const std::string here = address();
  ucp_ep_params_t how{};
  how.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  how.address = reinterpret_cast<const ucp_address_t*>(here.data());
  how.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  ucp_ep_h endpoint = nullptr;
  ucx_.ucs_log_push_handler(&swallow);
  watches_peers_ = ucx_.ucp_ep_create(worker_, &how, &endpoint) == UCS_OK;
  ucx_.ucs_log_pop_handler();
  if (!watches_peers_) return;
  const ucp_request_param_t close{};  // no forced close: UCX over InfiniBand fails if it is not connected yet
  ucs_status_ptr_t const closing = ucx_.ucp_ep_close_nbx(endpoint, &close);
  while (UCS_PTR_IS_PTR(closing) && ucx_.ucp_request_check_status(closing) == UCS_INPROGRESS)
    (void)ucx_.ucp_worker_progress(worker_);
  if (UCS_PTR_IS_PTR(closing)) ucx_.ucp_request_free(closing);
}

// UCX describes its transports only in a text for people.
void library::look_at_transports() {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const into = ::open_memstream(&text, &bytes);
  if (into == nullptr) return;
  ucx_.ucp_context_print_info(context_, into);
  std::fclose(into);
  const std::unique_ptr<char, decltype(&std::free)> owned(text, &std::free);
  transports_ = transports_of_context({text, bytes});
}

bool library::only_messages() const noexcept {
  const auto sends = [](const std::string& name) { return name == "tcp" || name.starts_with("ud_"); };
  return !transports_.empty() && std::ranges::all_of(transports_, sends);
}

bool library::has_network() const noexcept {
  constexpr std::array<std::string_view, 7> no_network{"tcp", "self", "posix", "sysv", "cma", "knem", "xpmem"};
  return std::ranges::any_of(transports_,
                             [&](const std::string& name) { return std::ranges::count(no_network, name) == 0; });
}

std::vector<std::string> transports_of_context(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto flags = line.find("-- ");
    if (line.find("resource ") == std::string_view::npos || flags == std::string_view::npos) continue;
    const std::string_view name = line.substr(flags + 3, line.find('/', flags) - flags - 3);
    if (name != "self") names.emplace_back(name);
  }
  return names;
}

std::string library::address() const {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  if (const ucs_status_t s = ucx_.ucp_worker_get_address(worker_, &address, &bytes); s != UCS_OK)
    reject(ucx_, "address", s);
  std::string copy(reinterpret_cast<const char*>(address), bytes);
  ucx_.ucp_worker_release_address(worker_, address);
  return copy;
}

}  // namespace rma::ucx
