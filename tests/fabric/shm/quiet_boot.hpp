// SPDX-License-Identifier: Apache-2.0
/// \file
/// The job's channel, for who waits for something else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "boot/boot.hpp"
#include "rma/error.hpp"

namespace rma::test {

/// A job without news, or with the one that the test wants.
class quiet_boot final : public boot::client {
 public:
  explicit quiet_boot(int dead_rank = -1, status news = status::done) : dead_rank_(dead_rank), news_(news) {}
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 2; }
  status put(std::string_view, std::string_view) override { return status::done; }
  status get(std::string_view, std::string&) override { return status::done; }
  status fence() override { return status::done; }
  void abort(int, std::string_view) noexcept override {}
  void finalize() noexcept override {}
  void report_death(int) noexcept override {}
  int event_fd() const noexcept override { return -1; }
  status poll_events(std::vector<int>& died) override {
    if (dead_rank_ >= 0) died.push_back(dead_rank_);
    return news_;
  }

 private:
  int dead_rank_;
  status news_;
};

}  // namespace rma::test
