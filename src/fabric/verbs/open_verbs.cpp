// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "fabric/verbs/adapter.hpp"
#include "fabric/verbs/open.hpp"
#include "fabric/verbs/verbs_fabric.hpp"

namespace rma::verbs {
namespace {

class opened_adapter final : public opened {
 public:
  explicit opened_adapter(const std::string& wanted) : device_(std::make_unique<adapter>(wanted)) {}

  std::unique_ptr<fabric::network> start(const member& who, std::string& address) override {
    auto made = std::make_unique<verbs_fabric>(std::move(device_), who);
    made->use(*who.peers);
    address = made->address();
    return made;
  }
  [[nodiscard]] abilities has() const noexcept override { return device_->has(); }
  [[nodiscard]] std::string describe() const override { return device_->describe(); }

 private:
  std::unique_ptr<adapter> device_;
};

}  // namespace

std::unique_ptr<opened> open(const std::string& wanted) { return std::make_unique<opened_adapter>(wanted); }

std::string address_key(int rank) { return fmt::format("verbs/{}", rank); }

}  // namespace rma::verbs
