// SPDX-License-Identifier: Apache-2.0
/// \file
/// Communication skeletons: programs that send messages of the sizes, between the ranks and in the order of a
/// benchmark, and compute nothing between them but the time that it takes (on simulated processors). Each element that
/// arrives is checked: it tells the sender, the tag, the number of the message between these two with that tag, and its
/// place.
#pragma once

#include <map>

#include "kernel.hpp"

namespace nas {

class Skeleton {
 public:
  explicit Skeleton(Run& run) : run_(run) {}
  [[nodiscard]] Run& run() noexcept { return run_; }

  /// A message of `count` doubles, which may be received while the rank goes on.
  struct Incoming {
    int from, tag;
    std::vector<double> data;
    rma::MessageRequest request;
  };
  [[nodiscard]] Incoming expect(int from, int tag, std::size_t count) {
    Incoming incoming{from, tag, std::vector<double>(count), {}};
    incoming.request = run_.world().irecv(std::span(incoming.data), from, tag);
    return incoming;
  }
  void receive(Incoming&& incoming) {
    run_.waiting([&] { incoming.request.wait(); });
    const double first = mark(incoming.from, incoming.tag, received_[{incoming.from, incoming.tag}]++);
    for (std::size_t i = 0; i < incoming.data.size(); ++i) wrong_ += incoming.data[i] == first + double(i) ? 0 : 1;
  }
  void receive(int from, int tag, std::size_t count) { receive(expect(from, tag, count)); }

  /// Returns when the buffer may be used again.
  void send(int to, int tag, std::size_t count) {
    const std::vector<double> data = next(to, tag, count);
    run_.waiting([&] { run_.world().send(std::span(data), to, tag); });
  }
  /// Starts to send; `complete` waits for all that have been started.
  void start_send(int to, int tag, std::size_t count) {
    under_way_.emplace_back(next(to, tag, count), rma::MessageRequest());
    under_way_.back().second = run_.world().isend(std::span(std::as_const(under_way_.back().first)), to, tag);
  }
  void complete() {
    run_.waiting([&] {
      for (auto& [data, request] : under_way_) request.wait();
    });
    under_way_.clear();
  }

  /// Five sums over all ranks, as after the last step.
  void norms() {
    std::vector<double> five(5, 1);
    run_.waiting([&] { run_.world().allreduce(std::span(five), rma::sum); });
    for (const double sum : five) wrong_ += sum == run_.ranks() ? 0 : 1;
  }

  /// The exit status. The number reported is that of wrong elements.
  int report() { return run_.report(wrong_ == 0, double(run_.world().allreduce(wrong_, rma::sum))); }

 private:
  [[nodiscard]] static double mark(int from, int tag, std::size_t number) {
    return 1e12 * from + 1e11 * tag + 1e6 * double(number % 100000);
  }
  [[nodiscard]] std::vector<double> next(int to, int tag, std::size_t count) {
    std::vector<double> data(count);
    const double first = mark(run_.rank(), tag, sent_[{to, tag}]++);
    for (std::size_t i = 0; i < count; ++i) data[i] = first + double(i);
    return data;
  }

  Run& run_;
  std::map<std::pair<int, int>, std::size_t> sent_, received_;  // by rank and tag
  std::vector<std::pair<std::vector<double>, rma::MessageRequest>> under_way_;
  std::uint64_t wrong_ = 0;
};

}  // namespace nas
