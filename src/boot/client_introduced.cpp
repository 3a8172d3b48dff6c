// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <utility>

#include "boot/descriptors.hpp"
#include "boot/digest.hpp"
#include "boot/interfaces.hpp"
#include "boot/introduction.hpp"
#include "boot/server.hpp"

namespace rma::boot {
namespace {

constexpr std::size_t key_bytes = 32;

/// The job's own channel, and the launcher, which has to know of an abort.
class introduced_client final : public client {
 public:
  introduced_client(std::unique_ptr<introduction> by, int timeout_s, std::unique_ptr<server> hosted,
                    std::unique_ptr<client> channel)
      : by_(std::move(by)), timeout_s_(timeout_s), hosted_(std::move(hosted)), channel_(std::move(channel)) {}

  [[nodiscard]] int rank() const noexcept override { return channel_->rank(); }
  [[nodiscard]] int size() const noexcept override { return channel_->size(); }
  [[nodiscard]] std::string_view key() const noexcept override { return channel_->key(); }
  [[nodiscard]] std::string host() const override { return channel_->host(); }
  [[nodiscard]] bool rank_0_serves() const noexcept override { return channel_->rank_0_serves(); }
  [[nodiscard]] std::vector<std::string> process_sets() const override { return by_->process_sets(timeout_s_); }
  [[nodiscard]] std::vector<int> members_of(const std::string& set) const override {
    return by_->members_of(set, timeout_s_);
  }
  status put(std::string_view key, std::string_view value) override { return channel_->put(key, value); }
  status get(std::string_view key, std::string& value) override { return channel_->get(key, value); }
  status fence() override { return channel_->fence(); }
  void begin_step(std::string_view what, bool waits) noexcept override { channel_->begin_step(what, waits); }
  [[nodiscard]] std::string late_ranks() override { return channel_->late_ranks(); }
  void abort(int code, std::string_view message) noexcept override {
    channel_->abort(code, message);
    by_->abort(code, message);
  }
  void finalize() noexcept override {
    channel_->finalize();
    by_->finalize();
  }
  void report_death(int rank) noexcept override { channel_->report_death(rank); }
  [[nodiscard]] int event_fd() const noexcept override { return channel_->event_fd(); }
  status poll_events(std::vector<int>& died) override { return channel_->poll_events(died); }
  void take_departures(std::vector<int>& left) override { channel_->take_departures(left); }

 private:
  std::unique_ptr<introduction> by_;
  int timeout_s_;                   ///< for answers of the launcher
  std::unique_ptr<server> hosted_;  ///< outlives channel_
  std::unique_ptr<client> channel_;
};

/// The address at which the ranks of this job reach rank 0, this one. It is local to this node if they all run here.
std::string meeting_place(introduction& by, const options& how) {
  if (by.one_node()) return "local://";
  return to_text({.local = false, .host = address_of_interface(how.interface), .port = "0"});
}

}  // namespace

std::unique_ptr<client> join_introduced(std::unique_ptr<introduction> by, const options& how) {
  options mine = how;
  mine.rank = by->rank();
  mine.size = by->size();
  const int timeout_s = std::max(1, how.timeout_ms / 1000);
  if (mine.size == 1) {
    mine.address.clear();
    return std::make_unique<introduced_client>(std::move(by), timeout_s, nullptr, join(mine));
  }
  std::unique_ptr<server> hosted;
  std::string said;
  if (mine.rank == 0) {
    mine.key = random_hex(key_bytes);
    allow_connections(mine.size);
    hosted = std::make_unique<server>(server_options{.size = mine.size,
                                                     .key = mine.key,
                                                     .address = meeting_place(*by, how),
                                                     .peer_timeout_ms = how.peer_timeout_ms});
    hosted->start();
    said = hosted->address() + " " + mine.key;
  }
  said = by->from_rank_0(said, timeout_s);
  const auto cut = said.find(' ');
  if (cut == std::string::npos) {
    throw Error(status::bad_boot, "what the launcher has brought from rank 0 makes no sense");
  }
  mine.address = said.substr(0, cut);
  mine.key = said.substr(cut + 1);
  mine.served_by_rank_0 = true;
  auto channel = join_served(mine);
  return std::make_unique<introduced_client>(std::move(by), timeout_s, std::move(hosted), std::move(channel));
}

}  // namespace rma::boot
