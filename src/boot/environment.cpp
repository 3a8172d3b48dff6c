// SPDX-License-Identifier: Apache-2.0
/// \file
/// RMA_BOOT, RMA_RANK, RMA_SIZE, RMA_KEY, RMA_NODE: what the launcher says.
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "boot/boot.hpp"

namespace rma::boot {

namespace {

std::string text_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

int number_of(const char* name, int otherwise) {
  const std::string text = text_of(name);
  if (text.empty()) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw Error(status::bad_boot, std::string(name) + "=" + text + " is not a whole number");
  }
  return value;
}

}  // namespace

void take_address(options& how) {
  constexpr std::string_view launcher = "rmarun://";
  if (!how.address.starts_with(launcher)) return;
  how.address.replace(0, launcher.size(), "tcp://");
  how.served_by_launcher = true;
}

options options_from_environment() {
  options how;
  how.address = text_of("RMA_BOOT");
  how.key = text_of("RMA_KEY");
  how.node = text_of("RMA_NODE");
  how.interface = text_of("RMA_BOOT_INTERFACE");
  take_address(how);
  const bool is_given = !how.address.empty() || !text_of("RMA_RANK").empty() || !text_of("RMA_SIZE").empty();
  if (!is_given && !text_of("PMIX_NAMESPACE").empty() && !text_of("PMIX_RANK").empty()) {
    how.address = pmix_address;
    return how;
  }
  if (how.address == alone_address || how.address == pmix_address || how.address == pmi2_address) return how;
  how.size = number_of("RMA_SIZE", how.address.empty() ? 1 : 0);
  how.rank = number_of("RMA_RANK", how.size > 1 || !how.address.empty() ? -1 : 0);
  if (!how.address.empty() && (text_of("RMA_RANK").empty() || text_of("RMA_SIZE").empty())) {
    throw Error(status::bad_boot,
                "RMA_BOOT is set, but RMA_RANK or RMA_SIZE is not: every rank needs all three and RMA_KEY");
  }
  return how;
}

}  // namespace rma::boot
