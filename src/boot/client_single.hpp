// SPDX-License-Identifier: Apache-2.0
/// \file
/// A job of one rank: no server, no sockets.
#pragma once

#include <map>
#include <string>

#include "boot/boot.hpp"

namespace rma::boot {

class single_client final : public client {
 public:
  [[nodiscard]] int rank() const noexcept override { return 0; }
  [[nodiscard]] int size() const noexcept override { return 1; }
  status put(std::string_view key, std::string_view value) override;
  status get(std::string_view key, std::string& value) override;
  status fence() override { return status::done; }
  void abort(int code, std::string_view message) noexcept override;
  void finalize() noexcept override {}
  void report_death(int) noexcept override {}
  [[nodiscard]] int event_fd() const noexcept override { return -1; }
  status poll_events(std::vector<int>&) override { return status::done; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace rma::boot
