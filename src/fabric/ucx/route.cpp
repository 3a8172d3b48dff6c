// SPDX-License-Identifier: Apache-2.0
/// \file
/// The transports that UCX has chosen for a peer. UCX 1.13 names them only in a text for people.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/ucx/ucx_fabric.hpp"

namespace rma::ucx {
namespace {

/// The transport in a line like `lane[0]:  2:tcp/eth0.0 md[1] -> ...`: "tcp/eth0". Empty if there is none.
std::string_view transport_of(std::string_view line) {
  const auto lane = line.find("lane[");
  if (lane == std::string_view::npos) return {};
  line.remove_prefix(lane);
  line.remove_prefix(std::min(line.find("]:"), line.size()));
  line.remove_prefix(std::min(line.find_first_of("0123456789"), line.size()));
  line.remove_prefix(std::min(line.find(':'), line.size()));
  if (line.empty()) return {};
  line.remove_prefix(1);
  const std::string_view name = line.substr(0, line.find(' '));
  return name.substr(0, name.rfind('.'));
}

}  // namespace

std::string transports_in(std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view transport = transport_of(text.substr(0, end));
    if (!transport.empty() && std::ranges::find(found, transport) == found.end()) found.push_back(transport);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  std::string list;
  for (const std::string_view each : found) list += (list.empty() ? "" : " ") + std::string(each);
  return list;
}

std::string ucx_fabric::route(int peer) {
  messaged::peer* p = nullptr;
  if (reach(peer, p) != status::done) return {};
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const into = ::open_memstream(&text, &bytes);
  if (into == nullptr) return {};
  ucx_.ucp_ep_print_info(connection_of(*p).endpoint, into);
  std::fclose(into);
  const std::unique_ptr<char, decltype(&std::free)> owned(text, &std::free);
  return transports_in({text, bytes});
}

}  // namespace rma::ucx
