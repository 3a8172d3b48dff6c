// SPDX-License-Identifier: Apache-2.0
// Goal: the texts of refusals that no call of one rank leads to: they need a thread in the middle of a call, a network
// that is missing, a window that others have dropped.
// Method: the window's record is set as such a refusal finds it, and `raise` is called as the refused call calls it.
// Break: change a word of such a text in src/api/raise.cpp or wrong_epoch.cpp.
#include <catch2/catch.hpp>
#include <string>

#include "rma/rma.hpp"
#include "window/window_core.hpp"

namespace {

using namespace rma;

class Raised {
 public:
  Raised()
      : rt_(Config{.environment = false, .boot = "alone"}),
        world_(rt_.world()),
        view_(detail::make_window(world_, {detail::call::allocate, nullptr, 8, 8, 8}, {.name = "w"})) {}
  ~Raised() {
    record().access = detail::access_epoch::none;
    record().claimed.clear();
    (void)detail::free_window(view_);
  }
  [[nodiscard]] detail::window_core& record() const { return detail::core_of(*view_); }
  [[nodiscard]] const detail::window_view& view() const { return *view_; }

 private:
  Runtime rt_;
  Team world_;
  detail::window_view* view_;
};

/// The text of the Error behind the place of the call.
std::string text_of(const detail::window_view& view, detail::call what, status code) {
  try {
    detail::raise(view, what, code, 0, 0, 1, std::source_location::current());
  } catch (const Error& e) {
    const std::string text = e.what();
    return text.substr(text.find(".cpp:"));
  }
}

/// `text` is what follows the code.
void says(const Raised& r, detail::call what, status code, const std::string& text) {
  const std::string all = text_of(r.view(), what, code);
  CHECK_THAT(all, Catch::EndsWith(": " + std::string(name_of(code)) + ": " + text));
}

}  // namespace

TEST_CASE_METHOD(Raised, "texts of refusals in the middle of another call", "[errors]") {
  record().access = detail::access_epoch::opening;
  says(*this, detail::call::lock_all, status::wrong_epoch, "another thread is in start(); let it return first");
  record().access = detail::access_epoch::closing;
  for (const detail::call each : {detail::call::put, detail::call::complete, detail::call::flush, detail::call::fence})
    says(*this, each, status::wrong_epoch, "a request that ends an epoch is not complete; wait for it first");
  record().access = detail::access_epoch::none;
  record().claimed = {0};
  says(*this, detail::call::lock, status::wrong_epoch, "another thread is in lock(0); let it return first");
  record().claimed.clear();
  says(*this, detail::call::lock_all, status::wrong_epoch,
       "another thread had an epoch open, which has ended; call again");
}

TEST_CASE_METHOD(Raised, "texts of refused types", "[errors]") {
  record().refused_type = element::f64;
  record().refused_op = operation::sum;
  says(*this, detail::call::compare_and_swap, status::bad_type,
       "compare_and_swap needs an integer type, and f64 is none");
  says(*this, detail::call::accumulate, status::bad_type,
       "operator sum on f64: the network device updates integers of 8 bytes at most; use another Hints::accumulate");
}

TEST_CASE_METHOD(Raised, "texts of refusals by the job, the network and other ranks", "[errors]") {
  const auto put = detail::call::put;
  says(*this, put, status::unreachable,
       "rank 0 is on another node and no network fabric connects the two; run all ranks on one node");
  says(*this, put, status::job_aborted, "the job is being ended");
  says(*this, put, status::window_freed,
       "rank 0 has dropped or freed it; let all finish before one does, by a barrier");
  says(*this, put, status::window_failed,
       "an epoch of this rank could not be closed at the end of its scope; free the window");
  says(*this, put, status::not_supported, "this window cannot do it");
  says(*this, put, status::not_yet, "see rma::status");
  CHECK_THAT(text_of(detail::freed_window, detail::call::free, status::transfer_failed),
             Catch::EndsWith("the window is freed, but not all that was under way came to a good end"));
}
